"""Keys with revisions: the pure, synchronous core of the store.

Revisions are counted from 1. A transaction is a sequence of :meth:`KeySpace.put` and :meth:`KeySpace.delete` calls that
:meth:`KeySpace.commit` ends: all of its changes get the same, next revision. It sees its own changes and is never
rolled back, so callers check first that it can succeed (:mod:`kemu.emulated.store.operations`).

Old versions of keys and the changes of each revision are kept until :meth:`KeySpace.compact` removes them. As in etcd,
the compacted revision itself can still be read, and watched from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kemu.emulated.objects.wire import shared_objects, wires
from kemu.emulated.objects.wire.key_ranges import FROM_KEY
from kemu.emulated.store.keys import SortedKeys
from kemu.errors import Compacted, FutureRevision

_KEYS, _VALUES, _MASK = shared_objects.KEYS, shared_objects.VALUES, shared_objects.MASK

RECENT = 4096
"""So many former versions are kept as they are. Hardly anybody asks for earlier ones."""
PACKED = 256
"""Of those, so many are packed together."""

ENTRY_BYTES = 300
"""Roughly what an entry costs in memory besides its key and value."""


class Entry:
    """One version of a key. It never changes."""

    __slots__ = ("_past", "_place", "create_revision", "digest", "key", "mod_revision", "value", "version")

    value: bytes | None
    """None: the key was deleted at ``mod_revision``."""

    def __init__(self, key: bytes, value: bytes | None, create_revision: int, mod_revision: int, version: int) -> None:
        self.key = key
        self.value = value
        self.create_revision = create_revision
        self.mod_revision = mod_revision
        self.version = version
        """1 when created, one more with each change; 0 when deleted."""
        self._past: shared_objects.Past | None = None
        self.digest = -1
        """Digest of key, value and revision, for :meth:`KeySpace.digest`, which computes it when it is first needed."""

    def __getattr__(self, name: str) -> bytes:
        """:attr:`value`, after :meth:`pack`."""
        if name != "value":
            raise AttributeError(name)
        assert self._past is not None
        return self._past.value(self._place)

    def pack(self, past: shared_objects.Past, place: int) -> None:
        """Its value is there."""
        self._past, self._place = past, place
        try:  # noqa: SIM105  (what was written over, reverted and written over again is there already)
            del self.value
        except AttributeError:
            pass

    def size(self) -> int:
        """Approximate bytes of memory."""
        past = self._past
        return ENTRY_BYTES + len(self.key) + (len(self.value or b"") if past is None else past.length(self._place))


Change = tuple[Entry, Entry | None]
"""What a revision did to a key: the entry now (perhaps a deletion), and what there was before that revision; None for
what it created, even if it had deleted the key first."""


class KeySpace:
    """All keys, their versions and the changes of each revision; see the module."""

    def __init__(self) -> None:
        self.revision = 1
        """Revision of the last transaction that changed something."""
        self.compact_revision = -1
        """Nothing older can be read; -1 until something has been compacted."""
        self.live_bytes = 0
        """Size of the keys and values that exist now."""
        self.history_bytes = 0
        """Approximate memory of the changes that are kept."""
        self._live: dict[bytes, Entry] = {}
        self.get: Callable[[bytes], Entry | None] = self._live.get
        """The key now."""
        self._live_keys = SortedKeys()
        self._past: dict[bytes, list[Entry]] = {}
        """Former versions, with the deletions between them, oldest first."""
        self._dead_keys = SortedKeys()
        """Deleted keys that still have former versions."""
        self._recent: list[Entry] = []
        """Former versions that are not packed, oldest first."""
        self.history: dict[int, tuple[Change, ...]] = {}
        """What each revision that is kept has changed, oldest first. To be read."""
        self._open: list[Change] = []
        """Changes of the current transaction."""

    # Reading

    @property
    def read_revision(self) -> int:
        """The newest one that can be read: within a transaction that has changed something, the next one."""
        return self.revision + 1 if self._open else self.revision

    def get_at(self, key: bytes, revision: int) -> Entry | None:
        """The key as it was; ``revision`` must not be compacted."""
        entry = self._live.get(key)
        if entry is not None and entry.mod_revision <= revision:
            return entry
        for entry in reversed(self._past.get(key, ())):
            if entry.mod_revision <= revision:
                return entry if entry.value is not None else None
        return None

    def check_readable(self, revision: int) -> None:
        """Raises Compacted or FutureRevision."""
        if revision > self.revision:
            raise FutureRevision
        if revision < self.compact_revision:
            raise Compacted(self.compact_revision)

    def range(self, key: bytes, end: bytes, revision: int = 0, limit: int = 0) -> tuple[list[Entry], int]:
        """The entries of a range by key, at most ``limit`` of them if that is not 0, and how many there are in all.

        ``revision`` 0: now. It must be :meth:`readable <check_readable>`.
        """
        live = self._live
        is_now = revision == 0 or revision >= self.read_revision
        if not end:
            entry = live.get(key) if is_now else self.get_at(key, revision)
            return ([], 0) if entry is None else ([entry], 1)
        if is_now:
            entries = [live[found] for found in self._live_keys.between(key, end, limit)]
            return entries, self._live_keys.count(key, end) if limit else len(entries)
        entries = []
        names = self._live_keys.between(key, end)
        dead = self._dead_keys.between(key, end)
        if dead:
            names += dead
            names.sort()
        for name in names:
            entry = live.get(name)
            if entry is None or entry.mod_revision > revision:
                entry = self.get_at(name, revision)
                if entry is None:
                    continue
            entries.append(entry)
        count = len(entries)
        return (entries[:limit] if limit else entries), count

    def count(self, key: bytes, end: bytes, revision: int = 0) -> int:
        """How many keys :meth:`range` finds."""
        if end and (revision == 0 or revision >= self.read_revision):
            return self._live_keys.count(key, end)
        return self.range(key, end, revision)[1]

    def __len__(self) -> int:
        """How many keys there are now."""
        return len(self._live)

    def digest(self) -> int:
        """Digest of all keys as they are now, with their values and revisions.

        It reads what requests would be answered from, so it costs a little for each key: no sum that is kept up to date
        beside the keys could tell that one of them got lost.
        """
        total = 0
        for key, entry in self._live.items():
            if entry.digest < 0:
                assert entry.value is not None
                entry.digest = wires.entry_digest(key, wires.digest(entry.value, entry.mod_revision))
            total += entry.digest
        return total & wires.SUM_MASK

    # Changing

    def put(self, key: bytes, value: bytes) -> Entry | None:
        """Returns the entry before."""
        revision = self.revision + 1
        previous = self._live.get(key)
        if previous is not None:
            key = previous.key
            entry = Entry(key, value, previous.create_revision, revision, previous.version + 1)
            past = self._past.get(key)
            if past is None:
                self._past[key] = [previous]
            else:
                past.append(previous)
            self._recent.append(previous)
            if len(self._recent) >= RECENT + PACKED:
                self._pack()
            self.live_bytes += len(value) - len(previous.value or b"")
        else:
            entry = Entry(key, value, revision, revision, 1)
            if key in self._past:
                self._dead_keys.remove(key)
            self._live_keys.add(key)
            self.live_bytes += len(key) + len(value)
        self._live[key] = entry
        _KEYS[revision & _MASK], _VALUES[revision & _MASK] = key, value
        before = None
        if previous is not None and entry.create_revision < revision:
            before = previous if previous.mod_revision < revision else self._before(key, previous)
        self._open.append((entry, before))
        return previous

    def delete(self, key: bytes) -> Entry | None:
        """Returns the entry that was deleted; None if there was none, and then nothing has changed."""
        previous = self._live.pop(key, None)
        if previous is None:
            return None
        entry = Entry(key, None, 0, self.revision + 1, 0)
        past = self._past.get(key)
        if past is None:
            self._past[key] = [previous, entry]
        else:
            past += (previous, entry)
        self._recent.append(previous)
        self._live_keys.remove(key)
        self._dead_keys.add(key)
        self.live_bytes -= len(key) + len(previous.value or b"")
        self._open.append((entry, self._before(key, previous)))
        return previous

    def _pack(self) -> None:
        oldest = [(entry, value) for entry in self._recent[:PACKED] if (value := entry.value) is not None]
        del self._recent[:PACKED]
        past = shared_objects.Past([value for _, value in oldest])
        for place, (entry, _) in enumerate(oldest):
            entry.pack(past, place)

    def _before(self, key: bytes, previous: Entry) -> Entry | None:
        """What there was before the transaction; ``previous``: before the last change."""
        return previous if previous.mod_revision <= self.revision else self.get_at(key, self.revision)

    def commit(self) -> list[Change]:
        """End the transaction. Returns its changes in order; without changes there is no new revision."""
        changes = self._open
        if changes:
            self._open = []
            self.revision = changes[0][0].mod_revision  # the same number, not another one that is equal
            self.history[self.revision] = tuple(changes)
            for entry, _ in changes:  # Entry.size, inlined
                self.history_bytes += ENTRY_BYTES + len(entry.key) + len(entry.value or b"")
        return changes

    # History

    def changes(self, revision: int) -> Sequence[Change]:
        """The changes of that revision; none if it was compacted."""
        return self.history.get(revision, ())

    def compact(self, revision: int) -> None:
        """Remove what was before ``revision``. Raises Compacted or FutureRevision.

        The time that it takes depends on the number of removed revisions only.
        """
        assert not self._open
        if revision <= self.compact_revision:
            raise Compacted(self.compact_revision)
        if revision > self.revision:
            raise FutureRevision
        for past in range(max(self.compact_revision, 1), revision + 1):
            # The changes of the compacted revision itself are kept, for watchers, but not what they superseded.
            changes = self.history.get(past, ()) if past == revision else self.history.pop(past, ())
            for entry, _ in changes:
                self._forget_past(entry.key, revision)
                if past < revision:
                    self.history_bytes -= entry.size()
        self.compact_revision = revision

    def _forget_past(self, key: bytes, revision: int) -> None:
        """Drop the versions of a key that cannot be read at ``revision`` or later."""
        past = self._past.get(key)
        if past is None:
            return
        count = 0
        for entry in past:
            if entry.mod_revision > revision:
                break
            count += 1
        live = self._live.get(key)
        if count and (live is None or live.mod_revision > revision) and past[count - 1].version:
            count -= 1
        if count < len(past):
            del past[:count]
            return
        del self._past[key]
        if live is None:
            self._dead_keys.remove(key)

    def excess(self, max_revisions: int, max_bytes: int) -> int:
        """The revision to compact to so that the history has no more than that; 0 if it has no more."""
        surplus_revisions = len(self.history) - max_revisions
        surplus_bytes = self.history_bytes - max_bytes
        if surplus_revisions <= 0 and surplus_bytes <= 0:
            return 0
        revision = 0
        for revision, changes in self.history.items():
            if (surplus_revisions <= 0 and surplus_bytes <= 0) or revision == self.revision:
                break
            surplus_revisions -= 1
            surplus_bytes -= sum(entry.size() for entry, _ in changes)
        return revision if revision > self.compact_revision else 0

    def revert(self, revision: int) -> None:
        """Undo everything after that revision, which must not be older than the compacted one."""
        assert not self._open
        assert revision >= self.compact_revision
        while self.revision > revision:
            for entry, _ in reversed(self.history.pop(self.revision, ())):
                self._undo(entry)
            self.revision -= 1

    def _undo(self, entry: Entry) -> None:
        """``entry``: the last change that a key has seen."""
        key = entry.key
        past = self._past.get(key)
        if entry.value is None:
            assert past is not None
            past.pop()
            previous: Entry | None = past.pop()
            assert previous is not None
            self._dead_keys.remove(key)
            self._live_keys.add(key)
            self.live_bytes += len(key) + len(previous.value or b"")
        else:
            previous = past.pop() if past and entry.version > 1 else None
            self.live_bytes -= len(entry.value)
            if previous is not None:
                self.live_bytes += len(previous.value or b"")
            else:
                self.live_bytes -= len(key)
                del self._live[key]
                self._live_keys.remove(key)
                if past:
                    self._dead_keys.add(key)
        if previous is not None:
            self._live[key] = previous
        if past is not None and not past:
            del self._past[key]
        self.history_bytes -= entry.size()

    # Recovery

    def load(self, revision: int, entries: Iterable[Entry], changes: Iterable[Entry]) -> None:
        """Start from the state at a revision, which counts as compacted.

        ``changes``: those of that revision, for watchers that start there.
        """
        assert self.revision == 1
        self.revision = self.compact_revision = revision
        for entry in entries:
            self._live[entry.key] = entry
            self.live_bytes += len(entry.key) + len(entry.value or b"")
        self._live_keys = SortedKeys(self._live)
        kept: list[Change] = [(entry, None) for entry in changes]
        if kept:
            self.history[revision] = tuple(kept)
            self.history_bytes += sum(entry.size() for entry, _ in kept)

    def state(self) -> list[Entry]:
        """All entries as of the compacted revision, by key: what :meth:`load` takes."""
        return self.range(FROM_KEY, FROM_KEY, self.compact_revision)[0]
