"""Which statuses of a pod a kubelet writes: all of a real kubelet's, or no more than somebody acts on."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.client import informers
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, pod

GENERATED = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


class Seen:
    """The states of a pod that a watch brings, without repetitions: phase, state of its containers, generation seen."""

    def __init__(self) -> None:
        self.states: list[tuple[str, str, int]] = []

    def on_add(self, obj: Any) -> None:
        status = obj.status
        containers = []
        for one in (*status.initContainerStatuses, *status.containerStatuses):
            kind = next(name for name in ("waiting", "running", "terminated") if one.state.HasField(name))
            containers.append(one.state.waiting.reason if kind == "waiting" else kind)
        state = (status.phase, " ".join(containers), status.observedGeneration)
        if not self.states or self.states[-1] != state:
            self.states.append(state)

    def on_update(self, old: Any, new: Any) -> None:
        self.on_add(new)

    def on_delete(self, old: Any) -> None:
        self.states.append(("gone", "", 0))


def seen(cluster: Cluster, one: core_v1_pb2.Pod, writes: str, *, delete: bool = False) -> list[tuple[str, str, int]]:
    found = Seen()

    async def main(cluster: Cluster) -> None:
        informers.Informer(cluster.client, "pods", handler=found).start()
        await cluster.create(one)
        await cluster.at(20)
        if delete:
            await cluster.client.delete("pods", one.metadata.name, "default")
            await cluster.at(60)

    cluster.play(main, podStatuses=writes)
    return found.states


@pytest.mark.parametrize("start", [0, 2, 10])
def test_a_pod_is_reported_as_being_created_before_its_containers_start(cluster: Cluster, start: float) -> None:
    """``SyncPod`` of pkg/kubelet sets the status before the runtime starts containers, however soon they run."""
    assert seen(cluster, pod("a", start=start), "exact") == [
        ("Pending", "", 0),
        ("Pending", "ContainerCreating", 1),
        ("Running", "running", 1),
    ]


def test_a_pod_with_init_containers_is_reported_as_initializing(cluster: Cluster) -> None:
    one = pod("a")
    one.spec.initContainers.add(name="first", image="app")
    states = seen(cluster, one, "exact")
    assert states[:2] == [("Pending", "", 0), ("Pending", "PodInitializing PodInitializing", 1)]
    assert states[-1] == ("Running", "terminated running", 1)


@pytest.mark.parametrize(("start", "creating"), [(0, False), (2, False), (10, True)])
def test_sparing_leaves_out_what_is_over_soon(cluster: Cluster, start: float, creating: bool) -> None:
    states = seen(cluster, pod("a", start=start), "sparing")
    assert [("Pending", "", 0), *[("Pending", "ContainerCreating", 1)] * creating, ("Running", "running", 1)] == states


def test_a_deletion_is_acknowledged_and_its_end_reported(cluster: Cluster) -> None:
    """``SyncTerminatingPod`` sets the status when it begins (the generation has changed) and when the containers have
    ended; ``syncPod`` of pkg/kubelet/status patches it before it deletes the object."""
    assert seen(cluster, pod("a", shutdown=5), "exact", delete=True)[2:] == [
        ("Running", "running", 1),
        ("Running", "running", 2),
        ("Succeeded", "terminated", 2),
        ("gone", "", 0),
    ]


def test_sparing_removes_a_deleted_pod_without_further_reports(cluster: Cluster) -> None:
    assert seen(cluster, pod("a", shutdown=5), "sparing", delete=True)[1:] == [
        ("Running", "running", 1),
        ("gone", "", 0),
    ]


def test_status_and_conditions_name_the_generation_that_the_kubelet_has_seen(cluster: Cluster) -> None:
    """``CalculatePodStatusObservedGeneration`` and ``CalculatePodConditionObservedGeneration`` of pkg/api/v1/pod;
    PodObservedGenerationTracking is GA since v1.35."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", start=1))
        await cluster.at(5)
        for generation in (1, 2):
            found = await cluster.pod("a")
            assert found.metadata.generation == found.status.observedGeneration == generation
            conditions = {one.type: one.observedGeneration for one in found.status.conditions}
            assert conditions == dict.fromkeys(GENERATED, generation)
            await cluster.client.patch("pods", "a", "default", {"spec": {"activeDeadlineSeconds": 500}})
            await cluster.at(7)

    cluster.play(main)


def test_a_rejected_pod_names_the_generation_too(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("a", cpu="100"))
        await cluster.at(5)
        found = await cluster.pod("a")
        assert (found.status.phase, found.status.observedGeneration) == ("Failed", 1)

    cluster.play(main)


def test_the_reason_of_a_disruption_names_the_generation_too(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(pod("small", cpu="3"))
        await cluster.at(2)
        critical = pod("critical", cpu="3")
        critical.spec.priorityClassName = "system-node-critical"
        await cluster.create(critical)
        await cluster.at(50)
        found = await cluster.pod("small")
        condition = meta.get_condition(found.status.conditions, "DisruptionTarget")
        assert condition is not None
        assert condition.observedGeneration == found.metadata.generation > 0

    cluster.play(main)
