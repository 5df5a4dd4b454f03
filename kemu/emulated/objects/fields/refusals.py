"""Which fields of an object kemu refuses: those that would make a difference in Kubernetes and make none here."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from kemu.emulated.objects.conversion import descriptors
from kemu.emulated.objects.fields import tables
from kemu.emulated.objects.fields.sorts import Parts, Refused, Table
from kemu.emulated.objects.plain import Json
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

UNBUILT = "FieldValueUnbuilt"
"""The reason of such causes. Kubernetes has none like it."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A field of a message that is refused, or below which one is."""

    name: str
    inline: bool
    is_repeated: bool
    refused: Refused | None


def in_object(obj: Message, gates: Container[str] = ()) -> list[Cause]:
    """The refused fields that a new or changed object sets. Look before its defaults are filled in: those are no
    mistakes. ``gates``: the feature gates that are on."""
    if isinstance(obj, core_v1_pb2.Pod):
        return list(_in_pod_spec(obj.spec.SerializeToString(deterministic=True)))
    return list(_in_message(obj, "", gates))


@lru_cache(1024)
def _in_pod_spec(spec_bytes: bytes) -> tuple[Cause, ...]:
    """Most pods are copies of one spec. Their metadata and status hold nothing that is refused."""
    return tuple(_in_message(core_v1_pb2.PodSpec.FromString(spec_bytes), "spec"))


def _in_message(message: Message, path: str, gates: Container[str] = ()) -> Iterator[Cause]:
    for step in _steps(message.DESCRIPTOR):
        value = getattr(message, step.name)
        here = path if step.inline else f"{path}.{step.name}".removeprefix(".")
        if step.refused is not None:
            if step.refused.gate and step.refused.gate in gates:
                continue
            is_set = bool(value) if step.is_repeated else message.HasField(step.name)
            if is_set and (step.is_repeated or value not in step.refused.unless):
                yield _cause(here, step.refused.why)
        elif step.is_repeated:
            for index, item in enumerate(value):
                yield from _in_message(item, f"{here}[{index}]", gates)
        elif message.HasField(step.name):
            yield from _in_message(value, here, gates)


@lru_cache(1024)
def _steps(descriptor: Descriptor) -> tuple[_Step, ...]:
    steps = []
    for field, sort in tables.parts_of(descriptor):
        if isinstance(sort, Refused):
            steps.append(_Step(field.name, descriptors.is_inline(field), field.is_repeated, sort))
        elif isinstance(sort, Parts) and _steps(field.message_type):
            steps.append(_Step(field.name, descriptors.is_inline(field), field.is_repeated, None))
    return tuple(steps)


def _cause(path: str, why: str) -> Cause:
    return Cause(path, UNBUILT, text(why))


def text(why: str) -> str:
    """What is said at the place of a refused field."""
    return f"kemu does not simulate this field: {why}"


def in_configuration(data: Json, sorts: Table) -> list[Cause]:
    """The refused fields that a configuration sets. Null counts as absent."""
    return list(_in_value(data, sorts, "", ""))


def _in_value(value: Json, sorts: Table, pattern: str, path: str) -> Iterator[Cause]:
    """``pattern``: the path with ``[]`` for every index, as in the table."""
    sort = sorts.get(pattern)
    if isinstance(sort, Refused):
        if value is not None and value not in sort.unless:
            yield _cause(path, sort.why)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _in_value(item, sorts, f"{pattern}.{key}".removeprefix("."), f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in_value(item, sorts, f"{pattern}[]", f"{path}[{index}]")
