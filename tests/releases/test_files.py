"""Files for other tools agree with the project: action, hooks, container, compose, KubeRay."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import kemu

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = dict(line.split("==") for line in (ROOT / "scripts" / "constraints.txt").read_text().splitlines())


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def kemu_that_is_here(folder: Path) -> dict[str, str]:
    """An environment in which ``kemu`` is this one."""
    program = folder / "bin" / "kemu"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kemu.doors.cli.main "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def test_the_action_runs_all_and_fails_if_one_does(tmp_path: Path) -> None:
    fails = tmp_path / "fails.yaml"
    fails.write_text(
        "{apiVersion: kemu.dev/v1, kind: Scenario, metadata: {name: fails}, spec: {duration: 1s, "
        "nodes: [{name: node-1, allocatable: {cpu: 1, pods: 10}}], schedulers: [{name: default-scheduler}], "
        "expect: [{counter: pods_created, equals: 1}]}}"
    )
    more = {"SCENARIOS": f"{fails}\n\nraces/two-schedulers-one-node\n", "OUT": "out", "GITHUB_STEP_SUMMARY": "summary"}
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "run-all")],
        env={**kemu_that_is_here(tmp_path), **more}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "summary").read_text().splitlines() == [
        f"* {fails}: exit code 1", "* races/two-schedulers-one-node: holds",
    ]  # fmt: skip
    assert (tmp_path / "out" / "races-two-schedulers-one-node" / "report.html").is_file()


def test_the_action_without_anything_to_run(tmp_path: Path) -> None:
    done = subprocess.run(["bash", str(ROOT / "scripts" / "run-all")], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2


def test_inputs_of_the_action_are_used() -> None:
    action = loaded("action.yml")
    text = (ROOT / "action.yml").read_text()
    assert [name for name in action["inputs"] if f"inputs.{name}" not in text] == []
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    script = (ROOT / "scripts" / "run-all").read_text()
    (step,) = [each for each in action["runs"]["steps"] if "run-all" in each.get("run", "")]
    assert [name for name in step["env"] if f"{{{name}" not in script and f"${name}" not in script] == []


def test_hooks_run_commands_that_there_are() -> None:
    hooks = {each["id"]: each for each in loaded(".pre-commit-hooks.yaml")}
    assert set(hooks) == {"kemu-validate", "kemu-run", "kemu-hunt"}
    assert sorted(hooks["kemu-hunt"]["additional_dependencies"]) == sorted(PROJECT["optional-dependencies"]["up"])


def test_the_hook_that_runs_scenarios(tmp_path: Path) -> None:
    """As pre-commit calls it, with files behind the entry."""
    import shlex

    (entry,) = [each["entry"] for each in loaded(".pre-commit-hooks.yaml") if each["id"] == "kemu-run"]
    (tmp_path / "wrong.yaml").write_text(
        "{apiVersion: kemu.dev/v1, kind: Scenario, metadata: {name: a}, spec: {nods: []}}"
    )
    good = str(ROOT / "scenarios" / "races" / "two-schedulers-one-node.yaml")
    environment = kemu_that_is_here(tmp_path)
    for files, code in (([good], 0), (["wrong.yaml", good], 1)):
        done = subprocess.run(
            [*shlex.split(entry), *files],
            env=environment,
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
    assert "nods" in done.stdout


def test_the_image_has_what_the_wheel_is_made_of() -> None:
    taken = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"kemu", "experiments", "examples", "scenarios", "pyproject.toml", "README.md", "LICENSE"} <= taken
    assert all((ROOT / each).exists() for each in taken)
    extras = re.search(r"ARG EXTRAS=(\S+)", (ROOT / "deploy" / "Containerfile").read_text())
    assert extras is not None
    assert set(extras[1].split(",")) == set(PROJECT["optional-dependencies"]) - {"dev", "release"}


def test_compose_publishes_on_loopback_and_mounts_what_there_is() -> None:
    services = loaded("deploy/compose.yaml")["services"]
    ports = [port for each in services.values() for port in each.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    mounted = [
        each.split(":")[0] for one in services.values() for each in one.get("volumes", ()) if each.startswith(".")
    ]
    assert mounted
    assert all((ROOT / "deploy" / each).exists() for each in mounted)
    from kemu.doors.cli import main

    options = main.parser().parse_args(services["kemu"]["command"])
    assert options.insecure_http


def test_versions_agree() -> None:
    for name in ("deploy/compose.yaml", "deploy/Containerfile", "deploy/kuberay.yaml"):
        found = set(re.findall(r"\bkemu:(\d[\w.]*)", (ROOT / name).read_text()))
        assert found == {kemu.__version__}, name
    cluster = next(yaml.safe_load_all((ROOT / "deploy" / "kuberay.yaml").read_text()))
    assert cluster["spec"]["rayVersion"] == CONSTRAINTS["ray"]


@pytest.mark.parametrize("group", ["head", "workers"])
def test_pods_of_kuberay_offer_the_resources_of_cells(group: str) -> None:
    """The same as the launcher's file."""
    spec = next(yaml.safe_load_all((ROOT / "deploy" / "kuberay.yaml").read_text()))["spec"]
    one = spec["headGroupSpec"] if group == "head" else spec["workerGroupSpecs"][0]
    offered = yaml.safe_load(yaml.safe_load(one["rayStartParams"]["resources"]))
    launcher = loaded("deploy/ray-cluster.yaml")
    commands = launcher["head_start_ray_commands" if group == "head" else "worker_start_ray_commands"]
    (stated,) = [found[1] for each in commands if (found := re.search(r"--resources='([^']*)'", each))]
    assert offered == yaml.safe_load(stated)
