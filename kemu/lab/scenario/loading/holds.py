"""Holds, from the checked document and back.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`. What a hold is stands in :mod:`kemu.runtime.holds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import documents, values
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import ListOf, Report
from kemu.errors import ScenarioError
from kemu.lab.scenario.format.keys import hold_keys
from kemu.runtime import holds
from kemu.runtime.holds import EventPattern, Hold, Label, MessagePattern
from kemu.runtime.words import did_you_mean, short

USER = "user"


def read(checked: Sequence[Any], report: Report, actors: Sequence[str], path: Path) -> tuple[Hold, ...]:
    """``actors``: the names of all that the scenario has or will have."""
    known = [*actors, USER]
    return tuple(_read(item, report, known, (*path, index)) for index, item in enumerate(checked) if _is_whole(item))


def of_data(data: Json, name: str) -> tuple[Hold, ...]:
    """Holds that stand by themselves, of a cluster that is not known: :func:`as_data` made them. ``name``: the file.

    Raises ScenarioError.
    """
    (document,) = documents.parse(yaml.safe_dump(data), name)
    report = Report(document, [])
    checked = ListOf(hold_keys.HOLD).check(document.data, (), report)
    found: list[Hold] = []
    if not report.problems:
        actors = [text for item in checked for text in _actors(item)]
        found = [_read(item, report, actors, (index,)) for index, item in enumerate(checked)]
    if report.problems:
        raise ScenarioError(report.problems)
    return tuple(found)


def _actors(item: Mapping[str, Any]) -> Iterator[str]:
    yield from (item["message"]["from"], item["message"]["to"])
    yield str(item.get("until", {}).get("actor", ""))


def _is_whole(item: Json) -> bool:
    """Whether nothing that it needs was wrong."""
    return (
        isinstance(item, dict)
        and isinstance(item.get("message"), dict)
        and isinstance(item["message"].get("event"), dict)
        and all(isinstance(item["message"].get(side), str) for side in ("from", "to"))
    )


def _read(item: Mapping[str, Any], report: Report, actors: Sequence[str], path: Path) -> Hold:
    message, until = item["message"], item.get("until")
    if until is None and "for" not in item:
        report.add(path, "needs until, for, or both")
    for side in ("from", "to"):
        _check_actor(message[side], report, actors, (*path, "message", side))
    event = message["event"]
    label = Label(event.get("kind", ""), short(event.get("name", "")), event.get("what", ""))
    if label == Label():
        report.add((*path, "message", "event"), "needs kind, name or what")
    pattern = MessagePattern(message["from"], message["to"], label, event.get("count", 1))
    happening = None
    if isinstance(until, dict) and isinstance(until.get("event"), dict) and "what" in until["event"]:
        happening = _happening(until, report, actors, (*path, "until"))
    return Hold(pattern, happening, item.get("for", holds.MOST_NS))


def _happening(until: Mapping[str, Any], report: Report, actors: Sequence[str], path: Path) -> EventPattern:
    event, actor = until["event"], until.get("actor", "")
    if actor:
        _check_actor(actor, report, actors, (*path, "actor"))
    what = str(event["what"])
    if what not in holds.HAPPENINGS and "." not in what:
        known = did_you_mean(what, holds.HAPPENINGS)
        report.add((*path, "event", "what"), f"nothing that happens is called {what}", known)
    pod = short(event.get("pod", ""))
    return EventPattern(actor, what, pod, event.get("node", ""), event.get("count", 1))


def _check_actor(name: str, report: Report, actors: Sequence[str], path: Path) -> None:
    if name not in actors:
        report.add(path, f"no actor is called {name}", did_you_mean(name, actors[:200]))


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
