"""The first screen where things went wrong over time: roots and what followed from them, and what a cluster said then.

Whether there is trouble enough for curves is decided here; ``source/views/troubles.js`` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.lab.tell import people
from kemu.lab.tell.explaining import names
from kemu.lab.tell.page.folds import Fold
from kemu.lab.tell.page.tables import NEVER
from kemu.runtime.words import counted, listed

MOST_SYMPTOMS = 3
MOST_ROWS = 24
"""Of the cluster and the run side by side."""
MINOR_SHARE = 0.05
"""Chains of roots that explain less are not printed."""
LEAST_HOMELESS = 3
"""From so many pods on that waited long curves say more than the picture of a race."""
LONG_WAIT_MICROS = 60_000_000


def of(
    fold: Fold,
    data: Mapping[str, Any],
    verdict: Mapping[str, Any],
    causes: Mapping[str, Any] | None,
    observed: Sequence[Mapping[str, Any]],
    as_of_s: float | None = None,
) -> dict[str, Any]:
    """What it adds to the summary of a run. ``data``: its views; ``as_of_s``: until when causes were found, of a run
    that goes on."""
    counts = fold.history.counts
    waited = data["pods"]["waited"]
    bound = data["pods"]["bound"]
    long = sum(wait > LONG_WAIT_MICROS or (wait >= 0 and bound[pod] == NEVER) for pod, wait in enumerate(waited))
    is_troubled = (
        counts["evictions"] + counts["oom_kills"] > 0 or long >= LEAST_HOMELESS or bool(data["budgets"]["time"])
    )
    roots = list((causes or {}).get("roots", ())) if is_troubled else []
    end_s = fold.history.now_ns / 1e9
    lost = [one["what"] for one in (causes or {}).get("symptoms", ())][:MOST_SYMPTOMS] or losses(fold)
    was_asked = bool(verdict.get("expectations")) or verdict.get("verdict") != "holds"
    # What nobody expected anything of is no success.
    warns = is_troubled and not was_asked and bool(lost)
    words = {"in_words": names.sentence(listed(lost)), "sign": "!", "tone": "warns", "lost": ""}
    return {
        **(words if warns else {}),
        "troubled": is_troubled,
        "chains": [_chain(number, root) for number, root in enumerate(roots, 1)],
        "unexplained": _unexplained(causes) if roots else "",
        "as_of": "" if as_of_s is None else f"as of {people.duration(as_of_s)}",
        "roots": [
            {"number": number, "at": round(root["at_s"] * 1e6), "what": root["what"]}
            for number, root in enumerate(roots, 1)
            if root["at_s"] <= end_s
        ],
        "seen": [
            {"at": round(one["at"] * 1e6), "text": f"{one['reason']}: {_whom(one)}"}
            for one in observed
            if one.get("warning")
        ],
        "beside": _beside(data["story"]["short"], observed) if observed else [],
    }


def losses(fold: Fold) -> list[str]:
    """In words, where causes say nothing."""
    counts = fold.history.counts
    found = [
        (counts["evictions"], "pod was evicted", "pods were evicted"),
        (counts["preemptions"], "pod was preempted", "pods were preempted"),
        (counts["oom_kills"], "container was killed, out of memory", "containers were killed, out of memory"),
    ]
    return [counted(number, one, many) for number, one, many in found if number]


def _chain(number: int, root: Mapping[str, Any]) -> dict[str, Any]:
    links = list(root["chain"])
    share = root["share"]
    return {
        "number": number,
        "what": root["what"],
        "detail": people.message(root.get("detail") or ""),
        "when": f"at {people.duration(root['at_s'])}" if root["at_s"] else "since the start",
        "minor": share < MINOR_SHARE,
        "share": f"explains {people.percentage(share)}" if share else "",
        "check": _check(root.get("check")),
        "links": [
            {"what": one["what"], "when": _when(one), "tone": "end" if place == len(links) else ""}
            for place, one in enumerate(links, 1)
        ],
    }


def _when(link: Mapping[str, Any]) -> str:
    begin, end = people.duration(link["first_s"]), people.duration(link["last_s"])
    return begin if begin == end else f"{begin} to {end}"


def _check(check: Mapping[str, Any] | None) -> str:
    """What the run without the root says."""
    if check is None or check["holds"] is None:
        return ""
    sign = "\N{CHECK MARK}" if check["holds"] else "\N{BALLOT X}"
    effects = [f"{one['with']:g} → {one['without']:g} {one['unit']} {one['what']}" for one in check["effects"][:2]]
    return f"{sign} without it: {', '.join(effects) or 'nothing differs'}"


def _unexplained(causes: Mapping[str, Any] | None) -> str:
    share = (causes or {}).get("unexplained", 0)
    return f"{people.percentage(share)} of what went wrong has no known root" if share >= 0.005 else ""


def _whom(one: Mapping[str, Any]) -> str:
    return listed(one["of"], 2)


def _beside(story: Sequence[Mapping[str, Any]], observed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Both in the order of time; of what was observed the warnings first, where there is no room for all."""
    seen = sorted(observed, key=lambda one: (not one.get("warning"), one["at"]))[:MOST_ROWS]
    rows = [
        (
            float(one["at"]),
            {
                "when": _span(one["at"], one.get("to", one["at"])),
                "seen": f"{one['reason']}{_times(one)}: {_whom(one)}",
                "says": people.message(one.get("says", "")),
                "warning": bool(one.get("warning")),
                "what": "",
                "tone": "",
                "event": NEVER,
            },
        )
        for one in seen
    ]
    for line in story:
        when = _span(line["time"] / 1e6, line["until"] / 1e6)
        mine = {"when": when, "what": line["what"], "tone": line["tone"], "event": line["event"]}
        rows.append((line["time"] / 1e6, {**mine, "seen": "", "says": "", "warning": False}))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _times(one: Mapping[str, Any]) -> str:
    return f", {one['times']} times" if one.get("times", 1) > 1 else ""


def _span(begin: float, end: float) -> str:
    """Before the run with a sign."""
    texts = [("\N{MINUS SIGN}" if at < 0 else "") + people.duration(abs(at)) for at in (begin, end)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"
