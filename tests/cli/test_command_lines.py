"""Mistakes on the command line: the usage of the command they were made in, and the nearest right word."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.doors.cli import main, parsers


def said(capsys: pytest.CaptureFixture[str], arguments: str) -> tuple[int, str, str]:
    """Exit code, the first words of the usage, and the last line."""
    code = main.main(arguments.split())
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    return code, lines[0], lines[-1]


SCENARIO = "a scenario file, the name of a shipped one (kemu scenarios list), or - for standard input"
STORY = "kemu story RUN tells what happened"
POD = "kemu trace RUN POD shows what a pod went through"


@pytest.mark.parametrize(
    ("arguments", "usage", "text"),
    [
        ("run x --seeds 3", "kemu run", "no option --seeds (did you mean --seed?); kemu compare has it"),
        ("run --seeds=3 x", "kemu run", "no option --seeds (did you mean --seed?); kemu compare has it"),
        ("run x --runs 5", "kemu run", "no option --runs; kemu explore, kemu shrink and kemu calibrate have it"),
        (
            "replay x --set a=1",
            "kemu replay",
            (
                "no option --set; kemu demo, kemu run, kemu explore, kemu sweep, kemu compare, kemu explain, "
                "kemu nodes and kemu up have it"
            ),
        ),
        ("run x --nothing-like-it", "kemu run", "no option --nothing-like-it"),
        ("--jsno", "kemu", "no option --jsno"),
        ("run", "kemu run", f"scenario is missing: {SCENARIO}"),
        ("scenarios show", "kemu scenarios show", "scenario is missing: the name of a shipped scenario, or a file"),
        ("scenarios", "kemu scenarios", "ACTION is missing: one of list, show, validate, schema"),
        ("run x y", "kemu run", "'y' is one argument too many"),
        ("run x --seed", "kemu run", "--seed: a value is missing"),
        ("run x --seed abc", "kemu run", "--seed: must be a whole number, not 'abc'"),
        ("run x --speed fast", "kemu run", "--speed: must be a number greater than 0, not 'fast'"),
        (
            "run x --runtime simm",
            "kemu run",
            "--runtime: must be sim or wall or ray or real, not 'simm' (did you mean sim?)",
        ),
        ("explore x --jobs 0", "kemu explore", "--jobs: must be at least 1, not 0"),
        ("explor x", "kemu", "no command 'explor' (did you mean kemu explore?)"),
        ("validate x", "kemu", "no command 'validate' (did you mean kemu scenarios validate?)"),
        ("valdate x", "kemu", "no command 'valdate' (did you mean kemu scenarios validate?)"),
        ("scenarios vlidate x", "kemu scenarios", "no command 'vlidate' (did you mean kemu scenarios validate?)"),
        ("lint x", "kemu", "no command 'lint' (did you mean kemu scenarios validate?)"),
        ("help", "kemu", "no command 'help' (did you mean kemu --help?)"),
        ("race.yaml", "kemu", "no command 'race.yaml' (did you mean kemu run race.yaml?)"),
        ("get pods", "kemu", (f"no command 'get', which is kubectl's: after a run there is no cluster to ask; {STORY}, "
            f"{POD}")),
        ("events", "kemu", f"no command 'events', which is kubectl's: {STORY}"),
        ("logs web-1", "kemu", f"no command 'logs', which is kubectl's: simulated containers print nothing; {POD}"),
        ("apply -f x", "kemu", ("no command 'apply', which is kubectl's: put the objects into a scenario, "
            "spec.manifests: [{file: FILE}], and kemu run SCENARIO")),
        ("cordon n", "kemu", ("no command 'cordon', which is kubectl's: objects change by the scenario's events: "
            "{at: 5s, cordon: {node: NAME}}")),
    ],
)  # fmt: skip
def test_a_mistake_gets_the_usage_of_its_command_and_the_nearest_word(
    arguments: str, usage: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, first, last = said(capsys, arguments)
    assert (code, last) == (2, f"{usage}: {text}")
    assert first.startswith(f"usage: {usage} [-h]")


def test_an_unknown_command_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, last = said(capsys, "bogus")
    assert last.startswith(
        "kemu: no command 'bogus'; there are demo, run, explore, fuzz, hunt, shrink, sweep, import, compare, explain, "
    )


def test_no_command_of_kemu_is_said_to_be_kubectls() -> None:
    parser = main.parser()
    assert not set(parser.commands) & set(parsers.KUBECTL)
    assert not set(parser.commands) & set(parsers.OTHER_WORDS)


@pytest.mark.parametrize("arguments", ["run x --json --seeds 3", "run --json", "validate --json x"])
def test_with_json_a_mistake_is_one_object(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.main(arguments.split())
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert captured.err == ""
    assert (code, found["exit"], found["error"], found["problems"]) == (2, 2, "usage", [])
    assert found["message"].startswith("kemu")


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "kemu", "explor", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: kemu ")
    assert "did you mean kemu explore?" in done.stderr


def test_help_imports_little() -> None:
    """What takes long is imported by the command that needs it."""
    loaded = modules("--help")
    slow = {"asyncio", "numpy", "grpc", "yaml", "difflib", "ssl", "kemu.lab.checks.history", "kemu.emulated.settings"}
    assert "kemu.doors.cli.main" in loaded
    assert loaded & slow == set()
    assert len(loaded) < 235, "kemu --help takes as long as its modules"


def test_a_run_imports_what_it_needs(tmp_path: Path) -> None:
    """What other commands and runtimes need, and components that a scenario has not, cost its start nothing."""
    loaded = modules("run", "races/late-delete", "--out", str(tmp_path / "run"))
    needless = {"ray", "pandas", "jinja2", "opentelemetry", "aiohttp", "matplotlib", "jsonschema"}
    components = {"autoscaler.autoscaler", "autoscaler.horizontal.autoscaler", "gateway", "bridge"}
    assert "kemu.emulated.scheduler.loop" in loaded
    assert loaded & (needless | {f"kemu.emulated.{name}" for name in components}) == set()
    assert len(loaded) < 1370, "every hundred modules are 40 ms of each kemu run"


def modules(*arguments: str) -> set[str]:
    """What is loaded at the end of a command."""
    code = f"import sys\ntry:\n    from kemu.doors.cli.main import main\n    main({list(arguments)})\n"
    script = f"{code}finally:\n    print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return set(done.stdout.splitlines()[-1].split())
