"""The standard functions: operators, conversions, sizes, strings, times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kemu.emulated.cel import access, numbers, patterns, times, types
from kemu.emulated.cel.declarations import Functions, Overload
from kemu.emulated.cel.times import Duration, Timestamp
from kemu.emulated.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type
from kemu.emulated.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_OVERLOAD,
    UINT_MAX,
    Error,
    ListLike,
    MapLike,
    MutableList,
    TypeValue,
    Uint,
    Value,
    contains,
    find,
    is_list,
    is_map,
    type_name,
)

_A: Final = types.param("A")
_B: Final = types.param("B")
_LIST: Final = types.list_of(_A)
_MAP: Final = types.map_of(_A, _B)
_INT_OVERFLOW: Final = Error("integer overflow")
_UINT_OVERFLOW: Final = Error("unsigned integer overflow")
_TIMESTAMP_OVERFLOW: Final = Error("timestamp overflow")

_ADDERS: Final = frozenset({int, Uint, float, str, bytes, list, MutableList, Duration, Timestamp})
_SUBTRACTORS: Final = frozenset({int, Uint, float, Duration, Timestamp})
_MULTIPLIERS: Final = frozenset({int, Uint, float})
_MODDERS: Final = frozenset({int, Uint})
_NEGATERS: Final = frozenset({int, float, bool, Duration})
_COMPARERS: Final = frozenset({bool, int, Uint, float, str, bytes, Duration, Timestamp})


def is_comparer(value: Value) -> bool:
    return type(value) in _COMPARERS


def integer(number: int) -> Value:
    """An int, or the error of an overflow."""
    return number if INT_MIN <= number <= INT_MAX else _INT_OVERFLOW


def _unsigned(number: int) -> Value:
    return Uint(number) if 0 <= number <= UINT_MAX else _UINT_OVERFLOW


def add(left: Value, right: Value) -> Value:
    """``left + right``."""
    kind, other = type(left), type(right)
    if kind is int:
        return integer(left + right) if other is int else NO_OVERLOAD
    if kind is str or kind is bytes:
        return left + right if other is kind else NO_OVERLOAD
    if kind is MutableList:
        if not is_list(right):
            return NO_OVERLOAD
        left.extend(right)
        return left
    if kind is list:
        return _concatenate(left, right)
    if isinstance(left, ListLike):
        return left.add(right)
    if kind is float:
        return left + right if other is float else NO_OVERLOAD
    if kind is Uint:
        return _unsigned(int(left) + int(right)) if other is Uint else NO_OVERLOAD
    if kind is Duration:
        if other is Duration:
            total = integer(left.nanoseconds + right.nanoseconds)
            return total if type(total) is Error else Duration(total)
        return times.add(right, left.nanoseconds) if other is Timestamp else NO_OVERLOAD
    return times.add(left, right.nanoseconds) if other is Duration else NO_OVERLOAD


def _concatenate(left: Value, right: Value) -> Value:
    if not is_list(right):
        return NO_OVERLOAD
    if not left:
        return right
    return left if len(right) == 0 else [*left, *right]


def _subtract(left: Value, right: Value) -> Value:
    kind, other = type(left), type(right)
    if kind is Timestamp:
        if other is Duration:
            return times.add(left, -right.nanoseconds) if right.nanoseconds != INT_MIN else _INT_OVERFLOW
        return times.between(left, right) if other is Timestamp else NO_OVERLOAD
    if other is not kind:
        return NO_OVERLOAD
    if kind is int:
        return integer(left - right)
    if kind is Uint:
        return _unsigned(int(left) - int(right))
    if kind is float:
        return left - right
    total = integer(left.nanoseconds - right.nanoseconds)
    return total if type(total) is Error else Duration(total)


def _multiply(left: Value, right: Value) -> Value:
    if type(left) is not type(right):
        return NO_OVERLOAD
    if type(left) is int:
        return integer(left * right)
    return _unsigned(int(left) * int(right)) if type(left) is Uint else left * right


def _divide(left: Value, right: Value) -> Value:
    if type(left) is not type(right):
        return NO_OVERLOAD
    if type(left) is float:
        if right == 0.0:
            if left == 0.0 or math.isnan(left):
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1.0, right)
        return left / right
    if right == 0:
        return Error("division by zero")
    if type(left) is Uint:
        return Uint(int(left) // int(right))
    return integer(numbers.truncated_division(left, right))


def _modulo(left: Value, right: Value) -> Value:
    if type(left) is not type(right):
        return NO_OVERLOAD
    if right == 0:
        return Error("modulus by zero")
    if type(left) is Uint:
        return Uint(int(left) % int(right))
    if left == INT_MIN and right == -1:
        return _INT_OVERFLOW
    return left - right * numbers.truncated_division(left, right)


def _negate(value: Value) -> Value:
    if type(value) is int:
        return integer(-value)
    if type(value) is float:
        return -value
    if type(value) is bool:
        return NO_OVERLOAD
    return Duration(-value.nanoseconds) if value.nanoseconds != INT_MIN else _INT_OVERFLOW


def compare(left: Value, right: Value) -> int | Error:
    """-1, 0 or 1; an `Error` where two values have no order."""
    kind, other = type(left), type(right)
    if kind in _MULTIPLIERS:
        if kind is float and math.isnan(left):
            return Error("NaN values cannot be ordered")
        if other not in _MULTIPLIERS:
            return NO_OVERLOAD
        order = numbers.order(left, right)
        return Error("NaN values cannot be ordered") if order is None else order
    if other is not kind:
        return NO_OVERLOAD
    if kind is Timestamp:
        left, right = left.key, right.key
    elif kind is Duration:
        left, right = left.nanoseconds, right.nanoseconds
    return int(left > right) - int(left < right)


def _ordering(accepted: frozenset[int]) -> Callable[[Value, Value], Value]:
    def call(left: Value, right: Value) -> Value:
        if type(left) is int and type(right) is int:
            return ((left > right) - (left < right)) in accepted
        order = compare(left, right)
        return order if isinstance(order, Error) else order in accepted

    return call


def _not(value: Value) -> Value:
    return not value if type(value) is bool else NO_OVERLOAD


def _not_strictly_false(value: Value) -> Value:
    return value if type(value) is bool else True


def _in(value: Value, aggregate: Value) -> Value:
    if is_map(aggregate):
        found, present = find(aggregate, value)
        return found if type(found) is Error else present
    return contains(aggregate, value) if is_list(aggregate) else NO_OVERLOAD


def _not_equal(left: Value, right: Value) -> Value:
    from kemu.emulated.cel.values import equal

    return equal(left, right) is not True


def _size(value: Value) -> Value:
    return len(value)


# Conversions


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
            return _unsigned(int(value))


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
    return TypeValue(type_name(value))


# Strings and times


def _string_test(test: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    def call(value: Value, other: Value) -> Value:
        return test(value, other) if type(value) is str and type(other) is str else NO_OVERLOAD

    return call


def _matches(value: Value, pattern: Value) -> Value:
    if type(pattern) is not str:
        return NO_OVERLOAD
    compiled = patterns.compiled(pattern)
    return compiled if isinstance(compiled, Error) else patterns.search(compiled, value) is not None


_PARTS: Final[dict[str, Callable[[Timestamp, int], int]]] = {
    "getFullYear": lambda moment, offset: moment.fields(offset).year,
    "getMonth": lambda moment, offset: moment.fields(offset).month - 1,
    "getDayOfYear": lambda moment, offset: moment.fields(offset).timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment, offset: moment.fields(offset).day - 1,
    "getDate": lambda moment, offset: moment.fields(offset).day,
    "getDayOfWeek": lambda moment, offset: moment.fields(offset).isoweekday() % 7,
    "getHours": lambda moment, offset: moment.fields(offset).hour,
    "getMinutes": lambda moment, offset: moment.fields(offset).minute,
    "getSeconds": lambda moment, offset: moment.fields(offset).second,
    "getMilliseconds": lambda moment, offset: moment.nanoseconds // 1_000_000,
}
_PART_OVERLOADS: Final = {
    "getFullYear": "year",
    "getMonth": "month",
    "getDayOfYear": "day_of_year",
    "getDayOfMonth": "day_of_month",
    "getDate": "day_of_month_1_based",
    "getDayOfWeek": "day_of_week",
    "getHours": "hours",
    "getMinutes": "minutes",
    "getSeconds": "seconds",
    "getMilliseconds": "milliseconds",
}
_SPANS: Final = {
    "getHours": 3600 * times.SECOND,
    "getMinutes": 60 * times.SECOND,
    "getSeconds": times.SECOND,
    "getMilliseconds": 1_000_000,
}


def _part_in_zone(part: Callable[[Timestamp, int], int]) -> Callable[[Value, Value], Value]:
    def call(moment: Value, zone: Value) -> Value:
        offset = times.offset_of(zone, moment)
        return offset if isinstance(offset, Error) else part(moment, offset)

    return call


def declare(functions: Functions) -> None:
    """All of them."""
    _declare_operators(functions)
    _declare_comparisons(functions)
    _declare_conversions(functions)
    _declare_strings(functions)
    _declare_times(functions)


def _declare_operators(functions: Functions) -> None:
    single = functions.singleton
    single("_?_:_", [("conditional", (BOOL, _A, _A), _A)], None)
    single("_&&_", [("logical_and", (BOOL, BOOL), BOOL)], None)
    single("_||_", [("logical_or", (BOOL, BOOL), BOOL)], None)
    single("!_", [("logical_not", (BOOL,), BOOL)], _not)
    lenient = functions.declare(
        "@not_strictly_false", [Overload("not_strictly_false", (BOOL,), BOOL, False, _not_strictly_false)]
    )
    lenient.strict = False
    from kemu.emulated.cel.values import equal

    single("_==_", [("equals", (_A, _A), BOOL)], equal)
    single("_!=_", [("not_equals", (_A, _A), BOOL)], _not_equal)
    sums: list[tuple[str, tuple[Type, ...], Type]] = [
        ("add_bytes", (BYTES, BYTES), BYTES),
        ("add_double", (DOUBLE, DOUBLE), DOUBLE),
        ("add_duration_duration", (DURATION, DURATION), DURATION),
        ("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        ("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("add_int64", (INT, INT), INT),
        ("add_list", (_LIST, _LIST), _LIST),
        ("add_string", (STRING, STRING), STRING),
        ("add_uint64", (UINT, UINT), UINT),
    ]
    single("_+_", sums, add, lambda value: type(value) in _ADDERS or isinstance(value, ListLike))
    differences: list[tuple[str, tuple[Type, ...], Type]] = [
        ("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
        ("subtract_duration_duration", (DURATION, DURATION), DURATION),
        ("subtract_int64", (INT, INT), INT),
        ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
        ("subtract_uint64", (UINT, UINT), UINT),
    ]
    single("_-_", differences, _subtract, lambda value: type(value) in _SUBTRACTORS)
    for name, prefix, compute in (("_*_", "multiply", _multiply), ("_/_", "divide", _divide)):
        overloads = [
            (f"{prefix}_{suffix}", (kind, kind), kind)
            for suffix, kind in (("double", DOUBLE), ("int64", INT), ("uint64", UINT))
        ]
        single(name, overloads, compute, lambda value: type(value) in _MULTIPLIERS)
    modulo = [("modulo_int64", (INT, INT), INT), ("modulo_uint64", (UINT, UINT), UINT)]
    single("_%_", modulo, _modulo, lambda value: type(value) in _MODDERS)
    negations = [("negate_double", (DOUBLE,), DOUBLE), ("negate_int64", (INT,), INT)]
    single("-_", negations, _negate, lambda value: type(value) in _NEGATERS)
    indexes: list[tuple[str, tuple[Type, ...], Type]] = [
        ("index_list", (_LIST, INT), _A),
        ("index_map", (_MAP, _A), _B),
    ]
    single("_[_]", indexes, lambda value, key: access.get(value, key, False))
    single("@in", [("in_list", (_A, _LIST), BOOL), ("in_map", (_A, _MAP), BOOL)], _in)
    sized = {BYTES.name: BYTES, "list": _LIST, "map": _MAP, STRING.name: STRING}
    functions.declare("size", [])
    for name, kind in sized.items():
        functions.declare(
            "size", [Overload(f"size_{name}", (kind,), INT), Overload(f"{name}_size", (kind,), INT, True)]
        )
    single("size", [], _size, lambda value: isinstance(value, str | bytes | list | dict | ListLike | MapLike))


_COMPARABLE: Final = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


def _declare_comparisons(functions: Functions) -> None:
    for name, prefix, accepted in (
        ("_<_", "less", {-1}),
        ("_<=_", "less_equals", {-1, 0}),
        ("_>_", "greater", {1}),
        ("_>=_", "greater_equals", {0, 1}),
    ):
        overloads = [(f"{prefix}_{suffix}", (left, right), BOOL) for suffix, left, right in _COMPARABLE]
        functions.singleton(name, overloads, _ordering(frozenset(accepted)), is_comparer)


def _declare_conversions(functions: Functions) -> None:
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


def _declare_strings(functions: Functions) -> None:
    for name, overload, test in (
        ("contains", "contains_string", lambda value, other: other in value),
        ("endsWith", "ends_with_string", str.endswith),
        ("startsWith", "starts_with_string", str.startswith),
    ):
        functions.member(name, overload, (STRING, STRING), BOOL, _string_test(test))
        found = functions.find(name)
        assert found is not None
        found.unguarded = True
    functions.declare(
        "matches",
        [Overload("matches", (STRING, STRING), BOOL), Overload("matches_string", (STRING, STRING), BOOL, True)],
    )
    functions.singleton("matches", [], _matches, lambda value: type(value) is str)


def _declare_times(functions: Functions) -> None:
    for name, part in _PARTS.items():
        suffix = _PART_OVERLOADS[name]
        in_zone = "seconds_tz" if name == "getSeconds" else f"{suffix}_with_tz"
        functions.member(name, f"timestamp_to_{suffix}", (TIMESTAMP,), INT, lambda moment, part=part: part(moment, 0))
        functions.member(name, f"timestamp_to_{in_zone}", (TIMESTAMP, STRING), INT, _part_in_zone(part))
        if name in _SPANS:
            unit = _SPANS[name]
            functions.member(
                name,
                f"duration_to_{suffix}",
                (DURATION,),
                INT,
                lambda span, unit=unit: numbers.truncated_division(span.nanoseconds, unit),
            )
