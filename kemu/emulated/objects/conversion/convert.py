"""Kubernetes JSON to messages and back, driven by the message descriptors.

    pod = from_manifest(yaml.safe_load(text))     # apiVersion and kind say which message
    data = to_manifest(pod)                       # plain dicts, lists, strings, numbers

A table for each message class is built on first use; converting then costs a dict lookup and a call for each field.
``json_readers`` and ``json_writers`` add what descriptors do not tell: which messages stand for scalars (Quantity,
IntOrString, Time, MicroTime, FieldsV1, RawExtension). The fields of a message marked ``(kemu.k8s.inline)`` stand in the
JSON object of its parent.

Every field that is set is written, also an empty message (``emptyDir: {}``), a zero or an empty string. Empty lists and
maps are lost: protobuf cannot tell them from absent ones. Null counts as absent. Maps are written sorted by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import custom_objects, json_readers, json_writers
from kemu.emulated.objects.conversion.json_readers import ConversionError
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import apiextensions_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import words

__all__ = ["ConversionError", "from_json", "from_manifest", "to_json", "to_manifest", "to_value"]

M = TypeVar("M", bound=Message)

_KINDS: dict[type[Message], tuple[str, str]] = {
    **{resource.message: (resource.api_version, resource.kind) for resource in resources.RESOURCES},
    **resources.SUBRESOURCE_MESSAGES,
}


def to_json(message: Message) -> dict[str, Any]:
    """The fields of a message as plain JSON data, without apiVersion and kind."""
    data: dict[str, Any] = {}
    json_writers.write_fields(message, data)
    return data


def to_value(message: Message) -> Json:
    """The JSON value of any message, also of one that is a scalar in JSON: a Time is a string."""
    plain: Callable[[Any], Json] = json_writers.PLAIN.get(message.DESCRIPTOR.full_name, to_json)
    return plain(message)


def to_manifest(message: Message) -> dict[str, Any]:
    """:func:`to_json` of an object, after its apiVersion and kind. Raises KeyError for a message without a kind."""
    if isinstance(message, apiextensions_v1_pb2.CustomObject):
        api_version, kind = message.apiVersion, message.kind
    else:
        api_version, kind = _KINDS[type(message)]
    data: dict[str, Any] = {"apiVersion": api_version, "kind": kind}
    json_writers.write_fields(message, data)
    return data


def from_json(message_class: type[M], data: Mapping[str, Any], *, path: str = "") -> M:
    """A message from JSON data. ``apiVersion`` and ``kind`` may be present; they must then be correct.

    Raises ConversionError with all mistakes: unknown fields, wrong types, texts that do not parse. ``path``
    precedes the paths of the mistakes.
    """
    message, problems = partial_json(message_class, data, path=path)
    if problems:
        raise ConversionError(problems)
    return message


def partial_json(
    message_class: type[M], data: Mapping[str, Any], *, path: str = ""
) -> tuple[M, list[json_readers.FieldProblem]]:
    """As :func:`from_json`: the message as far as the data describe one, and all mistakes."""
    message = message_class()
    reader = json_readers.Reader(path)
    if not isinstance(data, dict):
        reader.problem(None, f"must be an object, not {json_readers.kind_of(data)}")
    elif message_class is apiextensions_v1_pb2.CustomObject:
        custom_objects.read(cast(apiextensions_v1_pb2.CustomObject, message), data, reader)
    elif message_class in _KINDS and ("kind" in data or "apiVersion" in data):
        api_version, kind = _KINDS[message_class]
        fields = dict(data)
        for field, wanted in (("apiVersion", api_version), ("kind", kind)):
            found = fields.pop(field, None)
            if found is not None and found != wanted:
                reader.problem((None, field), f"must be {wanted!r}, not {found!r}")
        json_readers.read_fields(message, fields, json_readers.table_of(message_class.DESCRIPTOR), None, reader)
    else:
        json_readers.read_fields(message, data, json_readers.table_of(message_class.DESCRIPTOR), None, reader)
    return message, reader.problems


def from_manifest(data: Mapping[str, Any], *, path: str = "") -> KubernetesObject:
    """The object that a manifest describes. Raises ConversionError, also for an unknown apiVersion and kind."""
    reader = json_readers.Reader(path)
    if not isinstance(data, dict):
        reader.problem(None, f"must be an object, not {json_readers.kind_of(data)}")
        raise ConversionError(reader.problems)
    kind, api_version = data.get("kind"), data.get("apiVersion")
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not value:
            reader.problem((None, field), "must be given")
        elif not isinstance(value, str):
            reader.problem((None, field), f"must be a string, not {json_readers.kind_of(value)}")
    if reader.problems:
        raise ConversionError(reader.problems)
    row = resources.BY_KIND.get(str(kind))
    if (row is None or row.api_version != api_version) and custom_objects.may_be(str(api_version)):
        return from_json(apiextensions_v1_pb2.CustomObject, data, path=path)
    if row is None:
        hint = words.did_you_mean(str(kind), resources.BY_KIND, '"')
        reader.problem((None, "kind"), f"unknown kind {kind!r}", hint)
    elif row.api_version != api_version:
        reader.problem((None, "apiVersion"), f"{kind} is not in {api_version!r}", f'did you mean "{row.api_version}"?')
    else:
        return from_json(row.message, data, path=path)
    raise ConversionError(reader.problems)
