"""A PostFilter plugin of one's own: preempt where the least work is lost, however many pods that are.

DefaultPreemption prefers the node with the fewest victims. Work that a victim has done is lost, unless it says

    example.com/checkpoints: "true"

This is a whole PostFilter, so it decides everything: which nodes it looks at (those that refuse the pod for want of
CPU), which pods leave, and where. To change the order of victims only, see victims.py.
"""

from __future__ import annotations

from kemu.scheduler.framework import Candidate, Diagnosis, NodeInfo, PodInfo, PostFilterPlugin, PostFilterResult

LABEL = "example.com/checkpoints"
CPU = 0  # the number of cpu in lists of resources


class LeastWorkLost(PostFilterPlugin):
    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        pod = diagnosis.cycle.pod
        candidates: list[tuple[int, str, Candidate]] = []
        for node in diagnosis.cycle.cluster.rows:
            status = diagnosis.status(node.row)
            if status is None or status.reasons != ("Insufficient cpu",):
                continue  # it fits, or removing pods would not be enough
            victims = self.victims(node, pod)
            if victims:
                lost_s = sum(self.work_s(victim) for victim in victims)
                most_important_first = tuple(sorted(victims, key=lambda victim: -victim.priority))
                candidates.append((lost_s, node.name, Candidate(node.name, most_important_first, 0, (lost_s,))))
        if not candidates:
            return PostFilterResult(message="no node has pods of lower priority that are enough")
        _, name, best = min(candidates, key=lambda one: one[:2])
        return PostFilterResult(name, candidate=best, candidates=len(candidates))

    def victims(self, node: NodeInfo, pod: PodInfo) -> list[PodInfo]:
        """Those with the least work, until there is room; none if there never is."""
        missing = dict(pod.requests)[CPU] - (node.allocatable[CPU] - node.requested[CPU])
        found: list[PodInfo] = []
        lower = [other for other in node.pods.values() if other.priority < pod.priority and not other.terminating]
        for other in sorted(lower, key=lambda other: (self.work_s(other), other.key)):
            if missing <= 0:
                break
            found.append(other)
            missing -= dict(other.requests).get(CPU, 0)
        return found if missing <= 0 else []

    def work_s(self, pod: PodInfo) -> int:
        """Seconds that it has run and would have to run again."""
        if pod.labels.get(LABEL) == "true" or pod.start_s is None or self.handle.clock is None:
            return 0
        return self.handle.clock.unix_ns() // 10**9 - pod.start_s
