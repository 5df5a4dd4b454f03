"""Preemption by the kubelet: which pods it kills when a critical pod does not fit.

Mirrors ``pkg/kubelet/preemption``. Pure: :func:`handle` names the victims, the caller kills them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.pods import critical
from kemu.emulated.objects.amounts import qos, requests
from kemu.messages.k8s import core_v1_pb2

REASON = "Preempting"
MESSAGE = "Preempted in order to admit critical pod"
CONDITION_REASON = "TerminationByKubelet"
CONDITION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."

Requirement = tuple[str, int]
"""A resource and how much of it is missing (cpu in millicores, everything else in whole units)."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of the attempt to make room."""

    remaining: tuple[predicates.Failure, ...] = ()
    """The failures that remain; empty without an error: the pod is admitted."""
    victims: tuple[Any, ...] = ()
    """Pods to kill, in this order, each with its own grace period. A kill that fails does not keep the others."""
    error: str = ""
    """Set if no set of victims frees enough."""


def handle(
    pod: core_v1_pb2.Pod, found: Sequence[predicates.Failure], active: Iterable[Any], *, for_all: bool = False
) -> Recovery:
    """``found``: what keeps ``pod`` from its node; ``active``: the pods there, in the kubelet's order.

    ``for_all``: for every pod that may preempt, not for critical ones alone (the alternative of the design document, in
    which kubelets preempt and the scheduler does not).
    """
    if not (critical.is_critical(pod) or (for_all and pod.spec.preemptionPolicy != "Never")):
        return Recovery(remaining=tuple(found))
    others = tuple(failure for failure in found if not isinstance(failure, predicates.Insufficient))
    if others:
        return Recovery(remaining=others)
    missing = [
        (failure.resource, failure.requested - (failure.capacity - failure.used))
        for failure in found
        if isinstance(failure, predicates.Insufficient)
    ]
    try:
        return Recovery(victims=tuple(choose(pod, active, missing)))
    except _NotEnough as error:
        return Recovery(error=f"preemption: error finding a set of pods to preempt: {error}")


def decide(pod: core_v1_pb2.Pod, found: Sequence[predicates.Failure], recovery: Recovery) -> predicates.Decision:
    """The decision on a pod for which room was looked for."""
    if recovery.error:
        message = f"Unexpected error while attempting to recover from admission failure: {recovery.error}"
        return predicates.Decision(False, "UnexpectedAdmissionError", message, tuple(found))
    left = recovery.remaining
    if not left:
        return predicates.Decision(True, failures=tuple(found))
    return predicates.Decision(False, left[0].reason, left[0].message, tuple(found))


class _NotEnough(Exception):
    def __init__(self, left: Sequence[Requirement]) -> None:
        listed = "".join(f"(res: {resource}, q: {amount}), " for resource, amount in left)
        super().__init__(f"no set of running pods found to reclaim resources: [{listed}]")


def choose(pod: core_v1_pb2.Pod, active: Iterable[Any], missing: Sequence[Requirement]) -> list[core_v1_pb2.Pod]:
    """The victims, best-effort ones first. As few guaranteed pods as possible, then as few burstable ones."""
    groups: dict[str, list[Any]] = {qos.BEST_EFFORT: [], qos.BURSTABLE: [], qos.GUARANTEED: []}
    for other in active:
        if critical.preemptable(pod, other) and (group := groups.get(qos.qos_class(other))) is not None:
            group.append(other)
    best_effort, burstable, guaranteed = groups.values()
    left = _subtract(missing, [*best_effort, *burstable, *guaranteed])
    if left:
        raise _NotEnough(left)
    chosen_guaranteed = _closest(guaranteed, _subtract(missing, [*best_effort, *burstable]))
    chosen_burstable = _closest(burstable, _subtract(missing, [*best_effort, *chosen_guaranteed]))
    chosen_best_effort = _closest(best_effort, _subtract(missing, [*chosen_burstable, *chosen_guaranteed]))
    return [*chosen_best_effort, *chosen_burstable, *chosen_guaranteed]


def _closest(pods: Sequence[core_v1_pb2.Pod], missing: Sequence[Requirement]) -> list[core_v1_pb2.Pod]:
    """Again and again the pod that comes closest to what is still missing."""
    left = list(pods)
    chosen = []
    while missing:
        if not left:
            raise _NotEnough(missing)
        best, best_distance = 0, float(len(missing) + 1)
        for index, pod in enumerate(left):
            distance = _distance(pod, missing)
            if distance < best_distance or (distance == best_distance and _is_smaller(pod, left[best])):
                best, best_distance = index, distance
        missing = _subtract(missing, [left[best]])
        chosen.append(left[best])
        # The last takes its place, which changes the order of the rounds to come, as in the kubelet.
        left[best] = left[-1]
        left.pop()
    return chosen


def _distance(pod: core_v1_pb2.Pod, missing: Sequence[Requirement]) -> float:
    distance = 0.0
    for resource, amount in missing:
        short = amount - requests.ranking_request(pod, resource)
        if short > 0:
            part = float(short) / float(amount)
            distance += part * part
    return distance


def _is_smaller(pod: core_v1_pb2.Pod, than: core_v1_pb2.Pod) -> bool:
    """By memory, then cpu; an equal pod counts as smaller, so of equal ones the last is taken."""
    for resource in (requests.MEMORY, requests.CPU):
        mine, its = requests.ranking_request(pod, resource), requests.ranking_request(than, resource)
        if mine != its:
            return mine < its
    return True


def _subtract(missing: Sequence[Requirement], pods: Sequence[core_v1_pb2.Pod]) -> list[Requirement]:
    left = []
    for resource, amount in missing:
        for pod in pods:
            if amount <= 0:
                break
            amount -= requests.ranking_request(pod, resource)
        if amount > 0:
            left.append((resource, amount))
    return left
