"""The resources of the containers of one pod, and what a resize changes.

Mirrors ``allocationFromPod`` and ``updatePodFromAllocation`` of ``pkg/kubelet/allocation`` and
``computePodResizeAction`` of ``pkg/kubelet/kuberuntime``.
"""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.kubelet.pods.containers import Container
from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation.pod_specs import resizes
from kemu.messages.k8s import core_v1_pb2

Resources = dict[str, Any]
"""ResourceRequirements by container; those of the pod itself under the empty name."""


def of(pod: core_v1_pb2.Pod) -> Resources:
    spec = pod.spec
    found = {one.name: meta.copied(one.resources) for one in (*spec.initContainers, *spec.containers)}
    if spec.HasField("resources"):
        found[""] = meta.copied(spec.resources)
    return found


def differ(one: Resources, other: Resources) -> bool:
    return any(name not in other or resizes.differs(one[name], other[name]) for name in one)


def with_resources(pod: core_v1_pb2.Pod, resources: Resources) -> core_v1_pb2.Pod:
    """The pod as if its spec stated these."""
    found = meta.copied(pod)
    for container in (*found.spec.initContainers, *found.spec.containers):
        if container.name in resources:
            container.resources.CopyFrom(resources[container.name])
    if "" in resources:
        found.spec.resources.CopyFrom(resources[""])
    return found


def needs_restart(
    spec: core_v1_pb2.Container, wanted: core_v1_pb2.ResourceRequirements, now: core_v1_pb2.ResourceRequirements
) -> bool:
    """Whether the resize policy of a container asks for a restart for a change of its resources."""
    policies = {one.resourceName: one.restartPolicy for one in spec.resizePolicy}
    return any(
        policies.get(name) == "RestartContainer" and _amount(wanted, part, name) != _amount(now, part, name)
        for name in resizes.RESIZABLE
        for part in ("requests", "limits")
    )


def decreased_memory(wanted: core_v1_pb2.ResourceRequirements, now: core_v1_pb2.ResourceRequirements) -> int | None:
    """The new limit of the memory of a container, if it is lower than before or had not been there."""
    new, old = _amount(wanted, "limits", "memory"), _amount(now, "limits", "memory")
    return new if new is not None and (old is None or new < old) else None


def memory_limits(resources: Resources, containers: list[Container]) -> dict[str, int]:
    """In bytes, of those that have one."""
    found = {one.name: _amount(resources[one.name], "limits", "memory") for one in containers if one.name in resources}
    return {name: limit for name, limit in found.items() if limit is not None}


def message(prefix: str, pod: core_v1_pb2.Pod, generation: int, error: str = "") -> str:
    """Message of an event about a resize (``podResizeMessage``)."""
    summary: dict[str, Any] = {}
    for key in ("initContainers", "containers"):
        listed = [{"name": one.name, "resources": _shown(one.resources)} for one in getattr(pod.spec, key)]
        if listed:
            summary[key] = listed
    summary["generation"] = generation
    if error:
        summary["error"] = error
    return f"{prefix}: {json.dumps(summary, separators=(',', ':'))}"


def _shown(resources: core_v1_pb2.ResourceRequirements) -> dict[str, dict[str, str]]:
    return {
        part: {name: amounts[name].string for name in sorted(amounts)}
        for part in ("limits", "requests")
        if (amounts := getattr(resources, part))
    }


def _amount(resources: core_v1_pb2.ResourceRequirements, part: str, name: str) -> int | None:
    amounts = getattr(resources, part)
    if name not in amounts:
        return None
    return (quantities.milli if name == "cpu" else quantities.value)(amounts[name].string)
