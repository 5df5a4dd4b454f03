"""From usage to a number of replicas (``replica_calculator.go``, ``metrics/utilization.go``).

The ratio of what pods use to what they should use times their number, rounded up; within the tolerance nothing changes.
Pods without a sample count as if they used all of their share when the number would fall, and nothing when it would
rise; pods that are not ready count as nothing when it would rise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kemu.emulated.autoscaler.horizontal.samples import MetricError, Sample
from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities, requests
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime.env import SECOND_NS

UNREADY = "did not receive metrics for targeted pods (pods might be unready)"
NO_PODS = "no pods returned by selector while calculating replica count"


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far the ratio may be from 1, below and above."""

    down: float
    up: float

    def cover(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Periods(NamedTuple):
    """How long pods may still be starting (``--horizontal-pod-autoscaler-…``), in nanoseconds."""

    cpu_initialization_ns: int
    initial_readiness_ns: int


class Groups(NamedTuple):
    """Pods by what their samples are worth (``groupPods``). Names."""

    ready: int
    unready: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]


class Proposal(NamedTuple):
    replicas: int
    milli: int
    """What a pod uses on average, in thousandths."""
    percent: int = 0
    """The same of its request."""


def by_utilization(
    current: int,
    target_percent: int,
    resource: str,
    tolerances: Tolerances,
    pods: Sequence[core_v1_pb2.Pod],
    samples: Mapping[str, Sample],
    container: str,
    periods: Periods,
    now_ns: int,
) -> Proposal:
    """``GetResourceReplicas``. Raises MetricError."""
    if not pods:
        raise MetricError(NO_PODS)
    groups, used = _counted(pods, samples, resource, periods, now_ns)
    requested = _requests(pods, container, resource)
    ratio, percent, average = _utilization(used, requested, target_percent)
    filled = {name: requested[name] * max(100, target_percent) // 100 for name in groups.missing}

    def ratio_of(milli: Mapping[str, int]) -> float:
        return _utilization(milli, requested, target_percent)[0]

    return Proposal(_propose(current, ratio, groups, used, filled, tolerances, ratio_of), average, percent)


def by_usage(
    current: int,
    target_milli: int,
    resource: str,
    tolerances: Tolerances,
    pods: Sequence[core_v1_pb2.Pod],
    samples: Mapping[str, Sample],
    periods: Periods,
    now_ns: int,
) -> Proposal:
    """``calcPlainMetricReplicas``. ``target_milli``: of each pod. Raises MetricError."""
    if not pods:
        raise MetricError(NO_PODS)
    groups, used = _counted(pods, samples, resource, periods, now_ns)

    def ratio_of(milli: Mapping[str, int]) -> float:
        return float(sum(milli.values()) // len(milli)) / float(target_milli)

    filled = dict.fromkeys(groups.missing, target_milli)
    replicas = _propose(current, ratio_of(used), groups, used, filled, tolerances, ratio_of)
    return Proposal(replicas, sum(used.values()) // len(used))


def _counted(
    pods: Sequence[core_v1_pb2.Pod],
    samples: Mapping[str, Sample],
    resource: str,
    periods: Periods,
    now_ns: int,
) -> tuple[Groups, dict[str, int]]:
    """The groups, and the samples that count. Raises MetricError where there are none."""
    groups = group(pods, samples, resource, periods, now_ns)
    left_out = {*groups.ignored, *groups.unready}
    used = {name: one.milli for name, one in samples.items() if name not in left_out}
    if not used:
        raise MetricError(UNREADY)
    return groups, used


def _propose(
    current: int,
    ratio: float,
    groups: Groups,
    used: Mapping[str, int],
    filled: Mapping[str, int],
    tolerances: Tolerances,
    ratio_of: Callable[[Mapping[str, int]], float],
) -> int:
    """``filled``: what the missing pods count for where the number would fall."""
    grows_with_unready = bool(groups.unready) and ratio > 1.0
    if not grows_with_unready and not groups.missing:
        return current if tolerances.cover(ratio) else math.ceil(ratio * float(groups.ready))
    milli = dict(used)
    if ratio < 1.0:
        milli |= filled
    elif ratio > 1.0:
        milli |= dict.fromkeys(groups.missing, 0)
    if grows_with_unready:
        milli |= dict.fromkeys(groups.unready, 0)
    again = ratio_of(milli)
    if tolerances.cover(again) or ratio < 1.0 < again or ratio > 1.0 > again:
        return current
    wanted = math.ceil(again * float(len(milli)))
    if (again < 1.0 and wanted > current) or (again > 1.0 and wanted < current):
        return current
    return wanted


def group(
    pods: Iterable[core_v1_pb2.Pod],
    samples: Mapping[str, Sample],
    resource: str,
    periods: Periods,
    now_ns: int,
) -> Groups:
    """``groupPods``."""
    ready = 0
    unready, missing, ignored = [], [], []
    for pod in pods:
        name, status = pod.metadata.name, pod.status
        if pod.metadata.HasField("deletionTimestamp") or status.phase == "Failed":
            ignored.append(name)
        elif status.phase == "Pending":
            unready.append(name)
        elif name not in samples:
            missing.append(name)
        elif resource == "cpu" and _is_starting(pod, samples[name], periods, now_ns):
            unready.append(name)
        else:
            ready += 1
    return Groups(ready, tuple(unready), tuple(missing), tuple(ignored))


def _is_starting(pod: core_v1_pb2.Pod, sample: Sample, periods: Periods, now_ns: int) -> bool:
    """Whether what it uses of the CPU says nothing yet."""
    condition = meta.get_condition(pod.status.conditions, "Ready")
    if condition is None or not pod.status.HasField("startTime"):
        return True
    started_ns, since_ns = meta.unix_ns(pod.status.startTime), meta.unix_ns(condition.lastTransitionTime)
    is_unready = condition.status == "False"
    if started_ns + periods.cpu_initialization_ns > now_ns:
        return is_unready or sample.unix_s * SECOND_NS < since_ns + sample.window_s * SECOND_NS
    return is_unready and started_ns + periods.initial_readiness_ns > since_ns


def _utilization(milli: Mapping[str, int], of_pods: Mapping[str, int], target_percent: int) -> tuple[float, int, int]:
    """``GetResourceUtilizationRatio``: the ratio to the target, in percent of the requests, and the average."""
    known = [(used, of_pods[name]) for name, used in milli.items() if name in of_pods]
    total, requested = sum(used for used, _ in known), sum(request for _, request in known)
    if requested == 0:
        raise MetricError("no metrics returned matched known pods")
    percent = total * 100 // requested
    return float(percent) / float(target_percent), percent, total // len(known)


def _requests(pods: Iterable[core_v1_pb2.Pod], container: str, resource: str) -> dict[str, int]:
    """``calculateRequests``, in thousandths."""
    return {pod.metadata.name: _request(pod, container, resource) for pod in pods}


def _request(pod: core_v1_pb2.Pod, container: str, resource: str) -> int:
    of_pod = pod.spec.resources.requests
    if not container and any(map(requests.is_pod_level_resource, of_pod)):
        return _pod_level(pod, resource)
    total = 0
    sidecars = (one for one in pod.spec.initContainers if one.restartPolicy == "Always")
    for one in (*pod.spec.containers, *sidecars):
        if container in ("", one.name):
            if resource not in one.resources.requests:
                raise MetricError(f"missing request for {resource} in container {one.name} of Pod {pod.metadata.name}")
            total += _milli(one.resources.requests[resource])
        if container == one.name:
            return total
    if container:
        raise MetricError(f"container {container} not found in Pod {pod.metadata.name}")
    return total


def _pod_level(pod: core_v1_pb2.Pod, resource: str) -> int:
    """Of a resource that the pod as a whole does not request, what its containers do."""
    found = requests.pod_requests(pod)
    if resource not in found:
        raise MetricError(f"missing pod-level request for {resource} in Pod {pod.metadata.name}")
    return found[resource] if resource == requests.CPU else found[resource] * 1000


def _milli(quantity: meta_v1_pb2.Quantity) -> int:
    return quantities.milli(quantity.string)
