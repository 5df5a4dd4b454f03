"""How many pods the owners of some pods want together, as the disruption controller computes it.

Neighbours: ``countings`` and :mod:`kemu.lab.checks.scheduling.ledgers` ask it what disruption budgets want.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from kemu.emulated.objects import meta
from kemu.messages.k8s import apps_v1_pb2, meta_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

Owner = tuple[str, str, str]
"""Kind, ``namespace/name`` and UID."""
_KINDS: dict[str, tuple[str, Any]] = {
    "/registry/replicasets/": ("ReplicaSet", apps_v1_pb2.ReplicaSet),
    "/registry/statefulsets/": ("StatefulSet", apps_v1_pb2.StatefulSet),
    "/registry/deployments/": ("Deployment", apps_v1_pb2.Deployment),
}
PREFIXES = tuple(_KINDS)


def owner_of(found: KubernetesObject) -> Owner | None:
    """The controller of an object."""
    controller = meta.controller_of(found)
    if controller is None:
        return None
    return controller.kind, f"{found.metadata.namespace}/{controller.name}", controller.uid


class Scales:
    """Fold of all owners that say how many pods there should be."""

    def __init__(self) -> None:
        self._wants: dict[Owner, int] = {}
        self._above: dict[Owner, Owner] = {}
        """The Deployments of ReplicaSets."""

    def changed(self, key: str, value: bytes | None) -> bool:
        """One key of the store; None: deleted. Returns whether it is one of an owner."""
        for prefix, (kind, message) in _KINDS.items():
            if key.startswith(prefix):
                self._owner_changed(
                    kind, key.removeprefix(prefix), None if value is None else message.FromString(value)
                )
                return True
        return False

    def _owner_changed(
        self,
        kind: str,
        name: str,
        found: apps_v1_pb2.Deployment | apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet | None,
    ) -> None:
        for known in [known for known in self._wants if known[:2] == (kind, name)]:
            del self._wants[known]
            self._above.pop(known, None)
        if found is not None:
            owner = kind, name, found.metadata.uid
            self._wants[owner] = found.spec.replicas
            above = owner_of(found)
            if above is not None and above[0] == "Deployment":
                self._above[owner] = above

    def expected(self, owners: Iterable[Owner | None]) -> int:
        """What the controllers of pods want together, a Deployment for all of its ReplicaSets
        (``getExpectedScale``)."""
        return sum(self._wants.get(top, 0) for top in self._tops(owners))

    def are_known(self, owners: Iterable[Owner | None]) -> bool:
        """Whether all of them are there."""
        return all(top in self._wants for top in self._tops(owners))

    def _tops(self, owners: Iterable[Owner | None]) -> dict[Owner, None]:
        return {self._above.get(owner, owner): None for owner in owners if owner is not None}

    def clear(self) -> None:
        """Forget all."""
        self._wants.clear()
        self._above.clear()


def desired(spec: policy_v1_pb2.PodDisruptionBudgetSpec, expected: int) -> int:
    """How many healthy pods a budget wants, of so many (``getExpectedPodCount``)."""
    if spec.HasField("maxUnavailable"):
        return max(0, expected - _scaled(spec.maxUnavailable, expected))
    return _scaled(spec.minAvailable, expected)


def is_share(spec: policy_v1_pb2.PodDisruptionBudgetSpec) -> bool:
    """Whether it depends on how many pods there should be."""
    return bool(spec.HasField("maxUnavailable") or spec.minAvailable.type != 0)


def _scaled(value: meta_v1_pb2.IntOrString, total: int) -> int:
    """A number, or a percentage of the total, rounded up (``GetScaledValueFromIntOrPercent``)."""
    if value.type == 0:
        return int(value.intVal)
    percent = value.strVal.removesuffix("%")
    return math.ceil(int(percent) * total / 100) if percent.isdigit() else 0
