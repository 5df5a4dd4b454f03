"""From the fields of messages to JSON values: one writer for each field, made on first use.

Role: the half of :mod:`kemu.emulated.objects.conversion.convert` that writes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kemu.emulated.objects import times
from kemu.emulated.objects.conversion import descriptors, go_json
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import (
    apiextensions_v1_pb2,
    apps_v1_pb2,
    authentication_v1_pb2,
    certificates_v1_pb2,
    core_v1_pb2,
    meta_v1_pb2,
)


def write_fields(message: Message, data: dict[str, Any]) -> None:
    writers = _WRITERS
    for field, value in message.ListFields():
        writer = writers.get(field)
        if writer is None:
            writer = writers[field] = _writer(field)
        writer(value, data)


Writer = Callable[[Any, dict[str, Any]], None]
"""Puts the value of one field into the JSON object of its message."""

_WRITERS: dict[FieldDescriptor, Writer] = {}


def _writer(field: FieldDescriptor) -> Writer:
    name = field.json_name
    if field.containing_type is _CUSTOM and name != "metadata":
        return _write_content if name == "content" else _write_nothing
    if descriptors.is_inline(field):
        return write_fields
    value_field = descriptors.map_value(field)
    if value_field is not None:
        value_type = value_field.message_type
        if value_type is not None:
            write_value: Callable[[Any], Any] | None = PLAIN.get(value_type.full_name, _to_json)
        else:
            write_value = _plain_bytes if value_field.type == FieldDescriptor.TYPE_BYTES else None

        def write_map(value: Any, data: dict[str, Any]) -> None:
            if write_value is None:
                data[name] = {key: value[key] for key in sorted(value)}
            else:
                data[name] = {key: write_value(value[key]) for key in sorted(value)}

        return write_map
    convert = converter(field)
    if field.is_repeated:

        def write_list(value: Any, data: dict[str, Any]) -> None:
            data[name] = list(value) if convert is None else [convert(item) for item in value]

        return write_list

    def write_one(value: Json | Message, data: dict[str, Any]) -> None:
        data[name] = value if convert is None else convert(value)

    return write_one


_CUSTOM = apiextensions_v1_pb2.CustomObject.DESCRIPTOR
CLAIM_TEMPLATES = apps_v1_pb2.StatefulSetSpec.DESCRIPTOR.fields_by_name["volumeClaimTemplates"]


def _write_content(value: bytes, data: dict[str, Any]) -> None:
    data.update(json.loads(value))


def _write_nothing(value: str, data: dict[str, Any]) -> None:
    """Kind and API version stand beside the fields."""


def converter(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """A function from the value of a field to JSON; None where both are the same."""
    if field is CLAIM_TEMPLATES:
        return _plain_claim_template
    if field.message_type is not None:
        convert: Callable[[Any], Any] = PLAIN.get(field.message_type.full_name, _to_json)
        return convert
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _plain_bytes
    return go_json.number if field.type == FieldDescriptor.TYPE_DOUBLE else None


def _to_json(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {}
    write_fields(message, data)
    return data


def _plain_claim_template(message: core_v1_pb2.PersistentVolumeClaim) -> dict[str, Any]:
    """The only objects within another one that have a kind (``Convert_apps_StatefulSetSpec_To_v1_StatefulSetSpec``)."""
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | _to_json(message)


def _plain_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _plain_int_or_string(message: meta_v1_pb2.IntOrString) -> int | str:
    return str(message.strVal) if message.type == 1 else int(message.intVal)


def _plain_time(message: meta_v1_pb2.Time) -> str | None:
    # A zero time is an unset one, as in Kubernetes.
    return times.format_time(message.seconds) if message.seconds or message.nanos else None


def _plain_micro_time(message: meta_v1_pb2.MicroTime) -> str | None:
    return times.format_micro_time(message.seconds, message.nanos) if message.seconds or message.nanos else None


def _plain_fields_v1(message: meta_v1_pb2.FieldsV1) -> Json:
    try:
        found: Json = json.loads(message.Raw)
        return found
    except ValueError:
        # Bookkeeping of clients on which nothing in kemu depends.
        return {}


def _plain_raw_extension(message: meta_v1_pb2.RawExtension) -> Json:
    try:
        return json.loads(message.raw) if message.raw else None
    except ValueError:
        # A client has sent bytes that are no JSON.
        return None


def _plain_any(message: apiextensions_v1_pb2.JSON) -> Json:
    return json.loads(message.raw) if message.raw else None


def _plain_schema_or_bool(message: apiextensions_v1_pb2.JSONSchemaPropsOrBool) -> Json:
    return _to_json(message.schema) if message.HasField("schema") else message.allows


def _plain_schema_or_list(message: apiextensions_v1_pb2.JSONSchemaPropsOrArray) -> Json:
    if message.jSONSchemas:
        return [_to_json(one) for one in message.jSONSchemas]
    return _to_json(message.schema) if message.HasField("schema") else None


def _plain_schema_or_texts(message: apiextensions_v1_pb2.JSONSchemaPropsOrStringArray) -> Json:
    if message.property:
        return list(message.property)
    return _to_json(message.schema) if message.HasField("schema") else None


def _plain_node_selector(message: core_v1_pb2.NodeSelector) -> dict[str, Any]:
    """Kubernetes writes the terms of a node selector even when there are none: such a selector matches nothing."""
    return {"nodeSelectorTerms": None} | _to_json(message)


def _plain_extra(message: authentication_v1_pb2.ExtraValue | certificates_v1_pb2.ExtraValue) -> list[str]:
    return list(message.items)


PLAIN: dict[str, Callable[[Any], Any]] = {
    apiextensions_v1_pb2.JSON.DESCRIPTOR.full_name: _plain_any,
    apiextensions_v1_pb2.JSONSchemaPropsOrBool.DESCRIPTOR.full_name: _plain_schema_or_bool,
    apiextensions_v1_pb2.JSONSchemaPropsOrArray.DESCRIPTOR.full_name: _plain_schema_or_list,
    apiextensions_v1_pb2.JSONSchemaPropsOrStringArray.DESCRIPTOR.full_name: _plain_schema_or_texts,
    meta_v1_pb2.Quantity.DESCRIPTOR.full_name: lambda message: message.string,
    meta_v1_pb2.IntOrString.DESCRIPTOR.full_name: _plain_int_or_string,
    meta_v1_pb2.Time.DESCRIPTOR.full_name: _plain_time,
    meta_v1_pb2.MicroTime.DESCRIPTOR.full_name: _plain_micro_time,
    core_v1_pb2.NodeSelector.DESCRIPTOR.full_name: _plain_node_selector,
    meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name: _plain_fields_v1,
    meta_v1_pb2.RawExtension.DESCRIPTOR.full_name: _plain_raw_extension,
    authentication_v1_pb2.ExtraValue.DESCRIPTOR.full_name: _plain_extra,
    certificates_v1_pb2.ExtraValue.DESCRIPTOR.full_name: _plain_extra,
}
"""Messages whose JSON form is not an object of their fields, by their full name."""
