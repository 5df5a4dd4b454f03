"""A night runs its steps, goes on where it was interrupted, and says what failed; its page is made of the records."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nights import __main__ as nightly
from tests.nights import records, steps

STEPS = """
- {name: good, title: seed $seed, run: 'echo "seed=$seed part=$part"; echo ====', parts: 2}
- {name: bad, title: fails in a pipe, run: 'false | cat; echo unseen'}
- {name: figured, title: has a figure, run: 'echo 7 of 8 pods; echo "[100%]"', figure: '\\d of \\d'}
- {name: blind, title: finds out that it lacks something, run: 'echo no database; exit 77'}
- {name: lacking, title: needs a program, needs: operators/none/operator, run: exit 1}
"""


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "steps.yaml").write_text(STEPS)
    monkeypatch.setattr(steps, "FILE", tmp_path / "steps.yaml")
    monkeypatch.setattr(records, "FOLDER", tmp_path / "nights")
    monkeypatch.setattr(records, "PAGE", tmp_path / "nights.md")
    return tmp_path / "night"


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["nightly", *arguments])
    return nightly.main()


def outcomes(night: Path) -> dict[str, tuple[str, str]]:
    return {
        one["step"]: (one["outcome"], one["figure"]) for one in json.loads((night / "night.json").read_text())["ended"]
    }


def test_each_step_is_recorded_and_a_failure_keeps_none_from_running(
    night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(monkeypatch, "--night", str(night), "--seed", "3") == 1
    assert outcomes(night) == {
        "good-1": ("passed", "seed=3 part=1"),
        "good-2": ("passed", "seed=3 part=2"),
        "bad": ("failed", ""),
        "figured": ("passed", "7 of 8"),
        "blind": ("skipped", "no database"),
        "lacking": ("skipped", "needs operators/none/operator"),
    }


def test_a_night_goes_on_with_its_seed_and_without_what_has_ended(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, "--night", str(night), "--seed", "4", "good") == 0
    assert list(outcomes(night)) == ["good-1", "good-2"]
    shutil.rmtree(night / "logs")  # docs/nights keeps none
    assert call(monkeypatch, "--night", str(night)) == 1
    assert not (night / "logs" / "good-1.log").exists()
    assert outcomes(night)["good-1"] == ("passed", "seed=4 part=1")
    assert len(outcomes(night)) == 6
    assert call(monkeypatch, "--night", str(night), "bad") == 1, "a step that is named runs again"
    assert call(monkeypatch, "--night", str(night)) == 0, "nothing is left"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_ends_a_night_ends_all_that_its_step_has_started(night: Path, number: int) -> None:
    """A process that the step's shell waits for, and one that it does not wait for and that ignores SIGTERM."""
    steps.FILE.write_text(
        "- {name: long, title: long, run: \"trap '' TERM; sleep 600 & trap - TERM; echo $!; sleep 600\"}"
    )
    code = f"""
import runpy, sys
from pathlib import Path
from tests.nights import steps
steps.FILE, steps.GRACE_S = Path({str(steps.FILE)!r}), 1
sys.argv = ["nightly", "--night", {str(night)!r}]
runpy.run_module("tests.nights", run_name="__main__")
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=steps.ROOT) as process:
        assert process.stdout is not None
        stubborn = next(int(line) for line in process.stdout if line.strip().isdigit())
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 128 + number
    left = Path(f"/proc/{stubborn}/stat")
    assert not left.exists() or left.read_text().rpartition(")")[2].split()[0] == "Z"


def test_unknown_steps_are_named(
    night: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "goood") == 2
    assert "no step is called goood" in capsys.readouterr().err


def test_the_page_says_which_failure_is_open(night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call(monkeypatch, "--night", str(night), "--seed", "3")
    assert call(monkeypatch, "--record", str(night)) == 0
    (file,) = records.FOLDER.glob("*.json")
    assert "| bad | failed: **open** |" in records.PAGE.read_text()
    recorded = records.Night.read(file)
    recorded.resolve("bad", "mended")
    recorded.write(file)
    assert call(monkeypatch, "--page", "check") == 1
    assert call(monkeypatch, "--page", "write") == 0
    assert "| bad | failed: mended |" in records.PAGE.read_text()
    assert "3 steps passed, 1 failed, 2 were skipped" in records.PAGE.read_text()


def test_a_failure_is_kept_when_its_step_runs_again_and_is_resolved(
    night: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(monkeypatch, "--night", str(night), "--seed", "3", "bad", "figured")
    later(night)
    steps.FILE.write_text(STEPS.replace("false | cat", "true | cat"))
    assert call(monkeypatch, "--night", str(night), "bad") == 0
    assert call(monkeypatch, "--night", str(night), "--became", "bad", "a limit was too short") == 0
    with pytest.raises(KeyError):
        call(monkeypatch, "--night", str(night), "--became", "figured", "it passed")
    call(monkeypatch, "--record", str(night))
    rows = [line for line in records.PAGE.read_text().splitlines() if line.startswith("| bad")]
    assert [row.split(" | ")[1] for row in rows] == ["failed: a limit was too short", "passed"]
    assert "2 steps passed, 0 failed, 0 were skipped; 1 failures before" in records.PAGE.read_text()


def test_two_folders_of_one_night_are_merged(night: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    call(monkeypatch, "--night", str(night), "--seed", "3", "bad", "good")
    later(night)
    other = shutil.copytree(night, tmp_path / "other")
    steps.FILE.write_text(STEPS.replace("false | cat", "true | cat"))
    assert call(monkeypatch, "--night", str(other), "bad") == 0
    call(monkeypatch, "--night", str(other), "--became", "bad", "mended")
    assert call(monkeypatch, "--night", str(night), "figured") == 0
    pages = set()
    for folders in ((night, other), (other, night), (night, other, night)):
        for file in records.FOLDER.glob("*.json"):
            file.unlink()
        for folder in folders:
            call(monkeypatch, "--record", str(folder))
        pages.add(records.PAGE.read_text())
    (page,) = pages
    assert "| bad | failed: mended |" in page
    assert "| bad | passed |" in page
    assert "| figured | passed |" in page


def later(night: Path) -> None:
    """What has ended began a minute ago: beginnings are kept to the second."""
    kept = records.Night.read(night / "night.json")
    for one in kept.ended.values():
        one.began = one.began.replace(one.began[:4], f"{int(one.began[:4]) - 1}")
    kept.write(night / "night.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: one, title: t, run: x, part: 2}", "one: part is unknown or missing"),
        ("- {name: one, title: t}", "one: run is unknown or missing"),
        ("- {name: one, title: t, run: x}\n- {name: one, title: u, run: x}", "one is there twice"),
    ],
)
def test_mistakes_in_steps_are_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        steps.read(text)


def test_the_shipped_steps_and_page_are_sound() -> None:
    assert len(steps.read(steps.FILE.read_text())) > 40
    nights = [records.Night.read(file) for file in records.FOLDER.glob("*.json")]
    assert records.page(nights) == records.PAGE.read_text(), "scripts/nightly --page write"
