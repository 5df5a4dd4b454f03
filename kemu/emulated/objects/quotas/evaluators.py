"""How objects of a kind are counted. :mod:`kemu.emulated.objects.quotas.registry` knows the evaluator of each kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.quotas.scopes import Selector
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

CREATE, UPDATE = "CREATE", "UPDATE"

ALIASES = {
    "configmaps": "configmaps",
    "resourcequotas": "resourcequotas",
    "replicationcontrollers": "replicationcontrollers",
    "secrets": "secrets",
}
"""Kinds that are also counted under a name without ``count/`` (``legacyObjectCountAliases``)."""


def count_name(resource: Resource) -> str:
    """The name under which a quota counts all objects of a kind: ``count/deployments.apps``."""
    return f"count/{resource.qualified}"


class Surroundings:
    """What quotas read beside the objects that they count. This one is empty."""

    def classes(self) -> Mapping[str, str]:
        """The DeviceClasses, and the extended resource that each stands behind, or none."""
        return {}

    def pod(self, namespace: str, name: str) -> core_v1_pb2.Pod | None:
        return None

    def claims(self, namespace: str) -> Iterable[resource_v1_pb2.ResourceClaim]:
        return ()


NOTHING = Surroundings()
K = TypeVar("K", bound=KubernetesObject)


class Evaluator(Generic[K]):
    """Counts the objects of one kind; kinds of which more counts than their number override it
    (``objectCountEvaluator``)."""

    has_scopes = False
    """Whether objects of the kind can be in a scope; a quota with scopes does not count other kinds."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        names = [count_name(resource), *([ALIASES[resource.plural]] if resource.plural in ALIASES else ())]
        self._names = frozenset(names)
        self._counts = dict.fromkeys(sorted(names), resource_lists.ONE)

    def within(self, around: Surroundings) -> Evaluator[K]:
        """The same where other objects matter for what an object counts for."""
        return self

    def handles(self, operation: str, subresource: str, new: K, old: K | None) -> bool:
        """Whether the request may change what counts."""
        return operation == CREATE and not subresource

    def counted(self, names: Iterable[str]) -> list[str]:
        """Which of these resources this evaluator counts (``MatchingResources``)."""
        return sorted(name for name in dict.fromkeys(names) if self.counts(name))

    def counts(self, name: str) -> bool:
        return name in self._names

    def in_scope(self, selector: Selector, obj: K) -> bool:
        return False

    def missing(self, required: Sequence[str], obj: K) -> str:
        """What the object must state because a quota counts it; "" for nothing (``Constraints``)."""
        return ""

    def usage(self, obj: K, now_unix_ns: int) -> Mapping[str, Quantity]:
        """What the object counts for. Raises ValueError for an amount that is no quantity."""
        return self._counts

    def likeness(self, obj: K) -> Hashable:
        """Objects with the same one count for the same, and are in the same scopes, whatever the quota and the time.
        None: that is not known of this object. Raises ValueError as :meth:`usage`."""
        return None

    def frees(self, old: K, new: K, now_unix_ns: int) -> bool:
        """Whether quotas should be counted anew after this change (``DefaultUpdateFilter``)."""
        return False
