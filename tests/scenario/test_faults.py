"""The keys of faults, the faults made of them, and what a run says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.emulated.settings import documents, shapes
from kemu.errors import KemuError, Problem
from kemu.lab.scenario.format.keys import fault_keys
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.tell import stories
from kemu.runtime.faults.kinds import KINDS, Kind
from tests.scenario.texts import load, problems

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"

RIGHT = """
pause: {actor: kubelet/node-1}
terminate: {actor: scheduler/*}
delay: {from: apiserver/*, to: scheduler/*, by: {uniform: {min: 100ms, max: 2s}}}
bandwidth: {from: store, to: [apiserver/0, apiserver/1], bytesPerSecond: 64Ki, all: true}
kill: {clusterNode: raylet/0}
stop: {process: [cell/store, gcs, etcd], all: true}
drop: {from: kubelet/*, to: apiserver/*, probability: 20%}
duplicate: {from: scheduler/*, to: apiserver/*, probability: 0.2}
clockSkew: {actor: controller/node-lifecycle, by: -30s, drift: 0.01}
clockJump: {actor: kubelet/*, by: 2m, all: true}
diskFull: {actor: store}
slowDisk: {actor: store, fsync: 2s}
tornWrite: {actor: store}
failingFsync: {actor: store}
bitRot: {actor: store}
lostSectors: {actor: store, sectors: 8}
lostRenames: {actor: kubelet/*}
restore: {actor: store, age: 20s}
staleReads: {apiServer: apiserver/1, by: 20s}
cutWatches: {of: scheduler/*, resource: [nodes, resourceslices], compacted: true}
slowApi: {apiServer: apiserver/*, by: {exponential: {mean: 2s}}, all: true}
reset: {between: [kubelet/*, apiserver/*], share: 50%}
halfOpen: {between: [kubelet/*, apiserver/*]}
crash: {actor: store, restart: false}
partition: {between: [store, [apiserver/0, scheduler/*]], oneWay: true}
refuse: {code: 429, retryAfter: 5s, agent: kubectl/*, verb: [patch, update], resource: deployments/status, nth: 3}
loseAnswers: {how: timeout, user: admin, namespace: default, name: web, times: 2}
slowAnswers: {by: {uniform: {min: 1s, max: 2s}}, before: true, probability: 50%}
staleAnswers: {by: 20s}
cutStreams: {how: expired, fresh: true, events: 3, revision: 100}
delayEvents: {by: 1s}
wrongBookmarks: {how: twice, initial: true}
lateSlices: {node: node-1, by: 30s}
devicesVanish: {node: node-*, devices: [gpu-0]}
devicesUnhealthy: {node: node-*, devices: [gpu-0], message: too hot}
prepareFails: {node: node-1, failures: 50%}
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
        ("refuse", {"code": 418}, "must be one of 409"),
        ("refuse", {"code": 409, "nth": 0}, "at least 1"),
        ("cutStreams", {"how": "rudely"}, "must be clean"),
        ("refuse", {"code": 409, "all": True}, "may stand here"),
        ("cutWatches", {"compacted": True}, "of is missing"),
        ("cutWatches", {"off": "store"}, "did you mean of?"),
        ("crash", {"actor": "store", "node": "node-1"}, "second victim"),
    ],
)
def test_mistakes_in_the_keys_of_faults(name: str, value: Any, what: str) -> None:
    _, found = check(KINDS[name], value)
    assert any(what in f"{problem.message} {problem.suggestion}" for problem in found), found


def test_what_is_over_in_an_instant_takes_no_duration() -> None:
    instant = next(kind for kind in KINDS.values() if not kind.lasts)
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


def test_the_story_tells_each_fault_and_whom_it_hit(tmp_path: Path) -> None:
    """Every kind of the network in one run, one of them without effect."""
    scenario = load(
        """
        duration: 1m
        timing: {keepaliveTimeout: 3s, keepaliveTime: 10s}
        workloads:
        - {name: w, start: 1s, arrivals: {every: 1s, count: 40}, pods: {spec: {containers: [{name: main}]}}}
        chaos:
        - {at: 10s, for: 5s, delay: {from: apiserver/*, to: scheduler/*, by: {uniform: {min: 100ms, max: 2s}}}}
        - {at: 10s, for: 5s, drop: {from: kubelet/*, to: apiserver/*, probability: 40%}}
        - {at: 10s, for: 5s, duplicate: {from: scheduler/*, to: apiserver/*, probability: 1}}
        - {at: 20s, for: 5s, bandwidth: {from: apiserver/0, to: [kubelet/*, scheduler/*], bytesPerSecond: 10k}}
        - {at: 30s, reset: {between: [scheduler/*, apiserver/*]}}
        - {at: 35s, halfOpen: {between: [kubelet/*, apiserver/*]}}
        - {at: 35s, for: 1s, delay: {from: scheduler/*, to: kubelet/*, by: 1s}}
        expect: [{pods: {workload: w}, all: {running: {}}}]
        """
    )
    result = runner.run(scenario, runner.Options(out=tmp_path))
    assert result.verdict["verdict"] == "holds"
    assert {what: found["hit"] for what, found in result.verdict["faults"].items()} == {
        "delay": 1, "drop": 1, "duplicate": 1, "bandwidth": 2, "reset": 1, "halfOpen": 1,
    }  # fmt: skip
    lines = stories.tell(result.history).lines
    told = {line.what: line.why for line in lines if line.who == "chaos"}
    scheduler = "scheduler/default-scheduler/0"
    assert told[f"what apiserver/0 sends to {scheduler} comes late"] == f"hit apiserver/0 → {scheduler}"
    assert told[f"what apiserver/0 sends to {scheduler} comes in time again"] == ""
    assert told["packets from kubelet/node-1 to apiserver/0 are lost"] == "hit kubelet/node-1 → apiserver/0"
    assert told[f"requests of {scheduler} to apiserver/0 come twice"] == f"hit {scheduler} → apiserver/0"
    assert told[f"the connections between {scheduler} and apiserver/0 are reset"] == f"hit {scheduler} → apiserver/0"
    assert (
        told["the connections between kubelet/node-1 and apiserver/0 go silent"] == "hit kubelet/node-1 → apiserver/0"
    )
    assert told[f"what {scheduler} sends to kubelet/node-1 comes late"] == "hit nobody"
