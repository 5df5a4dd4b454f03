"""What goes back over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from types import AsyncGeneratorType
from typing import Any

from kemu.emulated.gateway.asgi import Send

Header = tuple[bytes, bytes]

_UNCACHED: Header = (b"cache-control", b"no-cache, private")
_COMPRESSED, _LEVEL = 128 << 10, 1
"""As kube-apiserver (``endpoints/handlers/responsewriters``): bytes above which a body is compressed, and how well."""
_PIECE = 1 << 16
"""Bytes that are written at a time, so that the event loop gets its turn."""


_ALL_WARNINGS, _ONE_OF_MANY = 4096, 256
"""Letters of all warnings, and of one where there would be more."""


class Response:
    """``body``: its pieces, or what yields them as they come to be."""

    __slots__ = ("_body", "_headers", "_stream", "items", "on_sent", "status")

    def __init__(
        self,
        status: int,
        content_type: str,
        body: Sequence[bytes] | AsyncGenerator[bytes, None],
        headers: Sequence[Header] = (),
        is_cached: bool = False,
    ) -> None:
        """``is_cached``: nothing is said of who may keep the answer."""
        self.status = status
        self.items = 0
        """Objects in a list."""
        self.on_sent: Callable[[], None] | None = None
        """To be called when the answer was sent, or could not be."""
        is_stream = isinstance(body, AsyncGeneratorType)  # the abstract class would ask
        self._stream: AsyncGenerator[bytes, None] | None = body if is_stream else None  # type: ignore[assignment]
        self._body: Sequence[bytes] = () if is_stream else body  # type: ignore[assignment]
        self._headers = [(b"content-type", content_type.encode()), *headers] if content_type else [*headers]
        for name, _ in headers:
            if name == b"cache-control":
                break
        else:
            if not is_cached:
                self._headers.append(_UNCACHED)

    def add(self, *headers: Header) -> None:
        self._headers += headers

    async def compress(self) -> None:
        """As the body of a client that takes gzip, if that is large; in a thread, while others are served."""
        body = self._body
        if sum(map(len, body)) > _COMPRESSED:
            self._body = (await asyncio.to_thread(gzip.compress, b"".join(body), _LEVEL),)
            self._headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]

    def send(self, send: Send) -> Coroutine[Any, Any, None]:
        return self._send(send) if self.on_sent is None else self._send_and_tell(send, self.on_sent)

    async def _send_and_tell(self, send: Send, on_sent: Callable[[], None]) -> None:
        try:
            await self._send(send)
        finally:
            on_sent()

    async def _send(self, send: Send) -> None:
        body = self._body
        if self._stream is not None:
            await send({"type": "http.response.start", "status": self.status, "headers": self._headers})
            # Clients wait for the headers of a watch on which nothing happens.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            async with contextlib.aclosing(self._stream) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        size = sum(map(len, body))
        headers = [*self._headers, (b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if size <= _PIECE:
            await send({"type": "http.response.body", "body": b"".join(body), "more_body": False})
            return
        waiting: list[bytes] = []
        count = 0
        for piece in body:
            waiting.append(piece)
            count += len(piece)
            if count >= _PIECE:
                await send({"type": "http.response.body", "body": b"".join(waiting), "more_body": True})
                waiting, count = [], 0
        await send({"type": "http.response.body", "body": b"".join(waiting), "more_body": False})


def text(status: int, body: str) -> Response:
    return Response(status, "text/plain; charset=utf-8", (body.encode(),), ((b"x-content-type-options", b"nosniff"),))


def warnings(texts: Sequence[str]) -> list[Header]:
    """As ``Warning`` headers, each text once. Of many, only the beginnings, and no more than clients take
    (``filters/warning.go``)."""
    if not texts:
        return []
    once = list(dict.fromkeys(text for text in texts if text))
    if sum(map(len, once)) > _ALL_WARNINGS and len(once) > 1:
        once = list(dict.fromkeys(text[:_ONE_OF_MANY] for text in once))
    found: list[Header] = []
    written = 0
    for text in once:
        if found and written + len(text) > _ALL_WARNINGS:
            break
        written += len(text)
        found.append((b"warning", f"299 - {_quoted(text)}".encode()))
    return found


def _quoted(text: str) -> str:
    kept = "".join(one if one.isprintable() else " " for one in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'
