"""The store by itself: acknowledged writes on a real disk, and how far one event fans out.

Over the in-memory channel on an ordinary event loop, as between actors of one Ray cell: what is measured is the store,
its journal and the disk, not sockets.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.host.hosts import Host

_KV: Any = rpc_pb2_grpc.KVStub
_Watch: Any = rpc_pb2_grpc.WatchStub

IN_FLIGHT = 64
VALUE = b"x" * 500
"""About a small pod."""


def store(**settings: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="kemu-bench-", dir=Path.cwd()) as folder:
        return asyncio.run(_run(Path(folder), settings))


async def _run(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    failures: list[str] = []
    host = Host(asyncio.get_running_loop(), lambda *_: None, lambda name, text: failures.append(text))
    host.configure(seed=1, directory=folder, addresses={})
    try:
        if "writes" in settings:
            await host.start([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": settings["fsync"]})])
            figures = await _write(host.env("bench"), settings["writes"])
        else:
            await host.start([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "none"})])
            figures = await _fan_out(host.env("bench"), settings["watchers"], settings["events"])
    finally:
        await host.close()
    if failures:
        raise SystemExit(failures[0])
    return figures


def _put(number: int, keys: int) -> rpc_pb2.TxnRequest:
    """As the API server writes: a transaction that compares and puts."""
    key = b"/registry/pods/default/pod-%d" % (number % keys)
    request = rpc_pb2.TxnRequest()
    compare = request.compare.add()
    compare.target, compare.result, compare.key = rpc_pb2.Compare.MOD, rpc_pb2.Compare.GREATER, key
    compare.mod_revision = -1
    put = request.success.add().request_put
    put.key, put.value = key, VALUE
    return request


async def _write(env: Env, writes: int) -> dict[str, Any]:
    stub = _KV(env.dial("store"))
    numbers = iter(range(writes))

    async def writer() -> None:
        for number in numbers:
            answer = await stub.Txn(_put(number, 5000))
            assert answer.succeeded

    begun = time.perf_counter()
    await asyncio.gather(*(writer() for _ in range(IN_FLIGHT)))
    taken = time.perf_counter() - begun
    return {
        "in_flight": IN_FLIGHT,
        "writes_per_s": round(writes / taken),
        "us_per_write": round(taken / writes * 1e6, 1),
    }


async def _fan_out(env: Env, watchers: int, events: int) -> dict[str, Any]:
    stub = _Watch(env.dial("store"))
    ready = 0
    all_ready = asyncio.Event()

    async def watch() -> None:
        nonlocal ready
        call = stub.Watch()
        request = rpc_pb2.WatchRequest()
        request.create_request.key = b"/registry/pods/"
        request.create_request.range_end = b"/registry/pods0"
        await call.write(request)
        left = events
        while left:
            response = await call.read()
            if response.created:
                ready += 1
                if ready == watchers:
                    all_ready.set()
            left -= len(response.events)
        call.cancel()

    tasks = [env.spawn(watch(), f"watcher {n}") for n in range(watchers)]
    await all_ready.wait()
    writer = _KV(env.dial("store"))
    begun = time.perf_counter()
    numbers = iter(range(events))

    async def write() -> None:
        for number in numbers:
            await writer.Txn(_put(number, events))

    await asyncio.gather(*(write() for _ in range(IN_FLIGHT)), *tasks)
    taken = time.perf_counter() - begun
    return {"wall_s": round(taken, 3), "deliveries_per_s": round(watchers * events / taken)}
