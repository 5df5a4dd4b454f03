"""Devices as simulations change them: claims get devices where their pods are placed, and nodes that do not exist have
the slices of an example. Every change returns what undoes it.

What is pending for extended resources alone is checked by the filters, and takes no devices. Mirrors
``simulator/dynamicresources``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from kemu.emulated.objects import meta
from kemu.emulated.scheduler.devices.inventory import Device, DeviceID, Slice
from kemu.emulated.scheduler.devices.pod_claims import PodClaims
from kemu.emulated.scheduler.devices.trackers import Claim, Devices
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

Undo = Callable[[], object]


class UtilizationError(Exception):
    """Nobody can say how much of a node's devices is used: slices are missing, or claims without devices."""


class Simulated:
    """``devices`` are changed."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._shares = itertools.count()

    # --- pods --------------------------------------------------------------------------------------------------------

    def reserve(self, claims: PodClaims, node: str) -> Undo:
        """What a filter has found for a pod on a node becomes the status of its claims (``SchedulePod``)."""
        claims.reserve(node, lambda: f"simulated-{next(self._shares)}")
        for claim in claims.claims:
            self._devices.release(claim.metadata.uid, force=True)
        pod, undos = claims.pod, []
        for place, claim in enumerate(claims.claims[: claims.of_user]):
            changed = meta.copied(claim)
            if place in claims.allocations:
                changed.status.allocation.CopyFrom(claims.allocations[place])
            if not any(user.uid == pod.metadata.uid for user in claim.status.reservedFor):
                changed.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
            undos.append(self._replace(claim, changed))
        return _all(undos)

    def unreserve(self, pod: core_v1_pb2.Pod) -> Undo:
        """A claim that is the pod's own, or that nobody else has reserved, loses its devices (``UnschedulePod``)."""
        undos = []
        for claim in self.claims_of(pod):
            changed = meta.copied(claim)
            del changed.status.reservedFor[:]
            changed.status.reservedFor.extend(user for user in claim.status.reservedFor if user.uid != pod.metadata.uid)
            own = any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.ownerReferences)
            if own or not changed.status.reservedFor:
                changed.status.ClearField("allocation")
            undos.append(self._replace(claim, changed))
        return _all(undos)

    def _replace(self, old: Claim, new: Claim) -> Undo:
        self._devices.assume(new)
        return lambda: self._devices.assume(old)

    def claims_of(self, pod: core_v1_pb2.Pod) -> list[Claim]:
        """Those of its claims that are there."""
        made = {one.name: one.resourceClaimName for one in pod.status.resourceClaimStatuses}
        keys = (
            f"{pod.metadata.namespace}/{entry.resourceClaimName or made.get(entry.name, '')}"
            for entry in pod.spec.resourceClaims
        )
        return [self._devices.claims[key] for key in keys if key in self._devices.claims]

    # --- nodes -------------------------------------------------------------------------------------------------------

    def add_slices(self, node: str, of_example: Iterable[resource_v1_pb2.ResourceSlice]) -> Undo:
        """For a node that does not exist, in pools of its own (``SanitizedNodeResourceSlices``)."""
        made = []
        for one in of_example:
            copy = meta.copied(one)
            copy.metadata.name = f"{one.metadata.name}-{node}"
            copy.spec.nodeName, copy.spec.pool.name = node, f"{one.spec.pool.name}-{node}"
            made.append(Slice(copy))
        self._devices.add_slices(made)
        return lambda: self._devices.drop_slices(made)

    def drop_slices(self, node: str) -> Undo:
        slices = self._devices.slices_of(node)
        self._devices.drop_slices(slices)
        return lambda: self._devices.add_slices(slices)

    def utilization(self, node: str, pods: Sequence[core_v1_pb2.Pod]) -> tuple[float, str] | None:
        """The share of devices in use in the fullest pool of a node, and driver and name of the pool; None: it has no
        devices (``HighestDynamicResourceUtilization``). Raises UtilizationError."""
        pools = self._pools_of(node)
        if not pools:
            return None
        used = self._used_by(pods)
        shares = []
        for pool, slices in pools.items():
            if not _is_whole(slices):
                raise UtilizationError(f"pool {pool[1]} lacks slices")
            shares.append((_share(slices, used), "/".join(pool)))
        return max(shares, key=lambda one: one[0])

    def _pools_of(self, node: str) -> dict[tuple[str, str], list[Slice]]:
        """By driver and name: the slices of the newest generation."""
        found: dict[tuple[str, str], list[Slice]] = {}
        for one in self._devices.slices_of(node):
            found.setdefault((one.driver, one.pool), []).append(one)
        for pool, slices in found.items():
            newest = max(one.generation for one in slices)
            found[pool] = [one for one in slices if one.generation == newest]
        return found

    def _used_by(self, pods: Iterable[core_v1_pb2.Pod]) -> set[DeviceID]:
        found: set[DeviceID] = set()
        for pod in pods:
            for claim in self.claims_of(pod):
                if not claim.status.HasField("allocation"):
                    raise UtilizationError(f"claim {claim.metadata.namespace}/{claim.metadata.name} has no devices")
                results = claim.status.allocation.devices.results
                found.update((one.driver, one.pool, one.device) for one in results if not one.adminAccess)
        return found

    def has_pools(self, node: str, drivers: Iterable[str]) -> bool:
        """Whether each driver has published a whole pool of the node."""
        whole = {driver for (driver, _name), slices in self._pools_of(node).items() if _is_whole(slices)}
        return whole.issuperset(drivers)


def _is_whole(slices: Sequence[Slice]) -> bool:
    """Whether these are all slices of their generation."""
    return len(slices) == slices[0].expected


def _share(slices: Sequence[Slice], used: set[DeviceID]) -> float:
    """Of devices that consume counters, the fullest counter of each set counts, on average over the sets; in a pool of
    both kinds the two shares are weighted by numbers of sets and of other devices (``calculatePoolUtil``)."""
    devices = [device for one in slices for device in one.devices]
    taken = [device for device in devices if device.id in used]
    whole, parts = _split(devices)
    whole_taken, parts_taken = _split(taken)
    of_whole = len(whole_taken) / len(whole) if whole else 0.0
    if not parts_taken:
        return of_whole
    sets = {name for device in parts for name, _counters in device.counters}
    totals = {name: dict(counters) for one in slices for name, counters in one.counter_sets}
    of_parts = sum(_fullest(name, counters, parts_taken) for name, counters in totals.items()) / len(sets)
    if not whole_taken:
        return of_parts
    return (of_parts * len(sets) + of_whole * len(whole)) / (len(sets) + len(whole))


def _split(devices: Iterable[Device]) -> tuple[list[Device], list[Device]]:
    """Those that consume no counters, and those that do."""
    whole: list[Device] = []
    parts: list[Device] = []
    for device in devices:
        (parts if device.counters else whole).append(device)
    return whole, parts


def _fullest(name: str, totals: dict[str, int], taken: Iterable[Device]) -> float:
    used = dict.fromkeys(totals, 0)
    for device in taken:
        for its_set, counters in device.counters:
            if its_set == name:
                for counter, amount in counters.items():
                    used[counter] = used.get(counter, 0) + amount
    return max((used[counter] / total for counter, total in totals.items() if total), default=0.0)


def _all(undos: Sequence[Undo]) -> Undo:
    def undo() -> None:
        for one in reversed(undos):
            one()

    return undo
