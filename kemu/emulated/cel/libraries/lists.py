"""Functions over lists: Kubernetes' (sums, extremes, positions), cel-go's lists library, version 3, and sets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from kemu.emulated.cel import types
from kemu.emulated.cel.bounds import bounded, compared
from kemu.emulated.cel.declarations import Functions, Overload
from kemu.emulated.cel.libraries.standard import add, compare, is_comparer
from kemu.emulated.cel.times import Duration
from kemu.emulated.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT
from kemu.emulated.cel.values import (
    NO_OVERLOAD,
    Error,
    ListLike,
    Uint,
    Value,
    contains,
    equal,
    is_list,
    is_map,
    item,
    type_name,
)

_T = types.param("T")
_LIST = types.list_of(_T)
_COMPARABLE = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_SUMMABLE: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def _is_sorted(values: Value) -> Value:
    previous: Value = None
    for index, value in enumerate(values):
        if not is_comparer(value):
            return value if type(value) is Error else NO_OVERLOAD
        if index and compare(previous, value) == 1:
            return False
        previous = value
    return True


def _sum(zero: Value) -> Callable[[Value], Value]:
    def call(values: Value) -> Value:
        total = zero
        for value in values:
            if type(value) is Error:
                return value
            total = add(total, value)
            if type(total) is Error:
                return total
        return total

    return call


def _extreme(name: str, preferred: int) -> Callable[[Value], Value]:
    def call(values: Value) -> Value:
        result: Value = None
        for index, value in enumerate(values):
            if not is_comparer(value):
                return value if type(value) is Error else NO_OVERLOAD
            if index == 0 or compare(result, value) == preferred:
                result = value
        return result if len(values) else Error(f"{name} called on empty list")

    return call


def _index_of(values: Value, wanted: Value) -> Value:
    return next((index for index, value in enumerate(values) if equal(value, wanted) is True), -1)


def _last_index_of(values: Value, wanted: Value) -> Value:
    last = -1
    for index, value in enumerate(values):
        if equal(value, wanted) is True:
            last = index
    return last


def _slice(values: Value, start: Value, end: Value) -> Value:
    if start < 0 or end < 0:
        return Error(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Error(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        return Error(f"cannot slice({start}, {end}), list is length {len(values)}")
    return [item(values, index) for index in range(start, end)]


def _flatten(values: Value, depth: Value = None) -> Value:
    if not is_list(values):
        shown = "map(dyn, dyn)" if is_map(values) else type_name(values)
        return Error(f"no such overload: {shown}.flatten({'' if depth is None else type_name(depth)})")
    depth = 1 if depth is None else depth
    if type(depth) is not int:
        return Error(f"no such overload: list(dyn).flatten({type_name(depth)})")
    if depth < 0:
        return Error("level must be non-negative")
    result: list[Value] = []
    stack: list[tuple[Iterator[Value], int]] = [(iter(values), depth)]
    while stack:
        iterator, level = stack[-1]
        value = next(iterator, _END)
        if value is _END:
            stack.pop()
        elif is_list(value) and level > 0:
            stack.append((iter(value), level - 1))
        else:
            result.append(value)
    return result


_END: Value = object()


def _sort(values: Value) -> Value:
    return _sort_by(values, values)


def _sort_by(values: Value, keys: Value) -> Value:
    if len(values) != len(keys):
        return Error(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(values)} and {len(keys)} elements respectively"
        )
    if len(values) == 0:
        return values
    sorting = list(keys)
    if not is_comparer(sorting[0]):
        return Error("list elements must be comparable")
    if any(type_name(key) != type_name(sorting[0]) for key in sorting) and len(sorting) > 1:
        return Error("list elements must have the same type")

    def order(left: int, right: int) -> int:
        result = compare(sorting[left], sorting[right])
        return 0 if isinstance(result, Error) else result

    indexes = sorted(range(len(sorting)), key=functools.cmp_to_key(order))
    return [item(values, index) for index in indexes]


def _range(count: Value) -> Value:
    bounded(count)
    return list(range(count))


def _reverse(values: Value) -> Value:
    return list(values)[::-1]


def _distinct(values: Value) -> Value:
    compared(len(values), len(values))
    seen: list[Value] = []
    for value in values:
        if not any(equal(value, other) is True for other in seen):
            seen.append(value)
    return seen if len(values) else values


def _contains_all(values: Value, others: Value) -> Value:
    compared(len(values), len(others))
    for value in others:
        found = contains(values, value)
        if found is not True:
            return found
    return True


def _equivalent(left: Value, right: Value) -> Value:
    found = _contains_all(left, right)
    return _contains_all(right, left) if found is True else found


def _intersects(left: Value, right: Value) -> Value:
    compared(len(left), len(right))
    return any(contains(right, value) is True for value in left)


def declare_kubernetes(functions: Functions) -> None:
    """Kubernetes' own, which stand before those of strings with the same names."""
    for name, kind in _COMPARABLE.items():
        functions.member("isSorted", f"list_{name}_is_sorted_bool", (types.list_of(kind),), BOOL, _is_sorted)
        functions.member("max", f"list_{name}_max_{name}", (types.list_of(kind),), kind, _extreme("max", -1))
        functions.member("min", f"list_{name}_min_{name}", (types.list_of(kind),), kind, _extreme("min", 1))
    for name, zero in _SUMMABLE.items():
        kind = _COMPARABLE[name]
        functions.member("sum", f"list_{name}_sum_{name}", (types.list_of(kind),), kind, _sum(zero))
    any_list = types.list_of(types.param("A"))
    functions.member("indexOf", "list_a_index_of_int", (any_list, types.param("A")), INT, _index_of)
    functions.member("lastIndexOf", "list_a_last_index_of_int", (any_list, types.param("A")), INT, _last_index_of)


def declare_sets(functions: Functions) -> None:
    for name, compute in (("contains", _contains_all), ("equivalent", _equivalent), ("intersects", _intersects)):
        functions.free(f"sets.{name}", f"list_sets_{name}_list", (_LIST, _LIST), BOOL, compute)


def declare(functions: Functions) -> None:
    """cel-go's."""
    functions.member("slice", "list_slice", (_LIST, INT, INT), _LIST, _slice)
    lists, dynamic = types.list_of(_LIST), types.list_of(types.DYN)
    functions.member("flatten", "list_flatten", (lists,), _LIST, _flatten)
    functions.member("flatten", "list_flatten_int", (dynamic, INT), dynamic, _flatten)
    flatten = functions.find("flatten")
    assert flatten is not None
    flatten.unguarded = True
    for kind in _COMPARABLE.values():
        of_kind = types.list_of(kind)
        functions.declare("sort", [Overload(f"list_{kind.name}_sort", (of_kind,), of_kind, True)])
        overload = Overload(f"list_{kind.name}_sortByAssociatedKeys", (_LIST, of_kind), _LIST, True)
        functions.declare("@sortByAssociatedKeys", [overload])
    functions.singleton("sort", [], _sort, lambda value: isinstance(value, list | ListLike))
    functions.singleton("@sortByAssociatedKeys", [], _sort_by, lambda value: isinstance(value, list | ListLike))
    functions.free("lists.range", "lists_range", (INT,), types.list_of(INT), _range)
    functions.member("reverse", "list_reverse", (_LIST,), _LIST, _reverse)
    functions.member("distinct", "list_distinct", (_LIST,), _LIST, _distinct)
