"""Which faults struck whom, for the spans of those actors and the roots of their pods.

Role: told by the events of chaos, asked by ``drafts`` when a span ends. A builder that sees the events of one cell only
(live traces on Ray) sees no faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.lab.telemetry.spans import SpanEvent
from kemu.runtime.runlog.events import FaultBegun, FaultEnded, FaultHit, handlers

MOST_REMEMBERED = 256
"""Faults of one actor that are remembered; the oldest are forgotten first."""


class _Strike:
    """A fault that has hit an actor. Times are virtual."""

    __slots__ = ("begin_ns", "end_ns", "fault", "name")

    def __init__(self, fault: str, name: str, begin_ns: int) -> None:
        self.fault = fault
        self.name = name
        self.begin_ns = begin_ns
        self.end_ns: int | None = None


class FaultEvents:
    """Handlers of these events, by kind."""

    def __init__(self) -> None:
        self._what: dict[str, str] = {}
        """The kinds of the faults in force, by id."""
        self._open: dict[str, list[_Strike]] = {}
        """The strikes of the faults in force."""
        self._struck: dict[str, list[_Strike]] = {}
        """By actor."""
        self.handlers: dict[str, Callable[[int, str, Mapping[str, Any]], None]] = handlers.of(self)

    def during(self, actors: Iterable[str], start_ns: int, end_ns: int) -> tuple[SpanEvent, ...]:
        """The faults that bore on one of the actors in that time, each when it began to."""
        if not self._struck:
            return ()
        found: dict[tuple[int, str], SpanEvent] = {}
        for actor in actors:
            for strike in self._struck.get(actor, ()):
                if strike.begin_ns <= end_ns and (strike.end_ns is None or strike.end_ns >= start_ns):
                    when_ns = max(strike.begin_ns, start_ns)
                    found[when_ns, strike.fault] = SpanEvent(when_ns, strike.name, strike.fault)
        return tuple(found[key] for key in sorted(found))

    def _on_begin(self, time_ns: int, actor: str, event: FaultBegun) -> None:
        fault, what = event.id, event.what
        self._what[fault] = what
        # A crash strikes at once.
        for name in [*event.actors, *(f"kubelet/{node}" for node in event.nodes)]:
            self._strike(fault, name, what, time_ns)

    def _on_hit(self, time_ns: int, actor: str, event: FaultHit) -> None:
        fault, struck, peer = event.id, event.actor, event.peer
        what = self._what.get(fault, "fault")
        self._strike(fault, struck, f"{what} towards {peer}" if peer else what, time_ns)
        if peer:
            self._strike(fault, peer, f"{what} from {struck}", time_ns)

    def _on_end(self, time_ns: int, actor: str, event: FaultEnded) -> None:
        for strike in self._open.pop(event.id, ()):
            strike.end_ns = time_ns
        self._what.pop(event.id, None)

    def _strike(self, fault: str, actor: str, name: str, time_ns: int) -> None:
        strike = _Strike(fault, name, time_ns)
        if fault not in self._what:
            strike.end_ns = time_ns  # it was over in an instant
        else:
            self._open.setdefault(fault, []).append(strike)
        strikes = self._struck.setdefault(actor, [])
        strikes.append(strike)
        if len(strikes) > MOST_REMEMBERED:
            del strikes[0]
