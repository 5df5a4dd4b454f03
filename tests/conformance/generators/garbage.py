"""Objects that own one another, and what users delete of them.

References lie at times: of another kind, name or UID, to another namespace, from the cluster into a namespace.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("garbage",)
KINDS = ("ConfigMap", "ConfigMap", "Secret", "ReplicaSet", "ReplicationController", "Job", "Role", "Pod")
HOLD, FOREGROUND, ORPHAN = "example.com/hold", "foregroundDeletion", "orphan"


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    objects: list[Json] = []
    for name in "abcdefg"[: draw.randint(2, 7)]:
        kind = "ClusterRole" if draw.random() < 0.15 else draw.choice(KINDS)
        one: Json = {"name": name, "kind": kind, "space": 1 if draw.random() < 0.1 else 0}
        one["owners"] = _owners(draw, [other["name"] for other in objects])
        if kept := [text for text, odds in ((HOLD, 0.15), (FOREGROUND, 0.04), (ORPHAN, 0.04)) if draw.random() < odds]:
            one["finalizers"] = kept
        objects.append(one)
    names = [one["name"] for one in objects]
    steps: list[Json] = [{"do": "create", "names": names}]
    steps += [_step(draw, names) for _ in range(draw.randint(1, 5))]
    steps.append({"do": "release", "names": names})
    return {"id": f"{family}-s{seed}-{number:05}", "family": family, "objects": objects, "steps": steps}


def _owners(draw: Draw, others: list[str]) -> list[Json]:
    found: dict[str, Json] = {}
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3)) if others else draw.choice((0, 0, 0, 0, 1))):
        reference: Json = {"of": draw.choice(others) if others and draw.random() < 0.92 else "nothing"}
        if draw.random() < 0.5:
            reference["block"] = True
        if draw.random() < 0.08:
            reference["name"] = "another"
        if draw.random() < 0.06:
            reference["kind"] = draw.choice(("ConfigMap", "ClusterRole", "Wheel"))
        found[reference["of"]] = reference
    if found and draw.random() < 0.2:
        next(iter(found.values()))["controller"] = True
    return list(found.values())


def _step(draw: Draw, names: list[str]) -> Json:
    name, chance = draw.choice(names), draw.random()
    if chance < 0.7:
        # What was created first owns most.
        name = draw.choice(names[: max(2, len(names) // 2)]) if draw.random() < 0.7 else name
        step: Json = {"do": "delete", "names": [name]}
        if policy := draw.choice(("", "Background", "Foreground", "Foreground", "Orphan")):
            step["policy"] = policy
        if draw.random() < 0.1:
            step["names"] = draw.sample(names, 2)
        return step
    if chance < 0.8:
        return {"do": "release", "names": [name]}
    return {"do": "own", "names": [name], "owners": _owners(draw, names)}
