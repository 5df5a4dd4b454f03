"""Namespaces with contents that are deleted, while kubelets end pods, finalizers go, and requests fail."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("namespaces",)
RESOURCES = ("pods", "pods", "pods", "configmaps", "secrets", "services", "deployments", "roles", "leases")
HORIZON_MS = 150_000
_FAULTS = (
    ("namespaces", "get", 500), ("namespaces", "status", 500), ("namespaces", "status", 409),
    ("namespaces", "finalize", 500), ("namespaces", "finalize", 409),
)  # fmt: skip


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    objects = [_object(draw, name) for name in "abcdefgh"[: draw.choice((0, 1, 2, 3, 5, 8))]]
    # No two things happen at the same time, or whole seconds after one another.
    fractions = iter(draw.sample(range(10, 990, 7), 40))
    events: list[Json] = [{"do": "delete", "atMs": 1000 * draw.randint(0, 3) + next(fractions)}]
    deleted_ms = events[0]["atMs"]
    happen: list[Json] = []
    for one in objects:
        named = {"resource": one["resource"], "name": one["name"]}
        if one.get("runs") and draw.random() < 0.9:
            happen.append({"do": "end", **named})
        if one.get("finalizers") and draw.random() < 0.9:
            happen.append({"do": "release", **named})
    if draw.random() < 0.15:
        happen.append({"do": "create", "object": _object(draw, "late")})
    if draw.random() < 0.1:
        happen.append({"do": "delete"})
    finalizers = ["example.com/keep"] if draw.random() < 0.15 else []
    if finalizers:
        happen.append({"do": "free"})
    for _ in range(draw.choice((0, 0, 0, 1, 2))):
        resource, verb, code = draw.choice(_FAULTS)
        if draw.random() < 0.6:
            resource, verb, code = draw.choice(RESOURCES), draw.choice(("deletecollection", "list")), 500
        event = {"do": "fail", "resource": resource, "verb": verb, "code": code, "times": draw.choice((1, 2, 5, 9))}
        happen.append(event)
    for event in happen:
        longest = draw.choice((10, 30, 100))
        events.append({**event, "atMs": deleted_ms // 1000 * 1000 + 1000 * draw.randint(1, longest) + next(fractions)})
    events.sort(key=lambda one: one["atMs"])
    return {
        "id": f"{family}-s{seed}-{number:05}",
        "family": family,
        "horizonMs": HORIZON_MS,
        "finalizers": finalizers,
        "objects": objects,
        "events": events,
    }


def _object(draw: Draw, name: str) -> Json:
    resource = draw.choice(RESOURCES)
    one: Json = {"resource": resource, "name": name}
    if resource == "pods":
        one["runs"] = draw.random() < 0.75
        one["graceS"] = draw.choice((0, 1, 5, 30, 30, 60))
    if draw.random() < 0.3:
        one["finalizers"] = draw.sample(("example.com/a", "example.com/b"), draw.choice((1, 1, 2)))
    return one
