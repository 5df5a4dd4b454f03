"""Timestamps and durations: nanoseconds, ranges, texts and time zones as in Go."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo

from kemu.emulated.cel import numbers
from kemu.emulated.cel.values import INT_MAX, INT_MIN, Error, Opaque, Value

SECOND = 1_000_000_000
#: 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds since 1970.
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - offsets are counted apart
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PIECE = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?")
_OFFSET_PART = re.compile(r"[+-]?[0-9]+")


class Duration(Opaque):
    """A span of time in nanoseconds, within 64 bits."""

    __slots__ = ("nanoseconds",)
    type_name = "google.protobuf.Duration"

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def equal(self, other: Value) -> Value:
        return type(other) is Duration and other.nanoseconds == self.nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.nanoseconds == self.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __str__(self) -> str:
        """Seconds, such as ``1.5s``."""
        whole = numbers.truncated_division(self.nanoseconds, SECOND)
        return numbers.decimal(float(whole) + (self.nanoseconds - whole * SECOND) / 1e9) + "s"


class Timestamp(Opaque):
    """A point in time: seconds since 1970, nanoseconds, and the offset from UTC in seconds in which it prints."""

    __slots__ = ("nanoseconds", "offset", "seconds")
    type_name = "google.protobuf.Timestamp"

    def __init__(self, seconds: int, nanoseconds: int = 0, offset: int = 0) -> None:
        self.seconds = seconds
        self.nanoseconds = nanoseconds
        self.offset = offset

    def equal(self, other: Value) -> Value:
        return type(other) is Timestamp and self.key == other.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and (other.key, other.offset) == (self.key, self.offset)

    def __hash__(self) -> int:
        return hash((self.key, self.offset))

    @property
    def key(self) -> tuple[int, int]:
        return self.seconds, self.nanoseconds

    def __str__(self) -> str:
        """RFC 3339, with as many digits of the second as it has."""
        local = self.fields(self.offset)
        fraction = f".{self.nanoseconds:09d}".rstrip("0") if self.nanoseconds else ""
        sign, minutes = "-" if self.offset < 0 else "+", abs(self.offset) // 60
        zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        return f"{local.year:04d}-{local.month:02d}-{local.day:02d}T{local:%H:%M:%S}{fraction}{zone}"

    def fields(self, offset: int) -> dt.datetime:
        """Date and time of day at `offset` seconds from UTC."""
        return _EPOCH + dt.timedelta(seconds=max(FIRST_SECOND, min(self.seconds + offset, LAST_SECOND)))


def parse_duration(text: str) -> Duration | None:
    """``1h30m``, ``-1.5s``, ``0``; None if Go's ParseDuration refuses."""
    rest, negative = text, False
    if rest[:1] in ("+", "-"):
        negative, rest = rest[0] == "-", rest[1:]
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        piece = _PIECE.match(rest, at)
        if piece is None or not (piece[1] or piece[2]):
            return None
        unit = _UNITS[piece[3]]
        total += int(piece[1] or 0) * unit
        if piece[2]:
            total += int(int(piece[2]) * unit / 10 ** len(piece[2]))
        if total > INT_MAX + 1:
            return None
        at = piece.end()
    if not rest or total > INT_MAX + negative:
        return None
    return Duration(-total if negative else total)


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339 as Go reads it, or None."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    try:
        local = dt.datetime(*(int(part) for part in found.groups()[:6]))  # type: ignore[arg-type]  # noqa: DTZ001
    except ValueError:
        # Year 0 is no year of Python's; no instant of it is within the range of timestamps.
        return Timestamp(FIRST_SECOND - 1) if found[1] == "0000" else None
    offset = 0
    if found[9]:
        if int(found[10]) > 24 or int(found[11]) > 60:
            return None
        offset = (int(found[10]) * 60 + int(found[11])) * (-60 if found[9] == "-" else 60)
    seconds = (local - _EPOCH) // dt.timedelta(seconds=1) - offset
    return Timestamp(seconds, int((found[7] or "")[:9].ljust(9, "0")), offset)


def in_range(moment: Timestamp) -> bool:
    return FIRST_SECOND <= moment.seconds <= LAST_SECOND


def parse_date_time(text: str) -> Timestamp | None:
    """A value of the OpenAPI format ``date-time``: RFC 3339, or without a zone."""
    if not text:
        return Timestamp(0)
    return parse_timestamp(text + "Z") if _LOCAL.fullmatch(text) else parse_timestamp(text)


def parse_date(text: str) -> Timestamp | None:
    """A value of the OpenAPI format ``date``."""
    return parse_timestamp(f"{text}T00:00:00Z") if _DATE.fullmatch(text) else None


def add(moment: Timestamp, nanoseconds: int) -> Value:
    """A timestamp later by a duration."""
    total = moment.seconds * SECOND + moment.nanoseconds + nanoseconds
    later = Timestamp(total // SECOND, total % SECOND, moment.offset)
    return later if in_range(later) else Error("timestamp overflow")


def between(later: Timestamp, earlier: Timestamp) -> Value:
    """The duration from `earlier` to `later`."""
    seconds = (later.seconds - earlier.seconds) * SECOND
    total = seconds + later.nanoseconds - earlier.nanoseconds
    if not (INT_MIN <= seconds <= INT_MAX and INT_MIN <= total <= INT_MAX):
        return Error("integer overflow")
    return Duration(total)


def offset_of(zone: str, moment: Timestamp) -> int | Error:
    """The offset from UTC in seconds of a zone's name, or of an offset such as ``-02:30``."""
    if ":" in zone:
        hours, minutes = zone.split(":", 1)
        for part in (hours, minutes):
            if not _OFFSET_PART.fullmatch(part):
                return Error(f"strconv.Atoi: parsing {numbers.quoted(part)}: invalid syntax")
        signed = int(hours) * 60 - int(minutes) if zone[0] == "-" else int(hours) * 60 + int(minutes)
        return signed * 60
    if zone in ("", "UTC"):
        return 0
    if zone.startswith(("/", "\\")) or ".." in zone:
        return Error("time: invalid location name")
    try:
        here = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return Error(f"unknown time zone {zone}")
    shift = moment.fields(0).replace(tzinfo=dt.UTC).astimezone(here).utcoffset()
    return int(shift.total_seconds()) if shift is not None else 0
