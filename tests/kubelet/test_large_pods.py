"""Pods of very many containers: they start and stop one after the other, each in a moment."""

from __future__ import annotations

import time

from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, pod

MANY = 3_000
LONGEST_S = 30.0
"""Of CPU time. Of three thousand containers, any step that looks at all of them for each pair takes
minutes."""


def large(restart: str = "Always") -> core_v1_pb2.Pod:
    found = pod("large", "", restart=restart, grace_s=5)
    del found.spec.containers[:]
    for number in range(MANY):
        found.spec.containers.add(name=f"c{number}", image="app")
    return found


def assert_stops_at_once(cluster: Cluster, found: core_v1_pb2.Pod) -> None:
    """In the order in which fewer of them did: the first one, and the others from the last one on."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(found)
        await cluster.at(5)
        await cluster.client.delete("pods", "large", "default")
        await cluster.at(20)
        assert await cluster.phase("large") == "gone"

    begun = time.process_time()
    cluster.play(main)
    assert time.process_time() - begun < LONGEST_S
    names = [data["container"] for data in cluster.data("exited")]
    assert names == ["c0", *(f"c{number}" for number in range(MANY - 1, 0, -1))]


def test_all_containers_stop_at_once(cluster: Cluster) -> None:
    assert_stops_at_once(cluster, large())


def test_all_sidecars_stop_in_their_turns(cluster: Cluster) -> None:
    found = large()
    found.spec.initContainers.extend(found.spec.containers[1:])
    del found.spec.containers[1:]
    for one in found.spec.initContainers:
        one.restartPolicy = "Always"
    assert_stops_at_once(cluster, found)
