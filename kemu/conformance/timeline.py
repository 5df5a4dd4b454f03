"""Recorded timelines of the kube-scheduler, played by the whole scheduler in :mod:`kemu.conformance.small_clusters`.

Where a choice between equals decides, several outcomes were recorded, each equally right. kemu draws such lots from its
seed, gives one answer without a look at the record, and that answer must be among the outcomes.
"""

from __future__ import annotations

import itertools
from typing import Any

from kemu.conformance import small_clusters

Json = dict[str, Any]

TOLERANCE_S = 0.15
FAILED = ("unschedulable", "error")
ENDED = ("unschedulable", "error", "bound")


def answer(case: Json) -> Json:
    """What kemu's scheduler does about a case: ``{"timeline": […], "final": {…}}``."""
    return small_clusters.play(case)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the first outcome; nothing where one of them is equal."""
    found = [difference(answered, outcome) for outcome in expect["outcomes"]]
    return [] if "" in found else found[:1] or ["outcomes: nothing was recorded"]


def by_pod(timeline: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The entries of each pod, without the attempts that another one followed at once."""
    pods: dict[str, list[dict[str, Any]]] = {}
    for entry in timeline:
        pods.setdefault(entry["pod"], []).append(entry)
    for name, entries in pods.items():
        kept = []
        for place, entry in enumerate(entries):
            later = [one for one in entries[place + 1 :] if one["what"] in ENDED]
            if entry["what"] in FAILED and later and round(later[0]["t_s"] - entry["t_s"], 3) <= TOLERANCE_S:
                continue
            kept.append(entry)
        pods[name] = kept
    return {name: entries for name, entries in pods.items() if entries}


def difference(mine: dict[str, Any], recorded: dict[str, Any]) -> str:
    """What is not equal by the rules of judging; "" when nothing is."""
    ours, theirs = by_pod(mine["timeline"]), by_pod(recorded["timeline"])
    for name in sorted({*ours, *theirs}):
        mine_of, theirs_of = ours.get(name, []), theirs.get(name, [])
        for place, (one, other) in enumerate(itertools.zip_longest(mine_of, theirs_of)):
            if one is None or other is None:
                return f"{name}[{place}]: recorded {other}, kemu {one}"
            same = all(one.get(key) == other.get(key) for key in ("what", "node", "by"))
            if not same or round(abs(one["t_s"] - other["t_s"]), 3) > TOLERANCE_S:
                return f"{name}[{place}]: recorded {other}, kemu {one}"
    if mine["final"] != recorded["final"]:
        names = [
            name
            for name in sorted({*recorded["final"], *mine["final"]})
            if mine["final"].get(name) != recorded["final"].get(name)
        ]
        return "final: " + ", ".join(
            f"{n}: recorded {recorded['final'].get(n)}, kemu {mine['final'].get(n)}" for n in names
        )
    return ""
