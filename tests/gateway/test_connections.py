"""Clients that send too much, too slowly, or read nothing: they are told, and cut off, and nobody else is harmed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import struct
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from kemu.emulated.gateway.limits.connections import Limits, Tally, limited

QUICK = Limits(head_bytes=300_000, head_s=0.3, body_s=0.3, unread_s=0.3, ignored_bytes=100_000, pipelined=4,
               connections=5)  # fmt: skip
LARGEST_BODY = 500_000


class App:
    """Reads a body up to a limit, then answers: as the gateway does."""

    def __init__(self) -> None:
        self.cut = 0
        """Requests whose client had gone."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        size, code = 0, 200
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cut += 1
                return
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                code = 413
                break
            if not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": code, "headers": []})
        if scope["path"] == "/endless":
            while scope["path"]:
                await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"%d" % size})


@contextlib.asynccontextmanager
async def serving(
    app: App, limits: Limits = QUICK, config: uvicorn.Config | None = None, tally: Tally | None = None
) -> AsyncIterator[int]:
    http = type("Connection", (limited(limits),), {"tally": tally or Tally()})
    config = config or uvicorn.Config(app, http=http, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    config.port = 0
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        for one in server.servers:
            one.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # type: ignore[union-attr]
        for task in list(server.server_state.tasks):
            task.cancel()
        await asyncio.sleep(0)


async def answer(port: int, *pieces: bytes, pause_s: float = 0.0) -> tuple[int, bytes]:
    """The code and the body of the first answer, up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if pause_s:
                await asyncio.sleep(pause_s)
    got = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(10):
            got = await reader.read()
    writer.close()
    if not got:
        return 0, b""
    head, _, body = got.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def fine(port: int) -> bool:
    request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    return await answer(port, request) == (200, b"1\r\n0\r\n0\r\n\r\n")


async def test_a_usual_request_is_served() -> None:
    async with serving(App()) as port:
        assert await fine(port)


@pytest.mark.parametrize("pause_s", [0.0, 0.001])
async def test_headers_without_end(pause_s: float) -> None:
    async with serving(App()) as port:
        one_huge = b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 700_000
        assert (await answer(port, one_huge))[0] == 431
        many = b"".join(b"x-%d: y\r\n" % number for number in range(60_000))
        assert (await answer(port, b"GET / HTTP/1.1\r\n", many, pause_s=pause_s))[0] == 431
        assert (await answer(port, b"GET /" + b"a" * 700_000))[0] in (400, 431)
        assert await fine(port)


async def test_trailers_and_frames_without_end() -> None:
    async with serving(App()) as port:
        head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        assert (await answer(port, head, b"1\r\nx\r\n" * 200_000))[0] == 400
        assert (await answer(port, head, b"1;" + b"e" * 700_000))[0] == 400
        assert (await answer(port, head + b"0\r\n", b"t: " + b"u" * 700_000))[0] == 400
        assert await fine(port)


async def test_a_large_body_is_no_overhead() -> None:
    async with serving(App()) as port:
        head = b"POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 400000\r\n\r\n"
        assert await answer(port, head + b"x" * 400_000) == (200, b"6\r\n400000\r\n0\r\n\r\n")


async def test_a_body_that_never_ends_is_answered_and_cut_off() -> None:
    async with serving(App()) as port:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(10):
                while not writer.is_closing():
                    writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                    await writer.drain()
                    sent += 65536
        assert sent < 40 << 20  # what buffers of sockets take
        writer.close()
        assert await fine(port)


async def test_whoever_is_slow_is_told() -> None:
    app = App()
    async with serving(app) as port:
        assert (await answer(port))[0] == 408  # says nothing
        assert (await answer(port, b"GET / HTTP/1.1\r\n"))[0] == 408
        code, body = await answer(port, b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx")
        assert code == 408
        assert json.loads(body)["message"] == "the body of the request did not arrive in time"
        await asyncio.sleep(0)
        assert app.cut == 1
        # A byte now and then does not help.
        assert (await answer(port, *[b"G", b"E", b"T", b" ", b"/"], pause_s=0.1))[0] == 408


async def test_whoever_waits_between_two_requests_is_not_cut_off() -> None:
    async with serving(App()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            assert b"200" in await reader.readuntil(b"0\r\n\r\n")
            await asyncio.sleep(0.5)
        writer.close()


async def test_whoever_reads_nothing_is_cut_off() -> None:
    async with serving(App()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n")
        await asyncio.sleep(1.0)
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(10):
                while await reader.read(100_000):
                    pass
        writer.close()
        assert await fine(port)


async def test_too_many_connections() -> None:
    async with serving(App(), QUICK._replace(head_s=5.0)) as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        assert (await answer(port))[0] == 503
        for _, writer in idle:
            writer.close()
        await asyncio.sleep(0.05)
        assert await fine(port)


async def everything(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(20):
        got = await reader.read()
    writer.close()
    return got


@pytest.mark.parametrize("number", [50, 20_000])
async def test_requests_one_after_the_other_are_answered_in_order(number: int) -> None:
    """However many come before the first is answered; what is no request behind them is refused after them."""
    asked = b"".join(b"GET / HTTP/1.1\r\n\r\n" for _ in range(number))
    async with serving(App()) as port:
        got = await everything(port, asked + b"\x00 nothing\r\n\r\n")
        codes = [int(line.split()[1]) for line in got.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        assert codes == [200] * number + [400]
        bodies = b"".join(
            b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (size, b"x" * size) for size in range(300)
        )
        got = await everything(port, bodies + b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
        told = [int(body) for body in got.split(b"\r\n") if body.isdigit() and int(body) > 9]
        # Each answer has its size in the line before, and of one digit in the chunk's length.
        assert told == list(range(10, 300))
        assert await fine(port)


async def test_a_connection_that_was_reset_leaves_nothing() -> None:
    """No timer keeps it, though it would have been kept open for another request."""
    made: list[weakref.ref[Any]] = []

    class Watched(limited(QUICK)):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            made.append(weakref.ref(self))

    config = uvicorn.Config(App(), http=Watched, ws="none", lifespan="off", log_config=None, timeout_keep_alive=120)
    async with serving(App(), config=config) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"200 OK")
        await asyncio.sleep(0.05)
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
        await asyncio.sleep(0.1)
        gc.collect()
        assert [one() for one in made] == [None]


async def test_many_requests_wait_unread() -> None:
    """Behind an answer that does not end, a connection keeps a few requests, and does not read the rest."""
    most = 0

    class Slow(App):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await asyncio.sleep(1.0)
            await super().__call__(scope, receive, send)

    class Watched(limited(QUICK)):  # type: ignore[misc]
        def data_received(self, data: bytes) -> None:
            nonlocal most
            super().data_received(data)
            most = max(most, len(self.pipeline) * 1000 + len(self._held))

    config = uvicorn.Config(Slow(), http=Watched, ws="none", lifespan="off", log_config=None, log_level="critical")
    async with serving(App(), config=config) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 2_000_000)
        await asyncio.sleep(0.8)
        assert 0 < most < 1_000_000
        writer.transport.abort()


async def test_a_refusal_does_not_break_into_an_answer() -> None:
    async with serving(App()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n\x00\x00 nothing\r\n\r\n")
        got = b""
        while len(got) < 3_000_000:
            got += await reader.read(100_000)
        writer.transport.abort()
        assert got.count(b"HTTP/1.1 ") == 1


async def test_what_is_no_http_is_told_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    tally = Tally()
    async with serving(App(), tally=tally) as port:
        for _ in range(20):
            assert (await answer(port, b"\x00\x01\r\n\r\n"))[0] == 400
        assert len(caplog.records) == 1
        tally.tell()
    assert [record.getMessage() for record in caplog.records][1:] == [
        "Clients have sent bytes that are no HTTP 20 times."
    ]


async def test_bytes_that_are_no_http() -> None:
    async with serving(App()) as port:
        for bad in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"\x00" * 100,
            b"GET\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ):
            assert (await answer(port, bad))[0] == 400
        assert await fine(port)


def test_an_upgrade_is_taken_by_the_application_or_ends_the_connection() -> None:
    head = b"GET /%s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

    class Upgrading(App):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/refused":
                await super().__call__(scope, receive, send)
                return
            if scope["path"] == "/slow":
                await asyncio.sleep(60)
            stream = scope["extensions"]["kemu.upgrade"]([(b"upgrade", b"echo")])
            while data := await stream.read():
                await stream.write(data.upper())
            stream.close()

    async def answer(port: int, path: bytes, early: bytes, *later: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            writer.write(head % path + early)
            for data in later:
                await asyncio.sleep(0.05)
                writer.write(data)
            writer.write_eof()
        found = b""
        with contextlib.suppress(ConnectionError):
            found = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        return found

    async def main() -> None:
        async with serving(Upgrading(), Limits()) as port:
            taken = await answer(port, b"echo", b"early", b"later")
            assert taken.startswith(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\n\r\n")
            assert taken.endswith(b"EARLYLATER")
            refused = await answer(port, b"refused", b"GET / HTTP/1.1\r\n\r\n")
            assert refused.startswith(b"HTTP/1.1 200")
            assert refused.count(b"HTTP/1.1") == 1
            # What comes before the answer is kept within bounds.
            assert await answer(port, b"slow", b"x" * 200_000) == b""

    asyncio.run(main())
