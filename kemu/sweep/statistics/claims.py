"""The syntax of claims: ``waiting.p99_s(queue=fifo) > 3 * waiting.p99_s(queue=priority)``.

A claim compares two terms with ``<``, ``<=``, ``>`` or ``>=``. A term is ``number * metric(key=value, …)``, or a number
alone. A key is the last part of a varied path, or the whole path in quotes; ``priority=1000`` chooses the pods of one
priority, of the metrics that are told by priority. Neighbour: :mod:`judging` judges them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kemu.sweep.cells import Json, Metric

CONFIDENCE = 0.95
"""Where a claim states none."""


@dataclass(frozen=True, slots=True)
class Term:
    factor: float
    """Of the metric; of a term without a metric, the number itself."""
    metric: Metric | None
    variant: Mapping[str, Json]
    """Path → value, for every path that varies; empty of a number."""

    @property
    def text(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    says: str
    """As its author wrote it."""
    left: Term
    sign: str
    """``<``, ``<=``, ``>`` or ``>=``."""
    right: Term
    confidence: float = CONFIDENCE


def parse(says: str, vary: Mapping[str, Sequence[Json]], *, name: str = "", confidence: float = CONFIDENCE) -> Claim:
    """``vary``: the values of each varied path; ``name``: the id of the claim.

    Raises ValueError with what is wrong, and the nearest that is right.
    """
    raise NotImplementedError
