"""Strings and bytes as they are written in expressions."""

from __future__ import annotations

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip
_LENGTHS = {"x": 2, "X": 2, "u": 4, "U": 8}


def string(text: str) -> str:
    """The string that a token states. Raises `ValueError` with cel-go's message."""
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    parts: list[str] = []
    at = 0
    while at < len(body):
        stop = body.find("\\", at)
        if stop < 0:
            parts.append(body[at:])
            break
        parts.append(body[at:stop])
        code, at = _escape(body, stop)
        if isinstance(code, str):
            parts.append(code)
        elif code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError("invalid unicode code point")
        else:
            parts.append(chr(code))
    return "".join(parts)


def byte_string(text: str) -> bytes:
    """The bytes that a token states, without its ``b``. Raises `ValueError` with cel-go's message."""
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        stop = body.find("\\", at)
        if stop < 0:
            parts.append(body[at:].encode())
            break
        parts.append(body[at:stop].encode())
        if body[stop + 1] in "uU":
            raise ValueError("unable to unescape string")
        code, at = _escape(body, stop)
        parts.append(code.encode() if isinstance(code, str) else bytes([code]))
    return b"".join(parts)


def _body(text: str) -> tuple[str, bool]:
    """What stands between the quotes, and whether it is raw; line ends become newlines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes], raw


def _escape(body: str, at: int) -> tuple[str | int, int]:
    """What the escape at `at` stands for (a character, or the number of one), and where it ends."""
    letter = body[at + 1]
    if letter in _SIMPLE:
        return _SIMPLE[letter], at + 2
    if letter in _LENGTHS:
        end = at + 2 + _LENGTHS[letter]
        return int(body[at + 2 : end], 16), end
    return int(body[at + 1 : at + 4], 8), at + 4
