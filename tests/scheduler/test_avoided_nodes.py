"""Not back to the node whose kubelet has just thrown a pod of the workload out."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.experiments import avoided_nodes
from kemu.lab.scenario.playing import workloads
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects
from tests.scheduler.runs import Run


def failed(name: str, reason: str = "Evicted", on: str = "n1", **metadata: Any) -> core_v1_pb2.Pod:
    pod = alike(name, **metadata)
    pod.spec.nodeName = on
    pod.status.phase = "Failed"
    pod.status.reason = reason
    return pod


def alike(name: str, **metadata: Any) -> core_v1_pb2.Pod:
    pod = objects.pod(name)
    pod.metadata.MergeFrom(convert.from_json(core_v1_pb2.Pod, {"metadata": metadata}).metadata)
    return pod


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-rs", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "workload"),
    [
        ({"ownerReferences": [OWNER], "generateName": "web-"}, ("controller", "default", "uid-rs")),
        ({"ownerReferences": [{**OWNER, "controller": False}]}, ("name", "default", "p")),
        ({"labels": {workloads.LABEL: "small"}, "generateName": "web-"}, ("workload", "default", "small")),
        ({"generateName": "web-"}, ("generateName", "default", "web-")),
        ({}, ("name", "default", "p")),
    ],
)
def test_whose_replacement_a_pod_is(metadata: dict[str, Any], workload: tuple[str, str, str]) -> None:
    assert avoided_nodes.workload_of(alike("p", **metadata)) == workload


@pytest.mark.parametrize("reason", ["Evicted", "OutOfcpu", "OutOfpods", "NodeAffinity", "Preempting"])
def test_what_only_a_kubelet_does(reason: str) -> None:
    assert avoided_nodes.is_thrown_out(failed("p", reason))


def test_what_says_nothing_about_the_node() -> None:
    assert not avoided_nodes.is_thrown_out(failed("p", "DeadlineExceeded"))
    assert not avoided_nodes.is_thrown_out(failed("p", ""))
    assert not avoided_nodes.is_thrown_out(failed("p", on=""))
    running = failed("p")
    running.status.phase = "Running"
    assert not avoided_nodes.is_thrown_out(running)


def play(policy: dict[str, Any], *, then_fails: str = "") -> Run:
    """A pod of a ReplicaSet is evicted from n1 at 2 s; another comes at 3 s. There is no other node.

    ``then_fails``: a pod of the same set that is evicted, too, at 12 s.
    """
    run = Run()

    async def evict(name: str) -> None:
        evicted = await run.get(name)
        evicted.status.phase = "Failed"
        evicted.status.reason = "Evicted"
        await run.client.update_status(evicted)

    async def main(run: Run) -> None:
        await run.at(2)
        await evict("old")
        await run.at(3)
        await run.create(alike("new", ownerReferences=[OWNER]), alike("stranger"))
        await run.at(12)
        if then_fails:
            await evict(then_fails)
        await run.at(60)

    running = [alike(name, ownerReferences=[OWNER]) for name in ("old", "second")]
    for pod in running:
        pod.spec.nodeName = "n1"
    run.play(main, [objects.node("n1")], [{"policy": policy}], running)
    return run


def bound_at(run: Run, name: str) -> float:
    return float(next(one["at"] for one in run.told("sched.bind", name) if one["ok"]))


def test_the_replacement_waits_until_the_time_is_over() -> None:
    assert bound_at(play({}), "new") < 3.1
    run = play({"avoidEvictedNode": 20})
    assert bound_at(run, "stranger") < 3.1
    assert 22 <= bound_at(run, "new") < 22.1
    (attempt, _) = run.told("sched.attempt", "new")
    assert attempt["plugins"] == {"AvoidEvictedNode": 1}
    assert "1 node(s) evicted or rejected a pod of the same workload recently" in attempt["message"]
    waits = [(one["queue"], one["event"]) for one in run.told("sched.queued", "new")]
    assert waits[-1] == ("active", "AvoidEvictedNode/Over")


def test_another_eviction_prolongs_it() -> None:
    run = play({"avoidEvictedNode": 20}, then_fails="second")
    assert 32 <= bound_at(run, "new") < 32.1


def test_nobody_is_preempted_on_an_avoided_node() -> None:
    """The node is full, too, which preemption could change."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(2)
        old = await run.get("old")
        old.status.phase = "Failed"
        old.status.reason = "Evicted"
        await run.client.update_status(old)
        await run.at(3)
        important = objects.pod("new", "10", priority=1000)
        important.metadata.ownerReferences.extend(alike("like", ownerReferences=[OWNER]).metadata.ownerReferences)
        await run.create(important)
        await run.at(21)
        assert not run.told("sched.victim")
        # Something must wake it: as long as the node is full as well, the end of the time alone concerns it not.
        await run.client.delete("pods", "small", "default")
        await run.at(40)

    old = alike("old", ownerReferences=[OWNER])
    old.spec.nodeName = "n1"
    running = [old, objects.pod("low", "8", on="n1"), objects.pod("small", "1", on="n1")]
    run.play(main, [objects.node("n1")], [{"policy": {"avoidEvictedNode": 15}}], running)
    assert [one["pod"] for one in run.told("sched.victim")] == ["default/low"]
    assert bound_at(run, "new") > 21


@pytest.mark.parametrize("on", [True, False])
def test_a_kubelet_that_rejects_is_avoided(on: bool) -> None:
    """Somebody puts a pod on n1 that has no room there; its kubelet says no, and the next ones go to n2."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        misplaced = alike("web-0", generateName="web-")
        misplaced.spec.containers[0].resources.requests["cpu"].string = "9"
        misplaced.spec.nodeName = "n1"
        await run.create(misplaced)
        await run.at(3)
        assert (await run.get("web-0")).status.reason == "OutOfcpu"
        await run.create(*(alike(f"web-{number}", generateName="web-") for number in range(1, 5)))
        await run.at(10)

    nodes = [objects.node("n1"), objects.node("n2")]
    run.play(main, nodes, [{"policy": {"avoidEvictedNode": 300 if on else 0}}], [objects.pod("resident", "2", on="n1")])
    on_n1 = [name for name, node in run.bound().items() if node == "n1"]
    assert bool(on_n1) is not on
