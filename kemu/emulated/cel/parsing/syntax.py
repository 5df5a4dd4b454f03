"""The syntax tree of an expression.

Every node knows the offset in the text that messages point at, or -1. The checker writes the `type` of each node, and
the `overloads` that a call may resolve to; it replaces names by qualified ones in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kemu.emulated.cel import types
from kemu.emulated.cel.values import Value

ACCUMULATOR = "__result__"


class Node:
    """`height` is how deep cel-go recurses to visit the text of the node; the parser bounds it."""

    __slots__ = ("height", "offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.height = 0
        self.type: types.Type = types.ERROR


class Missing(Node):
    """What stands where the text makes no sense; an issue was noted."""

    __slots__ = ()


class Literal(Node):
    __slots__ = ("value",)

    def __init__(self, offset: int, value: Value) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name. `constant` is the type that it names, if it names one."""

    __slots__ = ("constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.constant: str | None = None


class Select(Node):
    __slots__ = ("field", "operand", "resolved", "test_only")

    def __init__(self, offset: int, operand: Node, field: str, test_only: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test_only = test_only
        self.resolved: Ident | None = None


class Call(Node):
    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> None:
        super().__init__(offset)
        self.function = function
        self.target = target
        self.arguments = arguments
        self.overloads: tuple[str, ...] = ()


class ListOf(Node):
    """A list; `optional` has the indexes of elements that are left out if they are ``optional.none()``."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class Entry:
    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node, value: Node, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapOf(Node):
    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.entries = entries


class Field:
    __slots__ = ("name", "offset", "optional", "value")

    def __init__(self, offset: int, name: str, value: Node, optional: bool) -> None:
        self.offset = offset
        self.name = name
        self.value = value
        self.optional = optional


class Struct(Node):
    __slots__ = ("fields", "name")

    def __init__(self, offset: int, name: str, fields: list[Field]) -> None:
        super().__init__(offset)
        self.name = name
        self.fields = fields


class Comprehension(Node):
    """A loop over a list or a map that accumulates a value; all macros over aggregates become one, and so does a
    binding.
    """

    __slots__ = ("accumulator", "condition", "initial", "range", "result", "second", "step", "variable")

    def __init__(
        self,
        offset: int,
        range: Node,  # noqa: A002 - cel-go's name
        variable: str,
        second: str,
        accumulator: str,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.range = range
        self.variable = variable
        self.second = second
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result


Tree: TypeAlias = Node


def children(node: Node) -> list[Node]:
    """The nodes right below, in the order in which cel-go visits them."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return ([node.target] if node.target is not None else []) + node.arguments
        case ListOf():
            return node.elements
        case MapOf():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case Struct():
            return [field.value for field in node.fields]
        case Comprehension():
            return [node.range, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def walk(root: Node, most: int | None = None) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """All nodes from the root down (at most `most`), each with ``format`` if it is within an argument of it."""
    stack: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while stack and most != 0:
        most = None if most is None else most - 1
        node, within = stack.pop()
        yield node, within
        inner = ("format",) if isinstance(node, Call) and node.function == "format" else within
        stack.extend((child, inner) for child in reversed(children(node)))


def depth(root: Node) -> int:
    """How deep the tree is."""
    deepest, stack = 0, [(root, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in children(node))
    return deepest
