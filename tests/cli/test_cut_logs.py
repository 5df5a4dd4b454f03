"""Run logs that end within an event, and disks that are full: what is whole is read, and what is lost is told."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.errors import LogCutWarning
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.replaying import recoveries
from kemu.runtime.runlog import blocks, folders
from kemu.runtime.runlog.frames import FILE_NAME

RACE = "races/two-schedulers-one-node"
PROGRAM = [sys.executable, "-c", "import sys; from kemu.doors.cli.main import main; sys.exit(main())"]


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run whose log lacks its last five bytes, without a verdict."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 12)  # as many blocks as a long run has
    folder = tmp_path / "cut"
    runner.run_all(loader.load(catalog.find(RACE)), runner.Options(out=folder, runtime="sim"))
    log = folder / FILE_NAME
    log.write_bytes(log.read_bytes()[:-5])
    (folder / folders.VERDICT_FILE).unlink()
    return folder


def kemu(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    "words", [["story"], ["replay"], ["report"], ["trace", "--perfetto", os.devnull]], ids=lambda words: words[0]
)
def test_a_command_reads_what_is_whole_and_says_once_what_is_lost(words: list[str], cut: Path) -> None:
    done = kemu(words[0], str(cut), *words[1:])
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the log is cut off: its last ") == 1
    assert f"{cut / FILE_NAME}: offset " in done.stderr


def test_recover_judges_what_is_there_as_unknown_and_says_why(cut: Path) -> None:
    done = kemu("recover", str(cut))
    assert done.returncode == 3, done.stderr
    assert "missing: run.kemu is cut off after " in done.stdout
    assert "what happened later is lost" in done.stdout.splitlines()[-1], "the headline says what could not be judged"
    verdict = json.loads((cut / folders.VERDICT_FILE).read_text())
    assert verdict["verdict"] == "unknown"
    assert verdict["incomplete"]


def test_the_digest_of_a_recovered_log_covers_what_is_whole(cut: Path) -> None:
    with pytest.warns(LogCutWarning):
        recovered = recoveries.recover(cut)
    again = cut.parent / "again"
    again.mkdir()
    (again / folders.SCENARIO_FILE).write_bytes((cut / folders.SCENARIO_FILE).read_bytes())
    log = (cut / FILE_NAME).read_bytes()
    with pytest.warns(LogCutWarning, match="its last ([0-9]+) bytes") as told:
        recoveries._end_of(cut / FILE_NAME)
    lost = int(str(told[0].message).partition("its last ")[2].split()[0])
    (again / FILE_NAME).write_bytes(log[:-lost])
    assert recoveries.recover(again).verdict["digest"] == recovered.verdict["digest"]


def test_a_verdict_is_left_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where the disk is full, nothing stands in the way of ``kemu recover``."""
    program = (
        "import resource, signal, sys; from pathlib import Path; from kemu.runtime.runlog import folders\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: folders.write_verdict(Path(sys.argv[1]), {'text': 'x' * 1000})\n"
        "except OSError as error: print(error.filename)"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / folders.VERDICT_FILE)
    assert not list(tmp_path.iterdir())


def test_a_run_whose_log_no_longer_fits_ends_in_a_sentence_and_can_be_recovered(tmp_path: Path) -> None:
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    folder = tmp_path / "run"
    done = kemu("run", str(catalog.find("chaos/store-crash")), "--out", str(folder), preexec_fn=small)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"{folder / FILE_NAME}: File too large; choose another folder with --out" in done.stderr
    done = kemu("recover", str(folder))
    assert done.returncode == 3, done.stderr
    assert "unknown: " in done.stdout.splitlines()[-1]
