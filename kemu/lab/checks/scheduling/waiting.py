"""How long pods waited for a node, and how often others were served before them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.limits import DEFAULT, MAX_OVERTAKEN, MAX_WAIT_NS, Limits
from kemu.lab.checks.results import LimitedCheck, Result, several
from kemu.lab.checks.scheduling import lineages
from kemu.runtime.words import counted


@dataclass(frozen=True, slots=True)
class Wait:
    """One pod's wait, from its creation until it was bound, removed, or the run ended."""

    pod: PodHistory
    seconds: float
    bound: bool
    overtaken: int
    """Pods created later, of the same or lower priority, that were bound while this one waited."""
    before: int = 0
    """How many pods whose place it takes are counted in."""


def waits(history: History) -> list[Wait]:
    """Waits of all pods that a scheduler had to place, in the order of their creation."""
    pods = [pod for pod in history.pods.values() if not pod.preset_node]
    if not pods:
        return []
    end = history.now_ns
    created = np.array([pod.created_ns for pod in pods], dtype=np.int64)
    until = np.array([_end_of_wait(pod, end) for pod in pods], dtype=np.int64)
    priority = np.array([pod.priority for pod in pods], dtype=np.int64)
    bound = np.array([pod.bound_ns is not None for pod in pods], dtype=np.bool_)
    overtaken = _times_overtaken(created, until, priority, bound)
    columns = zip(pods, (until - created).tolist(), bound.tolist(), overtaken.tolist(), strict=True)
    return [Wait(pod, wait_ns / 1e9, is_bound, times) for pod, wait_ns, is_bound, times in columns]


def measured(history: History) -> list[Wait]:
    """Those of the pods that arrived in the window; whom they were overtaken by need not have."""
    return [wait for wait in waits(history) if history.window.has(wait.pod.created_ns)]


def _end_of_wait(pod: PodHistory, end: int) -> int:
    if pod.bound_ns is not None:
        return pod.bound_ns
    if pod.deleting_ns is not None:
        return pod.deleting_ns
    return pod.gone_ns if pod.gone_ns is not None else end


def _times_overtaken(
    created: NDArray[np.int64], until: NDArray[np.int64], priority: NDArray[np.int64], bound: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Walk the bindings in time, adding one to every pod that waits, is older and is not less important."""
    count = len(created)
    overtaken = np.zeros(count, dtype=np.int64)
    order = np.lexsort((np.arange(count), until))
    waiting = np.zeros(0, dtype=np.int64)
    arrivals = np.argsort(created, kind="stable")
    arrived = 0
    since_prune = 0
    for winner in order:
        if not bound[winner]:
            continue
        now = until[winner]
        fresh = []
        while arrived < count and created[arrivals[arrived]] < now:
            fresh.append(arrivals[arrived])
            arrived += 1
        if fresh:
            waiting = np.concatenate((waiting, np.array(fresh, dtype=np.int64)))
        since_prune += 1
        if since_prune >= 64 or len(waiting) < 64:
            waiting = waiting[until[waiting] > now]
            since_prune = 0
        # Pods of one instant (a list of manifests) did not come one after the other in any sense that counts.
        older = (until[waiting] > now) & (created[waiting] < created[winner]) & (priority[waiting] >= priority[winner])
        overtaken[waiting[older]] += 1
    return overtaken


def quantile(values: list[float], q: float) -> float:
    """Nearest rank, so that it is a value that occurred; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * round(q * 1000) // 1000))
    return ordered[int(rank) - 1]


def summary(found: list[Wait]) -> dict[str, dict[str, Any]]:
    """By priority, highest first: p50, p99 and maximum in seconds, pods, those never bound, times overtaken.

    A pod that was never bound counts with the time that it had waited when it was removed or the run ended.
    """
    by_priority: dict[int, list[Wait]] = {}
    for wait in found:
        by_priority.setdefault(wait.pod.priority, []).append(wait)
    return {str(priority): describe(by_priority[priority]) for priority in sorted(by_priority, reverse=True)}


def describe(group: list[Wait]) -> dict[str, Any]:
    """The figures of one group of pods.

    ``censored``: those figures that are lower bounds, because a pod that was never bound had waited no longer than
    that; with its true wait they would be higher.
    """
    seconds = [wait.seconds for wait in group]
    overtaken = [float(wait.overtaken) for wait in group]
    shortest = min((wait.seconds for wait in group if not wait.bound), default=math.inf)
    figures = {"p50_s": quantile(seconds, 0.5), "p99_s": quantile(seconds, 0.99), "max_s": max(seconds, default=0.0)}
    return {
        "pods": len(group),
        "unbound": sum(not wait.bound for wait in group),
        **{name: round(value, 6) for name, value in figures.items()},
        "censored": [name for name, value in figures.items() if shortest <= value],
        "overtaken_p99": int(quantile(overtaken, 0.99)),
        "overtaken_max": int(max(overtaken, default=0.0)),
    }


class NoPodStarves(LimitedCheck):
    """No pod waits longer, or is overtaken more often, than the scenario allows (``checks: starvation``).

    A scenario that sets one of the two limits asks for that one only. A pod that takes the place of another inherits
    how long that one had waited and how often it was overtaken: its work is still not done.
    """

    id: ClassVar[str] = "no-pod-starves"
    detector: ClassVar[bool] = True

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._max_wait_ns, self._max_overtaken = limits.max_wait_ns, limits.max_overtaken
        if not self.is_asked(limits):
            self._max_wait_ns, self._max_overtaken = MAX_WAIT_NS, MAX_OVERTAKEN

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return limits.max_wait_ns is not None or limits.max_overtaken is not None

    def result(self, history: History) -> Result:
        found = waits(history)
        if not found:
            return Result(self.id, None, "no pod had to be scheduled")
        found = _with_those_before(history, found)
        findings = []
        for wait in sorted(found, key=lambda wait: -wait.seconds):
            if self._max_wait_ns is not None and wait.seconds * 1e9 > self._max_wait_ns:
                state = "before it was bound" if wait.bound else "and was never bound"
                findings.append(f"{_named(wait)} waited {wait.seconds:.3f} s {state}")
        findings.extend(
            f"{_named(wait)} was overtaken {counted(wait.overtaken, 'time')}"
            for wait in sorted(found, key=lambda wait: -wait.overtaken)
            if self._max_overtaken is not None and wait.overtaken > self._max_overtaken
        )
        if findings:
            return Result(self.id, False, several(findings))
        worst = max(found, key=lambda wait: wait.seconds)
        return Result(self.id, True, f"longest wait {worst.seconds:.3f} s ({worst.pod.key})")


def _named(wait: Wait) -> str:
    line = f", with {counted(wait.before, 'predecessor')}" if wait.before else ""
    return f"{wait.pod.key} (priority {wait.pod.priority}{line})"


def _with_those_before(history: History, found: list[Wait]) -> list[Wait]:
    """The latest wait of each line of pods, with what its predecessors waited."""
    before = lineages.predecessors(history)
    by_uid: dict[str, Wait] = {}
    for wait in found:
        former = by_uid.pop(before[wait.pod.uid].uid, None) if wait.pod.uid in before else None
        if former is not None:
            seconds, overtaken = wait.seconds + former.seconds, wait.overtaken + former.overtaken
            wait = Wait(wait.pod, seconds, wait.bound, overtaken, former.before + 1)
        by_uid[wait.pod.uid] = wait
    return list(by_uid.values())
