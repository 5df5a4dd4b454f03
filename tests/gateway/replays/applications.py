"""Requests to an ASGI application in this process, without sockets; answers may stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Application = Callable[[Any, Any, Any], Awaitable[None]]
ANSWER_S = 20.0


class Exchange:
    """One request on its way; ``body`` grows as long as the answer streams."""

    def __init__(
        self,
        application: Application,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> None:
        self.status = 0
        self.headers: dict[str, list[str]] = {}
        self.body = b""
        self.over = asyncio.Event()
        self._begun = asyncio.Event()
        self._left = asyncio.Event()
        self._sent = False
        self._request = body or b""
        raw = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
        if body is not None and "content-length" not in (key.lower() for key in headers):
            raw.append((b"content-length", str(len(body)).encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": raw,
            "client": ("127.0.0.1", 1),
            "server": ("kemu", 80),
        }
        self._task = asyncio.create_task(self._run(application, scope))

    async def begun(self) -> None:
        """Status and headers are there."""
        async with asyncio.timeout(ANSWER_S):
            await self._begun.wait()

    async def whole(self) -> None:
        async with asyncio.timeout(ANSWER_S):
            await self.over.wait()
        await self._task

    async def leave(self) -> None:
        """The client goes away."""
        self._left.set()
        _, pending = await asyncio.wait([self._task], timeout=2.0)
        for task in pending:
            task.cancel()

    def header(self, name: str) -> str:
        return ", ".join(self.headers.get(name, []))

    async def _run(self, application: Application, scope: dict[str, Any]) -> None:
        try:
            await application(scope, self._receive, self._send)
        finally:
            self._begun.set()
            self.over.set()

    async def _receive(self) -> dict[str, Any]:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._request, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for key, value in message.get("headers", ()):
                self.headers.setdefault(key.decode().lower(), []).append(value.decode())
            self._begun.set()
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                self.over.set()


async def ask(
    application: Application,
    method: str,
    path: str,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Exchange:
    exchange = Exchange(application, method, path, query, headers or {}, body)
    await exchange.whole()
    return exchange
