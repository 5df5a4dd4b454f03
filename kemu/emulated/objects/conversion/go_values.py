"""What a message in Kubernetes' protobuf says, as Go reads it.

Go's generated code writes every field that is no pointer, also when it is empty: ``nodeName: ""``, ``replicas: 0``, a
time without seconds. Decoded into a struct, and written as JSON or compared with another, these are as good as absent;
here they go, so that a message from a Go client is the one that the same object in JSON would give. Pointers keep what
they state: ``replicas: 0`` of a Deployment is no default.

Which fields are pointers is what the table of :mod:`kemu.emulated.objects.facts.go_types` says.
"""

from __future__ import annotations

from functools import lru_cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kemu.emulated.objects.conversion import descriptors
from kemu.emulated.objects.facts import go_types
from kemu.messages.k8s import meta_v1_pb2

_TIMES = (meta_v1_pb2.Time.DESCRIPTOR.full_name, meta_v1_pb2.MicroTime.DESCRIPTOR.full_name)
_WHOLE = (
    meta_v1_pb2.Quantity.DESCRIPTOR.full_name,
    meta_v1_pb2.IntOrString.DESCRIPTOR.full_name,
)
"""Values of one piece: what they hold is theirs."""

_SCALAR, _TEXT, _TIME, _STRUCT, _POINTER, _LIST, _MAP, _INT_OR_STRING, _KEPT, _KEPT_TEXT, _TEXTS = range(11)
_UNCHECKED = frozenset((_KEPT, _KEPT_TEXT, _TEXTS))
"""What stays as it is."""


def trim(message: Message) -> None:
    """Remove what Go writes of fields without a value, in place."""
    _trim(message, False)


def tidy(message: Message) -> None:
    """:func:`trim`. Raises ValueError for a text that is none: messages of proto2 take any bytes, and show them so."""
    _trim(message, True)


def _trim(message: Message, checks: bool) -> None:
    plan = _plan(message.DESCRIPTOR)
    for field, value in message.ListFields():
        kind = plan.get(field.number)
        if kind is None or (not checks and kind in _UNCHECKED):
            continue
        if kind == _TEXT:
            if not value:
                message.ClearField(field.name)
            elif checks and type(value) is not str:
                raise _no_text(field)
        elif kind == _SCALAR:
            if not value:
                message.ClearField(field.name)
        elif kind == _LIST:
            for one in value:
                _trim(one, checks)
        elif kind == _MAP:
            values = plan[-field.number]
            if not checks and values != _STRUCT:
                continue
            for key in value:  # .items() of a message's map is three calls
                one = value[key]
                if checks and (type(key) is not str or (values == _KEPT_TEXT and type(one) is not str)):
                    raise _no_text(field)
                if values == _STRUCT or (checks and values == _KEPT):
                    _trim(one, checks)
        elif kind == _TIME:
            # Go writes nothing for no time, and zeros for that of the epoch (``time_proto.go``).
            if not value.ByteSize():
                message.ClearField(field.name)
            elif not value.nanos and field.message_type and field.message_type.full_name == _TIMES[0]:
                value.ClearField("nanos")
        elif kind == _INT_OR_STRING:
            if checks and type(value.strVal) is not str:
                raise _no_text(field)
            value.ClearField("intVal" if value.type == 1 else "strVal")
        elif kind == _KEPT:
            for one in value if field.is_repeated else (value,):
                _trim(one, checks)
        elif kind in (_KEPT_TEXT, _TEXTS):
            for one in value if kind == _TEXTS else (value,):
                if type(one) is not str:
                    raise _no_text(field)
        else:
            _trim(value, checks)
            if kind == _STRUCT and not value.ByteSize():
                message.ClearField(field.name)


def _no_text(field: FieldDescriptor) -> ValueError:
    return ValueError(f"{field.name} is no UTF-8")


@lru_cache(None)
def _plan(descriptor: Descriptor) -> dict[int, int]:
    """How each field is treated, by number, and of a map, by the negative number, its values. Those that always stay
    and hold no text are left out."""
    name = descriptor.full_name.removeprefix("kemu.k8s.")
    fields = go_types.fields_of(name) or ()
    pointers = frozenset(one.json for one in fields if one.type.startswith("*"))
    # What is one value in JSON says by its fields which one.
    is_value = go_types.leaf(name) is not None
    found = {}
    for field in descriptor.fields:
        values = descriptors.map_value(field)
        if values is not None:
            found[field.number] = _MAP
            found[-field.number] = _STRUCT if _is_struct(values) else _kind(values, True) or _SCALAR
            continue
        kind = _kind(field, is_value or field.json_name in pointers)
        if kind is not None:
            found[field.number] = kind
    return found


def _kind(field: FieldDescriptor, is_pointer: bool) -> int | None:
    if field.message_type is None:
        if field.type == FieldDescriptor.TYPE_STRING:
            return _TEXTS if field.is_repeated else _KEPT_TEXT if is_pointer else _TEXT
        return None if is_pointer or field.is_repeated else _SCALAR
    name = field.message_type.full_name
    if field.is_repeated:
        return _LIST if _is_struct(field) else None if name in _TIMES else _KEPT
    if name in _TIMES:
        return _TIME
    if name == _WHOLE[1]:
        return _INT_OR_STRING
    if not _is_struct(field):
        return _KEPT
    return _POINTER if is_pointer else _STRUCT


def _is_struct(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name not in (*_WHOLE, *_TIMES)
