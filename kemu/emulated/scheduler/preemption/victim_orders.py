"""By what preemption ranks pods: priority, as kube-scheduler does, or the QoS class before, after or instead of it.

An order says which pods may be preempted for another, which of a node's pods are spared first, and which candidate is
preferred (``MoreImportantPod`` and ``pickOneNodeForPreemption`` of kube-scheduler). The start breaks the last tie: who
runs longer is more important.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework import answers
from kemu.emulated.scheduler.framework.interfaces import VictimOrderPlugin

_PRIORITY_OFFSET = 2**31
_QOS_RANK = {"Guaranteed": 2, "Burstable": 1, "BestEffort": 0}
_NOT_STARTED = 2**62


class ByPriority:
    """Today's Kubernetes: ``priority``."""

    lower_by_priority = True
    """Whether the pods that may be preempted for another are those of lower priority."""

    def rank(self, pod: PodInfo) -> tuple[int, ...]:
        """Greater is more important."""
        return (pod.priority,)

    def is_lower(self, other: PodInfo, pod: PodInfo) -> bool:
        """Whether a pod may be preempted for another."""
        return other.priority < pod.priority

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        """Smaller is more important: higher priority, then earlier start."""
        return (-pod.priority, _start(pod))

    def preference(self, victims: Sequence[PodInfo], violations: int) -> tuple[int, ...]:
        """Fewest violations, lowest first victim, lowest sum, fewest victims, latest start of the most important ones.

        ``victims``: the most important one first.
        """
        if not victims:
            return (violations,)
        highest = victims[0].priority
        total, earliest = 0, _NOT_STARTED
        for victim in victims:
            total += victim.priority + _PRIORITY_OFFSET
            if victim.priority == highest:
                earliest = min(earliest, _start(victim))
        return (violations, highest, total, len(victims), -earliest)


class ByPriorityThenQos(ByPriority):
    """``priority-then-qos``, the proposal of the design document: "among pods with equal priority the pods are ordered
    by their QoS class". Only pods of lower priority are preempted."""

    def rank(self, pod: PodInfo) -> tuple[int, ...]:
        return (pod.priority, _QOS_RANK[pod.template.qos])

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        return (*(-part for part in self.rank(pod)), _start(pod))

    def preference(self, victims: Sequence[PodInfo], violations: int) -> tuple[int, ...]:
        """As by priority, with the rank of the first victim in place of its priority."""
        if not victims:
            return (violations,)
        first = self.rank(victims[0])
        total = sum(victim.priority + _PRIORITY_OFFSET for victim in victims)
        earliest = min(_start(victim) for victim in victims if self.rank(victim) == first)
        return (violations, *first, total, len(victims), -earliest)


class ByQos(ByPriorityThenQos):
    """``qos``, the alternative that the design document rejects: the class first, and priority breaks ties."""

    lower_by_priority = False

    def rank(self, pod: PodInfo) -> tuple[int, ...]:
        return (_QOS_RANK[pod.template.qos], pod.priority)

    def is_lower(self, other: PodInfo, pod: PodInfo) -> bool:
        return self.rank(other) < self.rank(pod)


class ByQosOnly(ByQos):
    """``qos-only``: priority does not count for preemption at all."""

    def rank(self, pod: PodInfo) -> tuple[int, ...]:
        return (_QOS_RANK[pod.template.qos],)

    def preference(self, victims: Sequence[PodInfo], violations: int) -> tuple[int, ...]:
        """As by priority, with classes in place of priorities."""
        if not victims:
            return (violations,)
        first = self.rank(victims[0])
        total = sum(1 + _QOS_RANK[victim.template.qos] for victim in victims)
        earliest = min(_start(victim) for victim in victims if self.rank(victim) == first)
        return (violations, *first, total, len(victims), -earliest)


class ByPlugin(ByPriority):
    """By a plugin of one's own, and where that makes no difference by priority."""

    def __init__(self, plugin: VictimOrderPlugin) -> None:
        self._plugin = plugin

    def is_lower(self, other: PodInfo, pod: PodInfo) -> bool:
        return other.priority < pod.priority and bool(self._plugin.may_preempt(pod, other))

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        rank = answers.whole_numbers(self._plugin.name, "importance", self._plugin.importance(pod))
        return (*(-part for part in rank), *super().importance(pod))

    def preference(self, victims: Sequence[PodInfo], violations: int) -> tuple[int, ...]:
        if not victims:
            return (violations,)
        cost = answers.whole_numbers(self._plugin.name, "cost", self._plugin.cost(victims))
        return (violations, *cost, *super().preference(victims, violations)[1:])


def has_not_started(pod: PodInfo) -> bool:
    """Such a pod starts now, each time that it is asked (``GetPodStartTime`` in ``pkg/scheduler/util``): compared with
    another one, it is the earlier of the two whenever it is asked first."""
    return pod.start_s is None


def _start(pod: PodInfo) -> int:
    return pod.start_s if pod.start_s is not None else _NOT_STARTED


ORDERS: dict[str, ByPriority] = {
    "priority": ByPriority(),
    "priority-then-qos": ByPriorityThenQos(),
    "qos": ByQos(),
    "qos-only": ByQosOnly(),
}
"""By the value of ``victimOrder``."""
