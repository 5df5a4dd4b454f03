"""Causes of refusals as ``field.Error`` words them for values of custom resources, which are any JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from kemu.emulated.objects.conversion import go_json
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation import causes
from kemu.errors import Cause

TOO_MANY = "FieldValueTooMany"
TYPE_INVALID = "FieldValueTypeInvalid"
INTERNAL = "InternalError"
NO_PATH = "<nil>"
"""The path of a whole object."""
_INT64 = 1 << 63
OMITTED: Any = object()
"""In place of a value that the text does not show."""

BLOCKING = frozenset(
    (causes.NOT_SUPPORTED, causes.REQUIRED, causes.TOO_LONG, TOO_MANY, TYPE_INVALID),
)
"""Reasons of causes after which rules are not evaluated any more (``hasBlockingErr``)."""


class Verbatim(str):
    """A value that is shown as it is written."""

    __slots__ = ()


_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def invalid(path: str, value: Any, detail: str) -> Cause:
    return Cause(path or NO_PATH, causes.INVALID, f"{_headed('Invalid value', value)}: {detail}")


def type_invalid(path: str, value: Any, detail: str) -> Cause:
    return Cause(path or NO_PATH, TYPE_INVALID, f"{_headed('Invalid value', value)}: {detail}")


def required(path: str, detail: str = "") -> Cause:
    return causes.required(path or NO_PATH, detail)


def forbidden(path: str, detail: str) -> Cause:
    return Cause(path or NO_PATH, causes.FORBIDDEN, f"Forbidden: {detail}" if detail else "Forbidden")


def internal(path: str, detail: str) -> Cause:
    return Cause(path or NO_PATH, INTERNAL, f"Internal error: {detail}")


def duplicate(path: str, value: Any) -> Cause:
    return Cause(path or NO_PATH, causes.DUPLICATE, _headed("Duplicate value", value))


def not_supported(path: str, value: Json, supported: Sequence[str]) -> Cause:
    known = ", ".join(quoted(one) for one in supported)
    text = _headed("Unsupported value", value)
    return Cause(path or NO_PATH, causes.NOT_SUPPORTED, f"{text}: supported values: {known}" if known else text)


def too_long(path: str, limit: int) -> Cause:
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}" if limit >= 0 else "value is too long"
    return Cause(path or NO_PATH, causes.TOO_LONG, f"Too long: {detail}")


def too_many(path: str, actual: int, limit: int) -> Cause:
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}" if limit >= 0 else "has too many items"
    head = f"Too many: {actual}" if actual >= 0 else "Too many"
    return Cause(path or NO_PATH, TOO_MANY, f"{head}: {detail}")


def text_of(cause: Cause) -> str:
    """``field.Error.Error``."""
    return f"{cause.field}: {cause.message}"


def aggregate(found: Sequence[Cause]) -> str:
    """``ErrorList.ToAggregate().Error()``."""
    texts = list(dict.fromkeys(text_of(one) for one in found))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _headed(head: str, value: Any) -> str:
    return head if value is OMITTED else f"{head}: {shown(value)}"


# Values as Go prints them ---------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A refused value: strings quoted, numbers plain, the rest as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int | float):
        return number(value)
    return as_json(value)


def quoted(text: str) -> str:
    """``%q``."""
    return '"' + "".join(_ESCAPES.get(one) or (one if one.isprintable() else _escape(one)) for one in text) + '"'


_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def _escape(letter: str) -> str:
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """``%v`` of an int64, or of a float64, which all other numbers are: with an exponent below 1e-4 and from 1e6 on."""
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return str(value)
    return _float(float(value))


def _float(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = f"{value!r}"
    if "e" not in text and abs(value) < 1e6:
        return text.removesuffix(".0")
    sign, mantissa, power = re.fullmatch(r"(-?)([0-9.]+)(?:e([-+][0-9]+))?", text).groups()  # type: ignore[union-attr]
    whole, _, fraction = mantissa.partition(".")
    figures = (whole + fraction).lstrip("0").rstrip("0")
    exponent = int(power or 0) + len(whole) - 1
    if exponent < -4 or exponent >= 6:
        rest = f".{figures[1:]}" if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return text.removesuffix(".0")


def as_json(value: Any) -> str:
    """``json.Marshal``: sorted keys, HTML escaped, numbers as Go writes them."""
    text = go_json.encode(value).decode()
    return re.sub("[<>&\u2028\u2029]", lambda match: _HTML[match[0]], text)
