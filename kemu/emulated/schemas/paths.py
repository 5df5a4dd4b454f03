"""Simple JSON paths into the values of a schema (``cel.ValidFieldPath``): of rules, and of selectable fields."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kemu.emulated.schemas.problems import child
from kemu.emulated.schemas.structural import Node

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def is_valid(path: str, node: Node) -> bool:
    try:
        resolve(path, node)
    except ValueError:
        return False
    return True


def resolve(path: str, node: Node, *, has_brackets: bool = True) -> tuple[str, Node | None]:
    """The path as causes write it, and the schema to which it leads. Raises ValueError in Kubernetes' words.

    ``has_brackets``: whether ``['name']`` is allowed.
    """
    found = ""
    at: Node | None = node
    tokens = _tokens(path)
    for token in tokens:
        if token == "[":
            if not has_brackets:
                raise ValueError("array notation is not allowed")
            quoted = _next(tokens)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise ValueError(f"expected single quoted string but got {quoted}")
            name = _unescaped(quoted[1:-1])
        elif token == ".":
            name = _next(tokens)
        else:
            raise ValueError(f"expected [ or . but got: {token}")
        if at is None or not (at.properties or at.additional is not None):
            raise ValueError("does not refer to a valid field")
        if at.properties:
            found = child(found, name)
            if name not in at.properties:
                raise ValueError("does not refer to a valid field")
            at = at.properties[name]
        else:
            found = f"{found}[{name}]"
            at = at.additional_node
        if token == "[":
            closing = _next(tokens)
            if closing != "]":
                raise ValueError(f"expected ] but got {closing}")
    return found, at


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise ValueError("unexpected end of JSON path")
    return token


def _tokens(path: str) -> Iterator[str]:
    rest = path
    while rest:
        if rest[0] == "'":
            closed = re.match(r"'(?:.*?[^\\])??'", rest, re.DOTALL)
            size = closed.end() if closed is not None else len(rest)
        elif rest[0] in ".[]":
            size = 1
        else:
            size = next((index for index, one in enumerate(rest) if one in ".[]"), len(rest))
        yield rest[:size]
        rest = rest[size:]


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        letter = match[0][1]
        if letter not in _ESCAPES:
            raise ValueError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[letter]

    return re.sub(r"\\.", replace, text)
