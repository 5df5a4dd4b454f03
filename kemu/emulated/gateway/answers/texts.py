"""The JSON text of an object, written in one pass over its message.

It has the fields of the message (``conversion.convert``), with those that Go writes though they are not set, and
without those that it leaves out though they are (``schemas.as_go_writes``). Most answers are objects, and a document of
either kind on the way to each text takes three times as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import descriptors, json_writers
from kemu.emulated.objects.managed_fields import schemas
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_TEXT, _NUMBER, _MESSAGE, _MESSAGES, _INLINE, _MAP, _FIELDS, _VALUE, _KEPT = range(9)
_ALWAYS, _IF_NOT_NULL, _IF_FILLED = range(3)
"""When a field is written."""
_FIELDS_TYPE = meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name
_POD_SPEC = core_v1_pb2.PodSpec.DESCRIPTOR
_MOST_KEPT_BYTES = 16 << 20
_FIELDS_V1 = f"{meta_v1_pb2.ManagedFieldsEntry.DESCRIPTOR.full_name}.fieldsV1"


def of_object(row: Resource, message: Message) -> bytes:
    """The fields of an object of a resource, not of a custom one."""
    return _writer(message.DESCRIPTOR, schemas.find(row.api_version, row.kind)).text(message).encode()


class _Field(NamedTuple):
    kind: int
    name: str
    head: str
    """The name, as it stands before the value."""
    when: int
    write: Any
    """Of a message: its writer; otherwise a function that makes JSON of the value."""
    complete: Callable[[Any], Any] | None
    """Makes of the JSON value that which Go writes. Of a message: whether it may be empty though it has bytes."""


@lru_cache(None)
def _writer(descriptor: Descriptor, struct: str | None) -> _Writer:
    return _Writer(struct)


class _Writer:
    """Writes messages of one type. ``struct``: the Go type in its place, for ``schemas.resolve``; None: any."""

    __slots__ = ("_fields", "_known", "_zeros")

    def __init__(self, struct: str | None) -> None:
        self._known = (schemas.resolve(struct).fields if struct is not None else None) or {}
        self._fields: dict[FieldDescriptor, _Field] = {}
        self._zeros: list[tuple[str, str]] | None = None

    def text(self, message: Message) -> str:
        found: list[str] = []
        seen: set[str] = set()
        fields, kept = self._fields, _kept.texts
        listed = message.ListFields()
        for place, (field, value) in enumerate(listed):
            known = fields.get(field)
            if known is None:
                known = fields[field] = self._prepare(field)
            kind, name, head, when, write, complete = known
            if kind == _TEXT:
                if not value and when == _IF_FILLED:
                    continue
                found.append(head + encode_basestring(value))
            elif kind == _MESSAGE:
                if when == _IF_FILLED and (not value.ByteSize() or (complete is not None and complete(value))):
                    continue
                found.append(head + write.text(value))
            elif kind == _KEPT:
                if when == _IF_FILLED and not value.ByteSize():
                    continue
                key = write, value.SerializeToString()
                text = kept.get(key)
                found.append(head + (_kept.add(key, value) if text is None else text))
            elif kind == _MESSAGES:
                pieces = []
                for one in value:
                    key = write, one.SerializeToString()
                    text = kept.get(key)
                    pieces.append(_kept.add(key, one) if text is None else text)
                found.append(f"{head}[{','.join(pieces)}]")
            elif kind == _NUMBER:
                if not value and when == _IF_FILLED:
                    continue
                found.append(head + ("true" if value is True else "false" if value is False else str(value)))
            elif kind == _MAP:
                found.append(head + _map_text(value, write))
            elif kind == _FIELDS:
                found.append(head + _fields_text(value.Raw))
            elif kind == _INLINE:
                # Its fields stand in its place.
                listed[place + 1 : place + 1] = value.ListFields()  # type: ignore[index]  # a list of its own
                continue
            else:
                plain = value if write is None else write(value)
                if not plain and when != _ALWAYS and (when == _IF_FILLED or plain is None):
                    continue
                if complete is not None:
                    plain = complete(plain)
                found.append(head + (encode_basestring(plain) if type(plain) is str else _encode(plain)))
            seen.add(name)
        zeros = self._zeros
        if zeros is None:
            zeros = self._zeros = [
                (name, _head(name) + _encode(schemas.as_go_writes(one.type, one.zero)))
                for name, one in self._known.items()
                if one.has_zero
            ]
        if zeros:
            found += [zero for name, zero in zeros if name not in seen]
        return f"{{{','.join(found)}}}"

    def _prepare(self, field: FieldDescriptor) -> _Field:
        name = field.json_name
        known = self._known.get(name)
        when = _ALWAYS if known is None else _IF_FILLED if known.omits or known.has_zero else _IF_NOT_NULL
        message_type = field.message_type
        kind = _VALUE
        write: Any = None
        complete: Callable[[Any], Any] | None = None
        entry = descriptors.map_value(field)
        if descriptors.is_inline(field):
            kind = _INLINE
        elif entry is not None:
            kind, write = _MAP, json_writers.converter(entry)
        elif field.full_name == _FIELDS_V1:
            kind = _FIELDS
        elif message_type is not None and not _is_special(field, message_type):
            struct = None if known is None else known.type
            if field.is_repeated and struct is not None:
                struct = schemas.resolve(struct).element
            assert struct is None or isinstance(struct, str)
            kind = _MESSAGES if field.is_repeated else _MESSAGE
            write = _writer(message_type, struct or None)
            if message_type is _POD_SPEC and kind == _MESSAGE:
                kind = _KEPT
            if any(descriptors.is_inline(one) for one in message_type.fields):
                complete = _is_empty
        elif field.is_repeated or message_type is not None or field.type not in _SIMPLE:
            write = json_writers.converter(field)
            if field.is_repeated:
                write = partial(_list, write)
            complete = schemas.completer(known.type) if known is not None else None
        else:
            kind = _SIMPLE[field.type]
        return _Field(kind, name, _head(name), when, write, complete)


class _Kept:
    """Texts of the specs of pods, and of elements of lists, such as conditions and managed fields: most are the same in
    what is told of an object next, and many in other objects."""

    def __init__(self) -> None:
        self.texts: dict[tuple[_Writer, bytes], str] = {}
        self._bytes = 0

    def add(self, key: tuple[_Writer, bytes], message: Message) -> str:
        """``key``: who writes it, and its bytes."""
        text = key[0].text(message)
        self._bytes += len(key[1]) + len(text)
        if self._bytes > _MOST_KEPT_BYTES:
            self.texts.clear()
            self._bytes = len(key[1]) + len(text)
        self.texts[key] = text
        return text


_kept = _Kept()

_SIMPLE = {
    FieldDescriptor.TYPE_STRING: _TEXT,
    FieldDescriptor.TYPE_BOOL: _NUMBER,
    FieldDescriptor.TYPE_INT32: _NUMBER,
    FieldDescriptor.TYPE_INT64: _NUMBER,
}


def _is_special(field: FieldDescriptor, message_type: Descriptor) -> bool:
    """Whether a field of messages is written in a way of its own."""
    return field is json_writers.CLAIM_TEMPLATES or message_type.full_name in json_writers.PLAIN


def _is_empty(message: Message) -> bool:
    """Whether its JSON has no fields."""
    return all(descriptors.is_inline(field) and _is_empty(value) for field, value in message.ListFields())


def _head(name: str) -> str:
    return f"{encode_basestring(name)}:"


def _list(convert: Callable[[Any], Any] | None, value: Iterable[Any]) -> list[Any]:
    return list(value) if convert is None else [convert(one) for one in value]


def _map_text(value: Mapping[str, Any], convert: Callable[[Any], Any] | None) -> str:
    pairs = []
    for key in sorted(value):
        plain = value[key] if convert is None else convert(value[key])
        text = encode_basestring(plain) if type(plain) is str else _encode(plain)
        pairs.append(f"{encode_basestring(key)}:{text}")
    return f"{{{','.join(pairs)}}}"


@text_cache(4096)
def _fields_text(raw: bytes) -> str:
    """The fields of an entry; the same for very many objects."""
    return _encode(json_writers.PLAIN[_FIELDS_TYPE](meta_v1_pb2.FieldsV1(Raw=raw)))
