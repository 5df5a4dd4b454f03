"""kemu's gateway on a socket, in a thread: a store and one API server behind it, and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from kemu.emulated.gateway.servers import Server
from tests.gateway import gateway_cluster

START_S = 20.0


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Its URL (plain HTTP on loopback; everybody is the administrator)."""
    started = threading.Event()
    found: dict[str, object] = {}

    async def serve() -> None:
        found["loop"] = asyncio.get_running_loop()
        found["stop"] = stop = asyncio.Event()
        async with gateway_cluster.cluster() as cluster:
            server = Server(cluster.gateway)
            await server.start()
            found["url"] = server.url
            started.set()
            await stop.wait()
            await server.stop()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            found["error"] = error
            raise
        finally:
            started.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not started.wait(START_S) or "url" not in found:
        raise RuntimeError(f"the gateway did not start: {found.get('error')}")
    try:
        yield str(found["url"])
    finally:
        loop, stop = found["loop"], found["stop"]
        assert isinstance(loop, asyncio.AbstractEventLoop)
        assert isinstance(stop, asyncio.Event)
        loop.call_soon_threadsafe(stop.set)
        thread.join(START_S)
