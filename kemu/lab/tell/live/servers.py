"""The HTTP server of the page: on loopback, for those who have the token, under its own name only.

    GET /TOKEN/        the page
    GET /TOKEN/data    the data of all views, as they are now
    GET /TOKEN/events  what happens, as server-sent events (:mod:`streams`)

A web site that a user visits meanwhile can send requests to loopback, also under a name of its own that points there
(DNS rebinding): a request whose ``Host`` or ``Origin`` is another is refused. Other users of the machine can connect,
too: without the token, which is in the address, they get nothing.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kemu.emulated.gateway.limits import sites
from kemu.errors import KemuError
from kemu.lab.tell.live import streams
from kemu.lab.tell.live.runs import Runs
from kemu.lab.tell.page import shells

HOST = "127.0.0.1"
MOST_STREAMS = 32
"""More browsers at a time are refused."""
LINGER_S = 4.0
"""So long browsers have to fetch how it ended."""
_POLL_S = 0.05
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # The address holds the token.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server:
    """Server of one command."""

    def __init__(self, runs: Runs, port: int) -> None:
        """``port``: 0 for any. Raises KemuError where it is in use."""
        self.runs = runs
        self._token = secrets.token_urlsafe(16)
        self._socket = _bound(port)
        self._port = self._socket.getsockname()[1]
        self._streams = 0
        self._last_served = 0
        """How often the data were asked for that show how everything ended."""
        self._ending = False
        names = frozenset(f"{name}:{self._port}" for name in (HOST, "localhost"))
        base = f"/{self._token}"
        app = Starlette(
            routes=[
                Route(f"{base}/", self._page),
                Route(f"{base}/data", self._data),
                Route(f"{base}/events", self._events),
            ]
        )
        config = uvicorn.Config(
            _Guarded(app, names, base),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=2,
            limit_concurrency=4 * MOST_STREAMS,
        )
        self._uvicorn = uvicorn.Server(config)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}/{self._token}/"

    def run(self) -> None:
        """Serve, until :meth:`stop`."""
        self._uvicorn.run(sockets=[self._socket])

    def stop(self) -> None:
        """From any other thread: browsers have a moment to take how it ended, and the server ends."""
        until = time.monotonic() + LINGER_S
        while self._streams > self._last_served and time.monotonic() < until:
            time.sleep(_POLL_S)
        self._ending = True
        time.sleep(_POLL_S * 2)
        self._uvicorn.should_exit = True

    async def _page(self, _: Request) -> Response:
        # Without data: the script fetches them, so that what is shown first is as fresh as what comes later.
        html = await run_in_threadpool(lambda: shells.render(self.runs.shell(), live=True))
        return HTMLResponse(html)

    async def _data(self, request: Request) -> Response:
        asked = (request.query_params.get(name, "") for name in ("known", "edition"))
        numbers = [int(text) if text.isdecimal() else 0 for text in asked]
        made, is_last = await run_in_threadpool(self.runs.page, *numbers)
        self._last_served += is_last
        return Response(made, media_type="application/json")

    async def _events(self, request: Request) -> Response:
        if self._streams >= MOST_STREAMS:
            return PlainTextResponse("too many browsers\n", 503, headers={"Retry-After": "2"})
        last = request.headers.get("last-event-id") or request.query_params.get("from", "")
        stream = self._counted(streams.stream(self.runs, streams.cursor_of(last), lambda: self._ending))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _counted(self, stream: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        self._streams += 1
        try:
            async with contextlib.aclosing(stream):
                async for message in stream:
                    yield message
        finally:
            self._streams -= 1


class _Guarded:
    """Refuses what does not come from the page itself; says as little as possible of what there is."""

    def __init__(self, app: ASGIApp, names: frozenset[str], base: str) -> None:
        self._app, self._names, self._base = app, names, base.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope) if scope["type"] == "http" else None
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await self._app(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> Response | None:
        refused = sites.refusal(Headers(scope=scope), self._names)
        if refused is not None:
            return PlainTextResponse(f"{refused.text}\n", refused.code)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("only to look at\n", 405)
        begin = str(scope["path"]).encode()[: len(self._base)]
        if not secrets.compare_digest(begin, self._base):
            return PlainTextResponse("no such page: the address that kemu printed has a token\n", 404)
        return None


def _with_headers(send: Send) -> Send:
    more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return sending


def _bound(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # A port that was used a moment ago is free; one that another process listens on is not.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise KemuError(f"--live-port {port}: {error.strerror or error}: choose another, or 0 for any") from None
    found.listen(64)
    return found
