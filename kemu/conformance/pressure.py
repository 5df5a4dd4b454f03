"""Recorded decisions under node pressure: ranking, the eviction manager pass by pass, and its loop."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def rank(case: Json) -> Json:
    raise KeyError(case["id"])


manager = loop = rank
