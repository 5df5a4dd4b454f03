"""What a pod requests, in the integers that scheduling works with.

cpu is in millicores, everything else in whole units (bytes, counts). Sums are exact; only the result is rounded, up, as
``k8s.io/component-helpers/resource`` and the scheduler's resource bookkeeping do.

Results are plain dicts whose keys stand in sorted order, so that iterating over them is deterministic. A bad quantity
text raises ValueError; the API server refuses such objects (:mod:`kemu.emulated.objects.validation.kinds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.caches import text_cache
from kemu.messages.k8s import core_v1_pb2

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
HUGE_PAGES_PREFIX = "hugepages-"

DEFAULT_CPU_MILLI = 100
"""What a container without a cpu request counts in scores."""
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""What a container without a memory request counts in scores."""

_NANO = quantities.NANO
_DEFAULTS_NANO = {CPU: DEFAULT_CPU_MILLI * 1_000_000, MEMORY: DEFAULT_MEMORY_BYTES * _NANO}

Quantities = Mapping[str, Any]
"""A ``map<string, Quantity>`` field: allocatable, requests, limits, overhead."""


def is_native(name: str) -> bool:
    """Whether Kubernetes itself defines it: no domain, or one within ``kubernetes.io`` (``IsNativeResource``)."""
    return "/" not in name or "kubernetes.io/" in name


@text_cache(4096)
def is_extended(name: str) -> bool:
    """Whether it is an extended resource such as ``nvidia.com/gpu``, counted in whole numbers and never overcommitted
    (``IsExtendedResourceName`` of ``pkg/apis/core/v1/helper``)."""
    return not is_native(name) and not name.startswith("requests.") and not names.label_key(f"requests.{name}")


def resource_list(amounts: Quantities) -> dict[str, int]:
    """Allocatable, capacity, requests …: cpu in millicores, others in whole units, rounded up."""
    return {name: _whole(name, amounts[name].string) for name in sorted(amounts)}


_KINDS: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
_MOST_KINDS = 4096


def machine(amounts: Quantities) -> dict[str, int]:
    """As :func:`resource_list`: one for all machines that have the same, which nobody changes."""
    found = resource_list(amounts)
    if len(_KINDS) >= _MOST_KINDS:
        _KINDS.clear()
    return _KINDS.setdefault(tuple(found.items()), found)


def pod_requests(pod: core_v1_pb2.Pod) -> dict[str, int]:
    """The request of a pod as its spec states it: cpu in millicores, all others in whole units.

    Containers and sidecars together, or the largest init container with the sidecars before it where that is more;
    pod-level requests in place of the containers' sum; plus overhead.
    """
    spec = pod.spec
    containers = spec.containers
    if len(containers) == 1 and not spec.initContainers and not spec.overhead and not spec.HasField("resources"):
        return resource_list(containers[0].resources.requests)
    return _rounded(_total(pod, use_status=False, pod_level=True, defaults=None))


def pod_requests_on_node(pod: core_v1_pb2.Pod) -> dict[str, int]:
    """The request of a pod that runs on a node: while it is being resized in place, the larger of what its spec
    asks for and what its status says it has."""
    if is_resized(pod):
        return _rounded(_total(pod, use_status=True, pod_level=True, defaults=None))
    return pod_requests(pod)


def allocated_requests(pod: core_v1_pb2.Pod) -> dict[str, int]:
    """What the kubelet has admitted the pod with: of a pod that was resized, what its status says; of others, what
    they ask for."""
    if not is_resized(pod):
        return pod_requests(pod)
    status = pod.status
    allocated = type(pod)()
    allocated.spec.CopyFrom(pod.spec)
    of = {one.name: one for one in (*status.initContainerStatuses, *status.containerStatuses)}
    for container in (*allocated.spec.initContainers, *allocated.spec.containers):
        known = of.get(container.name)
        if known is not None and known.HasField("resources"):
            container.resources.requests.clear()
            for amounts in (known.resources.requests, known.allocatedResources):
                for name in amounts:
                    container.resources.requests[name].CopyFrom(amounts[name])
    if status.HasField("resources"):
        for name in status.allocatedResources:
            allocated.spec.resources.requests[name].CopyFrom(status.allocatedResources[name])
    return pod_requests(allocated)


def is_resized(pod: core_v1_pb2.Pod) -> bool:
    """Whether the status says what resources the pod or its containers have, which may differ from the spec."""
    status = pod.status
    containers = status.containerStatuses
    # Asked for every change of a pod that runs: most have one container, and none to initialise.
    if len(containers) == 1:
        if containers[0].HasField("resources"):
            return True
    else:
        for container in containers[:]:
            if container.HasField("resources"):
                return True
    containers = status.initContainerStatuses
    if containers:
        for container in containers[:]:
            if container.HasField("resources"):
                return True
    found: bool = status.HasField("resources")
    return found


def non_zero_requests(pod: core_v1_pb2.Pod, *, pod_level: bool = True) -> tuple[int, int]:
    """cpu (millicores) and memory (bytes) for scores, where a container without a request counts 100m and 200Mi.

    ``pod_level`` False ignores ``spec.resources``, as the score of NodeResourcesFit does for the pending pod.
    """
    spec = pod.spec
    containers = spec.containers
    if len(containers) == 1 and not spec.initContainers and not spec.overhead and not spec.HasField("resources"):
        requests = containers[0].resources.requests
        return (
            quantities.milli(requests[CPU].string) if CPU in requests else DEFAULT_CPU_MILLI,
            quantities.value(requests[MEMORY].string) if MEMORY in requests else DEFAULT_MEMORY_BYTES,
        )
    return _non_zero(pod, use_status=False, pod_level=pod_level)


def non_zero_requests_on_node(pod: core_v1_pb2.Pod) -> tuple[int, int]:
    """:func:`non_zero_requests` of a pod that runs on a node (in-place resize counts)."""
    if is_resized(pod):
        return _non_zero(pod, use_status=True, pod_level=True)
    return non_zero_requests(pod)


def ranking_request(pod: core_v1_pb2.Pod, resource: str) -> int:
    """The request of a pod by which the kubelet chooses victims: cpu in millicores, all others in whole
    units."""
    return _round(resource, ranking_request_nano(pod, resource))


def ranking_request_nano(pod: core_v1_pb2.Pod, resource: str) -> int:
    """The request of a pod by which the kubelet ranks pods, in billionths.

    Differs from :func:`pod_requests`: if the pod has any pod-level resources, only pod-level requests count, for
    every resource; overhead is added only to a request that is not zero; every pod requests one of ``pods``.
    """
    if resource == PODS:
        return _NANO
    spec = pod.spec
    if _has_pod_level(spec.resources):
        requests = spec.resources.requests
        nano = _nano(requests[resource].string) if resource in requests else 0
    else:
        nano = _container_sum(spec, None, defaults=None).get(resource, 0)
    if nano and resource in spec.overhead:
        nano += _nano(spec.overhead[resource].string)
    return nano


def container_requests(spec: core_v1_pb2.PodSpec) -> dict[str, quantities.Quantity]:
    """The exact sum of the requests of a pod spec's containers, without pod-level requests and overhead."""
    total = _container_sum(spec, None, defaults=None)
    return {name: quantities.Quantity(total[name]) for name in sorted(total)}


def is_pod_level_resource(name: str) -> bool:
    """Whether ``spec.resources`` of a pod may name the resource."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def _has_pod_level(resources: core_v1_pb2.ResourceRequirements) -> bool:
    return any(is_pod_level_resource(name) for name in resources.requests) or any(
        is_pod_level_resource(name) for name in resources.limits
    )


def _non_zero(pod: core_v1_pb2.Pod, *, use_status: bool, pod_level: bool) -> tuple[int, int]:
    defaults = _DEFAULTS_NANO
    if pod_level and any(is_pod_level_resource(name) for name in pod.spec.resources.requests):
        requested = _total(pod, use_status=use_status, pod_level=True, defaults=None)
        defaults = {name: nano for name, nano in _DEFAULTS_NANO.items() if name not in requested}
    total = _total(pod, use_status=use_status, pod_level=pod_level, defaults=defaults)
    return _round(CPU, total.get(CPU, 0)), _round(MEMORY, total.get(MEMORY, 0))


def _total(
    pod: core_v1_pb2.Pod, *, use_status: bool, pod_level: bool, defaults: Mapping[str, int] | None
) -> dict[str, int]:
    """The whole request of a pod, in billionths."""
    spec = pod.spec
    total = _container_sum(spec, pod.status if use_status else None, defaults=defaults)
    if pod_level and spec.HasField("resources"):
        resized = _resized_pod_level(pod) if use_status and pod.status.HasField("resources") else None
        for name, quantity in spec.resources.requests.items():
            if is_pod_level_resource(name):
                total[name] = _nano(quantity.string) if resized is None else resized.get(name, 0)
    for name, quantity in spec.overhead.items():
        total[name] = total.get(name, 0) + _nano(quantity.string)
    return total


def _resized_pod_level(pod: core_v1_pb2.Pod) -> dict[str, int]:
    """The pod-level request of a pod that is being resized (``determineEffectiveRequests``)."""
    request = {} if _resize_is_infeasible(pod.status) else _nanos(pod.spec.resources.requests)
    _raise_to(request, _nanos(pod.status.resources.requests))
    _raise_to(request, _nanos(pod.status.allocatedResources))
    return request


def _container_sum(
    spec: core_v1_pb2.PodSpec, status: core_v1_pb2.PodStatus | None, *, defaults: Mapping[str, int] | None
) -> dict[str, int]:
    """Containers and sidecars, or the largest init container where that is more; in billionths.

    ``status``, where given, counts too: it has the resources of containers that are being resized.
    """
    status_of: dict[str, Any] = {}
    infeasible = False
    if status is not None:
        status_of = {one.name: one for one in (*status.initContainerStatuses, *status.containerStatuses)}
        infeasible = _resize_is_infeasible(status)

    def request_of(container: core_v1_pb2.Container, status_counts: bool) -> dict[str, int]:
        request = _nanos(container.resources.requests)
        now = status_of.get(container.name) if status_counts else None
        if now is not None and now.HasField("resources"):
            if infeasible:
                request = {}
            _raise_to(request, _nanos(now.resources.requests))
            _raise_to(request, _nanos(now.allocatedResources))
        if defaults:
            for name, nano in defaults.items():
                request.setdefault(name, nano)
        return request

    total: dict[str, int] = {}
    for container in spec.containers:
        _add_to(total, request_of(container, True))
    if spec.initContainers:
        sidecars: dict[str, int] = {}
        largest: dict[str, int] = {}
        for container in spec.initContainers:
            is_sidecar = container.restartPolicy == "Always"
            request = request_of(container, is_sidecar)
            if is_sidecar:
                _add_to(total, request)
                _add_to(sidecars, request)
                _raise_to(largest, sidecars)
            else:
                _add_to(request, sidecars)
                _raise_to(largest, request)
        _raise_to(total, largest)
    return total


def _resize_is_infeasible(status: core_v1_pb2.PodStatus) -> bool:
    for condition in status.conditions:
        if condition.type == "PodResizePending":
            return bool(condition.reason == "Infeasible")
    return False


def _nanos(amounts: Quantities) -> dict[str, int]:
    return {name: _nano(quantity.string) for name, quantity in amounts.items()}


@text_cache(65_536)
def _nano(text: str) -> int:
    return quantities.parse(text).nano


def _add_to(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, nano in amounts.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, nano in amounts.items():
        if name not in total or nano > total[name]:
            total[name] = nano


def _whole(name: str, text: str) -> int:
    return quantities.milli(text) if name == CPU else quantities.value(text)


def _round(name: str, nano: int) -> int:
    amount = quantities.Quantity(nano)
    return amount.milli if name == CPU else amount.value


def _rounded(total: Mapping[str, int]) -> dict[str, int]:
    return {name: _round(name, total[name]) for name in sorted(total)}
