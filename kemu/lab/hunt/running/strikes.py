"""Carries out perturbations when their points come."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kemu.lab.hunt.courses import ANY_END, ENDS, Change, Count, Course, manifest
from kemu.lab.hunt.perturbations import ALL, ANY, Kind, Perturbation, Point
from kemu.lab.hunt.projects import SECOND, Named
from kemu.lab.hunt.running.interceptors import Interceptor, Verdict
from kemu.lab.hunt.running.watches import ALWAYS_FRESH, Hiding, View
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

    def patch(self, subject: Named, change: Mapping[str, Any], refused: Callable[[], object]) -> None:
        """By the user, at once. ``refused``: told if it cannot be."""
        ...

    def let_end(self, name: str) -> None:
        """If it ends from now on, that is no crash."""
        ...

    def hold(self, name: str, what: str, real_s: float) -> None:
        """Time waits for something that a controller is to do, in words, until it is released, or so much real time
        has passed."""
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
        self._hidden: dict[Hiding, tuple[Change, float]] = {}
        """Hidden changes after which the next one has not come yet, and how long they are hidden at most."""
        self._whens: dict[Point, tuple[bool, int]] = {}
        """Of points with conditions: whether these hold, and how often they have come about."""
        self._late: dict[tuple[str, str], float] = {}
        self._slow: dict[tuple[str, str], float] = {}
        self._deposed: dict[str, str] = {}
        """Controllers that are cut off, by the replicas that are to take over."""
        self._awaited = set[tuple[str, str]]()
        """Controllers with the resources that they have to ask for again."""

    @property
    def all_came(self) -> bool:
        """Whether each has come about."""
        return all(one.struck for one in (*self._writes, *self._changes))

    def hidden_wishes(self) -> dict[str, float]:
        """Keys of objects that a controller does not see as the user wants them now, and for how long at most."""
        found = list(self._hidden.values())
        return {one.key: lasts_s for one, lasts_s in found if one.is_asked and one.what not in ENDS}

    # For the interceptor

    def before(self, write: Count) -> Verdict:
        code, is_lost, answer_late_s = 0, False, 0.0
        for one in self._writes:
            what = one.what
            if what.what in _BEFORE and one.meets(write, self._course):
                one.struck = True
                self._course.struck[what] = write.key, write.nth
                if what.what == Kind.CONFLICT:
                    code = 409
                elif what.what == Kind.REFUSE:
                    code = what.code or 500
                elif what.what == Kind.LOSE:
                    is_lost = True
                elif what.what == Kind.LATE:
                    answer_late_s = what.lasts_s
                else:
                    self._begin_slow(what)
        late_s = next(
            (late_s for place, late_s in self._slow.items() if place == (write.controller, write.resource)), 0.0
        )
        return Verdict(code, is_lost, late_s, answer_late_s)

    def after(self, write: Count) -> None:
        controller = write.controller
        deposed = self._deposed.get(controller)
        if deposed is not None and write.resource not in ALWAYS_FRESH:
            self._reinstate(deposed)
        for one in self._writes:
            what = one.what
            if what.what in _BEFORE or not one.meets(write, self._course):
                continue
            one.struck = True
            self._course.struck[what] = write.key, write.nth
            if what.what == Kind.CRASH:
                self._trial.restart(controller)
            elif what.what == Kind.PAUSE:
                self.interceptor.pause(controller)
                self._trial.later(what.lasts_s, lambda: self.interceptor.resume(controller))
            elif what.what == Kind.OUTAGE:
                self._begin_outage(what)
            elif what.what == Kind.DEPOSE:
                self._depose(what)

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
                    del self._hidden[hiding]
            for one in self._changes:
                if not one.struck:
                    self._consider(one, change)

    def _consider(self, one: _Waiting, change: Change) -> None:
        what = one.what
        restart = what.restart_at
        is_here = self._is(what.at, change)
        if restart is None:
            if is_here:
                one.struck = True
                self._course.struck[what] = change.key, change.nth
                if what.what == Kind.MUTATE:
                    self._mutate(one, change)
                else:
                    self._strike(what, change)
            return
        if is_here:
            one.revision = change.revision
        if self._is(restart, change) and one.revision:
            one.struck = True
            self._course.struck[what] = change.key, change.nth
            self._see_the_past(what, one.revision)
            self._trial.restart(what.controller)

    def _strike(self, what: Perturbation, change: Change) -> None:
        """At a change, before anybody hears of it."""
        controller, resource, before = what.controller, self._course.resource(what.at.kind), change.revision - 1
        if what.what == Kind.DELAY:
            self._late[controller, resource] = what.lasts_s
            self._trial.later(LATE_FOR_S, lambda: self._late.pop((controller, resource), None))
        elif what.what == Kind.EXPIRE:
            self.ended(controller, self.interceptor.expire(controller, resource, before))
        elif what.what == Kind.END:
            self.ended(controller, self.interceptor.cut(controller, resource))
        elif what.what == Kind.LAG:
            self._see_the_past(what, before)
        elif what.what == Kind.HIDE:
            hiding = Hiding(controller, resource, change.key, before)
            self.interceptor.hide(hiding)
            self._hidden[hiding] = change, what.lasts_s
            self._trial.later(what.lasts_s, lambda: self._give_up(hiding))

    def _mutate(self, one: _Waiting, change: Change) -> None:
        what = one.what
        was: Any = manifest(change.key, change.value) if change.value is not None else None
        for name in what.field:
            was = was.get(name) if isinstance(was, Mapping) else None

        def refused() -> None:
            one.struck = False

        def take_back() -> None:
            if one.struck:
                self._trial.patch(what.at.subject, _nested(what.field, was), lambda: None)

        self._trial.patch(what.at.subject, _nested(what.field, json.loads(what.to)), refused)
        self._trial.later(what.lasts_s, take_back)

    def _see_the_past(self, what: Perturbation, revision: int) -> None:
        view = View(what.controller, self._resource(what), revision)
        self.interceptor.begin(view)
        self._trial.later(what.lasts_s, lambda: self.interceptor.end(view))

    def _give_up(self, hiding: Hiding) -> None:
        """No other change has come: it lists anew."""
        if self._hidden.pop(hiding, None) is not None:
            self.interceptor.show(hiding)
            found = self.interceptor.expire(hiding.controller, hiding.resource, self._course.revision - 1)
            self.ended(hiding.controller, found)

    def _begin_slow(self, what: Perturbation) -> None:
        place = what.controller, self._course.resource(what.at.kind)
        self._slow[place] = what.lasts_s
        self._trial.later(LATE_FOR_S, lambda: self._slow.pop(place, None))

    def _depose(self, what: Perturbation) -> None:
        controller = what.controller
        self._deposed[f"{controller}{SECOND}"] = controller
        self._trial.let_end(controller)
        self.interceptor.pause(controller, with_leases=True)
        self._trial.later(what.lasts_s, lambda: self._reinstate(controller))

    def _reinstate(self, controller: str) -> None:
        """May be repeated."""
        self._deposed.pop(f"{controller}{SECOND}", None)
        self.interceptor.resume(controller)

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
            self._trial.hold(controller, _again(controller, resource), AGAIN_S)

    def _resource(self, what: Perturbation) -> str:
        """Empty: all."""
        return "" if what.of == ALL else self._course.resource(what.of)

    def _is(self, point: Point, change: Change) -> bool:
        """Asked once for each point and change."""
        course, subject = self._course, point.subject
        if not course.fits(subject, change.key):
            return False
        if point.name.endswith(ANY_END) and not point.when:
            if point.of and point.of != change.what:
                return False
            alike = (one for one in course.changes if not point.of or one.what == point.of)
            return sum(course.fits(subject, one.key) for one in alike) == point.nth
        if point.of:
            return (point.of, point.nth) == (change.what, change.nth_of_what)
        if not point.when:
            return point.nth == change.nth
        held, times = self._whens.get(point, (False, 0))
        holds = change.value is not None and _holds(manifest(change.key, change.value), point)
        times += holds and not held
        self._whens[point] = holds, times
        return holds and not held and times == point.nth


_BEFORE = (Kind.CONFLICT, Kind.REFUSE, Kind.LOSE, Kind.SLOW, Kind.LATE)
"""What strikes a write before it happens."""


@dataclass(eq=False)
class _Waiting:
    """A perturbation, and whether it has come about."""

    what: Perturbation
    struck: bool = False
    revision: int = 0
    """Of ``freeze``: after the change of its point; 0: that has not come."""

    def meets(self, write: Count, course: Course) -> bool:
        at = self.what.at
        if self.struck or self.what.controller != write.controller:
            return False
        if not at.name:
            return write.resource == course.resource(at.kind) and write.nth_of_kind == at.nth
        if write.key != course.key(at.subject):
            return False
        return (write.verb == at.of and write.nth_of_verb == at.nth) if at.of else write.nth == at.nth


def _holds(found: Mapping[str, Any], point: Point) -> bool:
    for path, wanted in point.when:
        value: Any = found
        for step in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                value = None
        if value is None if wanted == ANY else json.dumps(value, sort_keys=True) != wanted:
            return False
    return True


def _nested(path: Sequence[str], value: object) -> dict[str, Any]:
    """A merge patch."""
    for name in reversed(path[1:]):
        value = {name: value}
    return {path[0]: value}


def _again(controller: str, resource: str) -> str:
    return f"controller {controller} to ask for {resource} again"
