"""Boots of the machine, and the containers that ran before the last one.

A restarted kubelet finds its containers as it left them, unless the machine was off in between: then they have ended,
and start again by their restart policy. A new machine that only has the name of an older one does not know how they
ended. When a kubelet starts for the first time since the boot, none of the containers that it finds in statuses runs:
it notes the boot on its disk, as the clock of the machine may have jumped since they were written. Later a container
that started before the boot, by its status, belongs to an earlier one; times in objects are whole seconds, so a machine
is off for at least one second.

Mirrors what the container runtime and ``convertToAPIContainerStatuses`` of ``pkg/kubelet`` say of such containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.kubelet import notes
from kemu.emulated.kubelet.pods import containers
from kemu.runtime.env import SECOND_NS, Disk

REBOOTED_REASON, REBOOTED_CODE = "Unknown", 255
"""What containerd says of a container whose process it does not find any more."""
NEW_REASON, NEW_CODE = "ContainerStatusUnknown", 137
"""What the kubelet says of a container of which there is no trace."""


@dataclass(frozen=True, slots=True)
class Boot:
    """Boot of the machine."""

    id: str = ""
    """As in ``nodeInfo.bootID``."""
    at_ns: int = 0
    """Since when it runs, in whole seconds; 0: since before the start of the run."""
    is_new: bool = False
    """The machine replaces an older one of its name and knows nothing of that."""
    is_first: bool = False
    """No kubelet has run since this boot, which is not that of the start of the run."""

    def has_ended(self, started_ns: int) -> bool:
        """Whether a container that was there when the kubelet started, and that started then by its status, has gone
        with an earlier boot."""
        return self.is_first or started_ns < self.at_ns

    def exit(self, started_unix_ns: int, now_unix_ns: int) -> containers.Exit:
        """How it ended."""
        code, reason = (NEW_CODE, NEW_REASON) if self.is_new else (REBOOTED_CODE, REBOOTED_REASON)
        return containers.Exit(code, started_unix_ns, now_unix_ns, reason)


BEFORE = Boot()
"""It runs since before the start of the run."""


_FILE = "boot"


def read(config: Mapping[str, Any], disk: Disk) -> Boot:
    """From the config of a kubelet actor: ``boot``, with ``id``, ``at_s`` and ``isNew``."""
    boot = config.get("boot") or {}
    known, at_s = str(boot.get("id", "")), int(boot.get("at_s", 0))
    is_first = at_s > 0 and _is_new(known, disk)
    return Boot(known, at_s * SECOND_NS, bool(boot.get("isNew", False)), is_first)


def _is_new(boot: str, disk: Disk) -> bool:
    """Whether the disk has no note of this boot; then it has. Where it cannot be written, or the note has rotted, only
    times tell what belongs to which boot."""
    try:
        if notes.read(disk, _FILE) == boot:
            return False
        notes.write(disk, _FILE, boot)
    except (OSError, ValueError):
        return False
    return True
