"""Roles and bindings give nothing that their writers do not have. No plugin of Kubernetes: its registry does this."""

from __future__ import annotations

from typing import TypeVar

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.authorization import escalations
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s.objects import KubernetesObject


class RoleEscalations(Plugin[escalations.Checked]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource.plural in escalations.KINDS

    async def validate(self, resource: Resource, obj: escalations.Checked) -> None:
        check = escalations.CHECK.get()
        if check is not None:
            check(resource, obj, None)

    async def validate_update(
        self, resource: Resource, subresource: str, new: escalations.Checked, old: escalations.Checked
    ) -> None:
        check = escalations.CHECK.get()
        if check is not None and _without_bookkeeping(new) != _without_bookkeeping(old):
            check(resource, new, old)


K = TypeVar("K", bound=KubernetesObject)


def _without_bookkeeping(obj: K) -> K:
    """A request that only lets the garbage collector remove it gives nothing (``IsOnlyMutatingGCFields``)."""
    copy = type(obj)()
    copy.CopyFrom(obj)
    for field in ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"):
        copy.metadata.ClearField(field)
    return copy
