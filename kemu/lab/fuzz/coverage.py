"""What the scenarios of a search have met: levels of features, pairs of them, kinds of events, reasons."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kemu.lab.fuzz import features, relations
from kemu.lab.fuzz.trials import CLIENTS, Record


class Coverage:
    """Coverage of a search so far."""

    def __init__(self) -> None:
        self._pairs: set[tuple[tuple[str, str], tuple[str, str]]] = set()
        self.levels: Counter[tuple[str, str]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.relations: Counter[str] = Counter()
        """That were asked."""
        self.compared: Counter[str] = Counter()
        """Relations that had two outcomes to compare."""
        self.events = 0
        self.runs = 0
        self.long = 0
        self.virtual_s = 0.0

    def add(self, record: Record) -> None:
        if record.levels:
            self._pairs.update(features.pairs(record.levels))
            self.levels.update(record.levels.items())
        self.kinds.update(record.kinds)
        self.reasons.update(record.reasons)
        if record.relation:
            self.relations[record.relation] += 1
            self.compared[record.relation] += record.is_compared
        self.events += record.events
        self.runs += record.runs
        self.long += record.is_long
        self.virtual_s += record.virtual_s

    @property
    def pairs(self) -> int:
        return len(self._pairs)

    def data(self) -> dict[str, Any]:
        """For ``--json``."""
        all_levels = sum(len(levels) for levels in features.FEATURES.values())
        return {
            "levels": {"met": len(self.levels), "of": all_levels},
            "pairs": {"met": self.pairs, "of": features.count_of_pairs()},
            "kinds": dict(self.kinds.most_common()),
            "reasons": dict(self.reasons.most_common()),
            "relations": {
                name: {"asked": self.relations[name], "compared": self.compared[name]}
                for name in (*relations.RELATIONS, CLIENTS)
            },
            "runs": self.runs,
            "events": self.events,
            "given_up": self.long,
            "virtual_s": round(self.virtual_s),
        }
