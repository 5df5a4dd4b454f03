"""What a run says of metrics, refused requests, Event objects, objects and faults. Neighbour: :mod:`verdicts`.

Each function answers for one subject of an expectation: whether it holds (None: it cannot be judged), and what was
found. Numbers that can only grow are judged before the end as far as that allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.settings import paths
from kemu.lab.checks import costs
from kemu.lab.checks.counters import COUNTERS, measured
from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Refusal
from kemu.lab.checks.results import seconds, several
from kemu.lab.checks.scheduling import ledgers, waiting
from kemu.lab.scenario.expectations import Bounds, BudgetIs, EventIs, FaultIs, MetricIs, ObjectIs, RefusedIs
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime.words import counted

Answer = tuple[bool | None, str]
EVENTS_PREFIX = "/registry/events/"


def number(value: float, bounds: Bounds, detail: str, *, may_grow: bool) -> Answer:
    """A number that can only grow is judged before the end as far as that allows."""
    allowed = bounds.allow(value)
    if not may_grow:
        return allowed, detail
    ceiling = min(
        (limit for limit in (bounds.at_most, bounds.equals) if limit is not None),
        default=None,
    )
    if ceiling is not None and value > ceiling:
        return False, detail
    if allowed and ceiling is None:
        return True, detail
    return None, detail


# Metrics ------------------------------------------------------------------------------------------------------------


def metric(history: History, name: str, priority: int | None) -> float | None:
    """A figure of the verdict by name: waiting times, costs, counters; None where there is no pod of that priority.

    Like the verdict, it counts what the scenario measures."""
    if name in COUNTERS:
        return float(measured(history)[name])
    family, _, figure = name.partition(".")
    if family not in ("waiting", "overtaken"):
        return costs.value(history, name, priority)
    waits = history.derived(waiting.measured)
    group = [wait for wait in waits if priority is None or wait.pod.priority == priority]
    if not group:
        return None
    described = waiting.describe(group)
    return float(described[figure if family == "waiting" else f"overtaken_{figure}"])


def metric_is(subject: MetricIs, history: History, *, finished: bool) -> Answer:
    found = metric(history, subject.metric, subject.priority)
    if found is None:
        return None, "there are no such pods"
    detail = f"{subject.metric} = {found:g}"
    if not finished:
        return None, f"{detail} when the run ended too early"
    return subject.bounds.allow(found), detail


# Disruption budgets -------------------------------------------------------------------------------------------------


def budget_is(subject: BudgetIs, history: History, *, finished: bool) -> Answer:
    """``finished``: the window is over, so that nothing can happen in it any more."""
    budget = ledgers.of(history).budgets.get(subject.budget)
    if budget is None:
        return (False if finished else None), "it was never created"
    levels = budget.levels
    if subject.after_ns is not None:
        # What it was when the window begins counts, too.
        first = max((place for place, one in enumerate(levels) if one.time_ns <= subject.after_ns), default=0)
    else:
        enough = (place for place, one in enumerate(levels) if one.healthy >= _wanted(one, subject))
        first = next((place for place in enough if levels[place].healthy), len(levels))
    seen = [one for one in levels[first:] if subject.before_ns is None or one.time_ns <= subject.before_ns]
    if not seen:
        most = max(levels, key=lambda one: one.healthy)
        detail = f"it never had so many: at most {most.healthy} of {_wanted(most, subject)}"
        return (False if finished else None), detail
    short = [one for one in seen if one.healthy < _wanted(one, subject)]
    if not short:
        lowest = min(one.healthy for one in seen)
        since = seconds(max(seen[0].time_ns, subject.after_ns or 0))
        return (True if finished else None), f"never fewer than {lowest} since {since}"
    first_ns = max(short[0].time_ns, subject.after_ns or 0)
    worst = min(short, key=lambda one: one.healthy - _wanted(one, subject))
    lowest_ns = max(worst.time_ns, subject.after_ns or 0)
    causes = [one for one in budget.disruptions if one.time_ns == first_ns]
    why = "".join(f", as {one.pod} was {one.how}" for one in causes[:1])
    detail = f"{short[0].healthy} of {_wanted(short[0], subject)} at {seconds(first_ns)}{why}"
    return False, f"{detail}; at the lowest {worst.healthy} at {seconds(lowest_ns)}"


def _wanted(level: ledgers.Level, subject: BudgetIs) -> int:
    return level.wanted if subject.at_least is None else subject.at_least


# Refused requests ---------------------------------------------------------------------------------------------------


def refused_is(subject: RefusedIs, history: History, *, finished: bool) -> Answer:
    found = [refusal for refusal in history.refusals.values() if _is_meant(refusal, subject)]
    told = [
        f"{refusal.verb} {refusal.name or refusal.resource}: {refusal.reason}"
        f"{f' {refusal.count} times' if refusal.count > 1 else ''} at {seconds(refusal.first_ns)}"
        for refusal in found
    ]
    times = sum(refusal.count for refusal in found)
    detail = several(told) or "no such request was refused"
    return number(times, subject.bounds, detail, may_grow=not finished)


def _is_meant(refusal: Refusal, subject: RefusedIs) -> bool:
    if subject.kind is not None and not _is_of_kind(subject.kind, refusal.resource):
        return False
    full = f"{refusal.namespace}/{refusal.name}" if refusal.namespace else refusal.name
    return (
        subject.name in (None, full)
        and subject.reason in (None, refusal.reason)
        and subject.verb in (None, refusal.verb)
    )


def _is_of_kind(kind: str, resource: str) -> bool:
    """A custom kind is named as requests name it: ``widgets.example.com``."""
    row = resources.BY_KIND.get(kind)
    return (row.plural if row is not None else kind) == resource


# Event objects ------------------------------------------------------------------------------------------------------


def event_is(subject: EventIs, history: History, *, finished: bool) -> Answer:
    """Events that ended their time to live count, too."""
    latest: dict[str, core_v1_pb2.Event] = {}
    for key, value in _written(history, EVENTS_PREFIX):
        event = core_v1_pb2.Event.FromString(value)
        if event.reason == subject.reason and _is_about(event.involvedObject, subject):
            latest[key] = event
    times = sum(max(event.count, 1) for event in latest.values())
    detail = several([f"{event.involvedObject.name}: {event.message}" for event in latest.values()])
    return number(times, subject.bounds, detail or "there was no such Event", may_grow=not finished)


def _is_about(reference: core_v1_pb2.ObjectReference, subject: EventIs) -> bool:
    if subject.kind is not None and reference.kind != subject.kind:
        return False
    return subject.about is None or subject.about in (reference.name, f"{reference.namespace}/{reference.name}")


def _written(history: History, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Every state that keys of that prefix had, oldest first; only the present ones if the history has no more."""
    if history.changes:
        for change in history.changes:
            if change.value is not None and change.key.startswith(prefix):
                yield change.key, change.value
    else:
        for key, value in history.values.items():
            if key.startswith(prefix):
                yield key, value


# Objects ------------------------------------------------------------------------------------------------------------


def object_is(subject: ObjectIs, history: History, *, finished: bool) -> Answer:
    holds, detail = _object_is(subject, history)
    if holds and not finished:
        return None, f"{detail} when the run ended too early"
    return holds, detail


def _custom_row(kind: str, history: History) -> resources.Resource | None:
    """``Widget.example.com``, as a definition in the history says."""
    name, _, group = kind.partition(".")
    for _, value in _written(history, f"/registry/{custom_kinds.DEFINITIONS}/"):
        definition = CustomResourceDefinition.FromString(value)
        if definition.spec.names.kind == name and definition.spec.group == group:
            is_namespaced = definition.spec.scope == custom_kinds.NAMESPACED
            return custom_kinds.placeholder(definition.metadata.name, is_namespaced)
    return None


def _object_is(subject: ObjectIs, history: History) -> tuple[bool, str]:
    resource = resources.BY_KIND.get(subject.kind) or _custom_row(subject.kind, history)
    if resource is None:
        return (not subject.exists and not subject.field), f"nothing defines the kind {subject.kind}"
    key = resources.key(resource, subject.namespace if resource.namespaced else "", subject.name).decode()
    value = history.values.get(key)
    if value is None:
        return (not subject.exists and not subject.field), f"there is no {subject.kind} {subject.name} at the end"
    if not subject.field:
        return subject.exists, f"the {subject.kind} {subject.name} is there at the end"
    data: Any = convert.to_json(resource.message.FromString(value))
    field = ".".join(str(step) for step in subject.field)
    try:
        found = paths.get(data, subject.field)
    except LookupError:
        return not subject.exists, f"{field} is not set"
    detail = f"{field} is {found!r}"
    if not subject.exists:
        return False, detail
    if subject.states_value and found != subject.equals:
        return False, detail
    if subject.bounds == Bounds():
        return True, detail
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False, f"{detail}, which is not a number"
    return subject.bounds.allow(found), detail


# Faults -------------------------------------------------------------------------------------------------------------


def fault_is(subject: FaultIs, history: History, *, finished: bool) -> Answer:
    """One that recurs has a number behind its id each time."""
    happened = [
        fault
        for fault in history.faults
        if fault.id == subject.fault
        or (fault.id.startswith(f"{subject.fault}-") and fault.id[len(subject.fault) + 1 :].isdigit())
    ]
    if not happened:
        return None, "it did not happen"
    struck = [who for fault in happened for who in fault.hits]
    names = [" → ".join(filter(None, who)) for who in dict.fromkeys(struck)]
    detail = f"it happened {counted(len(happened), 'time')} and struck {several(names) or 'nobody'}"
    if bool(struck) != subject.hit and not finished:
        return None, detail
    return bool(struck) == subject.hit, detail
