"""Arithmetic of the shell: ``$((1 + x * 2))``, with integers of 64 bits."""

from __future__ import annotations

import re
from collections.abc import Callable

from kemu.emulated.kubelet.programs.syntax import NotUnderstood

Variable = Callable[[str], str | None]

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|\*\*|<<|>>|[<>=!]=|&&|\|\||[-+*/%<>()!~&|^?:])")
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_LARGEST = 1 << 63


def value(text: str, variable: Variable) -> int:
    """Raises NotUnderstood."""
    tokens: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotUnderstood(f"the expression {text!r} is not understood")
        tokens.append(found[1])
        at = found.end()
    if not tokens:
        return 0
    if len(tokens) > 200:
        raise NotUnderstood("an arithmetic expression is too long")
    tokens.append("")
    result, place = _level(tokens, 0, 0, variable)
    if tokens[place]:
        raise NotUnderstood(f"the expression {text!r} is not understood")
    return result


def _level(tokens: list[str], at: int, level: int, variable: Variable) -> tuple[int, int]:
    if level == len(_LEVELS):
        return _operand(tokens, at, variable)
    left, at = _level(tokens, at, level + 1, variable)
    while tokens[at] in _LEVELS[level] and tokens[at]:
        operator = tokens[at]
        right, at = _level(tokens, at + 1, level + 1, variable)
        left = _combined(operator, left, right)
    return left, at


def _operand(tokens: list[str], at: int, variable: Variable) -> tuple[int, int]:
    token = tokens[at]
    if token in ("-", "+", "!", "~"):
        value, at = _operand(tokens, at + 1, variable)
        return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token], at
    if token == "(":
        value, at = _level(tokens, at + 1, 0, variable)
        if tokens[at] != ")":
            raise NotUnderstood("an expression with a '(' that stays open")
        return value, at + 1
    if token.isdigit():
        return min(int(token[:20]), _LARGEST), at + 1
    if re.fullmatch(r"[A-Za-z_]\w*", token):
        found = (variable(token) or "0").strip()
        if not re.fullmatch(r"-?\d{1,18}", found):
            raise NotUnderstood(f"the value of {token} is no number")
        return int(found), at + 1
    raise NotUnderstood(f"an expression with {token!r}")


def _combined(operator: str, left: int, right: int) -> int:
    if operator in "/%":
        if not right:
            raise NotUnderstood("a division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>") and not 0 <= right < 64:
        raise NotUnderstood("a shift by so much")
    found = {
        "||": lambda: int(bool(left or right)),
        "&&": lambda: int(bool(left and right)),
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        "<=": lambda: int(left <= right),
        ">": lambda: int(left > right),
        ">=": lambda: int(left >= right),
        "<<": lambda: left << right,
        ">>": lambda: left >> right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
    }[operator]()
    return (found + _LARGEST) % (2 * _LARGEST) - _LARGEST
