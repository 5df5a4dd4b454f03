"""Who is told of an event: watchers by index, and what waits in each watch stream.

A change finds its watchers by the values that it had and has now in the indexed fields; not all watchers are scanned.
An object that begins or ceases to match is ADDED or DELETED for that watcher, as in Kubernetes
(``cacher.convertToWatchEvent``). The bytes of an object are made once, however many watchers get it. Where more waits
than ``buffers`` allows, watches end with ``Expired``: their clients list again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors, selections
from kemu.emulated.apiserver.selections import Selection
from kemu.emulated.apiserver.watch import buffers
from kemu.emulated.apiserver.watch.cache import Change, Collection, WatchCache
from kemu.emulated.objects import heartbeats, resources
from kemu.errors import ApiError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Clock
from kemu.runtime.rpc import pumps

EVENTS_PER_MESSAGE = 1_000
BYTES_PER_MESSAGE = 1 << 20
"""gRPC refuses messages of more than 4 MiB unless told otherwise."""

UNREAD_EVENTS = 10_000
"""When so many events of a stream wait for its client, it begins no more watches."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark after which a watch tells of changes."""

_ADDED = api_pb2.WatchEvent.ADDED
_MODIFIED = api_pb2.WatchEvent.MODIFIED
_DELETED = api_pb2.WatchEvent.DELETED
_BOOKMARK = api_pb2.WatchEvent.BOOKMARK
_ERROR = api_pb2.WatchEvent.ERROR


Waiting = tuple[int, int, int, bytes]
"""An event: watch id, type, resource version, object."""


class Watcher:
    """One watch of one stream."""

    __slots__ = ("bookmarks", "collection", "initial", "revision", "selection", "stream", "watch_id")

    def __init__(
        self, stream: Stream, watch_id: int, selection: Selection, collection: Collection, bookmarks: bool
    ) -> None:
        self.stream = stream
        self.watch_id = watch_id
        self.selection = selection
        self.collection = collection
        self.bookmarks = bookmarks
        self.revision = 0
        """It has been told of everything up to here."""
        self.initial = False
        """The bookmark after the initial state has not been sent yet."""


class Stream:
    """What is on its way to one client: batches of events that fill up while the client reads."""

    __slots__ = (
        "_bytes", "_current", "_full", "_full_bytes", "_has_asked", "_initial", "_initial_bytes", "_reader", "_writes",
        "by", "count", "pump", "watchers",
    )  # fmt: skip

    def __init__(self, by: str, writes: buffers.Writes) -> None:
        self._writes = writes
        self.by = by
        """Name of the client."""
        self.watchers: dict[int, Watcher] = {}
        """By watch id."""
        self.count = 0
        """Events that wait."""
        self._has_asked = False
        """A large message is being written, or waits until it may be."""
        self._initial = self._initial_bytes = 0
        """The part of what waits that the beginning of a watch put there."""
        self._reader: asyncio.Future[None] | None = None
        """Waits until fewer events wait."""
        self.pump: pumps.Pump | None = None
        """Writes what :meth:`take` gives."""
        self._bytes = 0
        """Bytes of the objects in ``_current``; ``_full_bytes``: of those in ``_full``."""
        self._current: list[Waiting] | None = None
        self._full_bytes = 0
        self._full: list[tuple[list[Waiting], int]] = []  # hardly ever more than one, and there are many streams

    def add(self, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        """Append an event. Of kind ERROR, ``wire`` is the status."""
        current = self._current
        if current is None:
            current = self._current = []
            pump = self.pump
            if pump is not None:
                if pump.ready is None:
                    pump.wake()
                else:  # Pump.wake, inlined
                    pump.due += 1
                    if pump.due == 1:
                        pump.ready.append((pump.flush, (), pump.context))
        current.append((watch_id, kind, revision, wire))
        if kind != _ERROR:
            self._bytes += len(wire)
        self.count += 1
        if self._bytes >= BYTES_PER_MESSAGE or len(current) >= EVENTS_PER_MESSAGE:
            self._full.append((current, self._bytes))
            self._full_bytes += self._bytes
            self._current = None
            self._bytes = 0

    def add_error(self, watch_id: int, error: ApiError) -> None:
        """Append the end of a watch."""
        self.add(watch_id, _ERROR, 0, errors.encode(error))

    def wake(self) -> None:
        """See ``buffers.Writer``."""
        if self.pump is not None:
            self.pump.wake_for_all()

    @property
    def is_behind(self) -> bool:
        """The client does not read what is being written, or waits until it may be."""
        return (self.pump is not None and self.pump.is_writing) or self._writes.is_waiting(self)

    @property
    def backlog(self) -> int:
        """Events that wait because the client does not read; what the beginning of a watch put there does not count."""
        return self.count - self._initial if self.is_behind else 0

    @property
    def waiting_bytes(self) -> int:
        """The bytes of all that waits, though others may wait for the same objects."""
        return self._full_bytes + self._bytes + self.count * buffers.EVENT_BYTES

    @property
    def backlog_bytes(self) -> int:
        """As :attr:`backlog`."""
        return self.waiting_bytes - self._initial_bytes if self.is_behind else 0

    @property
    def held_bytes(self) -> int:
        """The same, and what else is held for the client alone: of the beginning of a watch all but the objects, which
        are in the cache, too."""
        return self.backlog_bytes + self._initial * buffers.EVENT_BYTES if self.is_behind else 0

    def exempt(self, count: int, size: int) -> None:
        """What has come since so many events, of so many bytes, waited, is not the client's fault."""
        self._initial += self.count - count
        self._initial_bytes += self.waiting_bytes - size

    def waiting(self) -> Iterator[tuple[Waiting, bool]]:
        """What waits, oldest first, and whether the beginning of a watch put it there."""
        exempt = self._initial
        for batch in [*(batch for batch, _ in self._full), self._current or ()]:
            for event in batch:
                yield event, exempt > 0
                exempt -= 1

    def clear(self) -> None:
        """Forget what waits."""
        self._current = None
        self._full.clear()
        self._bytes = self._full_bytes = self.count = self._initial = self._initial_bytes = 0

    def forget(self, watch_ids: Container[int]) -> None:
        """Forget what waits for some of the watches."""
        kept = [event for event, _ in self.waiting() if event[0] not in watch_ids]
        self.clear()
        for event in kept:
            self.add(*event)

    def take(self) -> api_pb2.WatchResponse | None:
        """The next message to write, or None if there is none, or if it may not be written now."""
        if self._full:
            batch, size = self._full[0]
            if size > buffers.SMALL_BYTES and not self._may_write(size):
                return None
            self._full.pop(0)
            self._full_bytes -= size
        else:
            current, size = self._current, self._bytes
            if current is None:
                return None
            if size > buffers.SMALL_BYTES and not self._may_write(size):
                return None
            batch = current
            self._current = None
            self._bytes = 0
        self.count -= len(batch)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
        if self._initial or self._initial_bytes:
            self._initial = min(self._initial, self.count)
            self._initial_bytes = min(self._initial_bytes, self.waiting_bytes)
        if self.pump is not None:
            # Nobody asks when a small message was written, unless something waits.
            self.pump.after = self.written if size > buffers.SMALL_BYTES or self._writes.waiting else None
        response = api_pb2.WatchResponse()
        add = response.events.add
        for watch_id, kind, revision, wire in batch:
            if kind == _ERROR:
                add(watch_id=watch_id, type=kind, error=wire)
            else:
                add(watch_id=watch_id, type=kind, resource_version=revision, object=wire)
        return response

    def _may_write(self, size: int) -> bool:
        """Whether a large message may be written now."""
        self._has_asked = True
        return self._writes.begin(self, size)

    def written(self) -> None:
        """What was taken has been written, or never will be."""
        if self._has_asked:
            self._has_asked = False
            self._writes.end(self)

    def pause(self) -> asyncio.Future[None] | None:
        """What to wait for until no more than :data:`UNREAD_EVENTS` wait."""
        if self.count <= UNREAD_EVENTS:
            return None
        self._reader = asyncio.get_running_loop().create_future()
        return self._reader


class Late(Stream):
    """In the place of a watcher's stream while events come late: they wait here, in their order."""

    __slots__ = ("_fanout", "_pending", "_stream", "_watcher")

    def __init__(self, fanout: Fanout, watcher: Watcher) -> None:
        self._fanout = fanout
        self._watcher = watcher
        self._stream = stream = watcher.stream
        self.by = stream.by
        self.watchers = stream.watchers
        self.count = 0
        """What waits here does not wait for the client."""
        self._pending: deque[tuple[int, Waiting]] = deque()
        """(when it is due, event)."""

    def add(self, watch_id: int, kind: int, revision: int, wire: bytes) -> None:
        fanout, pending, clock = self._fanout, self._pending, self._fanout.clock
        due_ns = clock.now_ns() + sum(delay_ns(self._watcher) for delay_ns in fanout.delays)
        if pending:
            due_ns = max(due_ns, pending[-1][0])
        elif due_ns == clock.now_ns():
            if not fanout.delays:
                self._watcher.stream = self._stream
            self._stream.add(watch_id, kind, revision, wire)
            return
        pending.append((due_ns, (watch_id, kind, revision, wire)))
        clock.call_at_ns(due_ns, self._deliver)

    def _deliver(self) -> None:
        """The oldest one, unless its watch or stream has ended."""
        _, event = self._pending.popleft()
        is_open = event[1] == _ERROR or self.watchers.get(event[0]) is self._watcher
        if is_open and self._fanout.is_open(self._stream):
            self._stream.add(*event)


_Bucket = tuple[tuple[Selection, tuple[Watcher, ...]], ...]
"""Watchers by selection. Each kubelet has two of its own: a dict of lists would take twice the memory."""


class _Group:
    """The watchers of one kind: by (position of the index, value), then by selection, in the order of their coming."""

    __slots__ = ("buckets", "positions")

    def __init__(self) -> None:
        self.buckets: dict[tuple[int, str], _Bucket] = {}
        self.positions: dict[int, int] = {}
        """How many watchers use an index."""


class Fanout:
    """Every watcher of this API server."""

    def __init__(
        self,
        cache: WatchCache,
        backlog: int,
        on_cut: Callable[[Stream], None],
        bounds: buffers.Bounds,
        clock: Clock,
    ) -> None:
        """``backlog``: events that may wait for a client that does not read. Then it is cut off and ``on_cut`` told."""
        self.on_stalled: Callable[[Any], None] = lambda stream: None
        """Ends a stream whose client does not read, so that others can be written to."""
        self._writes = buffers.Writes(clock, bounds, lambda stream: self.on_stalled(stream))
        self._bounds = bounds
        self._streams: dict[Stream, None] = {}
        self._news = 0
        """By how many bytes what waits can have grown since it was last compared with its bounds."""
        self._cache = cache
        self._backlog = backlog
        self._on_cut = on_cut
        self._groups: dict[str, _Group] = {}
        self._parsed = _Parsed()
        """Of the change that is being dispatched: one for all, since there are so many of them."""
        self.clock = clock
        self.delays: list[Callable[[Watcher], int]] = []
        """How long the next event of a watcher waits, in ns, by each fault in force."""
        self._slow: list[Stream] = []
        """Streams that had too much waiting when an event was added."""
        cache.on_change = self.dispatch
        cache.on_reload = self.end_all

    def open(self, by: str) -> Stream:
        """A client opens a stream."""
        stream = Stream(by, self._writes)
        self._streams[stream] = None
        return stream

    def close(self, stream: Stream) -> None:
        """The client is gone, or is to go."""
        self.stop_all(stream)
        del self._streams[stream]
        self._writes.end(stream)

    def start(self, watcher: Watcher, since: int) -> None:
        """Tell of everything after ``since``, and go on. ``since`` 0: begin with the present state, as ADDED events.

        Raises :class:`kemu.errors.Gone` when the window no longer reaches back to ``since``.
        """
        cache, collection, selection, stream = self._cache, watcher.collection, watcher.selection, watcher.stream
        count, size = stream.count, stream.waiting_bytes
        if since == 0:
            show = selection.show or self._with_heartbeats(selection.resource)
            for entry in collection.select(selection):
                wire = entry.wire if show is None else show(entry.wire)
                stream.add(watcher.watch_id, _ADDED, entry.revision, wire)
            watcher.revision = collection.as_of(cache.revision) if collection.converts else cache.revision
            watcher.initial = True
        else:
            if since < collection.oldest:
                raise errors.too_old(since, collection.oldest)
            watcher.revision = since
            for change in collection.changes_after(since, selection):
                self._offer_one(watcher, change)
        self._news += buffers.EVENT_BYTES * (stream.count - count)
        stream.exempt(count, size)
        stream.watchers[watcher.watch_id] = watcher
        group = self._groups.setdefault(collection.name, _Group())
        place = selection.position, selection.value
        group.buckets[place] = _joined(group.buckets.get(place, ()), watcher)
        group.positions[selection.position] = group.positions.get(selection.position, 0) + 1
        if self.delays:
            watcher.stream = Late(self, watcher)
        self._look()

    def _with_heartbeats(self, resource: resources.Resource) -> Callable[[bytes], bytes] | None:
        """How objects of a kind that has heartbeats look now, as in lists."""
        if resource.plural not in heartbeats.PLURALS:
            return None
        now = self.clock.unix_ns()
        return lambda wire: heartbeats.show(resource.message, wire, now)

    def stop(self, watcher: Watcher) -> None:
        """No more events for it. What waits in its stream stays there."""
        if watcher.stream.watchers.pop(watcher.watch_id, None) is None:
            return
        selection = watcher.selection
        group = self._groups[watcher.collection.name]
        place = selection.position, selection.value
        left = _left(group.buckets[place], watcher)
        if left:
            group.buckets[place] = left
        else:
            del group.buckets[place]
        group.positions[selection.position] -= 1
        if not group.positions[selection.position]:
            del group.positions[selection.position]

    def end(self, watcher: Watcher, error: ApiError) -> None:
        """End a watch from this side."""
        self.stop(watcher)
        watcher.stream.add_error(watcher.watch_id, error)

    def end_silently(self, watcher: Watcher) -> None:
        """End a watch without a word: its client may come again, and go on where it was."""
        self.stop(watcher)
        watcher.stream.add(watcher.watch_id, _ERROR, 0, b"")

    def delay(self, delay_ns: Callable[[Watcher], int]) -> Callable[[], None]:
        """Have events wait for so long, from now on; what a watch begins with does not. Returns what ends it."""
        self.delays.append(delay_ns)
        for watcher in self.watchers():
            if not isinstance(watcher.stream, Late):
                watcher.stream = Late(self, watcher)
        return lambda: self.delays.remove(delay_ns)

    def is_open(self, stream: Stream) -> bool:
        return stream in self._streams

    def end_kind(self, name: str) -> None:
        """End the watches of a collection without a word: their clients may come again, and go on where they were."""
        for watcher in self._watchers_of(name):
            self.end_silently(watcher)

    def end_collection(self, name: str, error: Callable[[Watcher], ApiError]) -> None:
        """End the watches of a collection, for what ``error`` says to each."""
        for watcher in self._watchers_of(name):
            self.end(watcher, error(watcher))

    def has_watchers(self, name: str) -> bool:
        """Whether anybody watches a collection."""
        group = self._groups.get(name)
        return group is not None and bool(group.buckets)

    def count_interested(self, name: str, namespace: str, object_name: str) -> int:
        """Watches of a collection that a write of an object concerns, but for those that wait for values of its fields
        (``GetInterestedWatchCount``)."""
        group = self._groups.get(name)
        if group is None:
            return 0
        count, buckets = 0, group.buckets
        for place in ((-1, ""), (selections.NAMESPACE, namespace), (selections.NAME, object_name)):
            if (bucket := buckets.get(place)) is not None:
                for _, watchers in bucket:
                    count += len(watchers)
        return count

    def _watchers_of(self, name: str) -> list[Watcher]:
        group = self._groups.get(name)
        return [] if group is None else _of_group(group)

    def stop_all(self, stream: Stream) -> list[int]:
        """The client is gone. Returns the ids of the watches that it had."""
        watchers = list(stream.watchers.values())
        for watcher in watchers:
            self.stop(watcher)
        return [watcher.watch_id for watcher in watchers]

    def end_all(self) -> None:
        """The history is lost: everybody must list again."""
        revision = self._cache.revision
        for watcher in self.watchers():
            self.end(watcher, errors.too_old(watcher.revision, revision))

    def bookmark(self, watcher: Watcher, wire: bytes = b"") -> None:
        """Tell a watcher how far it is; ``wire``: and by an object."""
        watcher.initial = False
        watcher.revision = max(watcher.revision, self._now(watcher))
        watcher.stream.add(watcher.watch_id, _BOOKMARK, watcher.revision, wire)

    def end_of_initial(self, watcher: Watcher) -> None:
        """The initial state is complete; a watcher that takes bookmarks is told so by one with an annotation."""
        if watcher.bookmarks:
            obj: Any = watcher.collection.resource.message()
            revision = max(watcher.revision, self._now(watcher))
            obj.metadata.resourceVersion = str(revision)
            obj.metadata.annotations[INITIAL_EVENTS_END] = "true"
            self.bookmark(watcher, obj.SerializeToString(deterministic=True))
        watcher.initial = False

    def _now(self, watcher: Watcher) -> int:
        """Up to where the watcher can have been told of everything."""
        collection, revision = watcher.collection, self._cache.revision
        return collection.as_of(revision) if collection.converts else revision

    def bookmark_all(self) -> None:
        """Tell those who have heard nothing of what has happened to their kind since, so that they can resume later."""
        for watcher in self.watchers():
            if watcher.bookmarks and not watcher.initial and watcher.revision < watcher.collection.last:
                self.bookmark(watcher)

    def dispatch(self, collection: Collection, change: Change, message: core_v1_pb2.Pod | None = None) -> None:
        """Tell everybody whom a change concerns. ``message``: the new object, if it has been parsed already."""
        group = self._groups.get(collection.name)
        if group is None:
            return
        new, old = change.new, change.old
        parsed = self._parsed
        parsed.collection, parsed.change, parsed.new, parsed.old = collection, change, message, None
        buckets = group.buckets
        for position in group.positions:
            now = None if new is None else "" if position < 0 else new.fields[position]
            before = None if old is None else "" if position < 0 else old.fields[position]
            if now is not None:
                bucket = buckets.get((position, now))
                if bucket is not None:
                    self._offer(bucket, change, parsed, True, before == now)
            if before is not None and before != now:
                bucket = buckets.get((position, before))
                if bucket is not None:
                    self._offer(bucket, change, parsed, False, True)
        if self._slow:
            slow, self._slow = self._slow, []
            for stream in slow:
                if stream.backlog > self._backlog:
                    self._cut(stream)
        if self._news >= self._bounds.review:
            self._look()

    def _look(self) -> None:
        """Compare what waits with its bounds where it can have grown by much."""
        if self._news >= self._bounds.review:
            self._news = 0
            self._review()

    def _review(self) -> None:
        """Compare what waits with its bounds."""
        clients: dict[str, int] = {}
        total = self._writes.total
        for stream in list(self._streams):
            behind = stream.backlog_bytes
            if behind > self._bounds.watch:
                self._cut_largest(stream)
                behind = stream.backlog_bytes
            held = stream.held_bytes
            if held:
                clients[stream.by] = clients.get(stream.by, 0) + held
            total += stream.waiting_bytes
        for by, behind in clients.items():
            if behind > self._bounds.client:
                for stream in self._longest(stream for stream in self._streams if stream.by == by):
                    clients[by] -= stream.held_bytes
                    self._cut(stream)
                    if clients[by] <= self._bounds.client:
                        break
        if total > self._bounds.server:
            self._relieve()

    def _longest(self, streams: Iterable[Stream]) -> list[Stream]:
        """Those whose clients do not read, and for whom something waits; the one with the most first."""
        return sorted((stream for stream in streams if stream.held_bytes), key=lambda stream: -stream.held_bytes)

    def _cut_largest(self, stream: Stream) -> None:
        """Let go of the watches of a stream for which too much waits."""
        sizes: dict[int, int] = {}
        for (watch_id, _, _, wire), exempt in stream.waiting():
            if not exempt:
                sizes[watch_id] = sizes.get(watch_id, 0) + len(wire) + buffers.EVENT_BYTES
        over = [watch_id for watch_id, size in sizes.items() if size > self._bounds.watch]
        for watch_id in over:
            watcher = stream.watchers.get(watch_id)
            if watcher is not None:
                self.stop(watcher)
        if over:
            stream.forget(frozenset(over))
            for watch_id in over:
                stream.add_error(watch_id, _too_slow())
            self._on_cut(stream)

    def _relieve(self) -> None:
        """Too much waits in all, unless much of it is the same: then let go of those for whom the most waits."""
        # What the beginning of a watch put there is in the cache as well.
        waits_for: dict[tuple[int, bool], int] = {}
        """How many events have the object of a revision, or its last state."""
        total = self._writes.total
        for stream in self._streams:
            for (_, kind, revision, wire), exempt in stream.waiting():
                total += buffers.EVENT_BYTES
                if not exempt:
                    which = revision, kind == _DELETED
                    waits_for[which] = waits_for.get(which, 0) + 1
                    if waits_for[which] == 1:
                        total += len(wire)
        for stream in self._longest(self._streams):
            if total <= self._bounds.server:
                return
            for (_, kind, revision, wire), exempt in stream.waiting():
                total -= buffers.EVENT_BYTES
                if not exempt:
                    which = revision, kind == _DELETED
                    waits_for[which] -= 1
                    if not waits_for[which]:
                        total -= len(wire)
            self._cut(stream)

    def _offer(
        self,
        bucket: _Bucket,
        change: Change,
        parsed: _Parsed,
        now: bool,
        before: bool,
    ) -> None:
        """Tell the watchers at one place of an index. ``now`` and ``before``: whether the object is and was there."""
        revision = change.revision
        for selection, watchers in bucket:
            if selection.only_index:
                is_in, was_in = now, before
            else:
                is_in = now and parsed.is_selected(selection)
                old = change.old
                was_in = before and (
                    old.selected if old is not None and old.judged_by is selection else parsed.was_selected(selection)
                )
            if is_in:
                assert change.new is not None
                kind, wire = _MODIFIED if was_in else _ADDED, change.new.wire
            elif was_in:
                kind, wire = _DELETED, change.last_wire()
            else:
                continue
            if selection.show is not None:
                wire = selection.show(wire)
            self._news += len(wire) + buffers.EVENT_BYTES * len(watchers)
            for watcher in watchers:
                if revision > watcher.revision:
                    watcher.revision = revision
                    stream = watcher.stream
                    stream.add(watcher.watch_id, kind, revision, wire)
                    # Most have nothing else waiting: asked of `count` before of the property.
                    if stream.count > self._backlog and stream.backlog > self._backlog:
                        self._slow.append(stream)

    def _cut(self, stream: Stream) -> None:
        """Let go of a client that does not read: it must list again."""
        ids = self.stop_all(stream)
        stream.clear()
        for watch_id in ids:
            stream.add_error(watch_id, _too_slow())
        self._on_cut(stream)

    def _offer_one(self, watcher: Watcher, change: Change) -> None:
        """Tell one watcher of a past change, if it concerns it."""
        selection, position, value = watcher.selection, watcher.selection.position, watcher.selection.value
        new, old = change.new, change.old
        now = new is not None and (position < 0 or new.fields[position] == value)
        before = old is not None and (position < 0 or old.fields[position] == value)
        if now or before:
            parsed = _Parsed()
            parsed.collection, parsed.change = watcher.collection, change
            self._offer(((selection, (watcher,)),), change, parsed, now, before)

    def watchers(self) -> list[Watcher]:
        """All of them, in a fixed order."""
        return [watcher for group in self._groups.values() for watcher in _of_group(group)]


def _of_group(group: _Group) -> list[Watcher]:
    return [watcher for bucket in group.buckets.values() for _, watchers in bucket for watcher in watchers]


def _joined(bucket: _Bucket, watcher: Watcher) -> _Bucket:
    for place, (selection, watchers) in enumerate(bucket):
        if selection is watcher.selection:
            return (*bucket[:place], (selection, (*watchers, watcher)), *bucket[place + 1 :])
    return (*bucket, (watcher.selection, (watcher,)))


def _left(bucket: _Bucket, leaving: Watcher) -> _Bucket:
    kept = [(selection, tuple([one for one in watchers if one is not leaving])) for selection, watchers in bucket]
    return tuple([(selection, watchers) for selection, watchers in kept if watchers])


def _too_slow() -> kemu_errors.Gone:
    return kemu_errors.Gone("the watch was ended: the client does not read fast enough")


class _Parsed:
    """The objects of a change, parsed when the first selection asks for them."""

    __slots__ = ("change", "collection", "new", "old")

    collection: Collection
    change: Change

    def __init__(self) -> None:
        self.new: Any = None
        self.old: Any = None

    def is_selected(self, selection: Selection) -> bool:
        """Whether the new object is; the entry remembers, for it will be the old one soon."""
        entry = self.change.new
        assert entry is not None
        if self.new is None:
            self.new = self.collection.resource.message.FromString(entry.wire)
        entry.judged_by, entry.selected = selection, selection.matches(self.new)
        return entry.selected

    def was_selected(self, selection: Selection) -> bool:
        """Whether the old object was, if its entry does not remember."""
        entry = self.change.old
        assert entry is not None
        if self.old is None:
            self.old = self.collection.resource.message.FromString(entry.wire)
        return selection.matches(self.old)
