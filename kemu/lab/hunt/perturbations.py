"""What a hunt does to a controller, at a point of its course: the plan of one trial.

A point is the nth write of the controller to an object, or the nth change of an object in the store, counted from the
start of the trial, so that it means the same in every trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.settings import values
from kemu.errors import KemuError
from kemu.lab.hunt.projects import Named

CRASH, FREEZE, HIDE, CONFLICT, LOSE, DELAY, EXPIRE = KINDS = (
    "crashAfterWrite", "freeze", "hide", "conflict", "loseAnswer", "delay", "expire",
)  # fmt: skip
LASTS_S = 20.0
"""How long a view stands still, and how late events come, unless the plan says otherwise: virtual time."""
DELAYED_S = 5.0


@dataclass(frozen=True, order=True)
class Point:
    """The nth time that something happens to an object."""

    kind: str
    """As :attr:`kemu.lab.hunt.projects.Named.kind`."""
    name: str
    namespace: str
    nth: int

    @property
    def subject(self) -> Named:
        return Named(self.kind, self.name, self.namespace)

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = {"object": {"kind": self.kind, "name": self.name}, "nth": self.nth}
        if self.namespace != "default":
            found["object"]["namespace"] = self.namespace
        return found


@dataclass(frozen=True, order=True)
class Perturbation:
    """See :data:`KINDS`:

    ``crashAfterWrite``  the controller dies when its nth write to the object has happened, before it hears of it, and
                         is started again: it finds a state between two of its writes
    ``freeze``           when the object of ``restart_at`` changes the nth time, the controller is started again, and
                         sees the kind of ``at`` as it was after the nth change of that object, for a while: a server
                         from the past
    ``hide``             the nth change of the object is not seen before the object changes again: only the later
                         state is
    ``conflict``         the nth write to the object is refused with 409
    ``loseAnswer``       the nth write happens, and its answer is lost
    ``expire``           watches of the kind end before the nth change of the object, and cannot go on from there: 410
    ``delay``            from the nth change of the object on, events of its kind come late: other kinds overtake it
    """

    what: str
    controller: str
    at: Point
    restart_at: Point | None = None
    seconds: float = 0.0
    """How long, or how late; 0: as usual."""

    @property
    def lasts_s(self) -> float:
        return self.seconds or (DELAYED_S if self.what == DELAY else LASTS_S)

    def __str__(self) -> str:
        nth = f"{_ordinal(self.at.nth)} {'write to' if self.is_about_writes else 'change of'} {self.at.subject}"
        if self.what == CRASH:
            return f"{self.controller} crashes after its {nth}, and starts again"
        if self.what == CONFLICT:
            return f"{self.controller} meets a conflict in its {nth}"
        if self.what == LOSE:
            return f"{self.controller} does not hear that its {nth} has happened"
        if self.what == HIDE:
            return f"{self.controller} does not see the {nth} before the next one"
        if self.what == EXPIRE:
            return f"{self.controller} is told that its watch of {self.at.kind} is too old before the {nth}"
        if self.what == DELAY:
            return f"{self.controller} sees {self.at.kind} {self.lasts_s:g} s late from the {nth} on"
        restart = self.restart_at
        assert restart is not None
        return (
            f"{self.controller} starts again at the {_ordinal(restart.nth)} change of {restart.subject}, and sees"
            f" {self.at.kind} for {self.lasts_s:g} s as it was after the {nth}"
        )

    @property
    def is_about_writes(self) -> bool:
        """Whether its point counts writes of the controller, and not changes of the object by anybody."""
        return self.what in (CRASH, CONFLICT, LOSE)

    def data(self) -> dict[str, Any]:
        """As a plan has it."""
        found: dict[str, Any] = {"kind": self.what, "controller": self.controller, **self.at.data()}
        if self.restart_at is not None:
            found["restart"] = self.restart_at.data()
        if self.seconds:
            found["until"] = {"after": f"{self.seconds:g}s"}
        return found


Plan = tuple[Perturbation, ...]
"""What is done to controllers in one trial."""


def shown(plan: Plan) -> str:
    """In words."""
    return "; ".join(map(str, plan))


def read(data: object, controllers: Mapping[str, object], place: str) -> Perturbation:
    """From what a plan has below ``perturb``. ``place``: what to call it. Raises KemuError."""

    def fail(text: str) -> KemuError:
        return KemuError(f"{place}: {text}")

    if not isinstance(data, Mapping):
        raise fail("perturb has to be a mapping: {kind: crashAfterWrite, controller: operator, object: {…}, nth: 2}")
    strange = set(data) - {"kind", "controller", "object", "nth", "restart", "until"}
    if strange:
        raise fail(f"perturb has no key {min(strange)}; there are kind, controller, object, nth, restart, until")
    what, controller = data.get("kind"), data.get("controller", next(iter(controllers), ""))
    if what not in KINDS:
        raise fail(f"kind {what!r} is none of {', '.join(KINDS)}")
    if controller not in controllers:
        raise fail(f"there is no controller {controller!r}; there are {', '.join(controllers)}")
    at = _point(data, fail)
    restart_at = None
    if what == FREEZE:
        if "restart" not in data:
            raise fail("freeze needs restart: {object: {kind: …, name: …}, nth: 1}")
        restart_at = _point(data["restart"], fail)
    elif "restart" in data:
        raise fail("restart is only for freeze")
    seconds = 0.0
    until = data.get("until")
    if until is not None:
        if not isinstance(until, Mapping) or set(until) != {"after"}:
            raise fail("until has to be {after: 20s}")
        try:
            seconds = values.duration_ns(until["after"]) / 1e9
        except ValueError as error:
            raise fail(f"until.after: {error}") from None
    return Perturbation(what, controller, at, restart_at, seconds)


def _point(data: object, fail: Callable[[str], KemuError]) -> Point:
    if not isinstance(data, Mapping):
        raise fail("has to be a mapping: {object: {kind: StatefulSet, name: z}, nth: 1}")
    stated = data.get("object")
    if not isinstance(stated, Mapping) or not isinstance(stated.get("kind"), str):
        raise fail("object has to be {kind: StatefulSet, name: z}")
    if not isinstance(stated.get("name"), str):
        raise fail("object has no name")
    nth = data.get("nth", 1)
    if not isinstance(nth, int) or isinstance(nth, bool) or nth < 1:
        raise fail(f"nth has to be a number from 1 on, not {nth!r}")
    return Point(stated["kind"], stated["name"], stated.get("namespace", "default"), nth)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
