"""Workloads and the ClusterQueues that they are admitted to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kemu.emulated.queues.quotas import Node

NEVER, LOWER, LOWER_OR_NEWER, ANY = "Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"
"""Policies of preemption."""
IN_QUEUE, RECLAIMS, RECLAIMS_BORROWING, FAIR = (
    "InClusterQueue",
    "InCohortReclamation",
    "InCohortReclaimWhileBorrowing",
    "InCohortFairSharing",
)
"""Why a workload is preempted."""


@dataclass(eq=False)
class Workload:
    """What asks for quota all at once, such as a Job. Times are in seconds."""

    name: str
    uid: str
    priority: int
    usage: dict[str, int] = field(default_factory=dict)
    """By flavor and resource; of one that waits, as it would be admitted."""
    uses: frozenset[str] = frozenset()
    """Names in ``usage``; one of which it uses nothing counts, too."""
    queued: float = 0.0
    """By which it is ordered in its queue: its creation, or its eviction."""
    reserved: float | None = None
    """When it got its quota."""
    evicted: bool = False
    queue: Queue | None = None


@dataclass(eq=False)
class Queue(Node):
    """A ClusterQueue with the workloads that are admitted to it."""

    within: str = NEVER
    """``preemption.withinClusterQueue``."""
    reclaim: str = NEVER
    """``preemption.reclaimWithinCohort``."""
    borrow: str = NEVER
    """``preemption.borrowWithinCohort.policy``."""
    borrow_below: int | None = None
    """Its ``maxPriorityThreshold``."""
    workloads: dict[str, Workload] = field(default_factory=dict)

    def admit(self, workload: Workload) -> None:
        self.workloads[workload.name] = workload
        workload.queue = self
        self.add(workload.usage)

    def release(self, workload: Workload) -> None:
        del self.workloads[workload.name]
        self.remove(workload.usage)
