"""Faults of processes, machines and zones, as scenarios state them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kemu.runlog.frames import FILE_NAME, Reader
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner
from tests.scenario.texts import SCENARIOS, load, problems


@pytest.mark.parametrize(
    ("chaos", "where", "what"),
    [
        ("crash: {actor: kubelet/*, step: after-fsync}", ".step", "kubelet/* has no such step; its steps: after-adm"),
        ("crash: {actor: '*', step: after-fsync}", ".step", "* has no such step; its steps: none"),
        ("crash: {actor: store, step: after-lunch}", ".step", "after-lunch"),
        ("crash: {node: node-1, step: after-pull}", ".step", "belongs to actor"),
        ("crash: {actor: store, powerOff: true}", ".powerOff", "belongs to node and zone, not to actor"),
        ("crash: {zone: zone-b}", ".zone", "no node is in a zone called zone-b (did you mean zone-a?)"),
        ("partition: {zone: zone-b}", ".zone", "no node is in a zone called zone-b (did you mean zone-a?)"),
        ("partition: {oneWay: true}", "", "one of between or zone"),
    ],
)
def test_mistakes_in_crashes_and_zones(chaos: str, where: str, what: str) -> None:
    nodes = "  nodes: [{name: node-1, labels: {topology.kubernetes.io/zone: zone-a}}]\n"
    (problem,) = problems(f"chaos: [{{at: 1s, {chaos}}}]", nodes=nodes)
    assert problem.path == f"spec.chaos[0].{chaos.partition(':')[0]}{where}"
    assert what in f"{problem.message} ({problem.suggestion})"


def shipped(name: str, tmp_path: Path, **changes: Any) -> runner.RunResult:
    scenario = dataclasses.replace(loader.load(SCENARIOS / "chaos" / f"{name}.yaml"), **changes)
    return runner.run(scenario, runner.Options(out=tmp_path))


def times(result: runner.RunResult, kind: str, actor: str) -> list[tuple[float, dict[str, Any]]]:
    with Reader(result.folder / FILE_NAME) as log:
        return [(event[0] / 1e9, dict(event[3])) for event in log if event[2] == kind and event[1] == actor]


def test_a_crash_at_a_step_strikes_there_and_its_restart_counts_from_then(tmp_path: Path) -> None:
    result = shipped("scheduler-crash-steps", tmp_path)
    crashed = times(result, "actor.crashed", "scheduler/default-scheduler/0")
    assert {data["step"] for _, data in crashed} == {"after-assume", "after-bind"}
    started = times(result, "actor.started", "scheduler/default-scheduler/0")[1:]
    assert [when for when, _ in started] == pytest.approx([when + 2 for when, _ in crashed])
    begun = [when for when, data in times(result, "chaos.begin", "chaos") if data["step"] == "after-bind"]
    struck = [when for when, data in times(result, "chaos.hit", "chaos") if data["id"].startswith("bound")]
    assert all(one < other for one, other in zip(begun, struck, strict=False)), "it waits for the step"


def test_a_step_that_is_never_reached_is_a_fault_that_hit_nothing(tmp_path: Path) -> None:
    scenario = load("chaos: [{at: 1s, crash: {actor: kubelet/node-1, step: after-pull}}]")
    result = runner.run(scenario, runner.Options(out=tmp_path))
    assert result.verdict["faults"] == {"crash": {"count": 1, "first_s": 1.0, "hit": 0}}
    assert times(result, "actor.crashed", "kubelet/node-1") == []


def test_a_power_failure_is_noticed_by_keepalive_alone(tmp_path: Path) -> None:
    lost = times(shipped("power-off", tmp_path), "net.connection_lost", "apiserver/0")
    when = {data["peer"]: when for when, data in reversed(lost)}
    assert when["kubelet/node-2"] == pytest.approx(20.001)
    assert when["kubelet/node-1"] == pytest.approx(25.0)


def test_a_zone_is_all_of_its_machines(tmp_path: Path) -> None:
    result = shipped("zone-outage", tmp_path)
    off = times(result, "machine.off", "operator")
    assert [(when, data["node"]) for when, data in off] == [(60.0, "a-1"), (60.0, "a-2"), (60.0, "a-3")]
    assert [when for when, _ in times(result, "machine.on", "operator")] == [240.0] * 3


def test_a_zone_is_cut_off_from_everybody_else(tmp_path: Path) -> None:
    result = shipped("zone-partition", tmp_path)
    ((_, data),) = times(result, "chaos.begin", "chaos")
    inside, outside = data["between"]
    assert inside == ["kubelet/a-1", "kubelet/a-2"]
    assert {"store", "apiserver/0", "scheduler/default-scheduler/0", "kubelet/b-1", "kubelet/c-2"} < set(outside)
    assert {peer for when, data in times(result, "net.connection_lost", "apiserver/0") for peer in data.values()} == {
        "kubelet/a-1",
        "kubelet/a-2",
    }
