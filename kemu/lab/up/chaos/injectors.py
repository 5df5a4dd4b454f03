"""Takes faults from outside while a cluster runs: from ``kemu chaos``, and from annotated objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.errors import KemuError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Fault, Scenario
from kemu.lab.up.chaos import scripts
from kemu.runtime.env import SECOND_NS
from kemu.runtime.faults.hits import STRUCK
from kemu.runtime.faults.kinds import CLIENT_FAULTS
from kemu.runtime.runlog.events import (
    FaultBegun,
    FaultEnded,
    FaultHit,
    RequestStruck,
)


class NoSuchFault(KemuError):
    """None of that id is in force."""


@dataclass
class Known:
    """A fault that has begun."""

    id: str
    what: str
    begun_ns: int
    ended_ns: int | None = None
    hits: int = 0
    """Whom it has struck, or how many requests of clients."""
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        over = None if self.ended_ns is None else self.ended_ns / SECOND_NS
        told = {key: value for key, value in self.data.items() if key not in ("id", "what") and value not in (None, "")}
        return {
            "id": self.id,
            "what": self.what,
            "begun_s": self.begun_ns / SECOND_NS,
            "ended_s": over,
            "hits": self.hits,
            "of": told,
        }


class Injector:
    """Injector of one cluster. It listens to the run log."""

    HEARD = frozenset((FaultBegun.KIND, FaultEnded.KIND, FaultHit.KIND, STRUCK))
    """The events that concern it."""

    def __init__(
        self, scenario: Scenario, strike: Callable[[Mapping[str, Any], str], None], heal: Callable[[str], None]
    ) -> None:
        """``strike``: has a fault of this form and id begin. ``heal``: has it end."""
        self.scenario = scenario
        self.script = scripts.Script()
        self._strike = strike
        self._heal = heal
        self._number = 0
        self._known: dict[str, Known] = {}

    def listen(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """A ``LogSink``."""
        self.script.feed(time_ns, actor, kind, data)
        if isinstance(data, FaultBegun):
            # A crash is over when it begins, unless it waits for a step.
            hits = int(data.what == "crash" and "step" not in data)
            self._known[data.id] = Known(data.id, data.what, time_ns, hits=hits, data=dict(data))
        elif isinstance(data, FaultEnded) and data.id in self._known:
            self._known[data.id].ended_ns = time_ns
        elif isinstance(data, (FaultHit, RequestStruck)) and data.id in self._known:
            known = self._known[data.id]
            known.hits += isinstance(data, RequestStruck) or known.what not in CLIENT_FAULTS

    def strike(self, fault: Mapping[str, Any]) -> str:
        """A fault as in a scenario; without a time, it begins now. Returns its id. Raises ScenarioError."""
        self._number += 1
        fault_id = str(fault.get("id") or f"asked-{self._number}")
        if fault_id in self._known and self._known[fault_id].ended_ns is None:
            raise KemuError(f"a fault {fault_id} is in force already")
        read_fault(self.scenario, fault, fault_id, 0)  # so that its mistakes are told to the caller
        self._strike({key: value for key, value in fault.items() if key != "id"}, fault_id)
        return fault_id

    def heal(self, fault_id: str) -> None:
        """Raises NoSuchFault."""
        known = self._known.get(fault_id)
        if known is None or known.ended_ns is not None:
            raise NoSuchFault(f"no fault {fault_id} is in force")
        self._heal(fault_id)

    def faults(self) -> list[Known]:
        return list(self._known.values())


def read_fault(scenario: Scenario, fault: Mapping[str, Any], fault_id: str, now_ns: int) -> Fault:
    """Read a fault in the form of a scenario, for a cluster that runs. Raises ScenarioError with all mistakes."""
    timed = {} if {"when", "every", "at"} & fault.keys() else {"at": f"{now_ns}ns"}
    settings = {"chaos": [{**fault, "id": fault_id, **timed}]}
    (found,) = loader.loads(scenario.to_yaml(), scenario.file, None, settings, any_pod=True).chaos
    return found
