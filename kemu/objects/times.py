"""Timestamps as Kubernetes writes them: RFC 3339, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_S = -62_135_596_800
_LATEST_S = 253_402_300_799
"""The first and the last second that have a year of four digits."""
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


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
