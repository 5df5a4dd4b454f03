"""The store as an actor: etcd's KV, Watch and Maintenance over gRPC, in front of the key space and its journal.

Configuration: ``fsync`` (``always``, ``batch``, ``none``; default ``batch``), ``segment_bytes``,
``retain_revisions`` and ``retain_bytes`` (history beyond that is compacted by the store itself; 0: no limit),
``progress_notify_s``.

Group commit: a transaction is carried out when it arrives. Everything that arrived since the last fsync began is
journaled by one append and one fsync, and only then acknowledged and shown to watchers; meanwhile other requests are
carried out, for the next one. No response is sent before the state behind it is durable, so a client can never have
read something that is lost later. ``fsync: always`` appends and fsyncs each transaction alone; ``none`` never fsyncs.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from kemu.errors import StoreError
from kemu.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import Env
from kemu.runtime.rpc.ends import EOF
from kemu.store import journal, mvcc, operations, watch_streams, watches

VERSION = "3.6.0"
"""Of etcd, whose behaviour this is."""
CLUSTER_ID = 0x6B656D75
MEMBER_ID = 0x73746F7265
RETAIN_REVISIONS = 20_000
RETAIN_BYTES = 16 << 20
PROGRESS_NOTIFY_S = 600
"""As etcd's."""


class Store:
    """Recovers when it is made. Raises JournalCorrupt, and ValueError for a setting that it does not know."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        settings = dict(config)
        self.env = env
        self.space = mvcc.KeySpace()
        self._fsync = str(settings.pop("fsync", "batch"))
        self._each_alone = self._fsync == "always"
        self._segment_bytes = int(settings.pop("segment_bytes", journal.SEGMENT_BYTES))
        self._retain_revisions = int(settings.pop("retain_revisions", RETAIN_REVISIONS))
        self._retain_bytes = int(settings.pop("retain_bytes", RETAIN_BYTES))
        self._progress_notify_s = float(settings.pop("progress_notify_s", PROGRESS_NOTIFY_S))
        if settings:
            raise ValueError(f"the store has no setting {', '.join(sorted(settings))}")
        self._journal = journal.Journal(env.disk, self._fsync, self._segment_bytes)
        self._recover()
        header = rpc_pb2.ResponseHeader(cluster_id=CLUSTER_ID, member_id=MEMBER_ID, raft_term=1)
        self.requests = operations.Requests(self.space, header)
        self.hub = watches.Hub(self.space, header)
        self._compactions: list[journal.Record] = []
        """Not journaled yet."""
        self._unanswered: collections.deque[tuple[int, asyncio.Future[None]]] = collections.deque()
        """Requests whose response is based on a revision that is not durable yet, by revision."""
        self._work = asyncio.Event()
        env.serve(rpc_pb2_grpc.add_KVServicer_to_server, _KV(self))
        env.serve(_add_watch_to_server, _Watch(self))
        env.serve(rpc_pb2_grpc.add_MaintenanceServicer_to_server, _Maintenance(self))

    async def run(self) -> None:
        self.env.spawn(self._notify_progress(), "progress notifications")
        self.env.ready()
        while True:
            await self._work.wait()
            self._work.clear()
            await self._flush()

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
        if not recovery.was_empty:
            data = {"rev": space.revision, "replayed": len(recovery.records), "torn_bytes": recovery.torn_bytes}
            self.env.log("store.recovered", data)

    async def settled(self) -> None:
        """Wait until everything done so far is durable. If that fails, the actor ends with OSError."""
        revision = self.space.revision
        if self.hub.published == revision and not self._compactions:
            return
        self._work.set()
        durable = asyncio.get_running_loop().create_future()
        self._unanswered.append((revision, durable))
        await durable

    async def _flush(self) -> None:
        """Journal everything done since the last time (``always``: one transaction), then tell clients and watchers.

        One at a time. Raises OSError.
        """
        space, hub = self.space, self.hub
        first, last = hub.published + 1, space.revision
        if self._each_alone and last > first:
            last = first
            self._work.set()
        records: list[journal.Record] = []
        events: list[dict[str, Any]] = []
        for revision in range(first, last + 1):
            flat: list[bytes | None] = []
            changes: list[list[Any]] = []
            for entry, _ in space.changes(revision):
                key, value = entry.key, entry.value
                flat += (key, value)
                changes.append(
                    [1 if value is None else 0, key.decode("utf-8", "backslashreplace"), value,
                     entry.create_revision, entry.version]
                )  # fmt: skip
            records.append((revision, flat))
            events.append({"rev": revision, "changes": changes})
        compactions = self._compactions
        if compactions:
            self._compactions = []
            records += compactions
        # The run log first: if the store is killed in between, the log has a transaction that the recovered store
        # lacks, and ``store.recovered`` says so. The other way round the log would lack what clients can see.
        env = self.env
        for event in events:
            env.log("store.txn", event)
        if records:
            self._journal.append(records)
            await self._journal.sync()
            await self._journal.roll(last + 1)
        for revision, _ in compactions:
            env.log("store.compacted", {"rev": revision})
        hub.publish(last)
        unanswered = self._unanswered
        while unanswered and unanswered[0][0] <= last:
            durable = unanswered.popleft()[1]
            if not durable.done():
                durable.set_result(None)
        if compactions:
            self._write_snapshot_if_worthwhile()
        self._bound_history()

    async def compact(self, request: Any) -> Any:
        """Of the KV service. What is not durable yet must not be compacted."""
        if self.hub.published < min(request.revision, self.space.revision):
            await self.settled()
        response = self.requests.compact(request)
        if request.revision > 0:
            record = (request.revision, None)
            self._compactions.append(record)
            # The first time may be the end of a flush that had begun before.
            while record in self._compactions:
                await self.settled()
        return response

    def _bound_history(self) -> None:
        """Compact once there is a quarter more than is to be retained, and not after every transaction."""
        space = self.space
        revisions = self._retain_revisions or space.history_revisions
        size = self._retain_bytes or space.history_bytes
        if space.history_revisions > revisions + revisions // 4 or space.history_bytes > size + size // 4:
            target = min(space.excess(revisions, size), self.hub.published)
            if target > space.compact_revision:
                space.compact(target)
                self._compactions.append((target, None))
                self._work.set()

    def _write_snapshot_if_worthwhile(self) -> None:
        """A snapshot is worthwhile if it frees as many bytes as it takes."""
        space = self.space
        revision = space.compact_revision
        if self._journal.obsolete_bytes(revision) >= max(self._segment_bytes, space.live_bytes):
            changes = [entry for entry, _ in space.changes(revision)]
            self._journal.write_snapshot(journal.Snapshot(revision, space.state(), changes))


class _KV(rpc_pb2_grpc.KVServicer):  # type: ignore[misc]
    def __init__(self, store: Store) -> None:
        self._store = store

    async def Range(self, request: Any, context: Any) -> Any:
        return await self._answer(self._store.requests.range, request, context)

    async def Put(self, request: Any, context: Any) -> Any:
        return await self._answer(self._store.requests.put, request, context)

    async def DeleteRange(self, request: Any, context: Any) -> Any:
        return await self._answer(self._store.requests.delete_range, request, context)

    async def Txn(self, request: Any, context: Any) -> Any:
        return await self._answer(self._store.requests.txn, request, context)

    async def Compact(self, request: Any, context: Any) -> Any:
        store = self._store
        try:
            response = await store.compact(request)
        except StoreError as error:
            await store.settled()
            response = await context.abort(*operations.refusal(error))
        else:
            await store.settled()
        return response

    async def _answer(self, do: Callable[[Any], Any], request: Any, context: Any) -> Any:
        store = self._store
        try:
            response = do(request)
        except StoreError as error:
            # A refusal is based on the state too.
            await store.settled()
            response = await context.abort(*operations.refusal(error))
        else:
            await store.settled()
        return response


class _Maintenance(rpc_pb2_grpc.MaintenanceServicer):  # type: ignore[misc]
    def __init__(self, store: Store) -> None:
        self._store = store

    async def Status(self, request: Any, context: Any) -> Any:
        store = self._store
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

    async def Watch(self, request_iterator: Any, context: Any) -> None:
        store = self._store
        hub = store.hub
        stream = hub.open()
        reader = store.env.spawn(self._read(stream, context), "watch requests")
        try:
            while True:
                response = hub.next_response(stream)
                if response is not None:
                    await context.write(response)
                elif not stream.broken:
                    await stream.wait()
                elif context.done():
                    return
                else:
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "that was no WatchRequest")
        finally:
            hub.close(stream)
            reader.cancel()

    async def _read(self, stream: watch_streams.WatchStream, context: Any) -> None:
        """Reads the requests of the call. When the client half-closes it, the watches go on, as in etcd."""
        hub = self._store.hub
        while True:
            await stream.wait_for_room()
            try:
                request = await context.read()
            except Exception:
                # The call is over, or the request cannot be parsed: the writer of the stream will notice.
                stream.broken = True
                stream.wake()
                return
            if request is EOF:
                return
            kind = request.WhichOneof("request_union")
            if kind == "create_request":
                hub.create(stream, request.create_request)
            elif kind == "cancel_request":
                hub.cancel(stream, request.cancel_request.watch_id)
            elif kind == "progress_request":
                hub.report_progress(stream)


def _add_watch_to_server(servicer: _Watch, server: Any) -> None:
    """As the generated function, but for responses that are serialised already."""
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.Watch, request_deserializer=rpc_pb2.WatchRequest.FromString, response_serializer=_as_it_is
    )
    service = "etcdserverpb.Watch"
    handlers = {"Watch": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_registered_method_handlers(service, handlers)


def _as_it_is(response: bytes) -> bytes:
    return response
