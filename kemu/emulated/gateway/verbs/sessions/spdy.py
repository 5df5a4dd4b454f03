"""SPDY/3.1: inside of a WebSocket, as kubectl port-forward speaks it, with a pair of streams, data and errors, for each
connection; and by itself for exec and attach, as client-go before 0.30 speaks it, with a stream for each channel.

Only what clients of Kubernetes use: they open streams, send, and close. Mirrors ``portforward/httpstream.go`` and
``remotecommand/httpstream.go`` of the kubelet.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kemu.emulated.gateway.answers.websockets import NORMAL, PROTOCOL_ERROR, Switching, WebSocket
from kemu.emulated.gateway.limits.upgrades import Upgraded
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.gateway.verbs.sessions import commands, ports
from kemu.emulated.gateway.verbs.sessions.ports import Find, PortSession
from kemu.errors import BadRequest

TUNNEL = "SPDY/3.1+portforward.k8s.io"
_VERSION = 0x8003
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING = 1, 2, 3, 6
_FIN = 1
_MOST_BYTES = 1 << 20
"""Most bytes of one frame."""
_MOST_HEADERS = 16 << 10
"""Most bytes of the headers of a stream."""

_WORDS = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|"
    "allow|authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|"
    "content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|"
    "if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|"
    "proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|"
    "user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|"
    "keep-alive|origin"
)
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritativ"
    "e Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 I"
    "nternal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec"
    " 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xm"
    "l,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset="
    "iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY = b"".join(len(word).to_bytes(4, "big") + word.encode() for word in _WORDS.split("|")) + _TAIL.encode()
"""Of the compression of headers, as the draft of SPDY/3 prints it."""


UPGRADE = "SPDY/3.1"
_CHANNELS = ("stdin", "stdout", "stderr", "error", "resize")
"""Types of streams, by the channels of :mod:`commands`."""


class Broken(Exception):
    """What came is no SPDY."""


@dataclass
class _Stream:
    number: int
    session: PortSession | None = None


class _Socket(Protocol):
    async def receive(self) -> bytes | None: ...
    async def send(self, data: bytes) -> None: ...


class Frames:
    """Frames in both directions."""

    def __init__(self, socket: _Socket) -> None:
        self._socket = socket
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)
        self._waiting = b""

    async def next(self) -> tuple[int, int, int, bytes] | None:
        """Type (0: data), stream, flags, and what is in it. None: the client has gone. Raises Broken."""
        head = await self._exactly(8)
        if head is None:
            return None
        first, flags = int.from_bytes(head[:4], "big"), head[4]
        size = int.from_bytes(head[5:], "big")
        if size > _MOST_BYTES:
            raise Broken
        data = await self._exactly(size)
        if data is None:
            return None
        if not first >> 31:
            return 0, first, flags, data
        if first >> 16 != _VERSION:
            raise Broken
        return first & 0xFFFF, int.from_bytes(data[:4], "big") & 0x7FFFFFFF, flags, data

    async def _exactly(self, size: int) -> bytes | None:
        while len(self._waiting) < size:
            message = await self._socket.receive()
            if message is None:
                return None
            self._waiting += message
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        return data

    def headers(self, block: bytes) -> dict[str, str]:
        """Raises Broken."""
        try:
            plain = self._inflate.decompress(block, _MOST_HEADERS)
        except zlib.error:
            raise Broken from None
        if self._inflate.unconsumed_tail:
            raise Broken
        found: dict[str, str] = {}
        at = 4
        for _ in range(min(int.from_bytes(plain[:4], "big"), 100)):
            texts = []
            for _ in range(2):
                size = int.from_bytes(plain[at : at + 4], "big")
                if at + 4 + size > len(plain):
                    raise Broken
                texts.append(plain[at + 4 : at + 4 + size].decode("latin-1"))
                at += 4 + size
            found[texts[0].lower()] = texts[1]
        return found

    async def reply(self, number: int) -> None:
        block = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        await self._control(_SYN_REPLY, number.to_bytes(4, "big") + block)

    async def reset(self, number: int) -> None:
        await self._control(_RST_STREAM, number.to_bytes(4, "big") + (3).to_bytes(4, "big"))

    async def ping(self, data: bytes) -> None:
        await self._control(_PING, data)

    async def _control(self, kind: int, data: bytes) -> None:
        await self._socket.send(struct.pack(">HH", _VERSION, kind) + b"\0" + len(data).to_bytes(3, "big") + data)

    async def data(self, number: int, data: bytes, *, ends: bool = False) -> None:
        head = number.to_bytes(4, "big") + bytes([_FIN if ends else 0]) + len(data).to_bytes(3, "big")
        await self._socket.send(head + data)


async def serve(socket: WebSocket, pod: Mapping[str, Any], find: Find, ended: Callable[[], Awaitable[str]]) -> None:
    connections = _Connections(Frames(socket), pod, find)
    tasks = [asyncio.ensure_future(connections.listen()), asyncio.ensure_future(ended())]
    broken = False
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        broken = any(isinstance(task.exception(), Broken) for task in done)
    finally:
        for task in (*tasks, *connections.answering):
            task.cancel()
        await asyncio.gather(*tasks, *connections.answering, return_exceptions=True)
        await socket.close(PROTOCOL_ERROR if broken else NORMAL)


class _Connections:
    """Those that a client has opened, by the number of its request."""

    def __init__(self, frames: Frames, pod: Mapping[str, Any], find: Find) -> None:
        self._frames = frames
        self._pod = pod
        self._find = find
        self._streams: dict[int, _Stream] = {}
        self._pairs: dict[str, dict[str, _Stream]] = {}
        self.answering: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        while (frame := await self._frames.next()) is not None:
            kind, number, flags, data = frame
            if kind == _SYN_STREAM:
                await self._open(number, self._frames.headers(data[10:]))
            elif kind == _PING:
                await self._frames.ping(data)
            elif kind == _RST_STREAM:
                await self._end(number)
            elif kind == 0:
                stream = self._streams.get(number)
                if stream is not None and stream.session is not None and data:
                    await stream.session.feed(data)
            if flags & _FIN and kind in (0, _SYN_STREAM):
                await self._end(number)

    async def _open(self, number: int, headers: Mapping[str, str]) -> None:
        kind, port, request = (headers.get(key, "") for key in ("streamtype", "port", "requestid"))
        valid = kind in ("data", "error") and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
        pair = self._pairs.get(request, {})
        if not valid or kind in pair or number in self._streams or len(self._pairs) >= ports.MOST_PORTS:
            await self._frames.reset(number)
            return
        pair[kind] = self._streams[number] = _Stream(number)
        self._pairs[request] = pair
        await self._frames.reply(number)
        if len(pair) == 2:
            self._begin(request, int(port), pair["data"], pair["error"])

    def _begin(self, request: str, port: int, data: _Stream, error: _Stream) -> None:
        session = PortSession(
            self._pod,
            port,
            lambda piece: self._frames.data(data.number, piece),
            lambda piece: self._frames.data(error.number, piece),
        )
        data.session = session
        task = asyncio.create_task(self._answer(request, session, data, error))
        self.answering.add(task)
        task.add_done_callback(self.answering.discard)

    async def _answer(self, request: str, session: PortSession, data: _Stream, error: _Stream) -> None:
        try:
            await ports.answer(session, self._find)
            for stream in (error, data):
                await self._frames.data(stream.number, b"", ends=True)
        except ConnectionResetError:
            pass
        finally:
            self._pairs.pop(request, None)
            for stream in (error, data):
                self._streams.pop(stream.number, None)

    async def _end(self, number: int) -> None:
        """The client sends nothing more on that stream."""
        stream = self._streams.get(number)
        if stream is not None and stream.session is not None:
            await stream.session.feed(b"")


# Exec and attach


def is_asked(headers: Mapping[str, str]) -> bool:
    return headers.get("upgrade", "").strip().lower() == UPGRADE.lower()


def switching(
    request: Request, wanted: tuple[bool, bool, bool, bool], serve: Callable[[Channels], Awaitable[None]]
) -> Switching:
    """``wanted``: whether there are to be standard input, output, error, and a terminal. Raises BadRequest."""
    offered = [each.strip() for each in request.headers.get("x-stream-protocol-version", "").split(",")]
    if request.upgrade is None or commands.V4 not in offered:
        raise BadRequest(f"unable to upgrade: {UPGRADE} is spoken with the protocol {commands.V4} alone")
    answered = [
        (b"connection", b"Upgrade"),
        (b"upgrade", UPGRADE.encode()),
        (b"x-stream-protocol-version", commands.V4.encode()),
    ]

    async def with_channels(stream: Upgraded) -> None:
        channels = Channels(stream)
        if await channels.open(wanted):
            await serve(channels)

    return Switching(request.upgrade, answered, with_channels)


class Channels:
    """Streams as messages of :mod:`commands`: a byte for the channel, then data."""

    def __init__(self, stream: Upgraded) -> None:
        self._frames = Frames(_Plain(stream))
        self._numbers: dict[int, int] = {}
        """Of streams, by channel."""

    async def open(self, wanted: tuple[bool, bool, bool, bool]) -> bool:
        """Until the client has opened all streams that it needs; False: it has not."""
        stdin, stdout, stderr, tty = wanted
        channels = [commands.ERROR]
        chosen = ((stdin, commands.STDIN), (stdout, commands.STDOUT), (stderr and not tty, commands.STDERR))
        channels += [channel for is_wanted, channel in chosen if is_wanted]
        try:
            while not all(channel in self._numbers for channel in channels):
                if await self._next() is None:
                    return False
        except Broken:
            return False
        return True

    async def receive(self) -> bytes | None:
        """The next message; None: the client has ended the session, or broken its rules."""
        with contextlib.suppress(Broken):
            while (found := await self._next()) is not None:
                if found:
                    return found
        return None

    async def _next(self) -> bytes | None:
        """A message; empty: what came was none."""
        frame = await self._frames.next()
        if frame is None:
            return None
        kind, number, flags, data = frame
        channel = next((each for each, own in self._numbers.items() if own == number), -1)
        if kind == _SYN_STREAM:
            name = self._frames.headers(data[10:]).get("streamtype", "")
            if name not in _CHANNELS or _CHANNELS.index(name) in self._numbers:
                await self._frames.reset(number)
            else:
                self._numbers[_CHANNELS.index(name)] = number
                await self._frames.reply(number)
        elif kind == _PING:
            await self._frames.ping(data)
        elif kind == 0 and channel >= 0:
            if data:
                return bytes([channel]) + data
            if flags & _FIN and channel == commands.STDIN:
                return bytes([commands.CLOSE, channel])
        return b""

    async def send(self, data: bytes) -> None:
        """Raises ConnectionResetError where the client has gone."""
        number = self._numbers.get(data[0])
        if number is not None and len(data) > 1:
            await self._frames.data(number, data[1:])

    async def close(self, code: int = NORMAL) -> None:
        with contextlib.suppress(ConnectionResetError):
            for channel in (commands.STDOUT, commands.STDERR, commands.ERROR):
                if channel in self._numbers:
                    await self._frames.data(self._numbers[channel], b"", ends=True)


@dataclass
class _Plain:
    """A connection as the socket of frames."""

    stream: Upgraded

    async def receive(self) -> bytes | None:
        return await self.stream.read() or None

    async def send(self, data: bytes) -> None:
        await self.stream.write(data)
