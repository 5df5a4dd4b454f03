"""Resource scores: which resources count for a pod, and the arguments that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.scheduler.framework.interfaces import ArgumentError

MAX_WEIGHT = 100


def resource_weights(entries: Sequence[Mapping[str, Any]] | None, path: str) -> tuple[tuple[str, int], ...]:
    """Names and weights of a list of ``{name, weight}``; cpu and memory with weight 1 when it is absent or empty."""
    if not entries:
        return (("cpu", 1), ("memory", 1))
    weights = []
    for number, entry in enumerate(entries):
        name, weight = entry.get("name", ""), entry.get("weight", 0) or 1
        if not name:
            raise ArgumentError(f"{path}[{number}].name", "a resource must be named")
        if not isinstance(weight, int) or not 1 <= weight <= MAX_WEIGHT:
            raise ArgumentError(f"{path}[{number}].weight", f"must be an integer from 1 to {MAX_WEIGHT}: {weight!r}")
        weights.append((name, weight))
    return tuple(weights)
