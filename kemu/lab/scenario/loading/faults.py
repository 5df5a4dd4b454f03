"""The faults of a scenario, from the checked document.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`. What a kind of fault takes stands in
:mod:`kemu.runtime.faults.kinds`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, Report
from kemu.lab.scenario import expectations, scenarios
from kemu.lab.scenario.arrivals import expected_repeats
from kemu.lab.scenario.loading import references
from kemu.lab.scenario.loading.holds import USER
from kemu.lab.scenario.loading.timelines import check_in_time
from kemu.runtime.faults.kinds import CELL, KINDS, OF_ACTORS, OF_PROCESSES, PROCESS_FAULTS, STEPS, Form, Kind
from kemu.runtime.ray.driver import plans
from kemu.runtime.words import did_you_mean

MAX_FAULTS = 100_000
"""Most faults of one entry that recurs."""

_CHOICE = ("all", "count", "share")


class FaultReader:
    """Makes the faults of ``chaos``, and reports what is wrong with them."""

    def __init__(
        self,
        report: Report,
        duration_ns: int,
        names: references.Names,
        zones: Mapping[str, Sequence[str]],
        cells: Mapping[str, plans.Share],
    ) -> None:
        """``names``: of all that the scenario has or will have. ``zones``: the kubelets of each zone. ``cells``: who
        shares a process on Ray."""
        self.report = report
        self.duration_ns = duration_ns
        self.names = names
        self.actors = names.actors
        self.zones = zones
        self.cells = cells

    def read_all(self, checked: Sequence[Any], raw: Any, path: Path) -> tuple[scenarios.Fault, ...]:
        """``raw``: as its author wrote it. Puts the ids of faults into ``names``."""
        self.names.faults = [_id(index, item) for index, item in enumerate(checked) if isinstance(item, dict)]
        made = [
            self._read(index, item, raw[index], (*path, index))
            for index, item in enumerate(checked)
            if isinstance(item, dict)
        ]
        return tuple(fault for fault in made if fault is not None)

    def _read(self, index: int, item: Mapping[str, Any], raw: Json, path: Path) -> scenarios.Fault | None:
        self._check_times(item, path)
        kind = next((kind for name, kind in KINDS.items() if isinstance(item.get(name), dict)), None)
        if kind is None:
            return None
        if "for" in item and not kind.lasts:
            self.report.add((*path, "for"), f"cannot stand beside {kind.name}, which is over in an instant", key=True)
        detail, where = item[kind.name], (*path, kind.name)
        actors: dict[str, tuple[tuple[str, ...], ...]] = {}
        for parameter in kind.parameters:
            if parameter.form in OF_ACTORS and parameter.name in detail:
                actors[parameter.name] = self._groups(parameter.form, detail[parameter.name], (*where, parameter.name))
        if kind.name == "crash":
            self._check_crash(detail, actors, where)
        if kind.name == "delay" and "resource" in detail:
            if any(not pattern.startswith("apiserver/") for group in actors.get("from", ()) for pattern in group):
                self.report.add((*where, "from"), "sends no events of watches; with resource, it must be API servers")
            if detail.get("belowGrpc"):
                self.report.add((*where, "belowGrpc"), "cannot stand beside resource", key=True)
        return scenarios.Fault(
            _id(index, item),
            kind.name,
            item.get("at"),
            item.get("every"),
            item.get("from", 0),
            item.get("until"),
            item.get("for"),
            actors,
            _values(kind, detail),
            self._choice(detail, where),
            self._trigger(kind, item, raw, path),
            self._place(where) if kind.name in PROCESS_FAULTS else "",
        )

    def _place(self, path: Path) -> str:
        """The place of a key."""
        problem = self.report.document.problem(path, "", key=True)
        return f"{problem.file}:{problem.line}:{problem.column}"

    def _check_times(self, item: Mapping[str, Any], path: Path) -> None:
        for key in ("at", "from"):
            check_in_time(self.report, self.duration_ns, item.get(key), (*path, key))
        said = [key for key in ("at", "every", "when") if key in item]
        if not said:
            self.report.add(path, "says no time: one of at, every, when")
        for key in said[1:]:
            self.report.add((*path, key), f"cannot stand beside {said[0]}", key=True)
        every = item.get("every")
        if every == 0:
            self.report.add((*path, "every"), "must be more than 0")
        elif every is not None:
            span_ns = item.get("until", self.duration_ns) - item.get("from", 0)
            expected = expected_repeats(every, span_ns)
            if expected > MAX_FAULTS:
                text = f"would happen about {expected:.3g} times; at most {MAX_FAULTS} times is possible"
                self.report.add((*path, "every"), text)
        for key in ("from", "until"):
            if key in item and "every" not in item and said:
                self.report.add((*path, key), f"belongs to every, not to {said[0]}", key=True)

    def _trigger(self, kind: Kind, item: Mapping[str, Any], raw: Any, path: Path) -> scenarios.Trigger | None:
        if not isinstance(item.get("when"), dict):
            return None
        where = (*path, "when")
        own = ("nth", "after")
        stated, written = (
            {key: value for key, value in source.items() if key not in own} for source in (item["when"], raw["when"])
        )
        statement = expectations.read(stated, written, 0)
        if statement is None:
            return None
        complaint = expectations.cannot_end_a_run(statement)
        if complaint:
            self.report.add(where, complaint)
        if kind.name == "restore":
            self.report.add(where, "cannot say when to restore: the backup has to be made before; say at", key=True)
        nth = item["when"].get("nth", 1)
        if nth > 1 and not expectations.can_be_counted(statement):
            text = "belongs to something that happens to a pod, a node, or any of several pods; of a number say atLeast"
            self.report.add((*where, "nth"), text, key=True)
        references.check_expectation(statement, where, self.names, self.duration_ns, self.report)
        return scenarios.Trigger(statement, nth, item["when"].get("after", 0))

    def _groups(self, form: Form, value: Any, path: Path) -> tuple[tuple[str, ...], ...]:
        """Patterns of actors: one group, or the two sides."""
        if form is Form.ZONE:
            return (self._zone(value, path),)
        if form is not Form.SIDES:
            return (self._patterns(form, value, path),)
        if len(value) > 2:
            self.report.add(path, "has more than two sides")
        return tuple(
            self._patterns(form, side, (*path, number)) for number, side in enumerate(value[:2]) if side is not INVALID
        )

    def _zone(self, zone: str, path: Path) -> tuple[str, ...]:
        if zone not in self.zones:
            self.report.add(path, f"no node is in a zone called {zone}", did_you_mean(zone, self.zones))
        return tuple(self.zones.get(zone, ()))

    def _check_crash(
        self, detail: Mapping[str, Any], actors: Mapping[str, tuple[tuple[str, ...], ...]], path: Path
    ) -> None:
        """Whether the victim can die in that manner."""
        if detail.get("powerOff") and "actor" in detail:
            self.report.add((*path, "powerOff"), "belongs to node and zone, not to actor", key=True)
        step = detail.get("step")
        if step in (None, INVALID):
            return
        if "actor" not in detail:
            self.report.add((*path, "step"), "belongs to actor", key=True)
        for pattern in actors.get("actor", ((),))[0]:
            kind = pattern.partition("/")[0]
            if step not in STEPS.get(kind, ()):
                steps = ", ".join(STEPS.get(kind, ())) or "none"
                self.report.add((*path, "step"), f"{pattern} has no such step; its steps: {steps}")

    def _patterns(self, form: Form, value: Sequence[Any], path: Path) -> tuple[str, ...]:
        patterns = []
        for number, pattern in enumerate(value):
            if pattern is not INVALID:
                deeper = (*path, number)
                place = deeper if deeper in self.report.document.places else path
                patterns.append(f"kubelet/{pattern}" if form is Form.NODES else pattern)
                self._match(form, patterns[-1], place)
        return tuple(patterns)

    def _match_process(self, pattern: str, path: Path) -> None:
        if not pattern.startswith(CELL):
            return  # which raylets there are is known on Ray only
        placement = plans.Placement(plans.of(self.cells))
        cells = dict.fromkeys(CELL + placement.place(actor)[0] for actor in self.actors)
        cells.pop(CELL + plans.DRIVER_CELL, None)
        if not any(fnmatch.fnmatchcase(cell, pattern) for cell in cells):
            self.report.add(path, f"no cell is called {pattern}; there are {', '.join(list(cells)[:10])}")

    def _match(self, form: Form, pattern: str, path: Path) -> None:
        if form in OF_PROCESSES:
            self._match_process(pattern, path)
            return
        if form is Form.SIDES and pattern == USER:
            return
        if any(fnmatch.fnmatchcase(actor, pattern) for actor in self.actors) or self.names.may_have_actor(pattern):
            return
        shown = self.actors[:200]
        if form is Form.NODES:
            name, nodes = pattern.removeprefix("kubelet/"), [actor.removeprefix("kubelet/") for actor in shown]
            self.report.add(path, f"no node with a kubelet is called {name}", did_you_mean(name, nodes))
        else:
            self.report.add(path, f"no actor is called {pattern}", did_you_mean(pattern, shown))

    def _choice(self, detail: Mapping[str, Any], path: Path) -> scenarios.VictimCount:
        said = [key for key in _CHOICE if detail.get(key)]
        for key in said[1:]:
            self.report.add((*path, key), f"cannot stand beside {said[0]}", key=True)
        if detail.get("all") or "zone" in detail:
            return scenarios.VictimCount(share=1.0)
        return scenarios.VictimCount(detail.get("count", 1), detail.get("share"))


def _id(index: int, item: Mapping[str, Any]) -> str:
    """The one that it was given, or its kind and place."""
    return item.get("id") or f"{next((name for name in KINDS if name in item), '')}-{index}"


def _values(kind: Kind, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the parameters that hold no actors."""
    found = {}
    for parameter in kind.parameters:
        value = detail.get(parameter.name, parameter.default)
        if parameter.form not in OF_ACTORS and value is not None:
            found[parameter.name] = value
    return found
