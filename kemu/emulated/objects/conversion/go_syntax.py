"""What Go's decoders say of texts that are no JSON or no base64 (``encoding/json/scanner.go``, ``encoding/base64``)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

END = "unexpected end of JSON input"

_SPACE = b" \t\r\n"
_URL_LETTER = re.compile(rb"[A-Za-z0-9_-]")
_ESCAPED = b'bfnrt\\/"'


class _Wrong(Exception):
    """The text says what is wrong."""


def problem(data: bytes) -> str:
    """What is wrong with JSON; empty: nothing."""
    try:
        _DECODER.decode(data.decode())
    except (ValueError, RecursionError):
        return _problem(data)  # which also knows what Go takes and Python does not
    return ""


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
"""Most texts are right: this one reads them fast."""


def _problem(data: bytes) -> str:
    try:
        at = _value(data, _skip(data, 0), "looking for beginning of value")
        at = _skip(data, at)
        if at < len(data):
            return _character(data[at], "after top-level value")
    except _Wrong as error:
        return str(error)
    except RecursionError:
        pass  # who reads it looks at the depth
    return ""


def url_decoded(text: str) -> tuple[bytes, str]:
    """Data of base64 in the letters of URLs without padding, and what is wrong with it (``RawURLEncoding``)."""
    data = text.encode().replace(b"\r", b"").replace(b"\n", b"")
    for index, letter in enumerate(text.encode()):
        if letter not in b"\r\n" and not _URL_LETTER.fullmatch(bytes((letter,))):
            return b"", f"illegal base64 data at input byte {index}"
    if len(data) % 4 == 1:
        return b"", f"illegal base64 data at input byte {len(text.encode()) - 1}"
    return base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4)), ""


def _character(byte: int, where: str) -> str:
    # Go reads bytes, not letters.
    shown = {ord("'"): r"'\''", ord('"'): "'\"'"}.get(byte)
    if shown is None:
        shown = f"'{_quoted(byte)}'"
    return f"invalid character {shown} {where}"


def _quoted(byte: int) -> str:
    letter = chr(byte)
    escape = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}
    if letter in escape:
        return escape[letter]
    if letter.isprintable() and byte != 0xA0:
        return letter
    return f"\\x{byte:02x}" if byte < 0x80 else f"\\u{byte:04x}"


def _skip(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _SPACE:
        at += 1
    return at


def _expect(data: bytes, at: int) -> int:
    """The byte there."""
    if at >= len(data):
        raise _Wrong(END)
    return data[at]


def _value(data: bytes, at: int, where: str) -> int:
    """The place after it."""
    byte = _expect(data, at)
    if byte in b"{[":
        return _compound(data, at, is_object=byte == ord("{"))
    if byte == ord('"'):
        return _string(data, at + 1)
    if byte in b"-0123456789":
        return _number(data, at)
    for word in (b"true", b"false", b"null"):
        if byte == word[0]:
            for index, wanted in _letters(word):
                if _expect(data, at + index) != wanted:
                    text = f"in literal {word.decode()} (expecting {chr(wanted)!r})"
                    raise _Wrong(_character(data[at + index], text))
            return at + len(word)
    raise _Wrong(_character(byte, where))


def _letters(word: bytes) -> Iterator[tuple[int, int]]:
    return ((index, letter) for index, letter in enumerate(word) if index)


def _compound(data: bytes, at: int, *, is_object: bool) -> int:
    end = ord("}") if is_object else ord("]")
    at = _skip(data, at + 1)
    if _expect(data, at) == end:
        return at + 1
    while True:
        if is_object:
            byte = _expect(data, at)
            if byte != ord('"'):
                raise _Wrong(_character(byte, "looking for beginning of object key string"))
            at = _skip(data, _string(data, at + 1))
            if _expect(data, at) != ord(":"):
                raise _Wrong(_character(data[at], "after object key"))
            at = _skip(data, at + 1)
        at = _skip(data, _value(data, at, "looking for beginning of value"))
        byte = _expect(data, at)
        if byte == end:
            return at + 1
        if byte != ord(","):
            raise _Wrong(_character(byte, f"after {'object key:value pair' if is_object else 'array element'}"))
        at = _skip(data, at + 1)


def _string(data: bytes, at: int) -> int:
    while True:
        byte = _expect(data, at)
        at += 1
        if byte == ord('"'):
            return at
        if byte < 0x20:
            raise _Wrong(_character(byte, "in string literal"))
        if byte != ord("\\"):
            continue
        byte = _expect(data, at)
        at += 1
        if byte == ord("u"):
            for _ in range(4):
                if _expect(data, at) not in b"0123456789abcdefABCDEF":
                    raise _Wrong(_character(data[at], "in \\u hexadecimal character escape"))
                at += 1
        elif byte not in _ESCAPED:
            raise _Wrong(_character(byte, "in string escape code"))


def _number(data: bytes, at: int) -> int:
    if data[at] == ord("-"):
        at += 1
        if _expect(data, at) not in b"0123456789":
            raise _Wrong(_character(data[at], "in numeric literal"))
    if data[at] == ord("0"):
        at += 1
    else:
        at = _digits(data, at)
    if at < len(data) and data[at] == ord("."):
        at += 1
        if _expect(data, at) not in b"0123456789":
            raise _Wrong(_character(data[at], "after decimal point in numeric literal"))
        at = _digits(data, at)
    if at < len(data) and data[at] in b"eE":
        at += 1
        if at < len(data) and data[at] in b"+-":
            at += 1
        if _expect(data, at) not in b"0123456789":
            raise _Wrong(_character(data[at], "in exponent of numeric literal"))
        at = _digits(data, at)
    return at


def _digits(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b"0123456789":
        at += 1
    return at
