"""Documents as parsers of JSON and YAML give them, and as writers take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
"""A document, or a part of one."""


def copied(value: Any) -> Any:  # noqa: ANN401 - what it is given
    """A copy of all of it, as ``copy.deepcopy`` makes one, which asks three functions for each value."""
    if isinstance(value, dict):
        return {name: copied(one) if isinstance(one, dict | list) else one for name, one in value.items()}
    if isinstance(value, list):
        return [copied(one) if isinstance(one, dict | list) else one for one in value]
    return value


def in_order(value: Json) -> Json:
    """With the keys of all mappings sorted."""
    if isinstance(value, Mapping):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(one) for one in value] if isinstance(value, list) else value
