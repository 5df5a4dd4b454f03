"""PodTopologySpread: pods of a kind spread evenly over zones, racks or nodes.

Hard constraints filter, soft ones score. Counts of matching pods come from count columns; which nodes count for a
constraint (node affinity, taints) depends on the pending pod and is computed for each attempt.

Verdicts: 2 * i + 1 the i-th hard constraint is violated, 2 * i + 2 the node has no such label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.selectors import LabelSelector, Requirement
from kemu.emulated.scheduler.cache import terms
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray, LabelColumn
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.cache.terms import HOSTNAME, PodSelector, SpreadConstraint
from kemu.emulated.scheduler.framework.events import Event, Hint, of_the_pod_itself, taints_of
from kemu.emulated.scheduler.framework.interfaces import (
    MAX_SCORE,
    SKIP,
    Cycle,
    FilterPlugin,
    Handle,
    ScorePlugin,
    SignPlugin,
)
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable, unschedulable
from kemu.emulated.scheduler.plugins import node_affinity
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_VIOLATED = unschedulable("node(s) didn't match pod topology spread constraints")
_NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
_FORBIDDING = ("NoSchedule", "NoExecute")

_SYSTEM_DEFAULTS = ((HOSTNAME, 3), (terms.ZONE, 5))
_SELECTOR_OWNERS = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
_FAR = 1 << 62


class _Hard:
    """One hard constraint with its current counts."""

    __slots__ = ("constraint", "counts", "difference", "exists", "is_self_match", "labels", "lowest", "second")

    def __init__(self, constraint: SpreadConstraint, labels: LabelColumn, counts: IntArray, exists: BoolArray) -> None:
        self.constraint = constraint
        self.labels = labels
        self.counts = counts
        """By number of the label's value."""
        self.exists = exists
        """Which values are domains: some node that has it counts."""
        self.is_self_match = 0
        self.difference: dict[int, int] = {}
        present = np.flatnonzero(exists)
        order = present[np.argsort(counts[present], kind="stable")]
        self.lowest = (int(order[0]), int(counts[order[0]])) if len(order) else (0, _FAR)
        """The domain with the fewest pods."""
        self.second = int(counts[order[1]]) if len(order) > 1 else _FAR

    def fork(self) -> _Hard:
        twin = _Hard.__new__(_Hard)
        twin.constraint, twin.labels, twin.counts, twin.exists = self.constraint, self.labels, self.counts, self.exists
        twin.is_self_match, twin.lowest, twin.second = self.is_self_match, self.lowest, self.second
        twin.difference = dict(self.difference)
        return twin

    def minimum(self) -> int:
        """The smallest count over the domains, or 0 when there are too few of them."""
        if int(self.exists.sum()) < self.constraint.min_domains:
            return 0
        if len(self.difference) > 1:
            # Pods of several nodes were taken away.
            counts = self.counts.copy()
            for value, change in self.difference.items():
                counts[value] += change
            return int(counts[self.exists].min(initial=_FAR))
        lowest = self.lowest[1]
        for value, change in self.difference.items():
            # As a rule a simulation touches the domain of one node.
            rest = self.second if value == self.lowest[0] else lowest
            return min(rest, int(self.counts[value]) + change)
        return lowest

    def limit(self) -> int:
        """The largest count that a domain may have to take the pod."""
        return self.constraint.max_skew + self.minimum() - self.is_self_match


class _Hards:
    """The state of the filter."""

    __slots__ = ("constraints", "cycle", "eligible")

    def __init__(self, cycle: Cycle, constraints: list[_Hard], eligible: list[BoolArray]) -> None:
        self.cycle = cycle
        self.constraints = constraints
        self.eligible = eligible
        """For each constraint, by row: whether the pods of the node count."""


class _Soft:
    """One soft constraint for scoring."""

    __slots__ = ("column", "constraint", "labels", "per_domain", "weight")

    def __init__(
        self, constraint: SpreadConstraint, labels: LabelColumn, weight: float, column: IntArray, per_domain: bool
    ) -> None:
        self.constraint = constraint
        self.labels = labels
        self.weight = weight
        self.column = column
        """Counts by number of the label's value, or by row."""
        self.per_domain = per_domain


class _Softs:
    __slots__ = ("constraints", "ignored")

    def __init__(self, constraints: list[_Soft], ignored: BoolArray | None) -> None:
        self.constraints = constraints
        self.ignored = ignored
        """By row: nodes that lack a label; None when none is left out."""


class PodTopologySpread(FilterPlugin, ScorePlugin, SignPlugin):
    normalizes = True

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.system_defaults: bool = args["defaultingType"] == "System"
        self.defaults: list[Any] = [
            convert.from_json(core_v1_pb2.TopologySpreadConstraint, entry) for entry in args["defaultConstraints"]
        ]

    def constraints(
        self, template: Template, labels: Mapping[str, str], pod: core_v1_pb2.Pod, hard: bool
    ) -> list[SpreadConstraint]:
        """The pod's own constraints, or the default ones, hard or soft."""
        if pod.spec.topologySpreadConstraints:
            return [one.for_pod(labels) for one in template.spread_constraints if one.hard is hard]
        if self.system_defaults and hard:
            return []
        selector = default_selector(pod, labels, self.handle.cluster)
        if selector is None:
            return []
        if self.system_defaults:
            return [SpreadConstraint(key, skew, False, selector) for key, skew in _SYSTEM_DEFAULTS]
        found = []
        for message in self.defaults:
            constraint = terms.spread_constraint(message)
            if constraint.hard is hard:
                constraint.selector = selector
                found.append(constraint)
        return found

    # Filter ---------------------------------------------------------------------------------------------------------

    def concerns(self, template: Template) -> bool:
        return bool(template.spread_constraints) or not self.system_defaults

    def prepare(self, cycle: Cycle) -> Any:
        constraints = self.constraints(cycle.template, cycle.labels, cycle.message, hard=True)
        if not constraints:
            return SKIP
        cluster, rows = cycle.cluster, len(cycle.cluster)
        complete = _has_all_keys(constraints, cluster)
        hards, eligibles = [], []
        eligibility = _Eligibility(cycle.template, cluster)
        for constraint in constraints:
            labels = cluster.label(constraint.key)
            eligible = complete & eligibility.of(constraint)
            ids = labels.ids[:rows]
            exists = np.zeros(labels.size, dtype=np.bool_)
            exists[ids[eligible]] = True
            hard = _Hard(constraint, labels, self._counts(cycle, constraint, labels, eligible), exists)
            hard.is_self_match = 1 if constraint.selector.matches(cycle.labels) else 0
            hards.append(hard)
            eligibles.append(eligible)
        return _Hards(cycle, hards, eligibles)

    def _counts(self, cycle: Cycle, constraint: SpreadConstraint, labels: LabelColumn, eligible: BoolArray) -> IntArray:
        """Pods that match the constraint on eligible nodes, by number of the label's value."""
        rows = len(cycle.cluster)
        column = _matching(cycle, constraint)
        if column is None:
            return np.zeros(labels.size, dtype=np.int64)
        return np.bincount(labels.ids[:rows], weights=np.where(eligible, column, 0), minlength=labels.size).astype(
            np.int64
        )

    def verdict(self, state: _Hards, node: NodeInfo) -> int:
        for number, hard in enumerate(state.constraints):
            value = hard.labels.number(node.labels)
            if not value:
                return 2 * number + 2
            count = int(hard.counts[value]) if value < len(hard.counts) else 0
            if count + hard.difference.get(value, 0) > hard.limit():
                return 2 * number + 1
        return 0

    def verdicts(self, state: _Hards, cluster: Cluster) -> IntArray:
        rows = len(cluster)
        verdicts = np.zeros(rows, dtype=np.int64)
        for number, hard in reversed(list(enumerate(state.constraints))):
            by_value = np.where(hard.counts > hard.limit(), 2 * number + 1, 0)
            by_value[0] = 2 * number + 2
            own = by_value[hard.labels.ids[:rows]]
            verdicts = np.where(own > 0, own, verdicts)
        return verdicts

    def explain(self, state: _Hards, verdict: int) -> Status:
        return _VIOLATED if verdict & 1 else _NO_LABEL

    def signs(self) -> bool:
        return not self.system_defaults and not self.defaults

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return None if pod.template.spread_constraints or not self.signs() else {}

    def fork(self, state: _Hards) -> _Hards:
        return _Hards(state.cycle, [hard.fork() for hard in state.constraints], state.eligible)

    def add_pod(self, state: _Hards, node: NodeInfo, pod: PodInfo) -> None:
        self._change(state, node, pod, 1)

    def remove_pod(self, state: _Hards, node: NodeInfo, pod: PodInfo) -> None:
        self._change(state, node, pod, -1)

    def passes_anyway(self, state: _Hards, node: NodeInfo) -> bool:
        """Where a domain may take the pod, it may also with fewer pods, as the minimum falls no lower than it does."""
        return not node.nominated and self.verdict(state, node) == 0

    def passing_anyway(self, state: _Hards, cluster: Cluster) -> BoolArray:
        passing: BoolArray = self.verdicts(state, cluster) == 0
        passing[[node.row for node in cluster.nominated_nodes()]] = False
        return passing

    def _change(self, state: _Hards, node: NodeInfo, pod: PodInfo, amount: int) -> None:
        if pod.namespace != state.cycle.namespace:
            return
        for hard, eligible in zip(state.constraints, state.eligible, strict=True):
            if eligible[node.row] and hard.constraint.selector.matches(pod.labels):
                value = hard.labels.number(node.labels)
                hard.difference[value] = hard.difference.get(value, 0) + amount

    # Score ----------------------------------------------------------------------------------------------------------

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        if not cycle.template.spread_constraints and not cycle.cluster.services and not cycle.cluster.owners:
            # Without services and owners no default constraint has a selector.
            return SKIP
        constraints = self.constraints(cycle.template, cycle.labels, cycle.message, hard=False)
        if not constraints:
            return SKIP
        cluster, every = cycle.cluster, len(cycle.cluster)
        need_all_keys = bool(cycle.template.spread_constraints) or not self.system_defaults
        complete = _has_all_keys(constraints, cluster) if need_all_keys else np.ones(every, dtype=np.bool_)
        candidates = rows[complete[rows]]
        eligibility = _Eligibility(cycle.template, cluster)
        softs = []
        for constraint in constraints:
            labels = cluster.label(constraint.key)
            if constraint.key == HOSTNAME:
                column = _matching(cycle, constraint)
                counts = np.zeros(every, dtype=np.int64) if column is None else column[:every]
                softs.append(_Soft(constraint, labels, math.log(len(candidates) + 2), counts, False))
                continue
            present = np.zeros(labels.size, dtype=np.bool_)
            present[labels.ids[candidates]] = True
            eligible = complete & eligibility.of(constraint)
            counts = np.where(present, self._counts(cycle, constraint, labels, eligible), 0)
            softs.append(_Soft(constraint, labels, math.log(int(present.sum()) + 2), counts, True))
        return _Softs(softs, ~complete if need_all_keys else None)

    def score(self, state: _Softs, node: NodeInfo) -> int:
        if state.ignored is not None and state.ignored[node.row]:
            return -1
        total = 0.0
        for soft in state.constraints:
            value = soft.labels.number(node.labels)
            if value:
                count = 0.0
                if soft.per_domain:
                    count = float(soft.column[value])
                elif node.pods:
                    # An extender may have sent the node back, without pods; the column counts those in the cache.
                    count = float(soft.column[node.row])
                total += count * soft.weight + (soft.constraint.max_skew - 1)
        return math.floor(total + 0.5)

    def scores(self, state: _Softs, cluster: Cluster, rows: IntArray | None) -> IntArray:
        selected = np.arange(len(cluster)) if rows is None else rows
        total = np.zeros(len(selected))
        for soft in state.constraints:
            ids = soft.labels.ids[selected]
            counts = soft.column[ids if soft.per_domain else selected]
            total += np.where(ids > 0, counts * soft.weight + float(soft.constraint.max_skew - 1), 0.0)
        scores: IntArray = np.floor(total + 0.5).astype(np.int64)
        if state.ignored is not None:
            scores[state.ignored[selected]] = -1
        return scores

    def normalize(self, state: _Softs, scores: IntArray) -> IntArray:
        """Raw -1 marks the nodes that are left out."""
        taking_part = scores >= 0
        if not taking_part.any():
            return np.zeros_like(scores)
        lowest, highest = int(scores[taking_part].min()), int(scores[taking_part].max())
        if highest == 0:
            return np.where(taking_part, MAX_SCORE, 0)
        return np.where(taking_part, MAX_SCORE * (highest + lowest - scores) // highest, 0)

    # Events ---------------------------------------------------------------------------------------------------------

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.ASSIGNED_POD_ADD, lambda pod, old, new: self._matches_some(pod, new)),
            # Also of a pod that was only nominated (involvedInTopologySpreading).
            (Event.ASSIGNED_POD_DELETE, lambda pod, old, new: self._matches_some(pod, old)),
            (Event.ASSIGNED_POD_LABELS, self._relabelled),
            (Event.POD_LABELS, self._relabelled_itself),
            (Event.POD_TOLERATIONS, self._tolerates_more),
            (Event.NODE_ADD, lambda pod, old, new: self._has_keys(pod, new)),
            (Event.NODE_DELETE, lambda pod, old, new: self._has_keys(pod, old)),
            (Event.NODE_LABELS, self._labels_changed),
            (Event.NODE_TAINTS, lambda pod, old, new: self._has_keys(pod, new) and taints_of(old) != taints_of(new)),
        ]

    def _hard(self, pod: PodInfo) -> list[SpreadConstraint]:
        return self.constraints(pod.template, pod.labels, pod.pod, hard=True)

    def _matches_some(self, pod: PodInfo, other: KubernetesObject) -> bool:
        if other.metadata.namespace != pod.namespace:
            return False
        return any(constraint.selector.matches(other.metadata.labels) for constraint in self._hard(pod))

    def _relabelled(self, pod: PodInfo, old: KubernetesObject, new: KubernetesObject) -> bool:
        if new.metadata.namespace != pod.namespace:
            return False
        return any(
            one.selector.matches(old.metadata.labels) != one.selector.matches(new.metadata.labels)
            for one in self._hard(pod)
        )

    def _tolerates_more(self, pod: PodInfo, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
        return of_the_pod_itself(pod, old, new) and any(one.honor_taints for one in self._hard(pod))

    def _relabelled_itself(self, pod: PodInfo, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
        return of_the_pod_itself(pod, old, new) and any(
            one.selector.matches(old.metadata.labels) != one.selector.matches(new.metadata.labels)
            for one in self._hard(pod)
        )

    def _has_keys(self, pod: PodInfo, node: core_v1_pb2.Node) -> bool:
        return all(constraint.key in node.metadata.labels for constraint in self._hard(pod))

    def _labels_changed(self, pod: PodInfo, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> bool:
        before, after = self._has_keys(pod, old), self._has_keys(pod, new)
        if before != after:
            return True
        return after and any(old.metadata.labels[one.key] != new.metadata.labels[one.key] for one in self._hard(pod))


class _Eligibility:
    """Which nodes count for a constraint, because the pod could run there as far as affinity and taints go."""

    def __init__(self, template: Template, cluster: Cluster) -> None:
        self._template = template
        self._cluster = cluster
        self._affinity: BoolArray | None = None
        self._taints: BoolArray | None = None

    def of(self, constraint: SpreadConstraint) -> BoolArray:
        cluster, rows = self._cluster, len(self._cluster)
        mask = np.ones(rows, dtype=np.bool_)
        if constraint.honor_affinity and not self._template.required_affinity.everything:
            if self._affinity is None:
                self._affinity = node_affinity.required_mask(self._template.required_affinity, cluster)
            mask &= self._affinity
        if constraint.honor_taints:
            if self._taints is None:
                tolerated = [
                    selectors.untolerated_taint(taints, self._template.tolerations, _FORBIDDING) is None
                    for taints in cluster.taint_sets
                ]
                self._taints = np.array(tolerated, dtype=np.bool_)[cluster.taint_set_ids[:rows]]
            mask &= self._taints
        return mask


def _has_all_keys(constraints: Sequence[SpreadConstraint], cluster: Cluster) -> BoolArray:
    mask = np.ones(len(cluster), dtype=np.bool_)
    for constraint in constraints:
        mask &= cluster.label(constraint.key).ids[: len(cluster)] > 0
    return mask


def _matching(cycle: Cycle, constraint: SpreadConstraint) -> IntArray | None:
    """By row: pods of the namespace that match and are not being deleted; None when there cannot be any.

    An empty selector counts no pods, although in a simulation it matches all (as in kube-scheduler).
    """
    selector = constraint.selector
    if selector.everything or selector.nothing:
        return None
    column = cycle.cluster.matching(PodSelector((cycle.namespace,), False, selector, live_only=True))
    return column.by_row(len(cycle.cluster))


def default_selector(pod: core_v1_pb2.Pod, labels: Mapping[str, str], cluster: Cluster) -> LabelSelector | None:
    """The merged selectors of the services and of the controller of a pod; None when that asks for nothing.

    As ``helper.DefaultSelector``: of two values for one label the later one stays, also when the earlier was that of a
    service; only the selectors of ReplicaSets and StatefulSets are added as they are.
    """
    merged: dict[str, str] = {}
    added: tuple[Requirement, ...] = ()
    namespace = pod.metadata.namespace
    for service in cluster.services_of(namespace, labels):
        merged.update(service.equals)
    owner = meta.controller_of(pod)
    if owner is not None and _SELECTOR_OWNERS.get(owner.kind) == owner.apiVersion:
        controller = cluster.owners.get((owner.kind, namespace, owner.name))
        if controller is not None and owner.kind == "ReplicationController":
            merged.update(controller.spec.selector)
        elif controller is not None:
            added = selectors.compile_labels(controller.spec.selector).requirements
    requirements = (*(Requirement(key, selectors.IN, (merged[key],)) for key in sorted(merged)), *added)
    return LabelSelector(requirements) if requirements else None
