"""Why a pod found no node: statuses by node, counts by reason, and the text that users know.

0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kemu.emulated.scheduler.framework.statuses import Status


def failure_message(nodes: int, tally: Iterable[tuple[Status, int]]) -> str:
    """``0/N nodes are available: …``, from statuses and how many nodes have each."""
    reasons: dict[str, int] = {}
    for status, count in tally:
        for reason in status.reasons:
            reasons[reason] = reasons.get(reason, 0) + count
    text = f"0/{nodes} nodes are available:"
    histogram = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"{text} {histogram}." if histogram else text


def prefilter_message(nodes: int, status: Status) -> str:
    return f"0/{nodes} nodes are available: {status.message}."


def counts_by_plugin(tally: Mapping[int, int], explain: Callable[[int], Status]) -> dict[str, int]:
    """How many nodes each plugin rejected, by name, sorted."""
    counts: dict[str, int] = {}
    for verdict, count in tally.items():
        if verdict:
            name = explain(verdict).plugin
            counts[name] = counts.get(name, 0) + count
    return {name: counts[name] for name in sorted(counts)}
