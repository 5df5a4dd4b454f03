"""HTTP/2: what client-go asks for, and clients that abuse it: they are told, or cut off, and nobody else is harmed.

The client's side is the library h2, or frames written by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import shutil
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import httpx
import pytest
from h2.errors import ErrorCodes

from kemu.emulated.gateway import servers
from kemu.emulated.gateway.authentication.certificates import Authority
from kemu.emulated.gateway.http2 import connections, exchanges
from kemu.emulated.gateway.limits.connections import RESET, TLS, Limits
from kemu.emulated.objects.identities import User

QUICK = Limits(head_bytes=50_000, head_s=0.4, body_s=0.4, unread_s=0.4, connections=5)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
LONGEST_S = 20


class App:
    """Answers as its path says; whatever it is asked for, it counts how many are asking."""

    def __init__(self) -> None:
        self.running = self.most = self.cut = self.calls = 0
        self.scopes: list[Any] = []
        self.go_on, self.asked, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def close(self) -> None:
        self.go_on.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        self.running += 1
        self.asked.set()
        self.most = max(self.most, self.running)
        self.scopes.append(scope)
        try:
            await self._answer(scope, receive, send)
        finally:
            self.running -= 1

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        size, path = 0, scope["path"]
        while path != "/unread":
            message = await receive()
            if message["type"] == "http.disconnect":
                self.cut += 1
                return
            size += len(message["body"])
            if not message["more_body"] or path == "/early":
                break
        if path == "/broken":
            raise ValueError("broken")
        if path == "/wait":
            await self.go_on.wait()
        headers = [(b"content-type", b"text/plain"), *([exchanges.CLOSE] if path == "/last" else [])]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if path == "/later":
            await self.go_on.wait()
        if path == "/cut":
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            scope["extensions"][RESET](scope["query_string"] == b"abruptly")
            self.cut += (await receive())["type"] == "http.disconnect"
            return
        if path == "/large":
            await send({"type": "http.response.body", "body": b"x" * 1_000_000})
            return
        if path == "/endless":
            leaving = asyncio.create_task(receive())
            while not leaving.done():
                await send({"type": "http.response.body", "body": b"x" * 50_000, "more_body": True})
                await asyncio.sleep(0)
            self.cut += 1
            self.left.set()
            return
        await send({"type": "http.response.body", "body": b"%d" % size})


@functools.cache
def authority() -> Authority:
    return Authority.make()


@contextlib.asynccontextmanager
async def serving(app: App, limits: Limits = QUICK, **options: Any) -> AsyncIterator[servers.Server]:
    certificates = servers.Certificates(authority().server(()), authority().certificate)
    server = servers.Server(app, certificates=certificates, limits=limits, **options)
    await server.start()
    try:
        async with asyncio.timeout(LONGEST_S):
            yield server
    finally:
        app.go_on.set()
        await server.stop()


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority().certificate.decode())


class Client:
    """One connection, with the library h2 or, through ``write``, with bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, acknowledges: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._acknowledges = acknowledges
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(validate_outbound_headers=False))
        self.events: list[Any] = []
        self.is_over = False

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, server: servers.Server, begin: bool = True, acknowledges: bool = True) -> AsyncIterator[Client]:
        """``acknowledges``: gives room for more of what it has been sent."""
        context = trusting()
        context.set_alpn_protocols(["h2"])
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        client = cls(reader, writer, acknowledges)
        if begin:
            client.h2.initiate_connection()
            client.flush()
        try:
            yield client
        finally:
            writer.transport.abort()

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def flush(self) -> None:
        self.write(self.h2.data_to_send())

    def ask(self, path: str, method: str = "GET", body: bytes | None = b"", more: Sequence[Any] = ()) -> int:
        """Number of the stream. ``body`` None: it never comes."""
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", "here"), (":path", path), *more]
        self.h2.send_headers(stream, head, end_stream=body == b"")
        if body:
            self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        return stream

    async def until(self, found: Callable[[], bool]) -> None:
        """Reads until that is so, or the connection is over."""
        while not found() and not self.is_over:
            data = await self._read()
            for event in self.h2.receive_data(data) if data else ():
                self.events.append(event)
                if self._acknowledges and isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.flush()

    async def _read(self) -> bytes:
        try:
            data = await self._reader.read(1 << 16)
        except (ConnectionError, ssl.SSLError):
            data = b""
        self.is_over = self.is_over or not data
        return data

    async def answer(self, stream: int) -> tuple[int, bytes]:
        """Status and body."""
        await self.until(lambda: self.has(h2.events.StreamEnded, stream) or self.has(h2.events.StreamReset, stream))
        assert self.has(h2.events.StreamEnded, stream), self.events[-3:]
        head = next(e for e in self.events if isinstance(e, h2.events.ResponseReceived) and e.stream_id == stream)
        status = next(value for name, value in head.headers if name in (":status", b":status"))
        return int(status), self.body(stream)

    def body(self, stream: int) -> bytes:
        data = [e.data for e in self.events if isinstance(e, h2.events.DataReceived) and e.stream_id == stream]
        return b"".join(data)

    def has(self, kind: type, stream: int) -> bool:
        return any(isinstance(event, kind) and event.stream_id == stream for event in self.events)

    def find(self, kind: type) -> Any:
        return next((event for event in self.events if isinstance(event, kind)), None)

    async def goodbye(self) -> int:
        """The code with which the server ends the connection; -1: it just ends it."""
        await self.until(lambda: False)
        found = self.find(h2.events.ConnectionTerminated)
        return -1 if found is None else int(found.error_code)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def block(path: bytes = b"/wait") -> bytes:
    """Headers of a request in HPACK, nothing compressed."""
    fields = ((b":method", b"GET"), (b":scheme", b"https"), (b":path", path))
    return b"".join(b"\x00" + bytes((len(a),)) + a + bytes((len(b),)) + b for a, b in fields)


# What it serves


async def test_clients_choose_by_alpn() -> None:
    app = App()
    async with serving(app) as server:
        for http2, version in ((True, "HTTP/2"), (False, "HTTP/1.1")):
            async with httpx.AsyncClient(http2=http2, verify=trusting()) as client:
                found = await client.post(f"{server.url}/a%20b?c=d", content=b"x" * 400_000)
                assert (found.http_version, found.status_code, found.text) == (version, 200, "400000")
                assert "date" in found.headers
    assert [scope["http_version"] for scope in app.scopes] == ["2", "1.1"]
    for scope in app.scopes:
        assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/a b", b"c=d")
        assert dict(scope["headers"])[b"host"] == server.url.removeprefix("https://").encode()


async def test_curl(tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("not on this machine: curl")
    (tmp_path / "authority.pem").write_bytes(authority().certificate)
    async with serving(App()) as server:
        command = ["--silent", "--http2", "--cacert", tmp_path / "authority.pem", "--data-binary", "x" * 100_000]
        process = await asyncio.create_subprocess_exec(
            curl, *command, "--write-out", " %{http_version}", f"{server.url}/", stdout=asyncio.subprocess.PIPE
        )
        assert await process.communicate() == (b"100000 2", None)
        # An answer to what has not been read, as 413 is, is shown, too.
        process = await asyncio.create_subprocess_exec(
            *(curl, *command[:-1], "@-", "--write-out", " %{http_code}", f"{server.url}/unread"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        shown, _ = await process.communicate(b"x" * 5_000_000)
        assert shown == b"0 200"


async def test_it_can_be_left_out() -> None:
    async with serving(App(), http2=False) as server, httpx.AsyncClient(http2=True, verify=trusting()) as client:
        assert (await client.get(server.url)).http_version == "HTTP/1.1"


async def test_a_certificate_says_who_asks(tmp_path: Path) -> None:
    app = App()
    shown = authority().client(User("ann", ()))
    (tmp_path / "ann.pem").write_bytes(shown.certificate + shown.key)
    context = trusting()
    context.load_cert_chain(tmp_path / "ann.pem")
    async with serving(app) as server, httpx.AsyncClient(http2=True, verify=context) as client:
        await client.get(server.url)
    assert (("commonName", "ann"),) in app.scopes[0]["extensions"][TLS]["subject"]


async def test_many_requests_at_the_same_time() -> None:
    app = App()
    async with serving(app) as server, Client.to(server) as client:
        waiting = [client.ask("/wait") for _ in range(connections.STREAMS - 1)]
        for _ in range(20):
            assert await client.answer(client.ask("/", "POST", b"12345")) == (200, b"5")
        app.go_on.set()
        for stream in waiting:
            assert await client.answer(stream) == (200, b"0")


async def test_streams_that_are_closed_are_forgotten() -> None:
    async with serving(App()) as server, Client.to(server) as client:
        for _ in range(3 * connections._SWEPT):
            assert await client.answer(client.ask("/")) == (200, b"0")
        (connection,) = server._server.server_state.connections
        assert len(connection._h2.streams) <= connections._SWEPT


async def test_an_answer_waits_for_room_and_others_do_not() -> None:
    app = App()
    async with serving(app, QUICK._replace(unread_s=10)) as server, Client.to(server, acknowledges=False) as client:
        large = client.ask("/large")
        await client.until(lambda: len(client.body(large)) == 65_535)
        with pytest.raises(TimeoutError):  # now the window of the whole connection is closed
            async with asyncio.timeout(0.3):
                await client.answer(client.ask("/"))
        client.h2.increment_flow_control_window(100_000)
        client.flush()
        assert await client.answer(client.ask("/")) == (200, b"0")
        assert len(client.body(large)) == 65_535
        client.h2.increment_flow_control_window(1_000_000)
        client.h2.increment_flow_control_window(1_000_000, large)
        client.flush()
        assert await client.answer(large) == (200, b"x" * 1_000_000)


async def test_a_head_leaves_before_there_is_a_body() -> None:
    """client-go waits for that of a watch."""
    async with serving(App()) as server, Client.to(server) as client:
        stream = client.ask("/later")
        await client.until(lambda: client.has(h2.events.ResponseReceived, stream))
        assert not client.has(h2.events.StreamEnded, stream)


async def test_head_and_empty_answers() -> None:
    async with serving(App()) as server, Client.to(server) as client:
        assert await client.answer(client.ask("/", "HEAD")) == (200, b"")


async def test_an_application_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(App()) as server, Client.to(server) as client:
        assert (await client.answer(client.ask("/broken")))[0] == 500
        assert "broken" in caplog.text


async def test_an_early_answer_ends_a_request() -> None:
    async with serving(App()) as server, Client.to(server) as client:
        stream = client.ask("/early", "POST", None)
        client.h2.send_data(stream, b"123")
        client.flush()
        assert await client.answer(stream) == (200, b"3")
        await client.until(lambda: client.has(h2.events.StreamReset, stream))
        assert client.find(h2.events.StreamReset).error_code == ErrorCodes.NO_ERROR


@pytest.mark.parametrize("abruptly", [True, False])
async def test_faults_end_one_answer(abruptly: bool) -> None:
    app = App()
    async with serving(app) as server, Client.to(server) as client:
        other = client.ask("/wait")
        stream = client.ask("/cut?abruptly" if abruptly else "/cut")
        kind: Any = h2.events.StreamReset if abruptly else h2.events.StreamEnded
        await client.until(lambda: client.has(kind, stream))
        # Beside a reset, what was sent before may be dropped by the client's library.
        assert abruptly or client.body(stream) == b"half"
        assert not client.has(kind, other)
        app.go_on.set()
        assert await client.answer(other) == (200, b"0")
    assert app.cut == 1


async def test_a_client_that_wants_no_answer_is_told_of() -> None:
    app = App()
    async with serving(app) as server, Client.to(server) as client:
        stream = client.ask("/", "POST", None)
        await app.asked.wait()
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
        assert await client.answer(client.ask("/")) == (200, b"0")
    assert app.cut == 1


async def test_pings_are_answered() -> None:
    """``ReadIdleTimeout`` of client-go."""
    async with serving(App()) as server, Client.to(server) as client:
        client.h2.ping(b"12345678")
        client.flush()
        await client.until(lambda: client.find(h2.events.PingAckReceived) is not None)
        assert client.find(h2.events.PingAckReceived).ping_data == b"12345678"


async def test_the_end_is_announced() -> None:
    app = App()
    async with serving(app) as server, Client.to(server) as client:
        stream = client.ask("/wait")
        await app.asked.wait()
        stopping = asyncio.create_task(server.stop())  # which lets what waits go on
        assert await client.goodbye() == ErrorCodes.NO_ERROR
        assert client.body(stream) == b"0"
        assert client.find(h2.events.ConnectionTerminated).last_stream_id == stream
        await stopping


async def test_an_answer_may_be_the_last_one() -> None:
    async with serving(App()) as server, Client.to(server) as client:
        stream = client.ask("/last")
        assert await client.answer(stream) == (200, b"0")
        head = client.find(h2.events.ResponseReceived)
        assert "connection" not in {str(name) for name, _ in head.headers}
        assert await client.goodbye() == ErrorCodes.NO_ERROR
        assert client.is_over


# What it bounds


async def test_whoever_never_reads_an_answer_loses_it() -> None:
    app = App()
    async with serving(app) as server, Client.to(server, acknowledges=False) as client:
        stream = client.ask("/endless")
        await client.until(lambda: client.has(h2.events.StreamReset, stream))
        client.h2.increment_flow_control_window(100_000)
        client.flush()
        assert await client.answer(client.ask("/")) == (200, b"0")
    assert app.cut == 1


async def test_whoever_never_reads_at_all_is_cut_off() -> None:
    app = App()
    async with serving(app) as server, Client.to(server, begin=False) as client:
        window = struct.pack(">I", (1 << 31) - 1 - 65_535)
        client.write(PREFACE + frame(SETTINGS, 0, 0, b"\x00\x04" + struct.pack(">I", (1 << 31) - 1)))
        client.write(frame(WINDOW_UPDATE, 0, 0, window) + frame(HEADERS, 5, 1, block(b"/endless")))
        await app.left.wait()


async def test_requests_that_are_reset_at_once() -> None:
    """Rapid Reset (CVE-2023-44487)."""
    app = App()
    async with serving(app) as server, Client.to(server, begin=False) as client:
        client.write(PREFACE + frame(SETTINGS, 0, 0))
        for stream in range(1, 20_001, 2):
            client.write(frame(HEADERS, 5, stream, block()) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
        assert await _code(client) == ErrorCodes.ENHANCE_YOUR_CALM
    assert app.most <= connections.STREAMS
    assert app.calls <= connections.STREAMS


async def test_more_requests_than_may_be_under_way() -> None:
    app = App()
    async with serving(app) as server, Client.to(server, begin=False) as client:
        client.write(PREFACE + frame(SETTINGS, 0, 0))
        client.write(b"".join(frame(HEADERS, 5, stream, block()) for stream in range(1, 3 * connections.STREAMS, 2)))
        assert await _code(client) == ErrorCodes.PROTOCOL_ERROR
    assert app.most <= connections.STREAMS


async def _code(client: Client) -> int:
    """Of the GOAWAY that ends a connection of bytes."""
    received = b""
    while data := await client._read():
        received += data
    found = -1
    while received:
        size = int.from_bytes(received[:3], "big")
        if received[3] == 7:
            found = int.from_bytes(received[13:17], "big")
        received = received[9 + size :]
    return found


FLOODS = {
    "settings": frame(SETTINGS, 0, 0, b"\x00\x04\x00\x01\x00\x00"),
    "pings": frame(PING, 0, 0, b"12345678"),
    "priorities": frame(PRIORITY, 0, 3, b"\x00\x00\x00\x00\x10"),
    "empty data": frame(DATA, 0, 1),
    "settings acknowledged": frame(SETTINGS, 1, 0),
    "windows": frame(WINDOW_UPDATE, 0, 0, b"\x00\x00\x00\x01"),
    "unknown": frame(0xBB, 0, 0, b"123"),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_floods(name: str) -> None:
    app = App()
    async with serving(app) as server, Client.to(server, begin=False) as client, Client.to(server) as other:
        client.write(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, block(b"/")))
        client.write(FLOODS[name] * 100_000)
        slowest_s = 0.0
        for _ in range(5):
            begin = time.process_time()  # the server is in this process
            assert await other.answer(other.ask("/")) == (200, b"0")
            slowest_s = max(slowest_s, time.process_time() - begin)
        assert await _code(client) in (ErrorCodes.ENHANCE_YOUR_CALM, ErrorCodes.PROTOCOL_ERROR)
        assert slowest_s < 2


async def test_headers_without_end() -> None:
    async with serving(App()) as server:
        async with Client.to(server) as client:
            stream = client.ask("/", more=[(f"x-{n}", "y" * 1000) for n in range(80)])
            assert stream
            assert await client.goodbye() == ErrorCodes.ENHANCE_YOUR_CALM
        async with Client.to(server, begin=False) as client:
            client.write(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 1, 1, block()))
            client.write(frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 100) * 1000)
            assert await _code(client) in (ErrorCodes.ENHANCE_YOUR_CALM, ErrorCodes.PROTOCOL_ERROR)


async def test_small_bytes_that_become_large_headers() -> None:
    """The HPACK bomb: a large entry in the table, named again and again."""
    async with serving(App()) as server, Client.to(server, begin=False) as client:
        entry = b"\x40\x01a\x7f" + b"\x81\x1e" + b"x" * 4000
        client.write(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 5, 1, entry + b"\xbe" * 10_000))
        assert await _code(client) in (ErrorCodes.ENHANCE_YOUR_CALM, ErrorCodes.PROTOCOL_ERROR)


async def test_a_body_that_never_comes() -> None:
    async with serving(App()) as server, Client.to(server) as client:
        status, body = await client.answer(client.ask("/", "POST", None))
        assert status == 408
        assert b"did not arrive in time" in body
        assert await client.answer(client.ask("/")) == (200, b"0")


async def test_bodies_of_more_than_the_window_in_all() -> None:
    async with serving(App()) as server, Client.to(server) as client:
        for _ in range(
            2 * connections._WINDOW_OF_ALL_BYTES // 16_000
        ):  # h2 raises FlowControlError where there is no room
            assert await client.answer(client.ask("/", "POST", b"x" * 16_000)) == (200, b"16000")
            client.events.clear()


async def test_whoever_says_nothing_is_cut_off() -> None:
    async with serving(App()) as server, Client.to(server, begin=False) as client:
        assert await _code(client) == ErrorCodes.SETTINGS_TIMEOUT


async def test_too_many_connections() -> None:
    async with serving(App()) as server, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client.to(server)) for _ in range(QUICK.connections + 1)]
        assert await clients[-1].goodbye() == ErrorCodes.ENHANCE_YOUR_CALM
        assert await clients[0].answer(clients[0].ask("/")) == (200, b"0")


MALFORMED: dict[str, list[tuple[bytes, bytes]]] = {
    "no path": [(b":method", b"GET"), (b":scheme", b"https")],
    "no method": [(b":scheme", b"https"), (b":path", b"/")],
    "two paths": [(b":method", b"GET"), (b":path", b"/"), (b":path", b"/x")],
    "not at the beginning": [(b":method", b"GET"), (b"a", b"b"), (b":path", b"/")],
    "unknown": [(b":method", b"GET"), (b":path", b"/"), (b":other", b"x")],
    "capitals": [(b":method", b"GET"), (b":path", b"/"), (b"Host", b"x")],
    "line break": [(b":method", b"GET"), (b":path", b"/"), (b"a", b"b\r\nc: d")],
    "no name": [(b":method", b"GET"), (b":path", b"/"), (b"", b"x")],
    "not ASCII": [(b":method", b"GET"), (b":path", b"/\xff")],
    "tunnel": [(b":method", b"CONNECT"), (b":authority", b"elsewhere:1")],
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_request_ends_alone(name: str) -> None:
    app = App()
    async with serving(app) as server, Client.to(server, begin=False) as client:
        head = b"".join(b"\x00" + bytes((len(a),)) + a + bytes((len(b),)) + b for a, b in MALFORMED[name])
        client.write(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 5, 1, head))
        client.write(frame(HEADERS, 5, 3, block(b"/")))
        received = b""
        while frame(RST_STREAM, 0, 1, struct.pack(">I", ErrorCodes.PROTOCOL_ERROR)) not in received or not app.calls:
            received += await client._read()
            assert not client.is_over
    assert app.calls == 1


@pytest.mark.parametrize("seed", range(20))
async def test_bytes_of_any_kind(seed: int) -> None:
    """Frames with wrong contents, and what is none: a connection ends, the server does not."""
    chance = random.Random(seed)
    async with serving(App()) as server, Client.to(server) as other:
        for _ in range(3):
            async with Client.to(server, begin=False) as client:
                data = PREFACE[: chance.choice((24, 24, 24, 10))] + frame(SETTINGS, 0, 0)
                for _ in range(chance.randrange(40)):
                    payload = chance.choice((block(b"/"), chance.randbytes(chance.randrange(40))))
                    data += frame(chance.randrange(11), chance.randrange(64), chance.randrange(8), payload)
                client.write(data)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await _code(client)
            assert await other.answer(other.ask("/")) == (200, b"0")
