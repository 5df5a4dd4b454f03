"""What the store held, and when: its changes, folded from the transactions in the log.

Checks look back at any version, but rarely: all but the latest changes are kept compressed. Role: below ``histories``,
which folds what the changes mean.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

from kemu.emulated.objects.wire.shared_objects import Past
from kemu.lab.checks.history import claims, custom_objects
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import StoreRecovered, Transaction

POD_PREFIX = "/registry/pods/"
NODE_PREFIX = "/registry/nodes/"
DEFINITION, PHASE, STATUS = range(3)
"""What of a pod a change concerns: metadata or spec, also where it is new or gone; or else its phase; or else no more
than the rest of its status."""
LATEST_CHANGES = 4096
"""So many of the store's latest changes are at hand as they are; earlier ones are packed."""
PACKED_CHANGES = 256
"""At once."""
_LATEST_TIMES = 20_000
"""Revisions of which it is remembered when they were written."""

NEVER = 1 << 62
ANY = -1


@dataclass(slots=True)
class Change:
    """One key changed by one revision."""

    revision: int
    time_ns: int
    key: str
    _value: bytes | Past | None
    _previous: bytes | Change | None
    """What it replaced: the change that made it, where that is known."""
    base: int | None = None
    """The revision of the key that the writer demanded; 0: that it was absent; -1: any; None: unknown."""
    born: int = 0
    """How often the store had lost revisions before: a revision number that is used again is another revision."""
    undone: int = NEVER
    """The number of the loss that undid it."""
    _crc: int = field(default=-1, repr=False, compare=False)
    _place: int = field(default=0, repr=False, compare=False)
    """In the past."""

    @property
    def value(self) -> bytes | None:
        """None: deleted."""
        value = self._value
        return value.value(self._place) if isinstance(value, Past) else value

    @property
    def previous(self) -> bytes | None:
        """The value before; None: there was none."""
        previous = self._previous
        return previous.value if isinstance(previous, Change) else previous

    @property
    def is_deletion(self) -> bool:
        return self._value is None

    @property
    def crc(self) -> int:
        """CRC-32 of the value, computed once for all checks; 0 of a deletion."""
        if self._crc < 0:
            value = self.value
            self._crc = zlib.crc32(value) if value is not None else 0
        return self._crc


def pack(changes: Sequence[Change]) -> None:
    """Keep their values compressed: hardly any of them will be looked at again."""
    packed = [(change, value) for change in changes if isinstance(value := change._value, bytes)]
    past = Past([value for _, value in packed])
    for place, (change, value) in enumerate(packed):
        change._crc = zlib.crc32(value)
        change._value, change._place = past, place


@dataclass(frozen=True, slots=True)
class Rollback:
    """A recovery of the store that lost revisions."""

    time_ns: int
    revision: int
    """With which it came back."""
    recovery: int
    """How many recoveries there were before, those that lost nothing counted too."""
    changes: list[Change]
    """That it undid, oldest first."""


class Jump(NamedTuple):
    """The store went on, or came back, with a revision that does not follow the last one in the log."""

    time_ns: int
    before: int
    revision: int
    recovered: bool


class StoreHistory(ABC):
    """The store's part of a history.

    ``keep_changes`` keeps the changes and what replaced what; without it there are only the present values.
    """

    def __init__(self, *, keep_changes: bool) -> None:
        self.values: dict[str, bytes] = {}
        """By key, as they are now."""
        self.changes: list[Change] = []
        self._packed = 0
        """How many of them, the first ones."""
        self.latest: dict[str, Change] = {}
        """The change that made the value of each key that exists."""
        self.revision = 0
        self.txns_by = ""
        """The actor that logs the store's transactions: the store, or an API server in place of a real etcd."""
        self.replayed_revisions: list[tuple[int, int]] = []
        """(time, revision) at which a store recovered."""
        self.rollbacks: list[Rollback] = []
        """The recoveries that lost revisions."""
        self.jumps: list[Jump] = []
        self._follows = 0
        """The revision after which the next one must come; 0: any may."""
        self._written_ns: dict[int, int] = {}
        """When the latest revisions were."""
        self.pods_changed: list[tuple[int, str, core_v1_pb2.Pod | None]] = []
        """By the transaction that was fed last: what of the pod (:data:`DEFINITION`, :data:`PHASE`, :data:`STATUS`),
        its key, and the pod as it is now; None: gone."""
        self.custom: list[custom_objects.ObjectFact] = []
        """What became of custom objects."""
        self.claims = claims.Claims()
        """Who holds which device."""
        self.read_anew: set[str] = set()
        """Custom resources whose objects may be answered otherwise than the store has them."""
        self._keep_changes = keep_changes

    def _on_txn(self, time_ns: int, actor: str, event: Transaction) -> None:
        revision = event.rev
        if revision != self._follows + 1 and self._follows:
            self.jumps.append(Jump(time_ns, self._follows, revision, False))
        self.revision = self._follows = revision
        self.txns_by = actor
        written_ns = self._written_ns
        written_ns[revision] = time_ns
        if len(written_ns) > _LATEST_TIMES:
            for early in list(written_ns)[: _LATEST_TIMES // 2]:
                del written_ns[early]
        if self.pods_changed:
            self.pods_changed = []
        values, bases, born = self.values, event.bases, len(self.rollbacks)
        for index, (op, name, value, _create_rev, _version) in enumerate(event.changes):
            key = intern(name)
            before = values.get(key)
            if op == 0:
                values[key] = value
            else:
                values.pop(key, None)
                value = None
            change = None
            if self._keep_changes:
                base = None
                if bases is not None:
                    base = bases[index] if bases[index] is not None else ANY
                change = Change(revision, time_ns, key, value, self.latest.pop(key, None), base, born)
                self.changes.append(change)
                if value is not None:
                    self.latest[key] = change
                if len(self.changes) - self._packed >= LATEST_CHANGES + PACKED_CHANGES:
                    pack(self.changes[self._packed : self._packed + PACKED_CHANGES])
                    self._packed += PACKED_CHANGES
            if key.startswith(POD_PREFIX):
                self._pod_changed(time_ns, key, value, before, change)
            elif key.startswith(NODE_PREFIX):
                self._node_changed(time_ns, key, value)
            elif "." in key[custom_objects.BEGIN : key.find("/", custom_objects.BEGIN)]:  # as is_custom, without a call
                self.custom += custom_objects.facts(time_ns, key, before, value)
            elif key.startswith(claims.PREFIX):
                self.claims.changed(time_ns, key, value)
            elif value is not None and custom_objects.is_read_anew(key, before, value):
                self.read_anew.add(custom_objects.defined(key))

    def _on_recovered(self, time_ns: int, actor: str, event: StoreRecovered) -> None:
        revision = event.rev
        self.replayed_revisions.append((time_ns, revision))
        if self._follows and revision > self._follows:
            self.jumps.append(Jump(time_ns, self._follows, revision, True))
        self._follows = revision
        if revision >= self.revision or not self._keep_changes:
            return
        # Writes that were not in the journal are undone: their keys get their former values.
        undone: list[Change] = []
        rollback = Rollback(time_ns, revision, len(self.replayed_revisions) - 1, undone)
        self.rollbacks.append(rollback)
        while self.changes and self.changes[-1].revision > revision:
            change = self.changes.pop()
            change.undone = len(self.rollbacks)
            undone.append(change)
            previous = change.previous
            self.latest.pop(change.key, None)
            if previous is None:
                self.values.pop(change.key, None)
            else:
                self.values[change.key] = previous
                assert isinstance(change._previous, Change)
                self.latest[change.key] = change._previous
            if change.key.startswith(POD_PREFIX):
                self._pod_undone(time_ns, change)
            elif change.key.startswith(NODE_PREFIX):
                self._node_changed(time_ns, change.key, change.previous)
            elif custom_objects.is_custom(change.key):
                self.custom += custom_objects.facts(time_ns, change.key, change.value, change.previous)
            elif change.key.startswith(claims.PREFIX):
                self.claims.undone(time_ns, change.time_ns, change.key, previous)
        undone.reverse()
        self._packed = min(self._packed, len(self.changes))
        self.revision = revision

    @abstractmethod
    def _pod_changed(
        self, time_ns: int, key: str, value: bytes | None, before: bytes | None, change: Change | None
    ) -> None:
        """A pod was written; ``value`` None: deleted. ``before``: what the key had; None: nothing."""

    @abstractmethod
    def _pod_undone(self, time_ns: int, change: Change) -> None:
        """The store has lost the change of a pod."""

    @abstractmethod
    def _node_changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        """A node was written, or has its former value again."""
