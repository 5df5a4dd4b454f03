"""What calls cost when they are made: cel-go's tracker with Kubernetes' estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from kemu.emulated.cel.bounds import Panicked
from kemu.emulated.cel.values import (
    Error,
    ListLike,
    MapLike,
    Opaque,
    Value,
    extent,
    go_type,
    is_list,
    item,
    type_name,
)

_ADDABLE: Final = frozenset(
    ["int", "uint", "double", "string", "bytes", "google.protobuf.Duration", "google.protobuf.Timestamp"]
)
#: A fixed cost, or what computes it from the arguments and the result.
CallCost: TypeAlias = int | Callable[[list[Value], Value], int]

REGEX_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
#: Functions that are computed at once for a constant.
CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
AUTHORIZATION_CHECK: Final = 350_000
STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25

#: Functions whose calls cost one.
FIXED: Final = frozenset(
    [
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
_TRAVERSE: Final = frozenset(
    [
        "url",
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "jsonpatch.escapeKey",
        "cidr",
        "isIP",
        "isCIDR",
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
    ]
)
_TRAVERSE_OVERLOADS: Final = frozenset(
    ["starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote", "string_format"]
)
_COMPARE_OVERLOADS: Final = frozenset(
    f"{comparison}_{kind}"
    for comparison in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
)


def of_call(function: str, overload: str) -> CallCost:
    """The cost of calls of a function; `overload` is empty if only the run time can tell it."""
    own = _OWN.get(overload)
    if own is not None:
        return own
    if overload.startswith("list_") and overload.endswith("_sort"):
        return lambda arguments, result: _self_comparison(arguments[0])
    if overload.endswith("_sortByAssociatedKeys"):
        return lambda arguments, result: _self_comparison(arguments[1])
    if function == "check":
        return AUTHORIZATION_CHECK
    if function in FIXED or overload == "cidr_ip":
        return 1
    if function in _TRAVERSE or function == "ip":
        return lambda arguments, result: _traversal(extent(arguments[0]))
    by_name = _BY_NAME.get(function)
    if by_name is not None:
        return by_name
    if function == "_==_" or overload == "not_equals" or overload in _COMPARE_OVERLOADS:
        return _comparison if function != "_==_" else _equality
    if overload in _TRAVERSE_OVERLOADS:
        return lambda arguments, result: _traversal(extent(arguments[0]))
    return _BY_OVERLOAD.get(overload, 1)


def _traversal(size: int, factor: float = STRING_FACTOR) -> int:
    return math.ceil(float(size) * factor)


def _comparison(arguments: list[Value], result: Value) -> int:
    return _traversal(min(extent(arguments[0]), extent(arguments[1])))


def _equality(arguments: list[Value], result: Value) -> int:
    if isinstance(arguments[0], Opaque) and arguments[0].constant_equality:
        return 1
    return _comparison(arguments, result)


def _regex(text: Value, pattern_size: int) -> int:
    return math.ceil((1.0 + extent(text)) * STRING_FACTOR) * math.ceil(pattern_size * REGEX_FACTOR)


def _selector(arguments: list[Value], result: Value) -> int:
    size = extent(arguments[1])
    return 10 + _traversal(size) + _traversal(_traversal(size, 0.5), 50.0)


def _contains_ip(arguments: list[Value], result: Value) -> int:
    return _traversal(2 * extent(arguments[0]))


def _contains_cidr(arguments: list[Value], result: Value) -> int:
    return _traversal(2 * extent(arguments[0])) + _traversal(extent(arguments[0])) + 1


def _with_parsing(cost: Callable[[list[Value], Value], int]) -> CallCost:
    return lambda arguments, result: cost(arguments, result) + _traversal(extent(arguments[1]))


def _validate(arguments: list[Value], result: Value) -> int:
    pattern_size = getattr(arguments[0], "pattern_size", None)
    return 1 if pattern_size is None else _regex(arguments[1], pattern_size)


def _walk(arguments: list[Value], result: Value) -> int:
    """The cost of visiting all that is within the first argument."""
    cost, stack = 0, [arguments[0]]
    while stack:
        value = stack.pop()
        if type(value) is str:
            cost += int(len(value.encode()) * STRING_FACTOR)
        elif type(value) is bytes:
            cost += int(len(value) * STRING_FACTOR)
        elif isinstance(value, list | ListLike):
            stack.extend(value)
        elif isinstance(value, dict):
            stack.extend(value.keys())
            stack.extend(value.values())
        elif isinstance(value, MapLike):
            for key in value:
                stack.extend((key, value.find(key)[0]))
        else:
            cost += 1
    return cost


def _allocation(factor: float, size: int) -> int:
    return int(size * factor) + 11


def _self_comparison(values: Value) -> int:
    if not is_list(values):
        # cel-go's tracker takes its argument for a list, whatever failed before.
        missing = "Contains" if type_name(values) in _ADDABLE else "Add"
        given = "*types.Err" if type(values) is Error else go_type(values)
        lister = f"{given} is not traits.Lister: missing method {missing}"
        raise Panicked(f"internal error: interface conversion: {lister}")
    size = extent(values)
    factor = 2.0
    if size and type(item(values, 0)) in (str, bytes):
        factor += STRING_FACTOR
    return _allocation(factor, size * size)


def _sets(factor: float) -> CallCost:
    return lambda arguments, result: 1 + int(extent(arguments[0]) * extent(arguments[1]) * factor)


def _output(arguments: list[Value], result: Value) -> int:
    return _allocation(1, extent(result))


def _flattening(arguments: list[Value], result: Value) -> int:
    if len(arguments) == 2 and type(arguments[1]) is not int:
        given = "*types.Err" if type(arguments[1]) is Error else go_type(arguments[1])
        raise Panicked(f"internal error: interface conversion: ref.Val is {given}, not types.Int")
    depth = float(arguments[1]) if len(arguments) == 2 else 1.0
    return _allocation(depth, extent(arguments[0]))


_OWN: Final[dict[str, CallCost]] = {
    "cidr_contains_ip_string": _with_parsing(_contains_ip),
    "cidr_contains_cidr_string": _with_parsing(_contains_cidr),
    "list_slice": _output,
    "list_flatten": _flattening,
    "list_flatten_int": _flattening,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": lambda arguments, result: _self_comparison(arguments[0]),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_BY_NAME: Final[dict[str, CallCost]] = {
    "fieldSelector": _selector,
    "labelSelector": _selector,
    "isSorted": _walk,
    "sum": _walk,
    "max": _walk,
    "min": _walk,
    "indexOf": _walk,
    "lastIndexOf": _walk,
    "replace": lambda arguments, result: _traversal(extent(arguments[0]), 2 * STRING_FACTOR),
    "split": lambda arguments, result: _traversal(extent(arguments[0]), 2 * STRING_FACTOR),
    "ip.isCanonical": lambda arguments, result: _traversal(extent(arguments[0]), 2 * STRING_FACTOR),
    "join": lambda arguments, result: _traversal(extent(result), 2 * STRING_FACTOR),
    "find": lambda arguments, result: _regex(arguments[0], extent(arguments[1])),
    "findAll": lambda arguments, result: _regex(arguments[0], extent(arguments[1])),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}
_BY_OVERLOAD: Final[dict[str, CallCost]] = {
    "in_list": lambda arguments, result: extent(arguments[1]),
    "add_string": lambda arguments, result: _traversal(extent(arguments[0]) + extent(arguments[1])),
    "add_bytes": lambda arguments, result: _traversal(extent(arguments[0]) + extent(arguments[1])),
    "matches_string": lambda arguments, result: _regex(arguments[0], extent(arguments[1])),
    "contains_string": lambda arguments, result: _traversal(extent(arguments[0])) * _traversal(extent(arguments[1])),
}
