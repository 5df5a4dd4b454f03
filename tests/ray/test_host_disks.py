"""The store on real files that fail, in a host of its own: the same faults as in the simulation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import ActorSpec
from kemu.runtime.host.hosts import Host

Events = list[tuple[str, Mapping[str, Any]]]


def run(directory: Path, main: Callable[[Host, Any], Awaitable[None]]) -> Events:
    """Returns what was logged."""
    events: Events = []

    async def drive() -> None:
        loop = asyncio.get_running_loop()
        host = Host(loop, lambda _t, _a, kind, data: events.append((kind, data)), lambda name, text: pytest.fail(text))
        host.on_exit = lambda name: None
        host.configure(seed=1, directory=directory, addresses={})
        host.clock.configure(epoch_unix_ns=1, speed=1.0, epoch_unix_s=0)
        try:
            await host.start([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "batch"})])
            kv = rpc_pb2_grpc.KVStub(host.env("user").dial("store"))
            await kv.Put(rpc_pb2.PutRequest(key=b"before", value=b"v" * 2000))
            await main(host, kv)
        finally:
            await host.close()

    asyncio.run(drive())
    return events


def begin(host: Host, what: str, **parameters: Any) -> None:
    host.handlers.begin("f", what, {"actor": ["store"], **parameters})


async def put(kv: Any, key: bytes) -> grpc.StatusCode | None:
    try:
        await kv.Put(rpc_pb2.PutRequest(key=key, value=b"v" * 2000))
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None


def found(directory: Path) -> tuple[list[bytes], Events]:
    """What a store finds there that starts anew."""
    keys: list[bytes] = []

    async def main(host: Host, kv: Any) -> None:
        answer = await kv.Range(rpc_pb2.RangeRequest(key=b"\0", range_end=b"\0"))
        keys.extend(pair.key for pair in answer.kvs)

    return keys, run(directory, main)


def test_a_full_disk(tmp_path: Path) -> None:
    async def main(host: Host, kv: Any) -> None:
        begin(host, "diskFull")
        assert await put(kv, b"full") is grpc.StatusCode.RESOURCE_EXHAUSTED
        host.heal("f")
        await asyncio.sleep(1.2)
        assert await put(kv, b"after") is None

    events = run(tmp_path, main)
    assert ("chaos.hit", {"id": "f", "actor": "store"}) in events
    assert found(tmp_path)[0] == [b"after", b"before"]


def test_a_failing_fsync_ends_the_store(tmp_path: Path) -> None:
    async def main(host: Host, kv: Any) -> None:
        begin(host, "failingFsync")
        assert await put(kv, b"failed") is grpc.StatusCode.UNAVAILABLE
        assert "store" not in host.residents

    assert ("actor.exited", {"why": "fsync failed: Input/output error"}) in run(tmp_path, main)


def test_a_slow_disk(tmp_path: Path) -> None:
    async def main(host: Host, kv: Any) -> None:
        begin(host, "slowDisk", fsync=0.3)
        begun = asyncio.get_running_loop().time()
        assert await put(kv, b"slow") is None
        assert asyncio.get_running_loop().time() - begun >= 0.3

    run(tmp_path, main)


def test_a_torn_write(tmp_path: Path) -> None:
    async def main(host: Host, kv: Any) -> None:
        begin(host, "tornWrite")
        # The two reach a cell one after the other.
        assert await put(kv, b"between") is None
        host.arm("g", "store", "mid-write")
        assert await put(kv, b"torn") is grpc.StatusCode.UNAVAILABLE
        assert "store" not in host.residents

    run(tmp_path, main)
    keys, events = found(tmp_path)
    assert keys == [b"before", b"between"]
    (recovered,) = [data for kind, data in events if kind == "store.recovered"]
    assert recovered["torn_bytes"] > 0


@pytest.mark.parametrize("what", ["bitRot", "lostSectors"])
def test_damage(what: str, tmp_path: Path) -> None:
    async def main(host: Host, kv: Any) -> None:
        for i in range(10):
            assert await put(kv, b"k%d" % i) is None
        host.handlers.begin("g", what, {"actor": ["store"], "sectors": 1.0})

    assert ("chaos.hit", {"id": "g", "actor": "store"}) in run(tmp_path, main)
    with pytest.raises(grpc.aio.AioRpcError, match="corrupt cluster: journal-"):
        found(tmp_path)
