"""Kubernetes JSON to messages and back, driven by the message descriptors.

    pod = from_manifest(yaml.safe_load(text))     # apiVersion and kind say which message
    data = to_manifest(pod)                       # plain dicts, lists, strings, numbers

One table per message class is built on first use; converting then costs a dict lookup and a call per field. What the
descriptors do not say is stated here: the messages that stand for scalars (Quantity, IntOrString, Time, MicroTime,
FieldsV1) and the fields marked ``(kemu.k8s.inline)``, whose own fields stand in the JSON object of their parent.

What is set is what is written: an empty message (``emptyDir: {}``), a zero, an empty string that were given come back.
Empty lists and maps, which protobuf cannot tell from absent ones, do not; null is absent. Maps come out sorted by key.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kemu.errors import KemuError
from kemu.k8s import core_v1_pb2, meta_v1_pb2, options_pb2
from kemu.objects import quantities, resources, times

M = TypeVar("M", bound=Message)

Step = str | int | tuple[str]
"""One step of a path: a field, an index, or (in a tuple of one) the key of a map."""


@dataclass(frozen=True)
class FieldProblem:
    """One mistake in the data."""

    path: str
    """``spec.containers[0].resources.requests[cpu]``; empty for the object itself."""
    message: str
    suggestion: str = ""
    """``did you mean "requests"?``, or empty."""
    steps: tuple[str | int, ...] = ()
    """The same path as keys and indices into the data, without the prefix that the caller gave."""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text} ({self.suggestion})" if self.suggestion else text


class ConversionError(KemuError, ValueError):
    """The data is not an object of that kind; ``problems`` holds every mistake, in the order of the data."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


# Public functions ---------------------------------------------------------------------------------------------------


def to_json(message: Message) -> dict[str, Any]:
    """The fields of a message as plain JSON data, without apiVersion and kind."""
    data: dict[str, Any] = {}
    _write_fields(message, data)
    return data


def to_value(message: Message) -> Any:
    """The JSON value of any message, also of those that are no objects in JSON: a Time is a string."""
    plain: Callable[[Any], Any] = _PLAIN.get(message.DESCRIPTOR.full_name, to_json)
    return plain(message)


def to_manifest(message: Message) -> dict[str, Any]:
    """:func:`to_json` of an object, its apiVersion and kind in front. Raises KeyError for a message without kind."""
    api_version, kind = _KINDS[type(message)]
    data: dict[str, Any] = {"apiVersion": api_version, "kind": kind}
    _write_fields(message, data)
    return data


def from_json(message_class: type[M], data: Mapping[str, Any], *, path: str = "") -> M:
    """A message from JSON data. ``apiVersion`` and ``kind`` of an object may be there and must then be right.

    Raises ConversionError with all mistakes: unknown fields, wrong types, texts that do not parse. ``path`` is put in
    front of their paths.
    """
    message = message_class()
    reader = _Reader(path)
    if not isinstance(data, dict):
        reader.problem(None, f"must be an object, not {_kind_of(data)}")
    elif message_class in _KINDS and ("kind" in data or "apiVersion" in data):
        api_version, kind = _KINDS[message_class]
        fields = dict(data)
        for field, wanted in (("apiVersion", api_version), ("kind", kind)):
            found = fields.pop(field, None)
            if found is not None and found != wanted:
                reader.problem((None, field), f"must be {wanted!r}, not {found!r}")
        _read_fields(message, fields, _table(message_class.DESCRIPTOR), None, reader)
    else:
        _read_fields(message, data, _table(message_class.DESCRIPTOR), None, reader)
    if reader.problems:
        raise ConversionError(reader.problems)
    return message


def from_manifest(data: Mapping[str, Any], *, path: str = "") -> Message:
    """The object that a manifest describes. Raises ConversionError, also for an apiVersion and kind that kemu lacks."""
    reader = _Reader(path)
    if not isinstance(data, dict):
        reader.problem(None, f"must be an object, not {_kind_of(data)}")
        raise ConversionError(reader.problems)
    kind, api_version = data.get("kind"), data.get("apiVersion")
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not value:
            reader.problem((None, field), "must be given")
        elif not isinstance(value, str):
            reader.problem((None, field), f"must be a string, not {_kind_of(value)}")
    if reader.problems:
        raise ConversionError(reader.problems)
    row = resources.BY_KIND.get(str(kind))
    if row is None:
        hint = _did_you_mean(str(kind), resources.BY_KIND)
        reader.problem((None, "kind"), f"unknown kind {kind!r}", hint)
    elif row.api_version != api_version:
        reader.problem((None, "apiVersion"), f"{kind} is not in {api_version!r}", f'did you mean "{row.api_version}"?')
    else:
        return from_json(row.message, data, path=path)
    raise ConversionError(reader.problems)


# Reading ------------------------------------------------------------------------------------------------------------

# Where in the data a value stands: None for the top, else its parent's place and the last step. Rendered only when
# there is a problem to report.
_Place = tuple[Any, Step] | None


class _Reader:
    """Collects the problems of one conversion."""

    __slots__ = ("prefix", "problems")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.problems: list[FieldProblem] = []

    def problem(self, place: _Place, message: str, suggestion: str = "") -> None:
        steps: list[Step] = []
        while place is not None:
            place, step = place
            steps.append(step)
        steps.reverse()
        path = self.prefix
        for step in steps:
            if isinstance(step, str):
                path = f"{path}.{step}" if path else step
            else:
                path += f"[{step[0] if isinstance(step, tuple) else step}]"
        plain = tuple(step[0] if isinstance(step, tuple) else step for step in steps)
        self.problems.append(FieldProblem(path, message, suggestion, plain))


_Setter = Callable[[Any, Any, _Place, _Reader], None]
"""Sets one field of a message from its JSON value; gets the place of the value and where to report."""

_Table = dict[str, _Setter]


def _read_fields(message: Any, data: dict[str, Any], table: _Table, place: _Place, reader: _Reader) -> None:
    for name, value in data.items():
        setter = table.get(name)
        if setter is None:
            hint = _did_you_mean(name, table) if isinstance(name, str) else ""
            reader.problem((place, str(name)), f'unknown field "{name}"', hint)
        elif value is not None:
            setter(message, value, (place, name), reader)


@lru_cache(None)
def _table(descriptor: Descriptor) -> _Table:
    table: _Table = {}
    for field in descriptor.fields:
        if is_inline(field):
            for name, setter in _table(field.message_type).items():
                table[name] = _inline_setter(field.name, setter)
        else:
            table[field.name] = _setter(field)
    return table


def is_inline(field: FieldDescriptor) -> bool:
    """Whether the fields of this message stand in the JSON object of its parent."""
    inline: Any = options_pb2.inline
    return bool(field.has_options and field.GetOptions().Extensions[inline])


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """The field of the values, when the field is a map."""
    message_type = field.message_type
    if message_type is None or not message_type.GetOptions().map_entry:
        return None
    return message_type.fields_by_name["value"]


def _inline_setter(field_name: str, setter: _Setter) -> _Setter:
    def set_inline(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
        setter(getattr(message, field_name), value, place, reader)

    return set_inline


def _setter(field: FieldDescriptor) -> _Setter:
    value_field = map_value(field)
    if value_field is not None:
        return _map_setter(field.name, value_field)
    if field.is_repeated:
        return _list_setter(field)
    if field.message_type is not None:
        return _message_setter(field.name, field.message_type)
    return _scalar_setter(field.name, field)


def _scalar_setter(name: str, field: FieldDescriptor) -> _Setter:
    read = _scalar_reader(field)

    def set_scalar(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
        try:
            setattr(message, name, read(value))
        except ValueError as error:
            reader.problem(place, str(error))

    return set_scalar


def _scalar_reader(field: FieldDescriptor) -> Callable[[Any], Any]:
    """A function from a JSON value to the field's value, which raises ValueError."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _read_bytes if field.type == FieldDescriptor.TYPE_BYTES else _read_string
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _read_bool
    if field.cpp_type == FieldDescriptor.CPPTYPE_INT32:
        return _read_int32
    if field.cpp_type == FieldDescriptor.CPPTYPE_INT64:
        return _read_int64
    raise TypeError(f"no JSON form for the field {field.full_name}")


def _read_string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {_kind_of(value)}")
    return value


def _read_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError(f"must be a string of base64, not {_kind_of(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"must be base64: {error}") from None


def _read_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"must be true or false, not {_kind_of(value)}")
    return value


def _read_int32(value: Any) -> int:
    return _read_int(value, 2**31)


def _read_int64(value: Any) -> int:
    return _read_int(value, 2**63)


def _read_int(value: Any, limit: int) -> int:
    if type(value) is not int:
        raise ValueError(f"must be an integer, not {_kind_of(value)}")
    if not -limit <= value < limit:
        raise ValueError(f"must be between {-limit} and {limit - 1}, not {value}")
    return value


def _message_setter(name: str, descriptor: Descriptor) -> _Setter:
    special = _READERS.get(descriptor.full_name)
    if special is not None:

        def set_special(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
            try:
                special(getattr(message, name), value)
            except ValueError as error:
                reader.problem(place, str(error))
            else:
                getattr(message, name).SetInParent()

        return set_special

    table: _Table | None = None

    def set_message(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
        nonlocal table
        if not isinstance(value, dict):
            reader.problem(place, f"must be an object, not {_kind_of(value)}")
            return
        if table is None:
            table = _table(descriptor)
        child = getattr(message, name)
        if not value:
            child.SetInParent()
            return
        _read_fields(child, value, table, place, reader)
        child.SetInParent()

    return set_message


def _list_setter(field: FieldDescriptor) -> _Setter:
    name = field.name
    descriptor = field.message_type
    if descriptor is None:
        read = _scalar_reader(field)

        def set_scalars(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
            if not isinstance(value, list):
                reader.problem(place, f"must be a list, not {_kind_of(value)}")
                return
            target = getattr(message, name)
            for index, item in enumerate(value):
                try:
                    target.append(read(item))
                except ValueError as error:
                    reader.problem((place, index), str(error))

        return set_scalars

    table: _Table | None = None

    def set_messages(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
        nonlocal table
        if not isinstance(value, list):
            reader.problem(place, f"must be a list, not {_kind_of(value)}")
            return
        if table is None:
            table = _table(descriptor)
        target = getattr(message, name)
        for index, item in enumerate(value):
            if isinstance(item, dict):
                _read_fields(target.add(), item, table, (place, index), reader)
            else:
                reader.problem((place, index), f"must be an object, not {_kind_of(item)}")

    return set_messages


def _map_setter(name: str, value_field: FieldDescriptor) -> _Setter:
    descriptor = value_field.message_type
    if descriptor is None:
        read = _scalar_reader(value_field)

        def set_scalars(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
            if not isinstance(value, dict):
                reader.problem(place, f"must be an object, not {_kind_of(value)}")
                return
            target = getattr(message, name)
            for key, item in value.items():
                try:
                    # As in Kubernetes, a label without a value (null) is the empty string.
                    target[_read_key(key)] = read("" if item is None else item)
                except ValueError as error:
                    reader.problem((place, (key,)), str(error))

        return set_scalars

    # All messages that stand in maps have a JSON form of their own.
    special = _READERS[descriptor.full_name]

    def set_specials(message: Any, value: Any, place: _Place, reader: _Reader) -> None:
        if not isinstance(value, dict):
            reader.problem(place, f"must be an object, not {_kind_of(value)}")
            return
        target = getattr(message, name)
        for key, item in value.items():
            try:
                special(target[_read_key(key)], item)
            except ValueError as error:
                reader.problem((place, (key,)), str(error))

    return set_specials


def _read_key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"the key must be a string, not {_kind_of(key)}")
    return key


def _read_quantity(message: Any, value: Any) -> None:
    kind = type(value)
    if kind is not str:
        if value is None:
            value = "0"
        elif kind is int or kind is float:
            value = str(value)
        else:
            raise ValueError(f"must be a quantity such as 500m or 1Gi, not {_kind_of(value)}")
    quantities.parse(value)
    message.string = value


def _read_int_or_string(message: Any, value: Any) -> None:
    if isinstance(value, str):
        message.type = 1
        message.strVal = value
    elif type(value) is int:
        message.type = 0
        message.intVal = _read_int32(value)
    else:
        raise ValueError(f"must be an integer or a string, not {_kind_of(value)}")


def _read_time(message: Any, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"must be a time such as 2006-01-02T15:04:05Z, not {_kind_of(value)}")
    message.seconds = times.parse_time(value) // 1_000_000_000


def _read_micro_time(message: Any, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"must be a time such as 2006-01-02T15:04:05.000000Z, not {_kind_of(value)}")
    message.seconds, message.nanos = divmod(times.parse_time(value), 1_000_000_000)


def _read_fields_v1(message: Any, value: Any) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {_kind_of(value)}")
    message.Raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


_READERS: dict[str, Callable[[Any, Any], None]] = {
    meta_v1_pb2.Quantity.DESCRIPTOR.full_name: _read_quantity,
    meta_v1_pb2.IntOrString.DESCRIPTOR.full_name: _read_int_or_string,
    meta_v1_pb2.Time.DESCRIPTOR.full_name: _read_time,
    meta_v1_pb2.MicroTime.DESCRIPTOR.full_name: _read_micro_time,
    meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name: _read_fields_v1,
}

# Writing ------------------------------------------------------------------------------------------------------------


def _write_fields(message: Any, data: dict[str, Any]) -> None:
    writers = _WRITERS
    for field, value in message.ListFields():
        writer = writers.get(field)
        if writer is None:
            writer = writers[field] = _writer(field)
        writer(value, data)


_Writer = Callable[[Any, dict[str, Any]], None]
"""Puts the value of one field into the JSON object of its message."""

_WRITERS: dict[FieldDescriptor, _Writer] = {}


def _writer(field: FieldDescriptor) -> _Writer:
    name = field.name
    if is_inline(field):
        return _write_fields
    value_field = map_value(field)
    if value_field is not None:
        value_type = value_field.message_type
        write_value = _PLAIN.get(value_type.full_name) if value_type is not None else None

        def write_map(value: Any, data: dict[str, Any]) -> None:
            if write_value is None:
                data[name] = {key: value[key] for key in sorted(value)}
            else:
                data[name] = {key: write_value(value[key]) for key in sorted(value)}

        return write_map
    convert = _converter(field)
    if field.is_repeated:

        def write_list(value: Any, data: dict[str, Any]) -> None:
            data[name] = list(value) if convert is None else [convert(item) for item in value]

        return write_list

    def write_one(value: Any, data: dict[str, Any]) -> None:
        data[name] = value if convert is None else convert(value)

    return write_one


def _converter(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """From a field's value to JSON; None where it is the same."""
    if field.message_type is not None:
        convert: Callable[[Any], Any] = _PLAIN.get(field.message_type.full_name, to_json)
        return convert
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _plain_bytes
    return None


def _plain_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _plain_int_or_string(message: Any) -> int | str:
    return str(message.strVal) if message.type == 1 else int(message.intVal)


def _plain_time(message: Any) -> str | None:
    # A zero time is an unset one, as in Kubernetes.
    return times.format_time(message.seconds) if message.seconds or message.nanos else None


def _plain_micro_time(message: Any) -> str | None:
    return times.format_micro_time(message.seconds, message.nanos) if message.seconds or message.nanos else None


def _plain_fields_v1(message: Any) -> Any:
    try:
        return json.loads(message.Raw)
    except ValueError:
        # Bookkeeping of clients, which nothing here depends on.
        return {}


def _plain_node_selector(message: Any) -> dict[str, Any]:
    """Kubernetes writes the terms of a node selector even when there are none, which then matches nothing."""
    return {"nodeSelectorTerms": None} | to_json(message)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    meta_v1_pb2.Quantity.DESCRIPTOR.full_name: lambda message: message.string,
    meta_v1_pb2.IntOrString.DESCRIPTOR.full_name: _plain_int_or_string,
    meta_v1_pb2.Time.DESCRIPTOR.full_name: _plain_time,
    meta_v1_pb2.MicroTime.DESCRIPTOR.full_name: _plain_micro_time,
    core_v1_pb2.NodeSelector.DESCRIPTOR.full_name: _plain_node_selector,
    meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name: _plain_fields_v1,
}

# ---------------------------------------------------------------------------------------------------------------------

_KINDS: dict[type[Message], tuple[str, str]] = {
    **{resource.message: (resource.api_version, resource.kind) for resource in resources.RESOURCES},
    **resources.SUBRESOURCE_MESSAGES,
}


def _kind_of(value: Any) -> str:
    """What a person calls the type of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the string "{value}"' if len(value) <= 40 else "a string"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return f"a {type(value).__name__}"


def _did_you_mean(name: str, known: Mapping[str, object]) -> str:
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f'did you mean "{by_lower[close[0]]}"?' if close else ""
