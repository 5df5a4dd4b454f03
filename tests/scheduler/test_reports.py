"""What the scheduler tells people: Event objects, and the status of pods that found no node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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


def test_a_lost_race_is_an_event_but_changes_no_status() -> None:
    """Two replicas bind the same pod; the loser's failure is told, the winner's status stands."""
    run = Run()
    found: list[core_v1_pb2.Event] = []

    async def main(run: Run) -> None:
        await run.create(*(objects.pod(f"p{number}") for number in range(10)))
        await run.at(10)
        found.extend(await events(run))
        for number in range(10):
            conditions = (await run.get(f"p{number}")).status.conditions
            assert [one.status for one in conditions if one.type == "PodScheduled"] == ["True"]

    run.play(main, [objects.node(f"n{number}") for number in range(3)], [{"replica": 0}, {"replica": 1}])
    conflicts = [one for one in run.told("sched.bind") if one["reason"] == "Conflict"]
    assert conflicts
    assert sorted(one.message for one in found) == sorted(one["message"] for one in conflicts)


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
