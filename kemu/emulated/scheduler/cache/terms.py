"""Compiled pod affinity terms and topology spread constraints.

Both select pods by namespace and labels. :class:`PodSelector` is that predicate alone; it is hashable, so that counts
of matching pods (:mod:`kemu.emulated.scheduler.cache.counts`) are shared between templates that ask the same question.
"""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects import selectors
from kemu.emulated.objects.selectors import NOTHING, LabelSelector, Requirement
from kemu.messages.k8s import core_v1_pb2

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

DO_NOT_SCHEDULE = "DoNotSchedule"

Labels = Mapping[str, str]


class AffinityTerm:
    """One term of pod affinity or anti-affinity, of a pod in a known namespace."""

    __slots__ = ("key", "namespace_selector", "namespaces", "selector", "signature")

    def __init__(self, term: core_v1_pb2.PodAffinityTerm, owner_namespace: str) -> None:
        self.selector = selectors.compile_labels_field(term, "labelSelector")
        self.key: str = term.topologyKey
        """Topology key."""
        self.namespaces: tuple[str, ...] = tuple(sorted(dict.fromkeys(term.namespaces)))
        self.namespace_selector: LabelSelector = selectors.compile_labels_field(term, "namespaceSelector")
        if not self.namespaces and not term.HasField("namespaceSelector"):
            self.namespaces = (owner_namespace,)
        self.signature = (self.key, self.namespaces, self.namespace_selector, self.selector)

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Whether the term selects a pod with these labels in a namespace with those labels."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


class PodSelector:
    """Pods of some namespaces whose labels match; the predicate of one affinity term or spread constraint.

    A term of the *pending* pod has its namespaceSelector resolved to names beforehand.
    """

    __slots__ = ("any_namespace", "live_only", "namespaces", "selector", "signature")

    def __init__(
        self, namespaces: tuple[str, ...], any_namespace: bool, selector: LabelSelector, live_only: bool = False
    ) -> None:
        self.namespaces = namespaces
        self.any_namespace = any_namespace
        self.selector = selector
        self.live_only = live_only
        """Leave out pods that are being deleted, as spread constraints do."""
        self.signature = (namespaces, any_namespace, live_only, selector)

    def matches(self, namespace: str, labels: Labels) -> bool:
        return (self.any_namespace or namespace in self.namespaces) and self.selector.matches(labels)


class SpreadConstraint:
    """One topology spread constraint with its selector compiled."""

    __slots__ = ("hard", "honor_affinity", "honor_taints", "key", "label_keys", "max_skew", "min_domains", "selector")

    def __init__(
        self,
        key: str,
        max_skew: int,
        hard: bool,
        selector: LabelSelector,
        *,
        min_domains: int = 1,
        honor_affinity: bool = True,
        honor_taints: bool = False,
        label_keys: tuple[str, ...] = (),
    ) -> None:
        self.key = key
        self.max_skew = max_skew
        self.hard = hard
        self.selector = selector
        self.min_domains = min_domains
        self.honor_affinity = honor_affinity
        self.honor_taints = honor_taints
        self.label_keys = label_keys
        """Labels in which others must equal the pod (``matchLabelKeys``)."""

    def for_pod(self, labels: Labels) -> SpreadConstraint:
        """The constraint of a pod that has these labels now (``filterTopologySpreadConstraints``).

        The API server put the values that the labels had at creation into the selector; today's values are required in
        addition: a label added later counts too, and after a change of one, no pod matches.
        """
        selector = self.selector
        missing = [key for key in self.label_keys if key in labels and selector.equals.get(key) != labels[key]]
        if not missing or selector.nothing:
            return self
        own = (Requirement(key, selectors.IN, (labels[key],)) for key in missing)
        return SpreadConstraint(
            self.key,
            self.max_skew,
            self.hard,
            LabelSelector((*own, *selector.requirements)),
            min_domains=self.min_domains,
            honor_affinity=self.honor_affinity,
            honor_taints=self.honor_taints,
        )


def spread_constraint(constraint: core_v1_pb2.TopologySpreadConstraint) -> SpreadConstraint:
    """Compile a ``TopologySpreadConstraint`` message."""
    return SpreadConstraint(
        constraint.topologyKey,
        constraint.maxSkew,
        constraint.whenUnsatisfiable == DO_NOT_SCHEDULE,
        selectors.compile_labels(constraint.labelSelector) if constraint.HasField("labelSelector") else NOTHING,
        min_domains=constraint.minDomains if constraint.HasField("minDomains") else 1,
        honor_affinity=constraint.nodeAffinityPolicy != "Ignore",
        honor_taints=constraint.nodeTaintsPolicy == "Honor",
        label_keys=tuple(constraint.matchLabelKeys),
    )


def pod_selector(term: AffinityTerm, namespaces: Mapping[str, Labels]) -> PodSelector:
    """The pods that a term of the pending pod selects, its namespaceSelector resolved to names.

    v1.36 afterwards still compares the selector with an empty set of labels: one that is satisfied by that matches
    every namespace.
    """
    selector = term.namespace_selector
    if selector.nothing:
        return PodSelector(term.namespaces, False, term.selector)
    resolved = [name for name, labels in namespaces.items() if selector.matches(labels)]
    names = tuple(sorted(dict.fromkeys((*term.namespaces, *resolved))))
    return PodSelector(names, selector.matches({}), term.selector)
