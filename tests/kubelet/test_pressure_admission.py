"""Which pods a node under pressure admits: ``managerImpl.Admit`` of pkg/kubelet/eviction of v1.36.3."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kemu.emulated.kubelet.pressure import eviction
from kemu.messages.k8s import core_v1_pb2

TOLERATES = core_v1_pb2.Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")
ANY = core_v1_pb2.Toleration(operator="Exists")
MEMORY, DISK, PIDS = eviction.MEMORY_PRESSURE, eviction.DISK_PRESSURE, eviction.PID_PRESSURE


def pod(quality: str, tolerations: Sequence[core_v1_pb2.Toleration], priority: int) -> core_v1_pb2.Pod:
    found = core_v1_pb2.Pod()
    found.spec.priority = priority
    found.spec.tolerations.extend(tolerations)
    resources = found.spec.containers.add(name="main").resources
    for resource in ("cpu", "memory"):
        if quality != "BestEffort":
            resources.requests[resource].string = "1"
        if quality == "Guaranteed":
            resources.limits[resource].string = "1"
    return found


@pytest.mark.parametrize(
    ("conditions", "quality", "tolerations", "priority", "admitted"),
    [
        # Memory pressure alone refuses best-effort pods only, and not those that tolerate its taint.
        ((MEMORY,), "BestEffort", [], 0, False),
        ((MEMORY,), "BestEffort", [TOLERATES], 0, True),
        ((MEMORY,), "BestEffort", [ANY], 0, True),
        # Pods that are not best-effort need no toleration: the kubelet does not ask for one.
        ((MEMORY,), "Burstable", [], 0, True),
        ((MEMORY,), "Guaranteed", [], 0, True),
        # Any other condition refuses all pods but critical ones, whatever they tolerate.
        ((DISK,), "Guaranteed", [ANY], 0, False),
        ((PIDS,), "Burstable", [TOLERATES], 0, False),
        ((DISK, MEMORY), "Burstable", [TOLERATES], 0, False),
        ((DISK, MEMORY), "BestEffort", [], 2_000_000_000, True),
        ((), "BestEffort", [], 0, True),
    ],
)
def test_pods_that_a_node_under_pressure_admits(
    conditions: tuple[str, ...],
    quality: str,
    tolerations: Sequence[core_v1_pb2.Toleration],
    priority: int,
    admitted: bool,
) -> None:
    manager = eviction.Manager((), transition_ns=1)
    manager.conditions = conditions
    refusal = manager.admit(pod(quality, tolerations, priority))
    assert refusal == ("" if admitted else f"The node had condition: [{' '.join(conditions)}]. ")
