"""The alternatives of the pod preemption design: a node's kubelet makes the room, or a rescheduler."""

from __future__ import annotations

from kemu.runtime.env import ActorSpec
from tests.scheduler import objects
from tests.scheduler.runs import Run
from tests.scheduler.test_actor import lasting

BY_KUBELET = {"policy": {"preemptor": "kubelet"}}
BY_RESCHEDULER = {"policy": {"preemptor": "rescheduler"}}
RESCHEDULER = ActorSpec(
    "controller/rescheduler",
    "kemu.emulated.scheduler.experiments.rescheduler:Rescheduler",
    {"apiserver": "apiserver/0", "lag": 1.0, "schedulers": [{"name": "default-scheduler", **BY_RESCHEDULER}]},
)


def test_a_pod_is_bound_over_lower_ones_and_the_kubelet_makes_room() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000), objects.pod("d", "10", priority=500))
        await run.at(6)
        # Its room does not exist yet, but counts as taken: d, which is above a and b as well, does not get it.
        assert (await run.get("c")).spec.nodeName == "node-1"
        assert (await run.get("c")).status.phase == "Pending"
        assert (await run.get("a")).status.phase == "Running"
        await run.at(60)
        assert [(await run.get(name)).status.phase for name in "abcd"] == ["Failed", "Failed", "Running", "Pending"]

    running = [lasting("a", "5", 20, priority=100, on="node-1"), lasting("b", "5", 10, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], [BY_KUBELET], running, preemptsForAll=True)
    assert run.told("sched.victim") == run.told("sched.nominated") == []
    killed = [(one["pod"], one["by"]) for one in run.told("kubelet.preempting")]
    assert sorted(killed) == [("default/a", "default/c"), ("default/b", "default/c")]


def test_what_lower_pods_do_not_hinder_is_hindered_still() -> None:
    """Neither equal pods nor a taint give way, and a pod that never preempts stays where it is."""
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("equal", "10", priority=100))
        await run.create(objects.pod("picky", "10", priority=1000, nodeSelector={"zone": "b"}))
        await run.at(30)
        assert [(await run.get(name)).spec.nodeName for name in ("equal", "picky")] == ["", ""]
        assert (await run.get("a")).status.phase == "Running"

    running = [lasting("a", "10", 20, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], [BY_KUBELET], running, preemptsForAll=True)


def test_a_rescheduler_deletes_and_the_scheduler_binds() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000))
        await run.at(8)
        assert (await run.get("a")).metadata.HasField("deletionTimestamp")
        assert (await run.get("c")).status.nominatedNodeName == ""
        await run.at(60)
        assert (await run.get("c")).status.phase == "Running"

    running = [lasting("a", "5", 20, priority=100, on="node-1"), lasting("b", "5", 10, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], [BY_RESCHEDULER], running, [RESCHEDULER])
    assert run.told("sched.victim") == []
    # Once each, however often it looks while they end.
    victims = [(one["pod"], one["by"], one["ok"]) for one in run.told("rescheduler.victim")]
    assert sorted(victims) == [("default/a", "default/c", True), ("default/b", "default/c", True)]


def test_the_room_that_a_rescheduler_makes_is_open_to_others() -> None:
    """B is gone 10 s before A, and D, which is the least important of all, takes its room: C kills again."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000), lasting("d", "5", 3, priority=50))
        await run.at(20)
        assert (await run.get("d")).status.phase == "Running"
        await run.at(90)
        assert (await run.get("c")).status.phase == "Running"

    running = [lasting("a", "5", 20, priority=100, on="node-1"), lasting("b", "5", 10, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], [BY_RESCHEDULER], running, [RESCHEDULER])
    assert [one["pod"] for one in run.told("rescheduler.victim")][2:] == ["default/d"]
