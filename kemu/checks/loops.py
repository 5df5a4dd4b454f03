"""Checks for loops: pods evicted from a node where their predecessors were evicted, and mutual preemption.

A workload here is a controller, a workload of the scenario, or a pod that comes back under its own name
(:attr:`kemu.checks.facts.PodHistory.owner`).
"""

from __future__ import annotations

from typing import ClassVar, Self

from kemu.checks.facts import Return
from kemu.checks.history import History
from kemu.checks.limits import DEFAULT, MAX_EVICTION_RETURNS, MAX_PREEMPTION_RETURNS, Limits
from kemu.checks.results import Check, Result, counted, seconds, several


class NoEvictionLoop(Check):
    """No workload returns to a node and is evicted there again more often than allowed
    (``checks: loops: {evictions}``)."""

    id: ClassVar[str] = "no-eviction-loop"
    detector: ClassVar[bool] = True

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._most = limits.max_eviction_returns if limits.max_eviction_returns is not None else MAX_EVICTION_RETURNS

    @classmethod
    def within(cls, limits: Limits) -> Self:
        return cls(limits)

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return limits.max_eviction_returns is not None

    def result(self, history: History) -> Result:
        if not history.counts["pods_bound"] and not history.counts["pods_running"]:
            return Result(self.id, None, "no pod ran")
        return _judged(
            self.id,
            history.eviction_returns,
            self._most,
            "evicted again from",
            "came back to a node to be evicted there",
        )


class NoPreemptionLoop(Check):
    """No two workloads preempt each other in turn, more often than allowed (``checks: loops: {preemptions}``)."""

    id: ClassVar[str] = "no-preemption-loop"
    detector: ClassVar[bool] = True

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._most = (
            limits.max_preemption_returns if limits.max_preemption_returns is not None else MAX_PREEMPTION_RETURNS
        )

    @classmethod
    def within(cls, limits: Limits) -> Self:
        return cls(limits)

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return limits.max_preemption_returns is not None

    def result(self, history: History) -> Result:
        if not history.counts["scheduling_attempts"]:
            return Result(self.id, None, "no pod had to be scheduled")
        return _judged(
            self.id, history.preemption_returns, self._most, "preempted in turn by", "preempted what had preempted it"
        )


def _judged(check: str, found: list[Return], most: int, how: str, nobody: str) -> Result:
    worst: dict[tuple[str, str], Return] = {(one.who, one.where): one for one in found}
    findings = [
        f"{one.who} was {how} {one.where} {counted(one.times, 'time')}, the last at {seconds(one.time_ns)}"
        for one in sorted(worst.values(), key=lambda one: -one.times)
        if one.times > most
    ]
    if findings:
        return Result(check, False, several(findings))
    return Result(check, True, counted(len(found), "return") if found else f"nobody {nobody}")
