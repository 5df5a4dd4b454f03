"""How decisions of the scheduler compare with the recorded ones: in full, wherever the record says something.

Two things are left open. Reasons of one node compare in any order, because the real code lists extended resources in
the order of a hash map; the record has them sorted. Of nodes or candidates that are equal in all criteria kemu may
choose any.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.objects import plain

Json = dict[str, Any]

_TEXTS = ("message", "fullMessage")
_PREEMPTION = ("eligible", "reason", "potentialNodes", "candidates", "notCandidates", "decidedBy", "postFilterMessage",
               "postFilterStatus")  # fmt: skip


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs, one line each."""
    found: list[str] = []
    _compare(found, "error", expect.get("error"), answered.get("error"))
    _compare(found, "feasible", sorted(expect["feasible"]), answered["feasible"])
    _compare_by_node(found, "rejected", _sorted(expect.get("rejected")), _sorted(answered.get("rejected")))
    _compare(found, "prefilter", expect.get("prefilter"), answered.get("prefilter"))
    _compare(found, "nominatedNodeFits", expect.get("nominatedNodeFits"), answered.get("nominatedNodeFits"))
    recorded, ours = (_without_zeros(one.get("scores")) for one in (expect, answered))
    _compare_by_node(found, "scores", recorded, ours)
    _compare_by_node(found, "totals", expect.get("totals") or {}, answered.get("totals") or {})
    _compare(found, "best", sorted(expect.get("best") or ()), answered.get("best") or [])
    may_choose = expect.get("selectable") or expect.get("best") or [""]
    if answered["node"] not in may_choose:
        found.append(f"node: recorded any of {may_choose!r}, kemu {answered['node']!r}")
    for key in _TEXTS:
        if key in expect:
            _compare(found, key, expect[key], answered.get(key))
    if "preemption" in expect:
        _compare_preemption(found, expect["preemption"], answered.get("preemption") or {})
    return found


def _compare_preemption(found: list[str], recorded: Json, ours: Json) -> None:
    recorded, ours = ({**one, "notCandidates": _sorted(one.get("notCandidates"))} for one in (recorded, ours))
    for key in _PREEMPTION:
        _compare(found, f"preemption.{key}", recorded.get(key) or None, ours.get(key) or None)
    right = recorded.get("chosenAnyOf") or [""]
    _compare(found, "preemption.chosenAnyOf", right, ours.get("chosenAnyOf") or [""])
    if ours["chosen"] not in right:
        found.append(f"preemption.chosen: recorded any of {right!r}, kemu {ours['chosen']!r}")


def _sorted(statuses: Json | None) -> Json:
    """Statuses by node, with their reasons in one order."""
    return {
        name: {**status, "reasons": sorted(status.get("reasons") or ())} for name, status in (statuses or {}).items()
    }


def _without_zeros(scores: Json | None) -> Json:
    """A plugin that has nothing to do is missing in the record; it adds nothing to the total."""
    return {node: {plugin: score for plugin, score in one.items() if score} for node, one in (scores or {}).items()}


def _compare_by_node(found: list[str], what: str, recorded: Json, ours: Json) -> None:
    for node in sorted({*recorded, *ours}):
        _compare(found, f"{what}.{node}", recorded.get(node), ours.get(node))


def _compare(found: list[str], place: str, recorded: plain.Json, ours: plain.Json) -> None:
    if recorded != ours:
        found.append(f"{place}: recorded {recorded!r}, kemu {ours!r}")
