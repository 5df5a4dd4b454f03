"""A controller with bugs and without, as a program of its own: plans find the bugs, and find nothing where none is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.doors.cli.main import main

ROOT = Path(__file__).parents[2]
CONFIG_MAP = {"kind": "ConfigMap", "name": "a"}
CONFLICT = {"kind": "conflict", "object": CONFIG_MAP, "nth": 1}
EXPIRED = {"kind": "expire", "object": CONFIG_MAP, "nth": 1}
CRASH = {"kind": "crashAfterWrite", "object": CONFIG_MAP, "nth": 1}
FOUND = "step 2 waits in vain: until configmap/a .data.pod!="


Hunt = Callable[..., tuple[int, str]]


@pytest.fixture
def hunt(capsys: pytest.CaptureFixture[str]) -> Hunt:
    """Exit code, and what is told."""

    def run(*words: str | Path) -> tuple[int, str]:
        code = main(["hunt", *map(str, words), "--jobs", "1"])
        told = capsys.readouterr()
        return code, told.out or told.err

    return run


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "plan", "told"),
    [("careless", CONFLICT, FOUND), ("careful", CONFLICT, ""), ("careful", CRASH, "")],
    ids=["careless-conflict", "careful-conflict", "careful-crash"],
)
def test_plans(tmp_path: Path, hunt: Hunt, who: str, plan: dict[str, Any], told: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump({"perturb": plan}))
    code, said = hunt(ROOT / f"hunts/workers/{who}.yaml", "--plan", file, "--out", tmp_path / "out", "--json")
    found = json.loads(said)
    assert (code, found["missed"]) == (1 if told else 0, 0), found
    assert found["symptoms"][:1] == ([told] if told else []), found


def test_a_controller_that_cannot_start(tmp_path: Path, hunt: Hunt) -> None:
    text = (ROOT / "hunts/workers/careful.yaml").read_text()
    for program, told in (("no-such-program", "No such file"), ("/bin/false", "ended by itself, with exit code 1")):
        spec = yaml.safe_load(text)
        spec["spec"]["controllers"][0]["command"] = [program]
        file = tmp_path / "hunt.yaml"
        file.write_text(yaml.safe_dump(spec))
        code, said = hunt(file, "--out", tmp_path / "out")
        assert code == 2
        assert told in said


@pytest.mark.parametrize(
    ("who", "pods", "code", "told"),
    [
        ("careless", 1, 1, "property pods does not hold"),
        ("careful", 2, 3, "without any perturbation: property pods does not hold"),
    ],
)
def test_properties(tmp_path: Path, hunt: Hunt, who: str, pods: int, code: int, told: str) -> None:
    """They are judged in each trial, and have to hold in the reference."""
    spec = yaml.safe_load((ROOT / f"hunts/workers/{who}.yaml").read_text().replace("{here}/../..", str(ROOT)))
    spec["spec"]["properties"] = [{"id": "pods", "counter": "pods_created", "equals": pods}]
    file, plan = tmp_path / "hunt.yaml", tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(spec))
    plan.write_text(yaml.safe_dump({"perturb": EXPIRED}))
    ended, said = hunt(file, "--plan", plan, "--out", tmp_path / "out")
    assert ended == code, said
    assert told in said


EXITING = """
import os, sys
import kubernetes

kubernetes.config.load_kube_config(sys.argv[1])
api = kubernetes.client.CoreV1Api()
for event in kubernetes.watch.Watch().stream(api.list_namespaced_config_map, "default", label_selector="work=yes"):
    found = event["object"]
    if event["type"] != "DELETED" and not (found.data or {}).get("pod"):
        found.data = {**(found.data or {}), "pod": "none"}
        try:
            api.replace_namespaced_config_map(found.metadata.name, "default", found)
        except kubernetes.client.ApiException:
            print("gives up", flush=True)
            os._exit(7)
"""


def test_who_ends_is_started_again(tmp_path: Path, hunt: Hunt) -> None:
    """As by a kubelet: what comes right then is no bug."""
    spec = yaml.safe_load((ROOT / "hunts/workers/careful.yaml").read_text())
    program, file, plan = tmp_path / "exiting.py", tmp_path / "hunt.yaml", tmp_path / "plan.yaml"
    program.write_text(EXITING)
    spec["spec"]["controllers"][0]["command"] = ["{python}", str(program), "{kubeconfig}"]
    file.write_text(yaml.safe_dump(spec))
    plan.write_text(yaml.safe_dump({"perturb": CONFLICT}))
    code, said = hunt(file, "--plan", plan, "--out", tmp_path / "out", "--json")
    found = json.loads(said)
    assert (code, found["symptoms"]) == (0, []), found
    told = "controller workers has to be started again: it ended by itself, with exit code 7"
    assert found["costs"] == [told]
