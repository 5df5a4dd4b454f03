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
        102339,
        "museum/102339-deleted-pod-keeps-its-nomination",
        "a deleted pod keeps its nomination, and nobody gets its room",
        "{pod: newcomer, running: {before: 42s}}",
        "`bugs: []`; fixed in v1.22",
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
