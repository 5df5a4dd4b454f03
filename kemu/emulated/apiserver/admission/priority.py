"""Priority: the name of a priority class becomes a number and a preemption policy (``plugin/pkg/admission/priority``).

Also keeps the classes in order: one global default, and the names and values above those of users for the system.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2, scheduling_v1alpha2_pb2

DEFAULT_POLICY = "PreemptLowerPriority"

PODS = resources.BY_PLURAL["pods"]
POD_GROUPS = resources.BY_PLURAL["podgroups"]
PRIORITY_CLASSES = resources.BY_PLURAL["priorityclasses"]


class _Class(NamedTuple):
    name: str
    value: int
    policy: str


NO_CLASS = _Class("", 0, DEFAULT_POLICY)


class _Classes(NamedTuple):
    by_name: dict[str, _Class]
    default: _Class
    """Default of pods that name none."""


def _read_class(obj: scheduling_v1_pb2.PriorityClass) -> _Class:
    return _Class(obj.metadata.name, obj.value, obj.preemptionPolicy or DEFAULT_POLICY)


def _read_classes(objects: Iterable[Any]) -> _Classes:
    by_name: dict[str, _Class] = {}
    default: _Class | None = None
    for obj in objects:
        found = by_name[obj.metadata.name] = _read_class(obj)
        # Two may have been created at once, as nothing locks: then the lowest counts.
        if obj.globalDefault and (default is None or found.value < default.value):
            default = found
    return _Classes(by_name, default or NO_CLASS)


Checked = core_v1_pb2.Pod | scheduling_v1alpha2_pb2.PodGroup


class PriorityClasses(Plugin[scheduling_v1_pb2.PriorityClass]):
    """What the plugin says of valid classes: only one is the default."""

    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._classes = Derived(cache, "priorityclasses", _read_classes)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PRIORITY_CLASSES

    async def validate(self, resource: Resource, obj: scheduling_v1_pb2.PriorityClass) -> None:
        default = self._classes.get().default
        if obj.globalDefault and default.name:
            why = f"PriorityClass {default.name} is already marked as default. Only one default can exist"
            raise errors.forbidden(PRIORITY_CLASSES, obj.metadata.name, why)

    async def validate_update(
        self,
        resource: Resource,
        subresource: str,
        new: scheduling_v1_pb2.PriorityClass,
        old: scheduling_v1_pb2.PriorityClass,
    ) -> None:
        if new.metadata.name != self._classes.get().default.name:
            await self.validate(resource, new)


class Priority(Plugin[Checked]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._classes = Derived(cache, "priorityclasses", _read_classes)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is PODS or resource is POD_GROUPS

    async def create(self, resource: Resource, obj: Checked) -> None:
        spec, name = obj.spec, obj.metadata.name
        wanted = spec.priorityClassName
        found = self._classes.get().by_name.get(wanted) if wanted else self._classes.get().default
        if found is None:
            live = await self.live(PRIORITY_CLASSES, wanted)
            if live is None:
                raise errors.forbidden(resource, name, f"no PriorityClass with name {wanted} was found")
            found = _read_class(cast(scheduling_v1_pb2.PriorityClass, live))
        elif not wanted and found.name:
            spec.priorityClassName = found.name
        if isinstance(obj, scheduling_v1alpha2_pb2.PodGroup):
            if obj.spec.HasField("priority") and obj.spec.priority != found.value:
                why = (
                    f"priority set in the pod group ({obj.spec.priority}) must match the priority computed "
                    f"({found.value}) based on the priority class set in the spec"
                )
                raise errors.forbidden(POD_GROUPS, name, why)
            obj.spec.priority = found.value
            return
        assert isinstance(spec, core_v1_pb2.PodSpec)
        if spec.HasField("priority") and spec.priority != found.value:
            why = (
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {found.value} from the given PriorityClass name"
            )
            raise errors.forbidden(PODS, name, why)
        spec.priority = found.value
        if spec.HasField("preemptionPolicy") and spec.preemptionPolicy != found.policy:
            why = (
                f"the string value of PreemptionPolicy ({spec.preemptionPolicy}) must not be provided in pod spec; "
                f"priority admission controller computed {found.policy} from the given PriorityClass name"
            )
            raise errors.forbidden(PODS, name, why)
        spec.preemptionPolicy = found.policy

    def update(self, resource: Resource, new: Checked, old: Checked) -> None:
        if isinstance(new, scheduling_v1alpha2_pb2.PodGroup):
            return
        assert isinstance(old, core_v1_pb2.Pod)
        # A client that never read them back leaves them out; they are immutable anyhow.
        if not new.spec.HasField("priority") and old.spec.HasField("priority"):
            new.spec.priority = old.spec.priority
        if not new.spec.HasField("preemptionPolicy") and old.spec.HasField("preemptionPolicy"):
            new.spec.preemptionPolicy = old.spec.preemptionPolicy
