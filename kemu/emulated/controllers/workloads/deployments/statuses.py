"""Status and conditions of a Deployment (``calculateStatus``, ``progress.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kemu.emulated.controllers.workloads.deployments import revisions, rollouts
from kemu.emulated.objects import meta
from kemu.messages.k8s import apps_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"

UPDATED, CREATE_FAILED, CREATED, FOUND = (
    "ReplicaSetUpdated",
    "ReplicaSetCreateError",
    "NewReplicaSetCreated",
    "FoundNewReplicaSet",
)
COMPLETE, TIMED_OUT, PAUSED, RESUMED = (
    "NewReplicaSetAvailable",
    "ProgressDeadlineExceeded",
    "DeploymentPaused",
    "DeploymentResumed",
)
"""Reasons of the condition Progressing."""

_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


def has_deadline(deployment: apps_v1_pb2.Deployment) -> bool:
    """``HasProgressDeadline``."""
    spec = deployment.spec
    return bool(spec.HasField("progressDeadlineSeconds") and spec.progressDeadlineSeconds != revisions.LARGEST_INT32)


def condition(kind: str, status: str, reason: str, message: str, now_ns: int) -> apps_v1_pb2.DeploymentCondition:
    """A new one (``NewDeploymentCondition``)."""
    made = apps_v1_pb2.DeploymentCondition(type=kind, status=status, reason=reason, message=message)
    meta.set_time(made.lastUpdateTime, now_ns)
    meta.set_time(made.lastTransitionTime, now_ns)
    return made


def put(status: apps_v1_pb2.DeploymentStatus, wanted: apps_v1_pb2.DeploymentCondition) -> None:
    """Add a condition, at the end, unless one of the same status and reason is there (``SetDeploymentCondition``)."""
    known = meta.get_condition(status.conditions, wanted.type)
    if known is not None and known.status == wanted.status:
        if known.reason == wanted.reason:
            return
        wanted.lastTransitionTime.CopyFrom(known.lastTransitionTime)
    remove(status, wanted.type)
    status.conditions.append(wanted)


def remove(status: apps_v1_pb2.DeploymentStatus, kind: str) -> None:
    kept = [one for one in status.conditions if one.type != kind]
    if len(kept) < len(status.conditions):
        del status.conditions[:]
        status.conditions.extend(kept)


def calculated(
    deployment: apps_v1_pb2.Deployment, sets: Sequence[Any | None], new: apps_v1_pb2.ReplicaSet | None, now_ns: int
) -> apps_v1_pb2.DeploymentStatus:
    """``calculateStatus``. Fields that are zero are not set."""
    status = apps_v1_pb2.DeploymentStatus()
    total, ready, terminating = 0, 0, 0
    for one in sets:
        if one is not None:
            total += one.status.replicas
            ready += one.status.readyReplicas
            terminating += one.status.terminatingReplicas
    available = rollouts.available(sets)
    unavailable = max(0, rollouts.replicas(sets) - available)
    updated = 0 if new is None else new.status.replicas
    _set_counts(status, (total, updated, ready, available, unavailable))
    if deployment.metadata.generation:
        status.observedGeneration = deployment.metadata.generation
    if _knows_terminating(sets):
        status.terminatingReplicas = terminating
    if deployment.status.HasField("collisionCount"):
        status.collisionCount = deployment.status.collisionCount
    status.conditions.extend(deployment.status.conditions)
    if available >= deployment.spec.replicas - rollouts.max_unavailable(deployment):
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        verdict = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    put(status, condition(AVAILABLE, *verdict, now_ns))
    return status


def _knows_terminating(sets: Iterable[Any | None]) -> bool:
    """Whether every ReplicaSet that was synced counts its terminating pods."""
    return all(
        one is None or not one.status.observedGeneration or one.status.HasField("terminatingReplicas") for one in sets
    )


def _set_counts(status: apps_v1_pb2.DeploymentStatus, counts: Iterable[int]) -> None:
    for name, count in zip(_COUNTS, counts, strict=True):
        if count:
            setattr(status, name, count)


def is_equal(one: apps_v1_pb2.DeploymentStatus, other: apps_v1_pb2.DeploymentStatus) -> bool:
    """Whether two statuses say the same; a count that is not set is zero."""
    return (
        all(getattr(one, name) == getattr(other, name) for name in (*_COUNTS, "observedGeneration"))
        and all(
            one.HasField(name) == other.HasField(name) and getattr(one, name) == getattr(other, name)
            for name in ("collisionCount", "terminatingReplicas")
        )
        and list(one.conditions) == list(other.conditions)
    )


def is_complete(deployment: apps_v1_pb2.Deployment, status: apps_v1_pb2.DeploymentStatus) -> bool:
    """``DeploymentComplete``."""
    wanted = deployment.spec.replicas
    return bool(
        status.updatedReplicas == wanted
        and status.replicas == wanted
        and status.availableReplicas == wanted
        and status.observedGeneration >= deployment.metadata.generation
    )


def makes_progress(deployment: apps_v1_pb2.Deployment, status: apps_v1_pb2.DeploymentStatus) -> bool:
    """``DeploymentProgressing``."""
    before = deployment.status
    return bool(
        status.updatedReplicas > before.updatedReplicas
        or status.replicas - status.updatedReplicas < before.replicas - before.updatedReplicas
        or status.readyReplicas > before.readyReplicas
        or status.availableReplicas > before.availableReplicas
    )


def is_timed_out(deployment: apps_v1_pb2.Deployment, status: apps_v1_pb2.DeploymentStatus, now_ns: int) -> bool:
    """``DeploymentTimedOut``."""
    known = meta.get_condition(status.conditions, PROGRESSING)
    if known is None or known.reason == COMPLETE:
        return False
    return known.reason == TIMED_OUT or deadline_ns(deployment, known) < now_ns


def deadline_ns(deployment: apps_v1_pb2.Deployment, progressing: apps_v1_pb2.DeploymentCondition) -> int:
    return meta.unix_ns(progressing.lastUpdateTime) + int(deployment.spec.progressDeadlineSeconds) * SECOND_NS


def of_rollout(
    deployment: apps_v1_pb2.Deployment, sets: Sequence[Any | None], new: apps_v1_pb2.ReplicaSet | None, now_ns: int
) -> apps_v1_pb2.DeploymentStatus:
    """The status during a rollout, with its progress (``syncRolloutStatus``)."""
    status = calculated(deployment, sets, new, now_ns)
    if not has_deadline(deployment):
        remove(status, PROGRESSING)
    current = meta.get_condition(deployment.status.conditions, PROGRESSING)
    was_complete = status.replicas == status.updatedReplicas and current is not None and current.reason == COMPLETE
    if has_deadline(deployment) and not was_complete:
        _note_progress(deployment, status, current, new, now_ns)
    failures = _failures(sets, new)
    if failures:
        put(status, failures[0])
    else:
        remove(status, REPLICA_FAILURE)
    return status


def _note_progress(
    deployment: apps_v1_pb2.Deployment,
    status: apps_v1_pb2.DeploymentStatus,
    current: apps_v1_pb2.DeploymentCondition | None,
    new: KubernetesObject | None,
    now_ns: int,
) -> None:
    what = f'Deployment "{deployment.metadata.name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    if is_complete(deployment, status):
        put(status, condition(PROGRESSING, "True", COMPLETE, f"{what} has successfully progressed.", now_ns))
    elif makes_progress(deployment, status):
        made = condition(PROGRESSING, "True", UPDATED, f"{what} is progressing.", now_ns)
        if current is not None:
            if current.status == "True":
                made.lastTransitionTime.CopyFrom(current.lastTransitionTime)
            # Its time of update changes with every step.
            remove(status, PROGRESSING)
        put(status, made)
    elif is_timed_out(deployment, status, now_ns):
        put(status, condition(PROGRESSING, "False", TIMED_OUT, f"{what} has timed out progressing.", now_ns))


def _failures(sets: Sequence[Any | None], new: apps_v1_pb2.ReplicaSet | None) -> list[Any]:
    """The conditions ReplicaFailure of the newest ReplicaSet, else of all (``getReplicaFailures``)."""
    for group in ([new], sets):
        found = [
            apps_v1_pb2.DeploymentCondition(
                type=one.type,
                status=one.status,
                reason=one.reason,
                message=one.message,
                lastTransitionTime=one.lastTransitionTime,
                lastUpdateTime=one.lastTransitionTime,
            )
            for each in group
            if each is not None
            for one in each.status.conditions
            if one.type == REPLICA_FAILURE
        ]
        if found:
            return found
    return []
