"""What a test of conformance has in its hands: one client, whichever server it talks to."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc


class Etcd:
    """A client. Every test has the keys with its own prefix to itself, and nothing more."""

    def __init__(self, channel: grpc.aio.Channel, name: str, prefix: bytes) -> None:
        self.name = name
        self.prefix = prefix
        self.kv = rpc_pb2_grpc.KVStub(channel)
        self.maintenance = rpc_pb2_grpc.MaintenanceStub(channel)
        self._watch = rpc_pb2_grpc.WatchStub(channel)
        self.watches: list[Watch] = []

    def key(self, name: str = "") -> bytes:
        return self.prefix + name.encode()

    @property
    def end(self) -> bytes:
        return self.prefix[:-1] + b"0"

    async def put(self, name: str, value: bytes = b"", **fields: Any) -> Any:
        return await self.kv.Put(rpc_pb2.PutRequest(key=self.key(name), value=value, **fields))

    async def delete(self, name: str, **fields: Any) -> Any:
        return await self.kv.DeleteRange(rpc_pb2.DeleteRangeRequest(key=self.key(name), **fields))

    async def range(self, name: str = "", end: bytes | None = None, **fields: Any) -> Any:
        """Without an end, of the whole prefix."""
        end = self.end if end is None and not name else end or b""
        return await self.kv.Range(rpc_pb2.RangeRequest(key=self.key(name), range_end=end, **fields))

    async def txn(self, **fields: Any) -> Any:
        return await self.kv.Txn(rpc_pb2.TxnRequest(**fields))

    async def compact(self, revision: int) -> Any:
        return await self.kv.Compact(rpc_pb2.CompactionRequest(revision=revision))

    async def revision(self) -> int:
        return int((await self.range(count_only=True)).header.revision)

    def watch(self) -> Watch:
        watch = Watch(self, self._watch.Watch())
        self.watches.append(watch)
        return watch


class Watch:
    """One call of Watch."""

    def __init__(self, etcd: Etcd, call: Any) -> None:
        self.etcd = etcd
        self.call = call
        self._reading: asyncio.Task[Any] | None = None

    async def create(self, name: str = "", end: bytes | None = None, **fields: Any) -> Any:
        """Returns the first response."""
        etcd = self.etcd
        end = etcd.end if end is None and not name else end or b""
        request = rpc_pb2.WatchRequest()
        request.create_request.CopyFrom(rpc_pb2.WatchCreateRequest(key=etcd.key(name), range_end=end, **fields))
        await self.call.write(request)
        return await self.read()

    async def cancel(self, watch_id: int) -> None:
        request = rpc_pb2.WatchRequest()
        request.cancel_request.watch_id = watch_id
        await self.call.write(request)

    async def ask_for_progress(self) -> None:
        request = rpc_pb2.WatchRequest()
        request.progress_request.SetInParent()
        await self.call.write(request)

    async def read(self, timeout: float = 5) -> Any:
        if self._reading is None:
            self._reading = asyncio.ensure_future(self.call.read())
        response = await asyncio.wait_for(asyncio.shield(self._reading), timeout)
        self._reading = None
        return response

    async def events(self, count: int) -> dict[int, list[Any]]:
        """So many events, in all, by watch id."""
        found: dict[int, list[Any]] = {}
        while count > 0:
            response = await self.read()
            assert response.events, response
            found.setdefault(response.watch_id, []).extend(response.events)
            count -= len(response.events)
        assert count == 0
        return found

    async def silence(self, seconds: float = 0.2) -> None:
        """Nothing comes."""
        with pytest.raises(asyncio.TimeoutError):
            await self.read(seconds)

    async def close(self) -> None:
        self.call.cancel()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
