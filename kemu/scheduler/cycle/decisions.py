"""One decision: which nodes can take a pod, and which is best. No time passes here, nothing is written.

    decider = Decider(profile, cluster, rng)
    decision = decider.decide(cluster.pending(pod))
    decision.node                      # a name, or "" and then:
    decision.filtering.message()       # 0/5 nodes are available: …

The same code answers recorded cases (:mod:`kemu.conformance.scheduler.decisions`) and runs in the actor. A
:class:`Filtering` reads columns that live until the next decision of the same decider, so what is wanted of it must be
asked before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kemu.scheduler.cache.cluster import Cluster
from kemu.scheduler.cache.columns import IntArray
from kemu.scheduler.cache.nodes import NodeInfo
from kemu.scheduler.cache.pods import PodInfo
from kemu.scheduler.cycle import diagnoses, evaluations
from kemu.scheduler.cycle.evaluations import Evaluation, Evaluations, combined, split
from kemu.scheduler.cycle.profiles import Profile
from kemu.scheduler.cycle.simulations import Simulation
from kemu.scheduler.experiments import switches
from kemu.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, Narrowed, NodeFilterPlugin, Scope
from kemu.scheduler.framework.statuses import Status, unresolvable

if TYPE_CHECKING:
    from random import Random

_MIN_PERCENTAGE = 5

_LEFT_OUT = 1 << 60
"""Combined verdict of nodes outside of what PreFilter narrowed the search to; those above are of refusals."""


def nodes_to_find(nodes: int, percentage: int, least: int = switches.MIN_FEASIBLE_NODES) -> int:
    """How many feasible nodes end the search (``numFeasibleNodesToFind``), but not fewer than ``least``.

    ``percentage`` 0: adaptive.
    """
    if nodes < least or percentage >= 100:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, _MIN_PERCENTAGE)
    return max(nodes * percentage // 100, least)


class Filtering:
    """What the filters said of all nodes."""

    __slots__ = (
        "_active",
        "_local",
        "cycle",
        "evaluation",
        "left_out",
        "nodes",
        "profile",
        "refusals",
        "rejection",
        "states",
        "tally",
        "verdicts",
    )

    def __init__(self, profile: Profile, cycle: Cycle, evaluation: Evaluation) -> None:
        self.profile = profile
        self.cycle = cycle
        self.evaluation = evaluation
        self.nodes = len(cycle.cluster)
        self.states: dict[int, Any] = {}
        """States of the CLUSTER filters that have something to do, by place."""
        self.rejection: Status | None = evaluation.filters.rejection
        """PreFilter refused the pod as a whole."""
        self.verdicts: IntArray = evaluation.verdicts
        """Combined verdicts by row. Shared with the evaluation where nothing had to be added."""
        self.tally: Mapping[int, int] = evaluation.tally
        self.left_out = ""
        """Names of the plugins that narrowed the search, for the reason of the nodes left out."""
        self.refusals: list[Status] = []
        """What was said by others than plugins; see :meth:`refuse`."""
        self._active: list[tuple[int, FilterPlugin, Any]] | None = None
        self._local: list[bool] | None = None

    def is_local(self, node: NodeInfo) -> bool:
        """Whether only the node, its pods and its nominations decide: no CLUSTER filter could make a difference."""
        return not self.states or self.local_rows()[node.row]

    def local_rows(self) -> list[bool]:
        """:meth:`is_local` by row, where there are CLUSTER filters at all."""
        local = self._local
        if local is None:
            local = self._local = self._passing_anyway()
        return local

    def look_again(self) -> None:
        """Time has passed: nominations, which are live, may have changed."""
        self._local = None

    def _passing_anyway(self) -> list[bool]:
        filters, cluster = self.profile.filters, self.cycle.cluster
        local = np.ones(self.nodes, dtype=np.bool_)
        for place, state in self.states.items():
            local &= filters[place].passing_anyway(state, cluster)
        rows: list[bool] = local.tolist()
        return rows

    def explain(self, verdict: int) -> Status:
        """The status behind a combined verdict, with the plugin's name."""
        if verdict > _LEFT_OUT:
            return self.refusals[verdict - _LEFT_OUT - 1]
        if verdict == _LEFT_OUT:
            return unresolvable(f"node(s) didn't satisfy plugin(s) [{self.left_out}]")
        place, own = split(verdict)
        plugin = self.profile.filters[place]
        state = self.states[place] if place in self.states else self.evaluation.filters.states[place]
        return plugin.explain(state, own)._replace(plugin=plugin.name)

    def refuse(self, refused: Mapping[int, Status]) -> None:
        """Somebody other than a plugin refuses nodes, by row."""
        verdicts = self.verdicts.copy()
        for row, status in refused.items():
            if status not in self.refusals:
                self.refusals.append(status)
            verdicts[row] = _LEFT_OUT + 1 + self.refusals.index(status)
        self.verdicts = verdicts
        self.tally = evaluations.tally_of(verdicts[: self.nodes])

    def status(self, row: int) -> Status | None:
        """Why a node was rejected; None if it passed."""
        if self.rejection is not None:
            return self.rejection
        verdict = int(self.verdicts[row])
        return self.explain(verdict) if verdict else None

    def message(self) -> str:
        """The failure as a text, before PostFilter."""
        if self.rejection is not None:
            return diagnoses.prefilter_message(self.nodes, self.rejection)
        return diagnoses.failure_message(
            self.nodes, ((self.explain(verdict), count) for verdict, count in self.tally.items() if verdict)
        )

    def rejected_by_plugin(self) -> dict[str, int]:
        """How many nodes each plugin rejected."""
        if self.rejection is not None:
            return {self.rejection.plugin: self.nodes}
        return diagnoses.counts_by_plugin(self.tally, self.explain)

    def rejectors(self) -> tuple[str, ...]:
        """The plugins that could change their mind: those that rejected some node, or narrowed the search."""
        names = [name for name in self.rejected_by_plugin() if name]
        if self.left_out:
            names += [name for name in self.left_out.split() if name not in names]
        return tuple(sorted(names))

    def filters(self) -> list[tuple[int, FilterPlugin, Any]]:
        """All filters that depend on pods, with their states, in order. Ask when the states are complete."""
        active = self._active
        if active is None:
            of_cluster = [(place, self.profile.filters[place], state) for place, state in self.states.items()]
            active = self._active = sorted((*self.evaluation.filters.on_node, *of_cluster), key=lambda one: one[0])
        return active


class Decision:
    """The result of one attempt."""

    __slots__ = ("error", "evaluated", "feasible", "filtering", "node", "ties")

    def __init__(self, filtering: Filtering | None) -> None:
        self.filtering = filtering
        """None when there are no nodes at all."""
        self.node = ""
        """The chosen node, "" when none is suitable."""
        self.evaluated = 0
        """How many nodes were looked at."""
        self.feasible = 0
        """How many of them passed."""
        self.ties = 0
        """How many nodes share the highest score; 0 when there was nothing to compare."""
        self.error: Status | None = None
        """The attempt broke off: that is no verdict on the pod."""

    @property
    def ended(self) -> bool:
        """Whether nothing is left to be decided after PreFilter and Filter."""
        return self.filtering is None or self.filtering.rejection is not None or self.error is not None


class Decider:
    """Decides for the pods of one profile."""

    def __init__(self, profile: Profile, cluster: Cluster, rng: Random, percentage_of_nodes: int = 0) -> None:
        """``percentage_of_nodes`` is that of the whole configuration; the profile's own goes first."""
        own = profile.percentage_of_nodes_to_score
        self.profile = profile
        self.cluster = cluster
        self.random = rng
        self.percentage = percentage_of_nodes if own is None else own
        self.evaluations = Evaluations(profile, cluster)
        self._cluster_scorers = [
            (plugin, weight)
            for plugin, weight in zip(profile.scorers, profile.weights, strict=True)
            if plugin.scope is Scope.CLUSTER
        ]
        self.start_row = 0
        """Where the next search begins."""
        self.tries_nominated_node = True
        self.takes_first = not profile.scorers
        """Nobody compares nodes, so the first that passes will do."""
        self.least = profile.handle.policy.minFeasibleNodes

    # Filter ---------------------------------------------------------------------------------------------------------

    def filter(self, pod: PodInfo) -> Filtering:
        """What the filters say of every node (PreFilter and Filter)."""
        cluster = self.cluster
        cycle = Cycle(pod, cluster)
        evaluation = self.evaluations.of(cycle)
        filtering = Filtering(self.profile, cycle, evaluation)
        if filtering.rejection is not None:
            return filtering
        narrowed, narrowed_by = evaluation.filters.narrowed, evaluation.filters.narrowed_by
        for place, plugin in self.profile.cluster_filters:
            state = plugin.prepare(cycle)
            if isinstance(state, Status):
                filtering.rejection = state._replace(plugin=plugin.name)
                return filtering
            if isinstance(state, Narrowed):
                kept = state.names if narrowed is None else tuple(name for name in state.names if name in narrowed)
                narrowed, narrowed_by, state = kept, f"{narrowed_by} {plugin.name}".strip(), state.state
            if state is not SKIP:
                filtering.states[place] = state
        own_node = cluster.nodes.get(cluster.nominator.node_of(pod.uid)) if len(cluster.nominator) else None
        if own_node is not None and own_node.row < 0:
            own_node = None
        if not filtering.states and narrowed is None and own_node is None:
            return filtering
        self._complete(filtering, own_node)
        if narrowed is not None:
            self._narrow(filtering, narrowed, narrowed_by)
        filtering.tally = evaluations.tally_of(filtering.verdicts[: filtering.nodes])
        return filtering

    def _complete(self, filtering: Filtering, own_node: NodeInfo | None) -> None:
        """Add what the kept evaluation does not know: CLUSTER filters, and which nomination is the pod's own."""
        cluster, evaluation, pod = self.cluster, filtering.evaluation, filtering.cycle.pod
        verdicts = filtering.verdicts = filtering.verdicts.copy()
        if own_node is not None:
            of_object = int(evaluation.object_verdicts[own_node.row])
            verdicts[own_node.row] = evaluation.verdict(own_node, of_object, pod)
        rows = verdicts[: filtering.nodes]
        for place, state in filtering.states.items():
            plugin = self.profile.filters[place]
            if isinstance(plugin, NodeFilterPlugin):
                for row in np.flatnonzero(rows == 0).tolist():
                    verdict = plugin.verdict(state, cluster.rows[row])
                    if verdict:
                        rows[row] = combined(place, verdict)
            else:
                column = plugin.verdicts(state, cluster)
                if column is not None:
                    evaluations.merge(rows, place, column)
        if filtering.states and len(cluster.nominator):
            local = filtering.local_rows()
            for node in cluster.nominated_nodes():
                if not local[node.row] and evaluations.nominated_above(node, pod.priority, pod):
                    rows[node.row] = Simulation(filtering, node).verdict()

    def _narrow(self, filtering: Filtering, names: tuple[str, ...], by: str) -> None:
        """Leave out all nodes but these, apart from the pod's own nominated node: that one was tried before."""
        cluster = self.cluster
        keep = [cluster.nodes[name].row for name in names if name in cluster.nodes and cluster.nodes[name].row >= 0]
        plugins = by.split()
        own = cluster.nodes.get(filtering.cycle.message.status.nominatedNodeName)
        if own is not None and own.row >= 0:
            verdict = int(filtering.verdicts[own.row])
            if verdict:
                plugins.append(filtering.explain(verdict).plugin)
            keep.append(own.row)
        narrowed = np.full_like(filtering.verdicts, _LEFT_OUT)
        narrowed[keep] = filtering.verdicts[keep]
        filtering.verdicts = narrowed
        filtering.left_out = " ".join(sorted(dict.fromkeys(plugins)))

    # Choose ---------------------------------------------------------------------------------------------------------

    def decide(self, pod: PodInfo) -> Decision:
        """Filter, score and choose; the pod's nominated node goes first."""
        decision = self.begin(pod)
        filtering = decision.filtering
        if filtering is None or decision.ended:
            return decision
        nominated = self.nominated(filtering)
        if nominated is not None:
            decision.node = nominated.name
            decision.evaluated = decision.feasible = 1
            return decision
        rows = self.feasible_rows(filtering, decision)
        if not self.is_clear(decision, rows):
            self.choose(decision, rows, self.totals(filtering, rows))
        return decision

    def begin(self, pod: PodInfo) -> Decision:
        """PreFilter and Filter, and what ends the attempt there."""
        self.cluster.settle()
        if not self.cluster.rows:
            return Decision(None)
        filtering = self.filter(pod)
        decision = Decision(filtering)
        if self.profile.filter_failure is not None and filtering.rejection is None:
            place, status = self.profile.filter_failure
            verdicts = filtering.verdicts[: filtering.nodes]
            if ((verdicts == 0) | (verdicts >= combined(place, 0)) & (verdicts < _LEFT_OUT)).any():
                decision.error = status
        return decision

    def nominated(self, filtering: Filtering) -> NodeInfo | None:
        """The node that the pod is nominated to, if it passes."""
        if not self.tries_nominated_node:
            return None
        node = self.cluster.nodes.get(filtering.cycle.message.status.nominatedNodeName)
        return node if node is not None and node.row >= 0 and not filtering.verdicts[node.row] else None

    def is_clear(self, decision: Decision, rows: IntArray) -> bool:
        """Whether there is nothing to compare: no node, a single one, or scoring fails."""
        decision.feasible = len(rows)
        if len(rows) == 1:
            decision.node = self.cluster.rows[int(rows[0])].name
        elif len(rows) > 1:
            decision.error = self.profile.score_failure
        return len(rows) < 2 or decision.error is not None

    def choose(self, decision: Decision, rows: IntArray, totals: IntArray) -> None:
        """The node with the highest total; of several, one at random."""
        best = rows[totals == np.maximum.reduce(totals)]
        decision.ties = len(best)
        choice = best[self.random.randrange(len(best))] if len(best) > 1 else best[0]
        decision.node = self.cluster.rows[int(choice)].name

    def feasible_rows(self, filtering: Filtering, decision: Decision) -> IntArray:
        """The feasible nodes that the search finds, and where the next search begins."""
        nodes = filtering.nodes
        verdicts = filtering.verdicts
        if verdicts is filtering.evaluation.verdicts:
            feasible = filtering.evaluation.feasible[:nodes]
        else:
            feasible = verdicts[:nodes] == 0
        if filtering.left_out:
            rows = feasible.nonzero()[0]
            decision.evaluated = int(np.count_nonzero(verdicts[:nodes] != _LEFT_OUT))
            return rows
        wanted = 1 if self.takes_first else nodes_to_find(nodes, self.percentage, self.least)
        start = self.start_row if self.start_row < nodes else 0
        if wanted >= nodes:
            rows = feasible.nonzero()[0]
            decision.evaluated = nodes
        else:
            # Mostly the nodes wanted stand close together.
            rows = feasible[start : start + wanted + wanted // 4].nonzero()[0]
            if len(rows) < wanted:
                rows = feasible[start:].nonzero()[0]
            rows += start
            if len(rows) >= wanted:
                rows = rows[:wanted]
                decision.evaluated = int(rows[-1]) + 1 - start
            else:
                before = feasible[:start].nonzero()[0]
                missing = wanted - len(rows)
                rows = np.concatenate((rows, before[:missing]))
                complete = len(before) >= missing
                decision.evaluated = nodes - start + int(before[missing - 1]) + 1 if complete else nodes
            self.start_row = (start + decision.evaluated) % nodes
        return rows

    # Score ----------------------------------------------------------------------------------------------------------

    def totals(self, filtering: Filtering, rows: IntArray) -> IntArray:
        """The total scores of feasible nodes, up to a constant that is the same for all of them."""
        evaluation, cycle, cluster = filtering.evaluation, filtering.cycle, self.cluster
        totals = evaluation.fixed_scores(cluster, rows)
        for (plugin, weight, state), raw in zip(evaluation.raw_scorers, evaluation.raw, strict=True):
            if raw is not None:
                totals += plugin.normalize(state, raw[rows]) * np.int64(weight)
        for plugin, weight in self._cluster_scorers:
            state = plugin.prepare_scores(cycle, rows)
            if state is not SKIP:
                totals += plugin.normalize(state, plugin.scores(state, cluster, rows)) * np.int64(weight)
        return totals

    def scores(self, filtering: Filtering, rows: IntArray) -> dict[str, IntArray]:
        """For each score plugin that has something to do: its weighted scores of these rows. Slow: for explanations."""
        evaluation, cycle, cluster = filtering.evaluation, filtering.cycle, self.cluster
        found: dict[str, IntArray] = {}
        for plugin, weight, state in (*evaluation.fixed_scorers, *evaluation.raw_scorers):
            raw = plugin.scores(state, cluster, rows)
            found[plugin.name] = (plugin.normalize(state, raw) if plugin.normalizes else raw) * np.int64(weight)
        for plugin, weight in self._cluster_scorers:
            state = plugin.prepare_scores(cycle, rows)
            if state is not SKIP:
                found[plugin.name] = plugin.normalize(state, plugin.scores(state, cluster, rows)) * np.int64(weight)
        return found
