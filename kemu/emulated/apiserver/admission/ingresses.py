"""DefaultIngressClass (``plugin/pkg/admission/network/defaultingressclass``)."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import networking_v1_pb2

_INGRESSES = resources.BY_PLURAL["ingresses"]
_IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_LEGACY_CLASS = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin[networking_v1_pb2.Ingress]):
    """An Ingress that names no class gets the default one, if there is one."""

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._default: Derived[str] = Derived(cache, "ingressclasses", _default_of)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _INGRESSES

    async def create(self, resource: Resource, obj: networking_v1_pb2.Ingress) -> None:
        if obj.spec.HasField("ingressClassName") or _LEGACY_CLASS in obj.metadata.annotations:
            return
        default = self._default.get()
        if default:
            obj.spec.ingressClassName = default


def _default_of(classes: Iterable[networking_v1_pb2.IngressClass]) -> str:
    """The newest of those that are marked, and of these the first by name; empty: there is none."""
    marked = [one.metadata for one in classes if one.metadata.annotations.get(_IS_DEFAULT) == "true"]
    return min(marked, key=lambda one: (-meta.unix_ns(one.creationTimestamp), one.name)).name if marked else ""
