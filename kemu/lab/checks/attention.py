"""What is overdue: something that an actor should have done by now, unless a fault or a crash kept it from that.

Role: below the checks that give actors a stated time. ``Attention`` knows when an actor could act, ``Overdue`` for how
long something is to be done, ``Punctual`` makes a check of both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kemu.errors import OutcomeUnknown
from kemu.lab.checks.history import History
from kemu.lab.checks.history.outages import Outage, Outages
from kemu.lab.checks.limits import DEFAULT, MAX_WATCH_DELAY_NS, Limits
from kemu.lab.checks.results import Fold, LimitedCheck, Result, seconds
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorExited,
    ActorFailed,
    ActorStarted,
    ActorStopped,
    ConnectionLost,
    Event,
    FaultBegun,
    FaultEnded,
    LeaseAcquired,
    LeaseLost,
    LeaseReleased,
    RequestRefused,
    RequestThrottled,
    RunEnded,
    handlers,
)
from kemu.runtime.words import counted

_Events = (
    FaultBegun | FaultEnded | ActorStarted | ActorStopped | ActorCrashed | ConnectionLost | ActorExited | ActorFailed
    | RequestThrottled | RequestRefused | LeaseAcquired | LeaseLost | LeaseReleased
)  # fmt: skip

_TRIPS = 6
"""Messages that follow one another until something is done: lists, an event, writes, a second try."""
LAGS_NS = 2_000_000_000
"""Where messages take longer, no actor is judged by what others should have known at a moment."""
_UNAVAILABLE = ("ServiceUnavailable", "Timeout")
"""Reasons of refusals that have nothing to do with the request: the store does not answer."""


class Attention(Fold):
    """When each sort of actor could act: it was up, no fault concerned it, its API server or the store, and the store
    answered in time.

    Actors are named without their replica: ``controller/job``, ``kubelet/node-1``, ``scheduler/red``.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._outages = _ByKind()
        self.up: dict[str, int] = {}
        """Since when."""
        self.known: dict[str, None] = {}
        self._came_ns: dict[str, int] = {}
        """When each last came, whether it is up or not."""

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, (FaultBegun, FaultEnded, ActorStarted, ActorStopped, ActorCrashed, ConnectionLost)):
            self._outages.on_event(time_ns, actor, event)
        if isinstance(event, RequestThrottled) or (
            isinstance(event, RequestRefused)
            and (event.reason in _UNAVAILABLE or OutcomeUnknown.is_told_by(event.reason, event.message))
        ):
            self._outages.moment(time_ns, sort_of(event.by))
            return
        name = sort_of(actor)
        if isinstance(event, (ActorStarted, LeaseAcquired)):
            self.up[name] = self._came_ns[name] = time_ns
            self.known[name] = None
        elif isinstance(event, (ActorCrashed, ActorStopped, ActorExited, ActorFailed, LeaseLost, LeaseReleased)):
            self.up.pop(name, None)
            self._outages.moment(time_ns, name)

    @property
    def lag_ns(self) -> int:
        """The longest that any request or event has taken."""
        return self.history.lag_ns

    def without(self, name: str, begin_ns: int, end_ns: int) -> int:
        """For how long of this time the actor, if it is up now, could act."""
        since_ns = self.up.get(name)
        if since_ns is None or since_ns >= end_ns:
            return 0
        return self._outages.without(name, max(begin_ns, since_ns), end_ns)

    def is_clear(self, name: str, begin_ns: int, end_ns: int) -> bool:
        """Whether nothing disturbed the actor in all of this time."""
        return self.without(name, begin_ns, end_ns) == end_ns - begin_ns

    def was_clear(self, name: str, begin_ns: int, end_ns: int) -> bool:
        """The same of a time that is over, whether the actor is up now or not."""
        if self._came_ns.get(name, end_ns) > begin_ns:
            return False
        return self._outages.without(name, begin_ns, end_ns) == end_ns - begin_ns


class _ByKind(Outages):
    def _of(self, client: str) -> list[Outage]:
        return [
            outage
            for outage in self._all
            if outage.clients is None or any(sort_of(name) == client for name in outage.clients)
        ]

    def moment(self, time_ns: int, name: str) -> None:
        """The actor is gone; what takes its place needs its time."""
        self._add(time_ns, frozenset((name,))).end_ns = time_ns


def sort_of(actor: str) -> str:
    """Without its replica."""
    return "/".join(actor.split("/", 2)[:2])


@dataclass(slots=True)
class _Due:
    since_ns: int
    who: str
    within_ns: int
    what: str


class Overdue:
    """What is to be done, by key; and what was not done in time."""

    def __init__(self, attention: Attention, more_ns: int) -> None:
        self._attention = attention
        self._more_ns = more_ns
        """Beside the time that is given."""
        self._due: dict[Any, _Due] = {}
        self._late: list[tuple[int, str]] = []
        """By how much, and what."""
        self._wrong: list[str] = []
        self.judged = 0

    @property
    def findings(self) -> list[str]:
        """What was late by more than the messages of the run explain, and what was wrong."""
        lag_ns = self._attention.lag_ns
        late = [text for late_ns, text in self._late if late_ns > _TRIPS * lag_ns]
        return late + (self._wrong if lag_ns <= LAGS_NS else [])

    def note(self, text: str) -> None:
        """Something that was done too early, as far as its actor could know."""
        self._wrong.append(text)

    def __contains__(self, key: object) -> bool:
        return key in self._due

    def begin(self, key: object, time_ns: int, who: str, within_s: float, what: str, *, anew: bool = False) -> None:
        """It is to be done from now on, if it was not already. ``anew``: an actor that has done a part has the time
        again."""
        if anew and key in self._due and self._due[key].what != what:
            self.end(key, time_ns)
        if key not in self._due:
            self._due[key] = _Due(time_ns, who, round(within_s * 1e9) + self._more_ns, what)
            self.judged += 1

    def end(self, key: object, time_ns: int) -> None:
        """It is done, or need not be done any more."""
        due = self._due.pop(key, None)
        if due is not None and time_ns - due.since_ns > due.within_ns:
            self._judge(due, time_ns)

    def allow(self, key: object, within_s: float) -> None:
        """It may take so long, from when it had to be done on."""
        self._due[key].within_ns = round(within_s * 1e9) + self._more_ns

    def drop(self, key: object) -> None:
        """It cannot be told."""
        self._due.pop(key, None)

    def open(self) -> list[Any]:
        """The keys of what is to be done."""
        return list(self._due)

    def clear(self) -> None:
        self._due.clear()

    def finish(self, time_ns: int) -> None:
        for key in list(self._due):
            self.end(key, time_ns)

    def _judge(self, due: _Due, time_ns: int) -> None:
        had_ns = self._attention.without(due.who, due.since_ns, time_ns)
        if had_ns > due.within_ns:
            text = f"{due.what}, from {seconds(due.since_ns)} to {seconds(time_ns)}; {due.who} had {seconds(had_ns)}"
            self._late.append((had_ns - due.within_ns, text))


class Punctual(LimitedCheck):
    """A check of what is overdue. It sees nothing after the end of the run."""

    folds: ClassVar[tuple[type[Fold], ...]] = (Attention,)
    nothing: ClassVar[str]
    """What it says where it had nothing to look at."""
    unit: ClassVar[str]
    """What it counts."""

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._limits = limits
        self._ended = False

    def given(self, *folds: Attention) -> None:
        (self._attention,) = folds
        more_ns = max(0, self._limits.max_watch_delay_ns - MAX_WATCH_DELAY_NS)
        self._overdue = Overdue(self._attention, more_ns)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds = (*handlers.kinds(cls.saw), RunEnded.KIND)

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        if self._ended:
            return None
        return self.on_event if kind == RunEnded.KIND else self.saw

    def on_event(self, time_ns: int, actor: str, event: Event) -> None:
        if self._ended:
            return
        if isinstance(event, RunEnded):
            self._ended = True
            self._overdue.finish(time_ns)
        else:
            self.saw(time_ns, actor, event)

    @abstractmethod
    def saw(self, time_ns: int, actor: str, event: Any) -> None:
        """An event before the end of the run, of those that the annotation of ``event`` names."""

    def rolled_back(self, time_ns: int, history: History) -> None:
        self._overdue.clear()

    def result(self, history: History) -> Result:
        if not self._ended:
            self._overdue.finish(history.now_ns)
        found = self._overdue
        return self.concluded(found.findings, found.judged, self.nothing, counted(found.judged, self.unit))
