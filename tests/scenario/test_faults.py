"""The keys of faults, the faults made of them, and what a run says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.errors import KemuError, Problem
from kemu.faults.kinds import KINDS, Kind
from kemu.scenario.format import documents, fault_keys, shapes
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner
from tests.scenario.texts import load, problems

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"

RIGHT = """
pause: {actor: kubelet/node-1}
delay: {from: apiserver/*, to: scheduler/*, by: {uniform: {min: 100ms, max: 2s}}}
bandwidth: {from: store, to: [apiserver/0, apiserver/1], bytesPerSecond: 64Ki, all: true}
drop: {from: kubelet/*, to: apiserver/*, probability: 20%}
duplicate: {from: scheduler/*, to: apiserver/*, probability: 0.2}
clockSkew: {actor: controller/node-lifecycle, by: -30s, drift: 0.01}
diskFull: {actor: store}
slowDisk: {actor: store, fsync: 2s}
tornWrite: {actor: store}
staleReads: {apiServer: apiserver/1, by: 20s}
cutWatches: {of: scheduler/*, compacted: true}
reset: {between: [kubelet/*, apiserver/*], share: 50%}
halfOpen: {between: [kubelet/*, apiserver/*]}
crash: {actor: store, restart: false}
partition: {between: [store, [apiserver/0, scheduler/*]], oneWay: true}
"""


def check(kind: Kind, value: Any) -> tuple[Any, list[Problem]]:
    text = yaml.safe_dump({kind.name: value})
    found: list[Problem] = []
    report = shapes.Report(documents.parse(text, "a.yaml")[0], found)
    return fault_keys.record(kind).check(value, (kind.name,), report), found


def test_every_kind_takes_its_keys() -> None:
    right = yaml.safe_load(RIGHT)
    assert sorted(right) == sorted(KINDS)
    for name, value in right.items():
        checked, found = check(KINDS[name], value)
        assert found == [], name
        assert list(checked) == list(value)
    assert check(KINDS["clockSkew"], right["clockSkew"])[0]["by"] == -30.0
    assert check(KINDS["bandwidth"], right["bandwidth"])[0]["bytesPerSecond"] == 65536.0


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("delay", {"from": "store", "to": "apiserver/0"}, "by is missing"),
        ("delay", {"from": "store", "to": "apiserver/0", "by": 3}, "has no unit"),
        ("delay", {"from": "nobody", "to": "apiserver/0", "by": "3s"}, "is not an actor"),
        ("drop", {"from": "store", "to": "apiserver/0", "probability": 1.5}, "more than"),
        ("drop", {"to": "apiserver/0", "probability": 0.5}, "from is missing"),
        ("bandwidth", {"from": "store", "to": "apiserver/0", "bytesPerSecond": 0}, "must be more than 0"),
        ("clockSkew", {"actor": "store", "by": "--3s"}, "not"),
        ("staleReads", {"apiServer": "store", "by": "3s"}, "is not an API server"),
        ("reset", {"between": ["store"]}, "at least 2 items"),
        ("cutWatches", {"off": "store"}, "of is missing"),
        ("crash", {"actor": "store", "node": "node-1"}, "second victim"),
    ],
)
def test_mistakes_in_the_keys_of_faults(name: str, value: Any, what: str) -> None:
    _, found = check(KINDS[name], value)
    assert any(what in f"{problem.message} {problem.suggestion}" for problem in found), found


def test_what_is_over_in_an_instant_takes_no_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = next(kind for kind in KINDS.values() if not kind.lasts)
    if not instant.built:
        pytest.skip(f"{instant.name} is not built")
    value = yaml.safe_load(RIGHT)[instant.name]
    (problem,) = problems(f"chaos: [{{at: 1s, for: 1s, {instant.name}: {value}}}]")
    assert "over in an instant" in problem.message


def test_defaults_are_filled_in() -> None:
    (fault,) = load("chaos: [{at: 1s, partition: {between: [store, apiserver/0]}}]").chaos
    assert fault.parameters == {"oneWay": False}


def test_a_run_says_which_faults_hit_whom(tmp_path: Path) -> None:
    scenario = loader.load(SCENARIOS / "chaos" / "kubelet-partition.yaml")
    result = runner.run(scenario, runner.Options(out=tmp_path))
    assert result.verdict["faults"] == {"partition": {"count": 1, "first_s": 10.0, "hit": 1}}
    (fault,) = result.history.faults
    assert list(fault.hits) == [("kubelet/node-1", "apiserver/0")]


def test_a_fault_that_ray_cannot_do_is_refused_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS["partition"]
    changed = Kind(kind.name, kind.doc, kind.parameters, kind.effects, not_on_ray="no wires")
    monkeypatch.setattr(runner, "KINDS", {"partition": changed})
    scenario = load("chaos: [{at: 1s, id: cut, partition: {between: [store, apiserver/0]}}]")
    with pytest.raises(KemuError, match="cut: partition needs --runtime sim: no wires"):
        runner.run(scenario, runner.Options(out=tmp_path, runtime="ray"))
