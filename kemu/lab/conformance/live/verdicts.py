"""Two decisions about one pod on one state: alike, alike by tie, or different, and what explains it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import plain
from kemu.lab.conformance.live.scheduler_logs import BOUND, ERROR, FAILED, Attempt

Json = dict[str, Any]

ALIKE, TIE, DIFFERENT = "alike", "alike by tie", "different"

GROUPS = "groups"
_LOST = re.compile(r'running PreBind plugin "DynamicResources": claim (\S+) got allocated elsewhere in the meantime')
_SHOWN = 3
"""Nodes of whose scores a difference is printed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    pod: str
    family: str
    kind: str
    outcome: str
    """What the real scheduler did: ``bound``, ``failed``, ``preempts`` or ``error``."""
    differences: list[str] = field(default_factory=list)
    tie: tuple[str, ...] = ()
    """Nodes between which chance decided."""
    real: Json = field(default_factory=dict)
    kemu: Json = field(default_factory=dict)
    """What kemu decided where there is a difference."""

    def to_json(self) -> Json:
        return {
            "pod": self.pod,
            "family": self.family,
            "verdict": self.kind,
            "outcome": self.outcome,
            "differences": self.differences,
            "real": self.real,
            "kemu": self.kemu,
        }


def of(family: str, attempt: Attempt, answer: Json, given: list[str] | None = None) -> Verdict:
    """``answer``: of :func:`kemu.lab.conformance.scheduler.decisions.decision`, with the ``devices`` that claims would
    get on each node; ``given``: those that they got."""
    found: list[str] = []
    tie: list[str] = []
    outcome = attempt.outcome
    if attempt.outcome == BOUND:
        tie = _placed(found, attempt, answer)
        if given:
            _compare(found, f"devices on {attempt.node}", given, answer.get("devices", {}).get(attempt.node, []))
    elif attempt.outcome == FAILED:
        if attempt.nominated:
            outcome = "preempts"
        tie = _failed(found, attempt, answer)
    else:
        _compare(found, "error", _error(attempt.message), _error(answer.get("error") or ""))
    if answer.get("error") and attempt.outcome != ERROR:
        found.append(f"kemu fails: {answer['error']}")
    kind = DIFFERENT if found else TIE if len(tie) > 1 else ALIKE
    real = _real(attempt) if found else {}
    return Verdict(attempt.pod, family, kind, outcome, found, tuple(sorted(tie)), real, answer if found else {})


def lost_claim(attempt: Attempt) -> str:
    """The claim that another member that shares it was faster to write (``bindClaim``), which no decision foresees."""
    found = _LOST.fullmatch(attempt.message) if attempt.outcome == ERROR and attempt.node else None
    return found[1] if found else ""


def of_member(attempt: Attempt, answer: Json, *, is_overtaken: bool = False) -> Verdict:
    """``answer``: of one member, by :meth:`kemu.lab.conformance.live.shadows.Shadow.decide_group`; ``is_overtaken``:
    it has lost a claim to another member, after the decision."""
    found: list[str] = []
    tie: list[str] = answer.get("best") or [] if answer["node"] else []
    outcome = attempt.outcome
    is_placed = outcome == BOUND or is_overtaken
    _compare(found, "fails", "" if is_placed else attempt.message, answer["fails"])
    if is_placed:
        outcome = "overtaken" if is_overtaken else outcome
        tie = _placed(found, attempt, answer)
    else:
        _compare(found, "preempts on", attempt.nominated, answer["preemptsOn"])
        if attempt.nominated:
            outcome = "preempts"
            _compare_victims(found, attempt, answer.get("preemption") or {})
            tie = (answer.get("preemption") or {}).get("chosenAnyOf") or []
        if attempt.totals and answer.get("totals"):
            _compare_totals(found, attempt, answer)
    kind = DIFFERENT if found else TIE if len(tie) > 1 else ALIKE
    return Verdict(
        attempt.pod, GROUPS, kind, outcome, found, tuple(sorted(tie)),
        _real(attempt) if found else {}, answer if found else {},
    )  # fmt: skip


def of_group(group: str, real: tuple[str, str, str], kemu: tuple[str, str, str]) -> Verdict:
    """Status, reason and message of its condition."""
    found: list[str] = []
    _compare(found, "condition", list(real), list(kemu))
    return Verdict(group, GROUPS, DIFFERENT if found else ALIKE, f"group {real[1].lower() or 'undecided'}", found)


def missing(family: str, pod: str, why: str) -> Verdict:
    """One of the two has not decided."""
    return Verdict(pod, family, DIFFERENT, "none", [why])


def _placed(found: list[str], attempt: Attempt, answer: Json) -> list[str]:
    if not answer["node"]:
        found.append(f"node: real {attempt.node}, kemu none: {answer.get('fullMessage') or answer.get('message')}")
        return []
    if answer.get("nominatedNodeFits"):
        # Nothing is scored where the nominated node still takes the pod.
        _compare(found, "node", attempt.node, answer["node"])
        return []
    best: list[str] = answer["best"]
    if attempt.node not in best:
        found.append(f"node: real {attempt.node}, kemu any of {', '.join(best)}")
    if attempt.totals:
        _compare_totals(found, attempt, answer)
    elif len(answer["feasible"]) != 1 and attempt.node not in best:
        found.append(f"feasible: real only {attempt.node}, kemu {', '.join(answer['feasible'])}")
    return best


def _compare_totals(found: list[str], attempt: Attempt, answer: Json) -> None:
    ours: dict[str, int] = answer.get("totals") or {}
    differing = [node for node in sorted({*attempt.totals, *ours}) if attempt.totals.get(node) != ours.get(node)]
    for node in differing[:_SHOWN]:
        text = f"total of {node}: real {attempt.totals.get(node)}, kemu {ours.get(node)}"
        theirs, mine = attempt.scores.get(node, {}), (answer.get("scores") or {}).get(node, {})
        unlike = [
            f"{plugin} {theirs.get(plugin, 0)} | {mine.get(plugin, 0)}"
            for plugin in sorted({*theirs, *mine})
            if theirs.get(plugin, 0) != mine.get(plugin, 0)
        ]
        found.append(f"{text} ({', '.join(unlike) or 'the same from each plugin'})")
    if len(differing) > _SHOWN:
        found.append(f"totals of {len(differing) - _SHOWN} more nodes")


def _failed(found: list[str], attempt: Attempt, answer: Json) -> list[str]:
    if answer["node"]:
        found.append(f"node: real none: {attempt.message}; kemu {answer['node']}")
        return []
    ours: str = answer.get("fullMessage") or answer.get("message") or ""
    _compare(found, "message", _in_order(attempt.message), _in_order(ours))
    preemption: Json = answer.get("preemption") or {}
    right: list[str] = preemption.get("chosenAnyOf") or []
    if not attempt.nominated:
        _compare(found, "preempts on", "", preemption.get("chosen", ""))
        return []
    if attempt.nominated not in right:
        found.append(f"preempts on: real {attempt.nominated}, kemu any of {', '.join(right) or 'none'}")
        return right
    _compare_victims(found, attempt, preemption)
    return right


def _compare_victims(found: list[str], attempt: Attempt, preemption: Json) -> None:
    victims = (preemption.get("candidates") or {}).get(attempt.nominated, {}).get("victims") or []
    # No two pods of a cluster have one name, whatever their namespaces.
    real = sorted(victim.rpartition("/")[2] for victim in attempt.victims)
    _compare(found, f"victims on {attempt.nominated}", real, sorted(victims))


def _compare(found: list[str], what: str, real: plain.Json, kemu: plain.Json) -> None:
    if real != kemu:
        found.append(f"{what}: real {real!r}, kemu {kemu!r}")


def _in_order(text: str) -> str:
    """Errors of several nodes, whose dry runs go on side by side, come in any order."""
    return re.sub(r"\[([^\[\]]*)\]", lambda found: f"[{', '.join(sorted(found[1].split(', ')))}]", text)


def _error(text: str) -> str:
    """The real one says in which phase an error came up; that is no part of the condition."""
    return re.sub(r"^running \S+ (?:filter )?plugin \"?\w+\"?: ", "", text)


def _real(attempt: Attempt) -> Json:
    return {
        "outcome": attempt.outcome,
        "attempt": attempt.number,
        "node": attempt.node,
        "message": attempt.message,
        "totals": attempt.totals,
        "scores": attempt.scores,
        "nominated": attempt.nominated,
        "victims": attempt.victims,
    }
