"""Watches of the gateway's clients, several on each Watch stream to an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import grpc.aio

from kemu.emulated.gateway import backends
from kemu.emulated.gateway.backends import Backend
from kemu.emulated.objects.identities import User
from kemu.errors import ServiceUnavailable, TooManyRequests
from kemu.messages.v1 import api_pb2

WATCHES_PER_STREAM = 32
"""An API server ends a stream as a whole when more waits for it than it keeps."""

_PATIENCE_S = 15.0
"""How long a client may read nothing of what waits for it, if that is much."""
_LATEST = 64
"""Events whose objects are kept for the other watches."""
_EVENT_BYTES = 200
"""What an event takes beside its object, about."""


class Event(NamedTuple):
    """A ``WatchEvent``, taken out of its response: what waits for one client would keep all of it in memory."""

    type: int
    resource_version: int
    object: bytes
    error: bytes


class Backlog:
    """What waits for all clients together. When it is too much, those that leave most unread are cut off."""

    def __init__(self, watch_bytes: int, all_bytes: int) -> None:
        self.watch_bytes = watch_bytes
        """What may wait for the client of one watch."""
        self.all_bytes = all_bytes
        self.bytes = 0
        self.waiting: dict[Watch, None] = {}
        """The watches for which something waits."""

    def relieve(self) -> None:
        while self.bytes > self.all_bytes:
            max(self.waiting, key=lambda one: one.bytes).drop()


class Watch:
    """One watch, and what waits for its client."""

    __slots__ = (
        "_backlog", "_ended", "_events", "_held", "_loop", "_stream", "_taken_at", "_waiter", "bytes", "on_cut",
        "watch_id",
    )  # fmt: skip

    def __init__(self, stream: Stream, watch_id: int, backlog: Backlog) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self.watch_id = watch_id
        self._backlog = backlog
        self._events: list[Event] = []
        self.bytes = 0
        """What waits or is being written, about."""
        self._held = 0
        """What is being written."""
        self.on_cut: Callable[[], None] = _leave_be
        """Ends the connection, whose client does not read what is being written."""
        self._taken_at = self._loop.time()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False

    def push(self, event: Event) -> None:
        """From the API server."""
        if self._ended:
            return
        if not self._events:
            self._taken_at = self._loop.time()
        self._events.append(event)
        size = len(event.object) + _EVENT_BYTES
        self.bytes += size
        backlog = self._backlog
        backlog.bytes += size
        backlog.waiting[self] = None
        if backlog.bytes > backlog.all_bytes:
            backlog.relieve()
        if self.bytes > backlog.watch_bytes and self._loop.time() - self._taken_at > _PATIENCE_S:
            self.drop()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def drop(self) -> None:
        """The client leaves too much unread: it has to begin again."""
        self._events.clear()
        held, self._held = self._held, 0
        self._backlog.bytes -= self.bytes
        self._backlog.waiting.pop(self, None)
        self.bytes = 0
        self.end()
        if held:
            self.on_cut()

    def end(self) -> None:
        """Nothing more comes, or it is not wanted."""
        self._ended = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def peek(self) -> Any:
        """The first event that waits; None: there is none."""
        return self._events[0] if self._events else None

    async def wait(self, until: float | None) -> bool:
        """Until something waits; False: nothing will. ``until``: as the event loop counts time."""
        while not self._events:
            if self._ended:
                return False
            self._waiter = self._loop.create_future()
            timer = self._loop.call_at(until, self.end) if until is not None else None
            try:
                await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        return True

    def take(self, most: int, most_bytes: int) -> Iterator[list[Event]]:
        """What waits, so many at a time, or a single one that is larger. They count until the next ones are asked for:
        by then they have been written."""
        while self._events:
            count = size = 0
            for event in self._events[:most]:
                more = len(event.object) + _EVENT_BYTES
                if count and size + more > most_bytes:
                    break
                count += 1
                size += more
            events = self._events[:count]
            del self._events[:count]
            self._held += size
            yield events
            self.written(self._held)
            self._taken_at = self._loop.time()

    def write(self, size: int) -> None:
        """So many bytes are being written: they count, too, until :meth:`written`, or until more is taken."""
        if not self._ended:
            self._held += size
            self.bytes += size
            backlog = self._backlog
            backlog.bytes += size
            if backlog.bytes > backlog.all_bytes:
                backlog.relieve()

    def written(self, size: int) -> None:
        size = min(size, self._held)  # nothing if the watch was cut off meanwhile
        self._held -= size
        self.bytes -= size
        self._backlog.bytes -= size
        if not self.bytes:
            self._backlog.waiting.pop(self, None)

    def failure(self) -> Exception:
        """Why nothing came."""
        return self._stream.failure()

    async def close(self) -> None:
        """The client wants no more, or has got all that it gets: what is being written still reaches it."""
        self.on_cut = _leave_be
        self.drop()
        await self._stream.cancel(self)


def _leave_be() -> None: ...


class Stream:
    """One Watch call to an API server, on behalf of one user."""

    def __init__(self, backend: Backend, user: User, backlog: Backlog, latest: dict[int, bytes]) -> None:
        """``latest``: by revision, the objects of the latest events, which many watches are told of."""
        self._backlog = backlog
        self._latest = latest
        self._call: Any = backend.stub.Watch(metadata=backends.metadata_of(user))
        self._last_id = 0
        self._failure: grpc.aio.AioRpcError | None = None
        self._backend = backend
        self.watches: dict[int, Watch] = {}
        self.reading = asyncio.get_running_loop().create_task(self._read())

    async def open(self, create: api_pb2.WatchCreate) -> Watch:
        """Raises :class:`kemu.emulated.gateway.backends.Refused`."""
        self._last_id += 1
        create.watch_id = self._last_id
        watch = self.watches[self._last_id] = Watch(self, self._last_id, self._backlog)
        try:
            await self._call.write(api_pb2.WatchRequest(create=create))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            watch.end()
        return watch

    async def cancel(self, watch: Watch) -> None:
        if self.watches.pop(watch.watch_id, None) is None or self.reading.done():
            return
        request = api_pb2.WatchRequest()
        request.cancel.watch_id = watch.watch_id
        try:
            await self._call.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return

    def failure(self) -> Exception:
        """Why it has ended."""
        if self._failure is None:
            return ServiceUnavailable(f"{self._backend.name} has ended the stream")
        return backends.Refused(backends.status_of(self._failure, self._backend.name))

    def close(self) -> None:
        self._call.cancel()

    async def _read(self) -> None:
        latest = self._latest
        try:
            while True:
                response = await self._call.read()
                if response is grpc.aio.EOF:
                    return
                for event in response.events:
                    watch = self.watches.get(event.watch_id)
                    if watch is None:
                        continue
                    kind, revision, data = event.type, event.resource_version, event.object
                    if (known := latest.get(revision)) == data:
                        data = known  # the same bytes for all watches
                    else:
                        if len(latest) >= _LATEST:
                            del latest[next(iter(latest))]
                        latest[revision] = data
                    watch.push(Event(kind, revision, data, event.error))
                    if kind == api_pb2.WatchEvent.ERROR:
                        # The API server knows it no more.
                        del self.watches[event.watch_id]
        except grpc.aio.AioRpcError as error:
            self._failure = error
        finally:
            for watch in self.watches.values():
                watch.end()


class Streams:
    """All of them."""

    def __init__(self, backlog: Backlog, most: int) -> None:
        """``most``: watches of a user at the same time."""
        self._backlog = backlog
        self._most = most
        self._streams: dict[tuple[str, User], list[Stream]] = {}
        """By API server and user."""
        self._latest: dict[int, bytes] = {}

    def count(self) -> int:
        """The number of watches."""
        return sum(len(stream.watches) for streams in self._streams.values() for stream in streams)

    async def open(self, backend: Backend, user: User, create: api_pb2.WatchCreate) -> Watch:
        """Raises :class:`kemu.emulated.gateway.backends.Refused`."""
        streams = self._streams.setdefault((backend.name, user), [])
        streams[:] = [stream for stream in streams if not stream.reading.done()]
        if sum(len(stream.watches) for stream in streams) >= self._most:
            raise TooManyRequests(f"a user may have {self._most} watches", retry_after_s=1)
        found = next((stream for stream in streams if len(stream.watches) < WATCHES_PER_STREAM), None)
        if found is None:
            found = Stream(backend, user, self._backlog, self._latest)
            streams.append(found)
        return await found.open(create)

    def close(self) -> None:
        """End all of them."""
        for streams in self._streams.values():
            for stream in streams:
                stream.close()
