"""Checks of the statuses of workloads: no number is negative, and no part is more than the whole."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import invalid
from kemu.errors import Cause
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers in a status, in the order in which Kubernetes looks at them."""

    fields: tuple[str, ...]
    parts: tuple[str, ...] = ()
    """Those that cannot be more than ``replicas``."""
    ready: str = "readyReplicas"
    """What the message calls those of which the available ones are a part."""
    collisions: bool = True
    """It counts collisions, which cannot become fewer."""


_OF_REPLICAS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_NUMBERS: dict[type[Message], _Numbers] = {
    apps_v1_pb2.ReplicaSet: _Numbers((*_OF_REPLICAS, "terminatingReplicas"), _OF_REPLICAS[1:4], collisions=False),
    core_v1_pb2.ReplicationController: _Numbers(_OF_REPLICAS, _OF_REPLICAS[1:4], collisions=False),
    apps_v1_pb2.Deployment: _Numbers(
        (
            "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
            "unavailableReplicas", "terminatingReplicas", "collisionCount",
        ),
        ("updatedReplicas", "readyReplicas", "availableReplicas"),
    ),
    apps_v1_pb2.StatefulSet: _Numbers(
        (
            "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
            "observedGeneration", "collisionCount",
        ),
        ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
        "status.readyReplicas",
    ),
    apps_v1_pb2.DaemonSet: _Numbers(
        (
            "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
            "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
        )
    ),
}  # fmt: skip
_GETTERS = {kind: attrgetter(*numbers.fields) for kind, numbers in _NUMBERS.items()}


Workload = (
    apps_v1_pb2.ReplicaSet
    | apps_v1_pb2.Deployment
    | apps_v1_pb2.StatefulSet
    | apps_v1_pb2.DaemonSet
    | core_v1_pb2.ReplicationController
)


def check_status(new: Workload, old: Workload, found: list[Cause]) -> None:
    """Of an update of a status; of all workloads but Jobs."""
    status: Any = new.status
    was: Any = old.status
    numbers = _NUMBERS[type(new)]
    values = _GETTERS[type(new)](status)
    if min(values) < 0:
        for field, value in zip(numbers.fields, values, strict=True):
            checks.not_negative(value, f"status.{field}", found)
    for field in numbers.parts:
        if getattr(status, field) > status.replicas:
            why = "cannot be greater than status.replicas"
            found.append(invalid(f"status.{field}", getattr(status, field), why))
    if numbers.parts and status.availableReplicas > status.readyReplicas:
        why = f"cannot be greater than {numbers.ready}"
        found.append(invalid("status.availableReplicas", status.availableReplicas, why))
    if numbers.collisions and was.HasField("collisionCount"):
        count = status.collisionCount
        if not status.HasField("collisionCount") or count < was.collisionCount:
            found.append(invalid("status.collisionCount", count, "cannot be decremented"))
