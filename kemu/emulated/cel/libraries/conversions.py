"""Conversions between types: ``int(x)``, ``string(x)``, ``timestamp(x)`` and the others."""

from __future__ import annotations

import math
from typing import Final

from kemu.emulated.cel import numbers, times, types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.times import Duration, Timestamp
from kemu.emulated.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT
from kemu.emulated.cel.values import INT_MAX, INT_MIN, UINT_MAX, Constructed, Error, TypeValue, Uint, Value, type_name

_A: Final = types.param("A")
_INT_OVERFLOW: Final = Error("integer overflow")
_UINT_OVERFLOW: Final = Error("unsigned integer overflow")
_TIMESTAMP_OVERFLOW: Final = Error("timestamp overflow")


def _refuse(value: Value, to: str) -> Error:
    return Error(f"type conversion error from '{type_name(value)}' to '{to}'")


def _to_bool(value: Value) -> Value:
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    return False if value in ("0", "f", "F", "false", "FALSE", "False") else _refuse(value, "bool")


def _to_bytes(value: Value) -> Value:
    return value.encode()


def _to_double(value: Value) -> Value:
    if type(value) is str:
        number = numbers.parse_double(value)
        return _refuse(value, "double") if number is None else number
    return float(value)


def _to_int(value: Value) -> Value:
    match value:
        case str():
            number = numbers.parse_integer(value, INT_MIN, INT_MAX)
            return _refuse(value, "int") if number is None else number
        case float():
            return int(value) if not math.isnan(value) and -(2.0**63) < value < 2.0**63 else _INT_OVERFLOW
        case Duration():
            return value.nanoseconds
        case Timestamp():
            return value.seconds
        case _:
            return int(value) if value <= INT_MAX else _INT_OVERFLOW


def _to_uint(value: Value) -> Value:
    match value:
        case str():
            number = numbers.parse_integer(value, 0, UINT_MAX)
            return _refuse(value, "uint") if number is None else Uint(number)
        case float():
            return Uint(int(value)) if not math.isnan(value) and 0 <= value < 2.0**64 else _UINT_OVERFLOW
        case _:
            return Uint(int(value)) if 0 <= value <= UINT_MAX else _UINT_OVERFLOW


def to_string(value: Value) -> Value:
    """``string(value)`` of any type that has one."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return Error("invalid UTF-8 in bytes, cannot convert to string")
        case float():
            return numbers.shortest(value)
        case int():
            return str(int(value))
        case TypeValue():
            return value.name
        case None:
            return "null"
        case _:
            return str(value)


def _to_duration(value: Value) -> Value:
    if type(value) is int:
        return _refuse(value, "google.protobuf.Duration")
    parsed = times.parse_duration(value)
    return _refuse(value, "google.protobuf.Duration") if parsed is None else parsed


def _to_timestamp(value: Value) -> Value:
    if type(value) is int:
        return Timestamp(value) if times.FIRST_SECOND <= value <= times.LAST_SECOND else _TIMESTAMP_OVERFLOW
    parsed = times.parse_timestamp(value)
    if parsed is None:
        return _refuse(value, "google.protobuf.Timestamp")
    return parsed if times.in_range(parsed) else _TIMESTAMP_OVERFLOW


def _identity(value: Value) -> Value:
    return value


def _type(value: Value) -> Value:
    return TypeValue("type" if isinstance(value, Constructed) else type_name(value))


def declare(functions: Functions) -> None:
    free = functions.free
    functions.singleton("type", [("type", (_A,), types.type_of(_A))], _type)
    functions.singleton("dyn", [("to_dyn", (_A,), DYN)], _identity)
    free("bool", "bool_to_bool", (BOOL,), BOOL, _identity)
    free("bool", "string_to_bool", (STRING,), BOOL, _to_bool)
    free("bytes", "bytes_to_bytes", (BYTES,), BYTES, _identity)
    free("bytes", "string_to_bytes", (STRING,), BYTES, _to_bytes)
    free("double", "double_to_double", (DOUBLE,), DOUBLE, _identity)
    for name, kind in (("int64", INT), ("string", STRING), ("uint64", UINT)):
        free("double", f"{name}_to_double", (kind,), DOUBLE, _to_double)
    free("duration", "duration_to_duration", (DURATION,), DURATION, _identity)
    for name, kind in (("int64", INT), ("string", STRING)):
        free("duration", f"{name}_to_duration", (kind,), DURATION, _to_duration)
    free("int", "int64_to_int64", (INT,), INT, _identity)
    for name, kind in (
        ("double", DOUBLE),
        ("duration", DURATION),
        ("string", STRING),
        ("timestamp", TIMESTAMP),
        ("uint64", UINT),
    ):
        free("int", f"{name}_to_int64", (kind,), INT, _to_int)
    for name, kind in (
        ("string", STRING),
        ("bool", BOOL),
        ("bytes", BYTES),
        ("double", DOUBLE),
        ("duration", DURATION),
        ("int64", INT),
        ("timestamp", TIMESTAMP),
        ("uint64", UINT),
    ):
        free("string", f"{name}_to_string", (kind,), STRING, to_string)
    free("timestamp", "timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _identity)
    for name, kind in (("int64", INT), ("string", STRING)):
        free("timestamp", f"{name}_to_timestamp", (kind,), TIMESTAMP, _to_timestamp)
    free("uint", "uint64_to_uint64", (UINT,), UINT, _identity)
    for name, kind in (("double", DOUBLE), ("int64", INT), ("string", STRING)):
        free("uint", f"{name}_to_uint64", (kind,), UINT, _to_uint)
