"""The hub of all watchers: finds those that a change concerns, and never holds memory without bound for any.

:meth:`Hub.publish` takes the revisions of a group commit once they are durable.

A watcher is *in step* when everything published is in the queue of its stream. One that starts in the past, or whose
stream has too much in its queue, *lags*: the fan-out leaves it out, and it takes its events from the history of the key
space, piece by piece as its stream drains. If compaction overtakes it, it is cancelled, as in etcd. So a watcher that
does not drain costs the queue of its stream, which is bounded, and nothing else.

Neighbours: ``watch_streams`` has the watchers and queues, ``watch_responses`` makes what goes into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu.emulated.objects.wire.key_ranges import FROM_KEY, prefix_end
from kemu.emulated.store import watch_responses
from kemu.emulated.store.keys import is_empty_range
from kemu.emulated.store.mvcc import Change, KeySpace
from kemu.emulated.store.watch_streams import MAX_RESPONSE_BYTES, NO_DELETE, NO_PUT, PREV_KV, Watcher, WatchStream
from kemu.messages.etcd import rpc_pb2

MAX_QUEUE_BYTES = 4 << 20
"""What a stream of the store may have in its queue before its watchers lag."""
BROADCAST_ID = -1
"""The watch id of responses that are for the whole stream, and of watchers that were not created."""

DUPLICATE_ID = "mvcc: duplicate watch ID provided on the WatchStream"
EMPTY_RANGE = "mvcc: watcher range is empty"


class Group:
    """The watchers of one range that are in step."""

    __slots__ = ("end", "events", "key", "watchers")

    def __init__(self, key: bytes, end: bytes) -> None:
        self.key = key
        self.end = end
        self.watchers: dict[Watcher, None] = {}
        """In the order in which they came."""
        self.events: list[int] = []
        """Events of the batch that is being published: indexes into it."""


class Hub:
    """All streams and watchers of the store."""

    def __init__(self, space: KeySpace, header: rpc_pb2.ResponseHeader, max_queue_bytes: int) -> None:
        """``header``: a ``ResponseHeader`` with all but the revision."""
        self.published = space.revision
        """The last revision that watchers may know of."""
        self._space = space
        self._header = header
        self._response = rpc_pb2.WatchResponse(header=header)
        """Only its revision is ever changed, which takes no memory."""
        self._max_queue_bytes = max_queue_bytes
        self._streams: dict[WatchStream, None] = {}
        self.groups: dict[tuple[bytes, bytes], Group] = {}
        self._by_key: dict[bytes, Group] = {}
        self._by_prefix: dict[bytes, Group] = {}
        self._prefix_lengths: list[int] = []
        """Those that occur, ascending."""
        self._other_ranges: list[Group] = []

    # Streams, and what clients ask for

    def open(self) -> WatchStream:
        stream = WatchStream()
        self._streams[stream] = None
        return stream

    def close(self, stream: WatchStream) -> None:
        """The call is over."""
        self._streams.pop(stream, None)
        for watcher in stream.watchers.values():
            self._fall_out_of_step(watcher)
        stream.watchers.clear()
        stream.queue.clear()
        stream.lagging.clear()

    def create(self, stream: WatchStream, request: rpc_pb2.WatchCreateRequest) -> None:
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
        options = PREV_KV if request.prev_kv else 0
        for kind in request.filters:
            options |= NO_PUT if kind == rpc_pb2.WatchCreateRequest.NOPUT else NO_DELETE
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
            stream.wake()

    def cancel(self, stream: WatchStream, watch_id: int) -> None:
        watcher = stream.watchers.pop(watch_id, None)
        if watcher is not None:
            self._fall_out_of_step(watcher)
            stream.forget(watcher)
            self._push_control(stream, watch_id, canceled=True)

    def report_progress(self, stream: WatchStream) -> None:
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
        if not self.groups:
            self.published = revision
            return
        if revision == self.published + 1:  # nearly always: nothing to be divided
            self.publish_one(self._space.history.get(revision, ()), revision)
            return
        batch: list[Change] = []
        size = 0
        for due in range(self.published + 1, revision + 1):
            changes = self._space.changes(due)
            added = sum(watch_responses.size_of(change) for change in changes)
            if batch and size + added > MAX_RESPONSE_BYTES:
                self.publish_one(batch, due - 1)
                batch = []
                size = 0
            batch += changes
            size += added
        self.publish_one(batch, revision)

    def publish_one(self, batch: Sequence[Change], revision: int) -> None:
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
        response = self._response  # _header_bytes, inlined
        response.header.revision = revision
        header: bytes = response.SerializeToString()
        pieces: dict[int, bytes] = {}
        for group in touched:
            indexes, group.events = group.events, []
            responses: dict[tuple[int, int], list[bytes]] = {}
            for watcher in list(group.watchers):
                if watcher.next_revision > first or watcher.fragment:
                    wanted = [index for index in indexes if batch[index][0].mod_revision >= watcher.next_revision]
                    own = watch_responses.of_events(
                        header, watcher, watch_responses.event_pieces(batch, wanted, watcher.options, pieces)
                    )
                    if own:
                        self._send(watcher, own, first)
                    continue
                kind = (watcher.watch_id, watcher.options)
                shared = responses.get(kind)
                if shared is None:
                    events = watch_responses.event_pieces(batch, indexes, watcher.options, pieces)
                    shared = responses[kind] = watch_responses.of_events(header, watcher, events)
                if shared:
                    self._send(watcher, shared, first)

    def _send(self, watcher: Watcher, responses: list[bytes], first: int) -> None:
        """``first``: the first revision that they are about."""
        stream = watcher.stream
        if stream.queued_bytes > self._max_queue_bytes:
            self._fall_out_of_step(watcher)
            watcher.next_revision = max(watcher.next_revision, first)
            stream.lagging.append(watcher)
            stream.wake()
            return
        watcher.idle = False
        for response in responses:  # WatchStream.push, inlined
            stream.queue.append((watcher, response))
            stream.queued_bytes += len(response)
            stream.wake()

    # Taking, for the writer of a stream

    def next_response(self, stream: WatchStream) -> bytes | None:
        """The next response to write; None when there is nothing to write now."""
        queue = stream.queue
        if queue:
            return stream.pop_merged()
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
        # Before a compacted revision there is nothing, and no more was asked for.
        due = max(watcher.next_revision, space.compact_revision, 1)
        while due <= self.published and size < MAX_RESPONSE_BYTES:
            for change in space.changes(due):
                if _is_in(change[0].key, watcher.key, watcher.end):
                    batch.append(change)
                    size += watch_responses.size_of(change)
            due += 1
        watcher.next_revision = due
        events = watch_responses.event_pieces(batch, range(len(batch)), watcher.options, {})
        for response in watch_responses.of_events(self._header_bytes(due - 1), watcher, events):
            watcher.idle = False
            stream.push(watcher, response)
        if due > self.published:
            self._fall_in_step(watcher)
        else:
            stream.lagging.append(watcher)

    # The index

    def _groups_of(self, key: bytes) -> list[Group]:
        found: list[Group] = []
        group = self._by_key.get(key)
        if group is not None:
            found.append(group)
        for length in self._prefix_lengths:
            if length > len(key):
                break
            group = self._by_prefix.get(key[:length])
            if group is not None:
                found.append(group)
        if self._other_ranges:
            found += [group for group in self._other_ranges if _is_in(key, group.key, group.end)]
        return found

    def _fall_in_step(self, watcher: Watcher) -> None:
        """All that was published is in its stream's queue: from now on it takes part in the fan-out."""
        watcher.in_step = True
        key, end = watcher.key, watcher.end
        group = self.groups.get((key, end))
        if group is None:
            group = self.groups[key, end] = Group(key, end)
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
        group = self.groups[key, end]
        del group.watchers[watcher]
        if group.watchers:
            return
        del self.groups[key, end]
        if not end:
            del self._by_key[key]
        elif self._by_prefix.get(key) is group:
            del self._by_prefix[key]
            self._prefix_lengths = sorted({len(prefix) for prefix in self._by_prefix})
        else:
            self._other_ranges.remove(group)

    # Responses

    def _push_control(self, stream: WatchStream, watch_id: int, **content: Any) -> None:
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


def _is_in(key: bytes, start: bytes, end: bytes) -> bool:
    if not end:
        return key == start
    return key >= start and (end == FROM_KEY or key < end)
