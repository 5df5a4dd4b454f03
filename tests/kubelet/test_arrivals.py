"""Which pods a running kubelet takes: in the order of their arrival, by what is free then."""

from __future__ import annotations

import asyncio

from kemu.emulated.objects import meta
from tests.kubelet.cluster import Cluster, node, pod


def test_the_first_takes_the_room_and_the_second_is_refused(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("first", cpu="3"), pod("second", cpu="2"), pod("third", cpu="1"))
        await cluster.at(1)
        found = await cluster.pod("second")
        assert found.status.phase == "Failed"
        assert found.status.reason == "OutOfcpu"
        assert found.status.message == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
        )
        assert found.status.HasField("startTime")
        assert await cluster.phase("first") == await cluster.phase("third") == "Running"

    cluster.play(main)
    refused = cluster.data("admit", "second")[0]
    assert (refused["ok"], refused["reason"]) == (False, "OutOfcpu")
    assert refused["message"].startswith("Node didn't have enough resource: cpu")
    assert [name for _, _, name in cluster.told("running")] == ["first", "third"]


def test_the_number_of_pods_is_a_resource(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(*(pod(name, cpu="") for name in "abc"))
        await cluster.at(1)
        assert [await cluster.phase(name) for name in "abc"] == ["Running", "Running", "Failed"]

    cluster.play(main, [node(pods="2")])
    assert cluster.data("admit", "c")[0]["reason"] == "OutOfpods"


def test_a_refused_pod_is_removed_when_it_is_deleted(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("big", cpu="9"))
        await cluster.at(1)
        await cluster.client.delete("pods", "big", "default")
        await cluster.at(2)
        assert await cluster.phase("big") == "gone"
        await cluster.create(pod("big", cpu="1"))
        await cluster.at(3)
        assert await cluster.phase("big") == "Running"

    cluster.play(main)


def test_a_pod_that_the_taints_of_its_node_turn_away(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        tolerant = pod("tolerant")
        tolerant.spec.tolerations.add(key="k", operator="Exists")
        await cluster.create(pod("a"), tolerant)
        await cluster.at(1)
        assert [await cluster.phase(name) for name in ("a", "tolerant")] == ["Failed", "Running"]

    one = node()
    one.spec.taints.add(key="k", effect="NoExecute")
    cluster.play(main, [one])
    assert cluster.data("admit", "a")[0]["reason"] == "TaintToleration"


def test_host_ports_are_free_again_when_their_pod_is_gone(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        for name in ("a", "b", "c"):
            one = pod(name)
            one.spec.containers[0].ports.add(containerPort=80, hostPort=8080)
            await cluster.create(one)
            await cluster.clock.sleep(1)
            if name == "b":
                assert await cluster.phase("b") == "Failed"
                await cluster.client.delete("pods", "a", "default")
                await cluster.clock.sleep(1)
        assert await cluster.phase("c") == "Running"

    cluster.play(main)
    assert cluster.data("admit", "b")[0]["reason"] == "NodePorts"


def test_a_changed_node_counts_for_the_next_pod(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("before", cpu="5"))
        await cluster.at(1)
        one = await cluster.client.get("nodes", "n1")
        one.status.allocatable["cpu"].string = "8"
        await cluster.client.update_status(one)
        await cluster.at(2)
        await cluster.create(pod("after", cpu="5"))
        await cluster.at(3)
        assert [await cluster.phase(name) for name in ("before", "after")] == ["Failed", "Running"]

    cluster.play(main)


def test_the_node_is_read_again_before_affinity_alone_refuses_a_pod() -> None:
    """News are slow: when the pods arrive the label is there, but this kubelet has not heard of it yet."""
    cluster = Cluster(network={"watchLatency": 0.5})

    async def main(cluster: Cluster) -> None:
        picky = pod("picky", cpu="3")
        picky.spec.nodeSelector["zone"] = "a"
        other = pod("other", cpu="3")
        never = pod("never")
        never.spec.nodeSelector["zone"] = "b"
        await cluster.create(picky, other, never)
        one = await cluster.client.get("nodes", "n1")
        one.metadata.labels["zone"] = "a"
        await cluster.client.update(one)
        await cluster.at(2)
        assert [await cluster.phase(name) for name in ("picky", "other", "never")] == ["Running", "Failed", "Failed"]

    cluster.play(main)
    # Those that came after it waited for its turn.
    assert [name for _, _, name in cluster.told("admit")] == ["picky", "other", "never"]
    assert cluster.data("admit", "other")[0]["reason"] == "OutOfcpu"
    assert cluster.data("admit", "never")[0]["reason"] == "NodeAffinity"


def test_a_pod_deleted_while_the_node_is_read_again(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        picky = pod("picky")
        picky.spec.nodeSelector["zone"] = "b"
        created = await cluster.client.create(picky)
        await asyncio.gather(
            cluster.client.delete("pods", "picky", "default", uid=created.metadata.uid), cluster.create(pod("next"))
        )
        await cluster.at(2)
        assert await cluster.phase("picky") == "gone"
        assert await cluster.phase("next") == "Running"

    cluster.play(main)
    # It went before it could be refused.
    assert cluster.told() == [(0.0, "admit", "next"), (0.0, "running", "next")]


def test_what_ran_before_is_taken_over_without_being_asked(cluster: Cluster) -> None:
    async def before(cluster: Cluster) -> None:
        await cluster.run_before(pod("big", cpu="2", run=50, restart="Never"))
        await cluster.run_before(pod("bigger", cpu="2", shutdown=10))
        await cluster.create(pod("new", cpu="1"))

    async def main(cluster: Cluster) -> None:
        await cluster.at(1)
        assert [await cluster.phase(name) for name in ("big", "bigger", "new")] == ["Running", "Running", "Failed"]
        found = await cluster.pod("bigger")
        assert meta.has_condition(found.status.conditions, "Ready")
        assert found.status.startTime.seconds == cluster.clock.epoch_unix_s
        await cluster.at(5)
        await cluster.client.delete("pods", "bigger", "default")
        await cluster.at(51)
        assert await cluster.phase("big") == "Succeeded"

    cluster.play(main, before=before)
    assert cluster.told() == [
        (0.0, "admit", "new"),
        (5.0, "terminating", "bigger"),
        (15.0, "terminated", "bigger"),
        (50.0, "finished", "big"),
    ]


def test_a_start_before_the_run_counts_from_its_beginning(cluster: Cluster) -> None:
    async def before(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("old", run=50, restart="Never"))
        created.status.phase = "Running"
        created.status.startTime.seconds = cluster.clock.epoch_unix_s - 3600
        await cluster.client.update_status(created)

    async def main(cluster: Cluster) -> None:
        await cluster.at(60)

    cluster.play(main, before=before)
    assert cluster.told() == [(50.0, "finished", "old")]
