"""SPDY/3.1 inside of a WebSocket, as kubectl port-forward speaks it: a pair of streams, data and errors, for each
connection.

Only what clients of Kubernetes use: they open streams, send, and close. Mirrors ``portforward/httpstream.go`` of the
kubelet.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.gateway.answers.websockets import NORMAL, PROTOCOL_ERROR, WebSocket
from kemu.emulated.gateway.verbs.sessions import ports
from kemu.emulated.gateway.verbs.sessions.ports import Find, PortSession

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


class Broken(Exception):
    """What came is no SPDY."""


@dataclass
class _Stream:
    number: int
    session: PortSession | None = None


class Frames:
    """Frames in both directions."""

    def __init__(self, socket: WebSocket) -> None:
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
