"""What recorded cases ask about volumes. The id of a case begins with its family."""

from __future__ import annotations

from typing import Any

from kemu.lab.conformance import comparisons
from kemu.lab.conformance.volumes import bindings, controllers

Json = dict[str, Any]


def answer(case: Json) -> Json:
    """Raises ConversionError for a case that makes no sense."""
    return controllers.answer(case) if case["family"] == "pv-controller" else bindings.answer(case)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the recorded outcome that is nearest; nothing if it equals one: equal volumes are chosen in any
    order."""
    found = [list(comparisons.all_differences("", outcome, answered)) for outcome in expect["outcomes"]]
    return min(found, key=len) if found else ["outcomes: nothing was recorded"]
