"""Faults of processes, machines and zones, as scenarios state them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.frames import FILE_NAME, Reader
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
        ("delay: {from: store, to: apiserver/0, by: 1s, resource: pods}", ".from", "it must be API servers"),
    ],
)
def test_mistakes_in_who_is_struck(chaos: str, where: str, what: str) -> None:
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


class TestProcesses:
    """In virtual time what happens to a cell of Ray happens to its actors."""

    def test_what_is_killed_or_stopped_is_all_that_lives_in_the_cell(self, tmp_path: Path) -> None:
        scenario = load(
            "chaos:\n"
            "  - {id: k, at: 2s, kill: {process: cell/kubelets}}\n"
            "  - {id: s, at: 5s, for: 2s, stop: {process: cell/store}}\n"
            "duration: 20s",
            nodes="  nodes: [{namePrefix: node-, count: 2}]\n",
        )
        runner.run(scenario, runner.Options(out=tmp_path, runtime="sim"))
        with Reader(tmp_path / FILE_NAME) as reader:
            events = [(time_ns / 1e9, actor, kind, data) for time_ns, actor, kind, data in reader]
        crashed = [(seconds, actor) for seconds, actor, kind, _ in events if kind == "actor.crashed"]
        assert crashed == [(2.0, "kubelet/node-1"), (2.0, "kubelet/node-2")]
        again = [(seconds, actor) for seconds, actor, kind, _ in events if kind == "actor.started" and seconds > 0]
        assert again == [(3.0, "kubelet/node-1"), (3.0, "kubelet/node-2")]
        hits = [(data["id"], data["actor"]) for _, _, kind, data in events if kind == "chaos.hit"]
        assert hits == [("k", "cell/kubelets"), ("s", "store")]
        ends = [(seconds, data["id"]) for seconds, _, kind, data in events if kind == "chaos.end"]
        assert ends == [(3.0, "k"), (7.0, "s")]

    def test_cells_follow_the_placement_of_the_scenario(self) -> None:
        own = "runtime: {ray: {cells: {kubelets: 1}}}\n"
        three = "  nodes: [{namePrefix: n, count: 3}]\n"
        load(f"{own}chaos: [{{at: 1s, kill: {{process: cell/kubelets-2}}}}]", nodes=three)
        (problem,) = problems("chaos: [{at: 1s, kill: {process: cell/kubelets-2}}]")
        assert "no cell is called cell/kubelets-2; there are cell/store, cell/apiservers" in problem.message

    @pytest.mark.parametrize("fault", ["stop: {process: raylet/0}", "kill: {process: gcs}", "kill: {process: etcd}",
                                       "kill: {clusterNode: raylet/*}"])  # fmt: skip
    def test_what_virtual_time_does_not_have_is_refused_with_its_line(self, fault: str, tmp_path: Path) -> None:
        scenario = load(f"chaos:\n  - {{at: 1s, {fault}}}")
        with pytest.raises(KemuError, match=r"^.+\.yaml:\d+:\d+: (kill|stop): .* has no counterpart in virtual time"):
            runner.run(scenario, runner.Options(out=tmp_path, runtime="sim"))
