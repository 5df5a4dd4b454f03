"""Who holds which device, and who waits for one: folded from the ResourceClaims in the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

PREFIX = "/registry/resourceclaims/"

DeviceID = tuple[str, str, str]
"""Driver, pool, device."""


class Grant(NamedTuple):
    """A claim was given its devices."""

    time_ns: int
    claim: str
    """``namespace/name``."""
    pod: str
    """UID of the first pod that the claim is reserved for; empty: none."""
    devices: tuple[DeviceID, ...]
    """Whole ones, without those of admin access."""
    taken: tuple[tuple[DeviceID, str], ...]
    """Those of them that other claims held at the time, with the claim."""


class Holding(NamedTuple):
    """A device that a claim held as a whole."""

    device: DeviceID
    claim: str
    device_class: str
    """Which the claim asked for."""
    pod: str
    """UID of the first pod that the claim was reserved for; empty: none."""
    begin_ns: int
    end_ns: int | None


class Claims:
    """Told of every change of a claim, in order."""

    def __init__(self) -> None:
        self.now: dict[str, resource_v1_pb2.ResourceClaim] = {}
        """By key ``namespace/name``."""
        self.grants: list[Grant] = []
        self.ended: list[Holding] = []
        """What was held once, and is no more."""
        self._held: dict[DeviceID, dict[str, Holding]] = {}
        """By device and by claim."""

    def changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        """``key``: of the store; ``value`` None: the claim is gone."""
        name = key.removeprefix(PREFIX)
        old = self.now.pop(name, None)
        new = None if value is None else resource_v1_pb2.ResourceClaim.FromString(value)
        if new is not None:
            self.now[name] = new
        had, has = (one is not None and one.status.HasField("allocation") for one in (old, new))
        if had and not has:
            self._release(time_ns, name)
        elif new is not None and has and not had:
            self._hold(time_ns, name, new)

    def undone(self, time_ns: int, written_ns: int, key: str, previous: bytes | None) -> None:
        """The store has lost a change, which it had written at ``written_ns``."""
        name = key.removeprefix(PREFIX)
        kept = [one for one in self.grants if (one.claim, one.time_ns) != (name, written_ns)]
        self.changed(time_ns, key, previous)
        self.grants = kept

    def _release(self, time_ns: int, name: str) -> None:
        for device, holders in list(self._held.items()):
            held = holders.pop(name, None)
            if held is not None:
                self.ended.append(held._replace(end_ns=time_ns))
            if not holders:
                del self._held[device]

    def _hold(self, time_ns: int, name: str, claim: resource_v1_pb2.ResourceClaim) -> None:
        users = claim.status.reservedFor
        pod = users[0].uid if users else ""
        classes = _classes(claim)
        devices: list[DeviceID] = []
        taken: list[tuple[DeviceID, str]] = []
        for result in claim.status.allocation.devices.results:
            if result.adminAccess or result.HasField("shareID"):
                continue
            device = result.driver, result.pool, result.device
            holders = self._held.setdefault(device, {})
            taken += [(device, other) for other in holders]
            devices.append(device)
            holders[name] = Holding(device, name, classes.get(result.request, ""), pod, time_ns, None)
        self.grants.append(Grant(time_ns, name, pod, tuple(devices), tuple(taken)))

    def known(self) -> dict[str, None]:
        """The keys of all claims that are there, or were given devices."""
        return dict.fromkeys((*self.now, *(grant.claim for grant in self.grants)))

    def devices_of(self, claim: str) -> tuple[DeviceID, ...]:
        """What the claim was given last."""
        return next((grant.devices for grant in reversed(self.grants) if grant.claim == claim), ())

    def held(self, at_ns: int) -> Iterator[Holding]:
        """What was held at a time, first what has been held longest."""
        still = [held for holders in self._held.values() for held in holders.values()]
        for one in sorted((*self.ended, *still), key=lambda one: (one.begin_ns, one.device)):
            if one.begin_ns <= at_ns and (one.end_ns is None or one.end_ns > at_ns):
                yield one

    def of_pod(self, pod: core_v1_pb2.Pod) -> list[str]:
        """The claims that a pod names, by key, as far as they are there."""
        generated = {one.name: one.resourceClaimName for one in pod.status.resourceClaimStatuses}
        names = [one.resourceClaimName or generated.get(one.name, "") for one in pod.spec.resourceClaims]
        keys = [f"{pod.metadata.namespace}/{name}" for name in names if name]
        return [key for key in keys if key in self.now]

    def wanted(self, key: str) -> dict[str, int]:
        """How many devices of which class a claim asks for; of several alternatives the first."""
        found: dict[str, int] = {}
        for request in self.now[key].spec.devices.requests:
            asked = request.exactly if request.HasField("exactly") else next(iter(request.firstAvailable), None)
            if asked is not None:
                found[asked.deviceClassName] = found.get(asked.deviceClassName, 0) + (asked.count or 1)
        return found

    def holders(self, key: str, at_ns: int) -> list[Holding]:
        """Whose devices of the classes that a claim asks for were taken at a time."""
        classes = self.wanted(key)
        return [one for one in self.held(at_ns) if one.device_class in classes and one.claim != key]


def text_of(device: DeviceID) -> str:
    """``driver/pool/device``, as Kubernetes prints it."""
    return "/".join(device)


def _classes(claim: resource_v1_pb2.ResourceClaim) -> dict[str, str]:
    """By the name that results give their request."""
    found: dict[str, str] = {}
    for request in claim.spec.devices.requests:
        if request.HasField("exactly"):
            found[request.name] = request.exactly.deviceClassName
        for one in request.firstAvailable:
            found[f"{request.name}/{one.name}"] = one.deviceClassName
    return found
