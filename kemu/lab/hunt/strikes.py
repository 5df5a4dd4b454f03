"""Carries out perturbations when their points come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kemu.lab.hunt.courses import Change, Course
from kemu.lab.hunt.interceptors import Interceptor, View
from kemu.lab.hunt.perturbations import CONFLICT, CRASH, DELAY, EXPIRE, FREEZE, HIDE, LOSE, Perturbation, Point
from kemu.runtime.runlog.events import Transaction

HIDDEN_S = 60.0
"""Virtual time after which a hidden change is shown where nothing follows it."""


class Controllers(Protocol):
    """What strikes do to controllers, and how they wait."""

    def restart(self, name: str) -> None:
        """Kills it, and starts it again."""
        ...

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        """After so much virtual time."""
        ...


class Strikes:
    """The perturbations of one trial. All is called in the thread of the cluster."""

    interceptor: Interceptor

    def __init__(self, perturbations: Sequence[Perturbation], course: Course, trial: Controllers) -> None:
        self._course = course
        self._trial = trial
        self._writes = [_Waiting(one) for one in perturbations if one.is_about_writes]
        self._changes = [_Waiting(one) for one in perturbations if not one.is_about_writes]
        self._hidden: dict[View, str] = {}
        """Views of hidden changes, with the keys whose next change ends them."""
        self._late: dict[tuple[str, str], float] = {}

    @property
    def all_came(self) -> bool:
        """Whether each has come about."""
        return all(one.struck for one in (*self._writes, *self._changes))

    def before(self, controller: str, key: str, nth: int) -> str:
        for one in self._writes:
            if one.meets(controller, self._key(one.what.at), key, nth) and one.what.what in (CONFLICT, LOSE):
                one.struck = True
                return "refuse" if one.what.what == CONFLICT else "lose"
        return ""

    def after(self, controller: str, key: str, nth: int) -> None:
        for one in self._writes:
            if one.what.what == CRASH and one.meets(controller, self._key(one.what.at), key, nth):
                one.struck = True
                self._trial.restart(controller)

    def late_s(self, controller: str, resource: str) -> float:
        return self._late.get((controller, resource), 0.0)

    def changed(self, time_ns: int, event: Transaction) -> None:
        for change in self._course.take(time_ns, event):
            for view, key in list(self._hidden.items()):
                if key == change.key:
                    view.until_revision = change.revision
                    del self._hidden[view]
            for one in self._changes:
                if not one.struck:
                    self._consider(one, change)

    def _consider(self, one: _Waiting, change: Change) -> None:
        what = one.what
        if _is(self._key(what.at), what.at, change):
            if what.what == FREEZE:
                one.revision = change.revision
            elif what.what == DELAY:
                one.struck = True
                place = what.controller, self._course.resource(what.at.kind)
                self._late[place] = what.lasts_s
                self._trial.later(60.0, lambda: self._late.pop(place, None))
            elif what.what == EXPIRE:
                one.struck = True
                self.interceptor.expire(what.controller, self._course.resource(what.at.kind), change.revision - 1)
            elif what.what == HIDE:
                one.struck = True
                view = View(what.controller, self._course.resource(what.at.kind), change.revision - 1, latest_only=True)
                self.interceptor.begin(view)
                self._hidden[view] = change.key
                self._trial.later(what.seconds or HIDDEN_S, lambda: self.interceptor.end(view))
        restart = what.restart_at
        if what.what == FREEZE and restart is not None and one.revision and _is(self._key(restart), restart, change):
            one.struck = True
            view = View(what.controller, self._course.resource(what.at.kind), one.revision)
            self.interceptor.begin(view)
            self._trial.restart(what.controller)
            self._trial.later(what.lasts_s, lambda: self.interceptor.end(view))

    def _key(self, point: Point) -> str:
        return self._course.key(point.subject)


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
