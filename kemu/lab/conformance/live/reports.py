"""What came of a live comparison."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kemu.lab.conformance.live import verdicts

Json = dict[str, Any]


@dataclass(slots=True)
class Report:
    """Decisions by family and verdict; differences in full."""

    families: dict[str, Counter[str]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    later: Counter[str] = field(default_factory=Counter)
    """Verdicts about later attempts at a pod."""
    differences: list[verdicts.Verdict] = field(default_factory=list)
    tied_nodes: Counter[int] = field(default_factory=Counter)
    """How many nodes were equal, of ties."""
    clusters: int = 0
    changes: int = 0
    seconds: float = 0.0

    def add(self, verdict: verdicts.Verdict, *, is_later: bool = False) -> None:
        if is_later:
            self.later[verdict.kind] += 1
        else:
            self.families.setdefault(verdict.family, Counter())[verdict.kind] += 1
            self.outcomes[verdict.outcome] += 1
        if verdict.kind == verdicts.DIFFERENT:
            self.differences.append(verdict)
        elif verdict.kind == verdicts.TIE:
            self.tied_nodes[len(verdict.tie)] += 1

    def count(self, kind: str = "") -> int:
        """The number of first attempts; with ``kind``, those of that verdict."""
        return sum(sum(tally.values()) if not kind else tally[kind] for tally in self.families.values())

    @property
    def is_alike(self) -> bool:
        return not self.differences

    def to_json(self) -> Json:
        return {
            "decisions": self.count(),
            "alike": self.count(verdicts.ALIKE),
            "alikeByTie": self.count(verdicts.TIE),
            "different": self.count(verdicts.DIFFERENT),
            "families": {name: dict(tally) for name, tally in sorted(self.families.items())},
            "outcomes": dict(sorted(self.outcomes.items())),
            "laterAttempts": dict(sorted(self.later.items())),
            "tiedNodes": {str(size): self.tied_nodes[size] for size in sorted(self.tied_nodes)},
            "clusters": self.clusters,
            "changes": self.changes,
            "seconds": round(self.seconds, 1),
            "differences": [one.to_json() for one in self.differences],
        }

    def lines(self, shown: int) -> list[str]:
        """For a terminal: a table of the families, ties, and the first differences in full."""
        kinds = (verdicts.ALIKE, verdicts.TIE, verdicts.DIFFERENT)
        width = max([len(name) for name in self.families] or [6])
        lines = [f"{'family':{width}}  {'alike':>7} {'by tie':>7} {'different':>9}"]
        for name, tally in sorted(self.families.items()):
            lines.append(f"{name:{width}}  {tally[kinds[0]]:>7} {tally[kinds[1]]:>7} {tally[kinds[2]]:>9}")
        lines.append(f"{'all':{width}}  {self.count(kinds[0]):>7} {self.count(kinds[1]):>7} {self.count(kinds[2]):>9}")
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        lines.append("")
        where = f"in {self.clusters} clusters with {self.changes} changes"
        lines.append(f"what the real scheduler did: {outcomes}, {where}")
        if self.tied_nodes:
            sizes = ", ".join(f"{self.tied_nodes[size]} of {size}" for size in sorted(self.tied_nodes))
            lines.append(f"ties, by the number of equal nodes: {sizes}")
        if self.later:
            again = sum(self.later.values())
            lines.append(
                f"later attempts that succeeded: {again}, of which {again - self.later[verdicts.DIFFERENT]} alike"
            )
        for one in self.differences[:shown]:
            attempt = one.real.get("attempt", 1)
            lines += ["", f"{one.pod} ({one.family}, attempt {attempt})", *(f"  {text}" for text in one.differences)]
        if len(self.differences) > shown:
            lines += ["", f"{len(self.differences) - shown} more differences: see --json"]
        same = self.count() - self.count(verdicts.DIFFERENT)
        lines += ["", f"{same} of {self.count()} decisions alike, {self.seconds:.0f} s"]
        return lines
