"""The table of the museum's pieces; docs/museum has a page on each.

A scenario of the museum has a matrix of one path with two values, the bug first and the cure second. Its expectations
hold in both: they say what goes wrong and what does not. What ought to hold in every cluster is :attr:`Piece.claim`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.scenario import scenarios
from kemu.scenario.loading import loader


@dataclass(frozen=True, slots=True)
class Piece:
    """One bug."""

    number: int
    """Of the issue."""
    scenario: str
    """Its short name."""
    says: str
    """What goes wrong, in a sentence without a full stop."""
    claim: str
    """An expectation, as YAML, that fails with the bug and holds with the cure."""
    cure: str
    """What cures it, in a few words."""
    repository: str = "kubernetes/kubernetes"

    @property
    def link(self) -> str:
        return f"https://github.com/{self.repository}/issues/{self.number}"


_PIECES = (
    Piece(
        65257,
        "museum/65257-anti-affinity-broken-by-two-leaders",
        "two pods that must not share a node share one",
        "{pods: {workload: db}, count: {is: {running: {node: node-1}}, equals: 1}}",
        "one scheduler at a time (`replicas: 1`); open",
    ),
    Piece(
        72124,
        "museum/72124-nomination-seen-late",
        "a pod of lower priority takes the room that preemption makes",
        "{check: no-priority-inversion}",
        "fixed in v1.14",
    ),
    Piece(
        92600,
        "museum/92600-nominated-to-a-lost-node",
        "a preemptor waits for a node that is lost, although it could preempt elsewhere",
        "{pod: high, running: {node: node-b}}",
        "`eligibility: current`; fixed in 2020",
    ),
    Piece(
        95752,
        "museum/95752-victim-that-does-not-go",
        "a preemptor waits as long as its victim likes",
        "{check: no-pod-starves}",
        "a short grace period; open",
    ),
    Piece(
        106361,
        "museum/106361-assumed-pod-expires",
        "a bound pod takes no room until the watch shows it, so the node is given away twice",
        "{check: cache-agrees-with-store}",
        "fixed in v1.23",
    ),
    Piece(
        106780,
        "museum/106780-nomination-without-room",
        "a pod that fits nowhere keeps room for itself",
        "{pod: p0, bound: {after: 20s, before: 22s}}",
        "fixed in v1.24",
    ),
    Piece(
        109236,
        "museum/109236-bound-pod-keeps-its-nomination",
        "a bound pod is counted twice on its node",
        "{check: no-pod-starves}",
        "fixed in v1.24",
    ),
    Piece(
        126700,
        "museum/126700-end-of-nomination-wakes-nobody",
        "a pod waits five minutes for room that is free",
        "{pod: p1, bound: {after: 1.5s, before: 4s}}",
        "fixed in v1.33",
    ),
    Piece(
        130429,
        "museum/130429-preemption-loop-of-two-schedulers",
        "two schedulers evict and place the same pods for two days",
        "{check: no-preemption-loop}",
        "`cooperate: on`, which no Kubernetes has; open",
    ),
    Piece(
        134249,
        "museum/134249-victim-preempted-again",
        "a victim is preempted again and again while it is being deleted",
        "{event: {reason: Preempted, about: victim, equals: 1}}",
        "fixed in v1.35",
    ),
    Piece(
        136782,
        "museum/136782-more-pods-than-a-node-takes",
        "a node is given more pods than it takes",
        "{counter: admissions_rejected, equals: 0}",
        "one scheduler at a time (`replicas: 1`); open",
    ),
    Piece(
        141227,
        "museum/141227-victim-that-cannot-go-elsewhere",
        "of two victims, the one that can run nowhere else is chosen",
        "{check: no-pod-starves}",
        "a priority for DaemonSets; open",
    ),
    Piece(
        141694,
        "museum/141694-preemptor-that-nothing-wakes",
        "a preemptor waits for ever beside a node that is empty",
        "{check: no-pod-starves}",
        "`fixes: [k8s-141694]`; open",
    ),
    Piece(
        102339,
        "museum/102339-deleted-pod-keeps-its-nomination",
        "a deleted pod keeps its nomination, and nobody gets its room",
        "{check: no-pod-starves}",
        "fixed in v1.22",
    ),
    Piece(
        91492,
        "museum/91492-preemption-reads-an-old-budget",
        "two preemptions spend the allowance of one budget twice, although a pod without a budget would have done",
        "{counter: budget_violations, equals: 0}",
        "no lag; open",
    ),
    Piece(
        99708,
        "museum/99708-relabelled-node",
        "a label changes, which running pods survive, until their kubelet restarts",
        "{pod: web, phase: Running}",
        "a preference instead of a requirement; open",
    ),
    Piece(
        106946,
        "museum/106946-static-pod-takes-the-gap",
        "a pod is bound to a gap that a static pod has taken already, and is rejected",
        "{pod: web, running: {}}",
        "a startup taint; by design",
    ),
    Piece(
        126479,
        "museum/126479-backoff-beats-priority",
        "a pod that has failed once overtakes a more important one that has failed twice",
        "{order: [{pod: important, bound: {}}, {pod: modest, bound: {}}]}",
        "`podMaxBackoffSeconds: 1`; by design",
    ),
)

PIECES = {piece.scenario: piece for piece in sorted(_PIECES, key=lambda piece: piece.number)}


def sides(scenario: scenarios.Scenario) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What to override for the bug, and for the cure."""
    (bug, _), (cure, _) = loader.variants(scenario)
    return bug, cure
