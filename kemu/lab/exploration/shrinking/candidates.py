"""Candidates: scenarios that may fail as the one does that is shrunk.

A candidate is a document without holds, and holds. What names something that the document has no longer (an event on a
removed pod, a fault of a removed node, a hold of a removed scheduler's message) goes with it; a document that does not
load even then is no candidate.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.settings import documents
from kemu.lab.scenario.loading import holds as hold_documents
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.holds import Hold

Data = Mapping[str, Any]
"""A scenario's document, without holds. Never changed once it is a candidate's."""

_ITEM = re.compile(r"spec\.(events|chaos|manifests|workloads|extenders)\[(\d+)\]")
_OPTION = re.compile(r"spec\.(until)\b")
_MOST_REPAIRS = 4


@dataclass(frozen=True)
class Candidate:
    """A scenario that has been loaded."""

    data: Data
    scenario: Scenario
    """With the holds."""
    document_key: str
    """Equal for equal documents, whatever the holds."""

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.data["spec"]
        return found

    @property
    def holds(self) -> tuple[Hold, ...]:
        return self.scenario.holds

    @property
    def key(self) -> tuple[str, tuple[Hold, ...]]:
        """Equal for candidates that run the same."""
        return self.document_key, self.holds

    def with_holds(self, holds: Sequence[Hold]) -> Candidate:
        return dataclasses.replace(self, scenario=dataclasses.replace(self.scenario, holds=tuple(holds)))

    def whole_data(self) -> dict[str, Any]:
        """The document with the holds."""
        data = copied(self.data)
        if self.holds:
            expect = data["spec"].pop("expect", None)
            data["spec"]["holds"] = [hold_documents.as_data(hold) for hold in self.holds]
            if expect is not None:
                data["spec"]["expect"] = expect
        return data


class Loading:
    """Makes candidates of documents, each document once."""

    def __init__(self, file: str, data_dir: str = "") -> None:
        self._file = file
        self._data_dir = data_dir or None
        self._known: dict[str, Candidate | None] = {}

    def candidate(self, data: Data, holds: Sequence[Hold]) -> Candidate | None:
        """None: no scenario at all."""
        asked = key_of(data)
        if asked not in self._known:
            self._known[asked] = self._load(data)
        found = self._known[asked]
        if found is None:
            return None
        actors = _actors(found.scenario)
        return found.with_holds([hold for hold in holds if _names_of(hold) <= actors])

    def _load(self, data: Data) -> Candidate | None:
        for _ in range(_MOST_REPAIRS):
            try:
                scenario = loader.of_data(data, self._file, self._data_dir)
            except errors.ScenarioError as error:
                repaired = _without(data, [problem.path for problem in error.problems])
                if repaired is None:
                    return None
                data = repaired
                continue
            if not scenario.nodes and not any(event.nodes for event in scenario.events):
                return None
            return Candidate(data, scenario, key_of(data))
        return None


def _without(data: Data, wrong: Sequence[str]) -> Data | None:
    """The document without what is wrong; None where that is not enough."""
    items: set[tuple[str, int]] = set()
    options: set[str] = set()
    for path in wrong:
        item, option = _ITEM.match(path), _OPTION.match(path)
        if item:
            items.add((item[1], int(item[2])))
        elif option:
            options.add(option[1])
        else:
            return None
    changed = copied(data)
    spec = changed["spec"]
    for section, index in sorted(items, reverse=True):
        del spec[section][index]
    for section in {section for section, _ in items}:
        if not spec[section]:
            del spec[section]
    for option_key in options:
        spec.pop(option_key, None)
    return changed


def copied(data: Data) -> dict[str, Any]:
    found: dict[str, Any] = documents.copy(data)
    return found


def key_of(data: Data) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def _names_of(hold: Hold) -> set[str]:
    names = {hold.message.source, hold.message.target}
    if hold.until is not None and hold.until.actor:
        names.add(hold.until.actor)
    return names


def _actors(scenario: Scenario) -> set[str]:
    """Actors of whom a hold may speak."""
    nodes = [*scenario.nodes, *(node for event in scenario.events for node in event.nodes)]
    return {
        "user",
        "store",
        *(f"apiserver/{replica}" for replica in range(scenario.api_servers.replicas)),
        *(f"scheduler/{one.name}/{replica}" for one in scenario.schedulers for replica in range(one.replicas)),
        *(f"extender/{extender.name}" for extender in scenario.extenders),
        *(f"kubelet/{node.name}" for node in nodes),
        *(actor for name, one in scenario.controllers.items() for actor in one.actors(name)),
    }
