"""Watchers: found by key and prefix when something changes, fed in order, never holding memory without bound.

:meth:`Hub.publish` takes the revisions of a group commit once they are durable. Each event is serialised once (once
more with its previous value, where somebody asks for that), and so is each response that several watchers get alike;
protobuf messages may be put together from serialised pieces, so a response is header, watch id and events, joined.

A watcher is *in step* when everything published has been put into the queue of its stream. One that starts in the
past, or whose stream has too much in its queue, *lags*: it is left out of the fan-out and takes its events from the
history of the key space, piece by piece as its stream drains. If compaction overtakes it, it is cancelled, as in etcd;
so a watcher that does not drain costs the queue of its stream, which is bounded, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kemu.etcd import kv_pb2, rpc_pb2
from kemu.objects.key_ranges import FROM_KEY, prefix_end
from kemu.store.keys import is_empty_range
from kemu.store.mvcc import Change, KeySpace
from kemu.store.operations import fill

MAX_RESPONSE_BYTES = 1 << 20
"""Events of several revisions go into one response up to this size."""
MAX_QUEUE_BYTES = 4 << 20
"""What a stream may have in its queue before its watchers lag."""
MAX_QUEUE_LENGTH = 1_000
"""Responses in the queue of a stream before no more requests are taken from its client."""
FRAGMENT_BYTES = 2 << 20
"""Size from which on the response to a watcher that wants fragments is split within a revision."""
BROADCAST_ID = -1
"""The watch id of responses that are for the whole stream, and of watchers that were not created."""

DUPLICATE_ID = "mvcc: duplicate watch ID provided on the WatchStream"
EMPTY_RANGE = "mvcc: watcher range is empty"

_PREV_KV, _NO_PUT, _NO_DELETE = 1, 2, 4


class Watcher:
    """What one client wants to hear of, and how far it is."""

    __slots__ = (
        "end",
        "fragment",
        "id_bytes",
        "idle",
        "in_step",
        "key",
        "next_revision",
        "options",
        "progress_notify",
        "stream",
        "watch_id",
    )

    def __init__(self, stream: Stream, watch_id: int, key: bytes, end: bytes, next_revision: int, options: int) -> None:
        self.stream = stream
        self.watch_id = watch_id
        self.id_bytes: bytes = rpc_pb2.WatchResponse(watch_id=watch_id).SerializeToString()
        self.key = key
        self.end = end
        self.next_revision = next_revision
        """Of the first change that it still wants. In step, it matters only when it is in the future."""
        self.options = options
        """Of ``_PREV_KV``, ``_NO_PUT``, ``_NO_DELETE``: watchers with the same options get the same bytes."""
        self.fragment = False
        self.progress_notify = False
        self.idle = True
        """Got nothing since the last progress notification was due."""
        self.in_step = False


class Group:
    """The watchers of one range that are in step."""

    __slots__ = ("end", "events", "key", "watchers")

    def __init__(self, key: bytes, end: bytes) -> None:
        self.key = key
        self.end = end
        self.watchers: dict[Watcher, None] = {}
        """In the order in which they came."""
        self.events: list[int] = []
        """Of the batch that is being published: indexes into it."""


class Stream:
    """What one call of Watch has to send. Its writer takes :meth:`Hub.next_response` until there is none, and waits."""

    __slots__ = (
        "_next_id", "_reader", "_writer", "broken", "lagging", "progress_due", "queue", "queued_bytes", "watchers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.watchers: dict[int, Watcher] = {}
        self.queue: deque[tuple[Watcher | None, bytes]] = deque()
        """Responses, with the watcher whose events they hold; those that hold something else, with None."""
        self.queued_bytes = 0
        self.lagging: deque[Watcher] = deque()
        """They are served in turn, when the queue is empty."""
        self.progress_due = False
        """Asked for while somebody lagged."""
        self.broken = False
        """Nothing more can be read from its client."""
        self._next_id = 0
        self._writer: asyncio.Future[None] | None = None
        self._reader: asyncio.Future[None] | None = None
        """The tasks of the call, when they wait."""

    def free_id(self) -> int:
        """A watch id that no watcher of the stream has, and none had unless its client chose it."""
        while self._next_id in self.watchers:
            self._next_id += 1
        self._next_id += 1
        return self._next_id - 1

    def push(self, watcher: Watcher | None, response: bytes) -> None:
        self.queue.append((watcher, response))
        self.queued_bytes += len(response)
        self.wake()

    def pop(self) -> tuple[Watcher | None, bytes]:
        item = self.queue.popleft()
        self.queued_bytes -= len(item[1])
        if self._reader is not None and len(self.queue) <= MAX_QUEUE_LENGTH:
            _wake(self._reader)
        return item

    def wake(self) -> None:
        """Let the writer look."""
        if self._writer is not None:
            _wake(self._writer)

    async def wait(self) -> None:
        """For the writer: until there is something to do."""
        self._writer = asyncio.get_running_loop().create_future()
        try:
            await self._writer
        finally:
            self._writer = None

    async def wait_for_room(self) -> None:
        """For the reader: until the queue is short enough for more requests."""
        while len(self.queue) > MAX_QUEUE_LENGTH:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Hub:
    """All streams and watchers of the store."""

    def __init__(self, space: KeySpace, header: Any, max_queue_bytes: int = MAX_QUEUE_BYTES) -> None:
        """``header``: a ``ResponseHeader`` with all but the revision."""
        self.published = space.revision
        """The last revision that watchers may know of."""
        self._space = space
        self._header = header
        self._response = rpc_pb2.WatchResponse(header=header)
        """Only its revision is ever changed, which takes no memory."""
        self._max_queue_bytes = max_queue_bytes
        self._streams: dict[Stream, None] = {}
        self._groups: dict[tuple[bytes, bytes], Group] = {}
        self._by_key: dict[bytes, Group] = {}
        self._by_prefix: dict[bytes, Group] = {}
        self._prefix_lengths: list[int] = []
        """Those that occur, ascending."""
        self._other_ranges: list[Group] = []

    # Streams, and what clients ask for

    def open(self) -> Stream:
        stream = Stream()
        self._streams[stream] = None
        return stream

    def close(self, stream: Stream) -> None:
        """The call is over."""
        self._streams.pop(stream, None)
        for watcher in stream.watchers.values():
            self._fall_out_of_step(watcher)
        stream.watchers.clear()
        stream.queue.clear()
        stream.lagging.clear()

    def create(self, stream: Stream, request: Any) -> None:
        """Answer a ``WatchCreateRequest``."""
        key, end = request.key or b"\0", request.range_end
        watch_id = request.watch_id
        refusal = ""
        if is_empty_range(key, end):
            refusal = EMPTY_RANGE
        elif watch_id and watch_id in stream.watchers:
            refusal = DUPLICATE_ID
        if refusal:
            self._push_control(stream, BROADCAST_ID, created=True, canceled=True, cancel_reason=refusal)
            return
        if not watch_id:
            watch_id = stream.free_id()
        options = _PREV_KV if request.prev_kv else 0
        for kind in request.filters:
            options |= _NO_PUT if kind == rpc_pb2.WatchCreateRequest.NOPUT else _NO_DELETE
        start = request.start_revision or self.published + 1
        watcher = Watcher(stream, watch_id, key, end, start, options)
        watcher.fragment = request.fragment
        watcher.progress_notify = request.progress_notify
        stream.watchers[watch_id] = watcher
        self._push_control(stream, watch_id, created=True)
        if start > self.published:
            self._fall_in_step(watcher)
        else:
            stream.lagging.append(watcher)

    def cancel(self, stream: Stream, watch_id: int) -> None:
        watcher = stream.watchers.pop(watch_id, None)
        if watcher is not None:
            self._forget(watcher)
            self._push_control(stream, watch_id, canceled=True)

    def report_progress(self, stream: Stream) -> None:
        """Say how far the whole stream is, as soon as it is in step."""
        if stream.lagging:
            stream.progress_due = True
        else:
            self._push_control(stream, BROADCAST_ID)

    def notify_progress(self) -> None:
        """Tell watchers that want it, and have got nothing since the last time, how far they are."""
        for stream in self._streams:
            for watcher in stream.watchers.values():
                if watcher.progress_notify and watcher.in_step:
                    if watcher.idle and watcher.next_revision <= self.published:
                        self._push_control(stream, watcher.watch_id)
                    watcher.idle = True

    # Publishing

    def publish(self, revision: int) -> None:
        """Everything up to that revision is durable: tell those who watch."""
        if not self._groups:
            self.published = revision
            return
        batch: list[Change] = []
        size = 0
        for due in range(self.published + 1, revision + 1):
            changes = self._space.changes(due)
            added = sum(_size_of(change) for change in changes)
            if batch and size + added > MAX_RESPONSE_BYTES:
                self._publish(batch, due - 1)
                batch = []
                size = 0
            batch += changes
            size += added
        self._publish(batch, revision)

    def _publish(self, batch: list[Change], revision: int) -> None:
        """One response for each watcher, at most."""
        first = self.published + 1
        self.published = revision
        touched: list[Group] = []
        for index, (entry, _) in enumerate(batch):
            for group in self._groups_of(entry.key):
                if not group.events:
                    touched.append(group)
                group.events.append(index)
        if not touched:
            return
        header = self._header_bytes(revision)
        pieces: dict[int, bytes] = {}
        for group in touched:
            indexes, group.events = group.events, []
            responses: dict[tuple[int, int], list[bytes]] = {}
            for watcher in list(group.watchers):
                if watcher.next_revision > first or watcher.fragment:
                    wanted = [index for index in indexes if batch[index][0].mod_revision >= watcher.next_revision]
                    own = _responses(header, watcher, _pieces(batch, wanted, watcher.options, pieces))
                    if own:
                        self._send(watcher, own, first)
                    continue
                kind = (watcher.watch_id, watcher.options)
                shared = responses.get(kind)
                if shared is None:
                    events = _pieces(batch, indexes, watcher.options, pieces)
                    shared = responses[kind] = _responses(header, watcher, events)
                if shared:
                    self._send(watcher, shared, first)

    def _send(self, watcher: Watcher, responses: list[bytes], first: int) -> None:
        """``first``: the first revision that they are about."""
        stream = watcher.stream
        if stream.queued_bytes > self._max_queue_bytes:
            self._fall_out_of_step(watcher)
            watcher.next_revision = max(watcher.next_revision, first)
            stream.lagging.append(watcher)
            return
        watcher.idle = False
        for response in responses:
            stream.push(watcher, response)

    # Taking, for the writer of a stream

    def next_response(self, stream: Stream) -> bytes | None:
        """The next response to write; None when there is nothing to write now."""
        queue = stream.queue
        if queue:
            watcher, response = stream.pop()
            if watcher is not None and queue and queue[0][0] is watcher and not watcher.fragment:
                response = _merge(stream, watcher, response)
            return response
        while stream.lagging:
            watcher = stream.lagging.popleft()
            self._catch_up(watcher)
            if queue:
                return self.next_response(stream)
        if stream.progress_due:
            stream.progress_due = False
            self._push_control(stream, BROADCAST_ID)
            return self.next_response(stream)
        return None

    def _catch_up(self, watcher: Watcher) -> None:
        """Put one response with what it has missed into the queue, and the watcher back in step or in line."""
        stream = watcher.stream
        space = self._space
        if watcher.next_revision < space.compact_revision:
            del stream.watchers[watcher.watch_id]
            self._push_control(stream, watcher.watch_id, canceled=True, compact_revision=space.compact_revision)
            return
        batch: list[Change] = []
        size = 0
        # Before a compacted revision there is nothing, and nobody asked for more.
        due = max(watcher.next_revision, space.compact_revision, 1)
        while due <= self.published and size < MAX_RESPONSE_BYTES:
            for change in space.changes(due):
                if _is_in(change[0].key, watcher.key, watcher.end):
                    batch.append(change)
                    size += _size_of(change)
            due += 1
        watcher.next_revision = due
        events = _pieces(batch, range(len(batch)), watcher.options, {})
        for response in _responses(self._header_bytes(due - 1), watcher, events):
            watcher.idle = False
            stream.push(watcher, response)
        if due > self.published:
            self._fall_in_step(watcher)
        else:
            stream.lagging.append(watcher)

    # The index

    def _groups_of(self, key: bytes) -> Iterator[Group]:
        group = self._by_key.get(key)
        if group is not None:
            yield group
        for length in self._prefix_lengths:
            if length > len(key):
                break
            group = self._by_prefix.get(key[:length])
            if group is not None:
                yield group
        for group in self._other_ranges:
            if _is_in(key, group.key, group.end):
                yield group

    def _fall_in_step(self, watcher: Watcher) -> None:
        """All that was published is in its stream's queue: from now on it takes part in the fan-out."""
        watcher.in_step = True
        key, end = watcher.key, watcher.end
        group = self._groups.get((key, end))
        if group is None:
            group = self._groups[key, end] = Group(key, end)
            if not end:
                self._by_key[key] = group
            elif end != FROM_KEY and end == prefix_end(key):
                self._by_prefix[key] = group
                self._prefix_lengths = sorted({len(prefix) for prefix in self._by_prefix})
            else:
                self._other_ranges.append(group)
        group.watchers[watcher] = None

    def _fall_out_of_step(self, watcher: Watcher) -> None:
        if not watcher.in_step:
            return
        watcher.in_step = False
        key, end = watcher.key, watcher.end
        group = self._groups[key, end]
        del group.watchers[watcher]
        if group.watchers:
            return
        del self._groups[key, end]
        if not end:
            del self._by_key[key]
        elif self._by_prefix.get(key) is group:
            del self._by_prefix[key]
            self._prefix_lengths = sorted({len(prefix) for prefix in self._by_prefix})
        else:
            self._other_ranges.remove(group)

    def _forget(self, watcher: Watcher) -> None:
        """Cancelled: nothing more of it is sent, not even what is in the queue."""
        self._fall_out_of_step(watcher)
        stream = watcher.stream
        if watcher in stream.lagging:
            stream.lagging.remove(watcher)
        kept = [item for item in stream.queue if item[0] is not watcher]
        stream.queue = deque(kept)
        stream.queued_bytes = sum(len(response) for _, response in kept)

    # Responses

    def _push_control(self, stream: Stream, watch_id: int, **content: Any) -> None:
        response = rpc_pb2.WatchResponse(watch_id=watch_id, **content)
        header = response.header
        header.CopyFrom(self._header)
        header.revision = self.published
        stream.push(None, response.SerializeToString())

    def _header_bytes(self, revision: int) -> bytes:
        """A ``WatchResponse`` of nothing but the header."""
        response = self._response
        response.header.revision = revision
        data: bytes = response.SerializeToString()
        return data


def _pieces(batch: Sequence[Change], indexes: Iterable[int], options: int, cache: dict[int, bytes]) -> list[bytes]:
    """The events that the options let through, serialised as parts of a ``WatchResponse``."""
    pieces: list[bytes] = []
    with_previous = options & _PREV_KV
    for index in indexes:
        change = batch[index]
        if options & (_NO_DELETE if change[0].value is None else _NO_PUT):
            continue
        place = 2 * index + with_previous
        piece = cache.get(place)
        if piece is None:
            piece = cache[place] = _event_bytes(change, bool(with_previous))
        pieces.append(piece)
    return pieces


def _event_bytes(change: Change, with_previous: bool) -> bytes:
    entry, previous = change
    response = rpc_pb2.WatchResponse()
    event = response.events.add()
    if entry.value is None:
        event.type = kv_pb2.Event.DELETE
    fill(event.kv, entry)
    if with_previous and previous is not None:
        fill(event.prev_kv, previous)
    data: bytes = response.SerializeToString()
    return data


_FRAGMENT: bytes = rpc_pb2.WatchResponse(fragment=True).SerializeToString()


def _responses(header: bytes, watcher: Watcher, events: list[bytes]) -> list[bytes]:
    """One response with those events, or several fragments of one; none without events."""
    if not events:
        return []
    start = header + watcher.id_bytes
    if not watcher.fragment:
        return [start + b"".join(events)]
    responses: list[bytes] = []
    part: list[bytes] = []
    size = 0
    for event in events:
        if part and size + len(event) > FRAGMENT_BYTES:
            responses.append(start + _FRAGMENT + b"".join(part))
            part = []
            size = 0
        part.append(event)
        size += len(event)
    responses.append(start + b"".join(part))
    return responses


def _merge(stream: Stream, watcher: Watcher, response: bytes) -> bytes:
    """Make one response of those of one watcher that stand together at the head of the queue."""
    queue = stream.queue
    parts = [response]
    size = len(response)
    while queue and queue[0][0] is watcher and size < MAX_RESPONSE_BYTES:
        part = stream.pop()[1]
        parts.append(part)
        size += len(part)
    # Parsers take the last value of the fields of the header, and all events.
    return b"".join(parts)


def _is_in(key: bytes, start: bytes, end: bytes) -> bool:
    if not end:
        return key == start
    return key >= start and (end == FROM_KEY or key < end)


def _size_of(change: Change) -> int:
    entry, previous = change
    size = 100 + len(entry.key) + len(entry.value or b"")
    return size if previous is None else size + len(previous.value or b"")
