"""What is particular to a kind, in a table: which rules of Kubernetes' strategies (``pkg/registry``) apply to it.

What a user may not set at creation is in :func:`kemu.objects.defaulting.defaults.prepare_create`; here is the rest of
its life.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.apiserver import selections
from kemu.errors import Cause
from kemu.objects import pod_phases, resources
from kemu.objects.resources import Resource
from kemu.objects.validation import finalizers, kinds, metadata


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
    if finalizers.KUBERNETES not in namespace.spec.finalizers:
        namespace.spec.finalizers.append(finalizers.KUBERNETES)


def _keep_namespace_finalizers(new: Any, old: Any) -> None:
    """``namespaceStrategy.PrepareForUpdate``: only the subresource ``finalize`` changes them."""
    del new.spec.finalizers[:]
    new.spec.finalizers.extend(old.spec.finalizers)


def copy_field(new: Any, old: Any, field: str) -> None:
    """Make a field of ``new`` what it is in ``old``."""
    if old.HasField(field):
        getattr(new, field).CopyFrom(getattr(old, field))
    else:
        new.ClearField(field)


def _keep_spec(new: Any, old: Any) -> None:
    copy_field(new, old, "spec")


def _keep_status(new: Any, old: Any) -> None:
    copy_field(new, old, "status")


def _pod_status(new: Any, old: Any) -> None:
    _keep_spec(new, old)
    _prepare_pod_status(new, old)


def _check_finalize(new: Any, old: Any) -> list[Cause]:
    found: list[Cause] = []
    metadata.check_metadata_update(new.metadata, old.metadata, found)
    finalizers.check_namespace(new, found)
    return found


UNSUPPORTED, ORPHANED, DELETED = "unsupported", "orphaned", "deleted"
"""What becomes of the dependents of an object when it is deleted and nobody says so
(``DefaultGarbageCollectionPolicy``); events have none."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A way to update a part of an object."""

    prepare: Callable[[Any, Any], None]
    """(new, old): put back what may not be changed this way."""
    validate: Callable[[Any, Any], list[Cause]]
    """(new, old), both complete."""


STATUS = Subresource(_keep_spec, kinds.validate_status_update)


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
    prepare_update: Callable[[Any, Any], None] | None = None
    """(new, old): puts back what an update may not change, beside the status."""
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    grace_s: Callable[[Any, int | None], int] | None = None
    """(object, what the request says): the kind is deleted gracefully."""
    dependents: str = DELETED


_RULES: dict[str, dict[str, Any]] = {
    "namespaces": {
        "prepare_create": _prepare_namespace,
        "prepare_update": _keep_namespace_finalizers,
        "subresources": {"status": STATUS, "finalize": Subresource(_keep_status, _check_finalize)},
    },
    "pods": {
        "has_generation": True,
        "subresources": {"status": Subresource(_pod_status, kinds.validate_status_update)},
        "grace_s": _pod_grace_s,
    },
    "events": {"create_on_update": True, "dependents": UNSUPPORTED},
    "leases": {"unconditional_update": False, "create_on_update": True},
    "runtimeclasses": {"unconditional_update": False},
    "poddisruptionbudgets": {"has_generation": True, "unconditional_update": False},
    "replicationcontrollers": {"has_generation": True, "dependents": ORPHANED},
    "replicasets": {"has_generation": True},
    "statefulsets": {"has_generation": True},
    "deployments": {"has_generation": True},
    "daemonsets": {"has_generation": True},
    "jobs": {"has_generation": True, "dependents": ORPHANED},
}


def _strategy(resource: Resource) -> Strategy:
    rules = dict(_RULES.get(resource.plural, {}))
    rules.setdefault("subresources", {"status": STATUS} if resource.has_status else {})
    return Strategy(resource, resource.has_status, **rules)


STRATEGIES: dict[str, Strategy] = {plural: _strategy(resource) for plural, resource in resources.BY_PLURAL.items()}
"""By plural."""


def find_strategy(plural: str) -> Strategy:
    """Raises :class:`kemu.errors.NotFound`, as for a URL that no API serves."""
    found = STRATEGIES.get(plural)
    return found if found is not None else STRATEGIES[selections.find_resource(plural).plural]
