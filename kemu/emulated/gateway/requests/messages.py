"""One request of a client, as the rest of the gateway sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kemu.emulated.gateway.asgi import Receive, Scope
from kemu.emulated.gateway.limits import connections
from kemu.emulated.gateway.limits.upgrades import Upgraded
from kemu.emulated.gateway.requests import negotiation, request_infos
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.errors import BadRequest, RequestEntityTooLarge


class Request:
    """Made of an ASGI scope."""

    __slots__ = (
        "_headers",
        "_query_string",
        "_receive",
        "headers",
        "info",
        "method",
        "path",
        "peer",
        "query",
        "reset",
        "scheme",
        "upgrade",
        "user",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        info = self.info = request_infos.of(scope)
        self.method, self.path, self.query = info.method, info.path, info.query
        self._query_string: bytes = scope.get("query_string", b"")
        self._headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        self.headers: Mapping[str, str] = headers_of(scope)
        self.scheme: str = scope.get("scheme", "https")
        self.peer: Any = scope.get("client")
        """Address of the client's end of the connection."""
        self.reset: Callable[[bool], None] | None = (scope.get("extensions") or {}).get(connections.RESET)
        """Ends the connection; with True by a reset."""
        self.upgrade: Callable[[Sequence[tuple[bytes, bytes]]], Upgraded] | None
        """Upgrades the connection, with the headers of the answer 101."""
        self.upgrade = (scope.get("extensions") or {}).get(connections.UPGRADE)
        self.user: User = identities.ADMINISTRATOR

    @property
    def target(self) -> str:
        """Path and query, as they were sent."""
        query = self._query_string.decode("latin-1")
        return f"{quote(self.path)}?{query}" if query else quote(self.path)

    @property
    def takes_gzip(self) -> bool:
        """As kube-apiserver reads Accept-Encoding: without regard to qualities."""
        return "gzip" in map(str.strip, self.headers.get("accept-encoding", "").split(","))

    @property
    def agent(self) -> str:
        return self.headers.get("user-agent", "")

    def impersonation(self) -> list[tuple[str, str]]:
        """The headers about whom the request is made as."""
        for name in self.headers:
            if name.startswith("impersonate-"):
                break
        else:
            return []
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers]
        return [pair for pair in pairs if pair[0].startswith("impersonate-")]

    def form(self, with_tables: bool = True) -> Form:
        """``with_tables``: the answer can be one. Raises :class:`kemu.errors.NotAcceptable`."""
        accept, agent = self.headers.get("accept", ""), self.headers.get("user-agent", "")
        include, pretty = "", ""
        if self.query.values:
            include, pretty = self.query.text("includeObject"), self.query.text("pretty")
        return negotiation.form(accept, include, pretty, agent, with_tables)

    async def body(self, limit: int) -> bytes:
        """Raises :class:`kemu.errors.RequestEntityTooLarge`, and BadRequest when the client has gone away."""
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise BadRequest("the client has closed the connection")
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def disconnected(self) -> None:
        """Waits until the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def headers_of(scope: Scope) -> dict[str, str]:
    """By lower-case name. Of those that come several times, all values."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        text = value.decode("latin-1")
        found[key] = f"{found[key]},{text}" if key in found else text
    return found


def _too_large(limit: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {limit}")
