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
    """Who says so; empty: whoever."""
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
        elif kind not in happening.kinds or not happening.is_so(data):
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
    doc: str
    is_so: Callable[[Mapping[str, Any]], bool] = lambda data: True


def _is_ok(data: Mapping[str, Any]) -> bool:
    return bool(data["ok"])


def _is_refused(data: Mapping[str, Any]) -> bool:
    return not data["ok"]


HAPPENINGS: Mapping[str, Happening] = {
    "attempted": Happening((PodAttempted.KIND,), "a scheduler has decided about the pod, whatever the result"),
    "scheduled": Happening(
        (PodAttempted.KIND,), "a scheduler has chosen a node for the pod", lambda data: data["result"] == "scheduled"
    ),
    "unschedulable": Happening(
        (PodAttempted.KIND,), "a scheduler found no node for the pod", lambda data: data["result"] == "unschedulable"
    ),
    "bound": Happening((PodBound.KIND,), "a scheduler was told that its binding of the pod succeeded", _is_ok),
    "bindRefused": Happening((PodBound.KIND,), "a scheduler was told that its binding of the pod failed", _is_refused),
    "nominated": Happening((PodNominated.KIND,), "a scheduler has nominated a node for the pod"),
    "preempting": Happening((PreemptionPlanned.KIND,), "a scheduler has chosen victims for the pod"),
    "preempted": Happening(kinds(VictimDeleted, RescheduledVictimDeleted), "the pod was deleted as a victim", _is_ok),
    "admitted": Happening((AdmissionDecided.KIND,), "a kubelet has admitted the pod", _is_ok),
    "rejected": Happening((AdmissionDecided.KIND,), "a kubelet has rejected the pod", _is_refused),
    "running": Happening((PodRunning.KIND,), "all containers of the pod have started"),
    "finished": Happening((PodFinished.KIND,), "all containers of the pod have ended"),
    "terminating": Happening((PodTerminating.KIND,), "a kubelet has begun to end the pod"),
    "terminated": Happening((PodTerminated.KIND,), "all containers of a pod that had to end have ended"),
    "evicting": Happening((PodEvicting.KIND,), "a kubelet evicts the pod"),
    "created": Happening(kinds(UserPodCreated, PodCreated), "the pod was made"),
    "tainted": Happening((NodeTainted.KIND,), "the node lifecycle controller has changed taints of the node"),
    "crashed": Happening((ActorCrashed.KIND,), "the actor has crashed"),
    "started": Happening((ActorStarted.KIND,), "the actor has started"),
    "stored": Happening((Transaction.KIND,), "the store has carried out a transaction"),
}
"""The words for events for which a hold can wait."""
