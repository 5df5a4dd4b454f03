"""One version of a custom kind as an API server serves it: with its schema, and its objects in this version.

Objects are stored in one version. A request speaks another one perhaps, in which it sees them: converted, and with the
defaults that the schema has now. Kinds that a webhook converts have a :attr:`Served.converter`, and are read and stored
by the methods that wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kemu.emulated.apiserver.custom import conversions
from kemu.emulated.apiserver.custom.conversions import Converter
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.objects import custom_kinds
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import convert, custom_objects, go_json
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.managed_fields import managers, resets, scales, updaters
from kemu.emulated.objects.managed_fields.schemas import Type
from kemu.emulated.objects.plain import Json
from kemu.emulated.schemas.structural import TooDeep
from kemu.emulated.schemas.versions import CustomSchema
from kemu.errors import ApiError, BadRequest
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject


@dataclass(frozen=True)
class Served(CustomResource):
    """A row with what serving it takes, made when it is needed first."""

    converter: Converter | None = field(default=None, compare=False, repr=False)
    """None: objects of other versions become those of this one by name alone."""

    @cached_property
    def schema(self) -> CustomSchema:
        version = self.version
        has_schema = version.schema.HasField("openAPIV3Schema")
        found = convert.to_json(version.schema.openAPIV3Schema) if has_schema else None
        return CustomSchema(found)

    @cached_property
    def has_defaults(self) -> bool:
        """Whether objects may have to be shown with more than they were stored with."""
        return '"default":' in json.dumps(convert.to_json(self.version.schema), separators=(",", ":"))

    @property
    def has_changed(self) -> bool:
        """Whether objects may have been stored by another schema than this one."""
        return self.definition.metadata.generation > 1

    @cached_property
    def scale(self) -> dict[str, Any] | None:
        """The paths of the subresource ``scale``."""
        return convert.to_json(self.version.subresources.scale) if self.has_scale else None

    @cached_property
    def replicas(self) -> scales.Paths:
        """Where the versions have their replicas."""
        found: dict[str, tuple[str, ...] | None] = {}
        for version in self.definition.spec.versions:
            path = version.subresources.scale.specReplicasPath.removeprefix(".")
            steps = tuple(f"f:{step}" for step in path.split(".")) if path else None
            found[f"{self.group}/{version.name}"] = steps
        return found

    @cached_property
    def stored_as(self) -> str:
        """API version in which objects are stored."""
        version = custom_kinds.storage_version(self.definition)
        return f"{self.group}/{version.name}" if version is not None else self.api_version

    def manager(self, subresource: str) -> managers.FieldManager:
        """That of managed fields."""
        reset = resets.of_custom(self.has_status, subresource)
        versions = None if self.converter is None else _Versions(self)
        return managers.FieldManager(
            self.schema.merging, self.api_version, self.kind, subresource, reset, self._other_versions, versions
        )

    @cached_property
    def _other_versions(self) -> tuple[str, ...]:
        served = (f"{self.group}/{one.name}" for one in self.definition.spec.versions if one.served)
        return tuple(one for one in served if one != self.api_version)

    # --- objects ------------------------------------------------------------------------------------------------------

    def coerce(self, manifest: dict[str, Any], *, tells_unknown: bool = False) -> list[str]:
        """Prune a manifest, in place. Returns paths of unknown fields, if asked for. Raises BadRequest."""
        try:
            return self.schema.coerce(manifest, tells_unknown=tells_unknown)
        except (ValueError, TooDeep) as error:
            raise BadRequest(str(error)) from None

    def complete(self, obj: CustomObject) -> None:
        """Make an object that a client sent what the schema makes of it: without unknown fields, with defaults."""
        manifest = convert.to_manifest(obj)
        self.coerce(manifest)
        self.schema.default(manifest)
        _put(obj, manifest)

    def show(self, wire: bytes) -> bytes:
        """An object as it is stored, in this version: read by the schema that its stored version has now, and only with
        what this version has."""
        obj, found = self._read(wire)
        if found is not None:
            return found
        if obj.apiVersion != self.api_version or obj.kind != self.kind:
            self._turn(obj)
        data: bytes = obj.SerializeToString(deterministic=True)
        return data

    def _read(self, wire: bytes) -> tuple[CustomObject, bytes | None]:
        """An object by the schema that its stored version has now; and its bytes, if those show it in this version."""
        obj = CustomObject.FromString(wire)
        stored = self.version_of(obj.apiVersion)
        is_same = obj.apiVersion == self.api_version and obj.kind == self.kind
        is_read = stored is not None and (stored.has_defaults or stored.has_changed)
        if is_same and not is_read:
            return obj, wire
        before = obj.content
        if stored is not None and is_read:
            found = stored._contents(before)
            if found == before:
                return obj, wire if is_same else None
            obj.content = found
            if not found:
                obj.ClearField("content")
        return obj, wire if is_same and obj.content == before else None

    @cached_property
    def _contents(self) -> Callable[[bytes], bytes]:
        """From what is stored of an object of this version to what it is by its schema now: the same bytes, mostly."""

        def read(content: bytes) -> bytes:
            found = json.loads(content) if content else {}
            self.schema.read(found)
            return go_json.encode(found) if found else b""

        return text_cache(128)(read)

    async def converted(self, wire: bytes) -> bytes:
        """As :meth:`show`, by the webhook. Raises :class:`kemu.errors.ApiError`."""
        if self.converter is None:
            return self.show(wire)
        obj, found = self._read(wire)
        if found is None:
            await self._convert(obj, self)
            found = obj.SerializeToString(deterministic=True)
        return found

    async def _convert(self, obj: CustomObject, to: Served) -> None:
        """Make an object one of another version, without what that does not have."""
        assert self.converter is not None
        if obj.apiVersion == to.api_version:
            return
        manifest = await self.converter.convert(convert.to_manifest(obj), to.api_version)
        try:
            to.coerce(manifest)
        except BadRequest as error:
            raise ApiError(error.message) from None
        labels = obj.metadata.labels, manifest["metadata"].get("labels")
        annotations = obj.metadata.annotations, manifest["metadata"].get("annotations")
        for kept, wanted in (labels, annotations):
            kept.clear()
            kept.update(wanted or {})
        obj.apiVersion, obj.kind = to.api_version, to.kind
        _put(obj, manifest)

    def _turn(self, obj: CustomObject) -> None:
        """Make an object one of this version (strategy None), without what it does not have."""
        obj.apiVersion, obj.kind = self.api_version, self.kind
        manifest = convert.to_manifest(obj)
        self.schema.coerce(manifest, drops=True)
        _put(obj, manifest)

    def version_of(self, api_version: str) -> Served | None:
        """Another version of the kind; None: it has none such."""
        if api_version == self.api_version:
            return self
        for version in self.definition.spec.versions:
            if api_version == f"{self.group}/{version.name}":
                found = self._others.get(version.name)
                if found is None:
                    row = custom_kinds.row(self.definition, version)
                    found = self._others[version.name] = Served(**vars(row), converter=self.converter)
                return found
        return None

    @cached_property
    def _others(self) -> dict[str, Served]:
        return {}

    def shown(self, entry: Entry) -> Entry:
        """As :meth:`show`, for an entry of the store."""
        value = entry.value
        found = self.show(value)
        return entry if found == value else Entry(entry.key, entry.revision, found)

    async def converted_entry(self, entry: Entry) -> Entry:
        """As :meth:`converted`, for an entry of the store."""
        found = await self.converted(entry.value)
        return entry if found == entry.value else Entry(entry.key, entry.revision, found)

    def stored(self, value: bytes) -> bytes:
        """An object of this version as it is to be stored."""
        if self.api_version == self.stored_as:
            return value
        obj = CustomObject.FromString(value)
        stored = self.version_of(self.stored_as)
        assert stored is not None
        stored._turn(obj)
        data: bytes = obj.SerializeToString(deterministic=True)
        return data

    async def to_store(self, value: bytes) -> bytes:
        """As :meth:`stored`, by the webhook. Raises :class:`kemu.errors.ApiError`."""
        if self.converter is None or self.api_version == self.stored_as:
            return self.stored(value)
        obj = CustomObject.FromString(value)
        stored = self.version_of(self.stored_as)
        assert stored is not None
        await self._convert(obj, stored)
        data: bytes = obj.SerializeToString(deterministic=True)
        return data


class _Versions:
    """For managed fields."""

    def __init__(self, row: Served) -> None:
        self._row = row

    def type_of(self, version: str) -> Type:
        row = self._row.version_of(version)
        assert row is not None
        return row.schema.merging

    def convert(self, obj: Json, version: str) -> Json:
        """Raises :class:`updaters.Unconverted`."""
        assert isinstance(obj, dict)
        if obj.keys() <= {"apiVersion", "kind"}:
            return {**obj, "apiVersion": version}
        try:
            return conversions.lookup(obj, version)
        except ApiError as error:
            raise updaters.Unconverted(error.message) from None


def _put(obj: CustomObject, manifest: dict[str, Any]) -> None:
    custom_objects.put(obj, {name: value for name, value in manifest.items() if name not in custom_objects.HEAD})
