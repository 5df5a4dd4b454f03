"""JSON Schemas of Kubernetes objects, from the same descriptors that the converter reads.

Editors complete and check manifests with them; kemu itself reports mistakes by :mod:`kemu.objects.convert`, which says
more. The schemas describe what :func:`kemu.objects.convert.from_json` takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kemu.k8s import meta_v1_pb2
from kemu.objects import convert, resources

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_SCALARS: dict[int, dict[str, Any]] = {
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_INT32: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    FieldDescriptor.CPPTYPE_INT64: {"type": "integer"},
}

_SPECIAL: dict[str, dict[str, Any]] = {
    meta_v1_pb2.Quantity.DESCRIPTOR.full_name: {
        "description": "A quantity: 500m, 1.5Gi, 1e3, or a plain number.",
        "type": ["string", "number"],
        "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$",
    },
    meta_v1_pb2.IntOrString.DESCRIPTOR.full_name: {
        "description": "A whole number, or a text such as 25%.",
        "type": ["integer", "string"],
    },
    meta_v1_pb2.Time.DESCRIPTOR.full_name: {"type": "string", "format": "date-time"},
    meta_v1_pb2.MicroTime.DESCRIPTOR.full_name: {"type": "string", "format": "date-time"},
    meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name: {"type": "object"},
}


def json_schema(message_class: type[Message]) -> dict[str, Any]:
    """A whole schema document of one kind of object (with apiVersion and kind) or part of one."""
    definitions: dict[str, Any] = {}
    reference = add_definition(message_class, definitions)
    return {"$schema": DRAFT, **reference, "$defs": definitions}


def manifests_schema(message_classes: Iterable[type[Message]], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema of an object of any of these kinds, told apart by ``kind``; puts what it needs into ``definitions``.

    For a document that holds manifests: its ``$defs`` must be ``definitions``.
    """
    rules = []
    kinds = []
    for message_class in message_classes:
        kind = resources.BY_MESSAGE[message_class].kind
        kinds.append(kind)
        only_this_kind = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
        rules.append({"if": only_this_kind, "then": add_definition(message_class, definitions)})
    return {
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": kinds}},
        "allOf": rules,
    }


def add_definition(message_class: type[Message], definitions: dict[str, Any]) -> dict[str, str]:
    """Put the schema of a message and of all that it holds into ``definitions``; returns the reference to it."""
    descriptor: Any = message_class.DESCRIPTOR
    reference = _refer(descriptor, definitions)
    row = resources.BY_MESSAGE.get(message_class)
    if row is not None:
        properties = definitions[_name(descriptor)]["properties"]
        properties["apiVersion"] = {"const": row.api_version}
        properties["kind"] = {"const": row.kind}
    return reference


def _name(descriptor: Descriptor) -> str:
    """``core.v1.PodSpec``"""
    return descriptor.full_name.removeprefix("kemu.k8s.")


def _refer(descriptor: Descriptor, definitions: dict[str, Any]) -> dict[str, str]:
    name = _name(descriptor)
    if name not in definitions:
        special = _SPECIAL.get(descriptor.full_name)
        if special is not None:
            definitions[name] = dict(special)
        else:
            properties: dict[str, Any] = {}
            # In place before its fields are looked at, should they refer to it.
            definitions[name] = {"type": "object", "properties": properties, "additionalProperties": False}
            _add_properties(descriptor, properties, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _add_properties(descriptor: Descriptor, properties: dict[str, Any], definitions: dict[str, Any]) -> None:
    for field in descriptor.fields:
        value_field = convert.map_value(field)
        if convert.is_inline(field) and field.message_type is not None:
            _add_properties(field.message_type, properties, definitions)
        elif value_field is not None:
            properties[field.name] = {
                "type": "object",
                "additionalProperties": _value_schema(value_field, definitions),
            }
        elif field.is_repeated:
            properties[field.name] = {"type": "array", "items": _value_schema(field, definitions)}
        else:
            properties[field.name] = _value_schema(field, definitions)


def _value_schema(field: FieldDescriptor, definitions: dict[str, Any]) -> dict[str, Any]:
    if field.message_type is not None:
        return _refer(field.message_type, definitions)
    return dict(_SCALARS[field.cpp_type])
