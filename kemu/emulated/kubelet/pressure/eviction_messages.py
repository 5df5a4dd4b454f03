"""The texts with which the kubelet evicts pods and refuses them under pressure (``pkg/kubelet/eviction``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kemu.emulated.kubelet.usage import stats
from kemu.emulated.objects.amounts import quantities, requests
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2


def node_condition(conditions: Sequence[str]) -> str:
    return f"The node had condition: [{' '.join(conditions)}]. "


def node_is_low(
    resource: str,
    threshold: quantities.Quantity,
    available: quantities.Quantity,
    pod: core_v1_pb2.Pod,
    usage: stats.PodStats | None,
) -> str:
    """Names the containers that use more than they request."""
    text = f"The node was low on resource: {resource}. Threshold quantity: {threshold}, available: {available}. "
    if usage is None:
        return text
    spec = pod.spec
    if resource == requests.MEMORY and resource in spec.resources.requests and usage.working_set_bytes is not None:
        # The real kubelet says so of every pod with a request of its own, even of one that uses less.
        text += _larger(
            f"Pod {pod.metadata.name}",
            _bytes(usage.working_set_bytes),
            _of(spec.resources.requests, resource),
            resource,
        )
    requested = {one.name: one.resources.requests for one in (*spec.containers, *spec.initContainers)}
    for container in usage.containers:
        used = _container_usage(container, resource)
        if used is not None and container.name in requested:
            usage_here, request = _bytes(used), _of(requested[container.name], resource)
            if usage_here > request:
                text += _larger(f"Container {container.name}", usage_here, request, resource)
    return text


def empty_dir(name: str, limit: quantities.Quantity) -> str:
    return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '


def pod_ephemeral_storage(limit: quantities.Quantity) -> str:
    return f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "


def container_ephemeral_storage(name: str, limit: quantities.Quantity) -> str:
    return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '


def _larger(who: str, usage: quantities.Quantity, request: quantities.Quantity, resource: str) -> str:
    return f"{who} was using {usage}, request is {request}, has larger consumption of {resource}. "


def _bytes(amount: int) -> quantities.Quantity:
    return quantities.Quantity(amount * quantities.NANO, quantities.Format.BINARY_SI)


def _of(amounts: Mapping[str, meta_v1_pb2.Quantity], resource: str) -> quantities.Quantity:
    return quantities.parse(amounts[resource].string) if resource in amounts else quantities.ZERO


def _container_usage(container: stats.ContainerStats, resource: str) -> int | None:
    if resource == requests.MEMORY:
        return container.working_set_bytes
    if resource == requests.EPHEMERAL_STORAGE:
        rootfs, logs = container.rootfs, container.logs
        if rootfs is not None and logs is not None and rootfs.used_bytes is not None and logs.used_bytes is not None:
            return rootfs.used_bytes + logs.used_bytes
    return None
