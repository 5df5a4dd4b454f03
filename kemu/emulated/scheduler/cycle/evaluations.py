"""The verdicts and scores of one template on every node, kept until the node changes.

Most pods are made from few templates, and between two attempts few nodes change. So the answers of the plugins whose
scope is the node are kept in columns, one set for each (line-up, template), and only the rows named by the cluster's
change logs are computed again: node by node when they are few, in column form when they are many.

Pods nominated to a node with a priority not below that of the template are part of what is kept: the filters run with
them and without them (:func:`kemu.emulated.scheduler.cycle.verdicts.with_nominated`). Their effect on CLUSTER filters
is added by :mod:`kemu.emulated.scheduler.cycle.decisions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.cycle import verdicts
from kemu.emulated.scheduler.cycle.line_ups import LineUp
from kemu.emulated.scheduler.framework import answers
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, Narrowed, Scope, ScorePlugin
from kemu.emulated.scheduler.framework.statuses import Status

_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)

_FEW = 32
"""A pod that names no more nodes has the filters asked about each of them, not about all nodes."""

_KEPT_ROWS = 1_000_000
"""How many rows the kept evaluations of one line-up may have together."""


class Filters:
    """The local filters of a line-up, prepared for one template."""

    __slots__ = ("narrowed", "narrowed_by", "of_cluster", "on_node", "on_object", "rejection", "states")

    def __init__(self, line_up: LineUp, cycle: Cycle) -> None:
        self.states: dict[int, Any] = {}
        """By place in the line-up."""
        self.on_object: list[tuple[int, FilterPlugin, Any]] = []
        self.on_node: list[tuple[int, FilterPlugin, Any]] = []
        self.narrowed: tuple[str, ...] | None = None
        self.narrowed_by = ""
        self.rejection: Status | None = None
        self.of_cluster = [one for one in line_up.cluster_filters if one[1].concerns(cycle.template)]
        """With their places: those that each attempt prepares for its pod."""
        for place, plugin in line_up.local_filters:
            state = plugin.prepare(cycle)
            if isinstance(state, Status):
                self.rejection = self.rejection or state._replace(plugin=plugin.name)
                continue
            if isinstance(state, Narrowed):
                self.narrowed, self.narrowed_by, state = state.names, plugin.name, state.state
            if state is SKIP:
                continue
            self.states[place] = state
            (self.on_object if plugin.scope is Scope.NODE_OBJECT else self.on_node).append((place, plugin, state))


class Evaluation:
    """The columns of one template under one line-up. Call :meth:`refresh` before reading them."""

    __slots__ = (
        "_again",
        "_fixed",
        "_layout",
        "_node_position",
        "_pod_position",
        "_rows",
        "_versioned",
        "_versions",
        "_was_scored",
        "feasible",
        "few",
        "filters",
        "fixed_scorers",
        "object_verdicts",
        "raw",
        "raw_scorers",
        "tally",
        "template",
        "verdicts",
        "with_verdicts",
    )

    def __init__(self, line_up: LineUp, cycle: Cycle) -> None:
        self.template: Template = cycle.template
        self._again = cycle.cluster.filters_again
        self.filters = Filters(line_up, cycle)
        self.fixed_scorers: list[tuple[ScorePlugin, int, Any]] = []
        """(plugin, weight, state) of local scorers whose scores are final."""
        self.raw_scorers: list[tuple[ScorePlugin, int, Any]] = []
        """Those whose scores are normalised over the feasible nodes, or checked in the end."""
        for plugin, weight in line_up.local_scorers:
            state = plugin.prepare_scores(cycle, _NO_ROWS)
            if state is not SKIP:
                is_final = not (plugin.normalizes or plugin.is_foreign)
                (self.fixed_scorers if is_final else self.raw_scorers).append((plugin, weight, state))
        self.object_verdicts: IntArray = _NO_ROWS
        """Combined verdicts of the filters that look at the node object alone."""
        self.verdicts: IntArray = _NO_ROWS
        """Combined verdicts of all local filters, by row."""
        self.feasible: BoolArray = np.zeros(0, dtype=np.bool_)
        self.few: list[int] | None = None
        """The only rows that the columns are about, where the pod names its nodes; None: all rows."""
        self.tally: dict[int, int] = {}
        """How many nodes have which combined verdict."""
        self.with_verdicts: tuple[frozenset[int], IntArray] | None = None
        """Some verdicts, and all rows that have one of them, for who asks again: None when these are others now."""
        self._fixed: IntArray | None = None
        """Sum of the final scores, weighted; meaningful for rows that pass. None until it pays off."""
        self._was_scored = False
        """Whether scores were read since the last rebuild."""
        self.raw: list[IntArray | None] = []
        """Raw scores of each of ``raw_scorers``; None where they are 0 on every node."""
        scorers = (*self.fixed_scorers, *self.raw_scorers)
        self._versioned = [one for one, _weight, _state in scorers if type(one).version is not ScorePlugin.version]
        self._layout = -1
        self._node_position = 0
        self._pod_position = 0
        self._rows = 0
        self._versions: tuple[int, ...] = ()

    # Bringing it up to date -----------------------------------------------------------------------------------------

    def refresh(self, cluster: Cluster) -> None:
        if cluster.order_is_stale or cluster.unseen:
            cluster.settle()
        if self._layout != cluster.layout:
            self._build(cluster)
            return
        rows_now = len(cluster.rows)
        if self._rows != rows_now:
            # New nodes: rows that have not been counted yet.
            self.verdicts[self._rows : rows_now] = -1
            self._rows = rows_now
        if self._node_position != cluster.node_changes.end:
            rows = cluster.node_changes.since(self._node_position)
            if rows is None or not self._update_objects(cluster, rows):
                self._build(cluster)
                return
        for plugin, version in zip(self._versioned, self._versions, strict=True):
            if plugin.version(cluster) != version:
                self._build(cluster)
                return
        if self._pod_position != cluster.pod_changes.end:
            rows = cluster.pod_changes.since(self._pod_position)
            if rows is None or len(rows) > 24 + self._rows // 64:
                self._build_pods(cluster, rows)
            else:
                self._pod_position = cluster.pod_changes.end
                for row in rows:
                    self._update_row(cluster.rows[row])
                self._update_raw(cluster, rows)

    def _current_versions(self, cluster: Cluster) -> tuple[int, ...]:
        return tuple([plugin.version(cluster) for plugin in self._versioned])

    def _build(self, cluster: Cluster) -> None:
        """Rebuild everything, in column form."""
        rows = len(cluster)
        self._layout = cluster.layout
        self._node_position = cluster.node_changes.end
        self._versions = self._current_versions(cluster)
        self.object_verdicts = cluster.zeros
        for place, plugin, state in self.filters.on_object:
            column = plugin.verdicts(state, cluster)
            if column is not None:
                verdicts.merge(self._own_object_verdicts()[:rows], place, column)
        self.raw = [self._raw_column(plugin, state, cluster) for plugin, _weight, state in self.raw_scorers]
        self._build_pods(cluster, [])

    def _own_object_verdicts(self) -> IntArray:
        """Usually no node is rejected for its object alone; then all templates share one column."""
        if not self.object_verdicts.flags.writeable:
            self.object_verdicts = self.object_verdicts.copy()
        return self.object_verdicts

    def _raw_column(self, plugin: ScorePlugin, state: object, cluster: Cluster) -> IntArray | None:
        scores = plugin.scores(state, cluster, None)
        if plugin.is_foreign:
            scores = answers.whole_scores(plugin.name, "scores", scores, len(cluster))
        if not scores.any():
            return None
        raw = np.zeros(cluster.capacity, dtype=np.int64)
        raw[: len(cluster)] = scores
        return raw

    def _build_pods(self, cluster: Cluster, changed: list[int] | None) -> None:
        """Rebuild what depends on the pods of the nodes. ``changed``: these rows alone have other raw scores than
        before; None: that is not known."""
        rows = self._rows = len(cluster)
        self._pod_position = cluster.pod_changes.end
        column = self.object_verdicts.copy()
        verdicts.fill(column[:rows], self.filters.on_node, cluster)
        self.verdicts = column
        for node in cluster.nominated_nodes():
            column[node.row] = self.verdict(node)
        self.feasible = column == 0
        self.tally = verdicts.tally_of(column[:rows])
        self._fixed, self._was_scored, self.with_verdicts = None, False, None
        if changed is not None:
            self._update_raw(cluster, changed)
            return
        for number, (plugin, _weight, state) in enumerate(self.raw_scorers):
            if plugin.scope is Scope.NODE:
                self.raw[number] = self._raw_column(plugin, state, cluster)

    def _update_raw(self, cluster: Cluster, changed: list[int]) -> None:
        """Raw scores of nodes whose pods changed: one question for all of them."""
        if not changed:
            return
        rows: IntArray | None = None
        for number, (plugin, _weight, state) in enumerate(self.raw_scorers):
            if plugin.scope is Scope.NODE:
                rows = np.array(changed, dtype=np.int64) if rows is None else rows
                scores = plugin.scores(state, cluster, rows)
                if plugin.is_foreign:
                    scores = answers.whole_scores(plugin.name, "scores", scores, len(rows))
                raw = self.raw[number]
                if raw is None:
                    raw = self.raw[number] = np.zeros(len(self.verdicts), dtype=np.int64)
                raw[rows] = scores

    def _update_objects(self, cluster: Cluster, rows: list[int]) -> bool:
        """Node objects changed; False when a rebuild is cheaper."""
        if len(rows) > 24 + len(cluster) // 64:
            return False
        self._node_position = cluster.node_changes.end
        for row in rows:
            node = cluster.rows[row]
            verdict = verdicts.first(self.filters.on_object, node)
            if verdict != self.object_verdicts[row]:
                self._own_object_verdicts()[row] = verdict
            for number, (plugin, _weight, state) in enumerate(self.raw_scorers):
                score = plugin.score(state, node)
                raw = self.raw[number]
                if raw is None:
                    if score == 0:
                        continue
                    raw = self.raw[number] = np.zeros(cluster.capacity, dtype=np.int64)
                raw[row] = score
        return True

    def _update_row(self, node: NodeInfo) -> None:
        row = node.row
        # Evaluation.verdict, inlined for a node without nominations where no filter looks at the object alone.
        if node.nominated or self.object_verdicts.flags.writeable:
            new = self.verdict(node)
        else:
            new = 0
            for place, filtering, state in self.filters.on_node:
                verdict = filtering.verdict(state, node)
                if verdict:
                    new = verdicts.combined(place, verdict)
                    break
        old = int(self.verdicts[row])
        if new != old:
            self.verdicts[row] = new
            self.feasible[row] = new == 0
            if self.with_verdicts is not None and (new in self.with_verdicts[0]) != (old in self.with_verdicts[0]):
                self.with_verdicts = None
            tally = self.tally
            tally[new] = tally.get(new, 0) + 1
            left = tally.get(old, 0) - 1
            if left > 0:
                tally[old] = left
            else:
                tally.pop(old, None)
        if self._fixed is not None and (new == 0 or node.nominated):
            # A node rejected because of a nominated pod may still pass for that pod itself.
            total = 0
            for plugin, weight, state in self.fixed_scorers:
                total += plugin.score(state, node) * weight
            self._fixed[row] = total

    def fixed_scores(self, cluster: Cluster, rows: IntArray) -> IntArray:
        """The sum of the final scores of rows that pass, weighted. A copy."""
        fixed = self._fixed
        if fixed is None:
            if not self._was_scored and 2 * len(rows) < self._rows:
                # This may be the only pod of its template: only the rows asked for.
                self._was_scored = True
                return self._sum_of_scores(cluster, rows)
            fixed = self._fixed = np.zeros(cluster.capacity, dtype=np.int64)
            fixed[: self._rows] = self._sum_of_scores(cluster, None)
        chosen: IntArray = fixed[rows]
        return chosen

    def _sum_of_scores(self, cluster: Cluster, rows: IntArray | None) -> IntArray:
        total = np.zeros(self._rows if rows is None else len(rows), dtype=np.int64)
        for plugin, weight, state in self.fixed_scorers:
            scores = plugin.scores(state, cluster, rows)
            total += scores if weight == 1 else scores * np.int64(weight)
        return total

    def only_of(self, cluster: Cluster, rows: list[int]) -> None:
        """Fill in the columns of these rows alone; serves one attempt and is not kept."""
        self.few = rows
        self._rows = len(cluster)
        self.object_verdicts = np.zeros(cluster.capacity, dtype=np.int64)
        self.verdicts = np.zeros(cluster.capacity, dtype=np.int64)
        for row in rows:
            node = cluster.rows[row]
            self.object_verdicts[row] = verdicts.first(self.filters.on_object, node)
            self.verdicts[row] = self.verdict(node, None)
        self.raw = [None] * len(self.raw_scorers)
        if len(rows) > 1:
            for number, (plugin, _weight, state) in enumerate(self.raw_scorers):
                raw = self.raw[number] = np.zeros(cluster.capacity, dtype=np.int64)
                raw[rows] = plugin.scores(state, cluster, np.array(rows))

    # One node -------------------------------------------------------------------------------------------------------

    def verdict(self, node: NodeInfo, pod: PodInfo | None = None) -> int:
        """The combined verdict of the local filters on a node of the cluster, with its nominated pods.

        ``pod``: the pending pod, whose own nomination does not count; None: all nominations count.
        """
        of_object = int(self.object_verdicts[node.row])
        if not node.nominated:
            verdict = verdicts.first(self.filters.on_node, node)
            return of_object if of_object and (not verdict or of_object < verdict) else verdict
        others = verdicts.nominated_above(node, self.template.priority, pod)
        return verdicts.with_nominated(self.filters.on_node, node, others, of_object, again=self._again)


class Evaluations:
    """The evaluations of one line-up, by template; beyond a limit, those not used for longest are dropped."""

    def __init__(self, line_up: LineUp, cluster: Cluster) -> None:
        self._line_up = line_up
        self._cluster = cluster
        self._by_template: dict[int, Evaluation] = {}
        self._mapping = 0

    def of(self, cycle: Cycle) -> Evaluation:
        """The evaluation of the pod's template, up to date; of a pod that names few nodes, about those alone."""
        number, cluster = cycle.template.number, self._cluster
        if cluster.devices is not None and cluster.devices.mapping != self._mapping:
            # NodeResourcesFit leaves other resources to DynamicResources than before.
            self._mapping = cluster.devices.mapping
            self._by_template.clear()
        evaluation = self._by_template.pop(number, None)
        if evaluation is None:
            evaluation = Evaluation(self._line_up, cycle)
            names = evaluation.filters.narrowed
            if names is not None and len(names) <= _FEW:
                # As a rule a pod of a DaemonSet, whose template no other pod has.
                cluster.settle()
                own = (cycle.message.status.nominatedNodeName, cluster.nominator.node_of(cycle.pod.uid))
                known = (cluster.nodes.get(name) for name in dict.fromkeys((*names, *own)))
                evaluation.only_of(cluster, [node.row for node in known if node is not None and node.row >= 0])
                return evaluation
            limit = max(8, _KEPT_ROWS // max(1, cluster.capacity))
            while len(self._by_template) >= limit:
                # One at a time, so that the memory of its columns is reused.
                del self._by_template[next(iter(self._by_template))]
        evaluation.refresh(cluster)
        self._by_template[number] = evaluation  # unless a plugin's answer was invalid, which leaves half of it old
        return evaluation
