"""Which claims are prepared on a node, and for which pods: the checkpoint of the DRA manager."""

from __future__ import annotations

from dataclasses import dataclass, field

from kemu.emulated.kubelet import notes
from kemu.runtime.env import Disk

FILE = "dra_manager_state"


@dataclass
class ClaimState:
    """One claim on the node (``ClaimInfo``)."""

    uid: str
    drivers: list[str]
    devices: list[list[str]] = field(default_factory=list)
    """Driver, pool, device, and the request that it is for."""
    pods: list[str] = field(default_factory=list)
    """UIDs of those that use it."""
    prepared: bool = False


class Claims:
    """By key, ``namespace/name``; kept on the disk of the kubelet."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.by_key: dict[str, ClaimState] = {}
        for key, data in (notes.read_if_sound(disk, FILE) or {}).items():
            self.by_key[key] = ClaimState(**data)

    def save(self) -> str:
        """Returns what is wrong."""
        data = {key: vars(one) for key, one in self.by_key.items()}
        try:
            notes.write(self._disk, FILE, data)
        except OSError as error:
            return f"checkpoint ResourceClaim state: {error.strerror}"
        return ""

    def uses(self, uid: str) -> bool:
        """Whether a pod has anything to unprepare."""
        return any(uid in one.pods for one in self.by_key.values())
