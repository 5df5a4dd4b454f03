"""What a Node tells of its images, and what is kept of them."""

from __future__ import annotations

from typing import Any

from kemu.emulated.kubelet.images import stores
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod

MEBIBYTE = 1 << 20
SIZES = {"small:1": 10 * MEBIBYTE, "large:latest": 900 * MEBIBYTE, "other:1": 10 * MEBIBYTE}


def of(name: str, image: str, policy: str = "", **more: Any) -> core_v1_pb2.Pod:
    found = pod(name, "", **more)
    found.spec.containers[0].image = image
    found.spec.containers[0].imagePullPolicy = policy
    return found


async def told(cluster: Cluster) -> list[tuple[list[str], int]]:
    found = await cluster.client.get("nodes", "n1", "")
    return [(list(image.names), image.sizeBytes // MEBIBYTE) for image in found.status.images]


def with_images(*names: str) -> core_v1_pb2.Node:
    found = node()
    for name in names:
        found.status.images.add(names=[name])
    return found


def test_the_node_tells_what_was_pulled_the_largest_first(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("a", "small:1"), of("b", "large"), of("c", "other:1"), of("d", "unknown:1"))
        await cluster.at(29)
        # The kubelet looks every 30 s what there is, and reports it within 10 s.
        assert await told(cluster) == []
        await cluster.at(45)
        assert await told(cluster) == [(["large:latest"], 900), (["other:1"], 10), (["small:1"], 10)]

    cluster.play(main, images=SIZES)


def test_no_more_images_than_it_shall_tell(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("a", "small:1"), of("b", "large"))
        await cluster.at(45)
        assert await told(cluster) == [(["large:latest"], 900)]

    cluster.play(main, images=SIZES, kubelet={"nodeStatusMaxImages": 1})


def test_nothing_is_written_for_images_of_unknown_size(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(11)
        before = (await cluster.client.get("nodes", "n1", "")).metadata.resourceVersion
        await cluster.create(of("a", "unknown:1"), of("b", stores.EVERYWHERE))
        await cluster.at(100)
        assert (await cluster.client.get("nodes", "n1", "")).metadata.resourceVersion == before

    cluster.play(main, images=SIZES)


def test_images_that_are_there_from_the_start_are_told_at_once(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        assert await told(cluster) == [(["large:latest"], 900)]
        await cluster.create(of("a", "large:latest", "Never"), of("b", "unknown:1", "Never"))
        await cluster.at(5)
        assert [await cluster.phase(name) for name in "ab"] == ["Running", "Running"]

    cluster.play(main, [with_images("large", "unknown:1")], images=SIZES)


def test_the_image_of_a_pod_that_runs_from_the_start_is_there(cluster: Cluster) -> None:
    async def before(cluster: Cluster) -> None:
        await cluster.run_before(of("a", "large"))

    async def main(cluster: Cluster) -> None:
        await cluster.at(12)
        assert await told(cluster) == [(["large:latest"], 900)]

    cluster.play(main, before=before, images=SIZES)


def test_a_container_without_an_image_of_its_own_waits_for_none(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("a", stores.EVERYWHERE), of("b", stores.EVERYWHERE, "Never"))
        await cluster.at(10)

    cluster.play(main, timing={"imagePull": 5})
    assert cluster.told("running") == [(0.0, "running", "a"), (0.0, "running", "b")]


def test_images_outlive_the_kubelet(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("a", "large"))
        await cluster.at(10)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(15)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(20)
        assert await told(cluster) == [(["large:latest"], 900)]
        await cluster.create(of("b", "large:latest", "Never"))
        await cluster.at(25)
        assert await cluster.phase("b") == "Running"

    cluster.play(main, images=SIZES)


def test_a_status_that_somebody_else_writes_over_is_put_right(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(1)
        found = await cluster.client.get("nodes", "n1", "")
        del found.status.images[:]
        await cluster.client.update_status(found)
        await cluster.at(12)
        assert await told(cluster) == [(["large:latest"], 900)]

    cluster.play(main, [with_images("large")], images=SIZES)
