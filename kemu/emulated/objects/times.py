"""Timestamps as Kubernetes writes them (RFC 3339, in UTC), and durations as Go writes them (``1m30s``, ``500ms``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_S = -62_135_596_800
_LATEST_S = 253_402_300_799
"""The first and the last second that have a year of four digits."""
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
"""Nanoseconds in each unit of a duration."""
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
MAX_DURATION_NS = 2**63 - 1
"""292 years."""


@lru_cache(16_384)
def parse_time(text: str) -> int:
    """Unix nanoseconds of an RFC 3339 text, cut to whole microseconds. Raises ValueError."""
    try:
        if not _RFC_3339.fullmatch(text):
            raise ValueError
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"must be a time such as 2006-01-02T15:04:05Z, not {text!r}") from None
    return (when - _EPOCH) // timedelta(microseconds=1) * 1000


@lru_cache(16_384)
def format_time(unix_s: int) -> str:
    """RFC 3339 text of Unix seconds: ``2000-01-01T00:00:00Z``. Times before year 1 or after 9999 are cut to that."""
    when = _EPOCH + timedelta(seconds=max(_EARLIEST_S, min(unix_s, _LATEST_S)))
    return when.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_micro_time(unix_s: int, nanos: int) -> str:
    """RFC 3339 text with six digits of a second: ``2000-01-01T00:00:00.000001Z``."""
    return f"{format_time(unix_s)[:-1]}.{nanos // 1000 % 1_000_000:06d}Z"


def _fraction_ns(digits: str, unit: int) -> int:
    """With Go's float arithmetic, which may lose one nanosecond more than exact arithmetic."""
    number, scale = 0, 1.0
    for digit in digits:
        longer = number * 10 + int(digit)
        if number > MAX_DURATION_NS // 10 or longer > MAX_DURATION_NS + 1:
            break  # Further digits do not count.
        number, scale = longer, scale * 10
    return int(float(number) * (float(unit) / scale))


def parse_duration(text: str) -> int:
    """Whole nanoseconds of a text such as ``1m30s``; fractions are cut off. Raises ValueError.

    Mirrors ``time.ParseDuration`` of Go.
    """
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            break
        unit = UNITS_NS[part[3]]
        total += int(part[1] or "0") * unit + _fraction_ns(part[2] or "", unit)
        position = part.end()
    if not rest or position < len(rest):
        raise ValueError(f"invalid duration {text!r}: expected something like 10s or 1m30s")
    if total > MAX_DURATION_NS and not (sign < 0 and total == MAX_DURATION_NS + 1):
        raise ValueError(f"invalid duration {text!r}: too long")
    return sign * total


def seconds_text(seconds: float) -> str:
    """Seconds for an annotation, to the millisecond: ``12.5``, ``60``."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
