"""Faults below gRPC and HTTP: a small TCP proxy for each link between two processes, in the driver.

A link is all connections that one process opens to another one: a cell on Ray, where a scenario has a fault with
``belowGrpc``, or a real program. They are told the address of a proxy in the place of the other's, from the start of
the run. What a fault does to a link it does to bytes: keepalive, reconnects and flow control of the two programs deal
with it. ``rpc.networks`` does the same above gRPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.errors import SimulationError
from kemu.runtime import distributions

_CHUNK_BYTES = 64 << 10
_CHUNKS = 64
"""On their way in one direction of a connection; who sends more waits."""
_LOOPBACK = "127.0.0.1"


@dataclass
class _Fault:
    """One that is in force."""

    what: str
    sides: tuple[frozenset[str], frozenset[str]]
    """Names of cells."""
    one_way: bool
    delay_s: Callable[[], float] | None
    """Draws, in real seconds."""
    bytes_per_s: float
    """Real ones; 0: as many as there are."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def concerns(self, source: str, target: str) -> bool:
        """Whether it does something to bytes that go this way."""
        one, other = self.sides
        return (source in one and target in other) or (not self.one_way and source in other and target in one)


class Links:
    def __init__(
        self, speed: float, strike: Callable[[str, str, str], None], stream: Callable[..., random.Random]
    ) -> None:
        """``strike``: told of the fault, and of the cells from and to which bytes go that it has hit. ``stream``: the
        random streams of the run, by name."""
        self._speed = speed
        self._strike = strike
        self._stream = stream
        self._faults: dict[str, _Fault] = {}
        self._proxies: dict[tuple[str, str, str], tuple[asyncio.Server, str]] = {}
        """Server and address by the caller's cell, the other cell and its address."""
        self._connections: dict[_Connection, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._making = asyncio.Lock()

    async def address(self, caller: str, called: str, target: str) -> str:
        """Where a cell reaches another one, which listens at ``target``."""
        async with self._making:
            key = (caller, called, target)
            if key not in self._proxies:

                def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    task = asyncio.create_task(self._serve(caller, called, target, reader, writer))
                    self._tasks[task] = None
                    task.add_done_callback(lambda done: self._tasks.pop(done, None))

                server = await asyncio.start_server(accepted, _LOOPBACK, 0)
                self._proxies[key] = server, f"{_LOOPBACK}:{server.sockets[0].getsockname()[1]}"
            return self._proxies[key][1]

    async def _serve(
        self, caller: str, called: str, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, _, port = target.rpartition(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            _reset(writer)
            return
        connection = _Connection(caller, called, (writer, far_writer))
        self._connections[connection] = None
        try:
            async with asyncio.TaskGroup() as group:
                for source, end, to, beginning in (
                    (caller, called, far_writer, reader),
                    (called, caller, writer, far_reader),
                ):
                    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS)
                    group.create_task(self._read(beginning, queue))
                    group.create_task(self._write(connection, source, end, to, queue))
        except* OSError:
            pass
        finally:
            self._connections.pop(connection, None)
            for each in (writer, far_writer):
                _reset(each)

    async def _read(self, reader: asyncio.StreamReader, queue: asyncio.Queue[tuple[float, bytes]]) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(_CHUNK_BYTES):
            await queue.put((loop.time(), data))
        await queue.put((loop.time(), b""))

    async def _write(
        self,
        connection: _Connection,
        source: str,
        target: str,
        writer: asyncio.StreamWriter,
        queue: asyncio.Queue[tuple[float, bytes]],
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            came_at, data = await queue.get()
            for name, fault in list(self._faults.items()):
                if not fault.concerns(source, target):
                    continue
                self._strike(name, source, target)
                if fault.delay_s is not None:
                    await asyncio.sleep(max(0.0, came_at + fault.delay_s() - loop.time()))
                elif fault.bytes_per_s:
                    await asyncio.sleep(len(data) / fault.bytes_per_s)
                else:
                    await fault.over.wait()
            if connection.muted:
                await connection.ended.wait()
                return
            if not data:
                with contextlib.suppress(OSError, RuntimeError):
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()

    # Faults

    def begin(self, name: str, what: str, parameters: Mapping[str, Any], cell_of: Callable[[str], str]) -> None:
        """``cell_of``: the cell of an actor. Raises SimulationError where no link is concerned."""
        one, other = parameters["between"] if "between" in parameters else (parameters["from"], parameters["to"])
        sides = frozenset(map(cell_of, one)), frozenset(map(cell_of, other))
        if not any(a != b for a in sides[0] for b in sides[1]):
            shared = ", ".join(sorted(sides[0] | sides[1]))
            raise SimulationError(f"{name}: belowGrpc: these actors share the cell {shared}: no link is between them")
        if what in ("reset", "halfOpen"):
            for connection in list(self._connections):
                if _is_between(sides, connection):
                    self._strike(name, connection.caller, connection.called)
                    connection.end(silently=what == "halfOpen")
            return
        delay_s = None
        if what == "delay":
            time, draws = distributions.parse(parameters["by"]), self._stream("fault", name, "links")

            def delay_s() -> float:
                return time.draw(draws) / self._speed

        per_s = parameters["bytesPerSecond"] * self._speed if what == "bandwidth" else 0.0
        one_way = parameters.get("oneWay", "from" in parameters)
        self._faults[name] = _Fault(what, sides, one_way, delay_s, per_s)

    def are_of(self, name: str) -> bool:
        return name in self._faults

    def end(self, name: str) -> None:
        self._faults.pop(name).over.set()

    async def close(self) -> None:
        for server, _ in self._proxies.values():
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Connection:
    def __init__(self, caller: str, called: str, writers: Sequence[asyncio.StreamWriter]) -> None:
        self.caller = caller
        self.called = called
        self.muted = False
        """Nothing goes through any more, and neither side is told."""
        self.ended = asyncio.Event()
        self._writers = writers

    def end(self, *, silently: bool) -> None:
        if silently:
            self.muted = True
            return
        self.ended.set()
        for writer in self._writers:
            _reset(writer)


def _is_between(sides: tuple[frozenset[str], frozenset[str]], connection: _Connection) -> bool:
    one, other = sides
    caller, called = connection.caller, connection.called
    return (caller in one and called in other) or (caller in other and called in one)


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST in the place of FIN."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
