"""The actor among real neighbours: store, API server and kubelets, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects
from tests.scheduler.runs import Run


def lasting(name: str, cpu: str, shutdown_s: int, **fields: Any) -> core_v1_pb2.Pod:
    """A pod that takes its time to end."""
    pod = objects.pod(name, cpu, terminationGracePeriodSeconds=shutdown_s, **fields)
    pod.metadata.annotations["kemu.dev/shutdown-seconds"] = str(shutdown_s)
    return pod


def test_example_1_of_the_preemption_document() -> None:
    """C preempts A and B, keeps its node while they end, and is bound when A is gone; D waits for ever."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000), objects.pod("d", "2", priority=50))
        await run.at(8)
        assert (await run.get("c")).status.nominatedNodeName == "node-1"
        conditions = (await run.get("a")).status.conditions
        assert [one.reason for one in conditions if one.type == "DisruptionTarget"] == ["PreemptionByScheduler"]
        await run.at(80)
        assert (await run.get("c")).status.phase == "Running"
        assert (await run.get("c")).status.nominatedNodeName == ""
        waiting = next(one for one in (await run.get("d")).status.conditions if one.type == "PodScheduled")
        assert (waiting.status, waiting.reason) == ("False", "Unschedulable")
        assert waiting.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")

    running = [lasting("a", "5", 60, priority=100, on="node-1"), lasting("b", "5", 30, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], running=running)
    (preemption,) = run.told("sched.preemption")
    assert (preemption["pod"], preemption["node"], preemption["candidates"]) == ("default/c", "node-1", 1)
    assert [victim[0] for victim in preemption["victims"]] == ["default/a", "default/b"]
    assert [(one["pod"], one["by"], one["ok"]) for one in run.told("sched.victim")] == [
        ("default/a", "default/c", True),
        ("default/b", "default/c", True),
    ]
    (bind,) = run.told("sched.bind")
    assert bind["pod"] == "default/c"
    assert 65 < bind["at"] < 65.2
    results = [(round(one["at"]), one["result"]) for one in run.told("sched.attempt", "c")]
    assert results == [(5, "unschedulable"), (35, "unschedulable"), (65, "scheduled")]


@pytest.mark.parametrize(
    ("clear", "cleared"), [("current", []), ("always", ["default/c"])], ids=["kubernetes", "document"]
)
def test_example_4_and_the_switch_for_it(clear: str, cleared: list[str]) -> None:
    """F comes while A and B end for C: is C's nomination cleared at once?"""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("c", "10", priority=1000))
        await run.at(10)
        await run.create(objects.pod("f", "10", priority=2000))
        await run.at(12)

    running = [lasting("a", "5", 60, priority=100, on="node-1"), lasting("b", "5", 30, priority=100, on="node-1")]
    run.play(main, [objects.node("node-1")], [{"policy": {"clearLowerNominations": clear}}], running)
    nominations = [(one["pod"], one["node"]) for one in run.told("sched.nominated")]
    assert nominations[:2] == [("default/c", "node-1"), ("default/f", "node-1")]
    assert [pod for pod, node in nominations if not node] == cleared


def test_replicas_race_and_every_pod_is_bound_once() -> None:
    run = Run()
    pods = [objects.pod(f"p{number}") for number in range(20)]

    async def main(run: Run) -> None:
        await run.create(*pods)
        await run.at(20)
        assert all([(await run.get(pod.metadata.name)).spec.nodeName for pod in pods])

    nodes = [objects.node(f"n{number}") for number in range(4)]
    run.play(main, nodes, [{"replica": 0}, {"replica": 1}])
    binds = run.told("sched.bind")
    assert sorted(one["pod"] for one in binds if one["ok"]) == sorted(f"default/p{number}" for number in range(20))
    lost = [one for one in binds if not one["ok"]]
    assert lost
    assert {one["reason"] for one in lost} == {"Conflict"}
    assert all("running Bind plugin" in one["message"] for one in lost)
    for _ns, actor, kind, data in run.recorder.events:
        if kind == "sched.attempt" and data["result"] == "scheduled":
            assert actor.startswith("scheduler/default-scheduler/")


@pytest.mark.parametrize("cooperate", [True, False])
def test_room_made_by_another_scheduler(cooperate: bool) -> None:
    """A's preemptor waits for room on n1; does B's small pod of lower priority take it?"""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("preemptor", "10", priority=1000, scheduler="a"))
        await run.at(6)
        await run.create(objects.pod("small", "1", priority=5, scheduler="b"))
        await run.at(10)

    running = [lasting("slow", "5", 30, on="n1"), lasting("quick", "5", 60, on="n1")]
    running[1].metadata.annotations["kemu.dev/shutdown-seconds"] = "1"
    schedulers = [{"name": "a"}, {"name": "b", "policy": {"cooperate": cooperate}}]
    run.play(main, [objects.node("n1")], schedulers, running)
    assert ("small" in run.bound()) is not cooperate


def test_a_scheduler_that_comes_back_goes_on() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("before"))
        await run.at(2)
        await run.runtime.crash("scheduler/default-scheduler/0")
        await run.create(objects.pod("meanwhile", "9"))
        await run.at(4)
        assert not (await run.get("meanwhile")).spec.nodeName
        await run.runtime.restart("scheduler/default-scheduler/0")
        await run.at(5)
        await run.create(objects.pod("after", "1"))
        await run.at(6)

    run.play(main, [objects.node("n1")])
    assert run.bound() == {"before": "n1", "meanwhile": "n1"}
    assert [one["result"] for one in run.told("sched.attempt", "after")] == ["unschedulable"]


def test_fifo_without_nomination_lets_others_take_the_room() -> None:
    """The starvation problem: with the old queue a stream of small pods takes what the victims leave."""

    def bound_at(policy: dict[str, Any]) -> float:
        run = Run()

        async def main(run: Run) -> None:
            await run.at(1)
            await run.create(objects.pod("big", "10", priority=1000))
            for number in range(30):
                await run.at(2 + number)
                small = objects.pod(f"small-{number}", "5", priority=1000)
                small.metadata.annotations["kemu.dev/run-seconds"] = "8"
                await run.create(small)
            await run.at(60)

        running = [lasting("a", "5", 10, on="n1"), lasting("b", "5", 5, on="n1")]
        run.play(main, [objects.node("n1")], [{"policy": policy}], running)
        return next((one["at"] for one in run.told("sched.bind", "big")), 1000.0)

    today, old = bound_at({}), bound_at({"queue": "fifo", "nomination": False})
    assert 11 < today < 11.2
    assert old > today + 5


def test_profiles_serve_their_own_pods() -> None:
    run = Run()
    profiles = [
        {"schedulerName": "spread"},
        {
            "schedulerName": "pack",
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
        },
    ]

    async def main(run: Run) -> None:
        await run.create(objects.pod("x", "1", scheduler="pack"))
        await run.at(1)
        await run.create(objects.pod("packed", "1", scheduler="pack"), objects.pod("nobodys", "1", scheduler="other"))
        await run.at(2)
        await run.create(objects.pod("spread", "1", scheduler="spread"))
        await run.at(3)

    run.play(main, [objects.node("n1"), objects.node("n2")], [{"config": {"profiles": profiles}}])
    bound = run.bound()
    assert bound["packed"] == bound["x"] != bound["spread"]
    assert "nobodys" not in bound


def test_an_attempt_takes_the_time_that_the_cost_model_says() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("p"))
        await run.at(5)

    timing = {"schedulingCycle": {"base": 0.5, "perNode": 0.25}, "bind": 1.0}
    run.play(main, [objects.node("n1"), objects.node("n2")], [{"timing": timing}])
    (attempt,) = run.told("sched.attempt", "p")
    assert attempt["at"] - attempt["start"] / 1e9 == pytest.approx(1.0)
    assert attempt["evaluated"] == 2
    (bind,) = run.told("sched.bind", "p")
    assert 1.0 < bind["at"] - attempt["at"] < 1.01


def test_the_run_log_says_how_long_a_pod_waited_where() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("p", "20"))
        await run.at(3)
        await run.client.delete("pods", "p", "default")
        await run.at(4)

    run.play(main, [objects.node("n1")])
    waits = [(one["queue"], one["event"]) for one in run.told("sched.queued", "p")]
    assert waits == [("active", "PodAdd"), ("unschedulable", "AttemptFailed")]
    (attempt,) = run.told("sched.attempt", "p")
    assert attempt["plugins"] == {"NodeResourcesFit": 1}
    assert list(attempt)[2:] == [
        "pod", "uid", "start", "n", "result", "node", "evaluated", "feasible", "plugins", "message",
    ]  # fmt: skip


def test_the_same_seed_writes_the_same_log() -> None:
    def log() -> list[Any]:
        run = Run(seed=7)

        async def main(run: Run) -> None:
            await run.create(*(objects.pod(f"p{number}", "3", priority=number % 3) for number in range(12)))
            await run.at(20)

        run.play(main, [objects.node(f"n{number}") for number in range(3)], [{"replica": 0}, {"replica": 1}])
        return run.recorder.events

    assert log() == log()


def test_opportunistic_batching_spares_searches_unless_half_a_second_lies_between() -> None:
    """The first pod of a batch looks at every node, the next at one; the gate switches it off."""
    args = {"defaultingType": "List", "defaultConstraints": []}
    profiles = [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}]

    def evaluated(**more: Any) -> list[int]:
        run = Run()

        async def main(run: Run) -> None:
            await run.at(5)
            await run.create(*[objects.pod(f"a-{number}", "6") for number in range(3)])
            await run.at(6)
            await run.create(objects.pod("b", "6"))
            await run.at(8)

        nodes = [objects.node(f"node-{number}") for number in range(4)]
        run.play(main, nodes, [{"config": {"profiles": profiles, **more}}])
        attempts = run.told("sched.attempt")
        assert [one["result"] for one in attempts] == ["scheduled"] * 4
        return [one["evaluated"] for one in attempts]

    assert evaluated() == [4, 1, 1, 4]
    assert evaluated(featureGates={"OpportunisticBatching": False}) == [4, 4, 4, 4]
