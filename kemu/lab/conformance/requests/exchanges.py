"""Single requests to the gateway, in this process: what a server in front of it hands on, and takes back."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Mapping
from typing import NamedTuple

from kemu.emulated.gateway.asgi import Application, Message, Scope

Headers = list[tuple[str, str]]


class Answer(NamedTuple):
    status: int
    headers: Headers
    """Names in lower case."""
    body: bytes


async def send(app: Application, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """``path`` and ``query`` are quoted."""
    stated = {"host": "127.0.0.1", **headers}
    if body or method in ("POST", "PUT", "PATCH"):
        stated["content-length"] = str(len(body))
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": urllib.parse.unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in stated.items()],
        "scheme": "https",
        "client": ("127.0.0.1", 1),
    }
    asked: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    status, found, pieces = 0, list[tuple[str, str]](), list[bytes]()

    async def receive() -> Message:
        if asked:
            return asked.pop()
        # The client stays until it has its answer.
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def take(message: Message) -> None:
        nonlocal status, found
        if message["type"] == "http.response.start":
            status = message["status"]
            found = [(name.decode().lower(), value.decode()) for name, value in message["headers"]]
        else:
            pieces.append(message.get("body", b""))

    await app(scope, receive, take)
    return Answer(status, found, b"" if method == "HEAD" else b"".join(pieces))
