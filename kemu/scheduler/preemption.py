"""Whom to preempt: which pods of lower priority would have to go, on which node, to make room for a pod.

Mirrors ``pkg/scheduler/framework/preemption`` and the DefaultPreemption plugin: eligibility, a dry run on each node
where removing pods could help, removal of all lower pods and reprieve one by one (those whose disruption budget would
be violated first), and the order in which candidates are preferred. Nothing is deleted here; see
:mod:`kemu.scheduler.evictions`.

Most preemptors come from few templates too, so the result of a dry run is kept, by template and node, until the node
changes (its generation), as long as no filter looks beyond the node.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kemu.objects import selectors
from kemu.scheduler import diagnoses, pods
from kemu.scheduler.cluster import Cluster
from kemu.scheduler.nodes import NodeInfo
from kemu.scheduler.pods import PodInfo
from kemu.scheduler.policies import Policy
from kemu.scheduler.simulations import Simulation
from kemu.scheduler.statuses import UNRESOLVABLE, UNSCHEDULABLE, Status, unresolvable

if TYPE_CHECKING:
    from kemu.scheduler.decisions import Filtering

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

_NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")

_PRIORITY_OFFSET = 2**31
_QOS_RANK = {"Guaranteed": 2, "Burstable": 1, "BestEffort": 0}
_NOT_STARTED = 2**62
_KEPT_DRY_RUNS = 200_000


class Candidate(NamedTuple):
    """A node, and the pods that would have to go."""

    node: str
    victims: tuple[PodInfo, ...]
    """Most important first."""
    violations: int
    """Victims whose disruption budget would be violated."""


class Preemption(NamedTuple):
    """What preemption came to."""

    candidate: Candidate | None
    message: str
    """Why there is no candidate; the text of the PostFilter phase."""
    clears_nomination: bool
    """No node helps: a nomination that the pod had is void."""
    candidates: int = 0
    """How many nodes would do."""


class Preemptor:
    """Chooses victims for the pods of one profile."""

    def __init__(
        self, cluster: Cluster, policy: Policy, rng: random.Random, candidates_wanted: Callable[[int], int]
    ) -> None:
        """``candidates_wanted``: of how many nodes the search may stop with how many candidates."""
        self.candidates_wanted = candidates_wanted
        self.cluster = cluster
        self.policy = policy
        self.random = rng
        self._kept: dict[tuple[int, str], tuple[int, int, Candidate | Status]] = {}
        """(template, node) → generation of the node, version of the budgets, result."""

    def preempt(self, filtering: Filtering, nominated_node: str | None = None) -> Preemption:
        """Find the node and its victims for a pod that no node can take. ``nominated_node`` as below."""
        pod = filtering.cycle.pod
        reason = self.not_eligible(filtering, pod, nominated_node)
        if reason:
            return Preemption(None, reason, clears_nomination=False)
        potential = self.potential_nodes(filtering)
        if not potential:
            return Preemption(None, self.failure(filtering, {}), clears_nomination=True)
        wanted = self.candidates_wanted(len(potential))
        candidates, failures = self.dry_runs(filtering, potential, self.random.randrange(len(potential)), wanted)
        if not candidates:
            return Preemption(None, self.failure(filtering, failures), clears_nomination=True)
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
        if self.policy.eligibility == "current":
            status = filtering.status(node.row)
            if status is not None and status.code == UNRESOLVABLE:
                return ""
        for other in node.pods.values():
            if not other.terminating or not self.is_lower(other, pod):
                continue
            if self.policy.eligibility == "alpha" or pods.terminates_by_preemption(other.pod):
                return TERMINATING
        return ""

    def potential_nodes(self, filtering: Filtering) -> list[NodeInfo]:
        """Nodes where removing pods could help."""
        if filtering.rejection is not None:
            return self.cluster.rows[:] if filtering.rejection.code == UNSCHEDULABLE else []
        curable = [
            verdict for verdict in filtering.tally if verdict and filtering.explain(verdict).code == UNSCHEDULABLE
        ]
        if not curable:
            return []
        verdicts = filtering.verdicts[: filtering.nodes]
        if len(curable) == 1:
            rows = np.flatnonzero(verdicts == curable[0])
        else:
            rows = np.flatnonzero(np.isin(verdicts, curable))
        nodes = self.cluster.rows
        return [nodes[row] for row in rows.tolist()]

    # Dry run --------------------------------------------------------------------------------------------------------

    def dry_runs(
        self, filtering: Filtering, potential: list[NodeInfo], offset: int, wanted: int
    ) -> tuple[list[Candidate], dict[str, Status]]:
        """Try the nodes from ``offset`` on until there are ``wanted`` candidates, one of them without violations.

        Returns the candidates, and why the other nodes that were tried are none.
        """
        candidates: list[Candidate] = []
        failures: dict[str, Status] = {}
        harmless = 0
        keeps = filtering.on_nodes_alone
        kept, template = self._kept, filtering.cycle.template.number
        version = self.cluster.budgets_version
        own = self.cluster.nominator.node_of(filtering.cycle.pod.uid)
        for node in (*potential[offset:], *potential[:offset]):
            key = (template, node.name)
            found = kept.get(key) if keeps else None
            result: Candidate | Status
            if found is not None and found[0] == node.generation and found[1] == version and node.name != own:
                result = found[2]
            else:
                result = self.dry_run(filtering, node)
                if keeps and node.name != own:
                    if len(kept) > _KEPT_DRY_RUNS:
                        kept.clear()
                    kept[key] = (node.generation, version, result)
            if isinstance(result, Candidate):
                candidates.append(result)
                harmless += result.violations == 0
                if harmless and len(candidates) >= wanted:
                    break
            else:
                failures[node.name] = result
        return candidates, failures

    def dry_run(self, filtering: Filtering, node: NodeInfo) -> Candidate | Status:
        """Which pods must leave the node for the pending pod to fit, or why that does not help."""
        pod = filtering.cycle.pod
        lower = [other for other in node.pods.values() if self.is_lower(other, pod)]
        if not lower:
            return _NO_VICTIMS
        simulation = Simulation(filtering, node)
        for other in lower:
            simulation.remove(other)
        verdict = simulation.verdict()
        if verdict:
            return filtering.explain(verdict)
        lower.sort(key=self.importance)
        violating, others = self._split_by_budget(lower)
        victims = [other for other in violating if not self._reprieve(simulation, other)]
        violations = len(victims)
        victims += [other for other in others if not self._reprieve(simulation, other)]
        if violations and len(victims) > violations:
            victims.sort(key=self.importance)
        return Candidate(node.name, tuple(victims), violations)

    @staticmethod
    def _reprieve(simulation: Simulation, pod: PodInfo) -> bool:
        simulation.add(pod)
        if simulation.verdict():
            simulation.remove(pod)
            return False
        return True

    def _split_by_budget(self, lower: list[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Pods whose disruption would violate a budget, and the others; the order is kept."""
        if not self.cluster.budgets or self.policy.pdb == "ignore":
            return [], lower
        budgets = [_Budget(budget) for budget in self.cluster.budgets.values()]
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in lower:
            # Every budget that matches is charged, also when one is violated already.
            violated = [budget.charge(pod) for budget in budgets]
            (violating if any(violated) else others).append(pod)
        return violating, others

    # Order ----------------------------------------------------------------------------------------------------------

    def is_lower(self, other: PodInfo, pod: PodInfo) -> bool:
        """Whether a pod may be preempted for another."""
        if self.policy.victimOrder == "qos":
            mine, its = _QOS_RANK[pod.template.qos], _QOS_RANK[other.template.qos]
            return its < mine or (its == mine and other.priority < pod.priority)
        return other.priority < pod.priority

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        """Smaller is more important: higher priority, then earlier start."""
        start = pod.start_s if pod.start_s is not None else _NOT_STARTED
        if self.policy.victimOrder == "qos":
            return (-_QOS_RANK[pod.template.qos], -pod.priority, start)
        return (-pod.priority, start)

    def best(self, candidates: list[Candidate]) -> list[Candidate]:
        """The candidates that are left after all criteria, equal to each other."""
        if len(candidates) == 1:
            return candidates
        keys = [_preference(candidate) for candidate in candidates]
        lowest = min(keys)
        return [candidate for candidate, key in zip(candidates, keys, strict=True) if key == lowest]

    def failure(self, filtering: Filtering, failures: dict[str, Status]) -> str:
        """The text when no node is a candidate."""
        tally: dict[Status, int] = {}
        for status in failures.values():
            bare = status._replace(plugin="")
            tally[bare] = tally.get(bare, 0) + 1
        untried = filtering.nodes - len(failures)
        if untried:
            tally[_NOT_HELPFUL] = untried
        return diagnoses.failure_message(filtering.nodes, tally.items())


def _preference(candidate: Candidate) -> tuple[int, ...]:
    """Fewest violations, lowest first victim, lowest sum, fewest victims, latest start of the most important ones."""
    victims = candidate.victims
    if not victims:
        return (candidate.violations,)
    highest = victims[0].priority
    total, earliest = 0, _NOT_STARTED
    for victim in victims:
        total += victim.priority + _PRIORITY_OFFSET
        if victim.priority == highest:
            start = victim.start_s if victim.start_s is not None else _NOT_STARTED
            earliest = min(earliest, start)
    return (candidate.violations, highest, total, len(victims), -earliest)


class _Budget:
    """One PodDisruptionBudget while a node's pods are charged to it."""

    __slots__ = ("allowed", "disrupted", "namespace", "selector")

    def __init__(self, budget: Any) -> None:
        self.namespace = budget.metadata.namespace
        self.selector = selectors.compile_labels_field(budget.spec, "selector")
        self.disrupted = budget.status.disruptedPods
        self.allowed: int = budget.status.disruptionsAllowed

    def charge(self, pod: PodInfo) -> bool:
        """Count one disruption; returns whether that is one too many."""
        if pod.namespace != self.namespace or not pod.labels:
            return False
        if self.selector.everything or not self.selector.matches(pod.labels) or pod.name in self.disrupted:
            return False
        self.allowed -= 1
        return self.allowed < 0


def names(victims: Iterable[PodInfo]) -> list[str]:
    return [victim.name for victim in victims]
