"""WebSockets on an upgraded connection (RFC 6455), framed by wsproto."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from kemu.emulated.gateway.answers.responses import Header, Response
from kemu.emulated.gateway.asgi import Send
from kemu.emulated.gateway.limits.upgrades import Upgraded
from kemu.emulated.gateway.requests.messages import Request
from kemu.errors import BadRequest, Forbidden

MOST_BYTES = 4 << 20
"""Most bytes of one message."""
PIECE_BYTES = 32 << 10
"""Bytes that are sent in one frame."""
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
NORMAL, TOO_BIG, PROTOCOL_ERROR = 1000, 1009, 1002


class Switching(Response):
    """The answer 101; then the connection is served."""

    __slots__ = ("_serve", "_upgrade")

    def __init__(
        self,
        upgrade: Callable[[Sequence[Header]], Upgraded],
        headers: Sequence[Header],
        serve: Callable[[Upgraded], Awaitable[None]],
    ) -> None:
        super().__init__(101, "", (), headers)
        self._upgrade = upgrade
        self._serve = serve

    async def _send(self, send: Send) -> None:
        try:
            stream = self._upgrade(self._headers)
        except ConnectionResetError:
            return
        try:
            await self._serve(stream)
        except ConnectionResetError:
            pass
        finally:
            stream.close()


def is_asked(headers: Mapping[str, str]) -> bool:
    return headers.get("upgrade", "").strip().lower() == "websocket"


def protocol_of(headers: Mapping[str, str], known: Sequence[str]) -> str | None:
    """The first protocol of the server that the client offers, too. None: the client offers none at all.

    Raises BadRequest where it offers others only.
    """
    offered = [one.strip() for one in headers.get("sec-websocket-protocol", "").split(",") if one.strip()]
    found = next((one for one in known if one in offered), None)
    if found is None and offered:
        raise BadRequest(
            f"unable to upgrade: none of the protocols {', '.join(offered)} is spoken; there are: {', '.join(known)}"
        )
    return found


def check_origin(headers: Mapping[str, str]) -> None:
    """Pages of other sites may open WebSockets, with the certificate of the browser's user, but with no token: no page
    chooses that header. Raises Forbidden."""
    origin = headers.get("origin", "")
    if (
        origin
        and "authorization" not in headers
        and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    ):
        raise Forbidden(f"the origin {origin} is not allowed to open a WebSocket here")


def switching(request: Request, protocol: str | None, serve: Callable[[WebSocket], Awaitable[None]]) -> Switching:
    """Raises BadRequest and Forbidden."""
    headers = request.headers
    check_origin(headers)
    key = headers.get("sec-websocket-key", "")
    if request.upgrade is None or request.method != "GET" or not key or headers.get("sec-websocket-version") != "13":
        raise BadRequest("unable to upgrade: no WebSocket handshake of version 13")
    accepted = base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest())
    answered: list[Header] = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", accepted),
    ]
    if protocol is not None:
        answered.append((b"sec-websocket-protocol", protocol.encode()))

    async def with_socket(stream: Upgraded) -> None:
        socket = WebSocket(stream)
        try:
            await serve(socket)
        finally:
            await socket.close()

    return Switching(request.upgrade, answered, with_socket)


class WebSocket:
    """Messages in both directions."""

    def __init__(self, stream: Upgraded) -> None:
        self._stream = stream
        self._connection = Connection(ConnectionType.SERVER)
        self._messages: list[bytes] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_closed = False

    async def receive(self) -> bytes | None:
        """The next message; None: the client has ended the session, or broken its rules."""
        while not self._messages:
            if self._is_closed:
                return None
            data = await self._stream.read()
            if not data:
                return None
            try:
                self._connection.receive_data(data)
                for event in self._connection.events():
                    await self._take(event)
            except (RemoteProtocolError, LocalProtocolError):
                await self.close(PROTOCOL_ERROR)
        return self._messages.pop(0)

    async def _take(self, event: object) -> None:
        if isinstance(event, BytesMessage | TextMessage):
            piece = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > MOST_BYTES:
                await self.close(TOO_BIG)
            elif event.message_finished:
                self._messages.append(b"".join(self._pieces))
                self._pieces, self._size = [], 0
        elif isinstance(event, Ping):
            await self._stream.write(self._connection.send(event.response()))
        elif isinstance(event, CloseConnection) and not self._is_closed:
            self._is_closed = True
            await self._stream.write(self._connection.send(event.response()))

    async def send(self, data: bytes | str) -> None:
        """One message, binary or text. Raises ConnectionResetError where the client has gone."""
        if self._is_closed:
            raise ConnectionResetError("the session has ended")
        try:
            message = TextMessage(data=data) if isinstance(data, str) else BytesMessage(data=data)
            await self._stream.write(self._connection.send(message))
        except LocalProtocolError:
            raise ConnectionResetError("the session has ended") from None

    async def close(self, code: int = NORMAL) -> None:
        """May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(ConnectionResetError, LocalProtocolError):
            await self._stream.write(self._connection.send(CloseConnection(code=code)))
