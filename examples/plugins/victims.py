"""An order of victims of one's own, without a PostFilter: spare the pods that are nearly done.

DefaultPreemption does the rest: it looks for nodes, keeps to disruption budgets, and takes no more pods than it needs.
How long a pod still runs is known to no real scheduler, so a scenario has to allow it: ``policy: {runTimes: known}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.scheduler.framework import ArgumentError, Handle, PodInfo, VictimOrderPlugin

FOR_EVER_S = 10**9


class SpareNearlyDone(VictimOrderPlugin):
    """The pod that runs longest yet is the first victim; who is done within ``graceSeconds`` is none at all."""

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        grace_s = args.get("graceSeconds", 0)
        if not isinstance(grace_s, int) or grace_s < 0:
            raise ArgumentError("graceSeconds", f"must be a whole number of at least 0: {grace_s!r}")
        self.grace_s = grace_s
        self.run_times = handle.run_times()

    def may_preempt(self, preemptor: PodInfo, victim: PodInfo) -> bool:
        return self.left_s(victim) > self.grace_s

    def importance(self, victim: PodInfo) -> tuple[int, ...]:
        return (victim.priority, -self.left_s(victim))

    def cost(self, victims: Sequence[PodInfo]) -> tuple[int, ...]:
        """Where the pods would have run longest: most of their work is still to be done."""
        return (max(victim.priority for victim in victims), -sum(self.left_s(victim) for victim in victims))

    def left_s(self, pod: PodInfo) -> int:
        remaining_s = self.run_times.remaining_s(pod)
        return FOR_EVER_S if remaining_s is None else round(remaining_s)
