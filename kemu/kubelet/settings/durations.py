"""Durations as Go writes and reads them: ``1m30s``, ``500ms``, ``-1.5h``. Mirrors ``time.ParseDuration``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MAX_NS = 2**63 - 1


def _fraction_ns(digits: str, unit: int) -> int:
    """With the floats of Go, which may cut off one nanosecond more than the exact number does."""
    number, scale = 0, 1.0
    for digit in digits:
        longer = number * 10 + int(digit)
        if number > _MAX_NS // 10 or longer > _MAX_NS + 1:
            break  # Further digits do not count.
        number, scale = longer, scale * 10
    return int(float(number) * (float(unit) / scale))


def parse_ns(text: str) -> int:
    """Nanoseconds, fractions of them cut off. Raises ValueError."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            break
        unit = _UNIT_NS[part[3]]
        total += int(part[1] or "0") * unit + _fraction_ns(part[2] or "", unit)
        position = part.end()
    if not rest or position < len(rest):
        raise ValueError(f"invalid duration {text!r}: expected something like 10s or 1m30s")
    if total > _MAX_NS and not (sign < 0 and total == _MAX_NS + 1):
        raise ValueError(f"invalid duration {text!r}: too long")
    return sign * total


def field_ns(fields: Mapping[str, Any], name: str, path: str = "") -> int:
    """Nanoseconds of a field; 0 where it is missing. Raises ValueError that begins with its path (``name``)."""
    try:
        return parse_ns(fields.get(name) or "0")
    except ValueError as error:
        raise ValueError(f"{path or name}: {error}") from error
