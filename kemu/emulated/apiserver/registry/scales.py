"""The Scale subresource: how many replicas a workload has, in one form for all kinds (``autoscaling/v1``).

``ScaleREST`` of ``apps/deployment/storage`` and its like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission import Chain
from kemu.emulated.apiserver.admission.external.attributes import UPDATE, Asking
from kemu.emulated.apiserver.custom import scales as custom_scales
from kemu.emulated.apiserver.registry import applies, entries
from kemu.emulated.apiserver.registry.applies import Writer
from kemu.emulated.apiserver.registry.registry import Changed, Registry
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.objects import selectors
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes, checks
from kemu.errors import Cause, Invalid
from kemu.messages.k8s import apps_v1_pb2, autoscaling_v1_pb2, core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

SCALE = "scale"
PLURALS = ("deployments", "replicasets", "statefulsets", "replicationcontrollers")
"""The kinds that have one."""
RESOURCE = Resource(SCALE, "Scale", "autoscaling/v1", autoscaling_v1_pb2.Scale)

Scaled = apps_v1_pb2.Deployment | apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet | core_v1_pb2.ReplicationController
"""The kinds that have the subresource scale."""


class Scaler:
    def __init__(self, registry: Registry, admission: Chain) -> None:
        self._registry = registry
        self._admission = admission

    async def scale(
        self, where: api_pb2.Resource, name: str, make: Callable[[Any], Any], by: Writer | None = None
    ) -> bytes:
        """Write the Scale that ``make`` makes of the present one. Returns it as clients get it."""
        writes = self._registry
        strategy = writes.strategy_of(where)
        is_custom = strategy.custom is not None and strategy.custom.has_scale
        if where.resource not in PLURALS and not is_custom:
            what = f"{where.resource}/scale"
            raise kemu_errors.NotFound("the server could not find the requested resource", name=what)
        namespace = entries.addressed(strategy.resource, where.namespace, name)
        write = self._scaled_custom if is_custom else self._scaled
        entry, _ = await writes.rewrite_in_turn(strategy, namespace, name, write, (make, by))
        obj = entries.parse(strategy.resource, entry)
        if is_custom:
            found, _ = custom_scales.of(strategy.custom, cast(CustomObject, obj), str(entry.revision))
        else:
            found = of(cast(Scaled, obj), str(entry.revision))
        scale: bytes = found.SerializeToString(deterministic=True)
        return scale

    def _scaled_custom(
        self, strategy: Strategy, entry: Entry, argument: tuple[Callable[[Any], Any], Writer | None]
    ) -> Changed:
        make, by = argument
        row, obj = strategy.custom, cast(CustomObject, entries.parse(strategy.resource, entry))
        old, is_set = custom_scales.of(row, obj, str(entry.revision))
        if by is not None:
            applies.show_entries(row, obj, old)
        wanted = type(old)()
        wanted.CopyFrom(old)
        if not is_set:
            wanted.spec.replicas = custom_scales.UNSET
        wanted = make(wanted)

        def write(wanted: Any) -> Changed:
            applies.scaled(row, obj, old, wanted, by, self._registry.unix_now_ns())
            custom_scales.change(row, obj, entry.revision, wanted)
            obj.metadata.resourceVersion = str(entry.revision)
            return self._registry.replaced(strategy, entry, obj, "", applies.APPLIED, asks=False)

        return self._scaled_by(strategy, obj, old, wanted, write)

    def _scaled(
        self, strategy: Strategy, entry: Entry, argument: tuple[Callable[[Any], Any], Writer | None]
    ) -> Changed:
        make, by = argument
        obj = cast(Scaled, entries.parse(strategy.resource, entry))
        old = of(obj, str(entry.revision))
        if by is not None:
            applies.show_entries(strategy.resource, obj, old)
        wanted = type(old)()
        wanted.CopyFrom(old)
        wanted = make(wanted)

        def write(wanted: Any) -> Changed:
            applies.scaled(strategy.resource, obj, old, wanted, by, self._registry.unix_now_ns())
            change(strategy.resource, obj, entry.revision, wanted)
            obj.metadata.resourceVersion = str(entry.revision)
            return self._registry.replaced(strategy, entry, obj, "", applies.APPLIED, asks=False)

        return self._scaled_by(strategy, obj, old, wanted, write)

    def _scaled_by(
        self,
        strategy: Strategy,
        obj: KubernetesObject,
        old: KubernetesObject,
        wanted: Any,
        write: Callable[[Any], Changed],
    ) -> Changed:
        """``write``: given the Scale, what stands in the store then."""
        asking = self._admission.asks()
        return write(wanted) if asking is None else self._scaled_asking(strategy, obj, old, wanted, write, asking)

    async def _scaled_asking(
        self,
        strategy: Strategy,
        obj: KubernetesObject,
        old: KubernetesObject,
        wanted: Any,
        write: Callable[[Any], Changed],
        asking: Asking,
    ) -> bytes | None:
        external, metadata = self._admission.external, obj.metadata
        assert external is not None
        about = strategy.resource, SCALE, metadata.namespace, metadata.name
        subject = RESOURCE.api_version, RESOURCE.kind
        asked = external.attributes(asking, UPDATE, *about, wanted, old, subject)
        await external.mutate(asked)
        value = cast(bytes | None, write(wanted))
        await self._admission.validate_asking(asked)
        return value


def of(obj: Scaled, version: str) -> autoscaling_v1_pb2.Scale:
    """``version``: the object's resource version."""
    scale = autoscaling_v1_pb2.Scale()
    metadata, found = scale.metadata, obj.metadata
    metadata.name, metadata.namespace, metadata.uid = found.name, found.namespace, found.uid
    metadata.creationTimestamp.CopyFrom(found.creationTimestamp)
    if version:
        metadata.resourceVersion = version
    scale.spec.replicas = obj.spec.replicas
    scale.status.replicas = obj.status.replicas
    scale.status.selector = _selector(obj)
    return scale


def change(resource: Resource, obj: Scaled, revision: int, wanted: autoscaling_v1_pb2.Scale) -> None:
    """Give ``obj`` the replicas of ``wanted``, a Scale. Raises :class:`kemu.errors.ApiError` where it does not fit."""
    metadata, name = wanted.metadata, obj.metadata.name
    found: list[Cause] = []
    checks.not_negative(wanted.spec.replicas, "spec.replicas", found)
    if found:
        texts = ", ".join(f"{cause.field}: {cause.message}" for cause in found)
        raise Invalid(
            f"Scale.autoscaling {causes.shown(name)} is invalid: {texts}", kind="Scale", name=name, causes=found
        )
    if metadata.uid and metadata.uid != obj.metadata.uid:
        why = f"Precondition failed: UID in precondition: {metadata.uid}, UID in object meta: {obj.metadata.uid}"
        raise errors.conflict(resource, name, why)
    if metadata.resourceVersion and metadata.resourceVersion != str(revision):
        raise errors.modified(resource, name)
    obj.spec.replicas = wanted.spec.replicas


def _selector(obj: Scaled) -> str:
    if isinstance(obj, core_v1_pb2.ReplicationController):
        return ",".join(f"{key}={obj.spec.selector[key]}" for key in sorted(obj.spec.selector))
    found = selectors.compile_labels_field(obj.spec, "selector")
    return ",".join(str(one) for one in sorted(found.requirements, key=lambda one: one.key))
