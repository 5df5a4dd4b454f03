"""Appending and fsyncing are separate in time: what arrives in between, and what a crash in between leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import grpc
import pytest

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim

T = TypeVar("T")

FSYNC_S = 0.010
LATENCY_S = 0.001


def run(main: Callable[[SimRuntime, Any], Coroutine[Any, Any, T]], fsync: str, seed: int = 1) -> tuple[T, Recorder]:
    record = Recorder()

    async def driver(runtime: SimRuntime) -> T:
        await runtime.launch([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": fsync})])
        await runtime.begin()
        return await main(runtime, rpc_pb2_grpc.KVStub(runtime.env("user").dial("store")))

    timing = {"fsync": FSYNC_S, "storeLatency": LATENCY_S}
    return sim(driver, seed=seed, sink=record, timing=timing, begin=False), record


async def put(runtime: SimRuntime, kv: Any, key: bytes, at_s: float) -> float:
    """Returns when it was acknowledged."""
    await runtime.clock.sleep_until_ns(round(at_s * SECOND_NS))
    await kv.Put(rpc_pb2.PutRequest(key=key, value=b"v"))
    return runtime.clock.now_ns() / SECOND_NS


@pytest.mark.parametrize(
    ("fsync", "acknowledged"),
    [
        # The first has an fsync of its own; those that come while it lasts share the next one.
        ("batch", [0.012, 0.022, 0.022, 0.022]),
        ("always", [0.012, 0.022, 0.032, 0.042]),
        ("none", [0.002, 0.003, 0.005, 0.008]),
    ],
)
def test_what_arrives_during_an_fsync_waits_for_the_next_one(fsync: str, acknowledged: list[float]) -> None:
    async def main(runtime: SimRuntime, kv: Any) -> list[float]:
        times = (0.0, 0.001, 0.003, 0.006)
        return list(await asyncio.gather(*(put(runtime, kv, b"k%d" % i, at) for i, at in enumerate(times))))

    assert run(main, fsync)[0] == pytest.approx(acknowledged)


@pytest.mark.parametrize("fsync", ["batch", "always"])
def test_nobody_sees_what_is_not_durable(fsync: str) -> None:
    """A reader that comes during the fsync is answered after it; a watcher too."""

    async def main(runtime: SimRuntime, kv: Any) -> list[float]:
        seen: list[float] = []
        call = rpc_pb2_grpc.WatchStub(runtime.env("watcher").dial("store")).Watch()
        await call.write(rpc_pb2.WatchRequest(create_request=rpc_pb2.WatchCreateRequest(key=b"k")))
        await call.read()
        begun = runtime.clock.now_ns() / SECOND_NS

        async def read() -> None:
            await runtime.clock.sleep(0.005)
            assert (await kv.Range(rpc_pb2.RangeRequest(key=b"k"))).count == 1
            seen.append(runtime.clock.now_ns() / SECOND_NS - begun)

        async def watch() -> None:
            assert (await call.read()).events
            seen.append(runtime.clock.now_ns() / SECOND_NS - begun)

        await asyncio.gather(put(runtime, kv, b"k", begun), read(), watch())
        return seen

    durable = 2 * LATENCY_S + FSYNC_S
    assert run(main, fsync)[0] == pytest.approx([durable, durable])


@pytest.mark.parametrize("fsync", ["batch", "always"])
def test_a_crash_during_the_fsync_tears_what_nobody_was_told_of(fsync: str) -> None:
    torn = 0
    for seed in range(12):

        async def main(runtime: SimRuntime, kv: Any) -> int:
            await put(runtime, kv, b"first", 0.0)
            writes = [asyncio.ensure_future(put(runtime, kv, b"second-%d" % i, 0.0)) for i in range(4)]
            await runtime.clock.sleep(0.006)
            await runtime.crash("store")
            for result in await asyncio.gather(*writes, return_exceptions=True):
                assert isinstance(result, grpc.aio.AioRpcError)
            await runtime.restart("store")
            response = await kv.Range(rpc_pb2.RangeRequest(key=b"\0", range_end=b"\0"))
            assert response.kvs[0].key == b"first"
            return len(response.kvs)

        _, record = run(main, fsync, seed)
        (recovered,) = [data for _, _, kind, data in record.events if kind == "store.recovered"]
        torn += recovered["torn_bytes"] > 0
    assert torn >= 2


@pytest.mark.parametrize("fsync", ["batch", "always"])
def test_a_compaction_is_durable_when_it_is_answered(fsync: str) -> None:
    async def main(runtime: SimRuntime, kv: Any) -> int:
        for _ in range(5):
            await put(runtime, kv, b"k", 0.0)
        # Its record must not count as written by the flush that is under way when it comes.
        late = asyncio.ensure_future(put(runtime, kv, b"k", 0.0))
        await runtime.clock.sleep(0.004)
        await kv.Compact(rpc_pb2.CompactionRequest(revision=4))
        await runtime.crash("store")
        await asyncio.gather(late, return_exceptions=True)
        await runtime.restart("store")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await kv.Range(rpc_pb2.RangeRequest(key=b"k", revision=3))
        assert refused.value.code() is grpc.StatusCode.OUT_OF_RANGE
        return 0

    run(main, fsync)
