"""Patches of single documents, by the code that patches objects in API servers."""

from __future__ import annotations

import copy
from typing import Any

from kemu.emulated.apiserver.registry.patching import json_patches, patches, strategic_merges
from kemu.emulated.objects import plain
from kemu.emulated.objects.conversion import json_operations
from kemu.errors import ApiError
from kemu.lab.conformance import comparisons

Json = dict[str, Any]

_TYPES = {
    "Pod": "core.v1.Pod",
    "Node": "core.v1.Node",
    "Service": "core.v1.Service",
    "ServiceAccount": "core.v1.ServiceAccount",
    "Deployment": "apps.v1.Deployment",
    "PodDisruptionBudget": "policy.v1.PodDisruptionBudget",
}
_REFUSED = "the server rejected our request due to an error in our request"


def answer(case: Json) -> Json:
    original, patch = copy.deepcopy(case["original"]), copy.deepcopy(case["patch"])
    try:
        if case["type"] == "strategic":
            return {"result": strategic_merges.merge(original, patch, _TYPES[case["kind"]])}
        if case["type"] == "merge":
            return {"result": patches.merge(original, patch)}
        return {"result": json_operations.apply(original, json_patches.check(patch))}
    except ApiError as error:
        return {"error": error.message}


def agrees(expect: Json, answered: Json) -> list[str]:
    """The server does not tell why a JSON patch fails, or a list of lists."""
    if "error" in expect and answered.get("error") == _REFUSED:
        return []
    if comparisons.canonical(expect) == comparisons.canonical(answered) and _is_same(expect, answered):
        return []
    return comparisons.compare(expect, answered) or [f"recorded {expect}, kemu {answered}"]


def _is_same(one: plain.Json, other: plain.Json) -> bool:
    return bool(one == other)
