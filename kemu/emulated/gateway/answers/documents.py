"""Objects as JSON text."""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from typing import Any

import yaml
from google.protobuf.message import Message

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json


class Style(enum.Enum):
    """Style of text."""

    PLAIN = enum.auto()
    """JSON in one line."""
    INDENTED = enum.auto()
    YAML = enum.auto()


_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C takes a tenth of the time."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_human = json.JSONEncoder(ensure_ascii=False, indent=2)


def of(message: Message) -> dict[str, Any]:
    """The fields of an object, without kind and API version."""
    return convert.to_json(message)


def text(document: Json) -> bytes:
    return _encoder.encode(document).encode()


def indented(document: bytes) -> bytes:
    return _human.encode(json.loads(document)).encode()


def styled(style: Style, document: bytes) -> bytes:
    """A whole answer, of one line of JSON."""
    if style is Style.YAML:
        return as_yaml(document)
    return (indented(document) if style is Style.INDENTED else document) + b"\n"


def as_yaml(document: bytes) -> bytes:
    found: bytes = yaml.dump(json.loads(document), Dumper=_Dumper, allow_unicode=True, encoding="utf-8")
    return found


def item_of(style: Style, item: bytes) -> bytes:
    """An item of a list, of one line of JSON."""
    if style is Style.YAML:
        return as_yaml(b"[" + item + b"]")
    return b"\n    " + indented(item).replace(b"\n", b"\n    ") if style is Style.INDENTED else item


def list_of(style: Style, head: dict[str, Any], name: str, items: Sequence[bytes]) -> list[bytes]:
    """The pieces of a whole answer: ``head`` without its items, and these, made by :func:`item_of`."""
    if not items:
        return [styled(style, text({**head, name: []}))]
    if style is Style.YAML:
        return [as_yaml(text(head)), f"{name}:\n".encode(), *items]
    begin, end = f',"{name}":['.encode(), b"]}\n"
    first = text(head)[:-1]
    if style is Style.INDENTED:
        begin, end = f',\n  "{name}": ['.encode(), b"\n  ]\n}\n"
        first = indented(text(head))[:-2]
    pieces = [first + begin]
    for item in items:
        pieces += (item, b",")
    pieces[-1] = end
    return pieces
