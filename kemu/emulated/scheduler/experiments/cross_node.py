"""Cross node preemption (``policy.crossNodePreemption``): victims on other nodes than that of the preemptor.

A potential solution in the design document, which rejected it for its cost. Where no node becomes feasible by removing
its own pods, pods of other nodes may block it: by anti-affinity or a spread constraint over a zone, for example. As the
filters are black boxes, all sets of such pods are tried: with all lower pods of a node removed, sets of lower pods on
other nodes are removed too until the pod fits. The smallest sets come first; among those of a size, by disruption
budgets that would be violated, then by the priority of their most important member. The first set that makes room on
some node is taken; if it does on several, they are compared as in ordinary preemption. Pods of the node itself are
reprieved as usual.

With ``victimSearch: one-by-one`` no sets are tried: for each node, all lower pods of the cluster are removed, and if
the pod fits then, they are reprieved one by one as in ordinary preemption, those of other nodes first. None of the
victims that remain can be spared, but a smaller set may exist. The evaluations grow with nodes times pods.

The search uses the scope of filters, though: where a filter rejects the node whose scope is the node, removing pods of
other nodes cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from kemu.emulated.scheduler.cache import pods
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.cycle import verdicts
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.experiments import searches
from kemu.emulated.scheduler.experiments.searches import Effort
from kemu.emulated.scheduler.framework.interfaces import Scope
from kemu.emulated.scheduler.framework.results import Candidate

TERMINATING = "not eligible due to terminating pods on other nodes that make room on the nominated node."


class VictimChoice(Protocol):
    """What the search uses of :class:`kemu.emulated.scheduler.preemption.candidates.Preemptor`, which calls it."""

    cluster: Cluster

    def lower_pods(self, node: NodeInfo, pod: PodInfo) -> list[PodInfo]: ...

    def importance(self, pod: PodInfo) -> tuple[int, ...]: ...

    def violations(self, victims: list[PodInfo]) -> int: ...

    def spare(self, node: NodeInfo, lower: list[PodInfo], reprieve: Callable[[PodInfo], bool]) -> Candidate: ...

    def candidate(self, node: NodeInfo, victims: list[PodInfo]) -> Candidate: ...


class CrossNodeSearch:
    """Looks for victims on several nodes, for the pods of one profile."""

    def __init__(self, preemptor: VictimChoice, budget: int, *, one_by_one: bool = False) -> None:
        """``budget``: how many evaluations an attempt may take before it gives up. ``one_by_one``: instead of sets."""
        self._preemptor = preemptor
        self._budget = budget
        self._one_by_one = one_by_one
        self.effort = Effort("crossNodePreemption")
        """Effort of the present attempt."""

    def begin(self) -> None:
        """A new attempt."""
        self.effort = Effort(self.effort.algorithm)

    def awaits(self, filtering: Filtering, node: NodeInfo) -> bool:
        """Whether only pods that are being preempted on other nodes still block the pod's nominated node."""
        filtering.look_again()
        if filtering.is_local(node):
            return False
        pod = filtering.cycle.pod
        others = (one for one in self._lower_pods(pod) if one.node_name != node.name)
        going = [one for one in others if pods.terminates_by_preemption(one.pod)]
        if not going:
            return False
        simulation = Simulation(filtering, node)
        for one in going:
            simulation.remove_elsewhere(one)
        self.effort.evaluations += 1
        return simulation.verdict() == 0

    def search(self, filtering: Filtering, rows: Sequence[int]) -> list[Candidate]:
        """The candidates of the first set that makes room on any node; none if the budget ends before."""
        places = self._places(filtering, rows)
        if not places:
            return []
        others = self._expendable_first(self._lower_pods(filtering.cycle.pod))
        if self._one_by_one:
            return self._reprieving(places, others)
        reach = _Reach(filtering)
        for size in range(1, len(others) + 1):
            for victims in searches.subsets(others, size):
                elsewhere = {victim.node_name: None for victim in victims}
                asked = [place for place in places if place.original.name not in elsewhere]
                # A set that leaves no node to ask counts as well: there may be exponentially many of them.
                if not self._afford(max(1, len(asked))):
                    return []
                kinds = reach.kinds(victims)
                candidates = [place.candidate(victims) for place in asked if place.fits_without(victims, kinds)]
                if candidates:
                    self.effort.found = True
                    return candidates
        return []

    def _reprieving(self, places: Sequence[_Place], others: Sequence[PodInfo]) -> list[Candidate]:
        """A candidate for each node that the removal of all lower pods frees, as far as the budget reaches."""
        found = []
        for place in places:
            elsewhere = [one for one in others if one.node_name != place.original.name]
            if not elsewhere:
                continue
            if not self._afford(1 + len(elsewhere)):
                break
            if not place.fits_without(elsewhere):
                self.effort.evaluations -= len(elsewhere)
                continue
            self.effort.found = True
            needed = self._preemptor.spare(place.original, elsewhere, place.takes_back)
            found.append(place.candidate(needed.victims))
        return found

    def _afford(self, evaluations: int) -> bool:
        if self.effort.evaluations + evaluations > self._budget:
            self.effort.gave_up = True
            return False
        self.effort.evaluations += evaluations
        return True

    def _places(self, filtering: Filtering, rows: Sequence[int]) -> list[_Place]:
        """The nodes that only pods of other nodes can block, each without its lower pods."""
        found = []
        for row in rows:
            node = self._preemptor.cluster.rows[row]
            if filtering.is_local(node):
                continue
            if not self._afford(1):
                break
            place = _Place(self._preemptor, filtering, node, self.effort)
            verdict = place.simulation.verdict()
            if not verdict:
                continue
            plugin = filtering.line_up.filters[verdicts.split(verdict)[0]]
            if plugin.scope is Scope.CLUSTER:
                found.append(place)
        return found

    def _lower_pods(self, pod: PodInfo) -> list[PodInfo]:
        """All pods of the cluster that may be preempted for another."""
        preemptor = self._preemptor
        return [one for node in preemptor.cluster.rows for one in preemptor.lower_pods(node, pod)]

    def _expendable_first(self, lower: list[PodInfo]) -> list[PodInfo]:
        preemptor = self._preemptor
        lower.sort(key=preemptor.importance, reverse=True)
        # Terminating pods cost nothing; pods whose budget allows no disruption come last.
        lower.sort(key=lambda one: (not one.terminating, preemptor.violations([one])))
        return lower


class _Kind:
    """Of pods that look alike to the filters: one template, the same labels, nodes with the same labels notice them."""

    def __init__(self, reached: Collection[tuple[str, str]]) -> None:
        self.reached = frozenset(reached)
        """Labels of the nodes that notice it."""


class _Reach:
    """Which nodes notice that pods are removed from others."""

    def __init__(self, filtering: Filtering) -> None:
        self._filtering = filtering
        self._known: dict[str, _Kind | None] = {}
        """By uid; None: all nodes may notice it."""
        self._kinds: dict[tuple[Template, tuple[tuple[str, str], ...], frozenset[tuple[str, str]]], _Kind] = {}

    def kinds(self, victims: Sequence[PodInfo]) -> tuple[_Kind, ...] | None:
        """None: all nodes may notice that these are removed."""
        for victim in victims:
            if victim.uid not in self._known:
                self._known[victim.uid] = self._kind(victim)
        found = tuple(kind for victim in victims if (kind := self._known[victim.uid]) is not None)
        return found if len(found) == len(victims) else None

    def _kind(self, victim: PodInfo) -> _Kind | None:
        node = self._filtering.cycle.cluster.nodes[victim.node_name]
        labels: set[tuple[str, str]] = set()
        for _place, plugin, state in self._filtering.filters():
            reached = plugin.reach(state, node, victim)
            if reached is None:
                return None
            labels.update(reached)
        kind = _Kind(labels)
        return self._kinds.setdefault((victim.template, tuple(victim.labels.items()), kind.reached), kind)


class _Place:
    """A node without its lower pods, on which the pod is to be put."""

    def __init__(self, preemptor: VictimChoice, filtering: Filtering, node: NodeInfo, effort: Effort) -> None:
        self._preemptor = preemptor
        self._effort = effort
        self.original = node
        self._labels = frozenset(node.labels.items())
        self._refused: set[tuple[_Kind, ...]] = set()
        self._lower = preemptor.lower_pods(node, filtering.cycle.pod)
        self.simulation = Simulation(filtering, node)
        for pod in self._lower:
            self.simulation.remove(pod)

    def fits_without(self, victims: Sequence[PodInfo], kinds: tuple[_Kind, ...] | None = None) -> bool:
        """Whether the pod fits when these are removed from other nodes. If so, they stay removed.

        ``kinds``: of the victims; what the node does not notice, or others of these kinds did not help, is not tried.
        """
        if kinds is not None and (kinds in self._refused or all(self._labels.isdisjoint(one.reached) for one in kinds)):
            return False
        for victim in victims:
            self.simulation.remove_elsewhere(victim)
        if not self.simulation.verdict():
            return True
        for victim in victims:
            self.simulation.add_elsewhere(victim)
        if kinds is not None:
            self._refused.add(kinds)
        return False

    def takes_back(self, victim: PodInfo) -> bool:
        """Put a pod back that was removed from another node; False, and it stays removed, if the pod does not fit."""
        self.simulation.add_elsewhere(victim)
        if self.simulation.verdict():
            self.simulation.remove_elsewhere(victim)
            return False
        return True

    def candidate(self, victims: Sequence[PodInfo]) -> Candidate:
        """The candidate, with these removed from other nodes and the node's own pods reprieved where possible."""

        def reprieve(pod: PodInfo) -> bool:
            self._effort.evaluations += 1
            return self.simulation.reprieve(pod)

        own = self._preemptor.spare(self.original, self._lower, reprieve)
        return self._preemptor.candidate(self.original, [*own.victims, *victims])
