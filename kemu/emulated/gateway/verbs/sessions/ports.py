"""The protocol of port-forward over WebSockets as kubelets speak it: two channels for each port, data and errors.

Mirrors ``pkg/kubelet/.../portforward/websocket.go``. The web servers that kemu knows (:mod:`pages`) answer without a
handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kemu.emulated.gateway.answers.websockets import NORMAL, PIECE_BYTES, WebSocket
from kemu.emulated.gateway.handlers import Handler
from kemu.emulated.gateway.requests.queries import Query
from kemu.emulated.gateway.verbs import contents
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.sessions import pages
from kemu.emulated.gateway.verbs.sessions.places import Places
from kemu.errors import BadRequest
from kemu.messages.k8s import core_v1_pb2

log = logging.getLogger(__name__)

PROTOCOLS = ("v4.channel.k8s.io", "portforward.k8s.io")
MOST_PORTS = 100
"""Most ports of one session, and most connections of one that go on at once."""
_UNREAD_PIECES = 64
_HEAD_BYTES = 64 << 10

Find = Callable[[int], Handler]
"""Who answers for a port. Raises ConnectionRefusedError."""


def asked(texts: Sequence[str]) -> list[int]:
    """Raises BadRequest."""
    found = [port for text in texts for port in text.split(",") if port]
    if len(found) > MOST_PORTS:
        raise BadRequest(f"at most {MOST_PORTS} ports can be forwarded at once")
    for port in found:
        if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
            raise BadRequest(f"unable to parse {port!r} as a port")
    return [int(port) for port in found]


class PortSession:
    """One connection to a port (:class:`kemu.emulated.gateway.handlers.Session`)."""

    def __init__(
        self,
        pod: Mapping[str, Any],
        port: int,
        send: Callable[[bytes], Awaitable[None]],
        send_error: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self.pod = pod
        self.port = port
        self.container = ""
        self.command: tuple[str, ...] = ()
        self.tty = False
        self.size: tuple[int, int] | None = None
        self._send = send
        self._send_error = send_error
        self._received: asyncio.Queue[bytes] = asyncio.Queue(_UNREAD_PIECES)
        self._has_ended = False

    async def feed(self, data: bytes) -> None:
        """Empty: the client sends nothing more."""
        await self._received.put(data)

    async def read(self) -> bytes:
        if self._has_ended:
            return b""
        data = await self._received.get()
        self._has_ended = not data
        return data

    async def write(self, data: bytes | str) -> None:
        data = data.encode() if isinstance(data, str) else data
        for begin in range(0, len(data), PIECE_BYTES):
            await self._send(data[begin : begin + PIECE_BYTES])

    async def write_error(self, data: bytes | str) -> None:
        await self._send_error(data.encode() if isinstance(data, str) else data)


async def answer(session: PortSession, find: Find) -> None:
    """Let the handler of its port answer; why it cannot goes to the client."""
    try:
        await find(session.port)(session)
    except ConnectionResetError:
        raise
    except ConnectionRefusedError as error:
        await session.write_error(f"error forwarding port {session.port} to pod: {error}")
    except Exception as error:
        log.exception("a handler of port-forward has failed")
        await session.write_error(f"error forwarding port {session.port}: {type(error).__name__}: {error}")


async def serve(
    socket: WebSocket, wanted: Sequence[int], pod: Mapping[str, Any], find: Find, ended: Callable[[], Awaitable[str]]
) -> None:
    sessions = []
    for number, port in enumerate(wanted):

        def sender(channel: int) -> Callable[[bytes], Awaitable[None]]:
            return lambda data: socket.send(bytes([channel]) + data)

        for channel in (2 * number, 2 * number + 1):
            await socket.send(bytes([channel]) + port.to_bytes(2, "little"))
        sessions.append(PortSession(pod, port, sender(2 * number), sender(2 * number + 1)))

    async def listen() -> None:
        while (message := await socket.receive()) is not None:
            number, is_error = divmod(message[0], 2) if message else (len(sessions), 0)
            if number < len(sessions) and not is_error and len(message) > 1:
                await sessions[number].feed(message[1:])

    answering = asyncio.gather(*(answer(session, find) for session in sessions))
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(listen()), asyncio.ensure_future(ended()), answering]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await socket.close(NORMAL)


# What answers out of the box ----------------------------------------------------------------------------------------


def web_server(
    call: Call, places: Places, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, refusal: str
) -> Handler:
    """One request of HTTP/1.1 after the other, answered by :mod:`pages`. Raises ConnectionRefusedError."""
    sources: Mapping[Any, Any] = {}
    tree = places.files(pod, container, sources, call.now_s())
    if pages.answer(pod, container, tree, "/", {}, 0.0, {}) is None:
        raise ConnectionRefusedError(refusal)

    async def serve_http(session: PortSession) -> None:
        waiting = b""
        while True:
            while b"\r\n\r\n" not in waiting:
                piece = await session.read()
                if not piece or len(waiting) > _HEAD_BYTES:
                    return
                waiting += piece
            head, _, waiting = waiting.partition(b"\r\n\r\n")
            line, *headers = head.decode("latin-1").split("\r\n")
            size = next(
                (one.partition(":")[2] for one in headers if one.lower().startswith("content-length:")), "0"
            ).strip()
            left = int(size) if size.isdigit() and len(size) < 9 else 0
            while len(waiting) < left and (piece := await session.read()):
                waiting += piece
                if len(waiting) > 1 << 20:
                    return
            waiting = waiting[left:]
            method, _, target = line.partition(" ")
            path, _, query = target.partition(" ")[0].partition("?")
            board = places.boards.setdefault(pod.metadata.namespace, {})
            fresh = places.files(pod, container, await contents.sources_of(call, pod, container), call.now_s())
            found = pages.answer(pod, container, fresh, path, Query(query).first(), call.now_s(), board)
            found = found or (404, "text/plain", b"")
            code, media, body = found
            lines = [f"HTTP/1.1 {code} {'OK' if code == 200 else 'Error'}", f"content-type: {media}"]
            lines += [f"content-length: {len(body)}", "", ""]
            await session.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" else body))

    return serve_http
