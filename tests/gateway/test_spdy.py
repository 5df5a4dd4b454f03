"""SPDY: connections to ports as kubectl port-forward opens them, inside of a WebSocket; and commands."""

from __future__ import annotations

import asyncio
import json
import random
import struct
import zlib
from typing import Any

from kemu.emulated.gateway.verbs.sessions import commands, spdy

SYN_STREAM, SYN_REPLY, RST_STREAM, PING = 1, 2, 3, 6


class Socket:
    """A WebSocket whose client is the test."""

    def __init__(self) -> None:
        self.to_server: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.to_client: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed_with = 0

    async def receive(self) -> bytes | None:
        return await self.to_server.get()

    async def send(self, data: bytes) -> None:
        self.to_client.put_nowait(data)

    async def close(self, code: int = 1000) -> None:
        self.closed_with = code


class Client:
    def __init__(self, socket: Socket) -> None:
        self.socket = socket
        self._deflate = zlib.compressobj(zdict=spdy._DICTIONARY)

    def control(self, kind: int, data: bytes, flags: int = 0) -> None:
        head = struct.pack(">HH", 0x8003, kind) + bytes([flags]) + len(data).to_bytes(3, "big")
        self.socket.to_server.put_nowait(head + data)

    def open(self, stream: int, **headers: str) -> None:
        plain = len(headers).to_bytes(4, "big")
        for name, value in headers.items():
            for text in (name, value):
                plain += len(text).to_bytes(4, "big") + text.encode()
        block = self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self.control(SYN_STREAM, stream.to_bytes(4, "big") + bytes(6) + block)

    def send(self, stream: int, data: bytes, *, ends: bool = False) -> None:
        head = stream.to_bytes(4, "big") + bytes([ends]) + len(data).to_bytes(3, "big")
        # Frames need not come as messages.
        for piece in (head[:3], head[3:] + data):
            self.socket.to_server.put_nowait(piece)

    async def frame(self) -> tuple[int, int, int, bytes]:
        """Kind (0: data), stream, flags, and what is in it."""
        data = await asyncio.wait_for(self.socket.to_client.get(), 5)
        first, flags, rest = int.from_bytes(data[:4], "big"), data[4], data[8:]
        if not first >> 31:
            return 0, first, flags, rest
        return first & 0xFFFF, int.from_bytes(rest[:4], "big"), flags, rest


async def _echo(session: Any) -> None:
    while data := await session.read():
        await session.write(b"%d: " % session.port + data)


def _find(port: int) -> Any:
    if port == 81:
        raise ConnectionRefusedError("nobody listens")
    return _echo


async def _never() -> str:
    await asyncio.sleep(60)
    return ""


def _run(test: Any) -> Socket:
    socket = Socket()

    async def main() -> None:
        serving = asyncio.create_task(spdy.serve(socket, {}, _find, _never))  # type: ignore[arg-type]
        await test(Client(socket))
        socket.to_server.put_nowait(None)
        await asyncio.wait_for(serving, 5)

    asyncio.run(main())
    return socket


def test_a_connection_is_a_pair_of_streams() -> None:
    async def test(client: Client) -> None:
        client.open(1, streamtype="error", port="80", requestid="0")
        client.open(3, streamtype="data", port="80", requestid="0")
        assert [(await client.frame())[:2] for _ in range(2)] == [(SYN_REPLY, 1), (SYN_REPLY, 3)]
        client.send(3, b"hello")
        assert await client.frame() == (0, 3, 0, b"80: hello")
        client.control(PING, (7).to_bytes(4, "big"))
        assert (await client.frame())[:2] == (PING, 7)
        client.send(3, b"", ends=True)
        assert [await client.frame() for _ in range(2)] == [(0, 1, 1, b""), (0, 3, 1, b"")]

    assert _run(test).closed_with == 1000


def test_why_a_port_does_not_answer_comes_over_the_stream_of_errors() -> None:
    async def test(client: Client) -> None:
        client.open(1, streamtype="error", port="81", requestid="0")
        client.open(3, streamtype="data", port="81", requestid="0")
        for _ in range(2):
            await client.frame()
        assert await client.frame() == (0, 1, 0, b"error forwarding port 81 to pod: nobody listens")

    _run(test)


def test_a_stream_without_a_port_is_reset() -> None:
    async def test(client: Client) -> None:
        client.open(1, streamtype="data", port="0", requestid="0")
        assert (await client.frame())[:2] == (RST_STREAM, 1)

    _run(test)


def test_what_is_no_spdy_ends_the_session() -> None:
    choose = random.Random(3)
    for _ in range(50):
        socket = Socket()

        async def main(socket: Socket = socket) -> None:
            for _ in range(5):
                socket.to_server.put_nowait(choose.randbytes(choose.randrange(1, 200)))
            socket.to_server.put_nowait(b"\x80\x02\x00\x01\x00\x00\x00\x00")
            socket.to_server.put_nowait(None)
            await asyncio.wait_for(spdy.serve(socket, {}, _find, _never), 5)  # type: ignore[arg-type]

        asyncio.run(main())
        assert socket.closed_with in (1000, 1002)


class Stream:
    """A connection that was upgraded, whose client is the test."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        return await self._socket.receive() or b""

    async def write(self, data: bytes) -> None:
        await self._socket.send(data)


def test_a_command_has_a_stream_for_each_channel() -> None:
    """As client-go before 0.30 and kubectl before 1.31 ask for it."""

    async def shout(session: Any) -> int:
        while data := await session.read():
            await session.write(data.upper())
        await session.write_error("over")
        return 3

    async def main() -> None:
        socket = Socket()
        client = Client(socket)
        channels = spdy.Channels(Stream(socket))  # type: ignore[arg-type]
        wanted = (True, True, True, False)
        opening = asyncio.create_task(channels.open(wanted))
        for number, kind in ((1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")):
            client.open(number, streamtype=kind)
            assert (await client.frame())[:2] == (SYN_REPLY, number)
        assert await asyncio.wait_for(opening, 5)
        session = commands.CommandSession(channels, commands.V5, wanted, {}, "main", ("shout",))
        serving = asyncio.create_task(commands.serve(session, shout, _never))
        client.send(3, b"hello")
        assert await client.frame() == (0, 5, 0, b"HELLO")
        client.send(3, b"", ends=True)
        assert await client.frame() == (0, 7, 0, b"over")
        kind, number, _, status = await client.frame()
        assert (kind, number, json.loads(status)["details"]["causes"][0]["message"]) == (0, 1, "3")
        assert [await client.frame() for _ in range(3)] == [(0, number, 1, b"") for number in (5, 7, 1)]
        await asyncio.wait_for(serving, 5)

    asyncio.run(main())


def test_a_command_whose_streams_do_not_come_is_not_run() -> None:
    async def main() -> None:
        socket = Socket()
        client = Client(socket)
        opening = asyncio.create_task(spdy.Channels(Stream(socket)).open((False, True, False, False)))  # type: ignore[arg-type]
        client.open(1, streamtype="error")
        client.open(3, streamtype="smoke")
        assert [(await client.frame())[:2] for _ in range(2)] == [(SYN_REPLY, 1), (RST_STREAM, 3)]
        socket.to_server.put_nowait(None)
        assert not await asyncio.wait_for(opening, 5)

    asyncio.run(main())
