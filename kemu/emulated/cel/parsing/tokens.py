"""Tokens of an expression."""

from __future__ import annotations

import re
from typing import NamedTuple

EOF = "<EOF>"


class Token(NamedTuple):
    """`kind` is the text of punctuation and keywords, else a name such as ``IDENTIFIER``, as messages list them."""

    kind: str
    text: str
    offset: int


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_PATTERNS = (
    ("hidden", r"[\t \r\n\f]+|//[^\n]*"),
    ("NUM_FLOAT", r"[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?"),
    ("NUM_UINT", r"0x[0-9a-fA-F]+[uU]|[0-9]+[uU]"),
    ("NUM_INT", r"0x[0-9a-fA-F]+|[0-9]+"),
    ("BYTES", rf"[bB](?:{_STRING})"),
    ("STRING", _STRING),
    ("IDENTIFIER", r"[A-Za-z_][A-Za-z0-9_]*"),
    ("ESC_IDENTIFIER", r"`[A-Za-z0-9_.\-/ ]+`"),
    ("punctuation", r"==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%]"),
)
_TOKEN = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS))
_KEYWORDS = frozenset({"in", "true", "false", "null"})
_PARTIAL = r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
_STRAY = re.compile(
    rf"\"(?:{_ESCAPE}|[^\\\"\n\r])*{_PARTIAL}|'(?:{_ESCAPE}|[^\\'\n\r])*{_PARTIAL}|`[A-Za-z0-9_.\-/ ]*|[&|=]"
)


def scan(text: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """The tokens with an end token, and the places and texts that are none."""
    tokens: list[Token] = []
    strays: list[tuple[int, str]] = []
    at, end = 0, len(text)
    match = _TOKEN.match
    while at < end:
        found = match(text, at)
        if found is None:
            stray = _stray(text, at)
            strays.append((at, stray))
            at += len(stray)
            continue
        kind = found.lastgroup or ""
        if kind != "hidden":
            lexeme = found[0]
            if kind == "punctuation" or (kind == "IDENTIFIER" and lexeme in _KEYWORDS):
                kind = lexeme
            tokens.append(Token(kind, lexeme, at))
        at = found.end()
    tokens.append(Token(EOF, EOF, end))
    return tokens, strays


def _stray(text: str, at: int) -> str:
    """As much as the lexer reads before it gives up, with the character that cannot follow."""
    begun = _STRAY.match(text, at)
    return text[at : begun.end() + 1] if begun is not None else text[at]
