"""A small etcd in memory: enough of KV and Watch for an API server, with faults at command.

The tests of the API server's own rules run against it, so that they do not hang on the store; ``test_with_store.py``
runs against kemu's store.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Mapping
from typing import Any

import grpc

from kemu.messages.etcd import kv_pb2, rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import Env

COMPACTED = "etcdserver: mvcc: required revision has been compacted"
FUTURE = "etcdserver: mvcc: required revision is a future revision"

INSTANCES: list[Etcd] = []
"""Those that were started, newest last: tests reach into them."""


class Etcd(rpc_pb2_grpc.KVServicer, rpc_pb2_grpc.WatchServicer, rpc_pb2_grpc.MaintenanceServicer):
    """Keeps every version of every key."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.revision = 1
        self.compacted = 0
        self.log: list[tuple[int, bytes, bytes | None, int, int]] = []
        """(revision, key, value or None, create revision, version)."""
        self.now: dict[bytes, kv_pb2.KeyValue] = {}
        """What there is at the latest revision."""
        self.watchers: list[tuple[Any, asyncio.Event]] = []
        self.scans = 0
        """Ranges over more than one key whose values were read."""
        self.is_mute = False
        """Watches send nothing."""
        self.version = config.get("version", "3.6.12")
        self.events_after_s = 0.0
        """Events are sent so much later, and answers about progress before them, as by old versions of etcd."""
        self.answers_after_s = 0.0
        """Transactions are carried out at once and answered so much later."""
        INSTANCES.append(self)
        env.serve(rpc_pb2_grpc.add_KVServicer_to_server, self)
        env.serve(rpc_pb2_grpc.add_WatchServicer_to_server, self)
        env.serve(rpc_pb2_grpc.add_MaintenanceServicer_to_server, self)

    async def run(self) -> None:
        self.env.ready()
        await asyncio.Event().wait()

    # --- state ---------------------------------------------------------------------------------------------------

    def state(self, revision: int) -> dict[bytes, kv_pb2.KeyValue]:
        if revision == self.revision:
            return self.now
        found: dict[bytes, kv_pb2.KeyValue] = {}
        for at, key, value, created, version in self.log:
            if at > revision:
                break
            if value is None:
                found.pop(key, None)
            else:
                found[key] = kv_pb2.KeyValue(
                    key=key, value=value, create_revision=created, mod_revision=at, version=version
                )
        return found

    def change(self, changes: Mapping[bytes, bytes | None]) -> int:
        """Write (or, None, delete) keys in one revision."""
        self.revision += 1
        for key, value in changes.items():
            old = self.now.pop(key, None)
            created = old.create_revision if old is not None else self.revision
            version = (old.version if old is not None else 0) + 1
            self.log.append((self.revision, key, value, created, version))
            if value is not None:
                self.now[key] = kv_pb2.KeyValue(
                    key=key, value=value, create_revision=created, mod_revision=self.revision, version=version
                )
        for _, event in self.watchers:
            event.set()
        return self.revision

    def break_watches(self) -> None:
        """Cut all watch streams."""
        for task, _ in self.watchers:
            task.cancel()

    def forget_after(self, revision: int) -> None:
        """Lose writes, as a store that does not fsync loses them in a crash."""
        self.now = self.state(revision)
        self.log = [entry for entry in self.log if entry[0] <= revision]
        self.revision = revision
        self.break_watches()

    # --- KV ------------------------------------------------------------------------------------------------------

    async def Range(self, request: Any, context: Any) -> Any:
        if request.revision > self.revision:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, FUTURE)
        if request.revision and request.revision < self.compacted:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, COMPACTED)
        self.scans += bool(request.range_end) and not request.count_only
        return self._range(request)

    def _range(self, request: Any) -> Any:
        response = rpc_pb2.RangeResponse()
        response.header.revision = self.revision
        state = self.state(request.revision or self.revision)
        end = request.range_end
        keys = sorted(key for key in state if (request.key <= key < end if end else key == request.key))
        response.count = len(keys)
        if not request.count_only:
            keys = [key for key in keys if state[key].mod_revision >= request.min_mod_revision]
            shown = keys[: request.limit] if request.limit else keys
            response.kvs.extend([state[key] for key in shown])
            response.more = len(shown) < len(keys)
        return response

    async def Txn(self, request: Any, context: Any) -> Any:
        state = self.state(self.revision)
        response = rpc_pb2.TxnResponse()
        response.succeeded = True
        for compare in request.compare:
            assert compare.target == rpc_pb2.Compare.MOD
            current = state.get(compare.key)
            if (current.mod_revision if current is not None else 0) != compare.mod_revision:
                response.succeeded = False
        changes: dict[bytes, bytes | None] = {}
        for op in request.success if response.succeeded else request.failure:
            which = op.WhichOneof("request")
            result = response.responses.add()
            if which == "request_put":
                changes[op.request_put.key] = op.request_put.value
                result.response_put.SetInParent()
            elif which == "request_delete_range":
                changes[op.request_delete_range.key] = None
                result.response_delete_range.deleted = 1
            else:
                result.response_range.CopyFrom(self._range(op.request_range))
        if changes:
            self.change(changes)
        response.header.revision = self.revision
        if self.answers_after_s:
            await self.env.clock.sleep(self.answers_after_s)
        return response

    async def Compact(self, request: Any, context: Any) -> Any:
        if request.revision <= self.compacted:
            await context.abort(grpc.StatusCode.OUT_OF_RANGE, COMPACTED)
        self.compacted = request.revision
        return rpc_pb2.CompactionResponse()

    async def Status(self, request: Any, context: Any) -> Any:
        return rpc_pb2.StatusResponse(version=self.version)

    # --- Watch ---------------------------------------------------------------------------------------------------

    async def Watch(self, request_iterator: Any, context: Any) -> None:
        request = await context.read()
        create = request.create_request
        created = rpc_pb2.WatchResponse(created=True)
        created.header.revision = self.revision
        await context.write(created)
        if create.start_revision <= self.compacted:
            canceled = rpc_pb2.WatchResponse(canceled=True, compact_revision=self.compacted)
            await context.write(canceled)
            return
        news = asyncio.Event()
        mine = (asyncio.current_task(), news)
        self.watchers.append(mine)
        progress = self.env.spawn(self._answer_progress(context), "progress")
        at = bisect.bisect_left(self.log, create.start_revision, key=lambda entry: entry[0])
        try:
            while True:
                if self.events_after_s:
                    await self.env.clock.sleep(self.events_after_s)
                response = rpc_pb2.WatchResponse()
                response.header.revision = self.revision
                for revision, key, value, created_at, version in self.log[at:]:
                    if not create.key <= key < create.range_end:
                        continue
                    event = response.events.add(type=0 if value is not None else 1)
                    event.kv.key, event.kv.mod_revision = key, revision
                    if value is not None:
                        event.kv.value, event.kv.create_revision, event.kv.version = value, created_at, version
                at = len(self.log)
                if response.events and not self.is_mute:
                    await context.write(response)
                await news.wait()
                news.clear()
        finally:
            progress.cancel()
            self.watchers.remove(mine)

    async def _answer_progress(self, context: Any) -> None:
        while await context.read() is not grpc.aio.EOF:
            response = rpc_pb2.WatchResponse()
            response.header.revision = self.revision
            if not self.is_mute:
                await context.write(response)
