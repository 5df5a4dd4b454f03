"""From a run's log to its causes: what went wrong, why, and which few roots explain most of it.

    causes = causes_of(folder)

Role: the entry. It reads the log once, and makes no run; ``checking`` makes those without a root.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from kemu.lab.tell.causes import evidence as evidences
from kemu.lab.tell.causes import wording
from kemu.lab.tell.causes.acts import Act, Acts
from kemu.lab.tell.causes.blame import Blame, Cause
from kemu.lab.tell.causes.evidence import Evidence
from kemu.lab.tell.causes.owners import Owners
from kemu.lab.tell.causes.roots import CONFIGURATION, MOST_ROOTS, Causes, Link, Root
from kemu.lab.tell.causes.symptoms import Symptom, Symptoms

MOST_LINKS = 6
OF_LATER = 0.1
"""An earlier change that was as bad, in its time, as this part of a later one is to blame for both."""
LEAST_SHARE = 0.05
"""What explains less is no root."""
LEAST_NOTABLE, OUTWEIGHS = 0.1, 0.7
"""Nor is what explains less than the one while the first root explains more than the other, if it stands since the
start."""


@dataclass
class _Chain:
    """Steps of one kind on the way from one root."""

    subjects: dict[str, None] = field(default_factory=dict)
    first_ns: int = 1 << 62
    last_ns: int = -1
    longest_ns: int = 0
    """How long it took for one of them."""
    depth: float = 0.0
    weight: float = 0.0

    def add(self, other: _Chain) -> None:
        self.subjects |= other.subjects
        self.first_ns, self.last_ns = min(self.first_ns, other.first_ns), max(self.last_ns, other.last_ns)
        self.longest_ns = max(self.longest_ns, other.longest_ns)
        self.depth, self.weight = self.depth + other.depth, self.weight + other.weight


def causes_of(folder: Path) -> Causes:
    """Of the run in a folder. Raises RunLogError."""
    return causes(evidences.read(folder))


def causes(evidence: Evidence) -> Causes:
    acts = Acts(evidence)
    blame = Blame(evidence, acts, Owners(evidence, acts))
    found = list(Symptoms(blame).all())
    total = sum(one.weight for one in found)
    scores: dict[int, float] = defaultdict(float)
    known: dict[int, Cause] = {}
    chains: dict[int, dict[str, _Chain]] = defaultdict(dict)
    for symptom in found:
        for blamed in symptom.blamed:
            number, weight = id(blamed.cause), symptom.weight * blamed.share
            known[number] = blamed.cause
            scores[number] += weight
            for depth, step in enumerate(blamed.path):
                link = chains[number].setdefault(step.kind, _Chain())
                link.subjects[step.subject] = None
                link.first_ns = min(link.first_ns, step.time_ns)
                is_last = step is blamed.path[-1]
                link.last_ns = max(link.last_ns, symptom.last_ns if is_last else step.time_ns)
                if is_last:
                    link.longest_ns = max(link.longest_ns, symptom.last_ns - symptom.first_ns)
                link.depth += depth * weight
                link.weight += weight
    _merge(known, scores, chains)
    words = wording.Words(evidence, blame)
    ranked = sorted(known, key=lambda number: (-scores[number], words.name(known[number])))
    roots = [
        words.root(known[number], _links(words, chains[number]), scores[number] / total)
        for number in ranked
        if total and scores[number] / total >= LEAST_SHARE
    ]
    roots = [root for root in roots if not _is_noise(root, roots[0])][:MOST_ROOTS]
    explained = sum(scores.values()) / total if total else 1.0
    return Causes(tuple(roots), _symptoms(words, found), max(0.0, 1 - explained), evidence.end_ns, total)


def _is_noise(root: Root, first: Root) -> bool:
    """Pods that are slow to start, and what has always been so beside what has come up, are no reasons."""
    if root is first or root.share >= LEAST_NOTABLE:
        return False
    only_starts = all(link.kind in ("unready pod", "late") for link in root.chain)
    return only_starts or (root.kind == CONFIGURATION and first.share >= OUTWEIGHS)


def _merge(known: dict[int, Cause], scores: dict[int, float], chains: dict[int, dict[str, _Chain]]) -> None:
    """What was wrong with an object before it was changed again goes to the account of the first change."""
    by_object: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, cause in known.items():
        if isinstance(cause, Act):
            by_object[cause.kind, cause.name].append(number)
    for numbers in by_object.values():
        numbers.sort(key=lambda number: known[number].time_ns)  # type: ignore[union-attr]
        for index, later in enumerate(numbers[1:], 1):
            for first in numbers[:index]:
                alike = chains[first].keys() & chains[later].keys()
                if later in scores and first in scores and alike and scores[first] >= OF_LATER * scores[later]:
                    scores[first] += scores.pop(later)
                    for kind, chain in chains[later].items():
                        chains[first].setdefault(kind, _Chain()).add(chain)
                    del known[later]
                    break


def _links(words: wording.Words, chain: dict[str, _Chain]) -> tuple[Link, ...]:
    """The weightiest, from cause to effect."""
    kept = sorted(chain, key=lambda kind: -chain[kind].weight)[:MOST_LINKS]

    def place(kind: str) -> tuple[float, int]:
        one = chain[kind]
        return (one.depth / one.weight if one.weight else 0.0), one.first_ns

    links = []
    for kind in sorted(kept, key=lambda kind: (wording.rank(kind), place(kind))):
        one = chain[kind]
        links.append(words.link(kind, list(one.subjects), one.first_ns, one.last_ns, one.longest_ns))
    return tuple(links)


def _symptoms(words: wording.Words, found: list[Symptom]) -> tuple[Link, ...]:
    weights: Counter[str] = Counter()
    groups: dict[str, list[Symptom]] = defaultdict(list)
    for one in found:
        weights[one.kind] += one.weight  # type: ignore[assignment]
        groups[one.kind].append(one)
    return tuple(
        words.link(
            kind,
            list(dict.fromkeys(one.subject for one in groups[kind])),
            min(one.first_ns for one in groups[kind]),
            max(one.last_ns for one in groups[kind]),
            max(one.last_ns - one.first_ns for one in groups[kind]),
        )
        for kind, _ in weights.most_common()
    )
