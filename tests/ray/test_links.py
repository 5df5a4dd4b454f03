"""Faults below gRPC: what a proxy of a link does to bytes."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator

import pytest

from kemu.errors import SimulationError
from kemu.runtime.host import links

CELLS = {"scheduler/a/0": "schedulers", "apiserver/0": "apiservers", "store": "apiservers"}


class World:
    """A cell that echoes, and the way of another one to it."""

    def __init__(self) -> None:
        self.hits: dict[tuple[str, str, str], None] = {}
        self.links = links.Links(1.0, lambda *who: self.hits.update({who: None}), lambda *names: random.Random(1))
        self.address = ""
        self.writers: list[asyncio.StreamWriter] = []

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.address.partition(":")
        connection = await asyncio.open_connection(host, int(port))
        self.writers.append(connection[1])
        return connection

    def begin(self, what: str, **parameters: object) -> None:
        if what in ("delay", "bandwidth"):
            sides: dict[str, object] = {"from": ["scheduler/a/0"], "to": ["apiserver/0"]}
        else:
            sides = {"between": [["scheduler/a/0"], ["apiserver/0"]]}
        self.links.begin("f", what, sides | parameters, CELLS.__getitem__)


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(data)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    made = World()
    made.address = await made.links.address(
        "schedulers", "apiservers", f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    )
    yield made
    for writer in made.writers:
        writer.transport.abort()
    await made.links.close()
    server.close()
    await asyncio.sleep(0.01)


async def said(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], data: bytes = b"hello") -> float:
    """Seconds until the echo has come. Raises TimeoutError after one second."""
    reader, writer = connection
    began = time.monotonic()
    writer.write(data)
    async with asyncio.timeout(1.0):
        assert await reader.readexactly(len(data)) == data
    return time.monotonic() - began


async def test_without_a_fault_bytes_go_through(world: World) -> None:
    await said(await world.dial(), b"x" * 300_000)
    assert not world.hits


async def test_a_cut_link_holds_everything_back_until_it_heals(world: World) -> None:
    connection = await world.dial()
    await said(connection)
    world.begin("partition", oneWay=False)
    with pytest.raises(TimeoutError):
        await said(connection)
    world.links.end("f")
    async with asyncio.timeout(1.0):
        assert await connection[0].readexactly(5) == b"hello"
    assert list(world.hits) == [("f", "schedulers", "apiservers")]


async def test_a_delay_is_of_one_direction(world: World) -> None:
    connection = await world.dial()
    world.begin("delay", by=0.2)
    assert 0.2 <= await said(connection) < 0.39


async def test_a_narrow_link_takes_its_time(world: World) -> None:
    connection = await world.dial()
    world.begin("bandwidth", bytesPerSecond=10_000.0)
    assert await said(connection, b"x" * 3_000) >= 0.3


async def test_a_reset_breaks_what_is_open_and_nothing_else(world: World) -> None:
    connection = await world.dial()
    await said(connection)
    world.begin("reset")
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await said(connection)
    await said(await world.dial())


async def test_a_connection_that_went_silent_says_nothing_of_it(world: World) -> None:
    connection = await world.dial()
    await said(connection)
    world.begin("halfOpen")
    with pytest.raises(TimeoutError):
        await said(connection)
    await said(await world.dial())


async def test_actors_of_one_cell_have_no_link(world: World) -> None:
    with pytest.raises(SimulationError, match="share the cell apiservers"):
        world.links.begin("f", "reset", {"between": [["store"], ["apiserver/0"]]}, CELLS.__getitem__)
