"""What a run says of itself while it goes on, and what Ctrl-C leaves."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.doors.cli import interrupts
from kemu.doors.cli.main import main
from kemu.doors.cli.progress import Bar, Line, duration
from kemu.lab.scenario.playing import progress as states
from kemu.lab.scenario.playing.progress import Progress
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer

SECOND = 1_000_000_000


@pytest.fixture
def progress(tmp_path: Path) -> Iterator[Progress]:
    """Of a run of one minute and 200 pods that starts its actors."""
    found = Progress()
    writer = Writer(tmp_path / FILE_NAME, {})
    found.begin(60 * SECOND, 200, writer)
    yield found
    writer.close()


def test_before_the_run() -> None:
    assert Line("storm").text(Progress(), 0.4) == "storm: reading the scenario, 0 s"
    assert Line("storm").text(Progress(), 12.6) == "storm: reading the scenario, 13 s"


def test_actors_start(progress: Progress) -> None:
    line = Line("storm")
    assert line.text(progress, 1) == "storm: preparing the cluster, 1 s"
    progress.actors = 50_000
    progress.kinds = {"actor.started": 50_000}
    assert line.text(progress, 2) == "storm ━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ starting 50000 actors, 12% done, 1 s so far"
    progress.kinds |= {"store.txn": 100_000, "client.acked": 50_000, "watch.listed": 30_000, "client.listed": 20_000}
    text = "storm ━━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌ starting 50000 actors, 62% done, about 3 s left"
    assert line.text(progress, 6) == text
    progress.kinds |= {"store.txn": 300_000}
    assert "100% done" in line.text(progress, 9)


def test_what_remains_is_told_by_the_measure_that_is_done_first(progress: Progress) -> None:
    progress.phase = states.RUNNING
    line = Line("storm")
    progress.now_ns, progress.bound = 6 * SECOND, 0
    assert line.text(progress, 10).endswith(" 6.0 of 60 s, 0 of 200 pods bound, 0 s so far")
    # A tenth of the time in four seconds: 32 s are left, if it goes on to its end.
    progress.now_ns = 12 * SECOND
    assert line.text(progress, 14).endswith(" 12.0 of 60 s, 0 of 200 pods bound, about 32 s left")
    # Half of the pods in the same time: all are bound in four seconds.
    progress.bound = 100
    assert line.text(progress, 14).endswith(" 12.0 of 60 s, 100 of 200 pods bound, about 4 s left")


def test_where_nothing_moves_no_estimate_is_made(progress: Progress) -> None:
    progress.phase = states.RUNNING
    line = Line("storm")
    texts = [line.text(progress, second) for second in range(20)]
    assert texts[-1] == "storm ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 0.0 of 60 s, 0 of 200 pods bound, 19 s so far"


def test_more_pods_than_meant_come_from_controllers_and_replacements(progress: Progress) -> None:
    progress.kinds = {"user.pod": 220, "controller.pod": 30}
    assert progress.pods == 250


def test_a_variant_of_a_matrix_is_judged(progress: Progress) -> None:
    progress.variant, progress.variants = 2, 6
    progress.judge(94 << 20)
    progress.read_bytes = 47 << 20
    text = "storm 2/6 ━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌ judging, 47 of 94 MiB of the log, 0 s so far"
    assert Line("storm").text(progress, 100) == text


def test_durations_are_rough() -> None:
    assert [duration(seconds) for seconds in (0.2, 42.4, 99, 100, 3000, 7300)] == [
        "1 s", "42 s", "99 s", "2 min", "50 min", "2 h",
    ]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_it_within_the_first_second_and_is_left_clean() -> None:
    stream = Terminal()
    bar = Bar(stream, functools.partial(Line("storm").text, Progress()))
    bar.start()
    until = time.monotonic() + 30
    while not stream.getvalue() and time.monotonic() < until:
        time.sleep(0.01)
    bar.close()
    assert stream.getvalue().startswith("\r\x1b[2Kstorm: reading the scenario, 0 s")
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_of_several_lines_none_is_left() -> None:
    stream = Terminal()
    texts = iter(["one\ntwo\nthree"])
    bar = Bar(stream, lambda _: next(texts, "four"))
    bar.start()
    until = time.monotonic() + 30
    while "four" not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.01)
    bar.close()
    assert stream.getvalue().startswith("\r\x1b[2Kone\ntwo\nthree\x1b[2A\r\x1b[Jfour")
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_it_is_no_wider_than_its_terminal_wherever_the_result_goes(tmp_path: Path) -> None:
    """``kemu run … > result.txt``: what the standard output is says nothing about the terminal."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (20, 30))
    with (tmp_path / "out").open("w") as out, open(slave, "w", closefd=False) as stream:
        before, sys.__stdout__ = sys.__stdout__, out
        try:
            bar = Bar(stream, lambda _: "x" * 100)
            bar.start()
            time.sleep(1)
            bar.close()
        finally:
            sys.__stdout__ = before
    shown = os.read(master, 1000).decode()
    os.close(master)
    os.close(slave)
    assert shown.startswith("\r\x1b[2K" + "x" * 29 + "\r")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["replay", "done"], "done: running it again, 0 s"),
        (["explain", "done"], "done: running it again, with all of its messages, 0 s"),
    ],
)
def test_so_do_commands_that_run_it_again(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "races/two-schedulers-one-node", "--set", "nodes[0].allocatable.cpu=20", "--out", "done"]) == 1
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("kemu.doors.cli.progress.FIRST_S", 0.0)
    with contextlib.suppress(SystemExit):
        main(arguments)
    assert f"\r\x1b[2K{text}\r\x1b[2K" in stream.getvalue()


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", "races/two-schedulers-one-node", "--out", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err == ""


def test_what_an_interrupted_run_says(progress: Progress) -> None:
    out = Path("runs/storm")
    assert interrupts.failure(Progress(), out).message == "interrupted before the run began"
    text = "interrupted while the actors started; the run log as far as it went is in runs/storm"
    assert interrupts.failure(progress, out).message == text
    progress.phase, progress.now_ns = states.RUNNING, 12_345_000_000
    text = "interrupted at 12.345 s of 60 s; the run log as far as it went is in runs/storm"
    assert interrupts.failure(progress, out).message == text
    progress.judge(1)
    text = "interrupted while the run was judged; its log is in runs/storm, without a verdict"
    assert interrupts.failure(progress, out).message == text


BUSY = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: busy}
spec:
  duration: 10h
  nodes: [{namePrefix: n, count: 20, allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}]
  workloads:
    - name: w
      arrivals: {poisson: {rate: 20/s}}
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: 500m}}}]}}
      life: {runSeconds: 5}
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_closes_the_log_and_says_how_far_the_run_came(as_json: bool, tmp_path: Path) -> None:
    scenario, run = tmp_path / "busy.yaml", tmp_path / "run"
    scenario.write_text(BUSY)
    words = ["run", str(scenario), "--out", str(run), *(["--json"] if as_json else [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "kemu.doors.cli.main", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ,
    )  # fmt: skip
    log = run / FILE_NAME
    until = time.monotonic() + 120
    while not (log.exists() and log.stat().st_size > 1 << 17) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    text = rf"interrupted at \d+\.\d{{3}} s of 36000 s; the run log as far as it went is in {re.escape(str(run))}"
    if as_json:
        found = json.loads(out)
        assert (found["error"], found["exit"], found["run"]) == ("interrupted", 130, str(run))
        assert re.fullmatch(text, found["message"])
    else:
        assert re.fullmatch(f"kemu: {text}\n", err)
    with Reader(log) as reader:
        events = list(reader)
    assert len(events) > 1000
    assert not any(event.kind == "run.ended" for event in events)
