"""Features that a node declares, and what needs them of it (``nodedeclaredfeatures`` of component-helpers).

A kubelet declares in ``status.declaredFeatures`` which features it has; the scheduler keeps pods away from nodes that
lack what they need, the kubelet refuses such pods, and the API server refuses updates that need more than the node of
the pod has.
"""

from __future__ import annotations

from collections.abc import Collection

from kemu.messages.k8s import core_v1_pb2

RESTART_ALL = "RestartAllContainersOnContainerExits"
RESIZE_PODS = "InPlacePodLevelResourcesVerticalScaling"
RESIZE_INIT_CONTAINERS = "InPlacePodVerticalScalingInitContainers"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"

KUBELET = ("ExtendWebSocketsToKubelet", RESIZE_PODS, RESIZE_INIT_CONTAINERS, RESTART_ALL)
"""Feature gates that a kubelet declares, in order; all are on by default. No kubelet of kemu has the other feature:
that asks for a container runtime."""


def for_scheduling(spec: core_v1_pb2.PodSpec) -> tuple[str, ...]:
    """What a node must declare for a pod to run there (``InferForPodScheduling``), in order."""
    found = []
    if restarts_all(spec):
        found.append(RESTART_ALL)
    if spec.hostNetwork and spec.HasField("hostUsers") and not spec.hostUsers:
        found.append(USER_NAMESPACES)
    return tuple(found)


def restarts_all(spec: core_v1_pb2.PodSpec) -> bool:
    """Whether the exit of a container may restart all of them (``AllContainersCouldRestart``)."""
    containers = (*spec.containers, *spec.initContainers)
    return any(rule.action == "RestartAllContainers" for one in containers for rule in one.restartPolicyRules)


def for_update(old: core_v1_pb2.PodSpec, new: core_v1_pb2.PodSpec) -> tuple[str, ...]:
    """What the node of a pod must declare for an update of it (``InferForPodUpdate``), in order. The containers of both
    are the same."""
    found = []
    if old.resources != new.resources:
        found.append(RESIZE_PODS)
    if any(
        before.restartPolicy != "Always" and before.resources != after.resources
        for before, after in zip(old.initContainers, new.initContainers, strict=True)
    ):
        found.append(RESIZE_INIT_CONTAINERS)
    return tuple(found)


def missing(needed: tuple[str, ...], declared: Collection[str]) -> list[str]:
    """In order."""
    return [name for name in needed if name not in declared]
