"""Carries out perturbations when their points come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kemu.emulated.objects import resources
from kemu.lab.hunt.courses import Change, Course
from kemu.lab.hunt.interceptors import Interceptor, Verdict
from kemu.lab.hunt.perturbations import (
    ALL,
    CONFLICT,
    CRASH,
    DELAY,
    END,
    EXPIRE,
    HIDE,
    LAG,
    LOSE,
    OUTAGE,
    PAUSE,
    REFUSE,
    SLOW,
    Perturbation,
    Point,
)
from kemu.lab.hunt.watches import Hiding, View
from kemu.runtime.runlog.events import Transaction

LATE_FOR_S = 60.0
"""Virtual time for which events come late, or writes take long."""
AGAIN_S = 3.0
"""Real time that a controller has to ask again for what it watched: its backoff may not follow the virtual time."""


class Controllers(Protocol):
    """What strikes do to controllers, and how they wait."""

    def restart(self, name: str) -> None:
        """Kills it, and starts it again."""
        ...

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        """After so much virtual time."""
        ...

    def hold(self, what: str, real_s: float) -> None:
        """Time waits for something, in words, until it is released, or so much real time has passed."""
        ...

    def release(self, what: str) -> None:
        """May be repeated."""
        ...


class Strikes:
    """The perturbations of one trial. All is called in the thread of the cluster."""

    interceptor: Interceptor

    def __init__(self, perturbations: Sequence[Perturbation], course: Course, trial: Controllers) -> None:
        self._course = course
        self._trial = trial
        self._writes = [_Waiting(one) for one in perturbations if one.is_about_writes]
        self._changes = [_Waiting(one) for one in perturbations if not one.is_about_writes]
        self._hidden: list[Hiding] = []
        """Hidden changes after which the next one has not come yet."""
        self._late: dict[tuple[str, str], float] = {}
        self._slow: dict[tuple[str, str], float] = {}
        self._awaited = set[tuple[str, str]]()
        """Controllers with the resources that they have to ask for again."""

    @property
    def all_came(self) -> bool:
        """Whether each has come about."""
        return all(one.struck for one in (*self._writes, *self._changes))

    # For the interceptor

    def before(self, controller: str, key: str, nth: int) -> Verdict:
        code, is_lost = 0, False
        for one in self._writes:
            what = one.what
            if what.what in _BEFORE and one.meets(controller, self._key(what.at), key, nth):
                one.struck = True
                if what.what == CONFLICT:
                    code = 409
                elif what.what == REFUSE:
                    code = what.code or 500
                elif what.what == LOSE:
                    is_lost = True
                else:
                    self._begin_slow(what)
        late_s = next((late_s for place, late_s in self._slow.items() if _is_write_to(place, controller, key)), 0.0)
        return Verdict(code, is_lost, late_s)

    def after(self, controller: str, key: str, nth: int) -> None:
        for one in self._writes:
            what = one.what
            if what.what in _BEFORE or not one.meets(controller, self._key(what.at), key, nth):
                continue
            one.struck = True
            if what.what == CRASH:
                self._trial.restart(controller)
            elif what.what == PAUSE:
                self.interceptor.pause(controller)
                self._trial.later(what.lasts_s, lambda: self.interceptor.resume(controller))
            elif what.what == OUTAGE:
                self._begin_outage(what)

    def late_s(self, controller: str, resource: str) -> float:
        return self._late.get((controller, resource), 0.0)

    def asks(self, controller: str, resource: str) -> None:
        if (controller, resource) in self._awaited:
            self._awaited.discard((controller, resource))
            self._trial.release(_again(controller, resource))

    # For the cluster

    def changed(self, time_ns: int, event: Transaction) -> None:
        for change in self._course.take(time_ns, event):
            for hiding in list(self._hidden):
                if hiding.key == change.key:
                    hiding.until_revision = change.revision
                    self._hidden.remove(hiding)
            for one in self._changes:
                if not one.struck:
                    self._consider(one, change)

    def _consider(self, one: _Waiting, change: Change) -> None:
        what = one.what
        restart = what.restart_at
        if restart is None:
            if _is(self._key(what.at), what.at, change):
                one.struck = True
                self._strike(what, change)
            return
        if _is(self._key(what.at), what.at, change):
            one.revision = change.revision
        if one.revision and _is(self._key(restart), restart, change):
            one.struck = True
            self._see_the_past(what, one.revision)
            self._trial.restart(what.controller)

    def _strike(self, what: Perturbation, change: Change) -> None:
        """At a change, before anybody hears of it."""
        controller, resource, before = what.controller, self._course.resource(what.at.kind), change.revision - 1
        if what.what == DELAY:
            self._late[controller, resource] = what.lasts_s
            self._trial.later(LATE_FOR_S, lambda: self._late.pop((controller, resource), None))
        elif what.what == EXPIRE:
            self.ended(controller, self.interceptor.expire(controller, resource, before))
        elif what.what == END:
            self.ended(controller, self.interceptor.cut(controller, resource))
        elif what.what == LAG:
            self._see_the_past(what, before)
        elif what.what == HIDE:
            hiding = Hiding(controller, resource, change.key, before)
            self.interceptor.hide(hiding)
            self._hidden.append(hiding)
            self._trial.later(what.lasts_s, lambda: self._give_up(hiding))

    def _see_the_past(self, what: Perturbation, revision: int) -> None:
        view = View(what.controller, self._resource(what), revision)
        self.interceptor.begin(view)
        self._trial.later(what.lasts_s, lambda: self.interceptor.end(view))

    def _give_up(self, hiding: Hiding) -> None:
        """No other change has come: it lists anew."""
        if hiding in self._hidden:
            self._hidden.remove(hiding)
            hiding.until_revision = self._course.revision
            found = self.interceptor.expire(hiding.controller, hiding.resource, self._course.revision - 1)
            self.ended(hiding.controller, found)

    def _begin_slow(self, what: Perturbation) -> None:
        place = what.controller, self._course.resource(what.at.kind)
        self._slow[place] = what.lasts_s
        self._trial.later(LATE_FOR_S, lambda: self._slow.pop(place, None))

    def _begin_outage(self, what: Perturbation) -> None:
        controller, resource = what.controller, self._resource(what)
        ended = self.interceptor.begin_outage(controller, resource)

        def end() -> None:
            self.interceptor.end_outage(controller, resource)
            self.ended(controller, ended)

        self._trial.later(what.lasts_s, end)

    def ended(self, controller: str, resources: set[str]) -> None:
        """Time waits until it asks again for what it has watched."""
        for resource in sorted(resources):
            self._awaited.add((controller, resource))
            self._trial.hold(_again(controller, resource), AGAIN_S)

    def _resource(self, what: Perturbation) -> str:
        """Empty: all."""
        return "" if what.of == ALL else self._course.resource(what.of)

    def _key(self, point: Point) -> str:
        return self._course.key(point.subject)


_BEFORE = (CONFLICT, REFUSE, LOSE, SLOW)
"""What strikes a write before it happens."""


@dataclass(eq=False)
class _Waiting:
    """A perturbation, and whether it has come about."""

    what: Perturbation
    struck: bool = False
    revision: int = 0
    """Of ``freeze``: after the change of its point; 0: that has not come."""

    def meets(self, controller: str, wanted: str, key: str, nth: int) -> bool:
        return not self.struck and self.what.controller == controller and wanted == key and nth == self.what.at.nth


def _is(wanted: str, point: Point, change: Change) -> bool:
    return wanted == change.key and point.nth == change.nth


def _is_write_to(place: tuple[str, str], controller: str, key: str) -> bool:
    return place == (controller, resources.plural_of(key))


def _again(controller: str, resource: str) -> str:
    return f"controller {controller} to ask for {resource} again"
