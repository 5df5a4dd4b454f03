"""What a pod requests, and what its limits are, exactly and with the formats in which the amounts are written.

Quotas and limit ranges print amounts, so formats matter to them. Schedulers and kubelets, for which speed matters, use
the integers of :mod:`kemu.emulated.objects.amounts.requests`. Mirrors ``PodRequests`` and ``PodLimits`` of
``component-helpers/resource``.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.amounts.requests import is_pod_level_resource
from kemu.messages.k8s import core_v1_pb2

REQUESTS, LIMITS = "requests", "limits"


def charged(pod: core_v1_pb2.Pod, which: str, *, use_status: bool = True) -> dict[str, Quantity]:
    """As quotas count a pod: with overhead, and with its status, which says what a pod that is being resized has.

    ``which``: :data:`REQUESTS` or :data:`LIMITS`. Overhead counts only for limits that are not zero.
    """
    total = of_containers(pod, which, use_status=use_status)
    if pod.spec.HasField("resources"):
        amounts = resource_lists.read(getattr(pod.spec.resources, which))
        total.update({name: quantity for name, quantity in amounts.items() if is_pod_level_resource(name)})
    if pod.spec.overhead:
        for name, quantity in resource_lists.read(pod.spec.overhead).items():
            if which == REQUESTS:
                total[name] = total[name] + quantity if name in total else quantity
            elif name in total and total[name].nano:
                total[name] += quantity
    return total


def of_containers(pod: core_v1_pb2.Pod, which: str, *, use_status: bool) -> dict[str, Quantity]:
    """Containers and sidecars together, or the largest init container with the sidecars before it where that is more.

    ``use_status``: what the status says of containers that are being resized counts too.
    """
    statuses: dict[str, Any] = {}
    if use_status:
        status = pod.status
        statuses = {one.name: one for one in (*status.containerStatuses, *status.initContainerStatuses)}
    total: dict[str, Quantity] = {}
    for container in pod.spec.containers:
        total = resource_lists.add(total, _of_container(pod, container, which, statuses.get(container.name)))
    sidecars: dict[str, Quantity] = {}
    largest: dict[str, Quantity] = {}
    for container in pod.spec.initContainers:
        if container.restartPolicy == "Always":
            amounts = _of_container(pod, container, which, statuses.get(container.name))
            total = resource_lists.add(total, amounts)
            sidecars = resource_lists.add(sidecars, amounts)
            resource_lists.raise_to(largest, sidecars)
        else:
            amounts = _of_container(pod, container, which, None)
            resource_lists.raise_to(largest, resource_lists.add(amounts, sidecars))
    resource_lists.raise_to(total, largest)
    return total


def _of_container(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, which: str, status: core_v1_pb2.ContainerStatus | None
) -> dict[str, Quantity]:
    """``determineEffectiveRequests``, ``determineEffectiveLimits``."""
    stated = resource_lists.read(getattr(container.resources, which))
    if status is None or not status.HasField("resources"):
        return stated
    total = {} if _is_infeasible(pod) else stated
    resource_lists.raise_to(total, resource_lists.read(getattr(status.resources, which)))
    if which == REQUESTS:
        resource_lists.raise_to(total, resource_lists.read(status.allocatedResources))
    return total


def _is_infeasible(pod: core_v1_pb2.Pod) -> bool:
    """Whether the node can never carry out the resize that the pod waits for."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return bool(condition.reason == "Infeasible")
    return False
