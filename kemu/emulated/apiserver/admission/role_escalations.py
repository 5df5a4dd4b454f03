"""Roles and bindings give nothing that their writers do not have. No plugin of Kubernetes: its registry does this."""

from __future__ import annotations

from typing import Any

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.authorization import escalations
from kemu.emulated.objects.resources import Resource


class RoleEscalations(Plugin):
    def concerns(self, resource: Resource) -> bool:
        return resource.plural in escalations.KINDS

    async def validate(self, resource: Resource, obj: Any) -> None:
        check = escalations.CHECK.get()
        if check is not None:
            check(resource, obj)

    async def validate_update(self, resource: Resource, subresource: str, new: Any, old: Any) -> None:
        check = escalations.CHECK.get()
        if check is not None and _without_bookkeeping(new) != _without_bookkeeping(old):
            check(resource, new)


def _without_bookkeeping(obj: Any) -> Any:
    """Whoever only lets the garbage collector remove it gives nothing (``IsOnlyMutatingGCFields``)."""
    copy = type(obj)()
    copy.CopyFrom(obj)
    for field in ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"):
        copy.metadata.ClearField(field)
    return copy
