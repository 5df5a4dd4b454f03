"""Which endpoints go into which slice (``reconcileByPortMapping`` of ``staging/src/k8s.io/endpointslice``).

Endpoints stay in their slices; new ones go into slices that change anyway, the fullest first; the rest into the slice
that they fill best, and then into new ones. So a change of one pod changes one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kemu.emulated.controllers.services import endpoints
from kemu.emulated.objects import meta
from kemu.messages.k8s import discovery_v1_pb2

Desired = dict[tuple[object, ...], discovery_v1_pb2.Endpoint]
"""By their identities; in Kubernetes in no order, here in that of the pods' names."""


@dataclass(slots=True)
class Plan:
    """What is to be written. Slices of ``create`` have no names yet."""

    create: list[discovery_v1_pb2.EndpointSlice] = field(default_factory=list)
    update: list[discovery_v1_pb2.EndpointSlice] = field(default_factory=list)
    delete: list[discovery_v1_pb2.EndpointSlice] = field(default_factory=list)

    def add(self, other: Plan) -> None:
        self.create += other.create
        self.update += other.update
        self.delete += other.delete


def pack(
    existing: Sequence[discovery_v1_pb2.EndpointSlice],
    desired: Desired,
    most: int,
    relabelled: Callable[[discovery_v1_pb2.EndpointSlice], bool],
    new: Callable[[], discovery_v1_pb2.EndpointSlice],
) -> Plan:
    """``existing``: slices with the same ports, which are not changed. ``desired`` is used up. ``relabelled`` sets the
    labels of a copy, and says whether others were there before. ``new``: a slice with ports and without endpoints."""
    plan, unchanged, changed = Plan(), dict[str, discovery_v1_pb2.EndpointSlice](), []
    for one in existing:
        kept, is_other = [], False
        for endpoint in one.endpoints:
            wanted = desired.pop(endpoints.identity(endpoint), None)
            if wanted is not None:
                kept.append(wanted)
                is_other = is_other or not endpoints.is_in_same_state(wanted, endpoint)
        copy = meta.copied(one)
        has_other_labels = relabelled(copy)
        if is_other or len(kept) != len(one.endpoints):
            if not kept:
                plan.delete.append(one)
                continue
            del copy.endpoints[:]
            copy.endpoints.extend(kept)
            changed.append(copy)
        elif has_other_labels:
            changed.append(copy)
        else:
            unchanged[one.metadata.name] = one
    for copy in sorted(changed, key=lambda one: -len(one.endpoints)):
        _fill(copy, desired, most)
    while desired:
        target = _best(list(unchanged.values()), len(desired), most) if len(desired) < most else None
        if target is None:
            created = new()
            _fill(created, desired, most)
            plan.create.append(created)
            continue
        copy = meta.copied(unchanged.pop(target.metadata.name))
        _fill(copy, desired, most)
        changed.append(copy)
    plan.update = changed
    return plan


def _fill(into: discovery_v1_pb2.EndpointSlice, desired: Desired, most: int) -> None:
    while desired and len(into.endpoints) < most:
        into.endpoints.append(desired.pop(next(iter(desired))))


def _best(
    slices: Sequence[discovery_v1_pb2.EndpointSlice], count: int, most: int
) -> discovery_v1_pb2.EndpointSlice | None:
    """The slice that so many more fill best (``getSliceToFill``)."""
    best, best_left = None, most
    for one in slices:
        left = most - count - len(one.endpoints)
        if 0 <= left < best_left:
            best, best_left = one, left
    return best


def recycle(
    plan: Plan, is_reusable: Callable[[discovery_v1_pb2.EndpointSlice, discovery_v1_pb2.EndpointSlice], bool]
) -> None:
    """Write what is to be created over what is to be deleted. ``is_reusable``: the old one for the new one."""
    kept = []
    for old in plan.delete:
        if plan.create and is_reusable(old, plan.create[-1]):
            new = plan.create.pop()
            new.metadata.name = old.metadata.name
            plan.update.append(new)
        else:
            kept.append(old)
    plan.delete = kept
