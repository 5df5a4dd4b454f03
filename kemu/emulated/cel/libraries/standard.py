"""The standard functions: operators, conversions, sizes, strings, times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kemu.emulated.cel import numbers, times, types
from kemu.emulated.cel.bounds import bounded
from kemu.emulated.cel.declarations import Functions, Overload
from kemu.emulated.cel.evaluation import access, patterns
from kemu.emulated.cel.libraries import conversions
from kemu.emulated.cel.times import Duration, Timestamp
from kemu.emulated.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type
from kemu.emulated.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_OVERLOAD,
    UINT_MAX,
    Error,
    ListLike,
    MapLike,
    MutableList,
    Uint,
    Value,
    contains,
    equal,
    find,
    is_list,
    is_map,
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
        if other is not kind:
            return NO_OVERLOAD
        bounded(len(left) + len(right))
        return left + right
    if kind is MutableList:
        if not is_list(right):
            return NO_OVERLOAD
        bounded(len(left) + len(right))
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
    bounded(len(left) + len(right))
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
    if isinstance(aggregate, MapLike):
        return aggregate.contains(value)
    if is_map(aggregate):
        found, present = find(aggregate, value)
        return found if type(found) is Error else present
    return contains(aggregate, value) if is_list(aggregate) else NO_OVERLOAD


def _not_equal(left: Value, right: Value) -> Value:
    return equal(left, right) is not True


def _size(value: Value) -> Value:
    return len(value)


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
    conversions.declare(functions)
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
