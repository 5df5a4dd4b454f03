"""The watch cache: every object of the store, by index, as of one revision; and the latest changes, for resuming.

:mod:`kemu.emulated.apiserver.watch.feed` fills it from one watch on the store;
:mod:`kemu.emulated.apiserver.watch.fanout` is told of each change. What it shows may be older than the store, by the
network or by a lag that a scenario asks for.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from google.protobuf.message import DecodeError

from kemu.emulated.apiserver import selections
from kemu.emulated.apiserver.selections import Selection
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.etcd import kv_pb2
from kemu.messages.k8s.objects import KubernetesObject


class Change:
    """One object changed: ``old`` is None when it was created, ``new`` when it was deleted."""

    __slots__ = ("new", "old", "revision")

    def __init__(self, revision: int, new: Entry | None, old: Entry | None) -> None:
        self.revision = revision
        self.new = new
        self.old = old

    def concerns(self, position: int, value: str) -> bool:
        """Whether the object has or had this value of an indexed field."""
        new, old = self.new, self.old
        return (new is not None and new.fields[position] == value) or (
            old is not None and old.fields[position] == value
        )

    def last_wire(self) -> bytes:
        """The object as it was before, at the revision of the change: what clients get when it is gone for them."""
        assert self.old is not None
        return self.old.at(self.revision)


_CORRUPT = (DecodeError, UnicodeDecodeError)
"""What parsing a key or a value of the store raises if it is not an API server that has written it."""

_NAMESPACED_PARTS = 5
"""Of a key whose object has a namespace."""
_REVISION = attrgetter("revision")
_FEW = 32
"""Up to this many changes are searched one by one."""


class _Past:
    """The changes in the window by the value of one indexed field: many watches begin at once, each with its own."""

    __slots__ = ("_by_value", "_read")

    def __init__(self) -> None:
        self._by_value: dict[str, list[Change]] = {}
        self._read = 0

    def changes(self, window: list[Change], position: int, value: str) -> list[Change]:
        """Read on to the end of the window, then those of one value."""
        by_value = self._by_value
        for change in window[self._read :]:
            now = change.new.fields[position] if change.new is not None else None
            before = change.old.fields[position] if change.old is not None else None
            if now is not None:
                by_value.setdefault(now, []).append(change)
            if before is not None and before != now:
                by_value.setdefault(before, []).append(change)
        self._read = len(window)
        return by_value.get(value, [])


class Collection:
    """All objects of one kind."""

    __slots__ = (
        "_changes",
        "_getters",
        "_indexes",
        "_pasts",
        "_revisions",
        "_window",
        "converts",
        "entries",
        "last",
        "name",
        "oldest",
        "resource",
    )

    def __init__(self, resource: Resource, window: int) -> None:
        self.resource = resource
        self.name = resource.plural
        """No other collection has it."""
        self.converts = False
        """Whether it is behind the cache, as far as a webhook has not converted what is stored."""
        self.entries: dict[bytes, Entry] = {}
        """By key in the store."""
        self.oldest = 0
        """All changes after this revision are in the window."""
        self.last = 0
        """Revision of the latest change, or of the list that the cache began with."""
        self._window = window
        self._getters = tuple(getter for _, getter in selections.INDEXED.get(resource.plural, ()))
        # By position in Entry.fields; the name needs none, for it is the key.
        fields = selections.indexed_fields(resource)
        self._indexes: tuple[dict[str, dict[bytes, None]], ...] = tuple({} for _ in fields)
        self._revisions: list[int] = []
        self._changes: list[Change] = []
        self._pasts: dict[int, _Past] = {}
        """By position of the index; made when it is asked for, forgotten when the window moves."""

    def as_of(self, revision: int) -> int:
        """The revision that it shows, where the cache is at ``revision``."""
        return revision

    async def catch_up(self) -> None:
        """Wait until it shows what the cache has now. Raises :class:`kemu.errors.TooManyRequests`."""

    def watched(self) -> None:
        """Somebody watches it from now on."""

    def load(self, entries: Iterable[Entry], revision: int, on_corrupt: Callable[[bytes], None]) -> None:
        """Begin anew from a list of the store."""
        self.entries.clear()
        self._revisions.clear()
        self._changes.clear()
        self._pasts.clear()
        for index in self._indexes:
            index.clear()
        self.oldest = self.last = revision
        for entry in entries:
            try:
                self._read_fields(entry, None)
            except _CORRUPT:
                on_corrupt(entry.key)
                continue
            self._index(entry, None)
            self.entries[entry.key] = entry

    def put(self, entry: Entry) -> tuple[Change, Any]:
        """An object was created or modified. Returns the object, too, where it had to be parsed, else None."""
        old = self.entries.get(entry.key)
        entry.keep()
        message = self._read_fields(entry, old)
        self.entries[entry.key] = entry
        if old is None or old.fields != entry.fields:
            self._index(entry, old)
        change = Change(entry.revision, entry, old)
        # _remember, inlined.
        revisions = self._revisions
        self.last = entry.revision
        revisions.append(entry.revision)
        self._changes.append(change)
        if len(revisions) >= 2 * self._window:
            self._forget(self._window)
        return change, message

    def delete(self, key: bytes, revision: int) -> Change | None:
        """An object was deleted; None when the cache never had it."""
        old = self.entries.pop(key, None)
        if old is None:
            return None
        self._unindex(old)
        return self._remember(Change(revision, None, old))

    def forget_past(self, revision: int) -> None:
        """Watches from before ``revision`` cannot be resumed any more."""
        self.oldest = revision
        self._revisions.clear()
        self._changes.clear()
        self._pasts.clear()

    def past_bytes(self) -> int:
        """The bytes of objects that only the window still has: those that its changes replaced or deleted."""
        return sum(change.old.size for change in self._changes if change.old is not None)

    def shorten_past(self, surplus: int) -> None:
        """Forget the oldest changes, until so many of :meth:`past_bytes` are gone."""
        count = 0
        while surplus > 0 and count < len(self._changes):
            old = self._changes[count].old
            if old is not None:
                surplus -= old.size
            count += 1
        if count:
            self._forget(count)

    def changes_after(self, revision: int, selection: Selection) -> list[Change]:
        """What happened after ``revision``, which must not be before :attr:`oldest`, at the selection's place of an
        index: changes of objects that had or got its value there.
        """
        first = bisect_right(self._revisions, revision)
        position, value = selection.position, selection.value
        if position < 0:
            return self._changes[first:]
        if len(self._changes) - first <= _FEW:
            return [change for change in self._changes[first:] if change.concerns(position, value)]
        past = self._pasts.get(position)
        if past is None:
            past = self._pasts[position] = _Past()
        found = past.changes(self._changes, position, value)
        return found[bisect_right(found, revision, key=_REVISION) :]

    def select(self, selection: Selection) -> list[Entry]:
        """The entries that match, in the order of their keys."""
        entries = [self.entries[key] for key in sorted(self._candidates(selection))]
        if selection.only_index:
            return entries
        parse: Callable[[bytes], Any] = self.resource.message.FromString
        return [entry for entry in entries if selection.matches(parse(entry.wire))]

    def count_after(self, key: bytes, selection: Selection) -> int:
        """How many entries come after a key, in the namespace that is asked for."""
        if selection.namespace:
            return sum(one > key for one in self._indexes[selections.NAMESPACE].get(selection.namespace, ()))
        return sum(one > key for one in self.entries)

    def in_index(self, position: int, value: str) -> list[Entry]:
        """The entries with that value of an indexed field, in the order of their keys."""
        return [self.entries[key] for key in sorted(self._indexes[position].get(value, ()))]

    def _candidates(self, selection: Selection) -> Iterable[bytes]:
        position, value = selection.position, selection.value
        if position < 0:
            return self.entries
        if position != selections.NAME:
            return self._indexes[position].get(value, ())
        namespaces = self._indexes[selections.NAMESPACE]
        keys = [resources.key(self.resource, namespace, value) for namespace in namespaces]
        return [key for key in keys if key in self.entries]

    def _read_fields(self, entry: Entry, old: Entry | None) -> KubernetesObject | None:
        """Set ``entry.fields``; ``old``: what was there before. Returns the object where it had to be parsed."""
        if old is not None:
            name, namespace = old.fields[: selections.NAMESPACE + 1]
        else:
            parts = entry.key.decode().split("/")
            name = parts[-1]
            namespace = parts[3] if len(parts) == _NAMESPACED_PARTS else ""
        if self._getters:
            message = shared_objects.OBJECTS.parse(self.resource.message, entry.revision, entry.wire)
            entry.fields = (name, namespace, *[getter(message) for getter in self._getters])
            return message
        entry.fields = (name, namespace)
        return None

    def _index(self, entry: Entry, old: Entry | None) -> None:
        key = entry.key
        if old is not None:
            self._unindex(old)
        for position, value in enumerate(entry.fields):
            if position != selections.NAME:
                keys = self._indexes[position].get(value)
                if keys is None:
                    keys = self._indexes[position][value] = {}
                keys[key] = None

    def _unindex(self, entry: Entry) -> None:
        for position, value in enumerate(entry.fields):
            if position != selections.NAME:
                keys = self._indexes[position][value]
                del keys[entry.key]
                if not keys:
                    del self._indexes[position][value]

    def _remember(self, change: Change) -> Change:
        revisions, changes = self._revisions, self._changes
        self.last = change.revision
        revisions.append(change.revision)
        changes.append(change)
        if len(revisions) >= 2 * self._window:
            # Half of it at once, so that each change is moved only once.
            self._forget(self._window)
        return change

    def _forget(self, count: int) -> None:
        """The oldest changes of the window."""
        self.oldest = self._revisions[count - 1]
        for change in self._changes[:count]:
            if change.new is not None:
                change.new.cool()
        del self._revisions[:count]
        del self._changes[:count]
        self._pasts.clear()


class WatchCache:
    """All kinds, as of :attr:`revision`; also custom ones, of which each has a collection from its first sign on."""

    def __init__(self, window: int, window_bytes: int) -> None:
        """``window``: how many past changes of each kind are kept, at least, for watches that resume, unless the
        objects that they replaced or deleted have more than three quarters of ``window_bytes``, over all kinds."""
        self.revision = 0
        self.collections = {resource.plural: Collection(resource, window) for resource in resources.BY_PLURAL.values()}
        self.on_definition: Callable[[str, Entry | None], None] = lambda name, entry: None
        """Told of the definition of a custom kind, before all others; None: it is gone."""
        self.on_change: Callable[[Collection, Change, Any], None] = lambda collection, change, message: None
        """Told of every change, in the order of revisions; with the new object where it has been parsed."""
        self.on_reload: Callable[[], None] = lambda: None
        """Told when history was lost: no watch can resume."""
        self.on_corrupt: Callable[[bytes], None] = lambda key: None
        """Told of a key whose value is no object; it is not shown."""
        self._window_bytes = window_bytes
        self._past_bytes = 0
        """At least as many as the collections' ``past_bytes`` together. What a window forgets because of its number of
        changes is not subtracted: a change costs one addition, and :meth:`_shorten_past` looks again."""
        self._window = window
        self._definitions = self.collections[custom_kinds.DEFINITIONS]
        self._by_plural = {plural.encode(): collection for plural, collection in self.collections.items()}
        self._waiting: dict[asyncio.Future[None], int] = {}

    def add(self, row: Resource) -> None:
        """A custom kind has a collection from now on."""
        collection = self.collections.get(row.plural)
        if collection is None:
            collection = self.collections[row.plural] = Collection(row, self._window)
            self._by_plural[row.plural.encode()] = collection
            collection.oldest = collection.last = self.revision
        collection.resource = row

    def _add_unknown(self, key: bytes) -> Collection | None:
        """Of an object whose definition is not known; None: it is not of a custom kind."""
        parts = key.split(b"/")
        if b"." not in parts[2]:
            return None
        try:
            self.add(custom_kinds.placeholder(parts[2].decode(), len(parts) == _NAMESPACED_PARTS))
        except UnicodeDecodeError:
            return None
        return self._by_plural[parts[2]]

    def load(self, entries: Iterable[Entry], revision: int) -> None:
        """Begin anew from a list of the whole store at ``revision``."""
        by_plural: dict[bytes, list[Entry]] = {plural: [] for plural in self._by_plural}
        for entry in entries:
            plural = entry.key.split(b"/", 3)[2]
            found = by_plural.get(plural)
            if found is None and self._add_unknown(entry.key) is not None:
                found = by_plural[plural] = []
            if found is not None:
                found.append(entry)
        before = list(self._definitions.entries)
        for plural, collection in self._by_plural.items():
            collection.load(by_plural[plural], revision, self.on_corrupt)
        if before or self._definitions.entries:
            self._tell_definitions(before)
        self._past_bytes = 0
        # A store that forgot acknowledged writes goes back: so does the cache.
        self.revision = revision
        self.on_reload()
        self.advance(revision)

    def _tell_definitions(self, before: Sequence[bytes]) -> None:
        """Of all that are there now, and of those of before that are not."""
        entries = self._definitions.entries
        for key in before:
            if key not in entries:
                self.on_definition(_name(key), None)
        for key in sorted(entries):
            self.on_definition(_name(key), entries[key])

    def apply(self, event: kv_pb2.Event) -> None:
        """One ``mvccpb.Event``, newer than all before it. Call :meth:`advance` after the last one of its revision."""
        pair = event.kv
        key = pair.key
        collection = self._by_plural.get(key.split(b"/", 3)[2])
        if collection is None:
            collection = self._add_unknown(key)
            if collection is None:
                return
        if event.type:
            deleted = collection.delete(key, pair.mod_revision)
            if deleted is None:
                return
            change, message = deleted, None
        else:
            try:
                change, message = collection.put(Entry(key, pair.mod_revision, pair.value))
            except _CORRUPT:
                self.on_corrupt(key)
                return
        if collection is self._definitions:
            self.on_definition(_name(key), change.new)
        self.on_change(collection, change, message)
        if change.old is not None:
            self._past_bytes += len(change.old.value)
            if self._past_bytes > self._window_bytes:
                self._shorten_past()

    def forget_past(self) -> None:
        """Only watches that have seen everything can be resumed."""
        for collection in self.collections.values():
            collection.forget_past(self.revision)
        self._past_bytes = 0

    def _shorten_past(self) -> None:
        """Until a quarter of the room is free again, the kind with the largest past forgets the older half of it: large
        objects of one kind do not cut the watches of others short."""
        sizes = {plural: collection.past_bytes() for plural, collection in self.collections.items()}
        while sum(sizes.values()) > self._window_bytes * 3 // 4:
            largest = max(sizes, key=sizes.__getitem__)
            collection = self.collections[largest]
            collection.shorten_past((sizes[largest] + 1) // 2)
            sizes[largest] = collection.past_bytes()
        self._past_bytes = sum(sizes.values())

    def apply_all(self, events: Sequence[kv_pb2.Event]) -> None:
        """All events of a message, and whole revisions."""
        for event in events:
            self.apply(event)
        revision = events[-1].kv.mod_revision
        if self._waiting:
            self.advance(revision)
        elif revision > self.revision:
            self.revision = revision

    def advance(self, revision: int) -> None:
        """All changes up to ``revision`` have been applied."""
        if revision > self.revision:
            self.revision = revision
        if self._waiting:
            for future in [future for future, wanted in self._waiting.items() if wanted <= self.revision]:
                self.leave(future)
                if not future.done():
                    future.set_result(None)

    def reached(self, revision: int) -> asyncio.Future[None]:
        """Done when the cache is as new as ``revision``. A waiter must :meth:`leave`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.revision >= revision:
            future.set_result(None)
        else:
            self._waiting[future] = revision
        return future

    def leave(self, future: asyncio.Future[None]) -> None:
        """The future of :meth:`reached` is no longer awaited."""
        self._waiting.pop(future, None)


def _name(key: bytes) -> str:
    return key.rpartition(b"/")[2].decode()
