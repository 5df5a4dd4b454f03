"""Numbers as Go compares, converts and prints them."""

from __future__ import annotations

import math
import re

_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?|0[xX][0-9a-fA-F_]*\.?[0-9a-fA-F_]*[pP][+-]?[0-9]+"
    r"|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)


def order(left: float, right: float) -> int | None:
    """-1, 0 or 1 of two numbers of any type, or None if one is NaN. Ints are compared with doubles as doubles are."""
    if type(left) is float:
        if math.isnan(left) or (type(right) is float and math.isnan(right)):
            return None
        return _order_double(left, right)
    if type(right) is float:
        if math.isnan(right):
            return None
        return -_order_double(right, left)
    return (left > right) - (left < right)


def _order_double(left: float, right: float) -> int:
    if type(right) is not float:
        # Beyond the range of the integer's type the double is not converted to it, nor the integer to a double.
        low, high = (-(2.0**63), 2.0**63) if type(right) is int else (0.0, 2.0**64)
        if left < low:
            return -1
        if left > high:
            return 1
        right = float(right)
    return (left > right) - (left < right)


def shortest(value: float) -> str:
    """The fewest digits that give `value` back, with an exponent below 1e-4 and from 1e6: Go's ``%v`` and ``%g``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, point = _digits(abs(value))
    exponent = point - 1
    if -4 <= exponent < 6 or digits == "0":
        return sign + _plain(digits, point)
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def decimal(value: float) -> str:
    """The fewest digits that give `value` back, never with an exponent: Go's format ``f`` with precision -1."""
    if math.isnan(value) or math.isinf(value):
        return shortest(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return sign + _plain(*_digits(abs(value)))


def _digits(value: float) -> tuple[str, int]:
    """The digits of a number that is not negative, and how many stand before the point."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    return (digits, point) if digits else ("0", 1)


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits if digits != "0" else "0"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def parse_integer(text: str, low: int, high: int) -> int | None:
    """The whole number that `text` states in decimal, or None if it states none within the range."""
    if not _DIGITS.fullmatch(text) or (low == 0 and text[0] in "+-") or len(text) > 40:
        return None
    number = int(text)
    return number if low <= number <= high else None


def parse_double(text: str) -> float | None:
    """The double that Go's ParseFloat reads, or None."""
    if not _FLOAT.fullmatch(text) or "_" in text:
        return None
    try:
        number = float.fromhex(text) if "x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        return None
    if math.isinf(number) and "inf" not in text.lower():
        return None
    return number


def truncated_division(left: int, right: int) -> int:
    """Division that rounds towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def quoted(text: str) -> str:
    """A string in double quotes, as Go's ``%q`` writes it."""
    parts = ['"']
    for character in text:
        code = ord(character)
        if character in '"\\':
            parts.append("\\" + character)
        elif character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif character == " " or (character.isprintable() and not 0xD800 <= code < 0xE000):
            parts.append(character)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        elif code < 0x10000:
            parts.append(f"\\u{code:04x}")
        else:
            parts.append(f"\\U{code:08x}")
    parts.append('"')
    return "".join(parts)


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
