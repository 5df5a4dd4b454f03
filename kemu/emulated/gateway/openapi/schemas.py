"""JSON schemas of messages, as those of kube-apiserver: formats, defaults, required fields, the merging of lists."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kemu.emulated.gateway.openapi import descriptions
from kemu.emulated.objects import events, resources
from kemu.emulated.objects.conversion import descriptors
from kemu.emulated.objects.kinds import autoscalers
from kemu.emulated.objects.managed_fields import schemas as merging

REFERENCE = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

_ELSEWHERE = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "RawExtension": "io.k8s.apimachinery.pkg.runtime.RawExtension",
}
"""Messages of ``meta_v1.proto`` that are not of the package ``meta/v1`` in Kubernetes."""

_SCALARS: dict[str, dict[str, Any]] = {
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Time": {"format": "date-time", "type": "string"},
    "MicroTime": {"format": "date-time", "type": "string"},
    "RawExtension": {"type": "object"},
    "FieldsV1": {"type": "object"},
    "JSON": {},
    "JSONSchemaPropsOrArray": {},
    "JSONSchemaPropsOrBool": {},
    "JSONSchemaPropsOrStringArray": {},
    "ExtraValue": {"type": "array", "items": {"type": "string", "default": ""}},
}
"""Messages that are no objects of their fields in JSON."""

_TYPES = {
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "format": "byte"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_INT64: {"type": "integer", "format": "int64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
}
_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "boolean": False, "number": 0}


_PREFIXES = {
    "apiextensions.v1": "io.k8s.apiextensions-apiserver.pkg.apis.",
    "apiregistration.v1": "io.k8s.kube-aggregator.pkg.apis.",
}
"""Of the names of messages that are not in ``k8s.io/api``."""


def name_of(descriptor: Descriptor) -> str:
    """``io.k8s.api.core.v1.Pod``."""
    package = descriptor.full_name.removeprefix("kemu.k8s.").removesuffix(f".{descriptor.name}")
    if package == "meta.v1":
        return _ELSEWHERE.get(descriptor.name, f"{META}{descriptor.name}")
    return f"{_PREFIXES.get(package, 'io.k8s.api.')}{package}.{descriptor.name}"


_ROWS = {row.message.DESCRIPTOR.full_name: row for row in (*resources.RESOURCES, events.ROW, autoscalers.ROW)}


class Collection:
    """Schemas by name, with those that they refer to."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}

    def refer(self, descriptor: Descriptor) -> dict[str, str]:
        """A reference to the schema of a message, which is made if there is none yet."""
        name = name_of(descriptor)
        if name not in self.found:
            self.found[name] = {}
            self.found[name] = self._made(descriptor, name)
            row = _ROWS.get(descriptor.full_name)
            if row is not None:
                self.add_object(descriptor, row.api_version, row.kind)
        return {"$ref": f"{REFERENCE}{name}"}

    def add_object(self, descriptor: Any, api_version: str, kind: str) -> dict[str, str]:
        """:func:`refer` to what has a kind of its own: an object, a review, options."""
        reference = self.refer(descriptor)
        schema = self.found[name_of(descriptor)]
        if "x-kubernetes-group-version-kind" not in schema:
            schema["properties"] = dict(sorted({**_head(), **schema.get("properties", {})}.items()))
            schema["x-kubernetes-group-version-kind"] = []
        named = group_version_kind(api_version, kind)
        if named not in schema["x-kubernetes-group-version-kind"]:
            schema["x-kubernetes-group-version-kind"].append(named)
        return reference

    def add_list(self, descriptor: Any, list_meta: Any, api_version: str, kind: str) -> dict[str, str]:
        """The list of a kind."""
        name = f"{name_of(descriptor)}List"
        items = {"allOf": [self.refer(descriptor)], "default": {}}
        self.found[name] = {
            "description": f"A list of objects of the kind {kind}.",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_head(),
                "items": {"description": "The objects.", "type": "array", "items": items},
                "metadata": {
                    "description": "What belongs to the list as a whole.",
                    "allOf": [self.refer(list_meta)],
                    "default": {},
                },
            },
            "x-kubernetes-group-version-kind": [group_version_kind(api_version, f"{kind}List")],
        }
        return {"$ref": f"{REFERENCE}{name}"}

    def _made(self, descriptor: Descriptor, name: str) -> dict[str, Any]:
        described = {"description": descriptions.of_type(descriptions.short(name))}
        scalar = _SCALARS.get(descriptor.name)
        if scalar is not None:
            return described | scalar
        merges = merging.find_type(descriptions.short(name))
        fields = {} if merges is None or merges.fields is None else merges.fields
        properties = {
            field.json_name: self._property(field, fields.get(field.json_name), descriptions.short(name))
            for field in _fields(descriptor)
        }
        schema: dict[str, Any] = {**described, "type": "object"}
        if properties:
            schema["properties"] = dict(sorted(properties.items()))
        required = [field for field in schema.get("properties", ()) if field in fields and fields[field].is_required]
        if required:
            schema["required"] = required
        if merges is not None and merges.is_atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _property(self, field: FieldDescriptor, merges: merging.Field | None, owner: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"description": descriptions.of_field(owner, field.json_name)}
        of_map = descriptors.map_value(field)
        if of_map is not None:
            schema |= {"type": "object", "additionalProperties": self._element(of_map)}
        elif field.is_repeated:
            schema |= {"type": "array", "items": self._element(field)}
        elif field.message_type is not None:
            schema["allOf"] = [self.refer(field.message_type)]
        else:
            schema |= _TYPES[field.type]
        if merges is not None:
            schema |= _rules(merges)
            if merges.values:
                listed = {"enum": list(merges.values)}
                schema.get("items", schema).update(listed)
        return schema

    def _element(self, field: FieldDescriptor) -> dict[str, Any]:
        """The schema of an element of a list or map."""
        message = field.message_type
        if message is None:
            scalar = _TYPES[field.type]
            return dict(scalar) if "format" in scalar and scalar["type"] == "string" else _with_zero(scalar)
        if message.name == "ExtraValue":
            return dict(_SCALARS[message.name])  # a list without a schema of its own
        reference = self.refer(message)
        if message.name in _SCALARS:
            return dict(reference)
        return {"allOf": [reference], "default": {}}


def _with_zero(scalar: dict[str, Any]) -> dict[str, Any]:
    return {**scalar, "default": _ZEROS[scalar["type"]]}


def _fields(descriptor: Any) -> list[FieldDescriptor]:
    """With those of inline messages."""
    found: list[FieldDescriptor] = []
    for field in descriptor.fields:
        found += _fields(field.message_type) if descriptors.is_inline(field) else [field]
    return found


def _rules(field: merging.Field) -> dict[str, Any]:
    """Default, and how the values of several writers come together."""
    found: dict[str, Any] = {"default": field.default} if field.has_default else {}
    kind = merging.resolve(field.type)
    expression = field.type if isinstance(field.type, str) else ""
    if kind.kind == merging.LIST:
        found["x-kubernetes-list-type"] = "atomic" if kind.is_atomic else "map" if kind.keys else "set"
        if kind.keys:
            found["x-kubernetes-list-map-keys"] = list(kind.keys)
    elif expression.startswith("{atomic}") or expression.endswith("!"):
        found["x-kubernetes-map-type"] = "atomic"
    elif expression.endswith("~"):
        found["x-kubernetes-map-type"] = "granular"
    if field.strategies:
        found["x-kubernetes-patch-strategy"] = ",".join(field.strategies)
    if field.merge_key:
        found["x-kubernetes-patch-merge-key"] = field.merge_key
    return found


def _head() -> dict[str, Any]:
    return {
        "apiVersion": {"description": "The group and version of the kind, as in apps/v1.", "type": "string"},
        "kind": {"description": "The kind of the object.", "type": "string"},
    }


def group_version_kind(api_version: str, kind: str) -> dict[str, str]:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "kind": kind, "version": version}
