"""Room for a pod that must run: whom a running kubelet kills for it, and what everybody sees of that."""

from __future__ import annotations

import pytest

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod


def critical(name: str, cpu: str = "1", **kwargs: float) -> core_v1_pb2.Pod:
    """Of priority 2,000,001,000."""
    found = pod(name, cpu, **kwargs)  # type: ignore[arg-type]
    found.spec.priorityClassName = "system-node-critical"
    return found


def limited(name: str, cpu: str, **kwargs: float) -> core_v1_pb2.Pod:
    """Guaranteed: it asks for as much as it may use."""
    found = pod(name, cpu, **kwargs)  # type: ignore[arg-type]
    resources = found.spec.containers[0].resources
    for amounts in (resources.requests, resources.limits):
        amounts["cpu"].string = cpu
        amounts["memory"].string = "1Gi"
    return found


def test_a_critical_pod_gets_the_room_of_another(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("victim", "3", shutdown=20), pod("spared", "1"))
        await cluster.at(1)
        await cluster.create(critical("important", "2"))
        await cluster.at(2)
        # Its containers have the time to end that they would have had in any case.
        assert await cluster.phase("victim") == "Running"
        assert await cluster.phase("important") == "Pending"
        await cluster.at(22)
        victim = await cluster.pod("victim")
        assert (victim.status.phase, victim.status.reason) == ("Failed", "Preempting")
        assert victim.status.message == "Preempted in order to admit critical pod"
        target = meta.get_condition(victim.status.conditions, "DisruptionTarget")
        assert target is not None
        assert (target.status, target.reason) == ("True", "TerminationByKubelet")
        assert target.message == "Pod was preempted by Kubelet to accommodate a critical pod."
        assert victim.status.containerStatuses[0].state.terminated.exitCode == 0
        # Nobody has deleted it.
        assert not victim.metadata.HasField("deletionTimestamp")
        assert [await cluster.phase(name) for name in ("important", "spared")] == ["Running", "Running"]
        (event,) = (await cluster.client.list("events", "default")).items
        assert (event.type, event.reason, event.involvedObject.name) == ("Warning", "Preempting", "victim")
        assert event.message == "Preempted in order to admit critical pod"
        assert event.reportingComponent == "kubelet"

    cluster.play(main)
    assert cluster.told("preempting", "terminating", "terminated", "admit")[2:] == [
        (1.0, "preempting", "victim"),
        (1.0, "terminating", "victim"),
        (21.0, "terminated", "victim"),
        (21.0, "admit", "important"),
    ]
    told = cluster.data("preempting", "victim")[0]
    assert (told["by"], told["node"], told["grace_s"]) == ("default/important", "n1", 30)


def test_a_pod_that_is_not_critical_kills_nobody(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("first", "3"), pod("second", "2"))
        await cluster.at(60)
        assert [await cluster.phase(name) for name in ("first", "second")] == ["Running", "Failed"]

    cluster.play(main)
    assert cluster.told("preempting") == []


def test_victims_are_killed_one_after_the_other_the_less_guaranteed_first(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(limited("guaranteed", "2", shutdown=10), pod("burstable", "2", shutdown=5))
        await cluster.at(1)
        await cluster.create(critical("important", "4"))
        await cluster.at(30)
        assert await cluster.phase("important") == "Running"

    cluster.play(main)
    assert cluster.told("preempting", "terminated", "running")[2:] == [
        (1.0, "preempting", "burstable"),
        (6.0, "terminated", "burstable"),
        (6.0, "preempting", "guaranteed"),
        (16.0, "terminated", "guaranteed"),
        (16.0, "running", "important"),
    ]


def test_a_grace_period_that_is_too_short_ends_in_a_kill(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("victim", "4", grace_s=5, shutdown=60))
        await cluster.at(1)
        await cluster.create(critical("important", "4"))
        await cluster.at(7)
        victim = await cluster.pod("victim")
        assert victim.status.containerStatuses[0].state.terminated.exitCode == 137
        assert await cluster.phase("important") == "Running"

    cluster.play(main)
    assert cluster.told("terminated") == [(6.0, "terminated", "victim")]


def test_nothing_is_killed_in_vain(cluster: Cluster) -> None:
    """One critical pod wants more than the others leave it, the other fails for another reason as well."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(critical("resident", "2"), pod("small", "1"))
        await cluster.at(1)
        picky = critical("picky", "2")
        picky.spec.nodeSelector["zone"] = "b"
        await cluster.create(critical("big", "4"), picky)
        await cluster.at(60)
        big, picky_now = await cluster.get("big"), await cluster.get("picky")
        assert big is not None
        assert picky_now is not None
        assert (big.status.phase, big.status.reason) == ("Failed", "UnexpectedAdmissionError")
        assert "no set of running pods found to reclaim resources: [(res: cpu, q: 2000), ]" in big.status.message
        assert (picky_now.status.phase, picky_now.status.reason) == ("Failed", "NodeAffinity")
        assert await cluster.phase("small") == "Running"

    cluster.play(main)
    assert cluster.told("preempting") == []


def test_a_kubelet_that_kills_hears_nothing_meanwhile(cluster: Cluster) -> None:
    """The kill blocks it: a pod that is deleted, and one that arrives, have to wait."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("victim", "3", shutdown=20), pod("other", "1"))
        await cluster.at(1)
        await cluster.create(critical("important", "3"))
        await cluster.at(2)
        await cluster.client.delete("pods", "other", "default")
        await cluster.create(pod("late", "1"))
        await cluster.at(20)
        assert await cluster.phase("other") == "Running"
        await cluster.at(60)
        assert [await cluster.phase(name) for name in ("other", "important", "late")] == ["gone", "Running", "Running"]

    cluster.play(main)
    assert cluster.told("terminating", "terminated", "admit")[2:] == [
        (1.0, "terminating", "victim"),
        (21.0, "terminated", "victim"),
        (21.0, "admit", "important"),
        (21.0, "terminating", "other"),
        (21.0, "terminated", "other"),
        (21.0, "admit", "late"),
    ]


def test_a_victim_that_is_being_deleted_ends_as_it_would_have(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("victim", "4", shutdown=20))
        await cluster.at(1)
        await cluster.client.delete("pods", "victim", "default")
        await cluster.at(6)
        await cluster.create(critical("important", "4"))
        await cluster.at(22)
        assert [await cluster.phase(name) for name in ("victim", "important")] == ["gone", "Running"]

    cluster.play(main)
    assert cluster.told("terminated", "admit")[1:] == [(21.0, "terminated", "victim"), (21.0, "admit", "important")]


@pytest.mark.parametrize("for_all", [False, True])
def test_kubelets_that_preempt_for_every_pod(cluster: Cluster, for_all: bool) -> None:
    """The alternative of the design document: any higher priority is enough."""

    async def main(cluster: Cluster) -> None:
        for name, value in (("low", 1), ("high", 10), ("shy", 100)):
            priority_class = scheduling_v1_pb2.PriorityClass(value=value)
            priority_class.metadata.name = name
            if name == "shy":
                priority_class.preemptionPolicy = "Never"
            await cluster.client.create(priority_class)
        low, equal, high, shy = pod("low-1", "4"), pod("low-2", "1"), pod("high", "2"), pod("shy", "4")
        low.spec.priorityClassName = equal.spec.priorityClassName = "low"
        high.spec.priorityClassName, shy.spec.priorityClassName = "high", "shy"
        for one in (low, equal, shy, high):
            await cluster.create(one)
            await cluster.clock.sleep(1)
        expected = ["Failed", "Failed", "Failed", "Running"] if for_all else ["Running", "Failed", "Failed", "Failed"]
        assert [await cluster.phase(name) for name in ("low-1", "low-2", "shy", "high")] == expected

    cluster.play(main, [node()], preemptsForAll=for_all)
    assert cluster.told("preempting") == ([(3.0, "preempting", "low-1")] if for_all else [])
