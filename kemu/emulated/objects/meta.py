"""Helpers for what all objects share: names, times, owners, conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message

from kemu.emulated.objects import times
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

SECOND_NS = 1_000_000_000


class Condition(Protocol):
    """A condition of any kind of object: PodCondition, NodeCondition, DeploymentCondition."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def lastTransitionTime(self) -> meta_v1_pb2.Time: ...

    def ClearField(self, field_name: Any) -> None: ...


C = TypeVar("C", bound=Condition)
C_co = TypeVar("C_co", bound=Condition, covariant=True)


class Conditions(Protocol[C_co]):
    """The field ``conditions`` of a status."""

    def __getitem__(self, key: slice) -> Sequence[C_co]: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[C_co]: ...

    def add(self) -> C_co: ...


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Mirror annotation of the pods that stand in the API for the static pods of a kubelet."""


M = TypeVar("M", bound=Message)


def copied(message: M) -> M:
    """A copy to be changed: what informers and caches hold is shared."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def set_time(time: meta_v1_pb2.Time | meta_v1_pb2.MicroTime, unix_ns: int) -> None:
    """Set a timestamp in place from Unix nanoseconds: whole seconds in a ``Time``, microseconds in a ``MicroTime``."""
    seconds, nanos = divmod(unix_ns, SECOND_NS)
    time.seconds = seconds
    if type(time) is meta_v1_pb2.MicroTime:
        time.nanos = nanos - nanos % 1000
    else:
        time.ClearField("nanos")


def unix_ns(time: meta_v1_pb2.Time | meta_v1_pb2.MicroTime) -> int:
    """Unix nanoseconds of a timestamp; 0 when it is unset."""
    return time.seconds * SECOND_NS + time.nanos


def namespaced_name(obj: KubernetesObject) -> str:
    """``ns/name``, or ``name`` for an object without a namespace."""
    metadata = obj.metadata
    namespace = metadata.namespace
    return f"{namespace}/{metadata.name}" if namespace else metadata.name


def split_name(namespaced: str) -> tuple[str, str]:
    """Namespace ("" when there is none) and name of :func:`namespaced_name`."""
    namespace, _, name = namespaced.rpartition("/")
    return namespace, name


def have_same_entries(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two maps (labels, annotations) are equal: for maps of messages faster than ``==`` of copies."""
    if len(one) != len(other):
        return False
    for key in one:  # noqa: SIM110  # a generator would cost as much again
        if key not in other or one[key] != other[key]:
            return False
    return True


def same_labels(some: Mapping[str, str], others: Mapping[str, str]) -> bool:
    """Whether two maps are equal: those of messages are compared by way of copies."""
    if len(some) != len(others):
        return False
    for key in some:  # noqa: SIM110 - a generator is a call for each label
        if others.get(key) != some[key]:
            return False
    return True


def controller_of(obj: KubernetesObject) -> meta_v1_pb2.OwnerReference | None:
    """The reference to the owner that controls the object, or None."""
    for reference in obj.metadata.ownerReferences:
        if reference.controller:
            return reference
    return None


def owner_reference(
    owner: KubernetesObject, api_version: str, kind: str, *, controller: bool = True
) -> meta_v1_pb2.OwnerReference:
    """A reference to ``owner`` for the metadata of an object that belongs to it."""
    return meta_v1_pb2.OwnerReference(
        apiVersion=api_version,
        kind=kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=controller,
        blockOwnerDeletion=controller,
    )


def get_condition(conditions: Sequence[C] | Conditions[C], condition_type: str) -> C | None:
    """The condition of that type, or None."""
    # A slice: a loop over the field of a message itself ends with an exception that costs as much as an element.
    for condition in conditions[:]:
        if condition.type == condition_type:
            return condition
    return None


def has_condition(conditions: Sequence[Condition], condition_type: str, status: str = "True") -> bool:
    """Whether the condition of that type is there with that status."""
    condition = get_condition(conditions, condition_type)
    return condition is not None and condition.status == status


def condition_patch(
    conditions: Sequence[Condition],
    condition_type: str,
    status: str,
    reason: str,
    message: str,
    now_unix_ns: int,
    generation: int = 0,
) -> dict[str, Any] | None:
    """A strategic patch that sets one condition of an object's status; None when nothing would change.

    It states what differs from the condition as known (``CreateTwoWayMergePatch``). If another client has changed the
    condition meanwhile, the rest is as that client wrote it.

    ``generation``: of the object, as for :func:`set_condition`.
    """
    known = get_condition(conditions, condition_type)
    wanted: dict[str, Any] = {"status": status, "reason": reason, "message": message}
    changed = {key: value for key, value in wanted.items() if known is None or getattr(known, key) != value}
    if not changed:
        return None
    condition = {"type": condition_type, **changed}
    if generation and (known is None or known.observedGeneration != generation):  # type: ignore[attr-defined]
        condition["observedGeneration"] = generation
    if "status" in changed:
        condition["lastTransitionTime"] = times.format_time(now_unix_ns // 1_000_000_000)
    order = {
        "$setElementOrder/conditions": [
            *({"type": one.type} for one in conditions),
            *([] if known is not None else [{"type": condition_type}]),
        ]
    }
    return {"status": {**(order if conditions else {}), "conditions": [condition]}}


def is_ready(obj: core_v1_pb2.Pod | core_v1_pb2.Node) -> bool:
    """Whether the condition Ready of a pod or node is True."""
    return has_condition(obj.status.conditions, "Ready")


def set_condition(
    conditions: Conditions[C],
    condition_type: str,
    status: str,
    reason: str,
    message: str,
    now_unix_ns: int,
    generation: int = 0,
) -> bool:
    """Set a condition in place, adding it when it is new; returns whether anything changed.

    ``lastTransitionTime`` moves only when the status changes, as in Kubernetes. Empty ``reason`` and ``message`` are
    left out. ``generation``: the condition's observedGeneration; 0: it stays as it is.
    """
    # get_condition and set_time, inlined: a pod's status has five conditions, and is written again and again.
    for condition in conditions[:]:
        if condition.type == condition_type:
            break
    else:
        condition = None
    if condition is None:
        condition = conditions.add()
        condition.type = condition_type
    elif condition.status == status and condition.reason == reason and condition.message == message:
        if not generation or condition.observedGeneration == generation:  # type: ignore[attr-defined]  # it is asked of kinds that have it
            return False
    else:
        condition.ClearField("reason")
        condition.ClearField("message")
    if condition.status != status:
        condition.status = status
        moment = condition.lastTransitionTime
        moment.seconds = now_unix_ns // SECOND_NS
        moment.ClearField("nanos")
    if reason:
        condition.reason = reason
    if message:
        condition.message = message
    if generation:
        condition.observedGeneration = generation  # type: ignore[attr-defined]
    return True
