"""The Go types of a pod template: their names, the order of their fields, their JSON tags.

The table ``go_types.txt`` beside this module is what ``scripts/record types`` prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

TEMPLATE = "v1.PodTemplateSpec"
QUANTITY, INT_OR_STRING, TIME = "resource.Quantity", "intstr.IntOrString", "v1.Time"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a Go struct."""

    name: str
    json: str
    """Empty: the fields of the struct stand in the JSON object of its parent."""
    omits: bool
    """Whether an empty value is left out of the JSON: any that is no struct."""
    omits_zero: bool
    """Whether a struct without any value is left out, too."""
    type: str


@dataclass(frozen=True, slots=True)
class _Table:
    structs: dict[str, tuple[Field, ...]]
    names: dict[str, str]
    """Named types that are no structs, and what they are."""


@lru_cache(1)
def _table() -> _Table:
    table = _Table({}, {})
    struct = ""
    fields: list[Field] = []
    text = resources.files("kemu.emulated.objects.templates").joinpath("go_types.txt").read_text()
    for words in (line.split() for line in text.splitlines()):
        if words[0] == "type":
            table.names[words[1]] = words[2]
        elif words[0] == "struct":
            if struct:
                table.structs[struct] = tuple(fields)
            struct, fields = words[1], []
        else:
            json, *options = words[1].split(",")
            fields.append(Field(words[0], json, "omitempty" in options, "omitzero" in options, words[2]))
    table.structs[struct] = tuple(fields)
    return table


def fields_of(struct: str) -> tuple[Field, ...] | None:
    """None: the type is no struct of the table."""
    return _table().structs.get(struct)


def plain(name: str) -> str:
    """What a named type is: ``string`` for ``v1.Protocol``; any other type is itself."""
    return _table().names.get(name, name)


def map_types(name: str) -> tuple[str, str] | None:
    """The types of keys and values of a map."""
    what = plain(name)
    if not what.startswith("map["):
        return None
    key, _, value = what[4:].partition("]")
    return key, value


def element_type(name: str) -> str | None:
    """The type of the elements of a slice."""
    what = plain(name)
    return what[2:] if what.startswith("[]") else None


@lru_cache(4096)
def member(descriptor: Descriptor, struct: str, field: Field) -> str:
    """The name of the field in the message that stands for a struct; empty: kemu's message has none."""
    if field.json:
        return field.json if field.json in descriptor.fields_by_name else ""
    wanted = field.type.rpartition(".")[2]
    messages = ((one.name, one.message_type) for one in descriptor.fields)
    return next((name for name, message in messages if message is not None and message.name == wanted), "")


def read(message: Message | None, struct: str, field: Field) -> Any:
    """The value of a field: a message, scalar, list or map; None: it is not set, or empty."""
    if message is None:
        return None
    name = member(message.DESCRIPTOR, struct, field)
    if not name:
        return None
    described = message.DESCRIPTOR.fields_by_name[name]
    if described.is_repeated:
        return getattr(message, name) or None
    return getattr(message, name) if message.HasField(name) else None
