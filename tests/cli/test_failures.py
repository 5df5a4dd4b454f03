"""What ends a command without a result: texts and exit codes of folders, disks, pipes, and the object of --json."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.doors.cli import failures, pipes
from kemu.doors.cli.main import main
from kemu.runtime.words import harmless

RACE = "races/two-schedulers-one-node"


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_taken_name_names_the_path_and_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    code, _, err = output(capsys, "run", RACE, "--out", str(taken))
    assert (code, err) == (2, f"kemu: {taken}: File exists; choose another folder with --out\n")


def test_a_folder_where_nobody_may_write_names_the_path_and_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    code, _, err = output(capsys, "run", RACE, "--out", str(tmp_path / "run"))
    assert (code, err) == (2, f"kemu: {tmp_path / 'run'}: Permission denied; choose another folder with --out\n")


def kemu(*arguments: str, folder: Path, largest_file: int = 0, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    def limit() -> None:
        if largest_file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    command = [sys.executable, "-m", "kemu.doors.cli.main", *arguments]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        command, cwd=folder, env=env, text=True, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=limit
    )


def test_a_log_that_cannot_be_written_on_names_the_path_and_out(tmp_path: Path) -> None:
    process = kemu("run", RACE, "--out", "run", folder=tmp_path, largest_file=4096)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (2, "kemu: run/run.kemu: File too large; choose another folder with --out\n")


def test_a_full_disk_says_what_helps(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(options: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("kemu.doors.cli.commands.runs.run.command", full)
    code, _, err = output(capsys, "run", RACE, "--out", "here")
    text = "kemu: here: No space left on device; free some space, or choose another folder with --out\n"
    assert (code, err) == (2, text)
    code, out, err = output(capsys, "run", RACE, "--out", "here", "--json")
    assert (code, json.loads(out)["error"], err) == (2, "system", "")


def test_wrong_input_with_json_is_one_object_with_located_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "wrong.yaml"
    scenario.write_text("apiVersion: kemu.dev/v1\nkind: Scenario\nspec: {nodes: [], sed: 1}\n")
    code, out, err = output(capsys, "run", str(scenario), "--json")
    assert (code, err) == (2, "")
    assert json.loads(out) == {
        "error": "input",
        "message": "1 mistake",
        "exit": 2,
        "problems": [
            {
                "file": str(scenario),
                "line": 3,
                "column": 19,
                "path": "spec.sed",
                "message": "is not a key that may stand here",
                "suggestion": "did you mean seed?",
            }
        ],
    }


FAILS = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: fails}
spec: {nodes: [{name: n}], expect: [{counter: preemptions, equals: 7}]}
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("scenarios schema", 0),
        ("scenarios list", 0),
        ("--help", 0),
        ("run fails.yaml --out run", 1),
        ("run fails.yaml --out run --json", 1),
        ("run nothing", 2),
    ],
)
def test_a_reader_that_stops_early_changes_neither_exit_code_nor_output(
    arguments: str, code: int, tmp_path: Path
) -> None:
    """As with ``| head -0``: nobody reads from the beginning."""
    (tmp_path / "fails.yaml").write_text(FAILS)
    read, write = os.pipe()
    os.close(read)
    process = kemu(*arguments.split(), folder=tmp_path, stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_many_mistakes_of_one_sort_take_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "wrong.yaml"
    nodes = "".join(f"  - {{name: n{number}, labls: {{}}}}\n" for number in range(17))
    scenario.write_text(f"apiVersion: kemu.dev/v1\nkind: Scenario\nspec:\n  nodes:\n{nodes}")
    code, _, err = output(capsys, "run", str(scenario))
    text = "is not a key that may stand here (did you mean labels?)"
    places = ", ".join(str(line) for line in range(8, 18))
    assert (code, err.splitlines()) == (
        2,
        [
            *(f"{scenario}:{line}:16: spec.nodes[{line - 5}].labls: {text}" for line in (5, 6, 7)),
            f"{scenario}:8:16: spec.nodes[].labls: the same 14 more times: lines {places}, …",
            "17 mistakes",
        ],
    )
    _, out, _ = output(capsys, "run", str(scenario), "--json")
    assert len(json.loads(out)["problems"]) == 17


def test_a_folder_or_file_in_place_of_the_other_is_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fails.yaml").write_text(FAILS)
    main(["run", "fails.yaml", "--out", "done"])
    capsys.readouterr()
    for command, text in (
        ("run done", "done: is the folder of a run: kemu replay done runs it again, kemu story done tells it"),
        ("run .", ".: is a folder; there are fails.yaml"),
        ("replay fails.yaml", "fails.yaml: a file, not a run folder; kemu run fails.yaml makes one"),
        (
            "run zzzzz.yaml",  # an ending in common is nothing
            "zzzzz.yaml: no such file, and no shipped scenario of that name; kemu scenarios list shows what there is",
        ),
        (
            "run fials.yaml",
            "fials.yaml: no such file, and no shipped scenario of that name; did you mean fails.yaml?",
        ),
        ("trace fails.yaml a", "fails.yaml: a file, not a run folder; kemu run fails.yaml makes one"),
        *(
            (
                f"{command} fials.yaml",
                "fials.yaml: no such file, and no shipped scenario of that name; did you mean fails.yaml?",
            )
            for command in ("shrink", "fuzz")
        ),
        ("step foo", "TIME: 'foo' is not a duration; write 250ms, 90s or 1h30m"),
        ("step --until pod/a=runing", "'pod/a=runing': write it as KIND/NAME CONDITION, such as 'pod/web running'"),
    ):
        assert main(command.split()) == 2
        assert capsys.readouterr().err == f"kemu: {text}\n"


@pytest.mark.parametrize(
    "text", ["kind: Pod\n", "a: 1\n---\nb: 2\n", "apiVersion: kemu.dev/v1\nkind: Scenario\nspec: {x: 1}\n"]
)
def test_a_file_that_is_no_scenario_is_not_fuzzed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "it.yaml"
    file.write_text(text)
    assert main(["fuzz", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_lines_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    failure = failures.Failure("input", "a/path/that/is/longer/than/forty/columns/x.yaml: is not what it should be", 2)
    for stream, told in (
        (
            _Terminal(),
            "kemu:\n  a/path/that/is/longer/than/forty/columns/x.yaml:\n  is not what it should be\n",
        ),
        (io.StringIO(), "kemu: a/path/that/is/longer/than/forty/columns/x.yaml: is not what it should be\n"),
    ):
        monkeypatch.setattr("sys.stderr", stream)
        assert failures.tell(failure, as_json=False) == 2
        assert stream.getvalue() == told


def test_on_a_terminal_files_below_the_folder_have_short_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for stream, told in ((_Terminal(), "kemu: mine.py:6"), (io.StringIO(), f"kemu: {tmp_path}/mine.py:6")):
        monkeypatch.setattr("sys.stderr", stream)
        failures.tell(failures.Failure("input", f"{tmp_path}/mine.py:6", 2), as_json=False)
        assert stream.getvalue() == f"{told}\n"


STEERING = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: evil, description: "one \\e]0;a title\\a two \\e[2J\\rthree \\x9b31m"}
spec:
  duration: 5s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  expect: [{id: "x\\e[1Ay", counter: pods_created, equals: 0}]
"""


def test_names_of_a_scenario_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "evil.yaml"
    file.write_text(STEERING)
    code, out, err = output(capsys, "run", str(file), "--out", str(tmp_path / "run"))
    assert code == 0
    assert r"one \u001b]0;a title" in out
    assert r"two \u001b[2J" in out
    assert r"x\u001b[1Ay" in out
    assert r"\u009b31m" in out
    assert not {*out, *err} & {*"\x1b\x07\r\x9b"}
    file.write_text(STEERING.replace("duration", '"\\e[2Jx"'))
    code, _, err = output(capsys, "run", str(file))
    assert code == 2
    assert r"\x1b[2Jx" in err
    assert "\x1b" not in err


def test_colours_pass_and_what_moves_the_cursor_only_where_kemu_draws() -> None:
    assert harmless("a\tb\x1b[1;31mc\x1b[0m\r\n") == "a\tb\x1b[1;31mc\x1b[0m\r\n"
    drawn = io.StringIO()
    stream = pipes.moving(drawn)
    stream.write("\r\x1b[2K\x1b[1A\x1b[?25l\x1b]0;a title\x07")
    assert drawn.getvalue() == "\r\x1b[2K\x1b[1A\x1b[?25l\\u001b]0;a title\\u0007"
