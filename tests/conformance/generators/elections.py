"""Leader elections: candidates that come and go, and whose requests fail, hang or come late."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("elections",)
HORIZON_MS = 120_000


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    lease_ms, renew_ms, retry_ms = draw.choice(
        [(15_000, 10_000, 2_000)] * 4 + [(15_000, 9_700, 2_000), (8_000, 5_300, 1_000), (30_000, 7_500, 3_000)]
    )
    names = ["a", "b", "c"][: draw.choice([1, 2, 2, 3, 3])]
    # Never two at the same millisecond: then chance would decide.
    starts = [0 if draw.random() < 0.5 else 137 * index + draw.randrange(20_000) for index, _ in enumerate(names)]
    candidates: list[Json] = []
    for index, name in enumerate(names):
        one: Json = {"name": name, "startMs": starts[index] + 13 * index + 1}
        if draw.random() < 0.35:
            one["stopMs"] = one["startMs"] + draw.randrange(50, 90_000)
        candidates.append(one)
    return {
        "id": f"{family}-s{seed}-{number:05}",
        "family": family,
        "leaseMs": lease_ms,
        "renewMs": renew_ms,
        "retryMs": retry_ms,
        "release": draw.random() < 0.6,
        "latencyMs": draw.choice([2, 3, 5, 40, 400]),
        "horizonMs": HORIZON_MS,
        "candidates": candidates,
        "faults": sorted(
            (_fault(draw, names) for _ in range(draw.choice([0, 1, 1, 2, 3, 4]))), key=lambda fault: fault["fromMs"]
        ),
        "edits": [_edit(draw) for _ in range(draw.choice([0, 0, 0, 1, 2]))],
    }


def _fault(draw: random.Random, names: list[str]) -> Json:
    from_ms = draw.randrange(0, 90_000)
    found: Json = {
        "who": draw.choice(names),
        "do": draw.choice(["error", "hang", "lost", "slow", "slow"]),
        "fromMs": from_ms,
        "toMs": from_ms + draw.choice([500, 3_000, 8_000, 14_000, 25_000]),
        "byMs": draw.choice([900, 2_700, 4_300, 6_100, 11_300]),
    }
    if draw.random() < 0.4:
        found["verb"] = draw.choice(["get", "update", "update", "create"])
    return found


def _edit(draw: random.Random) -> Json:
    at_ms = draw.randrange(0, 90_000)
    if draw.random() < 0.4:
        return {"atMs": at_ms, "do": "delete"}
    holder = draw.choice(["", "x", "x", "a"])
    return {"atMs": at_ms, "do": "hold", "holder": holder, "durationSeconds": draw.choice([1, 5, 15, 40])}
