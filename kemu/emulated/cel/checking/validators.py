"""Mistakes in constants: durations, timestamps, patterns and formats that are none, and literals of mixed types."""

from __future__ import annotations

from kemu.emulated.cel import times, types
from kemu.emulated.cel.checking import unification
from kemu.emulated.cel.errors import Issue
from kemu.emulated.cel.evaluation import patterns
from kemu.emulated.cel.libraries import formatting
from kemu.emulated.cel.parsing.syntax import Call, ListOf, Literal, MapOf, Node, walk
from kemu.emulated.cel.parsing.texts import Text
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import Error


def validate(tree: Node, text: Text) -> list[Issue]:
    """All mistakes of a checked tree, in the order of cel-go's validators."""
    issues: list[Issue] = []

    def issue(node: Node, message: str) -> None:
        issues.append(Issue(*text.place(node.offset), message))

    nodes = list(walk(tree))
    for function in ("duration", "timestamp", "matches"):
        for node, _ in nodes:
            if isinstance(node, Call) and node.function == function and node.arguments:
                argument = node.arguments[0]
                if isinstance(argument, Literal) and not _is_valid(function, argument):
                    issue(argument, f"invalid {function} argument")
    for node, within in nodes:
        if isinstance(node, ListOf) and "format" not in within:
            _same_types(node, issue)
    for node, within in nodes:
        if isinstance(node, MapOf) and "format" not in within:
            _same_entries(node, issue)
    for node, _ in nodes:
        _format(node, issue)
    return issues


def _is_valid(function: str, argument: Literal) -> bool:
    value = argument.value
    match function:
        case "duration":
            return type(value) is str and times.parse_duration(value) is not None
        case "timestamp":
            if type(value) is int:
                return times.FIRST_SECOND <= value <= times.LAST_SECOND
            parsed = times.parse_timestamp(value) if type(value) is str else None
            return parsed is not None and times.in_range(parsed)
        case _:
            return type(value) is str and not isinstance(patterns.compiled(value), Error)


def _mismatch(expected: Type, actual: Type) -> str:
    return f"expected type '{expected.text}' but found '{actual.text}'"


def _value_type(node: Node, optional: bool) -> Type:
    return node.type.parameters[0] if optional and node.type.parameters else node.type


def _same_types(node: ListOf, issue: object) -> None:
    assert callable(issue)
    first: Type | None = None
    for index, element in enumerate(node.elements):
        type_ = _value_type(element, index in node.optional)
        if first is None:
            first = type_
        elif not unification.equivalent(first, type_):
            issue(element, _mismatch(first, type_))
            return


def _same_entries(node: MapOf, issue: object) -> None:
    assert callable(issue)
    key_type: Type | None = None
    value_type: Type = types.DYN
    for entry in node.entries:
        key, value = entry.key.type, _value_type(entry.value, entry.optional)
        if key_type is None:
            key_type, value_type = key, value
            continue
        if not unification.equivalent(key_type, key):
            issue(entry.key, _mismatch(key_type, key))
        if not unification.equivalent(value_type, value):
            issue(entry.value, _mismatch(value_type, value))


def _format(node: Node, issue: object) -> None:
    assert callable(issue)
    if not isinstance(node, Call) or node.function != "format" or "string_format" not in node.overloads:
        return
    target, arguments = node.target, node.arguments[0]
    if not isinstance(target, Literal) or type(target.value) is not str or not isinstance(arguments, ListOf):
        return
    wrong = formatting.check(target.value, arguments.elements)
    if wrong is not None:
        message, at = wrong
        issue(at if at is not None else node, message)
