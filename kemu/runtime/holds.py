"""Holds: what makes one run of a scenario different from its usual one.

A hold keeps one message back until an event has happened, or for a time. Both are named as people name them, by actor,
kind, object and count, so a hold means the same in a run with one message more or less. A run is its scenario, its seed
and its holds. ``kemu explore`` writes them, people may; ``runtime/sim/steering`` carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorStarted,
    AdmissionDecided,
    NodeTainted,
    OfVictim,
    PodAttempted,
    PodBound,
    PodCreated,
    PodEvicting,
    PodFinished,
    PodNominated,
    PodRunning,
    PodTerminated,
    PodTerminating,
    PreemptionPlanned,
    RescheduledVictimDeleted,
    Transaction,
    UserPodCreated,
    VictimDeleted,
    kinds,
    typed,
)
from kemu.runtime.words import short

MOST_NS = 10 * SECOND_NS
"""A hold that waits for an event lets go after so long at the latest, unless it sets another limit."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a message is about: an object and what happens to it."""

    kind: str = ""
    """``Pod``; empty where it concerns no single kind."""
    name: str = ""
    """``blue-pod``, or ``namespace/name`` where the namespace is not ``default``; empty where it concerns no object."""
    what: str = ""
    """Of a request its verb, of an answer ``<verb>-answered``, of a watch what became of the object."""

    def __str__(self) -> str:
        return " ".join(word for word in (self.kind, self.name, self.what) if word)


@dataclass(frozen=True, slots=True)
class MessagePattern:
    """The ``count``-th message from one actor to another with that label; an empty field fits all."""

    source: str
    target: str
    label: Label
    count: int = 1

    def fits(self, label: Label) -> bool:
        own = self.label
        return (
            (not own.what or own.what == label.what)
            and (not own.name or own.name == label.name)
            and (not own.kind or own.kind == label.kind)
        )


@dataclass(frozen=True, slots=True)
class EventPattern:
    """The ``count``-th time that something happened, as the run log tells it, since the message was sent."""

    actor: str
    """Who says so; empty: any actor."""
    what: str
    """A word of :data:`HAPPENINGS`, or a kind of event of the run log."""
    pod: str = ""
    """``name``, or ``namespace/name``."""
    node: str = ""
    count: int = 1

    def fits(self, actor: str, kind: str, data: Mapping[str, Any]) -> bool:
        if self.actor and actor != self.actor:
            return False
        happening = HAPPENINGS.get(self.what)
        if happening is None:
            if kind != self.what:
                return False
        elif kind not in happening.kinds or not happening.is_so(typed(kind, data)):
            return False
        if self.pod and short(str(data.get("pod", ""))) != self.pod:
            return False
        return not self.node or data.get("node") == self.node


@dataclass(frozen=True, slots=True)
class Hold:
    """Keeps one message back."""

    message: MessagePattern
    until: EventPattern | None = None
    for_ns: int = MOST_NS
    """How long; with ``until``: at most."""


@dataclass(frozen=True, slots=True)
class Happening:
    """A word for events of the run log."""

    kinds: tuple[str, ...]
    past: str
    """What the actor had done, with a place for the name of the pod or node."""
    is_so: Callable[[Any], bool] = lambda event: True


def _is_ok(event: AdmissionDecided | PodBound | OfVictim) -> bool:
    return event.ok


def _is_refused(event: AdmissionDecided | PodBound) -> bool:
    return not event.ok


def _attempt(result: str) -> Callable[[PodAttempted], bool]:
    return lambda event: event.result == result


HAPPENINGS: Mapping[str, Happening] = {
    "attempted": Happening((PodAttempted.KIND,), "had decided about {}"),
    "scheduled": Happening((PodAttempted.KIND,), "had chosen a node for {}", _attempt("scheduled")),
    "unschedulable": Happening((PodAttempted.KIND,), "had found no node for {}", _attempt("unschedulable")),
    "bound": Happening((PodBound.KIND,), "had bound {}", _is_ok),
    "bindRefused": Happening((PodBound.KIND,), "had failed to bind {}", _is_refused),
    "nominated": Happening((PodNominated.KIND,), "had nominated a node for {}"),
    "preempting": Happening((PreemptionPlanned.KIND,), "had chosen victims for {}"),
    "preempted": Happening(kinds(VictimDeleted, RescheduledVictimDeleted), "had preempted {}", _is_ok),
    "admitted": Happening((AdmissionDecided.KIND,), "had admitted {}", _is_ok),
    "rejected": Happening((AdmissionDecided.KIND,), "had rejected {}", _is_refused),
    "running": Happening((PodRunning.KIND,), "had started {}"),
    "finished": Happening((PodFinished.KIND,), "had seen {} end"),
    "terminating": Happening((PodTerminating.KIND,), "had begun to end {}"),
    "terminated": Happening((PodTerminated.KIND,), "had seen the containers of {} end"),
    "evicting": Happening((PodEvicting.KIND,), "had evicted {}"),
    "created": Happening(kinds(UserPodCreated, PodCreated), "had created {}"),
    "tainted": Happening((NodeTainted.KIND,), "had tainted {}"),
    "crashed": Happening((ActorCrashed.KIND,), "had crashed"),
    "started": Happening((ActorStarted.KIND,), "had started"),
    "stored": Happening((Transaction.KIND,), "had made its next write"),
}
"""The words for events for which a hold can wait."""
