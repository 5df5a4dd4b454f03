"""What recorded cases ask the scheduler: one decision about a pod, or decisions about several in turn."""

from __future__ import annotations

from typing import Any

from kemu.lab.conformance.scheduler import decisions, judgements, sequences

Json = dict[str, Any]


def answer(case: Json) -> Json:
    """Raises ConfigurationError or ConversionError for a case that makes no sense."""
    return sequences.answer(case) if "pending" in case else decisions.answer(case)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs, one line each."""
    return sequences.agrees(expect, answered) if "decisions" in expect else judgements.agrees(expect, answered)
