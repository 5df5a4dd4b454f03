"""Bodies with mistakes: unknown and repeated fields, values of wrong types, texts that do not parse."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml

from tests.conformance.generators import writes

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("bodies",)
PLURALS = ("configmaps", "deployments", "nodes", "pods", "poddisruptionbudgets", "services", "secrets")
LEVELS = ("Strict", "Strict", "Warn", "Ignore", "")
_KEPT = (
    "apiVersion", "kind", "name", "metadata", "podCIDR", "podCIDRs", "clusterIP", "ipFamilies", "ipFamilyPolicy",
    "ports",
)  # fmt: skip
"""Mistakes in these are others than of a decoder."""
_TWICE = "twice!"


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    plural = draw.choice(PLURALS)
    steps: list[Json] = [{"verb": "create", "body": writes.document(draw, plural), "manager": "a"}]
    steps += [_step(draw, plural) for _ in range(6)]
    return {"id": f"bodies-s{seed}-{number:05}", "family": "bodies", "resource": plural, "steps": steps}


def _step(draw: Draw, plural: str) -> Json:
    body = writes.document(draw, plural)
    for _ in range(draw.choice((1, 1, 2))):
        _mistake(draw, body)
    step: Json = {"verb": draw.choice(("create", "update", "update", "strategic", "merge")), "manager": "a"}
    step["validation"] = draw.choice(LEVELS)
    if step["verb"] in ("create", "update") and draw.random() < 0.3:
        step["contentType"] = "application/yaml"
        step["text"] = yaml.safe_dump(body).replace(_TWICE, "")
    else:
        step["text"] = _repeated(json.dumps(body))
    return step


def _repeated(text: str) -> str:
    """A key that ends so stands twice."""
    return text.replace(_TWICE, "")


def _mistake(draw: Draw, body: Json) -> None:
    places = [(holder, name) for holder, name in _places(body) if name not in _KEPT]
    if not places:
        return
    holder, name = draw.choice(places)
    chance = draw.random()
    if chance < 0.3:
        holder[f"{name}x"] = holder[name]
    elif chance < 0.45:
        holder[f"{name}{_TWICE}"] = holder[name]
    else:
        holder[name] = draw.choice(("text", 7, 1.5, True, [], ["a"], {"a": "b"}, {}, "1Gi", None))


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for name, one in value.items():
            yield value, name
            yield from _places(one)
    elif isinstance(value, list):
        for one in value:
            yield from _places(one)
