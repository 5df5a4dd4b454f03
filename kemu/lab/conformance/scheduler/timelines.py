"""Recorded timelines of the kube-scheduler, played by the whole scheduler (:mod:`.small_clusters`).

Where equal nodes or equal candidates are drawn by lot, several outcomes were recorded, each equally right. kemu draws
once, from its seed and without a look at the record; its one answer must be one of the outcomes: every entry of every
pod, each failed attempt included, with its message, at the same millisecond.
"""

from __future__ import annotations

import itertools
from typing import Any

from kemu.lab.conformance.scheduler import small_clusters

Json = dict[str, Any]

STEP_S = 0.001
"""The recorded clock is read in steps of a millisecond: a time next to a step may stand one of them apart."""
COARSE_S = 0.15
"""The tolerance that the record proposes for schedulers with other latencies."""
FAILED = ("unschedulable", "error")
ENDED = ("unschedulable", "error", "bound")


def answer(case: Json) -> Json:
    """What kemu's scheduler does about a case: ``{"timeline": […], "final": {…}}``."""
    return small_clusters.play(case)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the first outcome; nothing where one of them is equal."""
    found = [difference(answered, outcome) for outcome in expect["outcomes"]]
    return [] if "" in found else found[:1] or ["outcomes: nothing was recorded"]


def agrees_coarsely(expect: Json, answered: Json) -> bool:
    """Whether an answer of a scheduler with other latencies is right: by the tolerance, without repeated attempts."""
    return any(not difference(answered, outcome, COARSE_S) for outcome in expect["outcomes"])


def difference(mine: Json, recorded: Json, tolerance_s: float = STEP_S) -> str:
    """The first difference; "" when there is none. With a coarse tolerance, messages are not compared either."""
    keys = ("what", "node", "by") if tolerance_s > STEP_S else ("what", "node", "by", "message")
    ours, theirs = (_by_pod(one["timeline"], tolerance_s) for one in (mine, recorded))
    for name in sorted({*ours, *theirs}):
        entries = itertools.zip_longest(ours.get(name, []), theirs.get(name, []))
        for place, (one, other) in enumerate(entries):
            same = one is not None and other is not None and all(one.get(key) == other.get(key) for key in keys)
            if not same or round(abs(one["t_s"] - other["t_s"]), 3) > tolerance_s:
                return f"{name}[{place}]: recorded {other}, kemu {one}"
    here, there = recorded["final"], mine["final"]
    return "; ".join(
        f"final.{name}: recorded {here.get(name)}, kemu {there.get(name)}"
        for name in sorted({*here, *there})
        if here.get(name) != there.get(name)
    )


def _by_pod(timeline: list[Json], tolerance_s: float) -> dict[str, list[Json]]:
    """The entries of each pod; with a coarse tolerance without the attempts that another one followed at once."""
    pods: dict[str, list[Json]] = {}
    for entry in timeline:
        pods.setdefault(entry["pod"], []).append(entry)
    if tolerance_s == STEP_S:
        return pods
    kept = {name: [one for place, one in enumerate(each) if not _repeated(each, place)] for name, each in pods.items()}
    return {name: entries for name, entries in kept.items() if entries}


def _repeated(entries: list[Json], place: int) -> bool:
    entry = entries[place]
    later = next((one for one in entries[place + 1 :] if one["what"] in ENDED), None)
    return entry["what"] in FAILED and later is not None and round(later["t_s"] - entry["t_s"], 3) <= COARSE_S
