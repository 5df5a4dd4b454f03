"""Images: what has to be pulled, one after the other or together, and pulls that fail."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod

PULL_ERROR = "kemu.dev/image-pull-error"


def of(name: str, *images: str, policy: str = "", **life: float) -> core_v1_pb2.Pod:
    """A pod with a container for each image."""
    found = pod(name, "", **life)  # type: ignore[arg-type]
    del found.spec.containers[:]
    for number, image in enumerate(images):
        container = found.spec.containers.add(name=f"c{number}", image=image)
        if policy:
            container.imagePullPolicy = policy
    return found


async def waiting(cluster: Cluster, name: str) -> tuple[str, str]:
    """Reason and message of the first container."""
    found = await cluster.pod(name)
    state: Any = found.status.containerStatuses[0].state.waiting
    return state.reason, state.message


def test_the_images_of_a_pod_come_one_after_the_other(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("a", "x:1", "y:1"))
        await cluster.at(7)
        found = await cluster.pod("a")
        # The first one runs already.
        assert found.status.phase == "Pending"
        assert found.status.containerStatuses[0].state.HasField("running")
        assert found.status.containerStatuses[1].state.waiting.reason == "ContainerCreating"
        await cluster.at(20)

    cluster.play(main, timing={"imagePull": 5})
    assert [(one["container"], one["image"]) for one in cluster.data("pulled")] == [("c0", "x:1"), ("c1", "y:1")]
    assert cluster.told("running") == [(10.0, "running", "a")]


@pytest.mark.parametrize(
    ("configuration", "running"),
    [
        ({}, [5.0, 10.0, 15.0]),
        ({"serializeImagePulls": False}, [5.0, 5.0, 5.0]),
        ({"serializeImagePulls": False, "maxParallelImagePulls": 2}, [5.0, 5.0, 10.0]),
    ],
)
def test_how_many_pulls_go_on_at_the_same_time(
    cluster: Cluster, configuration: dict[str, Any], running: list[float]
) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(*[of(name, f"{name}:1") for name in "abc"])
        await cluster.at(30)

    cluster.play(main, timing={"imagePull": 5}, kubelet=configuration)
    assert [when for when, _, _ in cluster.told("running")] == running


def test_who_waits_for_a_pull_gives_its_place_up_when_it_is_deleted(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(*[of(name, f"{name}:1") for name in "abc"])
        await cluster.at(1)
        await cluster.client.delete("pods", "a", "default")
        await cluster.client.delete("pods", "b", "default")
        await cluster.at(30)
        assert [await cluster.phase(name) for name in "abc"] == ["gone", "gone", "Running"]

    cluster.play(main, timing={"imagePull": 5})
    assert cluster.told("running") == [(6.0, "running", "c")]


def test_an_image_that_is_always_pulled_takes_time_only_once(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("a", "x", policy="Always"))
        await cluster.at(10)
        await cluster.create(of("b", "x", policy="Always"))
        await cluster.at(20)

    cluster.play(main, timing={"imagePull": 5})
    assert cluster.told("running") == [(5.0, "running", "a"), (10.0, "running", "b")]


def test_a_pull_that_fails_is_tried_again_later_and_later(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        one = of("a", "x:1")
        one.metadata.annotations[PULL_ERROR] = "no such host"
        await cluster.create(one)
        await cluster.at(0.5)
        assert await waiting(cluster, "a") == ("ErrImagePull", "no such host")
        await cluster.at(5)
        assert await waiting(cluster, "a") == (
            "ImagePullBackOff",
            'Back-off pulling image "x:1": ErrImagePull: no such host',
        )
        assert await cluster.phase("a") == "Pending"
        await cluster.at(35)
        healed: dict[str, Any] = {"metadata": {"annotations": {PULL_ERROR: None}}}
        await cluster.client.patch("pods", "a", "default", healed)
        await cluster.at(100)
        assert await cluster.phase("a") == "Running"

    cluster.play(main)
    assert [one["delay_s"] for one in cluster.data("pull_failed")] == [10, 20, 40]
    assert cluster.told("running") == [(70.0, "running", "a")]


def test_one_container_without_an_image_does_not_hold_up_the_others(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        one = of("a", "x:1", "y:1")
        one.metadata.annotations[f"{PULL_ERROR}.c0"] = "denied"
        await cluster.create(one)
        await cluster.at(5)
        found = await cluster.pod("a")
        assert found.status.phase == "Pending"
        assert found.status.containerStatuses[1].state.HasField("running")

    cluster.play(main)


def test_an_image_that_must_not_be_pulled(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(of("here", "x:1", policy="Never"), of("a", "y:1", policy="Never"))
        await cluster.at(5)
        assert await cluster.phase("here") == "Running"
        assert await waiting(cluster, "a") == (
            "ErrImageNeverPull",
            'Container image "y:1" is not present with pull policy of Never',
        )
        # Somebody else brings it.
        await cluster.create(of("b", "y:1"))
        await cluster.at(20)
        assert await cluster.phase("a") == "Running"

    one = node()
    one.status.images.add(names=["x:1"])
    cluster.play(main, [one], timing={"imagePull": 2})
    assert cluster.told("running")[1:] == [(7.0, "running", "b"), (7.0, "running", "a")]


def with_model(name: str, *, policy: str = "", error: str = "", mounts: tuple[str, ...] = ("c0",)) -> core_v1_pb2.Pod:
    """Two containers, of which those of ``mounts`` mount the image of a model."""
    found = of(name, "x:1", "y:1")
    source = found.spec.volumes.add(name="model").volumeSource.image
    source.reference, source.pullPolicy = "models/a:1", policy
    for container in found.spec.containers:
        if container.name in mounts:
            container.volumeMounts.add(name="model", mountPath="/model")
    if error:
        found.metadata.annotations[f"{PULL_ERROR}.model"] = error
    return found


def test_the_image_of_a_volume_comes_first(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(with_model("a"))
        await cluster.at(20)

    cluster.play(main, timing={"imagePull": 5})
    assert [one["image"] for one in cluster.data("pulled")] == ["models/a:1", "x:1", "y:1"]
    assert cluster.told("running") == [(15.0, "running", "a")]


def test_without_the_image_of_a_volume_its_containers_wait(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(with_model("a", error="manifest unknown"))
        await cluster.at(1)
        assert (await waiting(cluster, "a"))[0] == "ErrImagePull"
        await cluster.at(3)
        reason, message = await waiting(cluster, "a")
        assert reason == "ImagePullBackOff"
        assert message == 'Back-off pulling image "models/a:1": ErrImagePull: manifest unknown'
        found = await cluster.pod("a")
        # The other one mounts nothing of it.
        assert found.status.containerStatuses[1].state.HasField("running")
        healed: dict[str, Any] = {"metadata": {"annotations": {f"{PULL_ERROR}.model": None}}}
        await cluster.client.patch("pods", "a", "default", healed)
        await cluster.at(60)

    cluster.play(main)
    assert cluster.told("running") == [(10.0, "running", "a")]


def test_a_volume_that_nobody_mounts_keeps_nobody(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(with_model("a", error="manifest unknown", mounts=()))
        await cluster.create(with_model("b", policy="Never", mounts=()))
        await cluster.at(5)
        assert await cluster.phase("a") == await cluster.phase("b") == "Running"

    cluster.play(main)


def test_an_image_that_may_not_be_pulled_comes_with_another_pod(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(with_model("a", policy="Never"))
        await cluster.at(2)
        assert (await waiting(cluster, "a"))[0] == "ErrImageNeverPull"
        await cluster.create(with_model("b"))
        await cluster.at(5)
        assert await cluster.phase("a") == "Running"

    cluster.play(main)
