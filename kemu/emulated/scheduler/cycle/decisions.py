"""One decision: which nodes can take a pod, and which is best. No time passes here, nothing is written.

    decider = Decider(profile, cluster, rng)
    result = decider.decide(cluster.pending(pod))
    result.node                        # a name, or "" and then:
    result.filtering.message()         # 0/5 nodes are available: …

The same code answers recorded cases (:mod:`kemu.lab.conformance.scheduler.decisions`) and runs in the actor. A
:class:`Filtering` reads columns that live until the next decision of the same decider: read it before that.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle import ties, verdicts
from kemu.emulated.scheduler.cycle.batches import Batches
from kemu.emulated.scheduler.cycle.evaluations import Evaluations
from kemu.emulated.scheduler.cycle.filtering import LEFT_OUT, Filtering
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.framework import answers
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, Narrowed
from kemu.emulated.scheduler.framework.statuses import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Status
from kemu.runtime.env import Random

_MIN_PERCENTAGE = 5


def nodes_to_find(nodes: int, percentage: int, least: int = switches.MIN_FEASIBLE_NODES) -> int:
    """How many feasible nodes end the search (``numFeasibleNodesToFind``), but not fewer than ``least``.

    ``percentage`` 0: adaptive.
    """
    if nodes < least or percentage >= 100:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, _MIN_PERCENTAGE)
    return max(nodes * percentage // 100, least)


def search(feasible: BoolArray, start: int, wanted: int) -> tuple[IntArray, int]:
    """Up to ``wanted`` feasible places, from ``start`` on and around, and how many places were tried."""
    # Usually the first feasible nodes are close together.
    found = feasible[start : start + wanted + wanted // 4 + 1].nonzero()[0]
    if len(found) <= wanted:
        found = feasible[start:].nonzero()[0]
    if len(found) <= wanted:
        found = np.concatenate((found, feasible[:start].nonzero()[0] + (len(feasible) - start)))
    visited = int(found[wanted]) if len(found) > wanted else len(feasible)
    found = found[:wanted] + start
    if len(found) and found[-1] >= len(feasible):
        found %= len(feasible)
    return found, visited


class ScheduleResult:
    """What a scheduling attempt decided."""

    __slots__ = ("error", "evaluated", "feasible", "filtering", "node", "ties", "visited")

    def __init__(self, filtering: Filtering | None) -> None:
        self.filtering = filtering
        """None when there are no nodes at all."""
        self.node = ""
        """The chosen node, "" when none is suitable."""
        self.evaluated = 0
        """How many nodes were tried."""
        self.visited = 0
        """How many of them the search went through, from its start on."""
        self.feasible = 0
        """How many of them passed."""
        self.ties = 0
        """How many nodes share the highest score; 0 when there was nothing to compare."""
        self.error: Status | None = None
        """The attempt ended with an error, which says nothing about the pod."""

    @property
    def ended(self) -> bool:
        """Whether PreFilter and Filter have already ended the attempt."""
        return self.filtering is None or self.filtering.rejection is not None or self.error is not None


class Decider:
    """Decides for the pods of one profile."""

    def __init__(self, profile: Profile, cluster: Cluster, rng: Random, percentage_of_nodes: int = 0) -> None:
        """``percentage_of_nodes`` is that of the whole configuration; that of the profile takes precedence."""
        own = profile.percentage_of_nodes_to_score
        self.profile = profile
        self.cluster = cluster
        self.random = rng
        self.percentage = percentage_of_nodes if own is None else own
        self.line_up = profile.line_up
        self.evaluations = Evaluations(self.line_up, cluster)
        self.tries_nominated_node = True
        """Before all others (``evaluateNominatedNode``)."""
        self.takes_first = not self.line_up.scorers
        """There are no scores to compare, so the first feasible node is taken."""
        self._has_foreign_filters = any(plugin.is_foreign for plugin in self.line_up.filters)
        self.least = profile.handle.policy.minFeasibleNodes
        self._searched = 0, 0
        """A number of nodes, and how many of these are to be found: the last answer."""
        self.placement: IntArray | None = None
        """The rows of the nodes that count, while a group is tried in one part of the cluster; None: all."""
        self.batches = Batches(profile.signer, profile.handle) if profile.signer is not None else None
        """None: no result is reused."""
        self.on_scores: Callable[[PodInfo, list[tuple[str, int]]], object] | None = None
        """Told of the total score of each node that was compared, where that is asked for."""

    # Filter ---------------------------------------------------------------------------------------------------------

    def filter(self, pod: PodInfo, *, until_enough: bool = False) -> Filtering:
        """PreFilter and Filter on every node. ``until_enough``: a plugin that asks node by node may stop where the
        search of an attempt will end; nodes behind that stand as if they passed, until they are tried first."""
        cluster = self.cluster
        cycle = Cycle(pod, cluster)
        evaluation = self.evaluations.of(cycle)
        filtering = Filtering(self.line_up, cycle, evaluation)
        if filtering.rejection is not None and filtering.rejection.code != UNSCHEDULABLE:
            return filtering
        narrowed, narrowed_by = evaluation.filters.narrowed, evaluation.filters.narrowed_by
        for place, plugin in evaluation.filters.of_cluster:
            state = plugin.prepare(cycle)
            if isinstance(state, Status):
                filtering.rejection = state._replace(plugin=plugin.name)
                if state.code != UNSCHEDULABLE:
                    return filtering
                # Preemption may help, which needs what the others prepare (RunPreFilterPlugins).
                continue
            if isinstance(state, Narrowed):
                kept = state.names if narrowed is None else tuple(name for name in state.names if name in narrowed)
                narrowed, narrowed_by, state = kept, f"{narrowed_by} {plugin.name}".strip(), state.state
            if state is not SKIP:
                filtering.states[place] = state
        if filtering.rejection is not None:
            return filtering
        own_node = cluster.nodes.get(cluster.nominator.node_of(pod.uid)) if cluster.nominator.nodes else None
        if own_node is not None and own_node.row < 0:
            own_node = None
        if not filtering.states and narrowed is None and own_node is None:
            return filtering
        if not filtering.states and narrowed is None and evaluation.few is None and own_node is not None:
            self._without_own(filtering, own_node)
            return filtering
        is_plain = narrowed is None and own_node is None and self.placement is None and not len(cluster.nominator)
        self._complete(filtering, own_node, until_enough=until_enough and is_plain)
        if narrowed is not None:
            self._narrow(filtering, narrowed, narrowed_by)
        few = evaluation.few
        if few is None:
            filtering.tally = verdicts.tally_of(filtering.verdicts[: filtering.nodes])
        else:
            tally = verdicts.tally_of(filtering.verdicts[few])
            if len(few) < filtering.nodes:
                tally[LEFT_OUT] = tally.get(LEFT_OUT, 0) + filtering.nodes - len(few)
            filtering.tally = tally
        return filtering

    def _without_own(self, filtering: Filtering, own_node: NodeInfo) -> None:
        """The pod's own nomination does not count, which matters on one node."""
        row, evaluation = own_node.row, filtering.evaluation
        verdict, before = evaluation.verdict(own_node, filtering.cycle.pod), int(filtering.verdicts[row])
        tally = dict(evaluation.tally)
        if verdict != before:
            filtering.verdicts = filtering.verdicts.copy()
            filtering.verdicts[row] = verdict
            tally[verdict] = tally.get(verdict, 0) + 1
            tally[before] -= 1
        filtering.tally = {each: tally[each] for each in sorted(tally) if tally[each]}

    def _complete(self, filtering: Filtering, own_node: NodeInfo | None, *, until_enough: bool) -> None:
        """Add what the kept evaluation lacks: CLUSTER filters, and that the pod's own nomination does not count."""
        cluster, evaluation, pod = self.cluster, filtering.evaluation, filtering.cycle.pod
        column = filtering.verdicts = filtering.verdicts.copy()
        if own_node is not None:
            column[own_node.row] = evaluation.verdict(own_node, pod)
        rows, few = column[: filtering.nodes], evaluation.few
        for place, state in filtering.states.items():
            plugin = self.line_up.filters[place]
            asked: list[int] | None = None
            if plugin.asks_passing:
                asked = np.flatnonzero(rows == 0).tolist() if few is None else [row for row in few if not rows[row]]
            elif few is not None:
                asked = [row for row in few if not rows[row] or verdicts.split(int(rows[row]))[0] > place]
            if asked is not None:
                limit = len(asked)
                is_last = place == max(filtering.states)
                if until_enough and is_last and few is None and plugin.asks_passing and plugin.ends_search:
                    wanted, start = self._wanted(filtering.nodes), self.start_row % filtering.nodes
                    limit = wanted + 1
                    first = bisect.bisect_left(asked, start)
                    asked = [*asked[first:], *asked[:first]]
                for row in asked:
                    verdict = plugin.verdict(state, cluster.rows[row])
                    if verdict:
                        rows[row] = verdicts.combined(place, verdict)
                        continue
                    limit -= 1
                    if not limit:
                        filtering.unasked = place
                        break
            else:
                answers = plugin.verdicts(state, cluster)
                if answers is not None:
                    verdicts.merge(rows, place, answers)
        if filtering.states and len(cluster.nominator):
            local = filtering.local_rows()
            for node in cluster.nominated_nodes():
                if few is not None and node.row not in few:
                    continue
                if not local[node.row] and verdicts.nominated_above(node, pod.priority, pod):
                    rows[node.row] = Simulation(filtering, node).verdict()

    def _narrow(self, filtering: Filtering, names: tuple[str, ...], by: str) -> None:
        """Leave out all nodes but these and the pod's nominated node, which was tried before."""
        cluster = self.cluster
        known = (cluster.nodes.get(name) for name in dict.fromkeys(names))
        keep = sorted(node.row for node in known if node is not None and node.row >= 0)
        filtering.narrowed = np.array(keep, dtype=np.int64)
        plugins = by.split()
        own = self._nominated(filtering) if self.tries_nominated_node else None
        if own is not None:
            verdict = int(filtering.verdicts[own.row])
            if verdict:
                plugins.append(filtering.explain(verdict).plugin)
            keep.append(own.row)
        narrowed = np.full_like(filtering.verdicts, LEFT_OUT)
        narrowed[keep] = filtering.verdicts[keep]
        filtering.verdicts = narrowed
        filtering.left_out = " ".join(sorted(dict.fromkeys(plugins)))

    # Choose ---------------------------------------------------------------------------------------------------------

    def decide(self, pod: PodInfo) -> ScheduleResult:
        """Filter, score and choose; a feasible nominated node, or one that a batch hints at, is taken at once."""
        decision = self.begin(pod)
        filtering = decision.filtering
        if filtering is None or filtering.rejection is not None or decision.error is not None:
            return decision
        batches = self.batches
        if batches is not None:
            filtering.hint = batches.hint(filtering)
        nominated = None
        if filtering.hint or pod.pod.status.nominatedNodeName:
            nominated = self.nominated(filtering)
        if nominated is not None:
            decision.node = nominated.name
            decision.evaluated = decision.feasible = 1
            if batches is not None:
                batches.found(filtering.hint, decision.node)
            return decision
        if filtering.hint and filtering.narrowed is not None:
            self._blame(filtering)
        rows = self.feasible_rows(filtering, decision)
        decision.feasible = len(rows)
        if len(rows) >= 2 and self.profile.score_failure is None:  # else as is_clear
            totals = self.totals(filtering, rows)
            self.choose(decision, rows, totals)
            if self.on_scores is not None:
                self.tell_scores(pod, rows, totals)
            if batches is not None:
                batches.found(filtering.hint, decision.node, rows, totals)
        elif self.is_clear(decision, rows) and batches is not None and decision.node:
            batches.found(filtering.hint, decision.node)
        return decision

    def tell_scores(self, pod: PodInfo, rows: IntArray, totals: IntArray) -> None:
        if self.on_scores is not None:
            nodes = [self.cluster.rows[row].name for row in rows.tolist()]
            self.on_scores(pod, list(zip(nodes, totals.tolist(), strict=True)))

    def begin(self, pod: PodInfo) -> ScheduleResult:
        """PreFilter and Filter; they may end the attempt."""
        cluster = self.cluster
        if cluster.order_is_stale or cluster.unseen:
            cluster.settle()
        if not cluster.rows:
            return ScheduleResult(None)
        if self.placement is not None and not len(self.placement):
            return ScheduleResult(None)
        filtering = self.filter(pod, until_enough=True)
        if self.placement is not None:
            filtering.restrict(self.placement)
        decision = ScheduleResult(filtering)
        refused = filtering.rejection
        if refused is not None and refused.code not in (UNSCHEDULABLE, UNRESOLVABLE):
            text = f'running PreFilter plugin "{refused.plugin}": {refused.message}'
            decision.error = Status(ERROR, (text,), refused.plugin)
        elif refused is None and (
            self._has_foreign_filters
            or (filtering.states and any(self.line_up.filters[place].may_fail for place in filtering.states))
        ):
            decision.error = filtering.error()
        if self.profile.filter_failure is not None and filtering.rejection is None:
            place, status = self.profile.filter_failure
            column = filtering.verdicts[: filtering.nodes]
            if ((column == 0) | (column >= verdicts.combined(place, 0)) & (column < LEFT_OUT)).any():
                decision.error = status
        return decision

    def nominated(self, filtering: Filtering) -> NodeInfo | None:
        """The node to try before all others, if it is feasible."""
        node = self._tried_first(filtering)
        return node if node is not None and not filtering.verdicts[node.row] else None

    def _nominated(self, filtering: Filtering) -> NodeInfo | None:
        name = filtering.cycle.message.status.nominatedNodeName
        node = self.cluster.nodes.get(name) if name else None
        return node if node is not None and node.row >= 0 else None

    def _tried_first(self, filtering: Filtering) -> NodeInfo | None:
        """The pod's nominated node; where it names none, that of the hint (``evaluateNominatedNode``)."""
        name: str = filtering.cycle.pod.pod.status.nominatedNodeName if self.tries_nominated_node else ""
        name = name or filtering.hint
        if not name:
            return None
        node = self.cluster.nodes.get(name)
        if node is None or node.row < 0:
            return None
        place = filtering.unasked
        if place is not None and not filtering.verdicts[node.row]:
            # It may lie behind those that were enough.
            verdict = self.line_up.filters[place].verdict(filtering.states[place], node)
            filtering.verdicts[node.row] = verdicts.combined(place, verdict) if verdict else 0
        return node

    def _blame(self, filtering: Filtering) -> None:
        """Name the plugin that rejected the hinted node among those that narrowed the search, like :meth:`_narrow`."""
        node = self._tried_first(filtering)
        verdict = int(filtering.verdicts[node.row]) if node is not None else 0
        if 0 < verdict < LEFT_OUT:
            plugins = [*filtering.left_out.split(), filtering.explain(verdict).plugin]
            filtering.left_out = " ".join(sorted(dict.fromkeys(plugins)))

    def is_clear(self, decision: ScheduleResult, rows: IntArray) -> bool:
        """Whether there is nothing to compare: no node, a single one, or scoring fails."""
        decision.feasible = len(rows)
        if len(rows) == 1:
            decision.node = self.cluster.rows[int(rows[0])].name
        elif len(rows) > 1:
            decision.error = self.profile.score_failure
        return len(rows) < 2 or decision.error is not None

    def choose(self, decision: ScheduleResult, rows: IntArray, totals: IntArray, *, by_lot: bool = False) -> None:
        """The node with the highest total. Of several, a lot decides, or with one worker the order of the search.

        ``by_lot``: extenders have scored, which brings the lot back.
        """
        best = (totals == np.maximum.reduce(totals)).nonzero()[0]
        decision.ties = len(best)
        if len(best) == 1:
            choice = best[0]
        elif by_lot or self.profile.handle.draws_lots:
            choice = best[self.random.randrange(len(best))]
        else:
            choice = ties.top_of_heap(set(best.tolist()))
        decision.node = self.cluster.rows[int(rows[choice])].name

    @property
    def start_row(self) -> int:
        """Where the next search begins, whichever profile is asked (``nextStartNodeIndex``)."""
        return self.profile.handle.start_row

    @start_row.setter
    def start_row(self, row: int) -> None:
        self.profile.handle.start_row = row

    def feasible_rows(self, filtering: Filtering, decision: ScheduleResult) -> IntArray:
        """The feasible nodes that the search finds; says where the next one begins (``findNodesThatPassFilters``).

        As with one worker, the search ends at the first feasible node beyond those wanted; rejected nodes before it
        have been looked at. kube-scheduler visits the nodes that PreFilter left in random order, this in order of rows.
        """
        column, narrowed, every = filtering.verdicts, filtering.narrowed, filtering.nodes
        if narrowed is not None:
            feasible = column[narrowed] == 0
        elif column is filtering.evaluation.verdicts:
            feasible = filtering.evaluation.feasible[:every]
        else:
            feasible = column[:every] == 0
        nodes, handle = len(feasible), self.profile.handle
        wanted = self._wanted(nodes)
        start = handle.start_row % nodes if nodes else 0
        if wanted >= nodes and not start:
            found, visited = feasible.nonzero()[0], nodes
        else:
            found, visited = search(feasible, start, wanted)
        rows: IntArray = found if narrowed is None else narrowed[found]
        decision.evaluated = decision.visited = visited
        own = None
        if filtering.hint or filtering.cycle.pod.pod.status.nominatedNodeName:
            own = self._tried_first(filtering)
        if own is not None:
            # Its status stays in the diagnosis and counts, once, among the nodes looked at.
            places = [own.row] if narrowed is None else np.flatnonzero(narrowed == own.row).tolist()
            met = any((place - start) % nodes < visited for place in places) and bool(column[own.row])
            decision.evaluated += not met
        handle.start_row = (handle.start_row + decision.evaluated) % filtering.counted
        return rows

    def _wanted(self, nodes: int) -> int:
        """How many feasible nodes end the search."""
        if nodes != self._searched[0]:
            self._searched = nodes, nodes_to_find(nodes, self.percentage, self.least)
        return 1 if self.takes_first else self._searched[1]

    # Score ----------------------------------------------------------------------------------------------------------

    def totals(self, filtering: Filtering, rows: IntArray) -> IntArray:
        """The total scores of feasible nodes, up to a constant that is the same for all of them."""
        evaluation, cycle, cluster = filtering.evaluation, filtering.cycle, self.cluster
        totals = evaluation.fixed_scores(cluster, rows)
        for (plugin, weight, state), raw in zip(evaluation.raw_scorers, evaluation.raw, strict=True):
            if raw is not None:
                scores = plugin.normalize(state, raw[rows])
                if plugin.is_foreign:
                    answers.check_range(plugin.name, scores)
                totals += scores * np.int64(weight)
        for plugin, weight in self.line_up.cluster_scorers:
            state = plugin.prepare_scores(cycle, rows)
            if state is not SKIP:
                scores = plugin.scores(state, cluster, rows)
                if plugin.is_foreign:
                    scores = plugin.normalize(state, answers.whole_scores(plugin.name, "scores", scores, len(rows)))
                    answers.check_range(plugin.name, scores)
                else:
                    scores = plugin.normalize(state, scores)
                totals += scores * np.int64(weight)
        return totals

    def totals_of(self, filtering: Filtering, rows: IntArray, nodes: Sequence[NodeInfo]) -> IntArray:
        """As :meth:`totals`, of nodes that differ from those in the cache at these rows."""
        evaluation, cycle = filtering.evaluation, filtering.cycle
        whole = [
            (plugin, weight, plugin.prepare_scores(cycle, rows)) for plugin, weight in self.line_up.cluster_scorers
        ]
        totals: IntArray = np.zeros(len(rows), dtype=np.int64)
        for plugin, weight, state in (*evaluation.fixed_scorers, *evaluation.raw_scorers, *whole):
            if state is not SKIP:
                raw = [plugin.score(state, node) for node in nodes]
                if plugin.is_foreign:
                    scores = plugin.normalize(state, answers.whole_scores(plugin.name, "score", raw, len(rows)))
                    answers.check_range(plugin.name, scores)
                else:
                    scores = plugin.normalize(state, np.array(raw, dtype=np.int64))
                totals += scores * np.int64(weight)
        return totals

    def scores(self, filtering: Filtering, rows: IntArray) -> dict[str, IntArray]:
        """The weighted scores of these rows by score plugin, without skipped plugins. Slow: for explanations."""
        evaluation, cycle, cluster = filtering.evaluation, filtering.cycle, self.cluster
        found: dict[str, IntArray] = {}
        for plugin, weight, state in (*evaluation.fixed_scorers, *evaluation.raw_scorers):
            raw = plugin.scores(state, cluster, rows)
            found[plugin.name] = (plugin.normalize(state, raw) if plugin.normalizes else raw) * np.int64(weight)
        for plugin, weight in self.line_up.cluster_scorers:
            state = plugin.prepare_scores(cycle, rows)
            if state is not SKIP:
                found[plugin.name] = plugin.normalize(state, plugin.scores(state, cluster, rows)) * np.int64(weight)
        return found
