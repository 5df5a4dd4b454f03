"""The quality-of-service class of a pod, as ``pkg/apis/core/v1/helper/qos`` of Kubernetes computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

_COUNTED = ("cpu", "memory")


def qos_class(pod: core_v1_pb2.Pod) -> str:
    """``Guaranteed``, ``Burstable`` or ``BestEffort``; the status, where set, decides."""
    return pod.status.qosClass or computed_qos_class(pod)


def computed_qos_class(pod: core_v1_pb2.Pod) -> str:
    """The class by the spec alone: only cpu and memory count, and only positive amounts."""
    spec = pod.spec
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    every_limit_set = True
    if spec.HasField("resources"):
        _add(requests, spec.resources.requests)
        if len(spec.resources.limits):
            every_limit_set = _add(limits, spec.resources.limits) == len(_COUNTED)
    else:
        for container in spec.containers[:] + spec.initContainers[:]:
            resources = container.resources
            _add(requests, resources.requests)
            if _add(limits, resources.limits) < len(_COUNTED):
                every_limit_set = False
    if not requests and not limits:
        return BEST_EFFORT
    # Equal dicts: the same resources, and for each the summed request equals the summed limit.
    return GUARANTEED if every_limit_set and requests == limits else BURSTABLE


def _add(total: dict[str, int], amounts: Mapping[str, Any]) -> int:
    """Add the positive amounts of cpu and memory, in billionths, and return how many there were."""
    found = 0
    for name in _COUNTED:
        if name in amounts:
            nano = quantities.parse(amounts[name].string).nano
            if nano > 0:
                total[name] = total.get(name, 0) + nano
                found += 1
    return found
