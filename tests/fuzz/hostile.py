"""Clients that mean harm, at the port of a cell: what a stranger can do to it, and what a stranger with a token can.

Each attack is one behaviour of a bad client, many times at once. While they go on, a good client works, what it wrote
is compared with what the server has, and the memory of the process is looked at four times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from kemu.messages.k8s import core_v1_pb2, scheduling_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.host import tokens
from kemu.runtime.host.calls import channels
from tests.fuzz.fuzzer import Finding, Target

GROWTH_LIMIT_MIB = 700
"""Of the process's memory, at any moment."""
PATIENCE_S = 20.0
"""Of a good client."""
LOOK_S = 0.25
MIB = 1 << 20

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS, _PING, _RST, _HEADERS, _CONTINUATION, _WINDOW = 4, 6, 3, 1, 9, 8


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def headers(path: str) -> bytes:
    """HPACK without compression of what begins a call."""
    fields = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"))
    block = b""
    for name, value in (*fields, ("content-type", "application/grpc"), ("te", "trailers")):
        block += b"\x00" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
    return block


class Hostile:
    def __init__(self, target: Target, seed: int, scale: float = 1.0) -> None:
        """``scale``: of the attacks."""
        self._scale = scale
        self.seconds: Counter[str] = Counter()
        self.target = target
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.most_mib = 0.0
        self.memory_mib: list[int] = []
        """What it had grown by after each round of attacks."""
        self.slowest_s = 0.0
        """Of the good client's requests."""
        self.attack = ""
        self._start_mib = 0.0
        self._made = 0
        self._kept: dict[str, int] = {}
        """What the good client has written, and knows of."""
        self._channel: Any = None
        host, _, port = target.address.rpartition(":")
        self._where = host, int(port)

    async def run(self, seconds: float) -> None:
        """Raises Finding."""
        strangers = [
            self.half_open, self.slow, self.garbage, self.floods_of_frames, self.huge_metadata, self.wrong_tokens,
            self.thousands_of_streams, self.large_messages,
        ]  # fmt: skip
        insiders = [self.streams_with_a_token, self.never_reading, self.unread_answers, self.compressed]
        self._start_mib = self.target.memory_mib()
        end = time.monotonic() + seconds
        async with self.connected() as channel:
            self._channel = tokens.Signed(channel, tokens.DRIVER, self.target.token)
            await self.work()
            looking = asyncio.create_task(self._look())
            working = asyncio.create_task(self._work_on())
            try:
                while not self.memory_mib or time.monotonic() < end:
                    before = await self.state()
                    for attack in strangers:
                        await self._play(attack, end, looking, working)
                    if await self.state() != before:
                        raise Finding("strangers have changed something")
                    for attack in insiders:
                        await self._play(attack, end, looking, working)
                    self.memory_mib.append(round(self.target.memory_mib() - self._start_mib))
            finally:
                for task in (looking, working):
                    task.cancel()
                await asyncio.gather(looking, working, return_exceptions=True)
            await self.work()
            await self.compare()

    async def _play(self, attack: Callable[[], Awaitable[None]], end: float, *others: asyncio.Task[None]) -> None:
        self.attack = attack.__name__
        self.counts[self.attack] += 1
        begin = time.monotonic()
        playing = asyncio.ensure_future(attack())
        done, _ = await asyncio.wait([playing, *others], timeout=60, return_when=asyncio.FIRST_COMPLETED)
        if playing not in done:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
        self.seconds[self.attack] += round(time.monotonic() - begin, 1)  # type: ignore[assignment]
        for task in done:
            task.result()
        if not done:
            raise Finding(f"{self.attack} did not end")

    # --- what must hold -----------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            if self.target.process.poll() is not None:
                raise Finding(f"{self.attack}: the process ended with {self.target.process.returncode}")
            grown = self.target.memory_mib() - self._start_mib
            self.most_mib = max(self.most_mib, grown)
            if grown > GROWTH_LIMIT_MIB:
                raise Finding(f"{self.attack}: memory has grown by {grown:.0f} MiB")
            await asyncio.sleep(LOOK_S)

    async def _work_on(self) -> None:
        while True:
            await self.work()
            await asyncio.sleep(0.1)

    async def work(self) -> None:
        """What a good client does: create, read, and sometimes delete."""
        stub = api_pb2_grpc.ApiStub(self._channel)
        self._made += 1
        name = f"good-{self._made}"
        value = self.random.randrange(1_000_000)
        found = scheduling_v1_pb2.PriorityClass(value=value)
        found.metadata.name = name
        create = api_pb2.CreateRequest(object=found.SerializeToString())
        create.resource.resource = "priorityclasses"
        get = api_pb2.GetRequest(name=name)
        get.resource.resource = "priorityclasses"
        begin = time.monotonic()
        try:
            await self._patient(stub.Create, create)
            self._kept[name] = value
            answer = await self._patient(stub.Get, get)
        except grpc.aio.AioRpcError as error:
            raise Finding(
                f"{self.attack}: a good client is not served: {error.code().name}: {error.details()}"
            ) from None
        self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
        if scheduling_v1_pb2.PriorityClass.FromString(answer.object).value != value:
            raise Finding(f"{self.attack}: what was written is not what is read")

    async def _patient(self, method: Any, request: Any) -> Any:
        """Asks again after a 429, as Kubernetes clients do: attackers with its token fill its queue."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return await method(request, timeout=PATIENCE_S)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED or time.monotonic() > end:
                    raise
                self.counts["good client asked to wait"] += 1
            await asyncio.sleep(1)

    async def compare(self) -> None:
        """Everything is as the good client left it."""
        request = api_pb2.ListRequest()
        request.resource.resource = "priorityclasses"
        listed = await api_pb2_grpc.ApiStub(self._channel).List(request, timeout=PATIENCE_S)
        found = [scheduling_v1_pb2.PriorityClass.FromString(item) for item in listed.items]
        values = {one.metadata.name: one.value for one in found if one.metadata.name.startswith("good-")}
        # The good client was stopped once, and does not know about what it was doing.
        if not self._kept.items() <= values.items() or len(values) > len(self._kept) + 1:
            raise Finding("the cluster is not as its client left it")

    async def state(self) -> list[bytes]:
        """What the good client does not touch."""
        found: list[bytes] = []
        for resource in ("pods", "nodes", "namespaces"):
            request = api_pb2.ListRequest()
            request.resource.resource = resource
            listed = await api_pb2_grpc.ApiStub(self._channel).List(request, timeout=PATIENCE_S)
            found += listed.items
        return found

    def _few(self, count: int) -> int:
        return max(2, round(count * self._scale))

    # --- connections --------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[grpc.aio.Channel]:
        options = channels.CHANNEL_OPTIONS
        if self.target.certificate:
            credentials = grpc.ssl_channel_credentials(self.target.certificate)
            channel = grpc.aio.secure_channel(self.target.address, credentials, options=options)
        else:
            channel = grpc.aio.insecure_channel(self.target.address, options=options)
        async with channel:
            yield channel

    async def _open(self, *, tls: bool = True) -> asyncio.StreamWriter:
        context = None
        if self.target.certificate and tls:
            context = ssl.create_default_context(cadata=self.target.certificate.decode())
            context.set_alpn_protocols(["h2"])
        _, writer = await asyncio.wait_for(asyncio.open_connection(*self._where, ssl=context), 15)
        return writer

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
            writer.write(data)
            await asyncio.wait_for(writer.drain(), 2)

    async def _sockets(self, count: int, *, tls: bool = True) -> list[asyncio.StreamWriter]:
        found = await asyncio.gather(*(self._open(tls=tls) for _ in range(count)), return_exceptions=True)
        return [one for one in found if isinstance(one, asyncio.StreamWriter)]

    async def _close(self, writers: list[asyncio.StreamWriter]) -> None:
        for writer in writers:
            if self.random.random() < 0.5:
                # By RST instead of FIN.
                raw = writer.get_extra_info("socket")
                with contextlib.suppress(OSError, AttributeError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    # --- attacks of strangers -----------------------------------------------------------------------------------------

    async def half_open(self) -> None:
        """Connections that say nothing, or stop in the middle of a greeting, of a frame, of a call."""
        begun = PREFACE + frame(_SETTINGS, 0, 0, b"")
        call = begun + frame(_HEADERS, 4, 1, headers("/kemu.v1.Api/Session"))
        plain = await self._sockets(self._few(200), tls=False)
        opened = await self._sockets(self._few(100))
        for number, writer in enumerate(opened):
            data = (PREFACE[:10], begun, call[: -number % 40], call, call[: len(begun) + 5])[number % 5]
            await self._send(writer, data)
        await asyncio.sleep(1)
        await self._close(plain + opened)

    async def slow(self) -> None:
        """A greeting and a call, byte by byte."""
        data = PREFACE + frame(_SETTINGS, 0, 0, b"") + frame(_HEADERS, 0, 1, headers("/kemu.v1.Api/Get"))
        writers = await self._sockets(30)
        for position in range(0, len(data), 8):
            for writer in writers:
                await self._send(writer, data[position : position + 8])
            await asyncio.sleep(0.01)
        await self._close(writers)

    async def garbage(self) -> None:
        """Bytes that are not HTTP/2, or only at their beginning."""
        for tls in (True, False):
            writers = await self._sockets(40, tls=tls)
            for number, writer in enumerate(writers):
                junk = self.random.randbytes(self.random.randrange(1, 20_000))
                data = (junk, PREFACE + junk, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01" + junk)
                await self._send(writer, data[number % 4])
            await self._close(writers)

    async def floods_of_frames(self) -> None:
        """Valid frames, far too many: settings, pings, calls begun and reset at once, headers without end."""
        begun = PREFACE + frame(_SETTINGS, 0, 0, b"")
        block = headers("/kemu.v1.Api/Get")
        floods = (
            frame(_SETTINGS, 0, 0, struct.pack(">HI", 3, 100)) * self._few(20_000),
            frame(_PING, 0, 0, b"x" * 8) * self._few(20_000),
            b"".join(
                frame(_HEADERS, 4, number, block) + frame(_RST, 0, number, struct.pack(">I", 8))
                for number in range(1, self._few(10_000), 2)
            ),
            frame(_HEADERS, 0, 1, block) + frame(_CONTINUATION, 0, 1, b"\x00\x01x\x7f\x81\x7f" + b"y" * 256) * 2_000,
            frame(_WINDOW, 0, 0, struct.pack(">I", 2**31 - 1)) * 100,
        )
        writers = await self._sockets(2 * len(floods))
        for number, writer in enumerate(writers):
            await self._send(writer, begun + floods[number % len(floods)])
        await self._close(writers)

    async def huge_metadata(self) -> None:
        async with self.connected() as channel:
            stub = channel.unary_unary("/kemu.v1.Api/Get")
            for size, count in ((20_000, 1), (1 << 20, 1), (10, 5_000), (7_000, 1)):
                metadata = tuple((f"x-{number}", "y" * size) for number in range(count))
                for _ in range(5):
                    await self._refused(stub(b"", metadata=metadata, timeout=PATIENCE_S))

    async def wrong_tokens(self) -> None:
        async with self.connected() as channel:
            for _ in range(self._few(10)):
                made_up = [self.random.choice(("A" * 88, "x", "", "é", "=" * 88)) for _ in range(200)]
                callers = [f"kubelet/{self.random.getrandbits(30)}" for _ in made_up]
                await asyncio.gather(
                    *(
                        self._refused(self._as(channel, caller, token))
                        for caller, token in zip(callers, made_up, strict=True)
                    )
                )

    def _as(self, channel: grpc.aio.Channel, caller: str, token: str) -> Any:
        with contextlib.suppress(UnicodeError):
            token.encode("ascii")
            return tokens.Signed(channel, caller, token).unary_unary("/kemu.v1.Cell/Stop")(b"", timeout=PATIENCE_S)
        return channel.unary_unary("/kemu.v1.Cell/Stop")(b"", timeout=PATIENCE_S)

    async def thousands_of_streams(self) -> None:
        """Without a token; each ends at once."""
        async with self.connected() as channel:
            stub = channel.stream_stream("/kemu.v1.Api/Watch")
            await asyncio.gather(*(self._refused(stub(timeout=PATIENCE_S).read()) for _ in range(self._few(4_000))))

    async def large_messages(self) -> None:
        async with self.connected() as channel:
            stub = channel.unary_unary("/kemu.v1.Api/Create")
            await asyncio.gather(*(self._refused(stub(bytes(20 * MIB), timeout=PATIENCE_S)) for _ in range(5)))

    async def _refused(self, call: Any) -> None:
        """A stranger gets no answer but a refusal."""
        try:
            await call
        except grpc.aio.AioRpcError as error:
            self.counts[error.code().name] += 1
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise Finding(f"{self.attack}: a stranger waits instead of being refused") from None
            return
        raise Finding(f"{self.attack}: a stranger was served")

    # --- attacks with a token -----------------------------------------------------------------------------------------

    async def _tolerant(self, call: Any) -> Any:
        try:
            return await asyncio.wait_for(call, PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            self.counts[error.code().name] += 1
        except (TimeoutError, asyncio.InvalidStateError):
            self.counts["no answer"] += 1
        return None

    async def streams_with_a_token(self) -> None:
        """More than a client may have."""
        async with self.connected() as channel:
            signed = tokens.Signed(channel, tokens.DRIVER, self.target.token)
            stub = api_pb2_grpc.ApiStub(signed)
            calls = [self.random.choice((stub.Watch, stub.Session))() for _ in range(1_500)]
            reading = [asyncio.ensure_future(self._tolerant(call.read())) for call in calls]
            begin = time.monotonic()
            await asyncio.wait(reading, timeout=2)
            while sum(one.done() for one in reading) < 400 and time.monotonic() - begin < PATIENCE_S:
                await asyncio.wait([one for one in reading if not one.done()], timeout=0.2)
            over = sum(one.done() for one in reading)
            for one in reading:
                one.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            for call in calls:
                call.cancel()
            if over < 400:
                raise Finding(f"{self.attack}: {1_500 - over} streams are open")

    async def never_reading(self) -> None:
        """Up to 1,000 watchers that never read, and five pods of 1 MB."""
        async with self.connected() as channel:
            stub = api_pb2_grpc.ApiStub(tokens.Signed(channel, tokens.DRIVER, self.target.token))
            watch = api_pb2.WatchRequest()
            watch.create.watch_id = 1
            watch.create.resource.resource = "pods"
            calls = [stub.Watch() for _ in range(self._few(1_000))]
            await asyncio.gather(*(self._tolerant(call.write(watch)) for call in calls))
            await asyncio.sleep(0.5)
            await self.large_pods(stub, 1)
            for call in calls:
                call.cancel()

    async def large_pods(self, stub: Any, life_s: float) -> None:
        """Five pods of 1 MB come and go."""
        names = [f"large-{self.random.getrandbits(40):x}" for _ in range(5)]
        for name in names:
            pod = core_v1_pb2.Pod()
            pod.metadata.name, pod.metadata.namespace = name, "default"
            pod.spec.containers.add(name="main", image="pause:1").env.add(name="FILLER", value="x" * MIB)
            create = api_pb2.CreateRequest(object=pod.SerializeToString())
            create.resource.resource, create.resource.namespace = "pods", "default"
            self.counts["large pods"] += await self._tolerant(stub.Create(create, timeout=PATIENCE_S)) is not None
        await asyncio.sleep(life_s)
        for name in names:
            delete = api_pb2.DeleteRequest(name=name, grace_period_seconds=0)
            delete.resource.resource, delete.resource.namespace = "pods", "default"
            await self._tolerant(stub.Delete(delete, timeout=PATIENCE_S))

    async def unread_answers(self) -> None:
        """Sessions that ask for the same list again and again, and read nothing."""
        async with self.connected() as channel:
            stub = api_pb2_grpc.ApiStub(tokens.Signed(channel, tokens.DRIVER, self.target.token))
            request = api_pb2.SessionRequest()
            for number in range(200):
                request.calls.add(id=number).list.resource.resource = "priorityclasses"
            calls = [stub.Session() for _ in range(self._few(40))]
            for call in calls:
                for _ in range(5):
                    with contextlib.suppress(TimeoutError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
                        await asyncio.wait_for(call.write(request), 0.5)
            await asyncio.sleep(0.5)
            for call in calls:
                call.cancel()

    async def compressed(self) -> None:
        """A small message that grows to a gigabyte."""
        async with self.connected() as channel:
            signed = tokens.Signed(channel, tokens.DRIVER, self.target.token)
            stub = signed.unary_unary("/kemu.v1.Api/Create")
            await self._tolerant(
                stub(bytes(self._few(1_000) * MIB), compression=grpc.Compression.Gzip, timeout=PATIENCE_S)
            )
