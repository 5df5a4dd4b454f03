"""Holds, from the checked document and back.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`. What a hold is stands in :mod:`kemu.runtime.holds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import documents, values
from kemu.emulated.settings.declared import Section
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import ListOf, Report
from kemu.errors import ScenarioError
from kemu.lab.scenario.format.holds import Held
from kemu.runtime import holds
from kemu.runtime.holds import Hold
from kemu.runtime.words import did_you_mean

USER = "user"


def read(checked: Sequence[Any], report: Report, actors: Sequence[str], path: Path) -> tuple[Hold, ...]:
    """``actors``: the names of all that the scenario has or will have."""
    known = [*actors, USER]
    found = []
    for index, item in enumerate(checked):
        if isinstance(item, Held):
            for name, where in _actors(item):
                if name not in known:
                    report.add((*path, index, *where), f"no actor is called {name}", did_you_mean(name, known[:200]))
            found.append(item.hold())
    return tuple(found)


def of_data(data: Json, name: str) -> tuple[Hold, ...]:
    """Holds that stand by themselves, of a cluster that is not known: :func:`as_data` made them. ``name``: the file.

    Raises ScenarioError.
    """
    (document,) = documents.parse(yaml.safe_dump(data), name)
    report = Report(document, [])
    checked = ListOf(Section(Held)).check(document.data, (), report)
    if report.problems:
        raise ScenarioError(report.problems)
    return tuple(item.hold() for item in checked)


def _actors(item: Held) -> Iterator[tuple[str, Path]]:
    """Those that it names, and where."""
    yield item.message.source, ("message", "from")
    yield item.message.target, ("message", "to")
    if item.until is not None and item.until.actor is not None:
        yield item.until.actor, ("until", "actor")


def as_data(hold: Hold) -> dict[str, Any]:
    """As the format has it."""
    pattern, until = hold.message, hold.until
    label = {"kind": pattern.label.kind, "name": pattern.label.name, "what": pattern.label.what}
    event: dict[str, Any] = {key: value for key, value in label.items() if value}
    if pattern.count != 1:
        event["count"] = pattern.count
    data: dict[str, Any] = {"message": {"from": pattern.source, "to": pattern.target, "event": event}}
    if until is not None:
        happening: dict[str, Any] = {"pod": until.pod} if until.pod else {}
        happening |= {"node": until.node} if until.node else {}
        happening["what"] = until.what
        if until.count != 1:
            happening["count"] = until.count
        data["until"] = {"actor": until.actor, "event": happening} if until.actor else {"event": happening}
    if until is None or hold.for_ns != holds.MOST_NS:
        data["for"] = values.duration_text(hold.for_ns)
    return data
