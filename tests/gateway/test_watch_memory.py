"""Many watches whose clients do not read: what waits for them is bounded, also what a watch begins with."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

from kemu.emulated.gateway.settings import Settings
from tests.gateway.gateway_cluster import Cluster, run
from tests.gateway.test_hostile_bodies import served

MIB = 1 << 20
WATCHES = 60
OBJECTS, OBJECT_BYTES = 100, 100_000
PATH = "/api/v1/namespaces/default/configmaps"
MOST_MIB = 60
"""Of growth. What waits may take 16 MiB; each connection has its buffers besides, of a few objects. Without a bound
there would be 60 times a MiB and more."""


def resident_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def test_what_watches_begin_with_counts() -> None:
    grown: list[float] = []

    async def main(cluster: Cluster) -> None:
        for number in range(OBJECTS):
            body = {"metadata": {"name": f"c{number}"}, "data": {"text": "x" * OBJECT_BYTES}}
            assert (await cluster.http.post(PATH, json=body)).status_code == 201
        async with served(cluster) as server:
            host, port = server.url.removeprefix("http://").split(":")
            begun = resident_mib()
            writers = []
            for number in range(WATCHES):
                start = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" if number % 2 else ""
                _, writer = await asyncio.open_connection(host, int(port), limit=1)
                writer.transport.pause_reading()
                writer.write(f"GET {PATH}?watch=true{start} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
                writers.append(writer)
                await asyncio.sleep(0.05)
            most = 0.0
            for _ in range(30):
                await asyncio.sleep(0.1)
                most = max(most, resident_mib() - begun)
            grown.append(most)
            # Whoever reads is served meanwhile.
            async with asyncio.timeout(20):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(f"GET {PATH}?watch=true&timeoutSeconds=5 HTTP/1.1\r\nhost: a\r\n\r\n".encode())
                got = 0
                while got < OBJECTS * OBJECT_BYTES:
                    got += len(await reader.read(MIB))
                writer.close()
            for writer in writers:
                writer.transport.abort()
            await asyncio.sleep(0.5)
            grown.append(resident_mib() - begun)

    run(main, settings=Settings(all_backlog_bytes=16 * MIB, cache_bytes=MIB))
    most, last = grown
    print(grown)
    assert most < MOST_MIB, grown
    assert last < MOST_MIB / 2, grown
