"""What is kept of a run: plain data that crosses processes, and that a campaign file holds, one line for each run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.lab.exploration.executions import FAILS, Failure
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.runtime.holds import EventPattern, Hold, Label, MessagePattern
from kemu.runtime.random_streams import Redraw

IMPOSSIBLE = "impossible"
"""In place of a verdict, as ``slow`` and ``died``: it cannot be run at all."""


@dataclass(frozen=True)
class RunRecord:
    """One run of a campaign. But for ``seconds``, equal campaigns have equal records."""

    number: int
    """In the campaign, from 0."""
    strategy: str
    plan: Plan
    verdict: str
    """``holds fails unknown``, or ``slow`` or ``died`` where there is none."""
    digest: str = ""
    failures: tuple[Failure, ...] = ()
    holds: tuple[Hold, ...] = ()
    """Holds of a run that fails: the holds of the scenario that make the same run without a chooser."""
    orders: tuple[int, ...] = ()
    """Orders of the timeline; only on the way to the campaign."""
    events: int = 0
    """How many there were; only on the way to the shrinker."""
    new: tuple[int, ...] = ()
    """Those of these that no run before it had shown."""
    signature: tuple[int, ...] = ()
    checks: tuple[str, ...] = ()
    """The checks that had something to judge."""
    expectations: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """The faults that struck."""
    steps: tuple[str, ...] = ()
    """At which actors crashed."""
    probed: Any = None
    seconds: float = 0.0
    """Real time."""

    @property
    def is_found(self) -> bool:
        return self.verdict == FAILS

    @property
    def seed(self) -> int | None:
        return self.plan.seed


def as_data(record: RunRecord) -> dict[str, Any]:
    """For a campaign file: what is not empty."""
    data = {
        each.name: getattr(record, each.name)
        for each in dataclasses.fields(record)
        if each.name not in ("plan", "orders") and getattr(record, each.name) not in ((), "", None)
    }
    data["plan"] = plan_data(record.plan)
    data["failures"] = [dataclasses.asdict(failure) for failure in record.failures]
    data["holds"] = [hold_data(hold) for hold in record.holds]
    return {key: value for key, value in data.items() if value not in ([], {}, ())}


def from_data(data: Mapping[str, Any]) -> RunRecord:
    tuples = ("new", "signature", "checks", "expectations", "faults", "steps")
    return RunRecord(
        **{
            **data,
            "plan": plan_from(data.get("plan", {})),
            "failures": tuple(Failure(**failure) for failure in data.get("failures", ())),
            "holds": tuple(hold_from(hold) for hold in data.get("holds", ())),
            **{name: tuple(data[name]) for name in tuples if name in data},
        }
    )


def plan_data(plan: Plan) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if plan.overrides:
        data["overrides"] = dict(plan.overrides)
    if plan.seed is not None:
        data["seed"] = plan.seed
    if plan.chooser is not None:
        data["chooser"] = {"factory": plan.chooser.factory, "parameters": dict(plan.chooser.parameters)}
    if plan.holds is not None:
        data["holds"] = [hold_data(hold) for hold in plan.holds]
    if plan.redraw is not None:
        data["redraw"] = dataclasses.asdict(plan.redraw)
    if plan.most_events:
        data["most_events"] = plan.most_events
    if plan.may_be_impossible:
        data["may_be_impossible"] = True
    if plan.probe:
        data["probe"] = plan.probe
    return data


def plan_from(data: Mapping[str, Any]) -> Plan:
    chooser, holds, redraw = data.get("chooser"), data.get("holds"), data.get("redraw")
    return Plan(
        data.get("overrides", {}),
        data.get("seed"),
        None if chooser is None else ChooserSpec(chooser["factory"], chooser["parameters"]),
        None if holds is None else tuple(hold_from(hold) for hold in holds),
        None if redraw is None else Redraw(**redraw),
        data.get("most_events", 0),
        data.get("may_be_impossible", False),
        data.get("probe", ""),
    )


def hold_data(hold: Hold) -> dict[str, Any]:
    return dataclasses.asdict(hold)


def hold_from(data: Mapping[str, Any]) -> Hold:
    message, until = data["message"], data["until"]
    return Hold(
        MessagePattern(**{**message, "label": Label(**message["label"])}),
        None if until is None else EventPattern(**until),
        data["for_ns"],
    )
