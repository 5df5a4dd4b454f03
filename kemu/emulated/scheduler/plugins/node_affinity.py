"""NodeAffinity: nodeSelector, required and preferred node affinity, and the profile's own ``addedAffinity``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.selectors import NodeSelector, NodeSelectorTerm, RequiredNodeAffinity
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import BoolArray, IntArray, LabelColumn
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    SKIP,
    Cycle,
    FilterPlugin,
    Handle,
    Narrowed,
    Scope,
    ScorePlugin,
    SignPlugin,
)
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.emulated.scheduler.plugins import normalizing
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_POD = unresolvable("node(s) didn't match Pod's node affinity/selector")
_CONFLICT = unresolvable("pod affinity terms conflict")

WeightedTerms = tuple[tuple[int, NodeSelectorTerm], ...]


class NodeAffinity(FilterPlugin, ScorePlugin, SignPlugin):
    scope = Scope.NODE_OBJECT
    normalizes = True

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self._narrows = True
        """Whether PreFilter is enabled, which leaves out all nodes but those that the pod names."""
        self.added: NodeSelector | None = None
        self.added_preferred: WeightedTerms = ()
        if args.get("addedAffinity"):
            added = convert.from_json(core_v1_pb2.NodeAffinity, args["addedAffinity"])
            if added.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
                self.added = NodeSelector(added.requiredDuringSchedulingIgnoredDuringExecution)
            self.added_preferred = tuple(
                (term.weight, NodeSelectorTerm(term.preference))
                for term in added.preferredDuringSchedulingIgnoredDuringExecution
            )

    # Filter ---------------------------------------------------------------------------------------------------------

    def prepare(self, cycle: Cycle) -> Any:
        required = cycle.template.required_affinity
        if required.everything and self.added is None:
            return SKIP
        names = named_nodes(required) if self._narrows else None
        if names is None:
            return required
        return Narrowed(names, required) if names else _CONFLICT

    def without_pre_filter(self) -> None:
        self._narrows = False

    def verdict(self, state: RequiredNodeAffinity, node: NodeInfo) -> int:
        if self.added is not None and not self.added.matches(node.labels, node.name):
            return 1
        return 0 if state.matches(node.labels, node.name) else 2

    def verdicts(self, state: RequiredNodeAffinity, cluster: Cluster) -> IntArray | None:
        verdicts = np.where(required_mask(state, cluster), 0, 2)
        if self.added is not None:
            verdicts[~selector_mask(self.added, cluster)] = 1
        return verdicts

    def explain(self, state: RequiredNodeAffinity, verdict: int) -> Status:
        return _ENFORCED if verdict == 1 else _POD

    # Score ----------------------------------------------------------------------------------------------------------

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        return (*self.added_preferred, *cycle.template.preferred_terms) or SKIP

    def score(self, state: WeightedTerms, node: NodeInfo) -> int:
        return sum(weight for weight, term in state if term.matches(node.labels, node.name))

    def scores(self, state: WeightedTerms, cluster: Cluster, rows: IntArray | None) -> IntArray:
        total = np.zeros(len(cluster), dtype=np.int64)
        for weight, term in state:
            total += term_mask(term, cluster) * np.int64(weight)
        return total if rows is None else total[rows]

    def normalize(self, state: WeightedTerms, scores: IntArray) -> IntArray:
        return normalizing.by_maximum(scores)

    # Events ---------------------------------------------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.node_affinity(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.NODE_ADD, lambda pod, old, new: self._matches(pod, new)),
            (Event.NODE_LABELS, self._matches_now),
            (Event.NODE_TAINTS, None),
        ]

    def _matches(self, pod: PodInfo, node: core_v1_pb2.Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        if self.added is not None and not self.added.matches(labels, name):
            return False
        return pod.template.required_affinity.matches(labels, name)

    def _matches_now(self, pod: PodInfo, old: KubernetesObject, new: core_v1_pb2.Node) -> bool:
        """To kube-scheduler, a node that only the added affinity ruled out before is no change."""
        was_wanted = pod.template.required_affinity.matches(old.metadata.labels, old.metadata.name)
        return not was_wanted and self._matches(pod, new)


def named_nodes(required: RequiredNodeAffinity) -> tuple[str, ...] | None:
    """The nodes that the terms name, when every term names nodes; None when some term does not."""
    if required.affinity is None:
        return None
    names: dict[str, None] = {}
    for term in required.affinity.terms:
        wanted = [one.values for one in term.fields if one.key == "metadata.name" and one.operator == selectors.IN]
        if not wanted:
            return None
        names.update(dict.fromkeys(name for name in wanted[0] if all(name in others for others in wanted[1:])))
    return tuple(names) if required.affinity.terms else None


def required_mask(required: RequiredNodeAffinity, cluster: Cluster) -> BoolArray:
    """By row: whether the node is what a pod's nodeSelector and required affinity ask for."""
    mask = np.ones(len(cluster), dtype=np.bool_)
    for key, value in required.node_selector:
        column = cluster.label(key)
        mask &= column.ids[: len(cluster)] == column.values.get(value, -1)
    if required.affinity is not None:
        mask &= selector_mask(required.affinity, cluster)
    return mask


def selector_mask(selector: NodeSelector, cluster: Cluster) -> BoolArray:
    """By row: whether one of the terms matches."""
    mask = np.zeros(len(cluster), dtype=np.bool_)
    for term in selector.terms:
        mask |= term_mask(term, cluster)
    return mask


def term_mask(term: NodeSelectorTerm, cluster: Cluster) -> BoolArray:
    """By row: whether the term matches."""
    rows = len(cluster)
    if term.never:
        return np.zeros(rows, dtype=np.bool_)
    mask = np.ones(rows, dtype=np.bool_)
    for requirement in term.expressions:
        column = cluster.label(requirement.key)
        mask &= _answers(requirement, column)[column.ids[:rows]]
    for requirement in term.fields:
        wanted = requirement.operator == selectors.IN
        if requirement.key != "metadata.name":
            # An unknown field has the empty value on every node.
            if (requirement.values[0] == "") is not wanted:
                mask[:] = False
            continue
        named = np.zeros(rows, dtype=np.bool_)
        node = cluster.nodes.get(requirement.values[0])
        if node is not None and node.row >= 0:
            named[node.row] = True
        mask &= named if wanted else ~named
    return mask


def _answers(requirement: selectors.Requirement, column: LabelColumn) -> BoolArray:
    """Whether the requirement holds, by number of the label's value."""
    answers = np.zeros(column.size, dtype=np.bool_)
    operator = requirement.operator
    if operator in (selectors.GT, selectors.LT):
        for value, number in column.values.items():
            answers[number] = requirement.matches({requirement.key: value})
        return answers
    if operator in (selectors.EXISTS, selectors.DOES_NOT_EXIST):
        answers[1:] = True
    else:
        answers[[column.values[value] for value in requirement.values if value in column.values]] = True
    return ~answers if operator in (selectors.NOT_IN, selectors.DOES_NOT_EXIST) else answers
