"""Recorded decisions and timelines of the real kube-scheduler, where they are at hand, and how answers are judged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ORACLE = Path(__file__).parents[3] / "shared" / "oracle"
"""Beside the repository; tests that need it are skipped without it."""

DECISIONS = ("docs", "fit", "strategy", "nodeaffinity", "podaffinity", "taints", "spread", "ports", "mixed", "preempt")
TIMELINES = ("seeds", "backoff", "priority", "nominated", "mixed")

Entry = Mapping[str, Any]


def entries(kind: str, family: str) -> Iterator[tuple[Entry, Entry]]:
    """(case, expectation) of a family; ``kind`` is ``scheduler`` or ``timeline``."""
    with gzip.open(ORACLE / kind / f"{family}.jsonl.gz", "rt") as lines:
        for line in lines:
            entry = json.loads(line)
            yield entry["case"], entry["expect"]


def differences(expected: Entry, answer: Entry) -> list[str]:
    """In what an answer to a decision differs from the recorded one."""
    found: list[str] = []

    def compare(what: str, wanted: Any, got: Any) -> None:
        if wanted != got:
            found.append(f"{what}: recorded {wanted!r}, ours {got!r}")

    compare("feasible", expected["feasible"], answer["feasible"])
    compare("rejected", _sorted_reasons(expected.get("rejected", {})), _sorted_reasons(answer["rejected"]))
    compare("prefilter", expected.get("prefilter"), answer.get("prefilter"))
    for node, recorded in expected.get("scores", {}).items():
        ours = answer.get("scores", {}).get(node, {})
        for plugin in sorted({*recorded, *ours}):
            compare(f"score of {node} by {plugin}", recorded.get(plugin, 0), ours.get(plugin, 0))
    for key in ("totals", "best", "message", "nominatedNodeFits", "selectable"):
        compare(key, expected.get(key), answer.get(key))
    if "fullMessage" in expected:
        compare("fullMessage", expected["fullMessage"], answer.get("fullMessage"))
    if "preemption" in expected:
        recorded, ours = expected["preemption"], answer.get("preemption", {})
        for key in ("eligible", "reason", "candidates", "chosen", "chosenAnyOf", "potentialNodes", "postFilterStatus"):
            compare(f"preemption: {key}", recorded.get(key) or None, ours.get(key) or None)
    return found


def _sorted_reasons(rejected: Entry) -> dict[str, Any]:
    return {node: {**status, "reasons": sorted(status["reasons"])} for node, status in rejected.items()}
