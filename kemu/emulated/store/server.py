"""The store as an actor: etcd's KV, Watch and Maintenance over gRPC, in front of the key space and its journal.

Configuration: ``fsync`` (``always``, ``batch``, ``none``; default ``batch``), ``segment_bytes``,
``retain_revisions`` and ``retain_bytes`` (history beyond that is compacted by the store itself; 0: no limit),
``progress_notify_s``.

Group commit: a transaction is carried out when it arrives. Everything that arrived since the last fsync began is
journaled by one append and one fsync, and only then acknowledged and shown to watchers; meanwhile other requests are
carried out, for the next one. No response is sent before the state behind it is durable, so a client can never have
read something that is lost later. ``fsync: always`` appends and fsyncs each transaction alone; ``none`` never fsyncs.

When the disk fails:

* No room: what could not be journaled is taken back, its clients are refused, and the alarm NOSPACE is raised: writes
  are refused, reads and watches go on. etcd raises it when its database reaches a quota, until it is disarmed;
  this store looks every second whether there is room again.
* A failed fsync: what is on the disk is not known, and another fsync would succeed without writing it. The process ends
  (``Env.exit``), as etcd's does, and the next one recovers what there is.
* A journal that is damaged in a way that no crash explains: the alarm CORRUPT. The store answers nothing but where the
  damage is, until its disk is restored.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import errno
import functools
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from kemu.emulated import variants
from kemu.emulated.objects.wire import swaps
from kemu.emulated.store import journal, mvcc, operations, watches
from kemu.errors import JournalCorrupt, StoreError
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import Env
from kemu.runtime.rpc import pumps, servers
from kemu.runtime.runlog.events import StoreAlarm, StoreCompacted, StoreCorrupt, StoreRecovered, StoreState, Transaction

VERSION = "3.6.0"
"""The version of etcd whose behaviour this is."""
CLUSTER_ID = 0x6B656D75
MEMBER_ID = 0x73746F7265
RETAIN_REVISIONS = 20_000
RETAIN_BYTES = 16 << 20
PROGRESS_NOTIFY_S = 600
"""As etcd's."""
STATE_REVISIONS = 1_000
"""The run log gets a digest of the key space at least this many revisions apart, and as many as there are keys: what
it costs is then the same for each write however many keys there are."""


LOOK_FOR_ROOM_S = 1.0

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class NoSpace(StoreError):
    """The disk is full: what the request did, or saw, was taken back."""


Settle = Callable[[NoSpace | None], object]
"""Told that a state is durable, or that it was taken back."""
Answers = tuple[Callable[[], object], Callable[[], object]]
"""What does the same, each in a step of the loop."""


class Store(variants.Varied):
    """Recovers when it is made. Raises ValueError for a setting that it does not know."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        settings = dict(config)
        settings.pop(variants.ABLATE_KEY, None)
        self.env = env
        self.space = mvcc.KeySpace()
        self._fsync = str(settings.pop("fsync", "batch"))
        self._each_alone = self._fsync == "always"
        self._segment_bytes = int(settings.pop("segment_bytes", journal.SEGMENT_BYTES))
        self._retain_revisions = int(settings.pop("retain_revisions", RETAIN_REVISIONS))
        self._retain_bytes = int(settings.pop("retain_bytes", RETAIN_BYTES))
        # A quarter more than is to be retained, so that it is not compacted after every transaction.
        self._most_revisions = self._retain_revisions * 5 // 4 if self._retain_revisions else sys.maxsize
        self._most_bytes = self._retain_bytes * 5 // 4 if self._retain_bytes else sys.maxsize
        self._progress_notify_s = float(settings.pop("progress_notify_s", PROGRESS_NOTIFY_S))
        if settings:
            raise ValueError(f"the store has no setting {', '.join(sorted(settings))}")
        self._journal = journal.Journal(env.disk, self._fsync, self._segment_bytes)
        self._stated = 0
        """Revision at which the run log last got a digest of the key space."""
        self.no_space = False
        """The alarm NOSPACE."""
        self.corrupt: JournalCorrupt | None = None
        """The alarm CORRUPT."""
        try:
            self._recover()
        except JournalCorrupt as error:
            self.corrupt = error
            env.log(StoreCorrupt(file=error.file, offset=error.offset, what=error.what))
        except OSError as error:
            env.exit(f"cannot recover: {error.strerror}")
        self._logged = self.space.revision
        """The last revision in the run log."""
        header = rpc_pb2.ResponseHeader(cluster_id=CLUSTER_ID, member_id=MEMBER_ID, raft_term=1)
        self.requests = operations.Requests(self.space, header)
        self.hub = watches.Hub(self.space, header, watches.MAX_QUEUE_BYTES)
        self._compactions: list[tuple[int, asyncio.Future[None] | None]] = []
        """Revisions, not journaled yet, and who waits for that."""
        self._unanswered: collections.deque[tuple[int, Settle | Answers]] = collections.deque()
        """Requests whose response is based on a revision that is not durable yet, by revision."""
        self._has_work = False
        """Something is to be journaled, or to be published."""
        self._idle: asyncio.Future[None] | None = None
        """Waits for work."""
        self._context = contextvars.copy_context()
        """Context of this actor."""
        self._call_soon = asyncio.get_running_loop().call_soon
        env.serve(rpc_pb2_grpc.add_KVServicer_to_server, _KV(self))
        env.serve(_add_watch_to_server, _Watch(self))
        env.serve(rpc_pb2_grpc.add_MaintenanceServicer_to_server, _Maintenance(self))

    async def run(self) -> None:
        self.env.spawn(self._notify_progress(), "progress notifications")
        self.env.ready()
        try:
            while True:
                if not self._has_work:
                    self._idle = asyncio.get_running_loop().create_future()
                    await self._idle
                    self._idle = None
                self._has_work = False
                await self._flush()
        finally:
            # An orderly end; a store that crashed logs nothing.
            if self._logged == self.space.revision and self.corrupt is None:
                self._log_state()

    def _work(self) -> None:
        """There is something to flush."""
        self._has_work = True
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def _notify_progress(self) -> None:
        while True:
            await self.env.clock.sleep(self._progress_notify_s, background=True)
            self.hub.notify_progress()

    # Durability

    def _recover(self) -> None:
        recovery = self._journal.recover()
        space = self.space
        if recovery.snapshot is not None:
            space.load(*recovery.snapshot)
        for revision, changes in recovery.records:
            if changes is None:
                if revision > space.compact_revision:
                    space.compact(revision)
                continue
            pairs = iter(changes)
            for key, value in zip(pairs, pairs, strict=True):
                assert key is not None
                if value is None:
                    space.delete(key)
                else:
                    space.put(key, value)
            space.commit()
            assert space.revision == revision
        if recovery.was_empty:
            self._log_state()
            return
        self._log_recovered(len(recovery.records), recovery.torn_bytes)

    def _log_recovered(self, replayed: int, torn_bytes: int) -> None:
        space = self.space
        self._stated = space.revision
        data = {"rev": space.revision, "replayed": replayed, "torn_bytes": torn_bytes}
        self.env.log(StoreRecovered(**data, key_count=len(space), digest=space.digest()))

    def _log_state(self) -> None:
        """Everything done so far is in the run log."""
        space = self.space
        self._stated = space.revision
        self.env.log(StoreState(rev=space.revision, key_count=len(space), digest=space.digest()))

    async def check_intact(self, context: grpc.aio.ServicerContext) -> None:
        """Refuses everything when the alarm CORRUPT is raised."""
        if self.corrupt is not None:
            await context.abort(*operations.corrupt(self.corrupt))

    async def settled(self) -> None:
        """Wait until everything done so far is durable. Raises :class:`NoSpace` if it was taken back instead."""
        if self._is_settled():
            return
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(error: NoSpace | None) -> None:
            if durable.done():
                return
            if error is None:
                durable.set_result(None)
            else:
                durable.set_exception(error)

        self._unanswered.append((self.space.revision, settle))
        await durable

    def _is_settled(self) -> bool:
        if self.hub.published == self.space.revision and not self._compactions:
            return True
        # _work, inlined.
        self._has_work = True
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        return False

    def begin_txn(self, request: rpc_pb2.TxnRequest | swaps.Swap, context: grpc.aio.ServicerContext) -> None:
        """A transaction whose caller is in memory: it is answered in a step of its own when it is durable."""
        if self.no_space:
            context.refuse(*operations.NO_SPACE)
            return
        if self.corrupt is not None:
            context.refuse(*operations.corrupt(self.corrupt))
            return
        try:
            requests = self.requests
            response: Any
            response = requests.swap(request) if isinstance(request, swaps.Swap) else requests.txn(request)
            answer = functools.partial(context.answer, response)
        except StoreError as error:
            # A refusal is based on the state too.
            answer = functools.partial(context.refuse, *operations.refusal(error))
        if self._is_settled():
            answer()
            return
        self._unanswered.append(
            (self.space.revision, (answer, functools.partial(context.refuse, *operations.NO_SPACE)))
        )

    def begin_range(self, request: rpc_pb2.RangeRequest, context: grpc.aio.ServicerContext) -> None:
        """A read, likewise."""
        if self.corrupt is not None:
            context.refuse(*operations.corrupt(self.corrupt))
            return
        try:
            answer = functools.partial(context.answer, self.requests.range(request))
        except StoreError as error:
            answer = functools.partial(context.refuse, *operations.refusal(error))
        if self._is_settled():
            answer()
            return
        # If what it saw is taken back it looks again.
        self._unanswered.append((self.space.revision, (answer, functools.partial(self.begin_range, request, context))))

    async def _flush(self) -> None:
        """Journal everything done since the last time (``always``: one transaction), then tell clients and watchers.

        One at a time.
        """
        space, hub = self.space, self.hub
        first, last = hub.published + 1, space.revision
        if self._each_alone and last > first:
            last = first
            self._work()
        records: list[journal.Record] = []
        events: list[Transaction] = []
        for revision in range(first, last + 1):
            flat: list[bytes | None] = []
            changes: list[list[Any]] = []
            for entry, _ in space.history.get(revision, ()):
                key, value = entry.key, entry.value
                flat += (key, value)
                changes.append(
                    [1 if value is None else 0, key.decode("utf-8", "backslashreplace"), value,
                     entry.create_revision, entry.version]
                )  # fmt: skip
            records.append((revision, flat))
            bases = self.requests.bases.pop(revision, None)
            event = Transaction(rev=revision, changes=changes)
            events.append(event if bases is None else Transaction(**event, bases=bases))
        # A new list in any case: what is added during the fsync belongs to the next flush.
        compactions, self._compactions = self._compactions, []
        if compactions:
            records += [(revision, None) for revision, _ in compactions]
        # The run log first: if the store is killed in between, the log has a transaction that the recovered store
        # lacks, and ``store.recovered`` says so. The other way round the log would lack what clients can see.
        env = self.env
        armed = env.crash_steps
        for transaction in events:
            env.log(transaction)
        self._logged = last
        unstated = last - self._stated
        if unstated >= STATE_REVISIONS and unstated >= len(space) and last == space.revision:
            self._log_state()
        if records:
            try:
                self._journal.append(records)
            except OSError as error:
                self._compactions = compactions + self._compactions
                self._take_back(error, first - 1)
                return
            if armed:
                env.step("after-append")
            await self._sync()
            if armed:
                env.step("after-fsync")
            if self._journal.is_full:
                await self._roll(last + 1)
        for revision, _ in compactions:
            env.log(StoreCompacted(rev=revision))
        if last == first and hub.groups:  # Hub.publish, inlined: nearly always one revision
            hub.publish_one(space.history.get(last, ()), last)
        else:
            hub.publish(last)
        if records and armed:
            env.step("after-publish")
        unanswered = self._unanswered
        while unanswered and unanswered[0][0] <= last:
            settle = unanswered.popleft()[1]
            if isinstance(settle, tuple):
                self._call_soon(settle[0], context=self._context)
            else:
                settle(None)
        for _, waiter in compactions:
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if compactions:
            self._write_snapshot_if_worthwhile()
        # Nothing to bound, as nearly always; the history is asked for its sizes and not for more.
        if len(space.history) > self._most_revisions or space.history_bytes > self._most_bytes:
            self._bound_history()

    async def _sync(self) -> None:
        try:
            await self._journal.sync()
        except OSError as error:
            self.env.exit(f"fsync failed: {error.strerror}")

    async def _roll(self, next_revision: int) -> None:
        """Without room for a new segment the journal goes on in the old one."""
        try:
            await self._journal.roll(next_revision)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self.env.exit(f"cannot begin a segment: {error.strerror}")

    def _take_back(self, error: OSError, revision: int) -> None:
        """What comes after that revision could not be appended."""
        if error.errno != errno.ENOSPC:
            self.env.exit(f"cannot append: {error.strerror}")
        self.space.revert(revision)
        self.requests.bases.clear()
        self._logged = revision
        self._log_recovered(0, 0)
        unanswered, self._unanswered = self._unanswered, collections.deque()
        for _, settle in unanswered:
            if isinstance(settle, tuple):
                self._call_soon(settle[1], context=self._context)
            else:
                settle(NoSpace())
        if not self.no_space:
            self.no_space = True
            self.env.log(StoreAlarm(alarm="NOSPACE", raised=True))
            self.env.spawn(self._wait_for_room(), "wait for room")

    async def _wait_for_room(self) -> None:
        while self.no_space:
            await self.env.clock.sleep(LOOK_FOR_ROOM_S, background=True)
            if self._journal.has_room():
                self.no_space = False
                self.env.log(StoreAlarm(alarm="NOSPACE", raised=False))
                self._work()

    async def compact(self, request: rpc_pb2.CompactionRequest) -> rpc_pb2.CompactionResponse:
        """The KV service's ``Compact``. What is not durable yet must not be compacted."""
        if self.hub.published < min(request.revision, self.space.revision):
            await self.settled()
        response = self.requests.compact(request)
        if request.revision > 0:
            journaled = asyncio.get_running_loop().create_future()
            self._compactions.append((request.revision, journaled))
            self._work()
            await journaled
        return response

    def _bound_history(self) -> None:
        """Compact down to what is to be retained."""
        space = self.space
        revisions, size = self._retain_revisions or len(space.history), self._retain_bytes or space.history_bytes
        target = min(space.excess(revisions, size), self.hub.published)
        if target > space.compact_revision:
            space.compact(target)
            self._compactions.append((target, None))
            self._work()

    def _write_snapshot_if_worthwhile(self) -> None:
        """A snapshot is worthwhile if it frees as many bytes as it takes."""
        space = self.space
        revision = space.compact_revision
        if self._journal.obsolete_bytes(revision) >= max(self._segment_bytes, space.live_bytes):
            changes = [entry for entry, _ in space.changes(revision)]
            try:
                self._journal.write_snapshot(journal.Snapshot(revision, space.state(), changes))
            except OSError as error:
                # Without room there is no snapshot, and the journal keeps its segments.
                if error.errno != errno.ENOSPC:
                    self.env.exit(f"cannot write a snapshot: {error.strerror}")


class _KV(rpc_pb2_grpc.KVServicer):  # type: ignore[misc]
    def __init__(self, store: Store) -> None:
        self._store = store

    @servers.begun_by(lambda kv: kv._store.begin_range)
    async def Range(self, request: rpc_pb2.RangeRequest, context: grpc.aio.ServicerContext) -> rpc_pb2.RangeResponse:
        while True:
            with contextlib.suppress(NoSpace):  # what it saw was taken back: look again
                return await self._answer(self._store.requests.range, request, context)

    async def Put(self, request: rpc_pb2.PutRequest, context: grpc.aio.ServicerContext) -> rpc_pb2.PutResponse:
        return await self._write(self._store.requests.put, request, context)

    async def DeleteRange(
        self, request: rpc_pb2.DeleteRangeRequest, context: grpc.aio.ServicerContext
    ) -> rpc_pb2.DeleteRangeResponse:
        return await self._write(self._store.requests.delete_range, request, context)

    @servers.begun_by(lambda kv: kv._store.begin_txn)
    async def Txn(self, request: rpc_pb2.TxnRequest, context: grpc.aio.ServicerContext) -> rpc_pb2.TxnResponse:
        return await self._write(self._store.requests.txn, request, context)

    async def Compact(
        self, request: rpc_pb2.CompactionRequest, context: grpc.aio.ServicerContext
    ) -> rpc_pb2.CompactionResponse:
        store = self._store
        await store.check_intact(context)
        try:
            response = await store.compact(request)
        except NoSpace:
            response = await context.abort(*operations.NO_SPACE)
        except StoreError as error:
            await store.settled()
            response = await context.abort(*operations.refusal(error))
        return response

    async def _write(
        self,
        do: Callable[[Asked], Answered],
        request: Asked,
        context: grpc.aio.ServicerContext,
    ) -> Answered:
        if self._store.no_space:
            await context.abort(*operations.NO_SPACE)
        try:
            return await self._answer(do, request, context)
        except NoSpace:
            await context.abort(*operations.NO_SPACE)
            raise

    async def _answer(
        self, do: Callable[[Asked], Answered], request: Asked, context: grpc.aio.ServicerContext
    ) -> Answered:
        store = self._store
        if store.corrupt is not None:
            await store.check_intact(context)
        try:
            response = do(request)
        except StoreError as error:
            # A refusal is based on the state too.
            await store.settled()
            await context.abort(*operations.refusal(error))
            raise
        await store.settled()
        return response


class _Maintenance(rpc_pb2_grpc.MaintenanceServicer):  # type: ignore[misc]
    def __init__(self, store: Store) -> None:
        self._store = store

    async def Status(self, request: rpc_pb2.StatusRequest, context: grpc.aio.ServicerContext) -> rpc_pb2.StatusResponse:
        store = self._store
        await store.check_intact(context)
        with contextlib.suppress(NoSpace):
            await store.settled()
        space = store.space
        response = rpc_pb2.StatusResponse(
            version=VERSION,
            dbSize=space.live_bytes + space.history_bytes,
            leader=MEMBER_ID,
            raftIndex=space.revision,
            raftTerm=1,
        )
        return store.requests.put_header(response)


class _Watch(rpc_pb2_grpc.WatchServicer):  # type: ignore[misc]
    def __init__(self, store: Store) -> None:
        self._store = store

    async def Watch(self, request_iterator: AsyncIterator[Message], context: grpc.aio.ServicerContext) -> None:
        store = self._store
        await store.check_intact(context)
        hub = store.hub
        stream = hub.open()
        pump = pumps.Pump(store.env.spawn, context, functools.partial(hub.next_response, stream), "watch responses")
        stream.wake = pump.wake

        def handle(request: rpc_pb2.WatchRequest) -> None:
            kind = request.WhichOneof("request_union")
            if kind == "create_request":
                hub.create(stream, request.create_request)
            elif kind == "cancel_request":
                hub.cancel(stream, request.cancel_request.watch_id)
            elif kind == "progress_request":
                hub.report_progress(stream)

        try:
            try:
                await pumps.each(context, handle, stream.pause)
            except Exception:
                if context.done():
                    return
                pump.stop()
                while (response := hub.next_response(stream)) is not None:
                    await context.write(response)
                hub.close(stream)
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "that was no WatchRequest")
            # The client has half-closed the call: the watches go on, as in etcd.
            await asyncio.get_running_loop().create_future()
        finally:
            pump.stop()
            hub.close(stream)


def _add_watch_to_server(servicer: _Watch, server: grpc.aio.Server) -> None:
    """As the generated function, but for responses that are serialised already."""
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.Watch, request_deserializer=rpc_pb2.WatchRequest.FromString, response_serializer=bytes
    )
    service = "etcdserverpb.Watch"
    handlers = {"Watch": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_registered_method_handlers(service, handlers)
