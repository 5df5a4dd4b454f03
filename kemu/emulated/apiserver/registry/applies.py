"""Managed fields of what is written, and server-side apply.

Who states a field manager, or a User-Agent, is tracked. So is everybody who writes to an object that is tracked
already, lest its entries tell of fields that others have changed since; and everybody on a server that tracks all. What
an actor creates without saying who it is stays untracked, and costs nothing, until it is applied.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.registry import bodies
from kemu.emulated.objects import times
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import convert, go_structs
from kemu.emulated.objects.managed_fields import known_updates, managers, scales, shapes
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.templates import generations
from kemu.errors import ApiError, BadRequest
from kemu.messages.k8s import apps_v1_pb2, autoscaling_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2


@dataclass(frozen=True, slots=True)
class Writer:
    """Whose write it is."""

    manager: str
    is_tracked: bool
    """Whether an object that this writer creates is tracked."""
    empties: tuple[go_structs.Path, ...] = ()
    """Lists and maps without anything that are stated in the body (:func:`.schemas.stated_empties`)."""


APPLIED = Writer("", True)
"""Who has applied: the entries are right already."""


def writer(
    request: api_pb2.WriteOptions, by: str, tracks_all: bool, empties: tuple[go_structs.Path, ...] = ()
) -> Writer:
    """``by``: see :func:`actor`."""
    name = managers.name_of(request.field_manager, request.user_agent)
    found = Writer(name, True) if name or request.user_agent else actor(by, tracks_all)
    return replace(found, empties=empties) if empties else found


@text_cache(10_000)
def actor(by: str, tracks_all: bool) -> Writer:
    """One that does not say who it is: ``by``, its name, counts as its User-Agent."""
    return Writer(managers.name_of("", by), tracks_all)


def track(
    resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject | None, by: Writer, now_ns: int
) -> None:
    """Set the entries of ``new``, which is what was sent, with defaults. ``old``: None for a new object."""
    if isinstance(new, apps_v1_pb2.DaemonSet) and subresource != "scale":
        # In apps/v1 every writer states it. The strategy puts the true one.
        generations.put(new, generations.of(new))
    now_s = now_ns // 1_000_000_000
    known_updates.update(_manager(resource, subresource), old, new, by.manager, now_s, by.empties)


def _manager(resource: Resource, subresource: str) -> managers.FieldManager:
    if isinstance(resource, Served):
        return resource.manager(subresource)
    return managers.of(resource.api_version, resource.kind, subresource)


def tidy(resource: Resource, obj: KubernetesObject) -> None:
    """Bring what a client sent into the shape that objects have here."""
    shapes.tidy(resource.kind, obj)


def restore_times(new: KubernetesObject, old: KubernetesObject) -> bool:
    """Whether the entries are those of ``old`` but for their times, which they then get back
    (``IgnoreManagedFieldsTimestampsTransformer``): if nothing else has changed, nothing is written."""
    one, other = new.metadata.managedFields, old.metadata.managedFields
    if not one or len(one) != len(other):
        return False
    found = []
    for mine, theirs in zip(one, other, strict=True):
        entry = type(mine)()
        entry.CopyFrom(mine)
        entry.ClearField("time")
        if theirs.HasField("time"):
            entry.time.CopyFrom(theirs.time)
        if entry != theirs:
            return False
        found.append(entry)
    del one[:]
    one.extend(found)
    return True


class Apply:
    """One request to apply."""

    __slots__ = ("_body", "_force", "_manager", "_resource", "_subresource", "_time", "warnings")

    def __init__(self, resource: Resource, request: api_pb2.PatchRequest, now_ns: int) -> None:
        """Raises :class:`kemu.errors.BadRequest`."""
        self._resource = resource
        self._subresource = request.subresource
        self._manager = request.options.field_manager
        self._force = request.force
        self._time = _time(now_ns)
        self._body, self.warnings = bodies.read_applied(request.patch, request.options.field_validation)

    def apply(self, old: KubernetesObject | None) -> KubernetesObject:
        """The object with what was applied, and with its entries. Raises :class:`kemu.errors.ApiError`."""
        resource = self._resource
        manager = _manager(resource, self._subresource)
        live = convert.to_manifest(old) if old is not None else None
        found = manager.apply(live, self._body, self._manager, self._time, force=self._force)
        made, problems = convert.partial_json(resource.message, found)
        if problems:
            raise ApiError(
                f"failed to convert new object ({managers.describe(self._body)}) to proper version"
                f" ({resource.api_version}): {'; '.join(str(problem) for problem in problems)}"
            )
        return made

    def check_name(self, name: str, made: KubernetesObject) -> None:
        """Raises :class:`kemu.errors.BadRequest`."""
        if not made.metadata.name:
            raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        if made.metadata.name != name:
            raise BadRequest(
                f"the name of the object ({made.metadata.name}) does not match the name on the URL ({name})"
            )


def show_entries(resource: Resource, obj: KubernetesObject, scale: autoscaling_v1_pb2.Scale) -> None:
    """Give the Scale of an object the entries of it that are about the replicas."""
    if obj.metadata.managedFields:
        parent = managers.entries_of({"metadata": convert.to_json(obj.metadata)})
        known_updates.put(scale, scales.to_scale(parent, _replicas(resource)))


def _replicas(resource: Resource) -> scales.Paths:
    return resource.replicas if isinstance(resource, Served) else scales.in_spec(resource.api_version)


def scaled(
    resource: Resource,
    obj: KubernetesObject,
    old: autoscaling_v1_pb2.Scale,
    new: KubernetesObject,
    by: Writer | None,
    now_ns: int,
) -> None:
    """Set the entries of an object whose Scale was written. ``old`` has those of :func:`show_entries`."""
    if by is None or not (obj.metadata.managedFields or new.metadata.managedFields):
        return
    if by is not APPLIED:
        manager = managers.of(scales.API_VERSION, scales.KIND, "scale")
        known_updates.update(manager, old, new, by.manager, now_ns // 1_000_000_000)
    parent = managers.entries_of({"metadata": convert.to_json(obj.metadata)})
    found = managers.entries_of({"metadata": convert.to_json(new.metadata)})
    paths = _replicas(resource)
    # As unstructured JSON, through which they go in Kubernetes: sorted as texts, which a later write undoes.
    known_updates.put(
        obj, json.loads(json.dumps(scales.to_parent(parent, found, paths, resource.api_version), sort_keys=True))
    )


def _time(now_ns: int) -> str:
    return times.format_time(now_ns // 1_000_000_000)
