"""What ``kemu trace RUN POD`` prints."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from kemu.errors import KemuError, RunLogError
from kemu.lab.telemetry import waterfall
from tests.telemetry.logs import KUBELET, OTHER, Log, preemption, uid_of


def shown(folder: Path, pod: str, width: int = 100, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    waterfall.show(Console(file=file, width=width), folder, pod)
    return raw.getvalue().decode(encoding).splitlines()


def row(lines: list[str], what: str) -> str:
    return next(line for line in lines if re.search(rf"s  +{re.escape(what)} ", line))


@pytest.mark.parametrize("width", [80, 120])
def test_a_preemption_fits_the_terminal(tmp_path: Path, width: int) -> None:
    lines = shown(preemption().write(tmp_path), "c", width)
    text = "\n".join(lines)
    assert max(len(line) for line in lines if "kemu trace" not in line) <= width
    assert lines[0] == f"default/c  uid {uid_of('c')}"
    assert "created at 5.000s · bound after 60s · on node-1 · still there when the run ended · 2 attempts" in (
        " ".join(lines[1:3])
    )
    assert "makes room on node-1 by preempting a, b" in text
    assert "preempted a, b" in lines
    assert lines[-2:] == [f"see: kemu trace {tmp_path} a", f"see: kemu trace {tmp_path} b"]
    assert "0/1 nodes are available: 1 Insufficient cpu." in text
    for what in ("attempt 1 unschedulable", "nomination on node-1", "attempt 2 scheduled", "bind to node-1", "pull"):
        assert row(lines, what)


@pytest.mark.parametrize("width", [60, 62, 66])
def test_the_axis_of_a_narrow_terminal_has_one_line(tmp_path: Path, width: int) -> None:
    lines = shown(preemption().write(tmp_path), "c", width)
    place = next(number for number, line in enumerate(lines) if line.split()[:2] == ["at", "took"])
    assert len(lines[place]) <= width
    assert lines[place].split()[4:] in ([], ["5.000s"])
    assert lines[place + 1].split()[0] == "5.000s"


def test_bars_show_when(tmp_path: Path) -> None:
    lines = shown(preemption().write(tmp_path), "a")
    root, termination, last = (row(lines, what) for what in ("pod default/a", "termination", "delete by kubelet"))
    assert "━" * 20 in root
    # It ran for 5 of 65 s, then took the rest to go.
    running = row(lines, "running")
    assert 2 <= len(running) - running.index("━") <= 6
    assert termination.index("━") - root.index("━") in range(2, 7)
    assert len(last) == len(root.rstrip())
    assert last[-1] in "╸╺"
    assert "preempted by c" in lines


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    lines = shown(preemption().write(tmp_path), "a", encoding="ascii")
    assert "====" in row(lines, "termination")
    assert row(lines, "running")


def test_hundreds_of_attempts_are_folded(tmp_path: Path) -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    ms = 10.0
    for n in range(1, 301):
        log.queued(ms, "p", "active", 1)
        log.attempt(ms + 1, "p", n, "unschedulable", message=f"0/{7 if n > 200 else 5} nodes are available.")
        log.queued(ms + 900, "p", "unschedulable", 890)
        ms += 1000
    log.queued(ms, "p", "active", 1)
    log.attempt(ms + 1, "p", 301, "scheduled")
    log.bind(ms + 5, "p")
    lines = shown(log.write(tmp_path), "p")
    assert len(lines) < 25
    assert row(lines, "attempt 1 unschedulable")
    assert row(lines, "… 298 more attempts")
    assert row(lines, "attempt 300 unschedulable")
    assert row(lines, "attempt 301 scheduled")


def test_folded_attempts_say_when_they_are_all_the_same(tmp_path: Path) -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    for n in range(1, 60):
        log.attempt(100 * n, "p", n, "unschedulable")
    assert row(shown(log.write(tmp_path), "p"), "… 57 more attempts, same result")


def test_three_attempts_are_not_folded(tmp_path: Path) -> None:
    log = Log()
    for n in range(1, 4):
        log.attempt(100 * n, "p", n, "unschedulable")
    text = "\n".join(shown(log.write(tmp_path), "p"))
    assert "more attempts" not in text
    assert text.count("0/1 nodes are available") == 1, "the same words again and again say nothing"


def test_a_conflict_and_a_rejection_in_words(tmp_path: Path) -> None:
    log = Log()
    log.scheduled(0, "red")
    log.request(3, "create", "blue", "user")
    log.bind(9.5, "blue", OTHER)
    log.admit(11, "blue", "OutOfcpu")
    folder = log.write(tmp_path)
    blue = shown(folder, "blue")
    assert "lost to red" in blue
    assert any("OutOfcpu: no room for blue" in line for line in blue)
    assert f"see: kemu trace {folder} red" in blue
    assert "won against blue" in shown(folder, "red")


def test_an_unknown_pod_gets_a_suggestion(tmp_path: Path) -> None:
    log = Log()
    for name in ("web-frontend", "database"):
        log.request(2, "create", name, "user")
    folder = log.write(tmp_path)
    with pytest.raises(KemuError, match="no pod web-fronted; did you mean web-frontend"):
        waterfall.load(folder, "web-fronted")
    with pytest.raises(KemuError, match="no pod zzz; there are web-frontend, database"):
        waterfall.load(folder, "zzz")
    with pytest.raises(RunLogError):
        waterfall.load(folder / "nothing", "zzz")
    with pytest.raises(KemuError, match="the run has no pods"):
        waterfall.load(Log().write(tmp_path / "empty"), "zzz")


def test_a_name_used_again_shows_the_latest(tmp_path: Path) -> None:
    log = Log()
    log.request(2, "create", "p", "user")
    log.gone(4, "p")
    log.request(5, "delete", "p", "user")
    log.add(
        12, "apiserver/0", "api.request", verb="create", resource="pods", namespace="default", name="p",
        uid=uid_of("p again"), by="user", start=10_000_000, rev=9,
    )  # fmt: skip
    folder = log.write(tmp_path)
    trace = waterfall.load(folder, "p")
    assert (trace.uid, trace.namesakes) == (uid_of("p again"), (uid_of("p"),))
    assert waterfall.load(folder, uid_of("p")).uid == uid_of("p")
    assert any("the latest of 2 pods of this name" in line for line in shown(folder, "default/p"))


def test_a_pod_of_another_namespace_is_found_by_its_name_alone(tmp_path: Path) -> None:
    log = Log()
    for ms, namespace in ((2, "one"), (3, "two")):
        for name in ("both", f"only-{namespace}"):
            log.add(
                ms, KUBELET, "kubelet.pulled", pod=f"{namespace}/{name}", uid=uid_of(f"{namespace}/{name}"),
                node="node-1", start=0,
            )  # fmt: skip
    folder = log.write(tmp_path)
    assert waterfall.load(folder, "only-two").pod == "two/only-two"
    with pytest.raises(KemuError, match="several pods are named both: one/both, two/both"):
        waterfall.load(folder, "both")
    assert waterfall.load(folder, "two/both").pod == "two/both"


@pytest.mark.parametrize(
    ("span_ns", "text"),
    [
        (0, "0"), (1, "1µs"), (999_999, "999µs"), (1_000_000, "1ms"), (999_400_000, "999ms"), (999_600_000, "1s"),
        (60_210_000_000, "60.2s"), (99_990_000_000, "100s"), (754_000_000_000, "12m34s"), (10_920 * 10**9, "3h02m"),
    ],
)  # fmt: skip
def test_durations(span_ns: int, text: str) -> None:
    assert waterfall._duration(span_ns) == text
