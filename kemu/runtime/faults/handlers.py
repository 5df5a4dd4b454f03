"""Faults that actors carry out themselves, such as an API server that answers from the past.

An actor names the kinds that it can do (``Env.on_fault``); the runtime keeps one :class:`Handlers` for each process and
tells it of faults that begin and end. An actor that starts while a fault is in force is told, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.runtime.faults.kinds import KINDS, carriers

End = Callable[[], object]
"""Ends a fault in an actor."""


@dataclass(frozen=True)
class Assignment:
    """A fault that an actor is to carry out."""

    id: str
    parameters: Mapping[str, Any]
    """As ``Runtime.inject`` takes them."""
    hit: Callable[[str], None]
    """To be told when the fault strikes; the peer that is concerned, or ""."""
    random: random.Random
    """Random of this fault at this actor alone."""


Handler = Callable[[Assignment], End | None]
"""Begins a fault in an actor. Returns what ends it, or None if it is over in an instant."""


class Handlers:
    """Handlers of the actors of one process."""

    def __init__(self, strike: Callable[[str, str, str], None], random_of: Callable[[str, str], random.Random]) -> None:
        """``strike``: told of fault, actor and peer whenever a fault strikes. ``random_of``: the random stream of a
        fault at an actor."""
        self._strike = strike
        self._random_of = random_of
        self._by_actor: dict[str, dict[str, Handler]] = {}
        self._in_force: dict[str, tuple[str, Mapping[str, Any]]] = {}
        """Kind and parameters by the id of the fault."""
        self._ends: dict[str, dict[str, End]] = {}
        """By fault and actor."""

    def add(self, actor: str, what: str, handler: Handler) -> None:
        """An actor can do a kind of faults. It is told of those that are in force."""
        self._by_actor.setdefault(actor, {})[what] = handler
        for fault, (kind, parameters) in list(self._in_force.items()):
            if kind == what and _concerns(kind, parameters, actor):
                self._begin(fault, parameters, actor, handler)

    def remove(self, actor: str) -> None:
        """The actor has stopped or crashed."""
        self._by_actor.pop(actor, None)
        for ends in self._ends.values():
            ends.pop(actor, None)

    def begin(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        if fault in self._in_force:
            return  # this process was told before
        if KINDS[what].lasts:
            self._in_force[fault] = what, parameters
        for actor, handlers in list(self._by_actor.items()):
            if what in handlers and _concerns(what, parameters, actor):
                self._begin(fault, parameters, actor, handlers[what])

    def end(self, fault: str) -> None:
        """One that is not in force is none of this process's business."""
        self._in_force.pop(fault, None)
        for end in self._ends.pop(fault, {}).values():
            end()

    def _begin(self, fault: str, parameters: Mapping[str, Any], actor: str, handler: Handler) -> None:
        assignment = Assignment(
            fault, parameters, lambda peer: self._strike(fault, actor, peer), self._random_of(fault, actor)
        )
        end = handler(assignment)
        if end is not None:
            self._ends.setdefault(fault, {})[actor] = end


def _concerns(what: str, parameters: Mapping[str, Any], actor: str) -> bool:
    names = carriers(what, parameters)
    return names == "*" or (names != "" and actor in parameters[names])
