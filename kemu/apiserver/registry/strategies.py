"""What is particular to a kind, in a table: which rules of Kubernetes' strategies (``pkg/registry``) apply to it.

What a user may not set at creation is in :func:`kemu.objects.defaulting.defaults.prepare_create`; here is the rest of
its life.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kemu.apiserver import selections
from kemu.objects import pod_phases, resources
from kemu.objects.resources import Resource


def _prepare_pod_status(new: Any, old: Any) -> None:
    """``podStatusStrategy.PrepareForUpdate``."""
    del new.metadata.ownerReferences[:]
    new.metadata.ownerReferences.extend(old.metadata.ownerReferences)
    if not new.status.qosClass:
        new.status.qosClass = old.status.qosClass


def _pod_grace_s(pod: Any, wanted: int | None) -> int:
    """``podStrategy.CheckGracefulDelete``: seconds that the pod has left; 0: remove it at once."""
    if not pod.spec.nodeName or pod_phases.is_terminal(pod):
        return 0
    period = wanted if wanted is not None else pod.spec.terminationGracePeriodSeconds
    # A negative period, once a mistake of clients, means one second.
    return period if period >= 0 else 1


def _prepare_namespace(namespace: Any) -> None:
    if "kubernetes" not in namespace.spec.finalizers:
        namespace.spec.finalizers.append("kubernetes")


@dataclass(frozen=True, slots=True)
class Strategy:
    """The rules of one kind."""

    resource: Resource
    has_status: bool
    has_generation: bool = False
    """``metadata.generation`` counts the changes of the spec."""
    unconditional_update: bool = True
    """An update without a resource version overwrites whatever is there."""
    create_on_update: bool = False
    """An update of what does not exist creates it."""
    prepare_create: Callable[[Any], None] | None = None
    prepare_status: Callable[[Any, Any], None] | None = None
    """(new, old): when the status is updated."""
    grace_s: Callable[[Any, int | None], int] | None = None
    """(object, what the request says): the kind is deleted gracefully."""


_RULES: dict[str, dict[str, Any]] = {
    "namespaces": {"prepare_create": _prepare_namespace},
    "pods": {"has_generation": True, "prepare_status": _prepare_pod_status, "grace_s": _pod_grace_s},
    "events": {"create_on_update": True},
    "leases": {"unconditional_update": False, "create_on_update": True},
    "runtimeclasses": {"unconditional_update": False},
    "poddisruptionbudgets": {"has_generation": True, "unconditional_update": False},
    "replicationcontrollers": {"has_generation": True},
    "replicasets": {"has_generation": True},
    "statefulsets": {"has_generation": True},
    "deployments": {"has_generation": True},
    "daemonsets": {"has_generation": True},
    "jobs": {"has_generation": True},
}

STRATEGIES: dict[str, Strategy] = {
    plural: Strategy(resource, resource.has_status, **_RULES.get(plural, {}))
    for plural, resource in resources.BY_PLURAL.items()
}
"""By plural."""


def find_strategy(plural: str) -> Strategy:
    """Raises :class:`kemu.errors.NotFound`, as for a URL that no API serves."""
    found = STRATEGIES.get(plural)
    return found if found is not None else STRATEGIES[selections.find_resource(plural).plural]
