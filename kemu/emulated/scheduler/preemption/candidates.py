"""Victims: which pods of lower priority have to leave which node to make room for a pod.

Mirrors ``pkg/scheduler/framework/preemption`` and the DefaultPreemption plugin: eligibility, a dry run on each node
where removing pods could help, removal of all lower pods and reprieve one by one (first those whose disruption budget
would be violated), and the order in which candidates are preferred. Nothing is deleted here; see
:mod:`kemu.emulated.scheduler.preemption.evictions`.

Most preemptors come from few templates too, so the result of a dry run is kept, by template and node, until the node
changes (its generation) or a budget allows more or less, as long as no filter that looks beyond the node could make a
difference. Where only resources matter, which is the usual case, a dry run is a few sums over the node's pods.

The algorithms that Kubernetes rejected have modules of their own: :mod:`kemu.emulated.scheduler.experiments.cross_node`
is asked when no node is a candidate, :mod:`kemu.emulated.scheduler.experiments.lower_priority_affinity` when a node
without its lower pods is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kemu.emulated.objects import selectors
from kemu.emulated.scheduler.cache import pods
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle import diagnoses, verdicts
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.experiments.cross_node import TERMINATING as TERMINATING_ELSEWHERE
from kemu.emulated.scheduler.experiments.cross_node import CrossNodeSearch
from kemu.emulated.scheduler.experiments.lower_priority_affinity import AffinityReprieve
from kemu.emulated.scheduler.experiments.searches import Effort
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework.interfaces import VictimOrderPlugin
from kemu.emulated.scheduler.framework.results import Candidate
from kemu.emulated.scheduler.framework.statuses import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Status, unresolvable
from kemu.emulated.scheduler.preemption import sorts, victim_orders
from kemu.messages.k8s import policy_v1_pb2
from kemu.runtime.env import Random

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

_NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")

_SPARE = 64
_KEPT_DRY_RUNS = 50_000
"""Results of dry runs that one profile keeps, about."""


class Preemption(NamedTuple):
    """The result of preemption for one pod."""

    candidate: Candidate | None
    message: str
    """Why there is no candidate; the text of the PostFilter phase."""
    clears_nomination: bool
    """No node helps: an earlier nomination of the pod is cleared."""
    candidates: int = 0
    """How many nodes were candidates."""
    efforts: tuple[Effort, ...] = ()
    """The cost of searches that Kubernetes does not do."""
    failed: bool = False
    """Dry runs ended in errors, and none in a candidate."""


class _Results(dict[str, "tuple[int, Candidate | Status]"]):
    """By node, of one template: the generation of the node and the result of the dry run on it."""

    __slots__ = ("_failed", "_layout", "_position", "_prune_at")

    def __init__(self) -> None:
        self._prune_at = _SPARE
        self._failed: BoolArray = np.zeros(0, dtype=np.bool_)
        self._layout = -1
        self._position = 0

    def failed(self, cluster: Cluster) -> BoolArray:
        """By row, to be kept: nodes that are no candidates and have not changed since that was found out.

        A generation may be newer, because a pod has started or was renewed: that orders victims, and makes none.
        """
        changed = cluster.pod_changes.since(self._position) if self._layout == cluster.layout else None
        if changed is None:
            self._failed = np.zeros(cluster.capacity, dtype=np.bool_)
        elif changed:
            self._failed[changed] = False
        self._layout, self._position = cluster.layout, cluster.pod_changes.end
        return self._failed

    def prune(self, nodes: Mapping[str, NodeInfo]) -> None:
        """From time to time, drop results of earlier generations: they hold on to deleted pods."""
        if len(self) > self._prune_at:
            for name, (generation, _result) in list(self.items()):
                node = nodes.get(name)
                if node is None or node.generation != generation:
                    del self[name]
            self._prune_at = 2 * len(self) + _SPARE


_FEW_VERDICTS = 16
_AT_ONCE = 1024


def _from(rows: IntArray, offset: int, without: BoolArray | None = None) -> Iterator[int]:
    """All rows, from the one at ``offset`` on, but those in ``without``. Most searches end long before they have been
    all around."""
    for begin, end in ((offset, len(rows)), (0, offset)):
        for first in range(begin, end, _AT_ONCE):
            some = rows[first : min(first + _AT_ONCE, end)]
            yield from (some if without is None else some[~without[some]]).tolist()


class Preemptor:
    """Chooses victims for the pods of one profile."""

    def __init__(self, cluster: Cluster, policy: Policy, rng: Random, candidates_wanted: Callable[[int], int]) -> None:
        """``candidates_wanted``: potential nodes → the number of candidates with which the search may stop."""
        self.candidates_wanted = candidates_wanted
        self.cluster = cluster
        self.random = rng
        self._kept: dict[int, _Results] = {}
        """By template."""
        self.candidates: list[Candidate] = []
        """Those of the latest preemption, for extenders to look at."""
        self._budgets: list[_Budget] = []
        self._budgets_version = -1
        self._order = victim_orders.ORDERS[policy.victimOrder]
        self.is_lower, self.importance = self._order.is_lower, self._order.importance
        self._keeps = True
        """Whether a dry run comes to the same as long as neither the template of the preemptor nor the node changes."""
        self.is_eager: Callable[[PodInfo], bool] | None = victim_orders.has_not_started
        """Which pods go before their equals; None: none, as where the clock stands during a decision."""
        budget, limit, by_one = policy.crossNodePreemption, policy.lowerPriorityAffinity, policy.victimSearch != "sets"
        self._cross_node = CrossNodeSearch(self, budget, one_by_one=by_one) if budget else None
        self._affinity = AffinityReprieve(limit, one_by_one=by_one) if limit else None

    def order_by(self, plugin: VictimOrderPlugin) -> None:
        """Ask a plugin about victims. It may look at whatever it wants, such as the time: no dry run is kept."""
        self._order = victim_orders.ByPlugin(plugin)
        self.is_lower, self.importance, self._keeps = self._order.is_lower, self._order.importance, False

    def preempt(self, filtering: Filtering, nominated_node: str | None = None) -> Preemption:
        """Find the node and its victims for a pod that no node can take. ``nominated_node`` as below."""
        searches = [one for one in (self._cross_node, self._affinity) if one is not None]
        for search in searches:
            search.begin()
        found = self._preempt(filtering, nominated_node)
        if not searches:
            return found
        return found._replace(efforts=tuple(one.effort for one in searches if one.effort.evaluations))

    def _preempt(self, filtering: Filtering, nominated_node: str | None) -> Preemption:
        pod = filtering.cycle.pod
        reason = self.not_eligible(filtering, pod, nominated_node)
        if reason:
            return Preemption(None, reason, clears_nomination=False)
        potential = self.potential_rows(filtering)
        if not len(potential):
            return Preemption(None, self.failure(filtering, {}), clears_nomination=True)
        offset = self.random.randrange(len(potential))
        if not self._lower_pods_exist(pod):
            return Preemption(None, _failure(filtering, {_NO_VICTIMS: len(potential)}), clears_nomination=True)
        wanted = self.candidates_wanted(len(potential))
        candidates, failures = self.dry_runs(filtering, potential, offset, wanted)
        if not candidates and self._cross_node is not None:
            candidates = self._cross_node.search(filtering, tuple(_from(potential, offset)))
        if not candidates:
            errors = [status for status in failures.values() if status.code == ERROR]
            if errors:
                return Preemption(None, _aggregate(errors), clears_nomination=False, failed=True)
            return Preemption(None, self.failure(filtering, failures), clears_nomination=True)
        self.candidates = candidates
        best = self.best(candidates)[0]
        return Preemption(best, "", clears_nomination=False, candidates=len(candidates))

    # Eligibility ----------------------------------------------------------------------------------------------------

    def not_eligible(self, filtering: Filtering, pod: PodInfo, nominated_node: str | None = None) -> str:
        """Why the pod may not preempt; "" when it may. ``nominated_node`` defaults to that of its status."""
        if pod.template.never_preempts:
            return NEVER
        name = pod.pod.status.nominatedNodeName if nominated_node is None else nominated_node
        node = self.cluster.nodes.get(name) if name else None
        if node is None or node.row < 0:
            return ""
        if self._is_beyond_help(filtering, node):
            return ""
        for other in node.pods.values():
            if other.terminating and self.is_lower(other, pod) and self._is_awaited(other):
                return TERMINATING
        if self._cross_node is not None and self._cross_node.awaits(filtering, node):
            return TERMINATING_ELSEWHERE
        return ""

    def _is_beyond_help(self, filtering: Filtering, node: NodeInfo) -> bool:
        """Whether removing pods cannot help on the nominated node: then none is waited for there."""
        status = filtering.status(node.row)
        return status is not None and status.code == UNRESOLVABLE

    def _is_awaited(self, terminating: PodInfo) -> bool:
        """Whether a lower pod on the nominated node is waited for."""
        return pods.terminates_by_preemption(terminating.pod)

    def potential_rows(self, filtering: Filtering) -> IntArray:
        """Nodes where removing pods could help."""
        if filtering.rejection is not None:
            return np.arange(filtering.nodes if filtering.rejection.code == UNSCHEDULABLE else 0)
        curable = [
            verdict for verdict in filtering.tally if verdict and filtering.explain(verdict).code == UNSCHEDULABLE
        ]
        if not curable:
            return np.arange(0)
        evaluation, verdicts = filtering.evaluation, filtering.verdicts[: filtering.nodes]
        is_kept, kept = filtering.verdicts is evaluation.verdicts, evaluation.with_verdicts
        if is_kept and kept is not None and kept[0].issuperset(curable):
            return kept[1]
        if len(curable) > _FEW_VERDICTS:
            rows = np.flatnonzero(np.isin(verdicts, curable))
        else:
            chosen = verdicts == curable[0]
            for verdict in curable[1:]:
                chosen |= verdicts == verdict
            rows = np.flatnonzero(chosen)
        if is_kept:
            evaluation.with_verdicts = frozenset(curable), rows
        return rows

    # Dry run --------------------------------------------------------------------------------------------------------

    def dry_runs(
        self, filtering: Filtering, rows: IntArray, offset: int, wanted: int
    ) -> tuple[list[Candidate], dict[str, Status]]:
        """Try the nodes from ``offset`` on until there are ``wanted`` candidates, one of them without violations.

        Returns the candidates, and why the other nodes that were tried are none: all of them where the search ends
        without as many candidates.
        """
        candidates: list[Candidate] = []
        failures: dict[str, Status] = {}
        harmless = False
        filtering.look_again()
        kept = self._kept_of(filtering)
        run = _resource_dry_run(self, filtering)
        own = self.cluster.nominator.node_of(filtering.cycle.pod.uid)
        nodes = self.cluster.rows
        local_rows = filtering.local_rows() if filtering.states else None

        def tried(row: int) -> Candidate | Status:
            node = nodes[row]
            name = node.name
            result: Candidate | Status
            local = local_rows is None or local_rows[row]
            known = kept.get(name) if local and name != own else None
            if known is not None and known[0] == node.generation:
                result = known[1]
            else:
                simple = local and not node.nominated and not filtering.evaluation.object_verdicts[row]
                result = run.on(node) if run is not None and simple else self.dry_run(filtering, node, local)
                if local and name != own:
                    kept[name] = (node.generation, result)
            if isinstance(result, Candidate) and not result.victims:
                # All filters pass without any removal: only an extender rejected the node.
                return Status(ERROR, (f'expected at least one victim pod on node "{name}"',))
            return result

        failed = kept.failed(self.cluster) if local_rows is None and self._affinity is None else None
        if failed is not None and own in self.cluster.nodes:
            failed[self.cluster.nodes[own].row] = False
        for row in _from(rows, offset, failed):
            result = tried(row)
            if isinstance(result, Candidate):
                candidates.append(result)
                harmless = harmless or result.violations == 0
                if harmless and len(candidates) >= wanted:
                    return candidates, failures
            else:
                failures[nodes[row].name] = result
                if failed is not None and result.code != ERROR:
                    failed[row] = True
        if failed is not None:
            every = ((nodes[row].name, tried(row)) for row in _from(rows, offset))
            failures = {name: result for name, result in every if not isinstance(result, Candidate)}
        return candidates, failures

    def _kept_of(self, filtering: Filtering) -> _Results:
        """The results known for the pod's template, of nodes that alone decide."""
        self._look_at_budgets()
        if not self._keeps:
            return _Results()
        number = filtering.cycle.template.number
        kept = self._kept.get(number)
        if kept is None:
            if len(self._kept) >= max(8, _KEPT_DRY_RUNS // max(1, filtering.nodes)):
                for old in list(self._kept)[: len(self._kept) // 2]:
                    del self._kept[old]
            # This may be the only pod of its template: nothing is kept for the first one.
            self._kept[number] = _Results()
            return _Results()
        kept.prune(self.cluster.nodes)
        return kept

    def _look_at_budgets(self) -> None:
        """Forget the results of dry runs when a budget allows more or less; most updates only count its pods."""
        if self._budgets_version == self.cluster.budgets_version:
            return
        self._budgets_version = self.cluster.budgets_version
        known = [budget.content for budget in self._budgets]
        self._budgets = [_Budget(budget) for budget in self.cluster.budgets.values()]
        if [budget.content for budget in self._budgets] != known:
            self._kept.clear()

    def dry_run(self, filtering: Filtering, node: NodeInfo, local: bool = False) -> Candidate | Status:
        """The victims on the node without which the pending pod fits, or why no removal helps.

        ``local``: only the filters that look at the node alone need to be asked.
        """
        lower = self.lower_pods(node, filtering.cycle.pod)
        if not lower:
            return _NO_VICTIMS
        simulation = Simulation(filtering, node, local)
        for other in lower:
            simulation.remove(other)
        verdict = simulation.verdict()
        if verdict:
            wanted: tuple[PodInfo, ...] = ()
            if self._affinity is not None:
                sorts.sort(lower, self.importance, self.is_eager)
                wanted = self._affinity.wanted(filtering, simulation, lower, verdict)
            if not wanted:
                return filtering.explain(verdict)
            lower = [other for other in lower if other not in wanted]
        return self.spare(node, lower, simulation.reprieve)

    def spare(self, node: NodeInfo, lower: list[PodInfo], reprieve: Callable[[PodInfo], bool]) -> Candidate:
        """Reprieve, one by one, the pods of a node from which all of ``lower`` were removed.

        First those whose disruption would violate a budget, each group in order of importance.
        """
        if len(lower) > 1:
            sorts.sort(lower, self.importance, self.is_eager)
        violating, others = self._split_by_budget(lower)
        victims = [other for other in violating if not reprieve(other)]
        violations = len(victims)
        victims += [other for other in others if not reprieve(other)]
        if violations and len(victims) > violations:
            sorts.sort(victims, self.importance, self.is_eager)
        return Candidate(node.name, tuple(victims), violations, self._order.preference(victims, violations))

    def candidate(self, node: NodeInfo, victims: list[PodInfo]) -> Candidate:
        """A candidate with victims on any nodes."""
        victims = sorted(victims, key=self.importance)
        violations = self.violations(victims)
        return Candidate(node.name, tuple(victims), violations, self._order.preference(victims, violations))

    def violations(self, victims: list[PodInfo]) -> int:
        """How many of these would violate a disruption budget if all of them went."""
        return len(self._split_by_budget(victims)[0])

    def _split_by_budget(self, lower: list[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Pods whose disruption would violate a budget, and the others; the order is kept."""
        if not self._budgets:
            return [], lower
        for budget in self._budgets:
            budget.left = budget.allowed
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in lower:
            # Every budget that matches is charged, also when one is violated already.
            violated = [budget.charge(pod) for budget in self._budgets]
            (violating if any(violated) else others).append(pod)
        return violating, others

    def violating_units(self, units: Sequence[Sequence[PodInfo]]) -> list[bool]:
        """Of pods that go together: whether that would violate a budget, where all units before one go, too."""
        self._look_at_budgets()
        for budget in self._budgets:
            budget.left = budget.allowed
        # Nothing further is charged for a unit once a budget is violated.
        return [any(budget.charge(pod) for pod in unit for budget in self._budgets) for unit in units]

    def rated(self, node: str, victims: list[PodInfo], violations: int) -> Candidate:
        """A candidate as an extender sees it."""
        return Candidate(node, tuple(victims), violations, self._order.preference(victims, violations))

    # Order ----------------------------------------------------------------------------------------------------------

    def lower_pods(self, node: NodeInfo, pod: PodInfo) -> list[PodInfo]:
        """The pods of a node that may be preempted for another."""
        if self._order.lower_by_priority and self._keeps:
            priority = pod.priority
            return [other for other in node.pods.values() if other.priority < priority]
        return [other for other in node.pods.values() if self.is_lower(other, pod)]

    def _lower_pods_exist(self, pod: PodInfo) -> bool:
        """Whether any node may have pods that can be preempted for this one."""
        if not self._order.lower_by_priority:
            return True
        return any(priority < pod.priority for priority in self.cluster.priorities)

    def best(self, candidates: list[Candidate]) -> list[Candidate]:
        """The candidates that remain after all criteria; they are equal."""
        lowest = min(candidate.preference for candidate in candidates)
        return [candidate for candidate in candidates if candidate.preference == lowest]

    def failure(self, filtering: Filtering, failures: dict[str, Status]) -> str:
        """The text when no node is a candidate."""
        by_status: dict[Status, int] = {}
        for status in failures.values():
            by_status[status] = by_status.get(status, 0) + 1
        return _failure(filtering, by_status)


def _aggregate(errors: list[Status]) -> str:
    """Several errors in one line, each once (``Aggregate`` of k8s.io/apimachinery)."""
    messages = list(dict.fromkeys(status.message for status in errors))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def _failure(filtering: Filtering, by_status: Mapping[Status, int]) -> str:
    """The text, from how many nodes are not candidates for which reason."""
    tally: dict[Status, int] = {}
    untried = filtering.nodes
    for status, count in by_status.items():
        bare = status._replace(plugin="")
        tally[bare] = tally.get(bare, 0) + count
        untried -= count
    if untried:
        tally[_NOT_HELPFUL] = untried
    return diagnoses.failure_message(filtering.nodes, tally.items())


def _resource_dry_run(preemptor: Preemptor, filtering: Filtering) -> _ResourceDryRun | None:
    """A quicker dry run, where a single filter looks at the pods of one node, and only at sums of their requests."""
    active = filtering.evaluation.filters.on_node
    if len(active) != 1:
        return None
    _place, plugin, state = active[0]
    demand = plugin.resource_demand(state)
    return None if demand is None else _ResourceDryRun(preemptor, filtering, demand)


class _ResourceDryRun:
    """:meth:`Preemptor.dry_run` where only resources matter and no pod is nominated to the node: plain sums."""

    __slots__ = ("_amounts", "_filtering", "_items", "_place", "_plugin", "_preemptor", "_state")

    def __init__(self, preemptor: Preemptor, filtering: Filtering, demand: Sequence[tuple[int, int]]) -> None:
        self._preemptor = preemptor
        self._filtering = filtering
        ((self._place, self._plugin, self._state),) = filtering.evaluation.filters.on_node
        self._items = demand
        self._amounts: dict[int, list[int]] = {}

    def _takes(self, pod: PodInfo) -> list[int]:
        """The pod's request of each resource that the pending pod requests."""
        if pod.requests is not pod.template.requests:
            amounts = dict(pod.requests)
            return [amounts.get(number, 0) for number, _amount in self._items]
        takes = self._amounts.get(pod.template.number)
        if takes is None:
            amounts = dict(pod.requests)
            takes = self._amounts[pod.template.number] = [amounts.get(number, 0) for number, _amount in self._items]
        return takes

    def on(self, node: NodeInfo) -> Candidate | Status:
        lower = self._preemptor.lower_pods(node, self._filtering.cycle.pod)
        if not lower:
            return _NO_VICTIMS
        allocatable, requested = node.allocatable, node.requested
        # How much of each resource is left beside the pending pod, and how many more pods fit.
        left = [allocatable[number] - requested[number] - amount for number, amount in self._items]
        places = node.allowed_pods - len(node.pods) - 1 + len(lower)
        for pod in lower:
            for index, amount in enumerate(self._takes(pod)):
                left[index] += amount
        if places < 0 or (left and min(left) < 0):
            emptied = node.copy()
            for pod in lower:
                emptied.remove(pod)
            verdict = self._plugin.verdict(self._state, emptied)
            return self._filtering.explain(verdicts.combined(self._place, verdict))

        def reprieve(pod: PodInfo) -> bool:
            nonlocal places
            if places == 0:
                return False
            takes = self._takes(pod)
            for index, amount in enumerate(takes):
                if amount > left[index]:
                    return False
            for index, amount in enumerate(takes):
                left[index] -= amount
            places -= 1
            return True

        return self._preemptor.spare(node, lower, reprieve)


class _Budget:
    """One PodDisruptionBudget, compiled."""

    __slots__ = ("allowed", "content", "disrupted", "left", "namespace", "selector")

    def __init__(self, budget: policy_v1_pb2.PodDisruptionBudget) -> None:
        self.namespace = budget.metadata.namespace
        self.selector = selectors.compile_labels_field(budget.spec, "selector")
        self.disrupted = frozenset(budget.status.disruptedPods)
        self.allowed: int = budget.status.disruptionsAllowed
        selected = budget.spec.selector.SerializeToString(deterministic=True)
        has_selector = budget.spec.HasField("selector")
        self.content = (self.namespace, has_selector, selected, self.disrupted, self.allowed)
        """All that a dry run asks of it."""
        self.left: int = self.allowed
        """What remains while the pods of one node are charged."""

    def charge(self, pod: PodInfo) -> bool:
        """Count one disruption; returns whether that is one too many."""
        if pod.namespace != self.namespace or not pod.labels:
            return False
        if self.selector.everything or not self.selector.matches(pod.labels) or pod.name in self.disrupted:
            return False
        self.left -= 1
        return self.left < 0


def names(victims: Iterable[PodInfo]) -> list[str]:
    return [victim.name for victim in victims]
