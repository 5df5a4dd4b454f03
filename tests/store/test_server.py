"""The actor: group commit, durability before everything else, recovery, the run log."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from kemu.emulated.store import server
from kemu.emulated.store.server import Store
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.host.files import FileDisk
from kemu.runtime.sim.disks import MemoryDisk
from tests.store import store_env
from tests.store.store_env import StoreEnv


class CountingDisk(MemoryDisk):
    """Counts, and refuses when it is full."""

    __slots__ = ("appends", "fsyncs", "full")

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0
        self.fsyncs = 0
        self.full = False

    def append(self, name: str, data: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.appends += 1
        super().append(name, data)

    def write(self, name: str, data: bytes, *, durably: bool = True) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(name, data)

    def fsync(self, name: str) -> None:
        self.fsyncs += 1
        super().fsync(name)


def put_request(name: str, value: bytes = b"v") -> Any:
    return rpc_pb2.PutRequest(key=name.encode(), value=value)


async def put(env: StoreEnv, name: str, value: bytes = b"v") -> int:
    return int((await rpc_pb2_grpc.KVStub(env.channel()).Put(put_request(name, value))).header.revision)


@pytest.mark.parametrize(("fsync", "appends", "fsyncs"), [("always", 20, 20), ("batch", 1, 1), ("none", 1, 0)])
async def test_what_arrives_together_is_journaled_together(fsync: str, appends: int, fsyncs: int) -> None:
    disk = CountingDisk()
    env = StoreEnv(disk)
    await store_env.start(env, fsync=fsync)
    disk.appends = disk.fsyncs = 0
    kv = rpc_pb2_grpc.KVStub(env.channel())
    responses = await asyncio.gather(*(kv.Put(put_request(f"k{i}")) for i in range(20)))
    assert [response.header.revision for response in responses] == list(range(2, 22))
    assert (disk.appends, disk.fsyncs) == (appends, fsyncs)
    await env.close()


@pytest.mark.parametrize("fsync", ["batch", "none"])
async def test_nothing_is_told_before_it_is_durable(fsync: str) -> None:
    """Neither acknowledged, nor logged, nor read, nor watched."""
    env = StoreEnv()
    store = Store(env, {"fsync": fsync})  # type: ignore[arg-type]
    channel = env.channel()
    kv = rpc_pb2_grpc.KVStub(channel)
    watch = rpc_pb2_grpc.WatchStub(channel).Watch()
    create = rpc_pb2.WatchCreateRequest(key=b"k")
    await watch.write(rpc_pb2.WatchRequest(create_request=create))
    assert (await watch.read()).created
    # The actor's own task does not run yet.
    calls = [
        asyncio.ensure_future(call)
        for call in (
            kv.Put(put_request("k")),
            kv.Range(rpc_pb2.RangeRequest(key=b"k")),
            kv.Put(rpc_pb2.PutRequest(key=b"x", ignore_value=True)),
            rpc_pb2_grpc.MaintenanceStub(channel).Status(rpc_pb2.StatusRequest()),
            watch.read(),
        )
    ]
    done, _ = await asyncio.wait(calls, timeout=0.05)
    assert not done
    assert not env.logged("store.txn")
    env.spawn(store.run(), "run")
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert results[0].header.revision == 2
    assert results[1].count == 1
    assert isinstance(results[2], grpc.aio.AioRpcError)
    assert results[4].events[0].kv.mod_revision == 2
    assert len(env.logged("store.txn")) == 1
    await env.close()


async def test_without_room_writes_are_refused_and_reads_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOOK_FOR_ROOM_S", 0.01)
    disk = CountingDisk()
    env = StoreEnv(disk)
    store = await store_env.start(env)
    await put(env, "a")
    kv = rpc_pb2_grpc.KVStub(env.channel())
    disk.full = True
    # The second is refused because the alarm is raised.
    for _ in range(2):
        with pytest.raises(grpc.aio.AioRpcError, match="etcdserver: mvcc: database space exceeded") as refused:
            await put(env, "b")
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        response = await kv.Range(rpc_pb2.RangeRequest(key=b"\0", range_end=b"\0"))
        assert [(pair.key, response.header.revision) for pair in response.kvs] == [(b"a", 2)]
    disk.full = False
    await asyncio.sleep(0.05)
    await put(env, "c")
    assert [alarm["raised"] for alarm in env.logged("store.alarm")] == [True, False]
    assert store.space.revision == 3
    await env.close()
    again = StoreEnv(disk)
    assert [entry.key for entry in (await store_env.start(again)).space.range(b"\0", b"\0")[0]] == [b"a", b"c"]
    await again.close()


async def test_the_run_log_has_each_revision_once() -> None:
    env = StoreEnv()
    await store_env.start(env)
    kv = rpc_pb2_grpc.KVStub(env.channel())
    await put(env, "/a", b"1")
    await put(env, "/a", b"2")
    await kv.Put(rpc_pb2.PutRequest(key=b"/\xff", value=b"\xff"))
    await kv.DeleteRange(rpc_pb2.DeleteRangeRequest(key=b"/", range_end=b"0"))
    await kv.DeleteRange(rpc_pb2.DeleteRangeRequest(key=b"/", range_end=b"0"))
    await kv.Compact(rpc_pb2.CompactionRequest(revision=3))
    assert env.events[0][0] == "store.state"
    assert env.events[1:] == [
        ("store.txn", {"rev": 2, "changes": [[0, "/a", b"1", 2, 1]]}),
        ("store.txn", {"rev": 3, "changes": [[0, "/a", b"2", 2, 2]]}),
        ("store.txn", {"rev": 4, "changes": [[0, "/\\xff", b"\xff", 4, 1]]}),
        ("store.txn", {"rev": 5, "changes": [[1, "/a", None, 0, 0], [1, "/\\xff", None, 0, 0]]}),
        ("store.compacted", {"rev": 3}),
    ]
    await env.close()


async def everything(env: StoreEnv, revision: int = 0) -> list[Any]:
    request = rpc_pb2.RangeRequest(key=b"\0", range_end=b"\0", revision=revision)
    return list((await rpc_pb2_grpc.KVStub(env.channel()).Range(request)).kvs)


async def events_since(env: StoreEnv, revision: int, count: int) -> list[Any]:
    watch = rpc_pb2_grpc.WatchStub(env.channel()).Watch()
    create = rpc_pb2.WatchCreateRequest(key=b"\0", range_end=b"\0", start_revision=revision)
    await watch.write(rpc_pb2.WatchRequest(create_request=create))
    events: list[Any] = []
    while len(events) < count:
        response = await watch.read()
        assert not response.canceled
        events += response.events
    watch.cancel()
    return events


async def test_a_restart_brings_everything_back_and_history_too() -> None:
    env = StoreEnv()
    await store_env.start(env, segment_bytes=500)
    for i in range(40):
        await put(env, f"k{i % 7}", b"%d" % i)
    kv = rpc_pb2_grpc.KVStub(env.channel())
    await kv.DeleteRange(rpc_pb2.DeleteRangeRequest(key=b"k0", range_end=b"k3"))
    await kv.Compact(rpc_pb2.CompactionRequest(revision=20))
    now, then, events = await everything(env), await everything(env, 30), await events_since(env, 20, 25)
    await env.close()

    again = StoreEnv(env.disk.crash(random.Random(1)))
    store = await store_env.start(again, segment_bytes=500)
    keys = {"keys": len(store.space), "digest": store.space.digest()}
    assert again.events == [("store.recovered", {"rev": 42, "replayed": 42, "torn_bytes": 0, **keys})]
    assert await everything(again) == now
    assert await everything(again, 30) == then
    assert await events_since(again, 20, 25) == events
    with pytest.raises(grpc.aio.AioRpcError, match="has been compacted"):
        await everything(again, 19)
    assert await put(again, "new") == 43
    assert store.space.compact_revision == 20
    await again.close()


async def test_a_new_store_does_not_say_that_it_has_recovered() -> None:
    env = StoreEnv()
    await store_env.start(env)
    assert env.events == [("store.state", {"rev": 1, "keys": 0, "digest": 0})]
    await env.close()


async def test_the_digest_of_the_keys_says_whether_two_stores_hold_the_same() -> None:
    digests = []
    for writes in (("a", b"1"), ("b", b"2")), (("b", b"2"), ("a", b"1")), (("a", b"2"), ("b", b"1")):
        env = StoreEnv()
        store = await store_env.start(env)
        for name, value in writes:
            await put(env, name, value)
        digests.append(store.space.digest())
        await env.close()
        again = StoreEnv(env.disk)
        assert (await store_env.start(again)).space.digest() == digests[-1]
        await again.close()
    assert len(set(digests)) == 3, "the same names and values, but not at the same revisions"


async def test_the_run_log_tells_what_transactions_compared_their_keys_with() -> None:
    env = StoreEnv()
    await store_env.start(env)
    for expected in (0, 2, 2):
        txn = rpc_pb2.TxnRequest()
        txn.compare.add(target=rpc_pb2.Compare.MOD, key=b"/a", mod_revision=expected)
        txn.success.add().request_put.key = b"/a"
        txn.success.add().request_put.key = b"/b"
        await rpc_pb2_grpc.KVStub(env.channel()).Txn(txn)
    assert [data["bases"] for data in env.logged("store.txn")] == [[0, None], [2, None]]
    await env.close()


class KilledDisk(MemoryDisk):
    """Notes what a process that is killed in the middle of an operation has left behind."""

    __slots__ = ("images", "last_logged")

    def __init__(self) -> None:
        super().__init__()
        self.images: list[tuple[int, dict[str, bytes]]] = []
        """Last revision in the run log, and the files."""
        self.last_logged: Callable[[], int] = lambda: 0

    def _note(self) -> None:
        self.images.append((self.last_logged(), {name: self.read(name) for name in self.list()}))

    def append(self, name: str, data: bytes) -> None:
        self._note()
        super().append(name, data)
        self._note()

    def fsync(self, name: str) -> None:
        super().fsync(name)
        self._note()


@pytest.mark.parametrize("fsync", ["always", "batch", "none"])
async def test_whenever_it_is_killed_the_log_knows_what_the_store_comes_back_with(fsync: str) -> None:
    disk = KilledDisk()
    env = StoreEnv(disk)
    disk.last_logged = lambda: max((data["rev"] for data in env.logged("store.txn")), default=1)
    await store_env.start(env, fsync=fsync)
    for i in range(5):
        await asyncio.gather(*(put(env, f"k{i}-{j}") for j in range(4)))
    await env.close()
    assert len(disk.images) >= 10
    for last_logged, files in disk.images:
        found = MemoryDisk()
        for name, content in files.items():
            found.write(name, content)
        again = Store(StoreEnv(found), {})  # type: ignore[arg-type]
        assert again.space.revision <= last_logged


async def test_a_torn_tail_is_reported() -> None:
    env = StoreEnv()
    await store_env.start(env)
    await put(env, "a")
    await env.close()
    env.disk.append(env.disk.list()[-1], b"\x07\0\0\0torn")
    again = StoreEnv(env.disk)
    await store_env.start(again)
    (recovered,) = again.logged("store.recovered")
    assert (recovered["rev"], recovered["replayed"], recovered["torn_bytes"]) == (2, 1, 8)
    assert await put(again, "b") == 3
    await again.close()


async def test_a_damaged_journal_is_refused() -> None:
    env = StoreEnv()
    await store_env.start(env)
    for i in range(3):
        await put(env, f"k{i}")
    await env.close()
    name = env.disk.list()[0]
    content = bytearray(env.disk.read(name))
    content[30] ^= 1
    env.disk.write(name, bytes(content))
    damaged = StoreEnv(env.disk)
    await store_env.start(damaged)
    (alarm,) = damaged.logged("store.corrupt")
    assert (alarm["file"], alarm["offset"]) == (name, 15)
    kv = rpc_pb2_grpc.KVStub(damaged.channel())
    for call in (
        kv.Range(rpc_pb2.RangeRequest(key=b"k1")),
        kv.Put(rpc_pb2.PutRequest(key=b"k1")),
        kv.Compact(rpc_pb2.CompactionRequest(revision=2)),
        rpc_pb2_grpc.WatchStub(damaged.channel()).Watch().read(),
    ):
        with pytest.raises(grpc.aio.AioRpcError, match=f"{name}: offset 15: ") as refused:
            await call
        assert refused.value.code() is grpc.StatusCode.DATA_LOSS
    await damaged.close()


async def test_history_snapshots_and_journal_stay_bounded() -> None:
    env = StoreEnv()
    settings = {"segment_bytes": 5_000, "retain_revisions": 100, "fsync": "none"}
    store = await store_env.start(env, **settings)
    for round_ in range(30):
        await asyncio.gather(*(put(env, f"k{i % 20}", b"%d-%d" % (round_, i) + b"x" * 50) for i in range(50)))
        assert len(store.space.history) <= 200
    sizes = [len(env.disk.read(name)) for name in env.disk.list()]
    assert sum(sizes) < 60_000
    assert any(name.startswith("snapshot") for name in env.disk.list())
    assert env.logged("store.compacted")
    revision = store.space.revision
    assert revision == 1501
    now, then = await everything(env), await everything(env, revision - 80)
    await env.close()

    again = StoreEnv(env.disk)
    store = await store_env.start(again, **settings)
    assert again.logged("store.recovered")[0]["replayed"] < 400
    assert await everything(again) == now
    assert await everything(again, revision - 80) == then
    assert await put(again, "k0") == revision + 1
    await again.close()


async def test_history_is_bounded_in_bytes() -> None:
    env = StoreEnv()
    store = await store_env.start(env, retain_bytes=100_000)
    for i in range(100):
        await put(env, f"k{i % 3}", b"x" * 10_000)
    assert store.space.history_bytes < 150_000
    await env.close()


async def test_crashes_with_many_writers_lose_nothing_that_was_acknowledged() -> None:
    """On the simulated disk, crash after crash, each in the middle of group commits."""
    for seed in range(15):
        chance = random.Random(seed)
        disk = MemoryDisk()
        acknowledged: dict[str, tuple[int, bytes]] = {}
        number = 0
        for _ in range(4):
            env = StoreEnv(disk)
            store = await store_env.start(env, segment_bytes=2_000, retain_revisions=50, fsync="batch")
            for name, (revision, value) in acknowledged.items():
                entry = store.space.get(name.encode())
                assert entry is not None
                assert entry.mod_revision >= revision
                assert entry.mod_revision > revision or entry.value == value

            writers = []
            for _ in range(chance.randrange(200)):
                number += 1
                writers.append(
                    asyncio.ensure_future(_write(env, f"k{chance.randrange(9)}", b"%d" % number, acknowledged))
                )
                if chance.random() < 0.2:
                    for _ in range(chance.randrange(6)):
                        await asyncio.sleep(0)
            disk = disk.crash(chance)
            for task in [*writers, *env.tasks]:
                task.cancel()
            await asyncio.gather(*writers, *env.tasks, return_exceptions=True)


async def _write(env: StoreEnv, name: str, value: bytes, acknowledged: dict[str, tuple[int, bytes]]) -> None:
    revision = await put(env, name, value)
    acknowledged[name] = max((revision, value), acknowledged.get(name, (0, b"")))


async def test_progress_notifications_come_by_themselves() -> None:
    env = StoreEnv()
    await store_env.start(env, progress_notify_s=0.02)
    watch = rpc_pb2_grpc.WatchStub(env.channel()).Watch()
    create = rpc_pb2.WatchCreateRequest(key=b"k", progress_notify=True)
    await watch.write(rpc_pb2.WatchRequest(create_request=create))
    assert (await watch.read()).created
    await put(env, "other")
    while (await watch.read()).header.revision != 2:
        pass
    watch.cancel()
    await env.close()


@pytest.mark.parametrize("over_grpc", [False, True])
async def test_a_watch_whose_client_goes_away_leaves_nothing_behind(over_grpc: bool) -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    env = StoreEnv(server=server)
    store = await store_env.start(env)
    await server.start()
    channel: Any = grpc.aio.insecure_channel(f"127.0.0.1:{port}") if over_grpc else env.channel()
    for half_closed in (False, True):
        watch = rpc_pb2_grpc.WatchStub(channel).Watch()
        await watch.write(rpc_pb2.WatchRequest(create_request=rpc_pb2.WatchCreateRequest(key=b"k")))
        assert (await watch.read()).created
        if half_closed:
            await watch.done_writing()
        assert store.hub._streams
        watch.cancel()
        for _ in range(500):
            if not store.hub._streams:
                break
            await asyncio.sleep(0.01)
        assert not store.hub._streams
        await put(env, "k")
    assert not store.hub.groups
    await asyncio.sleep(0)
    assert [task.get_name() for task in env.tasks if not task.done()] == ["run", "progress notifications"]
    await channel.close()
    await server.stop(None)
    await env.close()


async def test_over_grpc_what_is_no_request_ends_the_call() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    env = StoreEnv(server=server)
    store = await store_env.start(env)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.stream_stream("/etcdserverpb.Watch/Watch")()
        await call.write(b"\xff\xff\xff")
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert not store.hub._streams
    await server.stop(None)
    await env.close()


async def test_a_stream_that_is_not_read_is_bounded_and_others_go_on() -> None:
    env = StoreEnv()
    store = await store_env.start(env, retain_bytes=2 << 20)
    channel = env.channel()
    watch = rpc_pb2_grpc.WatchStub(channel).Watch()
    await watch.write(rpc_pb2.WatchRequest(create_request=rpc_pb2.WatchCreateRequest(key=b"k")))
    for _ in range(150):
        await put(env, "k", b"x" * 100_000)
    (stream,) = store.hub._streams
    assert stream.queued_bytes < 5 << 20
    last = 0
    while not (response := await watch.read()).canceled:
        for event in response.events:
            assert event.kv.mod_revision == (last or 1) + 1
            last = event.kv.mod_revision
    assert response.compact_revision > last
    await env.close()


async def test_a_client_that_asks_and_does_not_read_is_not_asked_for_more() -> None:
    env = StoreEnv()
    store = await store_env.start(env)
    watch = rpc_pb2_grpc.WatchStub(env.channel()).Watch()
    request = rpc_pb2.WatchRequest(create_request=rpc_pb2.WatchCreateRequest(key=b"k"))
    # Once the window of the stream is full the store can write no more.
    await watch.write(request)
    for _ in range(30):
        await put(env, "k", b"x" * 100_000)
    ask = rpc_pb2.WatchRequest()
    ask.progress_request.SetInParent()
    for _ in range(3_000):
        await watch.write(ask)
    await asyncio.sleep(0.05)
    (stream,) = store.hub._streams
    assert 1_000 < len(stream.queue) < 1_100
    answers = 0
    while answers < 3_000:
        answers += (await watch.read()).watch_id == -1
    watch.cancel()
    await env.close()


async def test_settings() -> None:
    with pytest.raises(ValueError, match="fsyncs"):
        Store(StoreEnv(), {"fsyncs": "always"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sometimes"):
        Store(StoreEnv(), {"fsync": "sometimes"})  # type: ignore[arg-type]


async def test_on_real_files(tmp_path: Path) -> None:
    for round_ in range(3):
        disk = FileDisk(tmp_path)
        env = StoreEnv(disk)
        await store_env.start(env, fsync="always", segment_bytes=300)
        for i in range(10):
            assert await put(env, f"k{i}") == 2 + 10 * round_ + i
        await env.close()
        disk.close()
