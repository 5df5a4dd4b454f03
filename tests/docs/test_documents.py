"""The documents name everything that there is, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kemu.lab.checks import registry
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
ACTORS = (
    "store|api|client|watch|sched|rescheduler|kubelet|node|taint|podgc|controller|autoscaler|cloud|user|chaos|machine"
    "|run|actor|net|log"
)
KIND_OF_EVENT = re.compile(rf"({ACTORS})\.[a-z_]+")
QUOTED = re.compile(rf"[\"']{KIND_OF_EVENT.pattern}[\"']")
"""In the source: to parse all of it takes seconds."""
NO_EVENTS = {"chaos.yaml", "store.etcd"}
"""Written like the kind of an event: a file, and a key of a scenario."""


def document(name: str) -> str:
    return (ROOT / name).read_text()


def documented_events() -> set[str]:
    rows = re.findall(r"^\| (`[a-z]+\.[^|]*) \|", document("docs/runs.md"), re.MULTILINE)
    return {kind for row in rows for kind in re.findall(r"`([a-z_.]+)`", row)}


def test_every_check_is_defined() -> None:
    text = document("docs/checks.md")
    by_hand = re.sub(r"<!-- made by .*?<!-- end -->", "", text, flags=re.DOTALL)
    defined = re.findall(r"^\| `([a-z-]+)` \|", by_hand, re.MULTILINE)
    assert sorted(defined) == sorted(registry.IDS)


def test_the_readme_counts_right() -> None:
    text = document("README.md")
    assert f"{len(KINDS)} [faults]" in text
    assert re.search(rf"\b{len(registry.ALL)}\s\[checks\]", text)


def test_every_fault_has_a_scenario() -> None:
    shipped = [loader.load(path) for folder in ("chaos", "elections") for path in (SCENARIOS / folder).glob("*.yaml")]
    every = [*shipped, *(variant for one in shipped for _, variant in loader.variants(one))]
    used = {fault.what for scenario in every for fault in scenario.chaos}
    # Those of clients need clients: tests/up/chaos has them.
    assert sorted(used) == sorted(set(KINDS) - set(CLIENT_FAULTS))


def test_every_event_that_the_code_names_is_documented() -> None:
    named = {
        node.value
        for path in (ROOT / "kemu").rglob("*.py")
        if QUOTED.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and KIND_OF_EVENT.fullmatch(node.value)
    }
    assert "store.txn" in named
    assert named - documented_events() - NO_EVENTS == set()


@pytest.mark.parametrize("name", ["chaos/torn-write", "chaos/overload", "races/recreated-pod", "seeds/pod-overhead"])
def test_every_event_of_a_run_is_documented(name: str, tmp_path: Path) -> None:
    """Also those whose kinds the code puts together."""
    result = runner.run(loader.load(SCENARIOS / f"{name}.yaml"), runner.Options(out=tmp_path))
    assert set(result.history.kinds) <= documented_events()
