"""What an expression costs at least and at most, for inputs within their declared sizes: cel-go's estimate with
Kubernetes'.

The API server refuses rules of custom resources whose greatest cost is too high, so the numbers are those of
Kubernetes to the unit, quirks included. Sizes and costs are 64 bits, unsigned; what is more counts as the largest
number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from kemu.emulated.cel.costs.actual_costs import AUTHORIZATION_CHECK, FIXED
from kemu.emulated.cel.costs.ranges import NEVER, NOTHING, ONE, UNKNOWN, Range, fixed
from kemu.emulated.cel.parsing.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    Struct,
)
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import UINT_MAX

_STRING: Final = 0.1
_REGEX: Final = 0.25
_LIST_COST: Final = 10
_MAP_COST: Final = 30
_STRUCT_COST: Final = 40
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


class _Entries(NamedTuple):
    """Sizes of the keys and the values of an aggregate."""

    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    path: tuple[str, ...]
    size: Range | None
    entries: _Entries | None


class _Operand(NamedTuple):
    """An argument or a target, as functions see it."""

    node: Node | None
    type: Type
    path: tuple[str, ...]
    size: Range | None


def estimate(tree: Node, root: Type | None) -> Range:
    """The cost of a checked tree. `root`: the type of ``self``, whose declared sizes count for whatever has a path."""
    coster = _Coster(root)
    return coster.cost(tree)


class _Coster:
    def __init__(self, root: Type | None) -> None:
        self.root = root
        self.paths: dict[int, tuple[str, ...]] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, _Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    # Costs of nodes

    def cost(self, node: Node) -> Range:
        match node:
            case Ident():
                local = self._local(node.name)
                self.paths[id(node)] = local.path if local is not None else (node.name,)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Struct():
                total = NOTHING
                for field in node.fields:
                    total = total.plus(self.cost(field.value))
                return total.plus(fixed(_STRUCT_COST))
            case Comprehension():
                return self._bind(node) if _is_binding(node) else self._comprehension(node)
            case _:
                return NOTHING

    def _select(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.test_only:
            return total
        if node.operand.type.kind in ("map", "struct", "param"):
            total = total.plus(ONE)
        self.paths[id(node)] = (*self._path(node.operand), node.field)
        return total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            (argument,) = node.arguments
            cost = self.cost(argument)
            self._copy_sizes(node, argument)
            return ONE.plus(cost)
        costs: list[Range] = []
        operands: list[_Operand] = []
        for argument in node.arguments:
            costs.append(self.cost(argument))
            operands.append(self._operand(argument))
        if not node.overloads:
            return NOTHING
        total = NOTHING
        target: _Operand | None = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        call = NEVER
        size: Range | None = None
        for overload in node.overloads:
            cost, result = self._overload(node, overload, target, operands, costs)
            call = call.or_(cost)
            if result is not None:
                size = result if size is None else size.or_(result)
            if overload in ("index_list", "index_map") and node.arguments:
                entries = self._entry_sizes(node.arguments[0])
                size = entries.value if entries is not None else None
                step = "@items" if overload == "index_list" else "@values"
                self.paths[id(node)] = (*self._path(node.arguments[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self.sizes[id(node)] = size
        return total.plus(call)

    def _list(self, node: ListOf) -> Range:
        total, items = NOTHING, NEVER if node.elements else NOTHING
        for element in node.elements:
            total = total.plus(self.cost(element))
            items = items.or_(self._size_or_unknown(element))
        self.entries[id(node)] = _Entries("list", ONE, items)
        return total.plus(fixed(_LIST_COST))

    def _map(self, node: MapOf) -> Range:
        total = NOTHING
        keys = values = NEVER if node.entries else NOTHING
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.or_(self._size_or_unknown(entry.key))
            values = values.or_(self._size_or_unknown(entry.value))
        self.entries[id(node)] = _Entries("map", keys, values)
        return total.plus(fixed(_MAP_COST))

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._bound(node.initial))
        total = total.plus(self.cost(node.result))
        self._pop(node.accumulator)
        self._copy_sizes(node, node.result)
        return total

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._bound(node.initial))
        entries = self._entry_sizes(node.range)
        path = self._path(node.range)
        is_list = (entries.kind if entries is not None else node.range.type.kind) == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), entries.key if entries is not None else None, None)
        value = _Local(
            (*path, "@items" if is_list else "@values"), entries.value if entries is not None else None, None
        )
        if node.second:
            self._push(node.variable, key)
            self._push(node.second, value)
        else:
            self._push(node.variable, value if is_list else key)
        condition = self.cost(node.condition)
        step = self.cost(node.step)
        self._pop(node.variable)
        if node.second:
            self._pop(node.second)
        total = total.plus(self.cost(node.result))
        self._pop(node.accumulator)
        count = self._size_or_unknown(node.range)
        total = total.plus(count.times(step.plus(condition)))
        match node.initial:
            case Literal():
                size = self._size(node.initial)
                if size is not None:
                    self.sizes[id(node)] = size
            case ListOf() | MapOf():
                self.sizes[id(node)] = count
                of_step = self._entry_sizes(node.step)
                if of_step is not None:
                    self.entries[id(node)] = of_step
        return total

    # Names, paths and sizes

    def _push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self.locals[name].pop()

    def _local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _bound(self, node: Node) -> _Local:
        return _Local(self._path(node), self._size(node), self._entry_sizes(node))

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self.paths.get(id(node), ())

    def _operand(self, node: Node) -> _Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "@result"):
            path = ()
        return _Operand(node, node.type, path, self._size(node))

    def _copy_sizes(self, to: Node, source: Node) -> None:
        size, entries = self._size(source), self._entry_sizes(source)
        if size is not None:
            self.sizes[id(to)] = size
        if entries is not None:
            self.entries[id(to)] = entries

    def _size(self, node: Node) -> Range | None:
        known = self.sizes.get(id(node))
        if known is not None:
            return known
        stated = _stated_size(node)
        if stated is not None:
            return stated
        declared = self._declared_size(self._path(node))
        if declared is not None:
            self.sizes[id(node)] = declared
            return declared
        if _is_scalar(node.type):
            return ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    def _size_or_unknown(self, node: Node) -> Range:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _entry_sizes(self, node: Node | None) -> _Entries | None:
        if node is None:
            return None
        known = self.entries.get(id(node))
        if known is not None:
            return known
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.entries if local is not None else None

    def _declared_size(self, path: tuple[str, ...]) -> Range | None:
        """The size that the declared types state for what a path from a variable leads to."""
        if not path or self.root is None:
            return None
        at = self.root
        for step in path[1:]:
            found: Type | None = None
            if step in ("@items", "@values"):
                found = at.parameters[-1] if at.kind in ("list", "map") else None
            elif step == "@keys":
                found = at.parameters[0] if at.kind == "map" else None
            elif at.fields is not None:
                found = at.fields.get(step)
            if found is None:
                return None
            at = found
        return Range(0, at.max_elements)

    # Calls

    def _known(self, operand: _Operand) -> Range:
        """The size of an operand for functions."""
        if operand.size is not None:
            return operand.size
        declared = self._declared_size(operand.path)
        return UNKNOWN if declared is None else declared

    def _element(self, operand: _Operand) -> _Operand | None:
        if not operand.type.parameters:
            return None
        path = (*operand.path, "@items") if operand.path else ()
        return _Operand(None, operand.type.parameters[0], path, None)

    def _overload(
        self, node: Call, overload: str, target: _Operand | None, arguments: list[_Operand], costs: list[Range]
    ) -> tuple[Range, Range | None]:
        """The cost of a call of an overload with that of its arguments, and the size of the result."""
        total = NOTHING
        for cost in costs:
            total = total.plus(cost)
        own = _of_list_library(self._known, overload, target, arguments)
        if own is None:
            own = self._kubernetes(node.function, overload, target, arguments)
        if own is not None:
            return own[0].plus(total), own[1]
        size = [argument.size if argument.size is not None else UNKNOWN for argument in arguments]
        of_target = UNKNOWN if target is None or target.size is None else target.size
        match overload:
            case "string_format" if target is not None:
                return of_target.by(_STRING).plus(total), None
            case "string_to_bytes":
                return size[0].by(_STRING).plus(total), Range(size[0].low, size[0].high * 4 & UINT_MAX)
            case "bytes_to_string":
                return size[0].by(_STRING).plus(total), Range(size[0].low // 4, size[0].high)
            case "strings_quote":
                result = Range(size[0].low + 2 & UINT_MAX, size[0].high * 2 + 2 & UINT_MAX)
                return size[0].by(_STRING).plus(total), result
            case "starts_with_string" | "ends_with_string":
                return size[0].by(_STRING).plus(total), None
            case "in_list":
                return size[1].by(1).plus(total), None
            case "matches_string" if target is not None:
                return of_target.plus(ONE).by(_STRING).times(size[0].by(_REGEX)).plus(total), None
            case "contains_string" if target is not None:
                return of_target.by(_STRING).times(size[0].by(_STRING)).plus(total), None
            case "logical_or" | "logical_and":
                return Range(costs[0].low, costs[0].plus(costs[1]).high), None
            case "conditional":
                return self._conditional(node, size, costs)
            case "add_string" | "add_bytes" | "add_list":
                return self._concatenation(node, overload, size, total)
        if overload in _COMPARED:
            least = min(size[0].high, size[1].high)
            return Range(1 if least > 0 else 0, least).by(_STRING).plus(total), None
        return ONE.plus(total), None

    def _conditional(self, node: Call, size: list[Range], costs: list[Range]) -> tuple[Range, Range | None]:
        entries = _either(self._entry_sizes(node.arguments[1]), self._entry_sizes(node.arguments[2]))
        if entries is not None:
            self.entries[id(node)] = entries
        return costs[0].plus(costs[1].or_(costs[2])), size[1].or_(size[2])

    def _concatenation(self, node: Call, overload: str, size: list[Range], total: Range) -> tuple[Range, Range | None]:
        result = size[0].plus(size[1])
        entries = _either(self._entry_sizes(node.arguments[0]), self._entry_sizes(node.arguments[1]))
        if entries is not None:
            self.entries[id(node)] = entries
        cost = ONE if overload == "add_list" else result.by(_STRING)
        return cost.plus(total), result

    def _kubernetes(
        self, function: str, overload: str, target: _Operand | None, arguments: list[_Operand]
    ) -> tuple[Range, Range | None] | None:
        """Kubernetes' own estimates, or None for what cel-go estimates."""
        known = self._known
        first = arguments[0] if arguments else None
        if function == "check":
            return fixed(AUTHORIZATION_CHECK), None
        if function in FIXED or overload == "cidr_ip":
            return ONE, None
        if function in ("fieldSelector", "labelSelector") and first is not None:
            size = known(first)
            return fixed(_LIST_COST).plus(size.by(_STRING)).plus(size.by(0.5).by(50.0)), None
        if function in _OVER_LISTS and target is not None:
            return self._over_list(target), None
        if function in ("url", "jsonpatch.escapeKey") and first is not None:
            return known(first).by(_STRING), known(first)
        if function in ("lowerAscii", "upperAscii", "substring", "trim") and target is not None:
            return known(target).by(_STRING), known(target)
        if function == "replace" and target is not None and len(arguments) >= 2:
            return _replacement(known(target), known(arguments[0]), known(arguments[1]))
        if function == "split" and target is not None:
            return _splitting(known(target), arguments)
        if function == "join" and target is not None:
            return self._joining(target, first)
        if function in ("find", "findAll") and target is not None and first is not None:
            size = known(target)
            return size.plus(ONE).by(_STRING).times(known(first).by(_REGEX)), Range(0, size.high)
        if function in _PARSED and first is not None:
            return known(first).by(_STRING), None
        if function == "ip.isCanonical" and first is not None:
            return known(first).by(2 * _STRING), None
        if function in ("containsIP", "containsCIDR") and first is not None:
            return _containment(function, overload, known(first)), None
        if function == "validate" and first is not None:
            return known(first).by(_STRING).by(128 * _REGEX), None
        if function == "_==_" and len(arguments) == 2:
            return _object_equality(arguments)
        return None

    def _over_list(self, target: _Operand) -> Range:
        element = self._element(target)
        if element is None:
            return self._known(target).by(_STRING)
        each = ONE
        if element.type.kind in ("string", "bytes"):
            each = each.plus(self._known(element).by(_STRING))
        return self._known(target).times(each)

    def _joining(self, target: _Operand, separator: _Operand | None) -> tuple[Range, Range | None]:
        count, size = self._known(target), NOTHING
        element = self._element(target)
        if element is not None:
            size = count.times(self._known(element))
        if separator is not None:
            gaps = Range(max(count.low - 1, 0), max(count.high - 1, 0))
            size = size.plus(self._known(separator).times(gaps))
        return size.by(_STRING), size


_OVER_LISTS: Final = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"])
_PARSED: Final = frozenset(["cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"])
_COMPARED: Final = frozenset(
    [f"{name}_{kind}" for name in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")]
    + ["equals", "not_equals"]
)
_CONSTANT_EQUALITY: Final = frozenset(
    ["kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"]
    + [
        f"kubernetes.authorization.{name}"
        for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
    ]
)


def _is_binding(node: Comprehension) -> bool:
    return (
        isinstance(node.range, ListOf)
        and not node.range.elements
        and isinstance(node.condition, Literal)
        and node.condition.value is False
        and node.accumulator != ACCUMULATOR
    )


def _stated_size(node: Node) -> Range | None:
    match node:
        case Literal():
            return fixed(len(node.value) if isinstance(node.value, str | bytes) else 1)
        case ListOf():
            return fixed(len(node.elements))
        case MapOf():
            return fixed(len(node.entries))
        case _:
            return None


def _is_scalar(type_: Type) -> bool:
    if type_.kind == "opaque" and type_.name == "optional_type":
        return _is_scalar(type_.parameters[0])
    return type_.kind in _SCALARS


def _either(first: _Entries | None, second: _Entries | None) -> _Entries | None:
    if first is None or second is None:
        return None
    return _Entries(first.kind, first.key.or_(second.key), first.value.or_(second.value))


def _replacement(size: Range, replaced: Range, by: Range) -> tuple[Range, Range]:
    high_count = high_kept = low_count = low_kept = 0
    if replaced.low == 0:
        high_count = min(size.high + 1, UINT_MAX)
        high_kept = size.high
    elif by.high <= replaced.low:
        high_kept = size.high
    else:
        high_count = _ratio(size.high, replaced.low)
    if replaced.high == 0:
        low_count = min(size.low + 1, UINT_MAX)
        low_kept = size.low
    elif replaced.high <= by.low:
        low_kept = size.low
    else:
        low_count = _ratio(size.low, replaced.high)
    result = Range(low_count, high_count).times(by).plus(Range(low_kept, high_kept))
    return size.by(2 * _STRING), result


def _ratio(size: int, of: int) -> int:
    quotient = math.ceil(float(size) / float(of))
    # Go's conversion of a double that is too large for 64 bits.
    return quotient if quotient < 1 << 64 else 1 << 63


def _splitting(size: Range, arguments: list[_Operand]) -> tuple[Range, Range]:
    most = size.high
    if len(arguments) > 1:
        limit = arguments[1].node
        if isinstance(limit, Literal) and type(limit.value) is int:
            most = limit.value & UINT_MAX
    return size.by(2 * _STRING), Range(0, most)


def _containment(function: str, overload: str, other: Range) -> Range:
    size = Range(4, 16)
    cost = size.plus(size).by(_STRING)
    if function == "containsCIDR":
        cost = cost.plus(size.by(_STRING)).plus(ONE)
    return cost.plus(other.by(_STRING)) if overload.endswith("_string") else cost


def _object_equality(arguments: list[_Operand]) -> tuple[Range, Range | None] | None:
    left, right = arguments
    if left.type.name != right.type.name:
        return None
    name = left.type.name
    if name in _CONSTANT_EQUALITY:
        return ONE, None
    if name == "kubernetes.NamedFormat":
        return Range(1, 64).by(_STRING), None
    if name == "kubernetes.URL":
        size = right.size if right.size is not None else ONE
        return Range(1, size.high).by(_STRING), None
    return None


def _constant(operand: _Operand, otherwise: int) -> int:
    node = operand.node
    if not isinstance(node, Literal) or type(node.value) is not int:
        return otherwise
    return max(node.value, 0)


def _of_list_library(
    known: Callable[[_Operand], Range], overload: str, target: _Operand | None, arguments: list[_Operand]
) -> tuple[Range, Range | None] | None:
    """The estimates of cel-go's libraries of lists and sets."""
    if overload.startswith("list_sets_"):
        factor = 2.0 if "equivalent" in overload else 1.0
        return known(arguments[0]).times(known(arguments[1])).by(factor).plus(ONE), None
    if overload == "lists_range" and target is None:
        return _allocation(1, fixed(_constant(arguments[0], UINT_MAX)))
    if target is None:
        return None
    match overload:
        case "list_slice":
            size = known(target)
            return _allocation(1, fixed(_constant(arguments[1], size.high) - _constant(arguments[0], 0) & UINT_MAX))
        case "list_reverse":
            return _allocation(1, known(target))
        case "list_flatten" | "list_flatten_int":
            depth = _constant(arguments[0], UINT_MAX) if arguments else 1
            return _allocation(float(depth), known(target))
        case "list_distinct":
            return _allocation(2.0, known(target).times(known(target)))
    for suffix, operand in (("_sort", target), ("_sortByAssociatedKeys", arguments[0] if arguments else target)):
        if overload.startswith("list_") and overload.endswith(suffix):
            factor = 2.0 + (_STRING if overload in (f"list_string{suffix}", f"list_bytes{suffix}") else 0.0)
            return _allocation(factor, known(operand).times(known(operand)))
    return None


def _allocation(factor: float, size: Range) -> tuple[Range, Range]:
    return size.by(factor).plus(ONE).plus(fixed(_LIST_COST)), size
