"""Gangs, as the Coscheduling plugin of kubernetes-sigs/scheduler-plugins made them in 2020 (117.yaml needs it).

A pod names its gang and the size of it in two labels. Permit lets no member pass before all of them have a node. With
the argument ``postFilter``, a member that finds none turns away the members that wait (#126 of that repository).
"""

from __future__ import annotations

from kemu.scheduler.framework import (
    WAIT,
    Cycle,
    Diagnosis,
    PermitPlugin,
    PodInfo,
    PostFilterPlugin,
    PostFilterResult,
    ReservePlugin,
    Status,
)

GANG, MEMBERS = "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"
LONGEST_WAIT_S = 60.0
"""For the permit (``PermitWaitingTimeSeconds``)."""


def gang_of(pod: PodInfo) -> tuple[str, str]:
    """Namespace and name; the name is empty for a pod without one."""
    return pod.namespace, pod.labels.get(GANG, "")


class Coscheduling(PermitPlugin, ReservePlugin, PostFilterPlugin):
    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        gang = gang_of(cycle.pod)
        if not gang[1]:
            return None, 0.0
        placed = sum(gang_of(pod) == gang for pod in self.handle.cluster.pods.values())
        if placed < int(cycle.pod.labels[MEMBERS]):
            return Status(WAIT), LONGEST_WAIT_S
        for waiting in list(self.handle.waiting.values()):
            if gang_of(waiting.pod) == gang:
                waiting.allow(self.name)
        return None, 0.0

    def unreserve(self, cycle: Cycle, node: str) -> None:
        self._turn_away(cycle.pod)

    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        if self.args.get("postFilter"):
            self._turn_away(diagnosis.cycle.pod)
        return PostFilterResult()

    def _turn_away(self, member: PodInfo) -> None:
        gang = gang_of(member)
        for waiting in list(self.handle.waiting.values()):
            if gang[1] and gang_of(waiting.pod) == gang:
                waiting.reject(self.name, f"the gang of {member.name} is not complete")
