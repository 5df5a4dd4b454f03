"""The small notations of the format: durations, rates, quantities with a unit.

Each reader takes what stood in the YAML and raises ValueError with a text that says what would be right.
"""

from __future__ import annotations

import re
from fractions import Fraction

from kemu.emulated.objects import times
from kemu.runtime.env import SECOND_NS

UNITS_NS = times.UNITS_NS
_UNIT = "|".join(UNITS_NS)
DURATION_PATTERN = rf"^(0|(([0-9]+\.?[0-9]*|\.[0-9]+)({_UNIT}))+)$"
_DURATION = re.compile(DURATION_PATTERN)
SIGNED_PATTERN = DURATION_PATTERN.replace("^(", "^-?(", 1)
RATE_PATTERN = rf"^([0-9]+\.?[0-9]*|\.[0-9]+)/({_UNIT})$"
_RATE = re.compile(RATE_PATTERN)
PERCENT_PATTERN = r"^([0-9]+\.?[0-9]*|\.[0-9]+)%$"
_PERCENT = re.compile(PERCENT_PATTERN)

MAX_DURATION_NS = times.MAX_DURATION_NS
_MAX_LENGTH = 100
"""Most length of a text with a number in it."""


def duration_ns(value: object) -> int:
    """``250ms``, ``90s``, ``1h30m``, ``1.5h`` or the number 0, in nanoseconds. Never negative."""
    if value == 0 and not isinstance(value, bool):
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a duration such as 250ms, 90s or 1h30m")
    if isinstance(value, int | float):
        raise ValueError(f"has no unit; did you mean {value:g}s?")
    if len(value) > _MAX_LENGTH:
        raise ValueError(f"is too long for a duration: {len(value)} characters")
    text = value.strip()
    if text.startswith("-"):
        raise ValueError("must not be negative")
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{value!r} is not a duration; write 250ms, 90s or 1h30m")
    try:
        return times.parse_duration(text)
    except ValueError:
        raise ValueError(f"{value} is too long") from None


def duration_s(value: object) -> float:
    """The same in seconds."""
    return duration_ns(value) / SECOND_NS


def signed_duration_s(value: object) -> float:
    """``-30s`` too."""
    if isinstance(value, str) and value.strip().startswith("-"):
        return -duration_s(value.strip()[1:])
    return duration_s(value)


def rate_per_s(value: object) -> float:
    """``5/s``, ``300/m`` or ``0.5/h``, per second; more than 0."""
    if isinstance(value, str) and len(value) > _MAX_LENGTH:
        raise ValueError(f"is too long for a rate: {len(value)} characters")
    match = _RATE.match(value) if isinstance(value, str) else None
    if match is None:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f"{value:g}/s" if plain else "5/s or 300/m"
        raise ValueError(f"{value!r} is not a rate; write {hint}")
    rate = Fraction(match[1].rstrip(".")) * SECOND_NS / UNITS_NS[match[2]]
    if rate <= 0:
        raise ValueError("must be more than 0")
    return float(rate)


def share(value: object) -> float:
    """``10%`` or ``0.1``, as a number above 0 and not above 1."""
    if isinstance(value, str) and len(value) > _MAX_LENGTH:
        raise ValueError(f"is too long for a share: {len(value)} characters")
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        found = float(Fraction(match[1].rstrip(".")) / 100)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = float(value)
    else:
        raise ValueError(f"{value!r} is not a share; write 10% or 0.1")
    if not 0 < found <= 1:
        raise ValueError("must be more than 0 and not more than 100%")
    return found


def full_name(name: str) -> str:
    """``namespace/name`` of an object written with or without its namespace."""
    return name if "/" in name else f"default/{name}"


def duration_text(duration_ns: int) -> str:
    """As Go prints it, without zero parts: ``1m30s``, ``250ms``, ``0s``."""
    if duration_ns == 0:
        return "0s"
    text = ""
    rest = duration_ns
    for unit in ("h", "m"):
        count, rest = divmod(rest, UNITS_NS[unit])
        text += f"{count}{unit}" if count else ""
    for unit in ("s", "ms", "us", "ns"):
        if rest and (rest % UNITS_NS[unit] == 0 or rest >= UNITS_NS[unit]):
            whole, part = divmod(rest, UNITS_NS[unit])
            digits = len(str(UNITS_NS[unit])) - 1
            decimals = f".{part:0{digits}d}".rstrip("0") if part else ""
            return f"{text}{whole}{decimals}{unit}"
    return text
