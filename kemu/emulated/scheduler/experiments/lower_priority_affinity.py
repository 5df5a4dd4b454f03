"""Affinity to pods of lower priority: keep those that the preemptor wants near it (``policy.lowerPriorityAffinity``).

A potential solution in the design document ("Supporting Inter-Pod Affinity on lower priority Pods?"), which it
rejected because the sets to try may be many and a limit makes scheduling unpredictable. Its steps: (1) remove all lower
pods from the node and (2) try the pod there; (3) if it fails for anything but pod affinity, the node is of no use; (4)
get the removed pods that match any of its affinity rules; (5, 6) bring back each set of them and try again; (7) a set
with which the pod fits is reprieved first, (8) then as many others as possible, as usual.

With ``victimSearch: one-by-one`` the matching pods are put back one after the other instead, those that match most
rules first, then the more important ones. A pod beside which the preemptor still lacks affinity alone stays, one that
keeps it out otherwise goes again. A pod that matches all rules is enough for kube-scheduler's filters, so this finds
what the sets find, with one evaluation for each matching pod.

Steps 1, 2 and 8 are ordinary preemption (:mod:`kemu.emulated.scheduler.preemption.candidates`); this module has 3 to 7.
Small sets come first, among those of a size the ones with the more important pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.scheduler.cache import terms
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.experiments import searches
from kemu.emulated.scheduler.experiments.searches import Effort
from kemu.emulated.scheduler.framework.statuses import UNRESOLVABLE

_INTER_POD_AFFINITY = "InterPodAffinity"


class AffinityReprieve:
    """Finds the lower pods of a node that the preemptor needs there."""

    def __init__(self, limit: int, *, one_by_one: bool = False) -> None:
        """``limit``: how many sets are tried on one node. ``one_by_one``: no sets are."""
        self._limit = limit
        self._one_by_one = one_by_one
        self.effort = Effort("lowerPriorityAffinity")
        """Effort of the present attempt, over all nodes."""

    def begin(self) -> None:
        """A new attempt."""
        self.effort = Effort(self.effort.algorithm)

    def wanted(
        self, filtering: Filtering, simulation: Simulation, lower: Sequence[PodInfo], verdict: int
    ) -> tuple[PodInfo, ...]:
        """A set of ``lower`` with which the pod fits; it is on the simulated node again. Empty: there is none.

        ``lower``: the pods that were removed from the node, most important first. ``verdict``: that of the filters
        after the removal.
        """
        if not _is_for_want_of_affinity(filtering, verdict):
            return ()
        matching = self._matching(filtering, lower)
        if self._one_by_one:
            return self._reprieved(filtering, simulation, matching)
        return self._first_set(simulation, matching)

    def _reprieved(
        self, filtering: Filtering, simulation: Simulation, matching: Sequence[PodInfo]
    ) -> tuple[PodInfo, ...]:
        kept: list[PodInfo] = []
        for pod in sorted(matching, key=lambda one: -self._matched(filtering, one)):
            self.effort.evaluations += 1
            simulation.add(pod)
            verdict = simulation.verdict()
            if not verdict:
                self.effort.found = True
                return (*kept, pod)
            if _is_for_want_of_affinity(filtering, verdict):
                kept.append(pod)
            else:
                simulation.remove(pod)
        for pod in kept:
            simulation.remove(pod)
        return ()

    def _first_set(self, simulation: Simulation, matching: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
        tried = 0
        for size in range(1, len(matching) + 1):
            for chosen in searches.subsets(matching, size):
                if tried == self._limit:
                    self.effort.gave_up = True
                    return ()
                tried += 1
                self.effort.evaluations += 1
                for pod in chosen:
                    simulation.add(pod)
                if not simulation.verdict():
                    self.effort.found = True
                    return chosen
                for pod in chosen:
                    simulation.remove(pod)
        return ()

    def _matching(self, filtering: Filtering, lower: Sequence[PodInfo]) -> list[PodInfo]:
        """The pods that match any of the rules."""
        return [pod for pod in lower if self._matched(filtering, pod)]

    @staticmethod
    def _matched(filtering: Filtering, pod: PodInfo) -> int:
        """How many of the rules a pod matches."""
        cycle = filtering.cycle
        rules = [terms.pod_selector(term, cycle.cluster.namespaces) for term in cycle.template.affinity_terms]
        return sum(rule.matches(pod.namespace, pod.labels) for rule in rules)


def _is_for_want_of_affinity(filtering: Filtering, verdict: int) -> bool:
    status = filtering.explain(verdict)
    # Its other reasons, the two kinds of anti-affinity, can be resolved by removing pods.
    return status.plugin == _INTER_POD_AFFINITY and status.code == UNRESOLVABLE
