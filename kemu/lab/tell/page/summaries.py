"""The first screen in words: the verdict, why one side lost, the pod that waited longest, the faults, the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.lab.checks.history import windows
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.scheduling import waiting
from kemu.lab.tell import happenings, people
from kemu.lab.tell.page import stages
from kemu.lab.tell.page.folds import Fold
from kemu.lab.tell.page.tables import FAULTS, NEVER, micros
from kemu.lab.tell.page.views import pods, shortages
from kemu.runtime.words import short

MOST_FAULTS = 6
MOST_LETTERS = 160
LONG_S = 99.95
"""From here on minutes say more than seconds."""
_VERDICTS = {"holds": "As the scenario expects", "fails": "Not as the scenario expects", "unknown": "Undecided"}
"""The verdict in words for those who do not know kemu's."""
_SIGNS = {"holds": "✓", "fails": "✗", "unknown": "?"}


def of(
    fold: Fold,
    verdict: Mapping[str, Any],
    explanation: Mapping[str, Any] | None,
    commands: Sequence[tuple[str, str]],
    classes: Mapping[str, str],
) -> dict[str, Any]:
    """``explanation``: as in explanation.json; None: no side lost, or it was not asked for. ``commands``: with what
    they do. ``classes``: names of priorities."""
    state = str(verdict.get("verdict", ""))
    return {
        "verdict": state,
        "sign": _SIGNS.get(state, "…"),
        "tone": state,
        "in_words": _VERDICTS.get(state, "Still going on" if fold.history.ended_ns is None else "Not judged"),
        "headline": verdict.get("headline", "the run has no verdict yet"),
        "facts": _facts(fold, verdict),
        "because": _because(explanation),
        "lost": explanation["sentences"][-1]["text"] if explanation is not None else "",
        "stage": stages.of(explanation) if explanation is not None else None,
        "worst": _worst(fold, classes),
        "faults": _faults(fold),
        "commands": [{"command": command, "does": does} for command, does in commands],
        "probability": explanation.get("probability") if explanation is not None else None,
        "expectations": [_judged(one) for one in verdict.get("expectations", ())],
        "checks": [_judged(one) for one in verdict.get("checks", ())],
        "waiting": verdict.get("waiting", {}),
        "schedulers": verdict.get("schedulers", {}),
        "counts": verdict.get("counts", {}),
    }


def events_of(explanation: Mapping[str, Any] | None) -> list[int]:
    """The places of the events that its sentences and its picture refer to."""
    if explanation is None:
        return []
    found = [one["event"] for one in explanation["sentences"] if one["run"] != "passing"]
    found += [mark["event"] for mark in explanation["picture"]["failing"]["marks"]]
    return [place for place in found if place is not None]


_PLACES = {
    "sim": "in virtual time",
    "wall": "on the wall clock",
    "ray": "on Ray",
    "real": "on real components of Kubernetes",
}
"""Where a run took place, by its runtime."""


def _facts(fold: Fold, verdict: Mapping[str, Any]) -> list[str]:
    history, header = fold.history, fold.header
    runtime = _PLACES.get(str(header.get("runtime", "")), "")
    return [
        f"seed {header.get('seed', 0)}, {runtime}",
        people.duration(history.now_ns / 1e9),
        _count(len(history.nodes), "node"),
        _count(len(history.pods), "pod"),
        _count(history.counts["preemptions"], "preemption"),
        _count(history.counts["evictions"], "eviction"),
        _count(history.counts["admissions_rejected"], "rejected pod"),
        *filter(None, [windows.text(verdict)]),
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _because(explanation: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    if explanation is None:
        return []
    return [
        {
            "text": one["text"],
            "event": NEVER if one["event"] is None or one["run"] == "passing" else one["event"],
            "time": round(one["time_s"] * 1e6),
            "actor": one["actor"],
        }
        for one in explanation["sentences"]
    ]


def _judged(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one[name] for name in ("id", "says", "holds", "detail", "detector", "asked") if name in one}


def _worst(fold: Fold, classes: Mapping[str, str]) -> dict[str, Any] | None:
    """The pod that waited longest; of several, one that was never bound, then the most important."""
    waits = [one for one in waiting.waits(fold.history) if one.seconds > 0]
    if not waits:
        return None
    worst = max(waits, key=lambda one: (one.seconds, not one.bound, one.pod.priority))
    pod = worst.pod
    return {
        "pod": fold.tables.known_pod(pod.uid),
        "name": short(pod.key),
        "seconds": round(worst.seconds, 3),
        "bound": worst.bound,
        "priority": f"{name} ({pod.priority})" if (name := classes.get(str(pod.priority))) else str(pod.priority),
        "wants": pods.wants(pod.requests) or "nothing",
        "text": _fate(pod, worst),
        "reasons": _reasons(fold, pod),
    }


def _fate(pod: PodHistory, wait: waiting.Wait) -> str:
    attempts = _count(pod.attempts, "attempt")
    seconds = f"{wait.seconds:.1f} s" if wait.seconds >= 1 else f"{wait.seconds:.3f} s"
    if wait.seconds >= LONG_S:
        seconds = people.duration(wait.seconds)
    what = f"waited {seconds} for {pod.node}" if wait.bound else f"waited {seconds} in vain"
    overtaken = f", overtaken {_count(wait.overtaken, 'time')}" if wait.overtaken else ""
    return f"{what}: {attempts}{overtaken}"


def _reasons(fold: Fold, pod: PodHistory) -> list[dict[str, Any]]:
    """What its attempts met, and what was missing where when it was last tried."""
    tried = [fact for fact in pod.facts if fact.what == "unschedulable"]
    if not tried:
        return []
    fact = tried[-1]
    reason = _in_short(happenings.last_reason(pod))
    plugins = {shortages.FIT: 1} if "Insufficient" in fact.message else {}
    question = shortages.Question(fact.time_ns, pod.uid, plugins)
    place = fold.tables.place(fact.time_ns, pod.uid)
    missing = shortages.answers(fold.history, [question])[0]
    texts = [text for text in (missing, reason) if text]
    return [{"text": text, "time": micros(fact.time_ns), "event": place} for text in texts]


def _in_short(reason: str) -> str:
    """A scheduler's message of a large cluster is long, and most of it is about preemption."""
    short = reason.partition(" preemption:")[0] if len(reason) > MOST_LETTERS else reason
    return short if len(short) <= MOST_LETTERS else f"{short[: MOST_LETTERS - 1]}…"


def _faults(fold: Fold) -> list[dict[str, Any]]:
    found = [one for one in happenings.all_of(fold.history) if one.kind in ("fault", "disturbance")]
    told = [
        {
            "text": one.phrase() + (f" ({one.reason()})" if one.reason() else ""),
            "time": micros(one.time_ns),
            "event": fold.tables.place(one.time_ns, *one.whom, one.node, FAULTS),
        }
        for one in found[:MOST_FAULTS]
    ]
    if len(found) > MOST_FAULTS:
        told.append({"text": f"and {len(found) - MOST_FAULTS} more", "time": NEVER, "event": NEVER})
    return told
