"""The events of what pods claim: of persistent volumes (attachments, CSI drivers) and of devices (DRA drivers)."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod
from kemu.runtime.runlog.events.words import BAD, GOOD, Line, whole
from kemu.runtime.words import short

_ATTACH_DETACH = "attach-detach controller"
_DRIVERS = "CSI drivers"


class ClaimBound(Event, kind="volumes.bound", by="PersistentVolume controller"):
    """A claim has got its volume"""

    claim: str
    uid: str
    volume: str


class AttachmentCreated(Event, kind="volumes.attach", by=_ATTACH_DETACH):
    """A VolumeAttachment was created"""

    volume: str
    node: str


class AttachmentDeleted(Event, kind="volumes.detach", by=_ATTACH_DETACH):
    """A VolumeAttachment was deleted"""

    volume: str
    node: str
    forced: bool
    waited_ns: int


class MultiAttachRefused(Event, kind="volumes.multi_attach", by=_ATTACH_DETACH):
    """A VolumeAttachment cannot be created, because the volume is attached elsewhere"""

    volume: str
    node: str
    pod: str
    uid: str
    others: list[str]

    def lines(self, before: Event | None) -> Sequence[Line]:
        why = f"{self.volume} is attached to {', '.join(self.others)}"
        return (Line("error", "waits for a volume of another node", "wait for volumes of other nodes", BAD, why),)


class OfProvisioning(Event):
    """About a claim that needs a new volume."""

    claim: str
    uid: str
    driver: str
    start: int


class VolumeProvisioned(OfProvisioning, kind="csi.provisioned", by=_DRIVERS):
    """A volume was created for a claim"""

    volume: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        phrase, why = f"claim {short(self.claim)} gets a new volume", f"{self.volume} of {self.driver}"
        return (whole("volume", phrase, "claims get new volumes", GOOD, why),)


class VolumeExpanded(OfProvisioning, kind="csi.expanded", by=_DRIVERS):
    """A volume was made larger; its file system is still to be"""

    volume: str
    size: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        why = f"{self.volume} of {self.driver} is {self.size}"
        return (whole("volume", f"claim {short(self.claim)} grows", "claims grow", GOOD, why),)


class VolumeExpansionFailed(OfProvisioning, kind="csi.expansion_failed", by=_DRIVERS):
    """A volume was not made larger"""

    why: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return (whole("volume", f"claim {short(self.claim)} cannot grow", "claims cannot grow", BAD, self.why),)


class VolumeModified(OfProvisioning, kind="csi.modified", by=_DRIVERS):
    """A volume was given the attributes of another VolumeAttributesClass"""

    volume: str
    attributes: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        phrase = f"claim {short(self.claim)} gets the attributes of {self.attributes}"
        return (whole("volume", phrase, "claims get other attributes", GOOD, f"{self.volume} of {self.driver}"),)


class FileSystemExpanded(Event, kind="kubelet.volume_expanded", by="kubelet"):
    """The file system of a volume was made larger"""

    pod: str
    uid: str
    volume: str
    size: str


class ProvisioningFailed(OfProvisioning, kind="csi.provision_failed", by=_DRIVERS):
    """No volume was created for a claim"""

    why: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return (whole("error", f"claim {short(self.claim)} gets no volume", "claims get no volumes", BAD, self.why),)


class VolumeDeleted(Event, kind="csi.deleted", by=_DRIVERS):
    """A volume was deleted"""

    volume: str
    driver: str


class OfAttachment(Event):
    """About a volume and its node."""

    volume: str
    node: str
    driver: str
    modes: list[str]
    start: int


class VolumeAttached(OfAttachment, kind="csi.attached", by=_DRIVERS):
    """A volume was attached"""

    def lines(self, before: Event | None) -> Sequence[Line]:
        phrase = f"volume {self.volume} is attached to {self.node}"
        return (whole("volume", phrase, "volumes are attached", why=self.driver),)


class VolumeDetached(OfAttachment, kind="csi.detached", by=_DRIVERS):
    """A volume was detached"""


# Devices ------------------------------------------------------------------------------------------------------------

_CLAIMS = "resource claim controller"
_DEVICE_DRIVERS = "DRA drivers"


class ClaimCreated(Event, kind="devices.claim", by=_CLAIMS):
    """A ResourceClaim was generated from a template"""

    claim: str
    uid: str
    pod: str
    pod_uid: str
    group: str = field(default="")
    """The PodGroup, where it is not for a pod."""


class ClaimDeallocated(Event, kind="devices.deallocated", by=_CLAIMS):
    """A ResourceClaim has lost its last consumer, and with it its devices"""

    claim: str
    uid: str
    devices: list[str]

    def lines(self, before: Event | None) -> Sequence[Line]:
        phrase = f"claim {short(self.claim)} is deallocated"
        return (whole("device", phrase, "claims are deallocated", GOOD, ", ".join(self.devices)),)


class ClaimDeleted(Event, kind="devices.claim_deleted", by=_CLAIMS):
    """A generated ResourceClaim was deleted: its pod will not run any more"""

    claim: str
    uid: str


class DeviceTaintEviction(OfPod, kind="devices.eviction", by="device taint eviction controller", on_page=True):
    """The DELETE of a pod returned; `start` is when it had to go"""

    start: int
    taints: list[str]


class SlicePublished(Event, kind="devices.slice", by=_DEVICE_DRIVERS):
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
