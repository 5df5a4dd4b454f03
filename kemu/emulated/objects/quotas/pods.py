"""Pods in quotas (``pkg/quota/v1/evaluator/core/pods.go``)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import pod_totals, requests, resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.quotas import evaluators, scopes
from kemu.emulated.objects.quotas.evaluators import CREATE, UPDATE
from kemu.emulated.objects.quotas.scopes import Selector
from kemu.messages.k8s import core_v1_pb2

REQUESTS = "requests."
DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_HUGE_PAGES = requests.HUGE_PAGES_PREFIX

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = frozenset(
    ["count/pods", "pods", *_COMPUTE, *(f"{which}.{name}" for which in ("requests", "limits") for name in _COMPUTE)]
)
_MUST_BE_STATED = frozenset(["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"])
"""If a quota counts one of these, each container must state it."""


class PodEvaluator(evaluators.Evaluator[core_v1_pb2.Pod]):
    has_scopes = True

    def handles(self, operation: str, subresource: str, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod | None) -> bool:
        if subresource == "resize":
            return operation == UPDATE
        if subresource:
            return False
        return operation == CREATE or old is None or scopes.is_terminating(new) != scopes.is_terminating(old)

    def counts(self, name: str) -> bool:
        return name in _COUNTED or name.startswith((_HUGE_PAGES, REQUESTS + _HUGE_PAGES)) or is_extended_request(name)

    def in_scope(self, selector: Selector, obj: core_v1_pb2.Pod) -> bool:
        return scopes.matches_pod(selector, obj)

    def missing(self, required: Sequence[str], obj: core_v1_pb2.Pod) -> str:
        if _has_pod_level_resources(obj):
            return ""
        spec = obj.spec
        lacking: dict[str, dict[str, None]] = {}
        for name in (name for name in sorted(required) if name in _MUST_BE_STATED):
            for container in (*spec.containers, *spec.initContainers):
                which, _, bare = name.rpartition(".")
                stated = container.resources.limits if which == "limits" else container.resources.requests
                if bare not in stated:
                    lacking.setdefault(name, {})[container.name] = None
        if not lacking:
            return ""
        return "must specify " + "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in lacking)

    def usage(self, obj: core_v1_pb2.Pod, now_unix_ns: int) -> Mapping[str, Quantity]:
        return usage_of(obj, now_unix_ns)

    def likeness(self, obj: core_v1_pb2.Pod) -> Hashable:
        if obj.metadata.HasField("deletionTimestamp"):
            return None  # until when it is charged depends on the time
        amounts = tuple([(name, each.nano, each.format) for name, each in usage_of(obj, 0).items()])
        return (amounts, *scopes.of_pod(obj))

    def frees(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod, now_unix_ns: int) -> bool:
        if _resources_of_containers(old, new):
            return True
        if scopes.is_terminating(old) != scopes.is_terminating(new):
            return True
        return is_charged(old, now_unix_ns) and not is_charged(new, now_unix_ns)


def usage_of(pod: core_v1_pb2.Pod, now_unix_ns: int) -> Mapping[str, Quantity]:
    """``PodUsageFunc``: a pod that has ended, or should have, counts only as an object."""
    counted = {"count/pods": resource_lists.ONE}
    if not is_charged(pod, now_unix_ns):
        return counted
    counted["pods"] = resource_lists.ONE
    wanted = pod_totals.charged(pod, pod_totals.REQUESTS)
    limits = pod_totals.charged(pod, pod_totals.LIMITS)
    for name in _COMPUTE:
        if name in wanted:
            counted[name] = counted[REQUESTS + name] = wanted[name]
        if name in limits:
            counted[f"limits.{name}"] = limits[name]
    for name, quantity in wanted.items():
        if name.startswith(_HUGE_PAGES):
            counted[name] = counted[REQUESTS + name] = quantity
        if requests.is_extended(name) or name.startswith(DEVICE_CLASS):
            counted[REQUESTS + name] = quantity
    return counted


def is_charged(pod: core_v1_pb2.Pod, now_unix_ns: int) -> bool:
    """Whether it counts as more than an object: it has not ended, and its time to end is not over (``QuotaV1Pod``)."""
    if pod_phases.is_terminal(pod):
        return False
    metadata = pod.metadata
    if metadata.HasField("deletionTimestamp") and metadata.HasField("deletionGracePeriodSeconds"):
        # The timestamp has the grace period in it already; Kubernetes adds it once more.
        end_ns = meta.unix_ns(metadata.deletionTimestamp) + metadata.deletionGracePeriodSeconds * meta.SECOND_NS
        return bool(now_unix_ns <= end_ns)
    return True


def is_extended_request(name: str) -> bool:
    """``isExtendedResourceNameForQuota``."""
    return name.startswith(REQUESTS) and (not requests.is_native(name) or name.startswith(REQUESTS + DEVICE_CLASS))


def _has_pod_level_resources(pod: core_v1_pb2.Pod) -> bool:
    stated = pod.spec.resources
    return any(requests.is_pod_level_resource(name) for amounts in (stated.requests, stated.limits) for name in amounts)


def _resources_of_containers(old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
    """Whether the status says of a container that it has other resources than before (``hasResourcesChanged``)."""
    for field in ("containerStatuses", "initContainerStatuses"):
        now = {status.name: status for status in getattr(new.status, field)}
        for before in getattr(old.status, field):
            after = now.get(before.name)
            if after is not None and (
                before.HasField("resources") != after.HasField("resources") or before.resources != after.resources
            ):
                return True
    return False
