"""The protocol of exec and attach over WebSockets: a byte for the channel, then what goes over it. Over SPDY the
channels are streams (:mod:`spdy`).

Mirrors ``remotecommand`` of apimachinery and ``wsstream`` of apiserver: ``v5.channel.k8s.io`` (a client can close its
standard input), ``v4.channel.k8s.io`` (the exit code as a Status) and ``channel.k8s.io``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from kemu.emulated.gateway.answers.websockets import NORMAL, PIECE_BYTES
from kemu.emulated.gateway.handlers import Handler

log = logging.getLogger(__name__)

V5, V4, V1 = "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"
PROTOCOLS = (V5, V4, V1)
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_UNREAD_PIECES = 64
"""Messages of standard input that may wait for a handler; then the client has to wait."""


class Socket(Protocol):
    """Messages in both directions."""

    async def receive(self) -> bytes | None: ...
    async def send(self, data: bytes) -> None: ...
    async def close(self, code: int = NORMAL) -> None: ...


class CommandSession:
    """A session of exec or attach (:class:`kemu.emulated.gateway.handlers.Session`)."""

    def __init__(
        self,
        socket: Socket,
        protocol: str | None,
        streams: tuple[bool, bool, bool, bool],
        pod: Mapping[str, Any],
        container: str,
        command: tuple[str, ...],
    ) -> None:
        """``streams``: whether the client wants standard input, output, error, and a terminal."""
        self._socket = socket
        self._protocol = protocol
        self._has_stdin, self._has_stdout, self._has_stderr, self.tty = streams
        self.pod = pod
        self.container = container
        self.command = command
        self.port = 0
        self.size: tuple[int, int] | None = None
        self._stdin: asyncio.Queue[bytes] = asyncio.Queue(_UNREAD_PIECES)
        self._stdin_ended = not self._has_stdin

    async def read(self) -> bytes:
        if self._stdin_ended and self._stdin.empty():
            return b""
        data = await self._stdin.get()
        if not data:
            self._stdin_ended = True
        return data

    async def write(self, data: bytes | str) -> None:
        if self._has_stdout:
            await self._send(STDOUT, data)

    async def write_error(self, data: bytes | str) -> None:
        # A terminal has one stream of output.
        if self.tty:
            await self.write(data)
        elif self._has_stderr:
            await self._send(STDERR, data)

    async def _send(self, channel: int, data: bytes | str) -> None:
        data = data.encode(errors="surrogateescape") if isinstance(data, str) else data
        for begin in range(0, len(data), PIECE_BYTES):
            await self._socket.send(bytes([channel]) + data[begin : begin + PIECE_BYTES])

    async def listen(self) -> None:
        """Takes what the client sends, until it has gone."""
        while (message := await self._socket.receive()) is not None:
            channel, data = message[0] if message else -1, message[1:]
            if channel == STDIN and self._has_stdin and data and not self._stdin_ended:
                await self._stdin.put(data)
            elif channel == RESIZE:
                self._resize(data)
            elif channel == CLOSE and self._protocol == V5 and data[:1] == bytes([STDIN]):
                await self._stdin.put(b"")
        await self._stdin.put(b"")

    def _resize(self, data: bytes) -> None:
        try:
            found = json.loads(data)
            self.size = int(found["Width"]), int(found["Height"])
        except (ValueError, KeyError, TypeError):
            pass

    async def greet(self) -> None:
        """An empty message tells the client that the session stands."""
        channel = STDOUT if self._has_stdout else STDERR if self._has_stderr else ERROR
        await self._socket.send(bytes([channel]))

    async def finish(self, code: int) -> None:
        if self._protocol in (V5, V4):
            await self._send(ERROR, json.dumps(_exited(code)))
        elif code:
            await self._send(ERROR, _reason(code))
        await self._socket.close(NORMAL)

    async def fail(self, message: str) -> None:
        status = {"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500}
        await self._send(ERROR, json.dumps(status) if self._protocol in (V5, V4) else message)
        await self._socket.close(NORMAL)


def _reason(code: int) -> str:
    return f"command terminated with non-zero exit code: exit status {code}"


def _exited(code: int) -> dict[str, Any]:
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": _reason(code),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def serve(
    session: CommandSession, handler: Handler, ended: Callable[[], Awaitable[str]], ends_within_s: float = 0.0
) -> None:
    """Until the handler returns, the client has gone, or ``ended`` says why there is nothing to speak with any more;
    then the handler may still say something for so long."""
    await session.greet()
    running = asyncio.ensure_future(handler(session))
    listening = asyncio.ensure_future(session.listen())
    ending = asyncio.ensure_future(ended())
    tasks: tuple[asyncio.Future[Any], ...] = running, listening, ending
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if ending.done() and ends_within_s:
            await asyncio.wait((running, listening), timeout=ends_within_s, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await session.finish(_code(running))
        elif ending.done():
            await session.fail(ending.result())
    except _Failed as failed:
        await session.fail(str(failed))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Failed(Exception):
    pass


def _code(running: asyncio.Future[Any]) -> int:
    error = running.exception()
    if isinstance(error, ConnectionResetError):
        raise error
    if error is not None:
        log.error("a handler has failed", exc_info=error)
        raise _Failed(f"the handler has failed: {type(error).__name__}: {error}")
    code = running.result()
    if code is None:
        return 0
    if isinstance(code, bool) or not isinstance(code, int):
        raise _Failed(f"the handler has returned {code!r}, which is no exit code")
    return code & 255
