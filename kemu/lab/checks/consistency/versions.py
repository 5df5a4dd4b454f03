"""All versions of all keys that a run log tells of, those that the store lost again included.

A recovery that loses revisions begins a new *epoch*, in which their numbers are used again. The checks that compare
what clients were told with what the store did find the version that is meant here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter

from kemu.emulated.objects.wire import wires
from kemu.lab.checks.history import History
from kemu.lab.checks.history.stores import NEVER, Change

_REVISION = attrgetter("revision")
_ORDER = attrgetter("born", "revision")


def digest(change: Change) -> int:
    """Digest of the object as a client gets it that made this change; of one that is gone, its last state."""
    if not change.is_deletion:
        return wires.versioned_digest(change.crc, change.revision)
    return wires.digest(change.previous or b"", change.revision)


def read_digest(change: Change) -> int:
    """The digest of the object as a read shows it: without its heartbeats, if it is one that only states them."""
    if (value := change.value) is not None and wires.states_heartbeats(value):
        return wires.standing_digest(change.key.rpartition("/")[2], str(change.revision))
    return digest(change)


def shows(change: Change, content: int) -> bool:
    """Whether an answer with that digest shows this version."""
    return digest(change) == content or read_digest(change) == content


class Versions:
    """Made from a complete history."""

    def __init__(self, history: History) -> None:
        self.history = history
        rollbacks = history.rollbacks
        self._bases = [0, *(rollback.revision for rollback in rollbacks)]
        """The revision at which each epoch began."""
        self._every = self._in_order()
        self.by_key: dict[str, list[Change]] = {}
        """In the order of the log."""
        for change in self._every:
            self.by_key.setdefault(change.key, []).append(change)

    def in_order(self) -> Iterator[Change]:
        """All changes in the order of the log, epoch by epoch."""
        return iter(self._every)

    def _in_order(self) -> list[Change]:
        rollbacks = self.history.rollbacks
        if not rollbacks:
            return self.history.changes
        every = [*self.history.changes, *(change for rollback in rollbacks for change in rollback.changes)]
        return sorted(every, key=_ORDER)

    @property
    def recorded(self) -> bool:
        """An API server tells what a real etcd did, as soon as it learns it: later than the client, or never."""
        return self.history.txns_by.startswith("apiserver")

    def epoch(self, recoveries: int) -> int:
        """The epoch after so many recoveries of the store."""
        rollbacks = self.history.rollbacks
        return sum(rollback.recovery < recoveries for rollback in rollbacks) if rollbacks else 0

    def top(self, epoch: int) -> int:
        """The last revision of an epoch."""
        rollbacks = self.history.rollbacks
        if epoch >= len(rollbacks):
            return self.history.revision
        changes = rollbacks[epoch].changes
        return changes[-1].revision if changes else rollbacks[epoch].revision

    def birth(self, epoch: int, revision: int) -> int:
        """The epoch in which a revision came to be that exists in this one."""
        while epoch > 0 and revision <= self._bases[epoch]:
            epoch -= 1
        return epoch

    def of(self, key: str, epoch: int) -> list[Change]:
        """The versions of a key that existed in an epoch, oldest first."""
        changes = self.by_key.get(key, [])
        if not self.history.rollbacks:
            return changes
        return [change for change in changes if change.born <= epoch < change.undone]

    def seen(self, key: str, revision: int, content: int, epoch: int) -> Change | None:
        """The version that a client saw in that epoch, by number and content; perhaps one that was lost by then."""
        found = None
        changes = self.by_key.get(key, [])
        is_exact = not self.history.read_anew or key.split("/", 3)[2] not in self.history.read_anew
        if not self.history.rollbacks:
            # A revision number stands for one version: a lease may have a hundred thousand.
            first = bisect_left(changes, revision, key=_REVISION)
            changes = changes[first : bisect_right(changes, revision, key=_REVISION)]
        for change in changes:
            if change.revision == revision and change.born <= epoch and (not is_exact or shows(change, content)):
                found = change
        return found

    def survives(self, change: Change) -> bool:
        """Whether the store still has it, or has it again with the same content."""
        if change.undone == NEVER:
            return True
        return any(
            other.undone == NEVER and other.revision == change.revision and digest(other) == digest(change)
            for other in self.by_key[change.key]
        )

    def presence(self, key: str, revision: int, epoch: int) -> tuple[int, int]:
        """First and last revision at which a version that exists in the epoch was the present one."""
        changes = self.of(key, epoch)
        position = bisect_right(changes, revision, key=_REVISION)
        return revision, changes[position].revision - 1 if position < len(changes) else NEVER

    def absence(self, key: str, epoch: int, floor: int) -> tuple[int, Change | None] | None:
        """The first revision from ``floor`` on at which there was no such key, and the deletion that made it so."""
        changes = self.of(key, epoch)
        position = bisect_right(changes, floor, key=_REVISION)
        if position == 0 or changes[position - 1].is_deletion:
            return floor, changes[position - 1] if position else None
        for change in changes[position:]:
            if change.is_deletion:
                return change.revision, change
        return None

    def time_ns(self, revision: int, epoch: int) -> int | None:
        """When a revision came to be that the store had in an epoch; None for one that it did not have."""
        wanted = (self.birth(epoch, revision), revision)
        position = bisect_left(self._every, wanted, key=_ORDER)
        if position < len(self._every) and _ORDER(self._every[position]) == wanted:
            return self._every[position].time_ns
        return 0 if self._every and wanted < _ORDER(self._every[0]) else None
