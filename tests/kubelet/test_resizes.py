"""Resizes of running pods in place: what the node has room for, restarts, errors, and the order of those that wait."""

from __future__ import annotations

from typing import Any

import pytest

from kemu import errors
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod


async def resize(cluster: Cluster, name: str, **resources: dict[str, str]) -> None:
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    await cluster.client.patch("pods", name, "default", patch, "resize", "strategic")


def conditions(found: core_v1_pb2.Pod | None) -> dict[str, tuple[str, str]]:
    assert found is not None
    return {one.type: (one.reason, one.message) for one in found.status.conditions if one.type.startswith("PodResize")}


async def reasons(cluster: Cluster) -> list[str]:
    found = await cluster.client.list("events", "default")
    return [one.reason for one in found.items]


def test_a_resize_that_fits_is_carried_out(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"))
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "3"})
        await cluster.at(10)
        found = await cluster.pod("a")
        assert found.metadata.generation == found.status.observedGeneration == 2
        status = found.status.containerStatuses[0]
        assert status.resources.requests["cpu"].string == status.allocatedResources["cpu"].string == "3"
        assert status.restartCount == 0
        assert conditions(found) == {}
        assert await reasons(cluster) == ["ResizeStarted", "ResizeCompleted"]
        # It counts for admission.
        await cluster.create(pod("b", cpu="2"))
        await cluster.at(15)
        assert await cluster.phase("b") == "Failed"

    cluster.play(main)


def test_a_pod_that_is_being_stopped_keeps_what_it_has(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="3", shutdown=20))
        await cluster.at(5)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(6)
        await resize(cluster, "a", requests={"cpu": "1"})
        await cluster.at(10)
        found = await cluster.pod("a")
        assert found.metadata.generation == found.status.observedGeneration == 3
        status = found.status.containerStatuses[0]
        assert status.resources.requests["cpu"].string == status.allocatedResources["cpu"].string == "3"
        assert conditions(found) == {}
        assert await reasons(cluster) == []
        # It counts for admission until it has ended.
        await cluster.create(pod("b", cpu="2"))
        await cluster.at(15)
        assert await cluster.phase("b") == "Failed"

    cluster.play(main)


def test_a_resize_waits_until_a_neighbour_leaves(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"), pod("b", cpu="2"))
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "3"})
        await cluster.at(10)
        text = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
        assert conditions(await cluster.get("a")) == {"PodResizePending": ("Deferred", text)}
        await cluster.at(20)
        await cluster.client.delete("pods", "b", "default")
        await cluster.at(25)
        found = await cluster.get("a")
        assert conditions(found) == {}
        assert found is not None
        assert found.status.containerStatuses[0].resources.requests["cpu"].string == "3"
        assert await reasons(cluster) == ["ResizeDeferred", "ResizeStarted", "ResizeCompleted"]

    cluster.play(main)


def test_a_resize_that_is_taken_back_waits_no_more(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"), pod("b", cpu="2"))
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "3"})
        await cluster.at(10)
        assert conditions(await cluster.get("a"))["PodResizePending"][0] == "Deferred"
        await resize(cluster, "a", requests={"cpu": "1"})
        await cluster.at(15)
        assert conditions(await cluster.get("a")) == {}

    cluster.play(main)


def test_another_change_of_the_pod_does_not_try_its_resize_again(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"), pod("b", cpu="2"))
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "3"})
        await cluster.at(10)
        patch = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
        await cluster.client.patch("pods", "a", "default", patch, "", "strategic")
        await cluster.at(15)
        found = await cluster.pod("a")
        assert found.metadata.generation == 3
        pending = next(one for one in found.status.conditions if one.type == "PodResizePending")
        assert pending.observedGeneration == 2
        assert (await reasons(cluster)).count("ResizeDeferred") == 1

    cluster.play(main)


def test_a_resize_that_waits_keeps_its_place_whatever_it_becomes(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        high = pod("a", cpu="1")
        high.spec.priorityClassName = "system-cluster-critical"
        await cluster.create(high, pod("b", cpu="2"))
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "3"})
        await resize(cluster, "b", requests={"cpu": "4"})
        await cluster.at(10)
        await resize(cluster, "b", requests={"cpu": "1"})
        # It has been tried after the other, for which there is room only now.
        await cluster.at(10.5)
        assert list(conditions(await cluster.get("b"))) == ["PodResizeInProgress"]
        assert list(conditions(await cluster.get("a"))) == ["PodResizePending"]
        # Its smaller resize is completed, and the other tried again.
        await cluster.at(15)
        found = await cluster.pod("a")
        assert found.status.containerStatuses[0].resources.requests["cpu"].string == "3"

    cluster.play(main)


def test_the_higher_priority_is_resized_first(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        low, high = pod("low", cpu="1"), pod("high", cpu="1")
        high.spec.priorityClassName = "system-cluster-critical"
        await cluster.create(low, high, pod("other", cpu="1500m"))
        await cluster.at(5)
        await resize(cluster, "low", requests={"cpu": "2"})
        await cluster.at(6)
        await resize(cluster, "high", requests={"cpu": "2500m"})
        await cluster.at(10)
        assert [*conditions(await cluster.get("low")), *conditions(await cluster.get("high"))] == [
            "PodResizePending", "PodResizePending",
        ]  # fmt: skip
        await cluster.client.delete("pods", "other", "default")
        await cluster.at(15)
        assert conditions(await cluster.get("high")) == {}
        assert list(conditions(await cluster.get("low"))) == ["PodResizePending"]

    cluster.play(main)


def test_a_resize_policy_may_ask_for_a_restart(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a", cpu="1", restart="Always", shutdown=3)
        found.spec.containers[0].resizePolicy.add(resourceName="cpu", restartPolicy="RestartContainer")
        await cluster.create(found)
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "2"})
        await cluster.at(7)
        assert "PodResizeInProgress" in conditions(await cluster.get("a"))
        await cluster.at(15)
        now = await cluster.pod("a")
        assert conditions(now) == {}
        assert now.status.containerStatuses[0].restartCount == 1
        assert "Killing" in await reasons(cluster)

    cluster.play(main)


@pytest.mark.parametrize("waits", [False, True])
def test_a_container_is_held_to_the_limit_that_it_has(cluster: Cluster, *, waits: bool) -> None:
    """It starts anew for another limit; one that waits for room holds nobody to it."""

    async def main(cluster: Cluster) -> None:
        found = pod("a", cpu="1")
        resources = found.spec.containers[0].resources
        resources.requests["memory"].string, resources.limits["memory"].string = "100Mi", "1Gi"
        found.spec.containers[0].resizePolicy.add(resourceName="memory", restartPolicy="RestartContainer")
        found.metadata.annotations["kemu.dev/usage"] = '{"memory": "600Mi"}'
        await cluster.create(found, pod("b", cpu="2"))
        await cluster.at(5)
        await resize(cluster, "a", limits={"memory": "500Mi"}, requests={"cpu": "3" if waits else "1"})
        await cluster.at(10)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(30)
        now = await cluster.pod("a")
        reason = now.status.containerStatuses[0].lastState.terminated.reason
        assert reason == ("" if waits else "OOMKilled")

    cluster.play(main, [node(memory="8Gi")])


def test_memory_does_not_shrink_below_what_is_used(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a", cpu="1")
        resources = found.spec.containers[0].resources
        resources.requests["memory"].string, resources.limits["memory"].string = "100Mi", "1Gi"
        usage = '{"memory": {"steps": [{"at": 0, "value": "600Mi"}, {"at": 40, "value": "200Mi"}]}}'
        found.metadata.annotations["kemu.dev/usage"] = usage
        await cluster.create(found)
        await cluster.at(5)
        await resize(cluster, "a", limits={"memory": "500Mi"})
        await cluster.at(10)
        text = (
            'cannot decrease memory limits: attempting to set container "main" memory limit (524288000) '
            "below current usage (629145600)"
        )
        assert conditions(await cluster.get("a")) == {"PodResizeInProgress": ("Error", text)}
        await cluster.at(60)
        assert conditions(await cluster.get("a")) == {}
        assert await reasons(cluster) == ["ResizeStarted", "ResizeError", "ResizeCompleted"]

    cluster.play(main, [node(memory="8Gi")])


def test_a_restarted_kubelet_goes_on_with_a_resize_that_waits(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"), pod("b", cpu="2"))
        await cluster.at(5)
        await resize(cluster, "a", requests={"cpu": "3"})
        await cluster.at(10)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(12)
        await cluster.runtime.restart("kubelet/n1")
        # It looks again half a minute after its start.
        await cluster.at(20)
        assert conditions(await cluster.get("a")) == {}
        await cluster.at(45)
        assert conditions(await cluster.get("a"))["PodResizePending"][0] == "Deferred"
        assert await reasons(cluster) == ["ResizeDeferred", "ResizeDeferred"]
        await cluster.client.delete("pods", "b", "default")
        await cluster.at(55)
        found = await cluster.get("a")
        assert conditions(found) == {}
        assert found is not None
        assert found.status.containerStatuses[0].resources.requests["cpu"].string == "3"

    cluster.play(main)


def test_a_resize_comes_while_the_kubelet_is_down(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"), pod("b", cpu="2"))
        await cluster.at(5)
        await cluster.runtime.crash("kubelet/n1")
        await resize(cluster, "a", requests={"cpu": "3"})
        found = await cluster.pod("a")
        status = found.status.containerStatuses[0]
        assert status.resources.requests["cpu"].string == status.allocatedResources["cpu"].string == "1"
        await cluster.at(12)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(20)
        # What had been allocated still counts: nobody has to leave for a resize.
        assert await cluster.phase("b") == "Running"
        await cluster.client.patch("pods", "b", "default", {"metadata": {"labels": {"x": "y"}}}, "", "strategic")
        await cluster.at(45)
        text = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
        assert conditions(await cluster.get("a")) == {"PodResizePending": ("Deferred", text)}
        assert await cluster.phase("b") == "Running"

    cluster.play(main)


@pytest.mark.parametrize("what", ["limit", "request"])
def test_a_restarted_kubelet_goes_on_with_a_resize_that_it_had_allocated(cluster: Cluster, what: str) -> None:
    async def main(cluster: Cluster) -> None:
        found = pod("a", cpu="1", shutdown=20)
        resources = found.spec.containers[0].resources
        resources.requests["memory"].string, resources.limits["memory"].string = "100Mi", "1Gi"
        found.spec.containers[0].resizePolicy.add(resourceName="cpu", restartPolicy="RestartContainer")
        usage = '{"memory": {"steps": [{"at": 0, "value": "600Mi"}, {"at": 40, "value": "200Mi"}]}}'
        found.metadata.annotations["kemu.dev/usage"] = usage
        await cluster.create(found)
        await cluster.at(5)
        wanted = {"limits": {"memory": "500Mi"}} if what == "limit" else {"requests": {"cpu": "2"}}
        await resize(cluster, "a", **wanted)
        await cluster.at(10)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.at(12)
        await cluster.runtime.restart("kubelet/n1")
        await cluster.at(15)
        assert list(conditions(await cluster.get("a"))) == ["PodResizeInProgress"]
        await cluster.at(70)
        now = await cluster.pod("a")
        assert conditions(now) == {}
        status = now.status.containerStatuses[0]
        assert status.restartCount == (what == "request")
        assert status.resources.requests["cpu"].string == ("2" if what == "request" else "1")
        assert status.resources.limits["memory"].string == ("500Mi" if what == "limit" else "1Gi")
        assert (await reasons(cluster)).count("ResizeStarted") == 1

    cluster.play(main, [node(memory="8Gi")])


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"image": "other"}, ""),
        ({"resources": {"requests": {"memory": "1Gi"}}}, ""),
        ({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1Gi"}}}, ""),
        ({"resources": {part: {"example.com/gpu": "1"} for part in ("requests", "limits")}}, "only cpu and memory"),
        ({"resources": {"requests": {"cpu": None}}}, "QOS Class may not change"),
    ],
)  # fmt: skip
def test_what_a_resize_may_change(cluster: Cluster, patch: dict[str, Any], text: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="1"))
        await cluster.at(5)
        whole = {"spec": {"priority": 7, "containers": [{"name": "main", **patch}]}}
        if text:
            with pytest.raises(errors.Invalid, match=text):
                await cluster.client.patch("pods", "a", "default", whole, "resize", "strategic")
            return
        found = await cluster.client.patch("pods", "a", "default", whole, "resize", "strategic")
        assert (found.spec.priority, found.spec.containers[0].image) == (0, "app")
        assert found.metadata.generation == 1 + ("resources" in patch)

    cluster.play(main)


def _pod_level(cpu: str) -> dict[str, Any]:
    return {"spec": {"resources": {"requests": {"cpu": cpu}}}}


def test_the_resources_of_a_pod_are_resized(cluster: Cluster) -> None:
    """InPlacePodLevelResourcesVerticalScaling."""

    async def main(cluster: Cluster) -> None:
        one = pod("a", cpu="")
        one.spec.resources.requests["cpu"].string = "1"
        await cluster.create(one)
        await cluster.at(5)
        await cluster.client.patch("pods", "a", "default", _pod_level("3"), "resize", "strategic")
        await cluster.at(10)
        found = await cluster.pod("a")
        assert conditions(found) == {}
        assert found.status.resources.requests["cpu"].string == "3"
        assert found.status.allocatedResources["cpu"].string == "3"
        await cluster.create(pod("b", cpu="2"))
        await cluster.at(15)
        assert await cluster.phase("b") == "Failed"

    cluster.play(main)


def test_a_resize_that_the_kubelet_cannot_carry_out_is_refused(cluster: Cluster) -> None:
    """``NodeDeclaredFeatureValidator``."""

    async def main(cluster: Cluster) -> None:
        one = pod("a", cpu="")
        one.spec.resources.requests["cpu"].string = "1"
        elsewhere = pod("b", cpu="", on="nosuch")
        elsewhere.spec.resources.requests["cpu"].string = "1"
        await cluster.create(one, elsewhere)
        await cluster.at(5)
        refusals = {}
        for name in "ab":
            with pytest.raises(errors.Forbidden) as refused:
                await cluster.client.patch("pods", name, "default", _pod_level("3"), "resize", "strategic")
            refusals[name] = refused.value.message
        assert refusals == {
            "a": (
                'pods "a" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling which '
                'are not available on node "n1"'
            ),
            "b": 'pods "b" is forbidden: node "nosuch" not found',
        }

    cluster.play(main, kubelet={"featureGates": {"InPlacePodLevelResourcesVerticalScaling": False}})
