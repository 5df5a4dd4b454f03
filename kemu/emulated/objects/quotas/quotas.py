"""A ResourceQuota, read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.quotas import scopes
from kemu.emulated.objects.quotas.evaluators import Evaluator
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


@dataclass(frozen=True, slots=True)
class Quota:
    """What admission and the controller need of a quota. ``hard`` and ``used`` are those of the status."""

    namespace: str
    name: str
    version: int
    """Its resource version."""
    selectors: tuple[scopes.Selector, ...]
    wanted: Mapping[str, Quantity]
    """``spec.hard``."""
    hard: Mapping[str, Quantity]
    used: Mapping[str, Quantity]

    def matches(self, evaluator: Evaluator[Any], obj: KubernetesObject) -> bool:
        """Whether it counts the object: it has a resource of that kind, and the object is in all of its scopes
        (``generic.Matches``)."""
        return any(evaluator.counts(name) for name in self.hard) and self.has_in_scope(evaluator, obj)

    def has_in_scope(self, evaluator: Evaluator[Any], obj: KubernetesObject) -> bool:
        return all(evaluator.in_scope(selector, obj) for selector in self.selectors)


def read(obj: core_v1_pb2.ResourceQuota) -> Quota:
    """Raises ValueError for an amount that is no quantity."""
    metadata, spec, status = obj.metadata, obj.spec, obj.status
    return Quota(
        metadata.namespace,
        metadata.name,
        int(metadata.resourceVersion or 0),
        scopes.read(spec),
        resource_lists.read(spec.hard),
        resource_lists.read(status.hard),
        resource_lists.read(status.used),
    )
