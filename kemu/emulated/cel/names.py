"""Identifiers for properties whose names are none."""

from __future__ import annotations

import re
from functools import lru_cache

KEYWORDS = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPED = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_PIECE = re.compile(r"__|[-./]")
_ALLOWED = re.compile(r"[A-Za-z0-9_./\-]*")
_SEQUENCE = re.compile(r"__([^_]+)__")


@lru_cache(maxsize=16_384)
def escape(name: str) -> str | None:
    """The identifier by which expressions know the property `name`, such as ``foo__dot__bar``; None if there is
    none.
    """
    if not name or name[0] in "0123456789" or not _ALLOWED.fullmatch(name):
        return None
    if name in KEYWORDS:
        return f"__{name}__"
    return _PIECE.sub(lambda found: _ESCAPED[found[0]], name)


@lru_cache(maxsize=16_384)
def unescape(identifier: str) -> str | None:
    """The property that expressions know as `identifier`; None if it escapes nothing."""
    if "__" not in identifier:
        return identifier
    parts: list[str] = []
    at = 0
    for found in _SEQUENCE.finditer(identifier):
        parts.append(identifier[at : found.start()])
        inner = found[1]
        if inner in _UNESCAPED:
            parts.append(_UNESCAPED[inner])
        elif inner in KEYWORDS and found[0] == identifier:
            parts.append(inner)
        else:
            return None
        at = found.end()
    parts.append(identifier[at:])
    return "".join(parts)
