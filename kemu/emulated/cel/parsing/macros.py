"""Macros: calls that the parser replaces by comprehensions and other trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kemu.emulated.cel.parsing.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Entry,
    Field,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Missing,
    Node,
    Select,
    Struct,
    walk,
)

#: The variable of a loop that is never entered.
UNUSED = "#unused"
_SORTED = "@__sortBy_input__"


class MacroError(Exception):
    """The arguments of a macro are none of its own; `offset` is the place, or -1 for that of the call."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


class Copies:
    """How many nodes macros may still copy. A chain of optMap doubles its target at each link; cel-go has no limit."""

    LIMIT = 50_000

    def __init__(self) -> None:
        self._left = self.LIMIT

    def copy(self, node: Node) -> Node:
        """The same tree again, of nodes of its own. Raises `MacroError`."""
        self._left -= sum(1 for _ in walk(node, self._left + 1))
        if self._left < 0:
            raise MacroError(-1, f"macros copy more than {self.LIMIT} nodes")
        return copy(node)


class Builder:
    """Makes nodes that all stand where the macro was called."""

    def __init__(self, offset: int, copies: Copies) -> None:
        self.offset = offset
        self.copy = copies.copy

    def literal(self, value: bool | int) -> Node:
        return Literal(self.offset, value)

    def name(self, name: str) -> Node:
        return Ident(self.offset, name)

    def accumulator(self) -> Node:
        return Ident(self.offset, ACCUMULATOR)

    def call(self, function: str, *arguments: Node) -> Node:
        return Call(self.offset, function, None, list(arguments))

    def member(self, function: str, target: Node, *arguments: Node) -> Node:
        return Call(self.offset, function, target, list(arguments))

    def list_of(self, *elements: Node) -> Node:
        return ListOf(self.offset, list(elements))

    def loop(
        self, over: Node, names: tuple[str, str], initial: Node, condition: Node, step: Node, result: Node
    ) -> Node:
        return Comprehension(self.offset, over, *names, ACCUMULATOR, initial, condition, step, result)

    def binding(self, name: str, value: Node, result: Node) -> Node:
        never, same = self.literal(False), self.name(name)
        return Comprehension(self.offset, self.list_of(), UNUSED, "", name, value, never, same, result)


Expander: TypeAlias = Callable[[Builder, Node | None, list[Node]], Node | None]


class Macros:
    """Macros by name, number of arguments, and whether they have a target."""

    def __init__(self, table: dict[tuple[str, int, bool], Expander]) -> None:
        self._table = table

    def find(self, function: str, arguments: int, member: bool) -> Expander | None:
        return self._table.get((function, arguments, member))

    def with_bindings(self) -> Macros:
        """With ``cel.bind``."""
        return Macros({**self._table, ("bind", 3, True): _bind})


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, message)
    return node.name


def _not_accumulator(node: Node, name: str) -> None:
    if name == ACCUMULATOR:
        raise MacroError(node.offset, "iteration variable overwrites accumulator variable")


def _variables(arguments: list[Node], count: int) -> tuple[str, str]:
    names = [_variable(node, "argument must be a simple name") for node in arguments[:count]]
    if count == 2 and names[0] == names[1]:
        raise MacroError(arguments[1].offset, f"duplicate variable name: {names[0]}")
    for node, name in zip(arguments, names, strict=False):
        _not_accumulator(node, name)
    return names[0], names[1] if count == 2 else ""


def _target(target: Node | None) -> Node:
    assert target is not None, "a macro of this table has a target"
    return target


def _has(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    operand = arguments[0]
    if not isinstance(operand, Select) or operand.test_only:
        raise MacroError(operand.offset, "invalid argument to has() macro")
    return Select(build.offset, operand.operand, operand.field, test_only=True)


def _all(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    names = _variables(arguments, len(arguments) - 1)
    condition = build.call("@not_strictly_false", build.accumulator())
    step = build.call("_&&_", build.accumulator(), arguments[-1])
    return build.loop(_target(target), names, build.literal(True), condition, step, build.accumulator())


def _exists(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    names = _variables(arguments, len(arguments) - 1)
    condition = build.call("@not_strictly_false", build.call("!_", build.accumulator()))
    step = build.call("_||_", build.accumulator(), arguments[-1])
    return build.loop(_target(target), names, build.literal(False), condition, step, build.accumulator())


def _exists_one(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    names = _variables(arguments, len(arguments) - 1)
    counted = build.call("_+_", build.accumulator(), build.literal(1))
    step = build.call("_?_:_", arguments[-1], counted, build.accumulator())
    result = build.call("_==_", build.accumulator(), build.literal(1))
    return build.loop(_target(target), names, build.literal(0), build.literal(True), step, result)


def _single(arguments: list[Node]) -> tuple[str, str]:
    name = _variable(arguments[0], "argument is not an identifier")
    _not_accumulator(arguments[0], name)
    return name, ""


def _listing(build: Builder, over: Node, names: tuple[str, str], condition: Node | None, item: Node) -> Node:
    step = build.call("_+_", build.accumulator(), build.list_of(item))
    if condition is not None:
        step = build.call("_?_:_", condition, step, build.accumulator())
    return build.loop(over, names, build.list_of(), build.literal(True), step, build.accumulator())


def _map(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    condition = arguments[1] if len(arguments) == 3 else None
    return _listing(build, _target(target), _single(arguments), condition, arguments[-1])


def _filter(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    return _listing(build, _target(target), _single(arguments), arguments[1], arguments[0])


def _transform_list(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    condition = arguments[2] if len(arguments) == 4 else None
    return _listing(build, _target(target), _variables(arguments, 2), condition, arguments[-1])


def _mapping(build: Builder, target: Node | None, arguments: list[Node], *inserted: Node) -> Node:
    names = _variables(arguments, 2)
    step = build.call("cel.@mapInsert", build.accumulator(), *inserted)
    if len(arguments) == 4:
        step = build.call("_?_:_", arguments[2], step, build.accumulator())
    return build.loop(_target(target), names, MapOf(build.offset, []), build.literal(True), step, build.accumulator())


def _transform_map(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    key = _variable(arguments[0], "argument must be a simple name")
    return _mapping(build, target, arguments, build.name(key), arguments[-1])


def _transform_map_entry(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    return _mapping(build, target, arguments, arguments[-1])


def _optional_map(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    name = _variable(arguments[0], "optMap() variable name must be a simple identifier")
    value = build.member("value", build.copy(_target(target)))
    mapped = build.call("optional.of", build.binding(name, value, arguments[1]))
    return build.call("_?_:_", build.member("hasValue", _target(target)), mapped, build.call("optional.none"))


def _optional_flat_map(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    name = _variable(arguments[0], "optFlatMap() variable name must be a simple identifier")
    value = build.member("value", build.copy(_target(target)))
    mapped = build.binding(name, value, arguments[1])
    return build.call("_?_:_", build.member("hasValue", _target(target)), mapped, build.call("optional.none"))


def _sort_by(build: Builder, target: Node | None, arguments: list[Node]) -> Node:
    over = _target(target)
    if not isinstance(over, ListOf | Select | Ident | Comprehension | Call):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(over.offset, message)
    keys = _map(build, build.name(_SORTED), arguments)
    return build.binding(_SORTED, over, build.member("@sortByAssociatedKeys", build.name(_SORTED), keys))


def _bind(build: Builder, target: Node | None, arguments: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(arguments[0], "cel.bind() variable names must be simple identifiers")
    return build.binding(name, arguments[1], arguments[2])


def copy(node: Node) -> Node:
    """The same tree again, of nodes of its own."""
    at = node.offset
    match node:
        case Literal():
            return Literal(at, node.value)
        case Ident():
            return Ident(at, node.name)
        case Select():
            return Select(at, copy(node.operand), node.field, node.test_only)
        case Call():
            target = copy(node.target) if node.target is not None else None
            return Call(at, node.function, target, [copy(argument) for argument in node.arguments])
        case ListOf():
            return ListOf(at, [copy(element) for element in node.elements], node.optional)
        case MapOf():
            entries = [
                Entry(entry.offset, copy(entry.key), copy(entry.value), entry.optional) for entry in node.entries
            ]
            return MapOf(at, entries)
        case Struct():
            return Struct(
                at, node.name, [Field(part.offset, part.name, copy(part.value), part.optional) for part in node.fields]
            )
        case Comprehension():
            return Comprehension(
                at,
                copy(node.range),
                node.variable,
                node.second,
                node.accumulator,
                copy(node.initial),
                copy(node.condition),
                copy(node.step),
                copy(node.result),
            )
        case _:
            return Missing(at)


#: The macros of all of Kubernetes' environments.
STANDARD = Macros(
    {
        ("has", 1, False): _has,
        ("all", 2, True): _all,
        ("all", 3, True): _all,
        ("exists", 2, True): _exists,
        ("exists", 3, True): _exists,
        ("exists_one", 2, True): _exists_one,
        ("exists_one", 3, True): _exists_one,
        ("existsOne", 3, True): _exists_one,
        ("map", 2, True): _map,
        ("map", 3, True): _map,
        ("filter", 2, True): _filter,
        ("transformList", 3, True): _transform_list,
        ("transformList", 4, True): _transform_list,
        ("transformMap", 3, True): _transform_map,
        ("transformMap", 4, True): _transform_map,
        ("transformMapEntry", 3, True): _transform_map_entry,
        ("transformMapEntry", 4, True): _transform_map_entry,
        ("optMap", 2, True): _optional_map,
        ("optFlatMap", 2, True): _optional_flat_map,
        ("sortBy", 2, True): _sort_by,
    }
)
