"""A gateway in front of API servers and a store, all in one process on the wall clock."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx

from kemu.emulated.gateway.app import Gateway
from kemu.emulated.gateway.settings import Settings
from kemu.runtime.env import ActorSpec
from kemu.runtime.host.hosts import Host

T = TypeVar("T")

LONGEST_S = 60
BASE = "http://kemu"


class Cluster:
    """What a test works with."""

    def __init__(self, host: Host, gateway: Gateway, log: list[tuple[str, str, Mapping[str, Any]]]) -> None:
        self.host = host
        self.gateway = gateway
        self.log = log
        """Actor, kind and data of what was logged."""
        self.http = self.connection(1)

    def connection(self, number: int, **options: Any) -> httpx.AsyncClient:
        """A client with a connection of its own."""
        transport = httpx.ASGITransport(self.gateway, client=("127.0.0.1", number))
        return httpx.AsyncClient(transport=transport, base_url=BASE, **options)


@contextlib.asynccontextmanager
async def cluster(
    settings: Settings | None = None,
    servers: Sequence[Mapping[str, Any]] = ({},),
    others: Sequence[ActorSpec] = (),
    speed: float = 1.0,
) -> AsyncIterator[Cluster]:
    """``servers``: the configuration of each API server. ``others``: further actors. ``speed``: of the clock."""
    names = tuple(f"apiserver/{number}" for number in range(len(servers)))
    loop = asyncio.get_running_loop()
    log: list[tuple[str, str, Mapping[str, Any]]] = []
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as directory:
        host = Host(
            loop, lambda now, actor, kind, data: log.append((actor, kind, data)), lambda _, text: failures.append(text)
        )
        host.configure(seed=1, directory=Path(directory), addresses={})
        specs = [ActorSpec("store", "kemu.emulated.store.server:Store")]
        specs += [
            ActorSpec(name, "kemu.emulated.apiserver.server:ApiServer", one)
            for name, one in zip(names, servers, strict=True)
        ]
        specs += others
        now_ns = time.time_ns()
        host.clock.configure(epoch_unix_ns=now_ns, speed=speed, epoch_unix_s=now_ns // 1_000_000_000)
        await host.start(specs)
        env = host.env("gateway")
        gateway = Gateway(env.dial, env.clock, settings or Settings(apiservers=names))
        try:
            yield Cluster(host, gateway, log)
        finally:
            gateway.close()
            await host.close()
    assert not failures, failures[0]


def run(main: Callable[[Cluster], Awaitable[T]], **options: Any) -> T:
    """Play ``main`` against a cluster."""

    async def play() -> T:
        async with asyncio.timeout(LONGEST_S), cluster(**options) as found:
            return await main(found)

    return asyncio.run(play())


def pod(name: str = "a", namespace: str = "default", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **fields.pop("metadata", {})},
        "spec": {"containers": [{"name": "main", "image": "pause:1"}], **fields},
    }
