"""Compares an answer with the record as JSON data: a missing key equals an empty value, numbers compare as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kemu.emulated.objects.plain import Json

Comparison = Callable[[str, Any, Any, list[str]], bool]
"""``(path, recorded, answered, differences)``: returns whether it has compared this value itself."""

_EMPTY = (None, "", 0, False)


def is_empty(value: Json) -> bool:
    return value in ([], {}) if isinstance(value, list | dict) else value in _EMPTY


def compare(recorded: Json, answered: Json, special: Comparison | None = None) -> list[str]:
    """What differs, one line each."""
    found: list[str] = []
    _compare("", recorded, answered, special, found)
    return found


def set_of(values: Sequence[Any] | None) -> list[str]:
    """The members in canonical order, without duplicates: equal sets give equal lists."""
    return sorted({canonical(value) for value in values or ()})


def canonical(value: Json) -> str:
    """A value as text, without empty keys: equal values have equal texts."""
    if isinstance(value, Mapping):
        return (
            "{" + ",".join(f"{key}:{canonical(value[key])}" for key in sorted(value) if not is_empty(value[key])) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(value)


def _compare(path: str, recorded: Json, answered: Json, special: Comparison | None, found: list[str]) -> None:
    if special is not None and special(path, recorded, answered, found):
        return
    if is_empty(recorded) and is_empty(answered):
        return
    if isinstance(recorded, Mapping) and isinstance(answered, Mapping):
        for key in sorted({*recorded, *answered}):
            _compare(f"{path}.{key}" if path else key, recorded.get(key), answered.get(key), special, found)
    elif isinstance(recorded, list) and isinstance(answered, list) and len(recorded) == len(answered):
        for index, (here, there) in enumerate(zip(recorded, answered, strict=True)):
            _compare(f"{path}[{index}]", here, there, special, found)
    elif recorded != answered or isinstance(recorded, bool) != isinstance(answered, bool):
        found.append(f"{path}: recorded {recorded!r}, kemu {answered!r}")


def all_differences(path: str, recorded: object, ours: object) -> Iterator[str]:
    """Every difference, with its place; a missing key equals null alone."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in sorted({*recorded, *ours}):
            yield from all_differences(f"{path}.{key}".removeprefix("."), recorded.get(key), ours.get(key))
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for place, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            yield from all_differences(f"{path}[{place}]", one, other)
    elif recorded != ours:
        yield f"{path}: recorded {recorded!r}, kemu {ours!r}"
