"""The events of devices: claims, drivers, what the kubelet prepares."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.declared import Event
from kemu.runtime.runlog.events.subjects import OfPod
from kemu.runtime.runlog.events.words import BAD, GOOD, Line, whole
from kemu.runtime.words import short

_CLAIMS = "resource claim controller"
_DRIVERS = "DRA drivers"


class ClaimCreated(Event, kind="devices.claim", by=_CLAIMS):
    """A ResourceClaim was generated from a template"""

    claim: str
    uid: str
    pod: str
    pod_uid: str


class ClaimDeallocated(Event, kind="devices.deallocated", by=_CLAIMS):
    """A ResourceClaim has lost its last consumer, and with it its devices"""

    claim: str
    uid: str
    devices: list[str]

    def lines(self, before: Event | None) -> Sequence[Line]:
        phrase = f"claim {short(self.claim)} is deallocated"
        return (whole("volume", phrase, "claims are deallocated", GOOD, ", ".join(self.devices)),)


class ClaimDeleted(Event, kind="devices.claim_deleted", by=_CLAIMS):
    """A generated ResourceClaim was deleted: its pod will not run any more"""

    claim: str
    uid: str


class DeviceTaintEviction(OfPod, kind="devices.eviction", by="device taint eviction controller", on_page=True):
    """The DELETE of a pod returned; `start` is when it had to go"""

    start: int
    taints: list[str]


class SlicePublished(Event, kind="devices.slice", by=_DRIVERS):
    """A ResourceSlice was written"""

    node: str
    driver: str
    generation: int
    devices: int


class DevicesPrepared(OfPod, kind="devices.prepared", by="kubelet"):
    """The drivers have prepared the devices of a pod"""

    start: int
    claims: list[str]


class PreparationFailed(OfPod, kind="devices.prepare_failed", by="kubelet"):
    """A driver has not prepared the devices of a pod; the kubelet tries again"""

    why: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return (Line("error", "has no devices prepared", "have no devices prepared", BAD, self.why),)


class DevicesUnprepared(OfPod, kind="devices.unprepared", by="kubelet"):
    """The drivers have taken back what they prepared for a pod"""

    claims: list[str]
