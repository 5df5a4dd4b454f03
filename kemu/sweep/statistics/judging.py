"""Judges claims: ``holds``, ``fails``, or ``undecided`` and about how many more seeds would decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.sweep.cells import CellRecord
from kemu.sweep.statistics.claims import Claim

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


@dataclass(frozen=True, slots=True)
class Judgement:
    claim: Claim
    outcome: str
    """:data:`HOLDS`, :data:`FAILS` or :data:`UNDECIDED`."""
    detail: str
    """In one sentence: the figures, or why they do not decide."""
    more_seeds: int | None = None
    """Of an undecided claim: about how many more would decide; None: seeds do not help."""

    def data(self) -> Mapping[str, Any]:
        """For ``--json``."""
        raise NotImplementedError


def judge(claims: Sequence[Claim], records: Iterable[CellRecord]) -> list[Judgement]:
    """In the order of the claims. The same records give the same judgements, whatever their order."""
    raise NotImplementedError
