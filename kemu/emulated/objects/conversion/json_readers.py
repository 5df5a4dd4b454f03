"""From JSON values to the fields of messages: one table of setters for each message class, built on first use.

Role: the half of :mod:`kemu.emulated.objects.conversion.convert` that reads. It reports all mistakes, each with its
place in the data.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from kemu.emulated.objects import times
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import descriptors, go_json
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.pods import planned_fields
from kemu.errors import KemuError
from kemu.messages.k8s import (
    apiextensions_v1_pb2,
    authentication_v1_pb2,
    certificates_v1_pb2,
    core_v1_pb2,
    meta_v1_pb2,
    resource_v1_pb2,
)
from kemu.runtime import words

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
    """The data does not describe such an object. ``problems`` holds every mistake, in the order of the data."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


Place = tuple[Any, Step] | None
"""The place of a value in the data: None at the top, else the place of its parent and the last step. It is rendered
only for a problem."""


_MOST_HINTS = 100
"""Most hints of one conversion: to find a name that is like another takes long."""


class Reader:
    """Collects the problems of one conversion."""

    __slots__ = ("prefix", "problems")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.problems: list[FieldProblem] = []

    def problem(self, place: Place, message: str, suggestion: str = "") -> None:
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


Setter = Callable[[Any, Any, Place, Reader], None]
"""Sets one field of a message from its JSON value. Its last arguments are the place of the value and the Reader."""

Table = dict[str, Setter]


def read_fields(message: Message, data: dict[str, Any], table: Table, place: Place, reader: Reader) -> None:
    for name, value in data.items():
        setter = table.get(name)
        if setter is None:
            is_told = isinstance(name, str) and len(reader.problems) < _MOST_HINTS
            hint = planned_fields.HINTS.get(name) or words.did_you_mean(name, table, '"') if is_told else ""
            reader.problem((place, str(name)), f'unknown field "{name}"', hint)
        elif value is not None:
            setter(message, value, (place, name), reader)


_CLAIM = core_v1_pb2.PersistentVolumeClaim.DESCRIPTOR


@lru_cache(None)
def table_of(descriptor: Descriptor) -> Table:
    table: Table = {}
    for field in descriptor.fields:
        if descriptors.is_inline(field):
            for name, setter in table_of(field.message_type).items():
                table[name] = _inline_setter(field.name, setter)
        else:
            table[field.json_name] = _setter(field)
    if descriptor is _CLAIM:
        # Within another object, a template of a StatefulSet, too: what they say is not looked at.
        table["apiVersion"] = table["kind"] = _skip_text
    return table


def _skip_text(message: Message, value: Json, place: Place, reader: Reader) -> None:
    if not isinstance(value, str):
        reader.problem(place, f"must be a string, not {kind_of(value)}")


def _inline_setter(field_name: str, setter: Setter) -> Setter:
    def set_inline(message: Message, value: Json, place: Place, reader: Reader) -> None:
        setter(getattr(message, field_name), value, place, reader)

    return set_inline


def _setter(field: FieldDescriptor) -> Setter:
    value_field = descriptors.map_value(field)
    if value_field is not None:
        return _map_setter(field.name, value_field)
    if field.is_repeated:
        return _list_setter(field)
    if field.message_type is not None:
        return _message_setter(field.name, field.message_type)
    return _scalar_setter(field.name, field)


def _scalar_setter(name: str, field: FieldDescriptor) -> Setter:
    read = _scalar_reader(field)

    def set_scalar(message: Message, value: Json, place: Place, reader: Reader) -> None:
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
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return _read_double
    raise TypeError(f"no JSON form for the field {field.full_name}")


def _read_string(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {kind_of(value)}")
    return value


def _read_bytes(value: Json) -> bytes:
    """Of base64, or as Go's decoder reads a list: numbers, and 0 for null."""
    if isinstance(value, list) and all(one is None or (type(one) is int and 0 <= one < 256) for one in value):
        return bytes(one or 0 for one in value)
    if not isinstance(value, str):
        raise ValueError(f"must be a string of base64, not {kind_of(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:  # of binascii, and where there is more than ASCII
        raise ValueError(f"must be base64: {error}") from None


def _read_bool(value: Json) -> bool:
    if type(value) is not bool:
        raise ValueError(f"must be true or false, not {kind_of(value)}")
    return value


def _read_int32(value: Json) -> int:
    return _read_int(value, 2**31)


def _read_int64(value: Json) -> int:
    return _read_int(value, 2**63)


def _read_double(value: Json) -> float:
    if type(value) is not int and type(value) is not float:
        raise ValueError(f"must be a number, not {kind_of(value)}")
    return float(value)


def _read_int(value: Json, limit: int) -> int:
    if type(value) is not int:
        raise ValueError(f"must be an integer, not {kind_of(value)}")
    if not -limit <= value < limit:
        raise ValueError(f"must be between {-limit} and {limit - 1}, not {value}")
    return value


def _message_setter(name: str, descriptor: Descriptor) -> Setter:
    union = _UNIONS.get(descriptor.full_name)
    if union is not None:

        def set_union(message: Message, value: Json, place: Place, reader: Reader) -> None:
            child = getattr(message, name)
            union(child, value, place, reader)
            child.SetInParent()

        return set_union

    special = _READERS.get(descriptor.full_name)
    if special is not None:

        def set_special(message: Message, value: Json, place: Place, reader: Reader) -> None:
            try:
                special(getattr(message, name), value)
            except ValueError as error:
                reader.problem(place, str(error))
            else:
                getattr(message, name).SetInParent()

        return set_special

    table: Table | None = None

    def set_message(message: Message, value: Json, place: Place, reader: Reader) -> None:
        nonlocal table
        if not isinstance(value, dict):
            reader.problem(place, f"must be an object, not {kind_of(value)}")
            return
        if table is None:
            table = table_of(descriptor)
        child = getattr(message, name)
        if not value:
            child.SetInParent()
            return
        read_fields(child, value, table, place, reader)
        child.SetInParent()

    return set_message


def _list_setter(field: FieldDescriptor) -> Setter:
    name = field.name
    descriptor = field.message_type
    if descriptor is None:
        read = _scalar_reader(field)

        def set_scalars(message: Message, value: Json, place: Place, reader: Reader) -> None:
            if not isinstance(value, list):
                reader.problem(place, f"must be a list, not {kind_of(value)}")
                return
            target = getattr(message, name)
            for index, item in enumerate(value):
                try:
                    target.append(read(item))
                except ValueError as error:
                    reader.problem((place, index), str(error))

        return set_scalars

    special = _READERS.get(descriptor.full_name)
    if special is not None:

        def set_specials(
            message: resource_v1_pb2.CapacityRequestPolicy, value: Json, place: Place, reader: Reader
        ) -> None:
            if not isinstance(value, list):
                reader.problem(place, f"must be a list, not {kind_of(value)}")
                return
            target = getattr(message, name)
            for index, item in enumerate(value):
                try:
                    special(target.add(), item)
                except ValueError as error:
                    reader.problem((place, index), str(error))

        return set_specials

    table: Table | None = None

    def set_messages(message: Message, value: Json, place: Place, reader: Reader) -> None:
        nonlocal table
        if not isinstance(value, list):
            reader.problem(place, f"must be a list, not {kind_of(value)}")
            return
        if table is None:
            table = table_of(descriptor)
        target = getattr(message, name)
        for index, item in enumerate(value):
            if isinstance(item, dict):
                read_fields(target.add(), item, table, (place, index), reader)
            else:
                reader.problem((place, index), f"must be an object, not {kind_of(item)}")

    return set_messages


def _map_setter(name: str, value_field: FieldDescriptor) -> Setter:
    descriptor = value_field.message_type
    if descriptor is None:
        read = _scalar_reader(value_field)

        def set_scalars(message: Message, value: Json, place: Place, reader: Reader) -> None:
            if not isinstance(value, dict):
                reader.problem(place, f"must be an object, not {kind_of(value)}")
                return
            target = getattr(message, name)
            for key, item in value.items():
                try:
                    # As in Kubernetes, a label without a value (null) is the empty string.
                    target[_read_key(key)] = read("" if item is None else item)
                except ValueError as error:
                    reader.problem((place, (key,)), str(error))

        return set_scalars

    union = _UNIONS.get(descriptor.full_name)
    if union is not None:

        def set_unions(message: Message, value: Json, place: Place, reader: Reader) -> None:
            if not isinstance(value, dict):
                reader.problem(place, f"must be an object, not {kind_of(value)}")
                return
            for key, item in value.items():
                union(getattr(message, name)[_read_key(key)], item, (place, (key,)), reader)

        return set_unions

    special = _READERS.get(descriptor.full_name)
    if special is None:

        def set_messages(message: resource_v1_pb2.Device, value: Json, place: Place, reader: Reader) -> None:
            if not isinstance(value, dict):
                reader.problem(place, f"must be an object, not {kind_of(value)}")
                return
            target = getattr(message, name)
            for key, item in value.items():
                if not isinstance(key, str):
                    reader.problem((place, (key,)), f"the key must be a string, not {kind_of(key)}")
                elif isinstance(item, dict):
                    read_fields(target[key], item, table_of(descriptor), (place, (key,)), reader)
                else:
                    reader.problem((place, (key,)), f"must be an object, not {kind_of(item)}")

        return set_messages

    def set_specials(message: Message, value: Json, place: Place, reader: Reader) -> None:
        if not isinstance(value, dict):
            reader.problem(place, f"must be an object, not {kind_of(value)}")
            return
        target = getattr(message, name)
        for key, item in value.items():
            try:
                special(target[_read_key(key)], item)
            except ValueError as error:
                reader.problem((place, (key,)), str(error))

    return set_specials


def _read_key(key: Json) -> str:
    if not isinstance(key, str):
        raise ValueError(f"the key must be a string, not {kind_of(key)}")
    return key


def _read_quantity(message: meta_v1_pb2.Quantity, value: Json) -> None:
    if not isinstance(value, str):
        if value is None:
            value = "0"
        elif type(value) is int or type(value) is float:
            value = str(value)
        else:
            raise ValueError(f"must be a quantity such as 500m or 1Gi, not {kind_of(value)}")
    message.string = quantities.held(value)


def _read_int_or_string(message: meta_v1_pb2.IntOrString, value: Json) -> None:
    if isinstance(value, str):
        message.type = 1
        message.strVal = value
    elif type(value) is int:
        message.type = 0
        message.intVal = _read_int32(value)
    else:
        raise ValueError(f"must be an integer or a string, not {kind_of(value)}")


def _read_time(message: meta_v1_pb2.Time, value: Json) -> None:
    if not isinstance(value, str):
        raise ValueError(f"must be a time such as 2006-01-02T15:04:05Z, not {kind_of(value)}")
    message.seconds = times.parse_time(value) // 1_000_000_000


_MICROS = re.compile(r"[.,][0-9]{6}(Z|[+-][0-9:]+)\Z")
"""Kubernetes takes neither more digits of a second nor less."""


def _read_micro_time(message: meta_v1_pb2.MicroTime, value: Json) -> None:
    what = "must be a time such as 2006-01-02T15:04:05.000000Z, not"
    if not isinstance(value, str):
        raise ValueError(f"{what} {kind_of(value)}")
    if not _MICROS.search(value):
        raise ValueError(f"{what} {value!r}")
    message.seconds, message.nanos = divmod(times.parse_time(value), 1_000_000_000)


def _read_fields_v1(message: meta_v1_pb2.FieldsV1, value: Json) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {kind_of(value)}")
    message.Raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _read_raw_extension(message: meta_v1_pb2.RawExtension, value: Json) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, not {kind_of(value)}")
    message.raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _read_json(message: apiextensions_v1_pb2.JSON, value: Json) -> None:
    message.raw = go_json.encode(value)


_SCHEMA: Any = apiextensions_v1_pb2.JSONSchemaProps.DESCRIPTOR


def _read_schema(message: Message, value: dict[str, Any], place: Place, reader: Reader) -> None:
    read_fields(message, value, table_of(_SCHEMA), place, reader)


def _read_schema_or_bool(
    message: apiextensions_v1_pb2.JSONSchemaPropsOrBool, value: Json, place: Place, reader: Reader
) -> None:
    if isinstance(value, bool):
        message.allows = value
    elif isinstance(value, dict):
        message.allows = True
        message.schema.SetInParent()
        _read_schema(message.schema, value, place, reader)
    else:
        reader.problem(place, f"must be true, false or a schema, not {kind_of(value)}")


def _read_schema_or_list(
    message: apiextensions_v1_pb2.JSONSchemaPropsOrArray, value: Json, place: Place, reader: Reader
) -> None:
    if isinstance(value, dict):
        message.schema.SetInParent()
        _read_schema(message.schema, value, place, reader)
        return
    if not isinstance(value, list):
        reader.problem(place, f"must be a schema or a list of schemas, not {kind_of(value)}")
        return
    for index, item in enumerate(value):
        if isinstance(item, dict):
            _read_schema(message.jSONSchemas.add(), item, (place, index), reader)
        else:
            reader.problem((place, index), f"must be an object, not {kind_of(item)}")


def _read_schema_or_texts(
    message: apiextensions_v1_pb2.JSONSchemaPropsOrStringArray, value: Json, place: Place, reader: Reader
) -> None:
    if isinstance(value, dict):
        message.schema.SetInParent()
        _read_schema(message.schema, value, place, reader)
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        message.property.extend(value)
    else:
        reader.problem(place, f"must be a schema or a list of strings, not {kind_of(value)}")


_UNIONS: dict[str, Callable[[Any, Any, Place, Reader], None]] = {
    apiextensions_v1_pb2.JSONSchemaPropsOrBool.DESCRIPTOR.full_name: _read_schema_or_bool,
    apiextensions_v1_pb2.JSONSchemaPropsOrArray.DESCRIPTOR.full_name: _read_schema_or_list,
    apiextensions_v1_pb2.JSONSchemaPropsOrStringArray.DESCRIPTOR.full_name: _read_schema_or_texts,
}
"""Messages that stand for values of several types, of which some hold fields in turn."""


def _read_extra(message: authentication_v1_pb2.ExtraValue | certificates_v1_pb2.ExtraValue, value: Json) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"must be a list of strings, not {kind_of(value)}")
    message.items.extend(value)


_READERS: dict[str, Callable[[Any, Any], None]] = {
    apiextensions_v1_pb2.JSON.DESCRIPTOR.full_name: _read_json,
    meta_v1_pb2.Quantity.DESCRIPTOR.full_name: _read_quantity,
    meta_v1_pb2.IntOrString.DESCRIPTOR.full_name: _read_int_or_string,
    meta_v1_pb2.Time.DESCRIPTOR.full_name: _read_time,
    meta_v1_pb2.MicroTime.DESCRIPTOR.full_name: _read_micro_time,
    meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name: _read_fields_v1,
    meta_v1_pb2.RawExtension.DESCRIPTOR.full_name: _read_raw_extension,
    authentication_v1_pb2.ExtraValue.DESCRIPTOR.full_name: _read_extra,
    certificates_v1_pb2.ExtraValue.DESCRIPTOR.full_name: _read_extra,
}


def kind_of(value: Json) -> str:
    """The name of the type of a JSON value in messages to people."""
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
