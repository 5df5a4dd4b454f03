"""The store in the simulated runtime: crashes under load, watches that go on, the same run twice."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim

STORE = ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "batch", "segment_bytes": 3_000})
WRITERS = 8


class Watcher:
    """Follows everything, resuming where it was cut off."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.revisions: list[int] = []

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except grpc.aio.AioRpcError:
                await self.env.clock.sleep(0.01)

    async def _follow(self) -> None:
        call = rpc_pb2_grpc.WatchStub(self.env.dial("store")).Watch()
        start = (self.revisions[-1] if self.revisions else 1) + 1
        create = rpc_pb2.WatchCreateRequest(key=b"\0", range_end=b"\0", start_revision=start)
        await call.write(rpc_pb2.WatchRequest(create_request=create))
        while (response := await call.read()) is not grpc.aio.EOF:
            assert not response.canceled
            self.revisions += [event.kv.mod_revision for event in response.events]


async def write(env: Env, writer: int, acknowledged: dict[int, bytes]) -> None:
    kv = rpc_pb2_grpc.KVStub(env.dial("store"))
    for i in range(40):
        value = b"%d-%d" % (writer, i)
        try:
            response = await kv.Put(rpc_pb2.PutRequest(key=b"k%d" % writer, value=value))
        except grpc.aio.AioRpcError:
            await env.clock.sleep(0.005)
        else:
            acknowledged[response.header.revision] = value


def run(seed: int) -> tuple[Recorder, dict[int, bytes], list[int]]:
    record = Recorder()
    acknowledged: dict[int, bytes] = {}

    async def main(runtime: SimRuntime) -> list[int]:
        await runtime.launch([STORE])
        await runtime.begin()
        watcher = Watcher(runtime.env("watcher"))
        watcher.env.spawn(watcher.run(), "watch")
        env = runtime.env("user")
        writers = asyncio.gather(*(write(env, i, acknowledged) for i in range(WRITERS)))
        for _ in range(4):
            await runtime.clock.sleep(0.0117)
            await runtime.crash("store")
            await runtime.clock.sleep(0.003)
            await runtime.restart("store")
        await writers
        await runtime.clock.sleep(1)
        return watcher.revisions

    timing = {"storeLatency": {"uniform": {"min": 0.0002, "max": 0.002}}}
    revisions = sim(main, seed=seed, sink=record, timing=timing, begin=False)
    return record, acknowledged, revisions


@pytest.mark.parametrize("seed", range(5))
def test_crashes_lose_no_acknowledged_write_and_no_event(seed: int) -> None:
    record, acknowledged, revisions = run(seed)
    txns: dict[int, Any] = {}
    recovered = 0
    last = 1
    for _, _, kind, data in record.events:
        if kind == "store.txn":
            assert data["rev"] == last + 1
            last = data["rev"]
            txns[last] = data["changes"]
        elif kind == "store.recovered":
            recovered += 1
            # With fsync nothing that was logged is lost.
            assert data["rev"] == last
    assert recovered == 4
    assert len(acknowledged) > 100
    for revision, value in acknowledged.items():
        ((_, _, stored, _, _),) = txns[revision]
        assert stored == value
    assert revisions == list(range(2, last + 1))


def test_the_same_seed_gives_the_same_log() -> None:
    first, second, other = run(7)[0], run(7)[0], run(8)[0]
    assert first.events == second.events
    assert first.events != other.events
