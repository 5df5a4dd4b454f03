"""JSON merge patches in recorded cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def merged(fields: Json, changes: Mapping[str, Any]) -> Json:
    """A JSON merge patch."""
    found = dict(fields)
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            found[name] = merged(found.get(name) or {}, value)
        else:
            found[name] = value
    return found
