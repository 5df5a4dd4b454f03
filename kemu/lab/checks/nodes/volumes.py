"""A volume of one node at a time is never attached to two."""

from __future__ import annotations

from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, seconds
from kemu.runtime.runlog.events import OfAttachment, VolumeDetached

_MANY = ("ReadWriteMany", "ReadOnlyMany")


class VolumeAttachedToOneNode(Check):
    """Volumes with the access mode ReadWriteOnce or ReadWriteOncePod, from when a driver has attached one until it has
    detached it. Two nodes that write to one disk destroy what is on it."""

    id = "volume-attached-to-one-node"

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, None]] = {}
        self._attached = 0
        self._wrong: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: OfAttachment) -> None:
        volume, node = event.volume, event.node
        nodes = self._nodes.setdefault(volume, {})
        if isinstance(event, VolumeDetached):
            nodes.pop(node, None)
            return
        if not event.modes or any(mode in _MANY for mode in event.modes):
            return
        self._attached += 1
        others = [other for other in nodes if other != node]
        nodes[node] = None
        if others:
            self._wrong.append(
                f"{volume} was attached to {node} at {seconds(time_ns)} while it was attached to {', '.join(others)}"
            )

    def result(self, history: History) -> Result:
        if self._wrong:
            return Result(self.id, False, "; ".join(self._wrong[:3]))
        if not self._attached:
            return Result(self.id, None, "no volume of one node at a time was attached")
        return Result(self.id, True, f"{self._attached} attachments")
