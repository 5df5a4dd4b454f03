"""Web sites that a user visits while a server on loopback asks for no token.

A browser sends what their pages ask for to loopback, too, also under a name of the site's own that points there (DNS
rebinding). So a request names this server, as its ``Host``, and, where a page sends it, as its ``Origin``. A page may
send bodies of a few media types without asking first, or without any: in a request that changes something they are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, NamedTuple

from kemu.emulated.gateway.asgi import Application

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_SIMPLE = ("", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded")
"""What a page may send to another site without asking it first (CORS-safelisted request headers)."""


_SILENT_PROGRAMS = ("OpenAPI-Generator/",)
"""What the official Python client calls itself, which sends JSON without a Content-Type. No page chooses the User-Agent
of its requests."""


class Refusal(NamedTuple):
    code: int
    reason: str
    text: str


def refusal(headers: Mapping[str, str], names: Collection[str]) -> Refusal | None:
    """``headers``: by lower-case name. ``names``: those of the server, with its port."""
    if headers.get("host", "").lower() not in names:
        return Refusal(421, "BadRequest", "not under this name")
    origin = headers.get("origin")
    if origin is not None and origin.lower().removeprefix("http://") not in names:
        return Refusal(403, "Forbidden", "not for other sites")
    return None


def refusal_of_body(headers: Mapping[str, str]) -> Refusal | None:
    """A request has a body that says what it is, unless a program that never says it has sent it."""
    if "content-type" not in headers and headers.get("user-agent", "").startswith(_SILENT_PROGRAMS):
        return None
    has_body = "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""
    if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() in _SIMPLE:
        return Refusal(415, "UnsupportedMediaType", "a body needs a Content-Type, such as application/json")
    return None


class Guard:
    """An ASGI application around one that asks for no token."""

    def __init__(self, app: Application, host: str) -> None:
        """``host``: where the server listens."""
        self._app = app
        self._hosts = (*LOOPBACK, f"[{host}]" if ":" in host else host)

    def close(self) -> None:
        self._app.close()

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        port = (scope.get("server") or ("", 0))[1]
        refused = refusal(headers, [f"{host}:{port}" for host in self._hosts]) or refusal_of_body(headers)
        if refused is None:
            await self._app(scope, receive, send)
            return
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": refused.text,
            "reason": refused.reason,
            "code": refused.code,
        }
        body = json.dumps(status).encode() + b"\n"
        told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": refused.code, "headers": told})
        await send({"type": "http.response.body", "body": body, "more_body": False})
