"""Recorded decisions on taints and lost nodes."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def differences(recorded: Json, answered: Json) -> list[str]:
    return [] if recorded == answered else ["differs"]


def taint_eviction(case: Json) -> Json:
    raise KeyError(case["id"])


node_failure = taint_eviction
