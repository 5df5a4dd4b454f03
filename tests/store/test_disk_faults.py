"""The store on a disk that fails: what it answers, what it keeps, what it finds when it starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import grpc
import pytest

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim

T = TypeVar("T")

Main = Callable[[SimRuntime, Any], Coroutine[Any, Any, T]]
SEEDS = range(20)


def run(main: Main[T], seed: int = 1, timing: Mapping[str, Any] | None = None, **config: Any) -> tuple[T, Recorder]:
    record = Recorder()

    async def driver(runtime: SimRuntime) -> T:
        await runtime.launch([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "batch", **config})])
        await runtime.begin()
        return await main(runtime, rpc_pb2_grpc.KVStub(runtime.env("user").dial("store")))

    return sim(driver, seed=seed, sink=record, timing=timing or {}, begin=False), record


async def put(kv: Any, key: str, value: bytes = b"v" * 300) -> int:
    """Returns the revision."""
    response = await kv.Put(rpc_pb2.PutRequest(key=key.encode(), value=value))
    return int(response.header.revision)


async def keys(kv: Any) -> list[str]:
    response = await kv.Range(rpc_pb2.RangeRequest(key=b"\0", range_end=b"\0"))
    return [pair.key.decode() for pair in response.kvs]


def logged(record: Recorder, kind: str) -> list[Mapping[str, Any]]:
    return [data for _, _, found, data in record.events if found == kind]


async def inject(runtime: SimRuntime, what: str, **parameters: Any) -> None:
    await runtime.inject("f", what, {"actor": ["store"], **parameters})


async def come_back(runtime: SimRuntime) -> None:
    await runtime.crash("store")
    await runtime.restart("store")


@pytest.mark.parametrize("fsync_s", [0, 0.002])
def test_a_full_disk_refuses_and_recovers(fsync_s: float) -> None:
    async def main(runtime: SimRuntime, kv: Any) -> list[str]:
        await put(kv, "before")
        await inject(runtime, "diskFull")
        writes = await asyncio.gather(*(put(kv, f"full-{i}") for i in range(4)), return_exceptions=True)
        for error in writes:
            assert isinstance(error, grpc.aio.AioRpcError)
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await keys(kv) == ["before"]
        assert await runtime.heal("f") >= 1
        await runtime.clock.sleep(1.1)
        assert await put(kv, "after") == 3
        await come_back(runtime)
        return await keys(kv)

    left, record = run(main, timing={"fsync": fsync_s})
    assert left == ["after", "before"]
    assert [alarm["raised"] for alarm in logged(record, "store.alarm")] == [True, False]
    assert logged(record, "chaos.hit") == [{"id": "f", "actor": "store"}]


def test_a_full_disk_stays_full_when_the_store_starts_again() -> None:
    async def main(runtime: SimRuntime, kv: Any) -> None:
        await put(kv, "before")
        await inject(runtime, "diskFull")
        await come_back(runtime)
        assert await keys(kv) == ["before"]
        with pytest.raises(grpc.aio.AioRpcError, match="database space exceeded"):
            await put(kv, "full")

    run(main)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_failed_fsync_nothing_is_acknowledged_that_is_not_durable(seed: int) -> None:
    """Fsyncgate: the next fsync succeeds, and writes nothing of what the failed one should have written."""

    async def main(runtime: SimRuntime, kv: Any) -> None:
        acknowledged = {"before"}
        await put(kv, "before")
        await inject(runtime, "failingFsync")
        error = (await asyncio.gather(put(kv, "failed"), return_exceptions=True))[0]
        assert isinstance(error, grpc.aio.AioRpcError)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        await runtime.clock.sleep(3)
        await runtime.heal("f")
        await runtime.clock.sleep(1.5)
        await put(kv, "after")
        await come_back(runtime)
        acknowledged.add("after")
        assert acknowledged == set(await keys(kv))

    _, record = run(main, seed)
    exits = logged(record, "actor.exited")
    assert exits[0] == {"why": "fsync failed: Input/output error"}
    # Its successors cannot make durable what they have recovered, either.
    assert exits[1] == {"why": "cannot recover: Input/output error"}


def test_a_slow_disk_delays_acknowledgements_and_nothing_else() -> None:
    async def main(runtime: SimRuntime, kv: Any) -> list[float]:
        await put(kv, "before")
        await inject(runtime, "slowDisk", fsync=2.0)
        begun = runtime.clock.now_ns()
        times = []
        assert await keys(kv) == ["before"]
        times.append((runtime.clock.now_ns() - begun) / 1e9)
        await put(kv, "slow")
        times.append((runtime.clock.now_ns() - begun) / 1e9)
        await runtime.heal("f")
        await put(kv, "fast")
        times.append((runtime.clock.now_ns() - begun) / 1e9)
        return times

    assert run(main)[0] == pytest.approx([0.002, 2.004, 2.006])


def test_torn_writes_are_cut_off() -> None:
    torn = 0
    for seed in SEEDS:

        async def main(runtime: SimRuntime, kv: Any) -> list[str]:
            await put(kv, "before")
            await inject(runtime, "tornWrite")
            crashed = asyncio.ensure_future(runtime.crash("store", "mid-write"))
            with pytest.raises(grpc.aio.AioRpcError):
                await put(kv, "torn")
            await crashed
            await runtime.heal("f")
            await runtime.restart("store")
            await put(kv, "after")
            return await keys(kv)

        left, record = run(main, seed)
        assert left == ["after", "before"]
        torn += logged(record, "store.recovered")[0]["torn_bytes"] > 0
    assert torn == len(SEEDS)


@pytest.mark.parametrize(("what", "parameters"), [("bitRot", {}), ("lostSectors", {"sectors": 2.0})])
def test_damage_is_found_at_the_next_start_and_nothing_is_served(what: str, parameters: Mapping[str, Any]) -> None:
    """But for sectors of the last frame, which look like a write that a crash has cut off."""
    found = lost = 0
    for seed in SEEDS:

        async def main(runtime: SimRuntime, kv: Any) -> list[str]:
            for i in range(20):
                await put(kv, f"k{i}")
            await inject(runtime, what, **parameters)
            # As long as it runs it does not read its journal.
            assert len(await keys(kv)) == 20
            await come_back(runtime)
            try:
                return await keys(kv)
            except grpc.aio.AioRpcError as error:
                return [] if error.code() is grpc.StatusCode.DATA_LOSS else [error.code().name]

        left, record = run(main, seed)
        corrupt = logged(record, "store.corrupt")
        if corrupt:
            assert not left
            assert corrupt[0]["file"].startswith("journal-")
            found += 1
        else:
            assert 0 < len(left) < 20
            lost += 1
    assert found >= len(SEEDS) - 4
    assert what != "bitRot" or not lost


def test_a_lost_rename_loses_a_segment() -> None:
    """A segment that is not in the directory is missing without a trace; kemu's check of acknowledged writes tells."""
    fates = set()
    for seed in SEEDS:

        async def main(runtime: SimRuntime, kv: Any) -> int:
            await put(kv, "before")
            await inject(runtime, "lostRenames")
            for i in range(4):
                await put(kv, f"k{i}")
            await come_back(runtime)
            return len(await keys(kv))

        fates.add(run(main, seed, segment_bytes=600)[0])
    assert max(fates) < 5
    assert len(fates) > 1


def test_a_lost_rename_of_a_snapshot_is_no_loss() -> None:
    async def main(runtime: SimRuntime, kv: Any) -> int:
        for _ in range(12):
            await put(kv, "k")
        await inject(runtime, "lostRenames")
        await kv.Compact(rpc_pb2.CompactionRequest(revision=12))
        await come_back(runtime)
        response = await kv.Range(rpc_pb2.RangeRequest(key=b"k"))
        return int(response.kvs[0].version)

    assert {run(main, seed, segment_bytes=600)[0] for seed in SEEDS} == {12}


def test_a_restored_backup_is_the_past() -> None:
    async def main(runtime: SimRuntime, kv: Any) -> list[str]:
        await put(kv, "before")
        await inject(runtime, "restore")
        assert await put(kv, "after") == 3
        await runtime.crash("store")
        await runtime.heal("f")
        await runtime.restart("store")
        assert await put(kv, "other") == 3
        return await keys(kv)

    assert run(main)[0] == ["before", "other"]


@pytest.mark.parametrize("step", ["after-append", "after-fsync", "after-publish"])
@pytest.mark.parametrize("fsync", ["batch", "always", "none"])
def test_a_crash_at_each_step_leaves_what_that_step_has_done(step: str, fsync: str) -> None:
    survived = set()
    for seed in SEEDS:

        async def main(runtime: SimRuntime, kv: Any) -> bool:
            await put(kv, "before")
            crashed = asyncio.ensure_future(runtime.crash("store", step))
            with pytest.raises(grpc.aio.AioRpcError):
                await put(kv, "new")
            await crashed
            await runtime.restart("store")
            return "new" in await keys(kv)

        survived.add(run(main, seed, fsync=fsync)[0])
    is_durable = fsync != "none" and step != "after-append"
    assert survived == ({True} if is_durable else {True, False})
