"""What of an object, or of two states of one, decides whose fields are whose: their outline.

Two pairs of objects with one outline have the same fields, differ in the same ones, and have the same steps to the
elements of their lists; so a write makes the same of both (:mod:`.known_updates`). Values do not count, except those
that name elements, and whether a value is empty. An outline may tell apart what makes no difference, never the other
way round.

It is made of messages, of which equal parts are skipped at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import descriptors, json_writers
from kemu.emulated.objects.facts import go_types
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

Outline = tuple[Any, ...]
_Value: TypeAlias = Any
"""Of a field."""


class Unlike(Exception):
    """An outline does not say enough of it."""


(
    _OMITTED, _SCALAR, _KEY, _MICROS, _MESSAGE, _INLINE, _SCALARS, _SET, _NAMED, _UNNAMED, _MAP, _MESSAGE_MAP, _POD_SPEC
) = range(13)  # fmt: skip
_NANOS_OF_MICRO = 1000
_TIMES = (meta_v1_pb2.Time.DESCRIPTOR.full_name, meta_v1_pb2.MicroTime.DESCRIPTOR.full_name)
_NANOS = tuple(f"{name}.nanos" for name in _TIMES)
_VALUES = frozenset(
    (
        *_TIMES,
        meta_v1_pb2.Quantity.DESCRIPTOR.full_name,
        meta_v1_pb2.IntOrString.DESCRIPTOR.full_name,
        "kemu.k8s.core.v1.NodeSelector",
        "kemu.k8s.authentication.v1.ExtraValue",
        "kemu.k8s.certificates.v1.ExtraValue",
    )
)
"""Messages that are no objects in JSON but are decided by their fields. Of the others, the text in them decides."""

_SPEC = core_v1_pb2.PodSpec.DESCRIPTOR
_plans: dict[FieldDescriptor, int] = {}


def of_one(message: Message, *, is_element: bool = False) -> Outline:
    """Of an object, or a part of one, that is alone. ``is_element``: of a list that names its elements. Raises
    :class:`Unlike`."""
    plans = _plans
    found: list[Any] = []
    for field, value in message.ListFields():
        kind = plans.get(field)
        if kind is None:
            kind = _plan(field)
        number = field.number
        if kind in (_SCALAR, _MICROS) or (kind == _KEY and not is_element):
            found.append(number if value else -number)
        elif kind == _MESSAGE:
            found.append((number, of_one(value)))
        elif kind == _POD_SPEC:
            found.append((number, _of_pod_spec(value.SerializeToString())))
        elif kind == _MAP:
            found.append((number, *_of_map(value)))
        elif kind == _SCALARS:
            found.append(number)
        elif kind in (_NAMED, _UNNAMED):
            found.append((number, *[of_one(one, is_element=kind == _NAMED) for one in value]))
        elif kind == _KEY:
            found.append((number, value))
        elif kind == _SET:
            found.append((number, *value))
        elif kind == _INLINE:
            found.append((number, of_one(value, is_element=is_element)))
        elif kind == _MESSAGE_MAP:
            found.append((number, *[(key, of_one(value[key])) for key in sorted(value)]))
    return tuple(found)


@text_cache(256)
def _of_pod_spec(data: bytes) -> Outline:
    """Large, and the same in many pods."""
    return of_one(core_v1_pb2.PodSpec.FromString(data))


def of_two(old: Message, new: Message, *, is_element: bool = False) -> Outline:
    """Of two states of an object, or of a part of one. Raises :class:`Unlike`."""
    plans = _plans
    found: list[Any] = []
    before = dict(old.ListFields())
    for field, value in new.ListFields():
        kind = plans.get(field)
        if kind is None:
            kind = _plan(field)
        if kind == _OMITTED:
            continue
        number = field.number
        other = before.pop(field, None)
        if other is None:
            found.append((number, not value if kind == _SCALAR else _part(kind, value, is_element=is_element)))
        elif kind == _KEY and is_element:
            if value != other:
                raise Unlike
            found.append((number, value))
        elif kind == _MAP:  # to compare maps of messages is seven calls
            found.append((number, _of_maps(other, value)))
        elif value == other:
            if kind == _INLINE:
                found.append((number, of_one(value, is_element=is_element)))
        elif kind in (_SCALAR, _KEY):
            found.append((number, not other, not value))
        elif kind == _MICROS:
            found.append((number, not other, not value, value // _NANOS_OF_MICRO == other // _NANOS_OF_MICRO))
        elif kind in (_MESSAGE, _POD_SPEC):
            found.append((number, of_two(other, value), True))
        elif kind == _INLINE:
            found.append((number, of_two(other, value, is_element=is_element), True))
        elif kind in (_NAMED, _UNNAMED):
            found.append((number, _of_lists(other, value, is_named=kind == _NAMED)))
        elif kind == _SCALARS:
            found.append((number, True))
        elif kind == _SET:
            found.append((number, tuple(other), tuple(value)))
        else:
            raise Unlike
    for field, other in before.items():
        kind = plans.get(field)
        if kind is None:
            kind = _plan(field)
        if kind == _SCALAR:
            found.append((-field.number, not other))
        elif kind != _OMITTED:
            found.append((-field.number, _part(kind, other, is_element=is_element)))
    return tuple(found)


def _part(kind: int, value: _Value, *, is_element: bool) -> object:
    """A field, not a single value, that one of two states has. Raises :class:`Unlike` where it may name an element,
    which only has the name then."""
    if kind in (_KEY, _INLINE):
        if is_element:
            raise Unlike
        return not value if kind == _KEY else of_one(value)
    if kind in (_MESSAGE, _POD_SPEC):
        return of_one(value)
    if kind in (_NAMED, _UNNAMED):
        return tuple([of_one(one, is_element=kind == _NAMED) for one in value])
    if kind == _MAP:
        return _of_map(value)
    if kind == _MESSAGE_MAP:
        return tuple([(key, of_one(value[key])) for key in sorted(value)])
    if kind == _MICROS:
        return value // _NANOS_OF_MICRO == 0
    return tuple(value) if kind == _SET else True


def _of_map(value: Mapping[str, Any]) -> Outline:
    return tuple([(key, not value[key]) for key in sorted(value)])


def _of_lists(old: Sequence[Message], new: Sequence[Message], *, is_named: bool) -> Outline:
    """Element by element, where both have the same ones in the same order, up to where one of them ends."""
    shared = min(len(old), len(new))
    found = [of_two(old[index], new[index], is_element=is_named) for index in range(shared)]
    found += [(False, of_one(one, is_element=is_named)) for one in old[shared:]]
    found += [(True, of_one(one, is_element=is_named)) for one in new[shared:]]
    return tuple(found)


def _of_maps(old: Mapping[str, Any], new: Mapping[str, Any]) -> Outline:
    found: list[tuple[str, object, object]] = []
    for key in sorted({*old, *new}):
        one, other = old.get(key), new.get(key)
        if one is None or other is None or one != other:
            found.append((key, None if one is None else not one, None if other is None else not other))
    return tuple(found)


def _plan(field: FieldDescriptor) -> int:
    """How a field counts. Raises :class:`Unlike`."""
    keys, sets = go_types.list_keys()
    message_type = field.message_type
    entry = descriptors.map_value(field)
    if field.full_name == _MANAGED_FIELDS:
        kind = _OMITTED
    elif entry is not None:
        if entry.message_type is not None and entry.message_type.full_name in json_writers.PLAIN:
            _check(entry.message_type.full_name)
        kind = _MAP if entry.message_type is None else _MESSAGE_MAP
    elif message_type is not None:
        _check(message_type.full_name)
        if field.is_repeated:
            kind = _NAMED if _has_names(field) else _UNNAMED
        else:
            kind = _INLINE if descriptors.is_inline(field) else _POD_SPEC if message_type is _SPEC else _MESSAGE
    elif field.is_repeated:
        kind = _SET if field.json_name in sets else _SCALARS
    elif field.full_name in _NANOS:
        kind = _MICROS
    else:
        kind = _KEY if field.json_name in keys else _SCALAR
    _plans[field] = kind
    return kind


def _has_names(field: FieldDescriptor) -> bool:
    """Whether the elements of a list of messages may have names: a field of each, or several."""
    fields = go_types.fields_of(field.full_name.rpartition(".")[0].removeprefix("kemu.k8s."))
    known = next((one for one in fields or () if one.json == field.json_name), None)
    return known is None or "list" in known.options


_MANAGED_FIELDS = f"{meta_v1_pb2.ObjectMeta.DESCRIPTOR.full_name}.managedFields"


def _check(name: str) -> None:
    """Raises :class:`Unlike` for a message whose JSON its fields do not decide."""
    if name in json_writers.PLAIN and name not in _VALUES:
        raise Unlike
