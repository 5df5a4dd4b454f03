"""Runs whose process is killed go on from their checkpoint, or are made again, to the same digest."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.lab.scenario.playing.checkpoints import waking
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer

CODE = """
import sys
from kemu.runtime.runlog import frames
from kemu.runtime.sim import loops
loops._GC_YOUNG_STEPS = 300  # after so many a run may be copied
frames.Writer.__init__.__kwdefaults__["buffer_bytes"] = 1 << 13  # as many blocks as a long run has
from kemu.doors.cli.main import main
sys.exit(main())
"""
PROGRAM = [sys.executable, "-c", CODE]
SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: long}
spec:
  duration: 200s
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "64", pods: "500"}}]
  schedulers: [{name: default-scheduler}]
  workloads:
    - name: web
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: 100m}}}]}}
      arrivals: {every: 500ms, until: 200s}
      life: {runSeconds: {uniform: {min: 5, max: 20}}}
"""
OFTEN = ["--checkpoint-every", "20ms"]
PATIENCE_S = 120.0


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "long.yaml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """A run folder, whose checkpoint does not outlive the test."""
    folder = tmp_path / "run"
    yield folder
    found = waking.ask(folder)
    if found is not None:
        waking.end(folder)
        assert waking.ask(folder) is None


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the run that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "long.yaml").write_text(SCENARIO)
    verdict = json.loads(
        kemu("run", folder / "long.yaml", "--out", folder / "run", "--json", "--no-checkpoints").stdout
    )
    assert not (folder / "run" / folders.CHECKPOINT_FILE).exists()
    return str(verdict["digest"])


def kemu(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE_S, **more
    )


def here(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    """The same without another process, for what ends before it computes: exit code, and what stands on stderr."""
    capsys.readouterr()
    return main([*map(str, words)]), capsys.readouterr().err


def start(*words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def kill_after(
    process: subprocess.Popen[str], folder: Path, more_s: float, than_s: float = -1.0
) -> waking.Found | None:
    """Kill it so long after it has made a checkpoint later in virtual time than that. What stands then."""
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        found = waking.ask(folder)
        if found is not None and found.is_running and found.now_s > than_s:
            time.sleep(more_s)
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)  # with all that it has started and that has not gone its own way
    process.communicate(timeout=PATIENCE_S)
    return waking.ask(folder)


def ended(process: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert process.returncode == 0, process.stderr
    found: dict[str, Any] = json.loads(process.stdout)
    return found


BY_NIGHT = pytest.mark.nightly("six seconds for each moment at which it is killed")


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=BY_NIGHT), pytest.param(2, marks=BY_NIGHT)])
def test_a_run_that_was_killed_goes_on_to_the_same_digest(
    seed: int, scenario: Path, out: Path, digest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = random.Random(seed)
    found = kill_after(start("run", scenario, "--out", out, *OFTEN), out, drawn.uniform(0, 0.3), drawn.uniform(0, 60))
    assert found is not None
    assert not found.is_running
    for words in (("story",), ("trace", "--perfetto", os.devnull), ("report",)):
        code, told = here(capsys, words[0], out, *words[1:])
        assert code == 0, told
        assert "unfinished, the log goes as far as the run had come: its process was killed" in told
        assert f"run --resume {out} goes on at {found}" in told
    done = kemu("run", "--resume", out)
    assert done.returncode == 0, done.stderr
    assert f"the run goes on at {found}, from its checkpoint" in done.stderr
    assert "checks hold" in done.stdout
    verdict = json.loads((out / folders.VERDICT_FILE).read_text())
    assert verdict["digest"] == digest
    assert waking.ask(out) is None, "it ends with its run"
    assert not (out / folders.CHECKPOINT_FILE).exists()


def test_a_run_may_be_killed_twice_and_the_second_time_by_killing_who_woke_it(
    scenario: Path, out: Path, digest: str
) -> None:
    first = kill_after(start("run", scenario, "--out", out, *OFTEN), out, 0.05)
    assert first is not None
    second = kill_after(start("run", "--resume", out), out, 0.05, first.now_s)
    assert second is not None
    assert second.now_s > first.now_s
    while (found := waking.ask(out)) is not None and found.is_running:  # it hears that its caller has died
        time.sleep(0.01)
    again = ended(kemu("run", scenario, "--out", out, "--json"))
    assert again["digest"] == digest, "the same command goes on, too"


def test_a_run_goes_on_once_more_where_it_was_killed_before_it_made_a_checkpoint_of_its_own(
    scenario: Path, out: Path, digest: str
) -> None:
    first = kill_after(start("run", scenario, "--out", out, "--checkpoint-every", "200ms"), out, 0.0)
    assert first is not None
    process = start("run", "--resume", out)
    while (found := waking.ask(out)) is not None and not found.is_running:
        time.sleep(0.005)
    assert found is not None
    os.kill(found.run_pid, signal.SIGKILL)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3
    assert "the run was killed; " in told
    assert ended(kemu("run", "--resume", out, "--json"))["digest"] == digest


def test_an_interruption_says_how_to_go_on_and_reaches_a_run_that_was_woken(
    scenario: Path, out: Path, digest: str
) -> None:
    both: tuple[list[str | Path], ...] = (["run", scenario, "--out", out, *OFTEN], ["run", "--resume", out])
    for words in both:
        process = start(*words)
        before = waking.ask(out)
        while (found := waking.ask(out)) is None or not found.is_running or found == before:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130, told
        assert f"run --resume {out} goes on at " in told
    assert ended(kemu("run", "--resume", out, "--json"))["digest"] == digest


@pytest.mark.thorough
def test_without_its_checkpoint_a_run_is_made_again_and_has_to_be_the_same(
    scenario: Path, out: Path, digest: str
) -> None:
    assert kill_after(start("run", scenario, "--out", out, *OFTEN), out, 0.1, 30.0) is not None
    waking.end(out)
    left = (out / FILE_NAME).stat().st_size
    # It is killed once more, before all of the first log has come again, and goes on from that checkpoint.
    second = kill_after(start("run", "--resume", out, *OFTEN), out, 0.0)
    assert second is not None
    assert (out / folders.BEFORE_FILE).stat().st_size == left or second.now_s > 30
    done = kemu("run", "--resume", out, "--json")
    assert ended(done)["digest"] == digest
    assert not (out / folders.BEFORE_FILE).exists()
    done = kemu("run", "--resume", out)
    assert done.returncode == 0
    assert "the run is over already: " in done.stdout


def test_a_log_that_differs_is_an_error_which_says_where_and_stays(scenario: Path, out: Path) -> None:
    assert kill_after(start("run", scenario, "--out", out, *OFTEN), out, 0.1, 30.0) is not None
    waking.end(out)
    other = out.parent / "other"
    other.mkdir()
    with Reader(out / FILE_NAME) as reader:
        writer = Writer(other / FILE_NAME, reader.header)
        for number, event in enumerate(reader):
            writer.append(event.time_ns + (number == 40), *event[1:])
        writer.close()
    (other / folders.SCENARIO_FILE).write_bytes((out / folders.SCENARIO_FILE).read_bytes())
    log = (other / FILE_NAME).read_bytes()
    done = kemu("run", "--resume", other)
    assert done.returncode == 1, done.stderr
    assert "no checkpoint waits: the run begins anew" in done.stderr
    assert "event 40 differs" in done.stderr
    assert (other / FILE_NAME).read_bytes() == log


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_changed_scenario_is_refused(
    has_checkpoint: bool, scenario: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kill_after(start("run", scenario, "--out", out, *OFTEN), out, 0.0) is not None
    if not has_checkpoint:
        waking.end(out)
    log = (out / FILE_NAME).read_bytes()
    changed = scenario.with_name("changed.yaml")
    changed.write_text(SCENARIO.replace("every: 500ms", "every: 400ms"))
    own = out / folders.SCENARIO_FILE
    text = own.read_text()
    both: tuple[list[str | Path], ...] = (["--resume", out, changed], ["--resume", out])
    for words in both:
        code, told = here(capsys, "run", *words)
        assert code == 2, told
        assert "cannot go on" in told
        own.write_text(text.replace("500ms", "400ms"))
    assert (out / FILE_NAME).read_bytes() == log


@pytest.mark.thorough
def test_a_variant_that_is_over_is_kept_and_the_next_goes_on(scenario: Path, out: Path) -> None:
    scenario.write_text(SCENARIO.replace("200s", "120s") + "  matrix: {seed: [1, 2, 3]}\n")
    whole = ended(kemu("run", scenario, "--out", out.parent / "whole", "--json", "--no-checkpoints"))
    process = start("run", scenario, "--out", out, *OFTEN)
    while not (out / "variant-1" / FILE_NAME).exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    assert kill_after(process, out, 0.0) is not None
    waking.end(out)
    first = (out / "variant-0" / FILE_NAME).stat().st_mtime_ns
    assert kill_after(start("run", "--resume", out, *OFTEN), out, 0.0) is not None
    assert (out / "variant-0" / FILE_NAME).stat().st_mtime_ns == first
    assert ended(kemu("run", "--resume", out, "--json"))["digest"] == whole["digest"]


def test_a_run_goes_on_only_as_it_was_begun(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = here(capsys, "run", "--resume", out, "--set", "duration=1s")
    assert code == 2
    assert "leave out --set" in told
    code, told = here(capsys, "run", "--resume", out)
    assert code == 2
    assert "no such folder" in told


def test_a_live_run_is_left_alone_and_another_replaces_what_is_left(scenario: Path, out: Path) -> None:
    process = start(
        "run", scenario, "--out", out, "--set", "duration=1h", "--set", "workloads[0].arrivals.until=1h", *OFTEN
    )
    while waking.ask(out) is None:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGSTOP)  # it lives, and costs nothing
    both: tuple[list[str | Path], ...] = (["--resume", out], [scenario, "--out", out])
    for words in both:
        done = kemu("run", *words)
        assert done.returncode == 2
        assert f"in process {process.pid}" in done.stderr
    os.kill(process.pid, signal.SIGCONT)
    kill_after(process, out, 0.0)
    found = waking.ask(out)
    assert found is not None
    assert kemu("run", scenario, "--out", out, "--set", "duration=1s").returncode == 0
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _lives(found.pid):
        time.sleep(0.05)
    assert not _lives(found.pid), "nobody can wake it any more"


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
