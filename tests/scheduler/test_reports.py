"""What the scheduler tells people: Event objects, and the status of pods that found no node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import Cycle, PermitPlugin
from kemu.emulated.scheduler.framework.statuses import WAIT, Status
from kemu.lab.conformance.scheduler import small_clusters
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects
from tests.scheduler.runs import Run
from tests.scheduler.test_actor import lasting


class Waits(PermitPlugin):
    """Holds pods up for as long as their label says."""

    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        seconds = cycle.labels.get("wait")
        return (Status(WAIT), float(seconds)) if seconds else (None, 0.0)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        """Pods that go from their node; not the end of a nomination, which wakes the pod itself, too."""
        return [(Event.ASSIGNED_POD_DELETE, lambda pod, old, new: bool(old.spec.nodeName))]


def waiting_scheduler() -> dict[str, Any]:
    return {"config": {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": f"{__name__}:Waits"}]}}}]}}


async def events(run: Run) -> list[core_v1_pb2.Event]:
    return (await run.client.list("events")).items


def told(found: list[core_v1_pb2.Event]) -> list[tuple[str, str, str, str]]:
    return [(one.involvedObject.name, one.type, one.reason, one.message) for one in found]


# Events -------------------------------------------------------------------------------------------------------------


def test_a_preemption_told_in_events() -> None:
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000))
        await run.at(40)
        found.extend(await events(run))
        (preempted,) = [one for one in found if one.reason == "Preempted"]
        assert preempted.message == f"Preempted by pod {(await run.get('c')).metadata.uid} on node n1"
        assert (preempted.type, preempted.action) == ("Normal", "Preempting")
        assert (preempted.related.kind, preempted.related.name) == ("Pod", "c")

    run.play(main, [objects.node("n1")], [{"events": "all", "replica": 3}], [lasting("a", "5", 30, on="n1")])
    assert told(found) == [
        ("a", "Normal", "Preempted", found[0].message),
        ("c", "Warning", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
        ("c", "Normal", "Scheduled", "Successfully assigned default/c to n1"),
    ]
    assert {(one.reportingComponent, one.reportingInstance) for one in found} == {
        ("default-scheduler", "default-scheduler-3")
    }


def test_failures_of_an_unchanged_pod_are_a_series() -> None:
    """The condition that an attempt writes changes the pod, once; then its failures are equal."""
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.create(objects.pod("big", "20"))
        for number in range(4):
            await run.at(20 * number + 20)
            await run.create(objects.pod(f"small-{number}", "1"))
            await run.at(20 * number + 25)
            await run.client.delete("pods", f"small-{number}", "default", grace_period_seconds=0)
        await run.at(100)
        found.extend(await events(run))

    run.play(main, [objects.node("n1")])
    assert [one["result"] for one in run.told("sched.attempt", "big")] == ["unschedulable"] * 5
    assert [(one.reason, one.series.count) for one in found] == [("FailedScheduling", 0), ("FailedScheduling", 2)]


def test_profiles_speak_for_themselves() -> None:
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.create(objects.pod("x", "20", scheduler="pack"), objects.pod("y", "20", scheduler="spread"))
        await run.at(2)
        found.extend(await events(run))

    profiles = [{"schedulerName": "spread"}, {"schedulerName": "pack"}]
    run.play(main, [objects.node("n1")], [{"config": {"profiles": profiles}}])
    assert [(one.involvedObject.name, one.reportingComponent) for one in found] == [("x", "pack"), ("y", "spread")]


# Pods that another scheduler binds ----------------------------------------------------------------------------------


def scheduled(pod: core_v1_pb2.Pod) -> tuple[str, str, str]:
    """Status, reason and message of the condition PodScheduled."""
    found = meta.get_condition(pod.status.conditions, "PodScheduled")
    return ("", "", "") if found is None else (found.status, found.reason, found.message)


def bound_during_a_cycle(pod: core_v1_pb2.Pod, *, tried_before: bool = False) -> tuple[Run, list[core_v1_pb2.Pod]]:
    """Cycles take 4 s; a user binds the pod to n1 in the middle of one. The pod after it, and 10 s later."""
    run = Run()
    seen: list[core_v1_pb2.Pod] = []

    async def main(run: Run) -> None:
        begun_s = 1.0
        await run.at(begun_s)
        await run.create(pod)
        if tried_before:
            begun_s = 10.0
            await run.at(begun_s)
            await run.client.delete("pods", "blocker", "default")
        await run.at(begun_s + 2)
        waiting = await run.get("p")
        assert waiting.spec.nodeName == ""
        await run.client.bind("default", "p", waiting.metadata.uid, "n1")
        for after_s in (5, 15):
            await run.at(begun_s + after_s)
            seen.append(await run.get("p"))

    running = [objects.pod("blocker", "8", on="n1")] if tried_before else []
    config = {"timing": {"schedulingCycle": 4}, "events": "all"}
    run.play(main, [objects.node("n1")], [config], running)
    return run, seen


def test_a_pod_that_is_bound_during_its_cycle_cannot_be_assumed() -> None:
    """``assume`` fails, which is written to the status like any other error; the kubelet puts that right."""
    run, (after, later) = bound_during_a_cycle(objects.pod("p"))
    message = f"pod {after.metadata.uid}(default/p) is in the cache, so can't be assumed"
    (attempt,) = run.told("sched.attempt", "p")
    assert (attempt["result"], attempt["message"]) == ("error", message)
    assert run.told("sched.bind") == []
    assert after.spec.nodeName == "n1"
    assert scheduled(after) == ("False", "SchedulerError", message)
    assert scheduled(later) == ("True", "", "")


def test_a_pod_that_is_bound_during_its_cycle_and_fits_on_no_node() -> None:
    run, (after, _later) = bound_during_a_cycle(objects.pod("p", "20"))
    (attempt,) = run.told("sched.attempt", "p")
    assert attempt["result"] == "unschedulable"
    assert scheduled(after) == ("False", "Unschedulable", attempt["message"])


def test_a_status_is_patched_where_it_differs_from_the_one_that_was_tried() -> None:
    """The pod that was tried said PodScheduled=False already, so the binding's True stays beside the new reason."""
    run, (after, later) = bound_during_a_cycle(objects.pod("p", "5"), tried_before=True)
    assert [one["result"] for one in run.told("sched.attempt", "p")] == ["unschedulable", "error"]
    assert scheduled(after)[:2] == ("True", "SchedulerError")
    assert scheduled(later) == ("True", "", "")


def test_the_loser_of_a_race_writes_an_event_and_the_status_which_the_kubelet_puts_right() -> None:
    """Two replicas bind the same pods (``handleBindingCycleError``)."""
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.create(*(objects.pod(f"p{number}") for number in range(10)))
        await run.at(20)
        found.extend(await events(run))
        for number in range(10):
            assert scheduled(await run.get(f"p{number}")) == ("True", "", "")

    run.play(main, [objects.node(f"n{number}") for number in range(3)], [{"replica": 0}, {"replica": 1}])
    lost = [one for one in run.told("sched.bind") if one["reason"] == "Conflict"]
    assert lost
    assert sorted(one.message for one in found) == sorted(one["message"] for one in lost)
    written = {scheduled(pod)[2] for pod in stored(run) if pod.spec.nodeName and scheduled(pod)[1] == "SchedulerError"}
    assert written == {one["message"] for one in lost}


@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_pod_that_is_deleted_while_it_is_bound(*, is_recreated: bool) -> None:
    """Of the deleted one an Event tells, and a status is written in vain; but not if a new one of its name waits."""
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.create(objects.pod("p"))
        await run.at(2)
        await run.client.delete("pods", "p", "default")
        if is_recreated:
            await run.create(objects.pod("p"))
        await run.at(10)
        found.extend(await events(run))

    run.play(main, [objects.node("n1")], [{"timing": {"bind": 3}}])
    first, *others = run.told("sched.bind")
    assert not first["ok"]
    assert [one["ok"] for one in others] == [True] * is_recreated
    lost = [one["reason"] for one in run.told("sched.status_lost")]
    assert (len(found), lost) == ((0, []) if is_recreated else (1, ["NotFound"]))


def stored(run: Run) -> Iterator[core_v1_pb2.Pod]:
    """All states of all pods, in their order."""
    for _ns, _actor, kind, data in run.recorder.events:
        if kind == "store.txn":
            for _op, key, value, *_rest in data["changes"]:
                if key.startswith("/registry/pods/") and value:
                    yield core_v1_pb2.Pod.FromString(value)


# The status write ---------------------------------------------------------------------------------------------------


def decided(policy: dict[str, Any]) -> dict[str, float]:
    """When two pods are tried that come at the same time, in ms; a call of the API takes 3 ms."""
    case = {
        "start": "2026-01-01T00:00:00Z",
        "horizon_s": 2,
        "nodes": [convert.to_json(objects.node("n1"))],
        "events": [
            {"at_s": 1, "do": "createPod", "pod": convert.to_json(objects.pod(name, "20"))} for name in ("a", "b")
        ],
    }
    found = small_clusters.play(case, policy=policy)["timeline"]
    return {one["pod"]: round((one["t_s"] - 1) * 1000, 1) for one in found if one["what"] == "unschedulable"}


def test_the_status_write_holds_the_loop_up_or_not() -> None:
    assert decided({}) == decided({"statusWrites": "blocking"}) == {"a": 0.0, "b": 4.0}
    assert decided({"statusWrites": "background"}) == {"a": 0.0, "b": 1.0}


def test_with_writes_in_the_background_everything_is_written_in_the_end() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000), objects.pod("d", "2", priority=50))
        await run.at(8)
        assert (await run.get("c")).status.nominatedNodeName == "node-1"
        await run.at(80)
        bound = await run.get("c")
        assert (bound.status.phase, bound.status.nominatedNodeName) == ("Running", "")
        waiting = next(one for one in (await run.get("d")).status.conditions if one.type == "PodScheduled")
        assert (waiting.status, waiting.reason) == ("False", "Unschedulable")

    running = [lasting("a", "5", 60, priority=100, on="node-1"), lasting("b", "5", 30, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], [{"policy": {"statusWrites": "background"}}], running)
    assert [(one["pod"], one["node"]) for one in run.told("sched.nominated")] == [("default/c", "node-1")]


# Victims that wait for their permit ---------------------------------------------------------------------------------


def test_a_victim_that_waits_for_its_permit_is_turned_away_and_told_so() -> None:
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.create(objects.pod("low", "10", labels={"wait": "60"}))
        await run.at(5)
        await run.create(objects.pod("high", "10", priority=10))
        await run.at(10)
        low = await run.get("low")
        assert not low.metadata.HasField("deletionTimestamp")
        assert [one.type for one in low.status.conditions] == ["PodScheduled"]
        assert low.status.conditions[0].reason == "Unschedulable"
        # Its own nomination, which came with the wait, is void. It did not suit any node when it was tried again.
        assert low.status.nominatedNodeName == ""
        found.extend(await events(run))

    run.play(main, [objects.node("n1")], [waiting_scheduler()])
    assert run.bound() == {"high": "n1"}
    (victim,) = run.told("sched.victim")
    assert (victim["pod"], victim["by"], victim["how"], victim["ok"]) == (
        "default/low",
        "default/high",
        "rejected",
        True,
    )
    (refused,) = [one for one in run.told("sched.bind", "low") if not one["ok"]]
    assert (refused["reason"], refused["message"]) == ("DefaultPreemption", "waiting on permit for pod: preempted")
    (note,) = [one[3] for one in told(found) if one[:3] == ("low", "Normal", "Preempted")]
    assert note.endswith(" on node n1 (in kube-scheduler memory).")
    assert ("low", "Warning", "FailedScheduling", "waiting on permit for pod: preempted") in told(found)
    # That is an error: nothing has to happen for it to be tried again, after a back-off.
    again = run.told("sched.attempt", "low")[1]
    assert (again["result"], 6 < again["at"] < 8) == ("unschedulable", True)
    # The preemptor is tried again at once: its room is there without anybody shutting down.
    (bind,) = run.told("sched.bind", "high")
    assert bind["at"] < 5.1


def test_only_the_victims_that_wait_are_turned_away() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("waits", "5", labels={"wait": "60"}))
        await run.at(5)
        await run.create(objects.pod("high", "10", priority=10))
        await run.at(30)

    run.play(main, [objects.node("n1")], [waiting_scheduler()], [lasting("runs", "5", 10, on="n1")])
    assert {one["pod"]: one["how"] for one in run.told("sched.victim")} == {
        "default/waits": "rejected",
        "default/runs": "deleted",
    }
    assert 15 < next(one["at"] for one in run.told("sched.bind", "high")) < 15.2


def test_a_deleted_pod_that_waits_is_turned_away_and_forgotten() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("p", "10", labels={"wait": "60"}))
        await run.at(5)
        await run.create(objects.pod("next", "10"))
        await run.at(6)
        await run.client.delete("pods", "p", "default")
        await run.at(8)

    run.play(main, [objects.node("n1")], [waiting_scheduler()])
    (refused,) = run.told("sched.bind", "p")
    assert refused["message"] == "0/1 nodes are available: 1 removed."
    assert run.bound() == {"next": "n1"}
    assert len(run.told("sched.attempt", "p")) == 1


def test_what_happens_while_a_pod_waits_for_its_permit_counts_when_it_is_turned_away() -> None:
    """A permit that runs out is no reason to wait for something that has happened already."""

    def tried(something_ends: bool) -> int:
        run = Run()

        async def main(run: Run) -> None:
            await run.create(objects.pod("p", "5", labels={"wait": "4"}))
            await run.at(2)
            if something_ends:
                await run.client.delete("pods", "other", "default", grace_period_seconds=0)
            await run.at(7)

        run.play(main, [objects.node("n1")], [waiting_scheduler()], [lasting("other", "5", 1, on="n1")])
        return len(run.told("sched.attempt", "p"))

    assert tried(False) == 1
    assert tried(True) == 2


# Statuses that the API server does not take at once ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("down_s", "up_s", "is_written"),
    [
        (4.5, 5.25, True),  # the fourth attempt, some 310 ms after the first, finds it
        (4.5, 5.5, False),
        (5.0015, 5.05, False),  # the connection breaks while the answer is on its way: the request is not sent again
    ],
)
def test_a_status_is_written_again_while_connections_are_refused(
    *, down_s: float, up_s: float, is_written: bool
) -> None:
    """The API server is away for a while, and the first write is due at 5 s."""
    run = Run()
    seen: list[tuple[str, str, str]] = []

    async def main(run: Run) -> None:
        await run.at(0.996)
        await run.create(objects.pod("p", "20"))
        await run.at(down_s)
        await run.runtime.crash("apiserver/0")
        await run.at(up_s)
        await run.runtime.restart("apiserver/0")
        await run.at(8)
        seen.append(scheduled(await run.get("p")))

    run.play(main, [objects.node("n1")], [{"timing": {"schedulingCycle": 4}}])
    (attempt,) = run.told("sched.attempt", "p")
    assert attempt["at"] == 5
    lost = run.told("sched.status_lost", "p")
    assert [one["reason"] for one in lost] == ([] if is_written else ["ServiceUnavailable"])
    if down_s < 5:  # otherwise it may have been carried out
        assert is_written == (seen[0][0] == "False")
    if up_s == 5.5:
        assert 0.310 < lost[0]["at"] - attempt["at"] < 0.36
