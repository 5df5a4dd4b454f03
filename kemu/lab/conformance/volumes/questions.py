"""What recorded cases ask about volumes. The id of a case begins with its family."""

from __future__ import annotations

from typing import Any

from kemu.lab.conformance.volumes import bindings, controllers

Json = dict[str, Any]


def answer(case: Json) -> Json:
    """Raises ConversionError for a case that makes no sense."""
    return controllers.answer(case) if case["family"] == "pv-controller" else bindings.answer(case)


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the recorded outcome that is nearest; nothing if it equals one: equal volumes are chosen in any
    order."""
    found = [list(_differences("", outcome, answered)) for outcome in expect["outcomes"]]
    return min(found, key=len) if found else ["outcomes: nothing was recorded"]


def _differences(path: str, recorded: object, ours: object) -> Any:
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in sorted({*recorded, *ours}):
            yield from _differences(f"{path}.{key}".removeprefix("."), recorded.get(key), ours.get(key))
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for place, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            yield from _differences(f"{path}[{place}]", one, other)
    elif recorded != ours:
        yield f"{path}: recorded {recorded!r}, kemu {ours!r}"
