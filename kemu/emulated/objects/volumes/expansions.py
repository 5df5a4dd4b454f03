"""How far the expansion of a claim is: what its status says, and what comes next.

Mirrors ``expand_and_recover.go`` of external-resizer, and ``pkg/volume/util/resize_util.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2

STORAGE = "storage"
NODE_EXPANSION_NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required"
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""On a volume: the size of its file system, while a node has not made that larger."""

CONTROLLER_IN_PROGRESS, CONTROLLER_INFEASIBLE = "ControllerResizeInProgress", "ControllerResizeInfeasible"
NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE = "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"
"""``allocatedResourceStatuses``."""

RESIZING, FILE_SYSTEM_PENDING = "Resizing", "FileSystemResizePending"
CONTROLLER_ERROR, NODE_ERROR = "ControllerResizeError", "NodeResizeError"
CONDITIONS = (RESIZING, FILE_SYSTEM_PENDING, CONTROLLER_ERROR, NODE_ERROR)
WAITING = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


def has(claim: core_v1_pb2.PersistentVolumeClaim) -> Quantity:
    """The size that a pod can use."""
    return _size(claim.status.capacity)


def allocated(claim: core_v1_pb2.PersistentVolumeClaim) -> Quantity | None:
    """The size that an expansion was begun to; None: there was none."""
    return _size(claim.status.allocatedResources) if STORAGE in claim.status.allocatedResources else None


def state(claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    return str(claim.status.allocatedResourceStatuses.get(STORAGE, ""))


def is_wanted(claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
    """``pvcNeedResize``."""
    bound = claim.status.phase == claims.BOUND and bool(claim.spec.volumeName)
    return bound and has(claim) < claims.requested(claim)


def next_size(
    claim: core_v1_pb2.PersistentVolumeClaim, volume: core_v1_pb2.PersistentVolume, has_failed: bool
) -> Quantity | None:
    """The size that the driver is asked for; None: the turn is another's. An expansion that has begun is ended before
    another size is tried. ``has_failed``: the last call of the driver did, and changed nothing."""
    wanted, begun, where = claims.requested(claim), allocated(claim), state(claim)
    if claims.capacity(volume) < wanted:
        if where in (NODE_PENDING, NODE_IN_PROGRESS):
            size = wanted if begun is None else begun
            return size if claims.capacity(volume) < size else None
        if where == NODE_INFEASIBLE or (where == CONTROLLER_IN_PROGRESS and not has_failed):
            return wanted if begun is None else begun
        return wanted
    if where in (NODE_PENDING, NODE_IN_PROGRESS):
        return None
    return wanted if begun is None else begun


def begin(claim: core_v1_pb2.PersistentVolumeClaim, size: str, now_ns: int) -> None:
    """``markControllerResizeInProgress``: another size is a new beginning."""
    begun = allocated(claim)
    is_new = begun is None or begun.nano != quantities.parse(size).nano
    set_conditions(claim, {RESIZING: ""}, now_ns, keep=() if is_new else CONDITIONS)
    if is_new:
        claim.status.allocatedResourceStatuses[STORAGE] = CONTROLLER_IN_PROGRESS
    claim.status.allocatedResources[STORAGE].string = size


def fail(claim: core_v1_pb2.PersistentVolumeClaim, why: str, is_infeasible: bool, now_ns: int) -> None:
    """``markControllerExpansionInfeasible`` and ``markControllerExpansionFailedCondition``."""
    if is_infeasible:
        claim.status.allocatedResourceStatuses[STORAGE] = CONTROLLER_INFEASIBLE
    set_conditions(claim, {CONTROLLER_ERROR: f"failed to expand pvc with {why}"}, now_ns, keep=CONDITIONS)


def leave_to_node(claim: core_v1_pb2.PersistentVolumeClaim, now_ns: int) -> None:
    """``markForPendingNodeExpansion``."""
    set_conditions(claim, {FILE_SYSTEM_PENDING: WAITING}, now_ns, keep=CONDITIONS)
    claim.status.allocatedResourceStatuses[STORAGE] = NODE_PENDING


def finish(claim: core_v1_pb2.PersistentVolumeClaim, size: str, now_ns: int) -> None:
    """``MarkNodeExpansionFinishedWithRecovery`` and ``markOverallExpansionAsFinished``."""
    claim.status.capacity[STORAGE].string = size
    if STORAGE in claim.status.allocatedResourceStatuses:
        del claim.status.allocatedResourceStatuses[STORAGE]
    set_conditions(claim, {}, now_ns)


def set_conditions(
    claim: core_v1_pb2.PersistentVolumeClaim,
    new: dict[str, str],
    now_ns: int,
    *,
    among: Iterable[str] = CONDITIONS,
    keep: Iterable[str] = (),
    reasons: dict[str, str] | None = None,
) -> None:
    """Conditions of ``new`` (messages by type) are true. Those of ``among`` that are not in ``new`` go, unless ``keep``
    has them; one that was true already stays as it was (``MergeResizeConditionsOfPVC``)."""
    kept, left = [], dict(new)
    for one in claim.status.conditions:
        if one.type in left:
            left.pop(one.type)
            kept.append(one)
        elif one.type not in among or one.type in keep:
            kept.append(one)
    made = [core_v1_pb2.PersistentVolumeClaimCondition.FromString(one.SerializeToString()) for one in kept]
    del claim.status.conditions[:]
    claim.status.conditions.extend(made)
    for kind, message in left.items():
        condition = claim.status.conditions.add(type=kind, status="True", message=message)
        condition.reason = (reasons or {}).get(kind, "")
        meta.set_time(condition.lastTransitionTime, now_ns)


def _size(amounts: object) -> Quantity:
    if STORAGE not in amounts:  # type: ignore[operator]
        return quantities.ZERO
    return quantities.parse(amounts[STORAGE].string)  # type: ignore[index]
