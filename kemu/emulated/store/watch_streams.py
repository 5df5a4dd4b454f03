"""Watchers and the streams that carry their events: what one call of Watch has asked for, and what waits to be sent.

Neighbours: ``watches`` finds the watchers that a change concerns and fills the queues, ``watch_responses`` makes what
stands in them, ``server`` writes it to the client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from kemu.messages.etcd import rpc_pb2
from kemu.runtime import tasks

MAX_RESPONSE_BYTES = 1 << 20
"""Events of several revisions go into one response up to this size."""
MAX_QUEUE_LENGTH = 1_000
"""Responses in the queue of a stream before no more requests are taken from its client."""

PREV_KV, NO_PUT, NO_DELETE = 1, 2, 4
"""Options of a watcher, as bits."""


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

    def __init__(
        self, stream: WatchStream, watch_id: int, key: bytes, end: bytes, next_revision: int, options: int
    ) -> None:
        self.stream = stream
        self.watch_id = watch_id
        self.id_bytes: bytes = rpc_pb2.WatchResponse(watch_id=watch_id).SerializeToString()
        self.key = key
        self.end = end
        self.next_revision = next_revision
        """The revision of the first change that it still wants. In step, it matters only when it is in the future."""
        self.options = options
        """Options of ``PREV_KV``, ``NO_PUT``, ``NO_DELETE``: watchers with the same options get the same bytes."""
        self.fragment = False
        self.progress_notify = False
        self.idle = True
        """Got nothing since the last progress notification was due."""
        self.in_step = False


class WatchStream:
    """What one call of Watch has to send: :meth:`Hub.next_response`, until there is none."""

    __slots__ = (
        "_next_id", "_reader", "lagging", "progress_due", "queue", "queued_bytes", "wake", "watchers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.watchers: dict[int, Watcher] = {}
        self.queue: deque[tuple[Watcher | None, bytes]] = deque()
        """Responses, with the watcher whose events they hold; those that hold something else, with None."""
        self.queued_bytes = 0
        self.lagging: deque[Watcher] = deque()
        """They are served in turn, when the queue is empty."""
        self.progress_due = False
        """Asked for while a watcher lagged."""
        self.wake: Callable[[], None] = lambda: None
        """There is one response more to send, at most."""
        self._next_id = 0
        self._reader: asyncio.Future[None] | None = None
        """Waits until the queue is short enough for more requests."""

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
            tasks.wake(self._reader)
        return item

    def pop_merged(self) -> bytes:
        """The next response, made one with those of the same watcher that stand behind it."""
        queue = self.queue
        # pop, inlined.
        watcher, response = queue.popleft()
        self.queued_bytes -= len(response)
        if self._reader is not None and len(queue) <= MAX_QUEUE_LENGTH:
            tasks.wake(self._reader)
        if watcher is None or watcher.fragment or not queue or queue[0][0] is not watcher:
            return response
        parts = [response]
        size = len(response)
        while queue and queue[0][0] is watcher and size < MAX_RESPONSE_BYTES:
            part = self.pop()[1]
            parts.append(part)
            size += len(part)
        # Parsers take the last value of the fields of the header, and all events.
        return b"".join(parts)

    def forget(self, watcher: Watcher) -> None:
        """It was cancelled: nothing more of it is sent, not even what is in the queue."""
        if watcher in self.lagging:
            self.lagging.remove(watcher)
        kept = [item for item in self.queue if item[0] is not watcher]
        self.queue = deque(kept)
        self.queued_bytes = sum(len(response) for _, response in kept)

    def pause(self) -> asyncio.Future[None] | None:
        """What to wait for before more requests are read."""
        if len(self.queue) <= MAX_QUEUE_LENGTH:
            return None
        self._reader = asyncio.get_running_loop().create_future()
        return self._reader
