"""Completion for shells, and man pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kemu.doors.cli import main
from kemu.doors.cli.commands import completion
from kemu.doors.cli.parsers import Parser

_ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
_shtab_kemu "$1" "${!#}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def parser() -> Parser:
    return main.parser()


@pytest.fixture(scope="module")
def made(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prefix")
    for path, text in completion.files(parser).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["kemu", "expl"], ["explore", "explain"]),
        (["kemu", "run", "races/two-schedulers-one-n"], ["races/two-schedulers-one-node"]),
        (["kemu", "run", "--runtime", "r"], ["ray", "real"]),
        (["kemu", "chaos", "crash", "--nod"], ["--node"]),
        (["kemu", "hunt", "pypro"], ["pyproject.toml"]),
        (["kemu", "report", "scen"], ["scenarios"]),
        (["kemu", "report", "pypro"], []),
    ],
)
def test_what_bash_completes(made: Path, words: list[str], answers: list[str]) -> None:
    script = made / completion.COMPLETIONS["bash"]
    done = subprocess.run(
        ["bash", "--norc", "-c", _ASK, "bash", str(script), *words],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert sorted(done.stdout.split()) == sorted(answers)


def test_other_shells_can_read_theirs(made: Path) -> None:
    for shell in ("zsh", "fish"):
        if shutil.which(shell):
            subprocess.run([shell, "-n", str(made / completion.COMPLETIONS[shell])], check=True)
        assert "races/two-schedulers-one-node" in (made / completion.COMPLETIONS[shell]).read_text()


def test_every_command_has_a_page(made: Path, parser: Parser) -> None:
    names = {each.name for each in (made / completion.PAGES).iterdir()}
    assert names == {"kemu.1", *(f"kemu-{name}.1" for name in parser.commands)}
    page = (made / completion.PAGES / "kemu-run.1").read_text()
    assert page.startswith('.TH KEMU-RUN 1 "" "kemu ')
    assert r"\-\-checkpoint\-every" in page
    assert r"\fBkemu run\fR" in (made / completion.PAGES / "kemu.1").read_text()


def test_the_command_prints_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["completion", "fish"]) == 0
    assert "complete -c kemu" in capsys.readouterr().out


def test_a_shell_that_there_is_no_script_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["completion", "fsh"]) == 2
    assert "must be bash or zsh or fish, not 'fsh' (did you mean fish?)" in capsys.readouterr().err
