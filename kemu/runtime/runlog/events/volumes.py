"""The events of persistent volumes: claims, attachments, and CSI drivers."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.declared import Event
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
