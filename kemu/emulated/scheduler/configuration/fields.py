"""Reading fields of a scheduler's configuration: kinds of values, and mistakes with their paths.

Below :mod:`kemu.emulated.scheduler.configuration.configurations` and
:mod:`kemu.emulated.scheduler.configuration.arguments`, which say what fields there are. A *check* takes a value and its
path, and returns the value or raises
:class:`ConfigurationError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.emulated.objects import times
from kemu.emulated.objects.plain import Json
from kemu.errors import FieldError
from kemu.runtime import words

API_VERSION = "kubescheduler.config.k8s.io/v1"

Check = Callable[[Any, str], Any]


class ConfigurationError(FieldError):
    """A mistake in a scheduler's configuration. ``path`` leads to it from the top of the configuration."""


def read(data: Json, path: str, known: Mapping[str, Check]) -> dict[str, Any]:
    """The checked fields of a mapping; those that are null count as absent. ``path`` is "" at the top."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(path or "configuration", f"must be a mapping, not {type(data).__name__}")
    check_keys(data, path, known)
    return {
        key: known[key](value, f"{path}.{key}" if path else str(key))
        for key, value in data.items()
        if value is not None
    }


def check_keys(data: Mapping[str, Any], path: str, known: Iterable[str]) -> None:
    """Raise :class:`ConfigurationError` for the first key that is not known."""
    names = list(known)
    for key in data:
        if key not in names:
            place = f"{path}.{key}" if path else str(key)
            raise ConfigurationError(place, "unknown field", words.did_you_mean(str(key), names, '"'))


# Kinds of values ----------------------------------------------------------------------------------------------------


def text(value: Json, path: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(path, f"must be text: {value!r}")
    return value


def boolean(value: Json, path: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(path, f"must be true or false: {value!r}")
    return value


def entries(value: Json, path: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ConfigurationError(path, "must be a list")
    return list(value)


def mapping(value: Json, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(path, "must be a mapping")
    return value


def number(value: Json, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(path, f"must be a number: {value!r}")
    return float(value)


def duration_s(value: Json, path: str) -> float:
    """A duration as Go writes it, ``5s``, ``1m30s``; in seconds. Not negative."""
    try:
        found_ns = times.parse_duration(value) if isinstance(value, str) else -1
    except ValueError:
        found_ns = -1
    if found_ns < 0:
        raise ConfigurationError(path, f"must be a duration such as 5s or 1m30s: {value!r}")
    return found_ns / 1e9


def constant(expected: str) -> Check:
    def check(value: Json, path: str) -> str:
        if value != expected:
            raise ConfigurationError(path, f"must be {expected!r}, not {value!r}")
        return expected

    return check


def whole(lowest: int | None, highest: int | None) -> Check:
    """None: no bound."""

    def check(value: Json, path: str) -> int:
        bound = "" if lowest is None else f" of at least {lowest}"
        if lowest is not None and highest is not None:
            bound = f" from {lowest} to {highest}"
        too_low = isinstance(value, int) and lowest is not None and value < lowest
        too_high = isinstance(value, int) and highest is not None and value > highest
        if isinstance(value, bool) or not isinstance(value, int) or too_low or too_high:
            raise ConfigurationError(path, f"must be a whole number{bound}: {value!r}")
        return value

    return check


def record(known: Mapping[str, Check]) -> Check:
    """A mapping with these fields."""
    return lambda value, path: read(value, path, known)
