"""The steps of shrinking: documents with less in them, holds that read better, what has to go well."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.lab.exploration import executions, meters, workers
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.shrinking import documents, freezing, readable_holds, shrinker, trials
from kemu.lab.exploration.shrinking.candidates import Loading
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.holds import EventPattern, Hold, Label, MessagePattern
from kemu.runtime.runlog.events import typed
from kemu.runtime.runlog.frames import Entry
from tests.exploration.shrinking_table import scenario_of

MS = MILLISECOND_NS


def lives(scenario: Scenario) -> Any:
    """What became of every pod, and when."""
    history = executions.execute(scenario).history
    return {key: (pod.created_ns, pod.node) for key, pod in history.pods.items()}


class TestADocument:
    def test_with_single_pods_runs_the_same(self) -> None:
        scenario = scenario_of("races/two-replicas-same-pods", 1)
        single = documents.with_single_pods(scenario.resolved, scenario, None)
        assert single is not None
        assert "workloads" not in single["spec"]
        del single["spec"]["expect"]
        assert lives(loader.of_data(single)) == lives(scenario)

    def test_with_single_nodes_is_the_same_scenario(self) -> None:
        scenario = scenario_of("races/two-replicas-same-pods", 1)
        single = documents.with_single_nodes(scenario.resolved)
        assert single is not None
        assert [node["name"] for node in single["spec"]["nodes"]] == ["node-1", "node-2", "node-3"]
        assert executions.execute(loader.of_data(single)).digest == executions.execute(scenario).digest

    @pytest.mark.parametrize(("count", "names"), [(1, ["node-1"]), (2, ["node-1", "node-2"]), (3, None)])
    def test_with_fewer_nodes(self, count: int, names: list[str] | None) -> None:
        scenario = scenario_of("races/two-replicas-same-pods", 1)
        fewer = documents.with_fewer_nodes(scenario.resolved, count)
        assert (fewer and [node.name for node in loader.of_data(fewer).nodes]) == names

    def test_without_what_leaves_nothing_behind(self) -> None:
        data = {"spec": {"timing": {"bind": "1s"}, "nodes": [{"name": "a", "labels": {"x": "y"}}]}}
        ways: list[documents.Way] = [("spec", "timing", "bind"), ("spec", "nodes", 0, "labels", "x")]
        assert documents.without(data, ways) == {"spec": {"nodes": [{"name": "a"}]}}

    def test_with_room_for_few(self) -> None:
        scenario = scenario_of("races/burst-on-full-nodes", 1)
        less = documents.with_room_for(scenario.resolved, 2)
        assert less is not None
        assert less["spec"]["nodes"][0]["allocatable"]["cpu"] == "2"
        assert documents.with_room_for(less, 2) is None

    def test_with_a_smaller_number_expects_it(self) -> None:
        data = scenario_of("races/replica-set-expectations", 1).resolved
        ((way, count),) = documents.numbers(data)
        assert count == 10
        fewer = documents.with_number(data, way, 2)
        assert fewer["spec"]["expect"][0] == {"id": "ten-pods-are-created", "counter": "pods_created", "equals": 2}
        assert executions.execute(loader.of_data(fewer)).outcome == executions.HOLDS

    def test_with_round_times(self) -> None:
        pod = {"metadata": {"name": "a", "annotations": {"kemu.dev/run-seconds": "25.325"}}}
        data = {"spec": {"events": [{"at": "5.371863s", "create": pod}, {"at": "6s", "delete": {"pod": "a"}}]}}
        rounded = documents.with_round_times(data, 100 * MS)
        assert rounded is not None
        assert [event["at"] for event in rounded["spec"]["events"]] == ["5.4s", "6s"]
        assert rounded["spec"]["events"][0]["create"]["metadata"]["annotations"] == {"kemu.dev/run-seconds": "25"}
        assert documents.with_round_times(rounded, 100 * MS) is None

    def test_loses_what_speaks_of_what_is_gone(self) -> None:
        scenario = scenario_of("races/two-schedulers-one-node", 1)
        hold = Hold(MessagePattern("apiserver/0", "scheduler/red/0", Label("Pod", "red-pod", "added")))
        data = documents.copied(scenario.resolved)
        del data["spec"]["expect"]
        data["spec"]["events"] += [{"at": "6s", "delete": {"pod": "red-pod"}}]
        data["spec"]["chaos"] = [{"at": "6s", "crash": {"actor": "scheduler/red/0"}}]
        whole = Loading("x.yaml").candidate(data, [hold])
        assert whole is not None
        assert len(whole.holds) == 1
        less = documents.keeping(data, [("events", 1), ("events", 2), ("schedulers", 1)], "events", "schedulers")
        found = Loading("x.yaml").candidate(less, [hold])
        assert found is not None
        assert (len(found.scenario.events), found.scenario.chaos, found.holds) == (1, (), ())


KEPT = Hold(MessagePattern("apiserver/0", "scheduler/red/0", Label("Pod", "a", "bound")), None, 13 * MS)


def event(time_ms: int, actor: str, kind: str, **data: Any) -> Entry:
    return Entry(time_ms * MS, actor, kind, typed(kind, data))


class TestAHold:
    EVENTS = (
        event(5, "scheduler/red/0", "sched.attempt", pod="default/a", result="scheduled"),
        event(10, "holds", "hold.kept", hold=0, for_ns=13 * MS),
        event(12, "kubelet/node-1", "kubelet.admit", pod="default/a", ok=True),
        event(13, "scheduler/red/0", "sched.attempt", pod="default/b", result="unschedulable"),
        event(14, "scheduler/red/0", "sched.attempt", pod="default/b", result="unschedulable"),
        event(15, "scheduler/red/0", "sched.queued", pod="default/c"),
        event(30, "scheduler/red/0", "sched.attempt", pod="default/c", result="scheduled"),
    )

    def test_waits_for_what_its_receiver_decided_meanwhile(self) -> None:
        found = readable_holds.by_events(KEPT, 0, self.EVENTS, MS)
        assert [hold.until for hold in found] == [
            EventPattern("scheduler/red/0", "attempted", "b"),
            EventPattern("scheduler/red/0", "attempted", "b", count=2),
            EventPattern("kubelet/node-1", "admitted", "a"),
        ]
        assert {hold.message for hold in found} == {KEPT.message}

    def test_that_kept_nothing_waits_for_nothing(self) -> None:
        assert readable_holds.by_events(KEPT, 1, self.EVENTS, MS) == []

    def test_lasts_a_round_time(self) -> None:
        assert readable_holds.round_times(KEPT) == [1 * MS, 2 * MS, 5 * MS, 10 * MS, 20 * MS]
        odd = dataclasses.replace(KEPT, for_ns=13_349_806)
        assert readable_holds.rounder_times(odd) == [14_000_000, 13_000_000, 13_400_000, 13_300_000]

    def test_may_stand_for_two_of_its_link(self) -> None:
        later = Hold(MessagePattern("apiserver/0", "scheduler/red/0", Label("Pod", "b", "bound")), None, 4 * MS)
        other = Hold(MessagePattern("user", "apiserver/0", Label("Pod", "b", "create")), None, 4 * MS)
        events = [
            event(10, "holds", "hold.kept", hold=0, for_ns=13 * MS),
            event(11, "holds", "hold.kept", hold=1, for_ns=4 * MS),
            event(21, "holds", "hold.kept", hold=2, for_ns=4 * MS),
        ]
        (found,) = readable_holds.merged([KEPT, other, later], events)
        assert found == [dataclasses.replace(KEPT, for_ns=15 * MS), other]


def test_what_is_frozen_is_the_same_run() -> None:
    scenario = loader.loads(
        """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: frozen}
spec:
  timing: {apiLatency: {uniform: {min: 1ms, max: 9ms}}, watchLatency: {uniform: {min: 1ms, max: 90ms}}}
  nodes: [{name: node-1}]
  manifests:
    - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: main}]}}
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: main}]}}}
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: [{name: main}]}}}
"""
    )
    messages = executions.execute(scenario, chooser=freezing.Still()).messages
    data, holds = freezing.frozen(scenario.resolved, freezing.drawn(scenario.resolved), messages)
    assert freezing.drawn(data) == []
    frozen = Loading("x.yaml").candidate(data, holds)
    assert frozen is not None

    def decisions(each: Scenario) -> list[tuple[int, str, str]]:
        events = executions.execute(each, keep_log=True).events
        return [
            (one.time_ns // MS, one.actor, one.kind) for one in events if one.kind in ("sched.bind", "kubelet.admit")
        ]

    assert decisions(frozen.scenario) == decisions(scenario)
    assert decisions(dataclasses.replace(frozen.scenario, holds=())) != decisions(scenario)


class TestAnExpectation:
    """Fails trivially where what it expects is gone, so a run has to go well."""

    SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: too-late}
spec:
  duration: 1m
  nodes: [{name: node-1}, {name: node-2}]
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: main}]}}}
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: main}]}}}
  chaos:
    - {at: 4s, for: 10s, partition: {between: [[scheduler/*], [apiserver/*]]}}
    - {at: 50s, crash: {actor: scheduler/default-scheduler/0}}
  expect:
    - {id: in-time, pod: a, bound: {before: 10s}}
"""

    def shrunk(self, text: str) -> shrinker.Shrunk:
        scenario = loader.loads(text)
        (failure,) = executions.execute(scenario).failures
        return shrinker.shrink(scenario, failure)

    def test_keeps_the_fault_without_which_it_holds(self) -> None:
        shrunk = self.shrunk(self.SCENARIO)
        assert (shrunk.pods, shrunk.nodes, shrunk.faults) == (1, 1, 1)
        assert "partition" in shrunk.scenario.resolved["spec"]["chaos"][0]
        well = dataclasses.replace(shrunk.scenario, chaos=())
        assert executions.execute(well).outcome == executions.HOLDS

    def test_that_never_holds_keeps_what_happens(self) -> None:
        impossible = self.SCENARIO.replace("bound: {before: 10s}", "bound: {node: node-2, before: 4s}")
        shrunk = self.shrunk(impossible)
        assert shrunk.faults == 2
        assert shrunk.scenario.duration_ns == loader.loads(impossible).duration_ns


def test_a_run_that_becomes_too_long_breaks() -> None:
    scenario = scenario_of("races/two-replicas-same-pods", 1)
    whole = meters.Meter()
    assert executions.execute(scenario, watcher=whole).outcome == executions.HOLDS
    meter = meters.Meter(whole.events // 2)
    (broken,) = (one for one in executions.execute(scenario, watcher=meter).failures if one.id == executions.BROKEN)
    assert "more than" in broken.detail
    assert meter.events < whole.events
    assert meter.is_over
    assert not whole.is_over


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_candidate_that_is_too_long_finds_nothing_with_any_number_of_jobs(
    jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(pods: int) -> Scenario:
        arrivals = f"arrivals: {{every: 1s, count: {pods}}}"
        return loader.loads(
            "{apiVersion: kemu.dev/v1, kind: Scenario, metadata: {name: many}, spec: {duration: 20s, "
            f"nodes: [{{name: node-1}}], workloads: [{{name: web, {arrivals}, "
            "pods: {spec: {containers: [{name: main}]}}}], expect: [{id: never, pod: web-0, never: {bound: {}}}]}}"
        )

    executor = workers.Inline() if jobs > 1 else None
    with trials.runner(executions.execute, jobs, executor, of(1), "") as runner:
        assert [len(failures) for failures in runner.run([of(1), of(10)])] == [1, 1]
    monkeypatch.setattr(trials, "_LONGER", 1)
    monkeypatch.setattr(trials, "_MORE_EVENTS", 20)
    with trials.runner(executions.execute, jobs, executor, of(1), "") as runner:
        assert [len(failures) for failures in runner.run([of(1), of(10), of(1)])] == [1, 0, 1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_candidate_that_cannot_be_run_finds_nothing_with_any_number_of_jobs(jobs: int) -> None:
    scenario = loader.loads(
        "{apiVersion: kemu.dev/v1, kind: Scenario, metadata: {name: outside}, spec: {duration: 10s, "
        "store: {etcd: 'localhost:2379'}, nodes: [{name: node-1}]}}"
    )
    with pytest.raises(KemuError, match="a real etcd is outside of virtual time"):
        executions.execute(scenario)
    executor = workers.Inline() if jobs > 1 else None
    with trials.runner(executions.execute, jobs, executor, scenario, "") as runner:
        assert runner.run([scenario, scenario]) == [(), ()]


def test_only_a_check_can_be_demonstrated() -> None:
    failure = Failure("in-time", "", "")
    scenario = scenario_of("races/recreated-pod", 1)
    shrunk = shrinker.Shrunk(scenario, failure, "", 1, 1, 1, 0, 0, 0, 1, 0.0, True, "")
    with pytest.raises(ValueError, match="in-time is no check"):
        shrunk.demonstration()
