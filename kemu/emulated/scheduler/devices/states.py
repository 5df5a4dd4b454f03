"""Which devices are allocated, wholly or in part, as the status of claims says."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.scheduler.devices.capacities import Consumed
from kemu.emulated.scheduler.devices.inventory import DeviceID
from kemu.messages.k8s import resource_v1_pb2


class AllocatedState:
    """Devices that some claim has (``AllocatedState``). A device that two claims name counts once, as in Kubernetes."""

    __slots__ = ("consumed", "devices", "shares")

    def __init__(self) -> None:
        self.devices: set[DeviceID] = set()
        """Allocated as a whole."""
        self.shares: dict[DeviceID, set[str]] = {}
        """The IDs of shares of devices that may be allocated several times."""
        self.consumed: dict[DeviceID, Consumed] = {}

    def copy(self) -> AllocatedState:
        made = AllocatedState()
        made.devices = set(self.devices)
        made.shares = {device: set(shares) for device, shares in self.shares.items()}
        made.consumed = {device: dict(amounts) for device, amounts in self.consumed.items()}
        return made

    def has_any(self, device: DeviceID) -> bool:
        """Whether it is allocated at least in part (``IsDeviceAllocated``)."""
        return device in self.devices or device in self.shares or device in self.consumed

    def add(self, claim: resource_v1_pb2.ResourceClaim) -> None:
        for result, device in _results(claim):
            if not result.HasField("shareID"):
                self.devices.add(device)
                continue
            self.shares.setdefault(device, set()).add(result.shareID)
            if result.consumedCapacity:
                consume(self.consumed, device, _amounts(result))

    def remove(self, claim: resource_v1_pb2.ResourceClaim) -> None:
        for result, device in _results(claim):
            if not result.HasField("shareID"):
                self.devices.discard(device)
                continue
            shares = self.shares.get(device)
            if shares is not None:
                shares.discard(result.shareID)
                if not shares:
                    del self.shares[device]
            if result.consumedCapacity:
                release(self.consumed, device, _amounts(result))


def consume(consumed: dict[DeviceID, Consumed], device: DeviceID, amounts: Consumed) -> None:
    known = consumed.setdefault(device, {})
    for name, nano in amounts.items():
        known[name] = known.get(name, 0) + nano


def release(consumed: dict[DeviceID, Consumed], device: DeviceID, amounts: Consumed) -> None:
    """Nothing is left of a device when all of its amounts are 0."""
    known = consumed.get(device)
    if known is None:
        return
    for name, nano in amounts.items():
        if name in known:
            known[name] -= nano
    if not any(known.values()):
        del consumed[device]


def _results(
    claim: resource_v1_pb2.ResourceClaim,
) -> Iterator[tuple[resource_v1_pb2.DeviceRequestAllocationResult, DeviceID]]:
    """Those that take something away: not those of admin access."""
    if claim.status.HasField("allocation"):
        for result in claim.status.allocation.devices.results:
            if not result.adminAccess:
                yield result, (result.driver, result.pool, result.device)


def _amounts(result: resource_v1_pb2.DeviceRequestAllocationResult) -> Consumed:
    return {name: quantities.parse(one.string).nano for name, one in result.consumedCapacity.items()}
