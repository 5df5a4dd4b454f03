"""The watch on the store that fills the watch cache: one list of everything, then one watch, resumed where it broke.

``cache_lag_s`` holds each message back for that long, in order, so that stale reads can be had on purpose.

Etcd before 3.4.31 and 3.5.13 answers a request for progress with a revision whose events may still be to come (issue
15220 of etcd; issue 123192 of Kubernetes). kube-apiserver then sends reads on to etcd. Here they go on waiting for the
cache, which asks the keys themselves whether any has changed.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import grpc

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.storage import Entry, Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import key_ranges
from kemu.errors import Compacted, ServiceUnavailable, StoreError
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS, Channel, Env, Timer
from kemu.runtime.rpc import pumps
from kemu.runtime.runlog.events import Transaction

_RECORDER = "recorder"
"""File of an API server that records a real etcd: there once it has begun."""
PAGE = 5_000
"""Keys in one range request of the first list."""
RETRY_S = 0.25
"""Mean pause before the store is dialled again."""
PROGRESS_NS = 100 * MILLISECOND_NS
"""Between requests for progress while a reader waits for the cache: as kube-apiserver does."""
FRESH_TIMEOUT_NS = 3 * SECOND_NS
"""How long a read waits for the cache to become as new as it asks: as kube-apiserver does (``blockTimeout``)."""


class Feed:
    """One for each API server."""

    def __init__(
        self,
        env: Env,
        channel: Channel,
        storage: Storage,
        cache: WatchCache,
        lag_s: float,
        records: bool = False,
        is_etcd: bool = False,
    ) -> None:
        self._lag_ns = int(lag_s * SECOND_NS)
        self.on_held: Callable[[], None] = lambda: None
        """Told of each message that is held back."""
        self._records = records
        """Log what the store did, in place of a store that cannot: a real etcd."""
        self._is_etcd = is_etcd
        """The store is a real etcd, of whatever version."""
        self._tells_progress = True
        """What the store says of its progress is true."""
        self._env = env
        self._watch = rpc_pb2_grpc.WatchStub(channel).Watch  # type: ignore[no-untyped-call]
        self._storage = storage
        self._cache = cache
        self._behind = 0
        """Revision of the store when it was listed."""
        self._received = 0
        """Revision up to which everything has arrived, though perhaps not been applied."""
        self._held: deque[tuple[int, Any]] = deque()
        """(when it came, message), oldest first."""
        self._timer: Timer | None = None
        """When the oldest one is due."""
        self._call: Any = None
        """The watch, once the store has created it."""
        self._asking: asyncio.Future[None] | None = None
        """Writes the latest request for progress, or finds out about it."""

    @property
    def lag_ns(self) -> int:
        """How long news from the store is held back."""
        return self._lag_ns

    @lag_ns.setter
    def lag_ns(self, lag_ns: int) -> None:
        self._lag_ns = lag_ns
        self._release()

    async def load(self) -> None:
        """List the whole store, once it can be reached."""
        while True:
            try:
                if self._is_etcd:
                    self._tells_progress = tells_progress(await self._storage.version())
                oldest = await self._oldest() if self._records and self._is_back() else 0
                entries, listed, revision = await self._list(oldest)
                break
            except (ServiceUnavailable, Compacted):
                await self._pause()
        if self._records and not self._received and not oldest:
            if entries:
                text = f"the etcd is not empty: it holds {entries[0].key.decode()}; a run needs one of its own"
                raise StoreError(text)
            self._env.disk.write(_RECORDER, b"")
        self._storage.connection.is_new = False
        self._held.clear()
        self._behind = revision
        self._received = listed
        self._cache.load(entries, self._received)

    def _is_back(self) -> bool:
        """This process has begun to record in the place of one that died: what happened in between is in no log."""
        return not self._received and _RECORDER in self._env.disk.list()

    async def _oldest(self) -> int:
        """The revision from which on the store can tell of every change. All of them are told once more; the log takes
        each once."""
        try:
            await self._storage.range(resources.REGISTRY, revision=1)
        except Compacted:
            return await self._compacted()
        return 1

    async def _compacted(self) -> int:
        """The revision to which the store was compacted: it says so to a watch that begins before."""
        call = self._watch()
        request = rpc_pb2.WatchRequest()
        request.create_request.key = resources.REGISTRY
        request.create_request.start_revision = 1
        found = 0

        def handle(response: rpc_pb2.WatchResponse) -> bool:
            nonlocal found
            found = response.compact_revision
            return bool(response.canceled)

        try:
            await call.write(request)
            await pumps.each(call, handle)
        except grpc.aio.AioRpcError as error:
            raise errors.of_store(error) from None
        call.cancel()
        return found

    async def caught_up(self) -> None:
        """Wait until the cache has what was there when :meth:`load` returned."""
        await self.until(self._behind, patient=True)

    async def run(self) -> None:
        """Follow the store for ever. :meth:`load` comes first."""
        connection = self._storage.connection
        while True:
            try:
                complete = await self._follow()
            except grpc.aio.AioRpcError as error:
                complete = True
                connection.lost(error)
            self._call = self._asking = None
            await self._pause()
            if connection.is_down:
                await connection.ready()
            if not complete:
                await self._reload()

    async def _reload(self) -> None:
        """The history between what has arrived and what the store has is lost."""
        await self.load()

    async def until(self, revision: int, *, patient: bool = False) -> None:
        """Wait until the cache is as new as ``revision``.

        Raises :class:`kemu.errors.ServerTimeout` after three seconds, unless ``patient``.
        """
        clock, cache = self._env.clock, self._cache
        deadline_ns = clock.now_ns() + FRESH_TIMEOUT_NS
        while cache.revision < revision:
            now_ns = clock.now_ns()
            if now_ns >= deadline_ns and not patient:
                raise errors.too_large(revision, cache.revision)
            reached = cache.reached(revision)
            timer = clock.call_at_ns(now_ns + PROGRESS_NS, _give_up, reached)
            try:
                await reached
            finally:
                timer.cancel()
                cache.leave(reached)
            if cache.revision < revision:
                # Perhaps nothing of what changed concerns us, and no news will come by itself.
                self._ask_for_progress(revision)

    async def _list(self, at: int = 0) -> tuple[list[Entry], int, int]:
        """Everything, as it is now or was at a revision; that revision; and the one of now, which is later where
        somebody has written between two pages."""
        start, end = resources.REGISTRY, key_ranges.prefix_end(resources.REGISTRY)
        entries: list[Entry] = []
        revision = 0
        while True:
            response = await self._storage.range(start, end, limit=PAGE, revision=at)
            revision = response.header.revision
            at = at or revision
            entries += [Entry(pair.key, pair.mod_revision, pair.value) for pair in response.kvs]
            if not response.more:
                return entries, at, revision
            start = entries[-1].key + b"\0"

    async def _follow(self) -> bool:
        """Until the watch breaks. Returns whether it can be resumed; if not, the history is lost."""
        call = self._watch()
        request = rpc_pb2.WatchRequest()
        create = request.create_request
        create.key = resources.REGISTRY
        create.range_end = key_ranges.prefix_end(resources.REGISTRY)
        create.start_revision = self._start_revision()
        await call.write(request)
        complete = True

        def handle(response: rpc_pb2.WatchResponse) -> bool:
            """Whether the watch is over."""
            nonlocal complete
            if response.canceled:
                complete = not response.compact_revision
                return True
            if response.created:
                if response.header.revision < self._received:
                    call.cancel()
                    complete = False  # The store lost writes that it had acknowledged (fsync: none), and so must we.
                    return True
                self._call = call
            self._receive(response)
            return False

        await pumps.each(call, handle)
        return complete

    def _start_revision(self) -> int:
        """Where the next watch begins; 0: with what comes from now on."""
        return self._received + 1

    def _receive(self, response: rpc_pb2.WatchResponse) -> None:
        if response.events:
            self._received = response.events[-1].kv.mod_revision
            if self._records:
                self._record(response.events)
        if not self._held and not self._lag_ns:
            if response.events:
                self._cache.apply_all(response.events[:])
            else:
                self._apply(response)
            return
        now_ns = self._env.clock.now_ns()
        # While the cluster is being set up the clock stands still, and everybody is up to date.
        if self._held or now_ns:
            self._held.append((now_ns, response))
            self.on_held()
            if len(self._held) == 1:
                self._timer = self._env.clock.call_at_ns(now_ns + self._lag_ns, self._release)
        else:
            self._apply(response)

    def _record(self, events: Iterable[Any]) -> None:
        """``store.txn``, as kemu's own store logs it."""
        for revision, changes in itertools.groupby(events, key=lambda event: event.kv.mod_revision):
            rows = [
                [
                    int(event.type),
                    event.kv.key.decode("utf-8", "backslashreplace"),
                    None if event.type else event.kv.value,
                    event.kv.create_revision,
                    event.kv.version,
                ]
                for event in changes
            ]
            self._env.log(Transaction(rev=revision, changes=rows))

    def _release(self) -> None:
        """Apply what is due."""
        clock, held, lag_ns = self._env.clock, self._held, self._lag_ns
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while held and held[0][0] + lag_ns <= clock.now_ns():
            self._apply(held.popleft()[1])
        if held:
            self._timer = clock.call_at_ns(held[0][0] + lag_ns, self._release)

    def _apply(self, response: rpc_pb2.WatchResponse) -> None:
        events = response.events[:]
        if events:
            self._cache.apply_all(events)
        elif not response.created:
            # A message without events says how far the store is, and that nothing is missing up to there.
            self._cache.advance(response.header.revision)

    def _ask_for_progress(self, revision: int) -> None:
        """Unless that is under way.

        Not before the watch has been created: the store would answer for a stream without watches, and name a revision
        whose events are still to come. And in a task of its own, one at a time: gRPC ends a call with two writes at a
        time, and one whose writer is cancelled.
        """
        call = self._call
        if call is not None and (self._asking is None or self._asking.done()):
            asks = _request_progress(call) if self._tells_progress else self._look_at_keys(revision)
            self._asking = self._env.spawn(asks, "request for progress")

    async def _look_at_keys(self, revision: int) -> None:
        """The cache is as new as ``revision`` if no key has changed since."""
        cache = self._cache
        seen = cache.revision
        start = resources.REGISTRY
        try:
            is_unchanged = await self._storage.is_unchanged(start, key_ranges.prefix_end(start), seen, revision)
        except (ServiceUnavailable, Compacted):
            return  # Whoever still waits asks again.
        if is_unchanged and cache.revision == seen:
            cache.advance(revision)

    async def _pause(self) -> None:
        await self._env.clock.sleep(RETRY_S * (0.5 + self._env.random.random()))


def tells_progress(version: str) -> bool:
    """Whether an etcd of this version answers a request for progress once it has sent all events before
    (``endpointSupportsRequestWatchProgress``)."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        return False
    number = tuple(int(part) for part in found.groups())
    return number >= (3, 5, 13) or (3, 4, 31) <= number < (3, 5)


async def _request_progress(call: grpc.aio.StreamStreamCall) -> None:
    request = rpc_pb2.WatchRequest()
    request.progress_request.SetInParent()
    try:
        await call.write(request)
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        return  # The watch has ended; `Feed.run` takes care of it.


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
