"""Recorded decisions of the kube-scheduler (:mod:`kemu.conformance.scheduler_cases` answers), and how they compare."""

from __future__ import annotations

from typing import Any

from kemu.conformance import scheduler_cases

Json = dict[str, Any]


def answer(case: Json) -> Json:
    """What kemu's scheduler decides about a case, in the form of the records."""
    return scheduler_cases.answer(case)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs: feasible nodes, reasons, each plugin's score, the best, the message, preemption."""
    found: list[str] = []
    _compare(found, "feasible", sorted(expect["feasible"]), sorted(answered["feasible"]))
    recorded, ours = (_rejections(one.get("rejected") or {}) for one in (expect, answered))
    for node in sorted({*recorded, *ours}):
        _compare(found, f"rejected.{node}", recorded.get(node), ours.get(node))
    recorded, ours = (one.get("scores") or {} for one in (expect, answered))
    for node in sorted({*recorded, *ours}):
        here, there = recorded.get(node, {}), ours.get(node, {})
        for plugin in sorted({*here, *there}):
            _compare(found, f"scores.{node}.{plugin}", here.get(plugin, 0), there.get(plugin, 0))
    _compare(found, "totals", expect.get("totals") or {}, answered.get("totals") or {})
    _compare(found, "best", sorted(expect.get("best") or ()), sorted(answered.get("best") or ()))
    if "selectable" in expect:
        may_choose = answered.get("selectable", answered.get("best"))
        _compare(found, "selectable", sorted(expect["selectable"]), sorted(may_choose or ()))
    if "message" in expect:
        _compare(found, "message", expect["message"], answered.get("message"))
    if "preemption" in expect:
        _compare_preemption(found, expect["preemption"], answered.get("preemption") or {})
    return found


def _compare_preemption(found: list[str], recorded: Json, ours: Json) -> None:
    for key in ("eligible", "reason"):
        _compare(found, f"preemption.{key}", recorded.get(key) or None, ours.get(key) or None)
    here, there = (_candidates(one.get("candidates") or {}) for one in (recorded, ours))
    for node in sorted({*here, *there}):
        _compare(found, f"preemption.candidates.{node}", here.get(node), there.get(node))
    right, may_choose = recorded.get("chosenAnyOf") or [], ours.get("chosenAnyOf") or []
    if bool(right) != bool(may_choose) or not set(may_choose) <= set(right):
        _compare(found, "preemption.chosenAnyOf", right, may_choose)


def _candidates(candidates: Json) -> Json:
    """Of each its victims, in order, and how many budgets they violate."""
    return {node: (one.get("victims") or [], one.get("pdbViolations", 0)) for node, one in candidates.items()}


def _rejections(rejected: Json) -> Json:
    """The real code gives the reasons of extended resources in any order."""
    return {
        node: (status.get("plugin", ""), status.get("code"), sorted(status.get("reasons") or ()))
        for node, status in rejected.items()
    }


def _compare(found: list[str], place: str, recorded: Any, ours: Any) -> None:
    if recorded != ours:
        found.append(f"{place}: recorded {recorded!r}, kemu {ours!r}")
