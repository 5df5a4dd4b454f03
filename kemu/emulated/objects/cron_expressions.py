"""Cron expressions, as CronJobs state them: ``30 2 * * mon-fri``, ``@hourly``, ``@every 90m``.

Mirrors ``github.com/robfig/cron/v3`` (``ParseStandard``), which Kubernetes uses, with its texts of errors, its rule
that day of month and day of week are alternatives unless one of them is a star, and its ways through the hours that
summer time skips or repeats. Times are Unix nanoseconds.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol

from kemu.errors import KemuError

SECOND_NS = 1_000_000_000
NEVER = -62_135_596_800 * SECOND_NS
"""Go's zero time: there is no such time within five years."""
_YEARS = 5

_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_DAY_NAMES = "sun mon tue wed thu fri sat"


class _Bounds(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int] = MappingProxyType({})


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), start=first)}


_MINUTES, _HOURS, _DAYS = _Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31)
_MONTHS_OF_YEAR, _DAYS_OF_WEEK = _Bounds(1, 12, _numbered(_MONTH_NAMES, 1)), _Bounds(0, 6, _numbered(_DAY_NAMES, 0))
_FIELDS = (_MINUTES, _HOURS, _DAYS, _MONTHS_OF_YEAR, _DAYS_OF_WEEK)

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_UNITS_NS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": SECOND_NS, "m": 60 * SECOND_NS, "h": 3600 * SECOND_NS,
}  # fmt: skip
_AMOUNT = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)")
_INTEGER = re.compile("[+-]?[0-9]+")
_SPACE = re.compile("[\\s\x85\xa0]+")


class CronError(KemuError, ValueError):
    """The expression cannot be read."""


class Schedule(Protocol):
    def next(self, after_ns: int) -> int:
        """The first time after this one; NEVER if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Interval:
    """``@every``: whole seconds from one time to the next."""

    delay_ns: int

    def next(self, after_ns: int) -> int:
        return after_ns + self.delay_ns - after_ns % SECOND_NS


@dataclass(frozen=True, slots=True)
class Calendar:
    """The times whose fields are all in these sets."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    both_days: bool
    """Day of month and day of week must fit, not only one of them: one of them is a star."""
    zone: zoneinfo.ZoneInfo | None
    """None: UTC, the zone of controllers."""

    def next(self, after_ns: int) -> int:
        """``SpecSchedule.Next``, step by step, because its steps decide what happens when clocks change."""
        if after_ns == NEVER:
            return NEVER
        at = _Time(after_ns // SECOND_NS + 1, self.zone)
        limit = at.local.year + _YEARS
        moved = False
        while at.local.year <= limit:
            at, moved, wrapped = self._step(at, moved)
            if not wrapped:
                return at.unix_s * SECOND_NS
        return NEVER

    def _step(self, at: _Time, moved: bool) -> tuple[_Time, bool, bool]:
        """Each field from the largest on; True at the end: a larger one has changed, so that all are looked at anew."""
        while at.local.month not in self.months:
            if not moved:
                moved, at = True, at.date(at.local.month, 1)
            at = at.date(at.local.month + 1, at.local.day, keeps_time=True)
            if at.local.month == 1:
                return at, moved, True
        while not self._fits_day(at.local):
            if not moved:
                moved, at = True, at.date(at.local.month, at.local.day)
            following = at.date(at.local.month, at.local.day + 1, keeps_time=True)
            # A zone may skip a whole day; Kubernetes looks for it for ever.
            at = following if following.unix_s > at.unix_s else at.plus(86_400)
            if hour := at.local.hour:
                # Midnight is skipped or repeated on this day.
                at = at.plus((24 - hour if hour > 12 else -hour) * 3600)
            if at.local.day == 1:
                return at, moved, True
        while at.local.hour not in self.hours:
            if not moved:
                moved, at = True, at.date(at.local.month, at.local.day, at.local.hour)
            at = at.plus(3600)
            if at.local.hour == 0:
                return at, moved, True
        while at.local.minute not in self.minutes:
            if not moved:
                moved, at = True, at.plus(-(at.unix_s % 60))
            at = at.plus(60)
            if at.local.minute == 0:
                return at, moved, True
        while at.local.second:
            moved, at = True, at.plus(1)
            if at.local.second == 0:
                return at, moved, True
        return at, moved, False

    def _fits_day(self, local: dt.datetime) -> bool:
        by_month, by_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return by_month and by_week if self.both_days else by_month or by_week


class _Time:
    """A time with its fields in a zone."""

    __slots__ = ("local", "unix_s", "zone")

    def __init__(self, unix_s: int, zone: zoneinfo.ZoneInfo | None) -> None:
        self.unix_s = unix_s
        self.zone = zone
        self.local = _local(unix_s, zone)

    def plus(self, seconds: int) -> _Time:
        return _Time(self.unix_s + seconds, self.zone)

    def date(self, month: int, day: int, hour: int = 0, *, keeps_time: bool = False) -> _Time:
        """Date of this year; a month or day that is too large carries over (``time.Date``, ``AddDate``)."""
        local = self.local
        year, month = (local.year, month) if month <= 12 else (local.year + 1, month - 12)
        time_s = local.hour * 3600 + local.minute * 60 + local.second if keeps_time else hour * 3600
        first = dt.datetime(year, month, 1, tzinfo=dt.UTC)
        wall_s = int(first.timestamp()) + (day - 1) * 86_400 + time_s
        offset_s = _offset_s(wall_s, self.zone)
        if offset_s:
            # The offset at the time itself, which may be that of another season.
            offset_s = _offset_s(wall_s - offset_s, self.zone)
        return _Time(wall_s - offset_s, self.zone)


def _local(unix_s: int, zone: zoneinfo.ZoneInfo | None) -> dt.datetime:
    return dt.datetime.fromtimestamp(unix_s, zone or dt.UTC)


def _offset_s(unix_s: int, zone: zoneinfo.ZoneInfo | None) -> int:
    offset = _local(unix_s, zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def find_zone(name: str) -> zoneinfo.ZoneInfo | None:
    """The time zone of this name; None: UTC. Raises CronError."""
    if name in ("", "UTC", "Local"):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CronError(f"unknown time zone {name}") from error


def format_time(unix_ns: int, zone: str) -> str:
    """As in RFC 3339, with the offset of a zone. Raises CronError."""
    return _local(unix_ns // SECOND_NS, find_zone(zone)).isoformat().replace("+00:00", "Z")


def format_rfc1123(unix_ns: int) -> str:
    """As events show a time: ``Sat, 01 Jan 2000 02:30:00 +0000``."""
    at = _local(unix_ns // SECOND_NS, None)
    day, month = _DAY_NAMES.split()[at.isoweekday() % 7].title(), _MONTH_NAMES.split()[at.month - 1].title()
    return f"{day}, {at.day:02} {month} {at.year:04} {at.hour:02}:{at.minute:02}:{at.second:02} +0000"


@lru_cache(256)
def parse(expression: str) -> Schedule:
    """Raises CronError."""
    if not expression:
        raise CronError("empty spec string")
    zone: zoneinfo.ZoneInfo | None = None
    if expression.startswith(("TZ=", "CRON_TZ=")):
        assignment, space, expression = expression.partition(" ")
        if not space:
            end = assignment.index("=") + 1
            raise CronError(f"invalid schedule format: runtime error: slice bounds out of range [{end}:-1]")
        name = assignment.partition("=")[2]
        try:
            zone = find_zone(name)
        except CronError as error:
            raise CronError(f"provided bad location {name}: {error}") from error
        expression = _strip(expression)
    if expression.startswith("@"):
        if expression.startswith(_EVERY):
            return _every(expression.removeprefix(_EVERY))
        if expression not in _DESCRIPTORS:
            raise CronError(f"unrecognized descriptor: {expression}")
        expression = _DESCRIPTORS[expression]
    return _calendar(expression, zone)


def _strip(text: str) -> str:
    return text.strip(" \t\n\v\f\r\x85\xa0")


def _calendar(expression: str, zone: zoneinfo.ZoneInfo | None) -> Calendar:
    fields = [field for field in _SPACE.split(expression) if field]
    if len(fields) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    parsed = [_field(text, bounds) for text, bounds in zip(fields, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = parsed
    return Calendar(minutes, hours, days, months, weekdays, any_day or any_weekday, zone)


def _field(text: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """Its values, and whether it has a star (``getField``)."""
    values: set[int] = set()
    has_star = False
    for part in text.split(","):
        if part:
            found, is_star = _range(part, bounds)
            values.update(found)
            has_star = has_star or is_star
    return frozenset(values), has_star


def _range(text: str, bounds: _Bounds) -> tuple[Sequence[int], bool]:
    """``number``, ``number-number``, ``*``, all perhaps with ``/step`` (``getRange``)."""
    parts = text.split("/")
    limits = parts[0].split("-")
    is_star = limits[0] in ("*", "?")
    if is_star:
        low, high = bounds.low, bounds.high
    else:
        low = high = _number(limits[0], bounds.names)
        if len(limits) == 2:
            high = _number(limits[1], bounds.names)
        elif len(limits) > 2:
            raise CronError(f"too many hyphens: {text}")
    step = 1
    if len(parts) == 2:
        step = _number(parts[1], {})
        if len(limits) == 1:
            high = bounds.high
        is_star = is_star and step <= 1
    elif len(parts) > 2:
        raise CronError(f"too many slashes: {text}")
    if low < bounds.low:
        raise CronError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise CronError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step), is_star


def _number(text: str, known: Mapping[str, int]) -> int:
    if text.lower() in known:
        return known[text.lower()]
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not -(2**63) <= number < 2**63:
        why = "invalid syntax" if number is None else "value out of range"
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {why}')
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number


def _every(text: str) -> Interval:
    delay_ns = max(_duration_ns(text), SECOND_NS)
    return Interval(delay_ns - delay_ns % SECOND_NS)


def _duration_ns(text: str) -> int:
    """``time.ParseDuration``."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total = 0
    problem = "" if rest else f'time: invalid duration "{text}"'
    while rest and not problem:
        amount = _AMOUNT.match(rest)
        assert amount is not None
        whole, _, fraction, unit = (part or "" for part in amount.groups())
        if not whole and not fraction:
            problem = f'time: invalid duration "{text}"'
        elif not unit:
            problem = f'time: missing unit in duration "{text}"'
        elif unit not in _UNITS_NS:
            problem = f'time: unknown unit "{unit}" in duration "{text}"'
        else:
            scale = _UNITS_NS[unit]
            total += int(whole or "0") * scale
            total += int(fraction) * scale // 10 ** len(fraction) if fraction else 0
            if total > 2**63 - (sign > 0):
                problem = f'time: invalid duration "{text}"'
        rest = rest[amount.end() :]
    if problem:
        raise CronError(f"failed to parse duration {_EVERY}{text}: {problem}")
    return sign * total
