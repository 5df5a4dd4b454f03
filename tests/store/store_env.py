"""An Env for the store alone: a disk in memory, a log that can be read, an ordinary event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NoReturn

import grpc

from kemu.emulated.store.server import Store
from kemu.runtime.host.files import FileDisk
from kemu.runtime.rpc.clients import MemoryChannel
from kemu.runtime.rpc.networks import LoopWire, Network, Peer
from kemu.runtime.rpc.servers import Server
from kemu.runtime.runlog.events import Event
from kemu.runtime.sim.disks import MemoryDisk


class LoopClock:
    epoch_unix_s = 0

    def now_ns(self) -> int:
        return int(asyncio.get_running_loop().time() * 1e9)

    async def sleep(self, seconds: float, *, background: bool = False) -> None:
        await asyncio.sleep(seconds)


class StoreEnv:
    """Serves in memory, and over real gRPC where a server is given."""

    name = "store"
    crash_steps: tuple[str, ...] = ()

    def __init__(self, disk: MemoryDisk | FileDisk | None = None, server: grpc.aio.Server | None = None) -> None:
        self.disk = MemoryDisk() if disk is None else disk
        self.clock = LoopClock()
        self.random = random.Random(0)
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.is_ready = asyncio.Event()
        self.in_memory = Server("store", self.spawn, asyncio.get_running_loop(), self._failed)
        self.servers: list[Any] = [self.in_memory]
        if server is not None:
            self.servers.append(server)

    def serve(self, add_to_server: Callable[[Any, Any], None], servicer: object) -> None:
        for server in self.servers:
            add_to_server(servicer, server)

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self.tasks.append(task)
        return task

    def log(self, event: Event) -> None:
        self.events.append((event.KIND, event))

    def logged(self, kind: str) -> list[Mapping[str, Any]]:
        return [data for logged, data in self.events if logged == kind]

    def step(self, name: str) -> None:
        """No crash is armed here."""

    def exit(self, why: str) -> NoReturn:
        raise AssertionError(why)

    def ready(self) -> None:
        self.is_ready.set()

    def channel(self) -> MemoryChannel:
        """In memory."""
        loop = asyncio.get_running_loop()
        network = Network(lambda _: LoopWire(loop), lambda *_: None)
        network.join(Peer("store", self.in_memory))
        client = Peer("test", Server("test", self.spawn, loop))
        return MemoryChannel(lambda: network.connect(client, "store"), loop)

    async def close(self) -> None:
        """End the tasks; raises what one of them failed with."""
        for task in self.tasks:
            task.cancel()
        for result in await asyncio.gather(*self.tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result

    def _failed(self, method: str, error: BaseException) -> None:
        raise AssertionError(method) from error


async def start(env: StoreEnv, **config: Any) -> Store:
    store = Store(env, config)  # type: ignore[arg-type]
    env.spawn(store.run(), "run")
    await env.is_ready.wait()
    return store
