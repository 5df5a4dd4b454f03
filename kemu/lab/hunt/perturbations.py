"""What a hunt does to a controller, at a point of its course: the plan of one trial.

A point is the nth write of the controller to an object, or the nth change of an object in the store, counted from the
start of the trial, so that it means the same in every trial.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from kemu.emulated.settings import values
from kemu.errors import KemuError
from kemu.lab.hunt.projects import Named


class Kind(StrEnum):
    """Of a perturbation, as plans name it; see :class:`Perturbation`."""

    CRASH = "crashAfterWrite"
    FREEZE = "freeze"
    HIDE = "hide"
    CONFLICT = "conflict"
    LOSE = "loseAnswer"
    DELAY = "delay"
    EXPIRE = "expire"
    PAUSE = "pause"
    REFUSE = "refuse"
    SLOW = "slowWrites"
    LAG = "lag"
    OUTAGE = "outage"
    END = "endWatch"
    LATE = "lateAnswer"
    DEPOSE = "depose"
    MUTATE = "mutate"


KINDS = tuple(Kind)
_OF_VIEWS = frozenset((Kind.FREEZE, Kind.HIDE, Kind.DELAY, Kind.PAUSE, Kind.LAG, Kind.OUTAGE, Kind.DEPOSE))
_OF_WRITES = frozenset(
    (Kind.CRASH, Kind.CONFLICT, Kind.LOSE, Kind.PAUSE, Kind.REFUSE, Kind.SLOW, Kind.OUTAGE, Kind.LATE, Kind.DEPOSE)
)
_LASTS_S = {
    Kind.FREEZE: 20.0,
    Kind.HIDE: 20.0,
    Kind.DELAY: 5.0,
    Kind.PAUSE: 20.0,
    Kind.SLOW: 10.0,
    Kind.LAG: 20.0,
    Kind.OUTAGE: 10.0,
    Kind.LATE: 3.0,
    Kind.DEPOSE: 60.0,
    Kind.MUTATE: 10.0,
}
"""How long it takes, or how late something comes, unless the plan says otherwise: virtual time."""
_LEAST_S = 1.0
ALL = "all"
"""As a scope: all kinds."""
_SCOPED = (Kind.FREEZE, Kind.LAG, Kind.OUTAGE)
_TOLD = {
    "create": "creation of",
    "update": "update of",
    "patch": "patch of",
    "delete": "deletion of",
    "deleting": "beginning of the end of",
    "asked": "change by a step of",
}
_COUNTED = ("", "create", "update", "patch", "delete", "deleting", "asked")
CODES = (429, 500, 503, 504)
"""With which a write can be refused; a conflict is a kind of its own."""


ANY = '"*"'
"""As a value of a condition: whatever it is."""


@dataclass(frozen=True, order=True)
class Point:
    """The nth time that something happens to an object."""

    kind: str
    """As :attr:`kemu.lab.hunt.projects.Named.kind`."""
    name: str
    """Empty: any object of the kind, in any namespace; only for writes."""
    namespace: str
    nth: int
    when: tuple[tuple[str, str], ...] = ()
    """Only changes count at which these fields come to have these values (JSON; ``"*"``: any), by path."""
    of: str = ""
    """What is counted: ``create``, ``delete``, of writes the other verbs, and of changes ``deleting``, when the object
    begins to go, and ``asked``, other changes by steps. Empty: all."""

    @property
    def subject(self) -> Named:
        return Named(self.kind, self.name or "of any name", self.namespace)

    def told(self, what: str) -> str:
        """``2nd write to Pod a``, ``1st creation of Pod a``"""
        fields = " and ".join(f"{path} is {'there' if value == ANY else value}" for path, value in self.when)
        whereupon = f" whereupon {fields}" if fields else ""
        return f"{_ordinal(self.nth)} {_TOLD.get(self.of, what)} {self.subject}{whereupon}"

    def __str__(self) -> str:
        return self.told("change of")

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = {"object": {"kind": self.kind}, "nth": self.nth}
        if self.of:
            found["of"] = self.of
        if self.when:
            found["when"] = {path: json.loads(value) for path, value in self.when}
        if self.name:
            found["object"]["name"] = self.name
        if self.namespace != "default" and self.name:
            found["object"]["namespace"] = self.namespace
        return found


@dataclass(frozen=True)
class Perturbation:
    """Of a :class:`Kind`:

    ``crashAfterWrite``  the controller dies when its nth write to the object has happened, before it hears of it, and
                         is started again: it finds a state between two of its writes
    ``pause``            after its nth write to the object it is answered and told nothing for a while, and what it asks
                         meanwhile waits; then all comes at once
    ``depose``           after its nth write to the object nothing gets through to the controller or from it, leases
                         included, until its other replica has written something; then it goes on where it was
    ``freeze``           when the object of ``restart_at`` changes the nth time, the controller is started again, and
                         sees the kind of ``at`` as it was after the nth change of that object, for a while: a server
                         from the past
    ``lag``              from the nth change of the object on its watches of that kind tell nothing for a while: what it
                         knows is old
    ``hide``             the nth change of the object is not seen before the object changes again: only the later
                         state is
    ``conflict``         the nth write to the object is refused with 409
    ``refuse``           the nth write is refused with ``code``, as by a server that is overloaded or broken
    ``loseAnswer``       the nth write happens, and its answer is lost
    ``lateAnswer``       the nth write happens, and its answer comes late: the controller hears of what came of it
                         before it goes on
    ``slowWrites``       from the nth write to the object on, writes of its kind take long, as with a slow webhook
    ``outage``           after the nth write to the object the API server refuses all other requests for a while
    ``expire``           watches of the kind end before the nth change of the object, and cannot go on from there: 410
    ``endWatch``         watches of the kind end before the nth change of the object, and can go on from there
    ``mutate``           after the nth change of the object another client gives a field of it a wrong value, and takes
                         that back after a while
    ``delay``            from the nth change of the object on, events of its kind come late: other kinds overtake it
    """

    what: Kind
    controller: str
    at: Point
    restart_at: Point | None = None
    seconds: float = 0.0
    """How long, or how late; 0: as usual."""
    scope: str = ""
    """What ``freeze``, ``lag`` and ``outage`` are about: a kind, or :data:`ALL`. Empty: the kind of ``at``; of
    ``outage`` all."""
    code: int = 0
    """Of ``refuse``; 0: 500."""
    field: tuple[str, ...] = ()
    """Of ``mutate``: keys from the top of the object."""
    to: str = "null"
    """Of ``mutate``: the wrong value as JSON; null: there is none."""

    @property
    def lasts_s(self) -> float:
        return self.seconds or _LASTS_S.get(self.what, 0.0)

    @property
    def of(self) -> str:
        """The kind that it is about, or :data:`ALL`."""
        return self.scope or (ALL if self.what == Kind.OUTAGE else self.at.kind)

    def __str__(self) -> str:
        who = self.controller
        nth = self.at.told("write to" if self.is_about_writes else "change of")
        of = "all kinds" if self.of == ALL else self.of
        restart = self.restart_at
        if self.what == Kind.FREEZE:
            assert restart is not None
            return (
                f"{who} starts again at the {restart}, and sees {of} for {self.lasts_s:g} s as it was after the {nth}"
            )
        return {
            Kind.CRASH: f"{who} crashes after its {nth}, and starts again",
            Kind.PAUSE: f"{who} is cut off for {self.lasts_s:g} s after its {nth}",
            Kind.DEPOSE: f"{who} is cut off after its {nth} until its other replica writes, and goes on",
            Kind.LAG: f"{who} hears nothing of {of} for {self.lasts_s:g} s from the {nth} on",
            Kind.HIDE: f"{who} does not see the {nth} before the next one",
            Kind.CONFLICT: f"{who} meets a conflict in its {nth}",
            Kind.REFUSE: f"{who} is refused its {nth} with {self.code or 500}",
            Kind.LOSE: f"{who} does not hear that its {nth} has happened",
            Kind.LATE: f"{who} is answered {self.lasts_s:g} s late to its {nth}",
            Kind.SLOW: f"writes of {who} to {self.at.kind} take {self.lasts_s:g} s from its {nth} on",
            Kind.OUTAGE: f"{who} finds the API server out of order for {of} for {self.lasts_s:g} s after its {nth}",
            Kind.EXPIRE: f"{who} is told that its watch of {self.at.kind} is too old before the {nth}",
            Kind.END: f"the watch of {self.at.kind} by {who} ends before the {nth}",
            Kind.MUTATE: f"another client sets {'.'.join(self.field)} of {self.at.subject} to {self.to} for"
            f" {self.lasts_s:g} s after the {nth}",
            Kind.DELAY: f"{who} sees {self.at.kind} {self.lasts_s:g} s late from the {nth} on",
        }[self.what]

    @property
    def is_about_writes(self) -> bool:
        """Whether its point counts writes of the controller, and not changes of the object by anybody."""
        return self.what in _OF_WRITES

    @property
    def makes_old(self) -> bool:
        """Whether what the controller sees is old for a while."""
        return self.what in _OF_VIEWS

    def data(self) -> dict[str, Any]:
        """As a plan has it."""
        found: dict[str, Any] = {"kind": str(self.what), "controller": self.controller, **self.at.data()}
        if self.restart_at is not None:
            found["restart"] = self.restart_at.data()
        if self.seconds:
            found["until"] = {"after": f"{self.seconds:g}s"}
        if self.scope:
            found["scope"] = self.scope
        if self.code:
            found["code"] = self.code
        if self.field:
            found |= {"field": list(self.field), "to": json.loads(self.to)}
        return found


Plan = tuple[Perturbation, ...]
"""What is done to controllers in one trial."""


def shown(plan: Plan) -> str:
    """In words."""
    return "; ".join(map(str, plan))


def weaker(one: Perturbation) -> Iterator[Perturbation]:
    """Perturbations that do less: of one kind and not of all, at an earlier point, for half the time."""
    if one.of == ALL and one.at.kind != ALL:
        yield replace(one, scope=one.at.kind)
    for nth in sorted({1, one.at.nth // 2, one.at.nth - 1}):
        if 0 < nth < one.at.nth:
            yield replace(one, at=replace(one.at, nth=nth))
    restart = one.restart_at
    if restart is not None:
        for nth in sorted({1, restart.nth // 2, restart.nth - 1}):
            if 0 < nth < restart.nth and (restart.subject != one.at.subject or nth > one.at.nth):
                yield replace(one, restart_at=replace(restart, nth=nth))
    if one.lasts_s >= 2 * _LEAST_S:
        yield replace(one, seconds=float(int(one.lasts_s / 2)))


def read(data: object, controllers: Mapping[str, object], place: str) -> Perturbation:
    """From what a plan has below ``perturb``. ``place``: what to call it. Raises KemuError."""

    def fail(text: str) -> KemuError:
        return KemuError(f"{place}: {text}")

    if not isinstance(data, Mapping):
        raise fail("perturb has to be a mapping: {kind: crashAfterWrite, controller: operator, object: {…}, nth: 2}")
    keys = ("kind", "controller", "object", "nth", "of", "restart", "until", "scope", "code", "when", "field", "to")
    strange = set(data) - set(keys)
    if strange:
        raise fail(f"perturb has no key {min(map(str, strange))}; there are {', '.join(keys)}")
    what, controller = data.get("kind"), data.get("controller", next(iter(controllers), ""))
    if what not in KINDS:
        raise fail(f"kind {what!r} is none of {', '.join(KINDS)}")
    what = Kind(what)
    if controller not in controllers:
        raise fail(f"there is no controller {controller!r}; there are {', '.join(controllers)}")
    at = _point(data, fail, needs_name=what not in _OF_WRITES)
    if at.when and what in _OF_WRITES:
        raise fail(f"when is not for {what}, which counts writes")
    restart_at = None
    if what == Kind.FREEZE:
        if "restart" not in data:
            raise fail("freeze needs restart: {object: {kind: …, name: …}, nth: 1}")
        restart_at = _point(data["restart"], fail)
    elif "restart" in data:
        raise fail("restart is only for freeze")
    seconds, details = _seconds(data, what, fail), _details(data, what, fail)
    return Perturbation(what, controller, at, restart_at, seconds, *details, *_mutation(data, what, fail))


def _seconds(data: Mapping[Any, Any], what: str, fail: Callable[[str], KemuError]) -> float:
    until = data.get("until")
    if until is None:
        return 0.0
    if what not in _LASTS_S:
        raise fail(f"until is not for {what}, but for {', '.join(_LASTS_S)}")
    if not isinstance(until, Mapping) or set(until) != {"after"}:
        raise fail("until has to be {after: 20s}")
    try:
        return values.duration_ns(until["after"]) / 1e9
    except ValueError as error:
        raise fail(f"until.after: {error}") from None


def _details(data: Mapping[Any, Any], what: str, fail: Callable[[str], KemuError]) -> tuple[str, int]:
    """Scope and code."""
    scope, code = data.get("scope", ""), data.get("code", 0)
    if "scope" in data and what not in _SCOPED:
        raise fail(f"scope is only for {', '.join(_SCOPED)}")
    if not isinstance(scope, str) or ("scope" in data and not scope):
        raise fail(f"scope has to be a kind or {ALL}, not {scope!r}")
    if "code" in data and what != Kind.REFUSE:
        raise fail(f"code is only for {Kind.REFUSE}")
    if "code" in data and (code not in CODES or isinstance(code, bool)):
        raise fail(f"code has to be one of {', '.join(map(str, CODES))}, not {code!r}")
    return scope, code


def _mutation(data: Mapping[Any, Any], what: str, fail: Callable[[str], KemuError]) -> tuple[tuple[str, ...], str]:
    """Field and value."""
    if what != Kind.MUTATE:
        if "field" in data or "to" in data:
            raise fail(f"field and to are only for {Kind.MUTATE}")
        return (), "null"
    stated = data.get("field")
    field = stated.split(".") if isinstance(stated, str) else stated
    if not isinstance(field, list) or not field or not all(isinstance(one, str) and one for one in field):
        raise fail(f"field has to be as spec.replicas, or a list of keys, not {stated!r}")
    try:
        return tuple(field), json.dumps(data.get("to"), sort_keys=True)
    except TypeError:
        raise fail(f"to has to be a value of JSON, not {data['to']!r}") from None


def _point(data: object, fail: Callable[[str], KemuError], *, needs_name: bool = True) -> Point:
    if not isinstance(data, Mapping):
        raise fail("has to be a mapping: {object: {kind: StatefulSet, name: z}, nth: 1}")
    stated = data.get("object")
    if not isinstance(stated, Mapping) or not isinstance(stated.get("kind"), str):
        raise fail("object has to be {kind: StatefulSet, name: z}")
    if not isinstance(stated.get("name", None if needs_name else ""), str):
        raise fail("object has no name")
    nth = data.get("nth", 1)
    if not isinstance(nth, int) or isinstance(nth, bool) or nth < 1:
        raise fail(f"nth has to be a number from 1 on, not {nth!r}")
    of = data.get("of", "")
    if of not in _COUNTED:
        raise fail(f"of has to be one of {', '.join(_COUNTED[1:])}, not {of!r}")
    when = data.get("when", {})
    if not isinstance(when, Mapping) or not all(isinstance(path, str) and path for path in when):
        raise fail("when has to be fields with values: {spec.replicas: 3}")
    if when and of:
        raise fail("of and when are two ways to count")
    fields = tuple((path, json.dumps(value, sort_keys=True)) for path, value in when.items())
    return Point(stated["kind"], stated.get("name", ""), stated.get("namespace", "default"), nth, fields, of)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
