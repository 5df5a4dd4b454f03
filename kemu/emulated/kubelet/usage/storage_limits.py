"""How much local storage the limits of a pod allow it.

Mirrors ``PodLimits`` of ``k8s.io/component-helpers/resource`` for ephemeral storage.
:mod:`kemu.emulated.kubelet.pressure.local_storage` enforces the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.amounts import quantities, requests
from kemu.messages.k8s import core_v1_pb2


def least_limit(pod: core_v1_pb2.Pod) -> int | None:
    """The smallest of all limits of local storage, in bytes: below it none can be exceeded. None: there is none."""
    found = [pod_limit(pod.spec)]
    found += [of(one.resources.limits) for one in pod.spec.containers]
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        if source.HasField("emptyDir") and source.emptyDir.HasField("sizeLimit"):
            found.append(quantities.parse(source.emptyDir.sizeLimit.string))
    limits = [limit.value for limit in found if limit is not None and limit.nano > 0]
    return min(limits, default=None)


def pod_limit(spec: core_v1_pb2.PodSpec) -> quantities.Quantity | None:
    """The ephemeral storage that a pod may use. None: no container limits it."""
    limit: quantities.Quantity | None = None
    for container in spec.containers:
        limit = _sum(limit, of(container.resources.limits))
    sidecars: quantities.Quantity | None = None
    largest: quantities.Quantity | None = None
    for container in spec.initContainers:
        own = of(container.resources.limits)
        if container.restartPolicy == "Always":
            limit, sidecars = _sum(limit, own), _sum(sidecars, own)
            own = sidecars
        else:
            own = _sum(own, sidecars)
        largest = _larger(largest, own)
    limit = _larger(limit, largest)
    if limit is not None and limit.nano:
        limit = _sum(limit, of(spec.overhead))
    return limit


def of(amounts: Mapping[str, Any]) -> quantities.Quantity | None:
    name = requests.EPHEMERAL_STORAGE
    return quantities.parse(amounts[name].string) if name in amounts else None


def _sum(one: quantities.Quantity | None, other: quantities.Quantity | None) -> quantities.Quantity | None:
    return other if one is None else one if other is None else one + other


def _larger(one: quantities.Quantity | None, other: quantities.Quantity | None) -> quantities.Quantity | None:
    if one is None or other is None:
        return other if one is None else one
    return other if other > one else one
