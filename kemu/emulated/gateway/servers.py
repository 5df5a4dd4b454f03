"""HTTP on a socket: uvicorn in the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import uvicorn

from kemu.emulated.gateway.authentication.certificates import KeyPair
from kemu.emulated.gateway.http2.connections import PROTOCOL, Http2Connection
from kemu.emulated.gateway.limits import connections

IDLE_S = 120.0
"""How long a connection may stay open without a request. Clients of Go close theirs after 90 s."""
_STOP_S = 2
_LIMITS = connections.Limits()
_GATHERED = 16 << 10
"""Bytes; more is written at once."""


@dataclass(frozen=True)
class Certificates:
    """What a server shows, and whose certificates its clients may show; all in PEM."""

    server: KeyPair
    authority: bytes = b""
    """Empty: clients show none."""

    def context(self, protocols: Sequence[str]) -> ssl.SSLContext:
        """``protocols``: what clients may ask for by ALPN, the best first."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols([*protocols])
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "server.pem"
            file.touch(0o600)
            file.write_bytes(self.server.certificate + self.server.key)
            context.load_cert_chain(file)
        if self.authority:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=self.authority.decode())
        return context


class Application(Protocol):
    """What is served: an ASGI application that can be told to end what goes on."""

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None: ...

    def close(self) -> None: ...


class _Gathering:
    """A transport that writes what comes in one turn of the event loop at once: head and body of an answer, several
    frames of a watch. Each write costs a record of TLS and a call of the system."""

    __slots__ = ("_loop", "_pieces", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _GATHERED:
            self.flush()

    def flush(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        if pieces:
            self._transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def write_eof(self) -> None:
        self.flush()
        self._transport.write_eof()

    def close(self) -> None:
        self.flush()
        self._transport.close()


class _Connection(connections.LimitedConnection):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = _Gathering(transport, self.loop)  # type: ignore[assignment]


class _Chosen(asyncio.Protocol):
    """Becomes what the client has chosen by ALPN. Upgrades are of HTTP/1.1 alone, and their clients ask for that."""

    http1: type[_Connection]
    http2: type[Http2Connection]

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments
        connections.Heard.times += 1

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        connections.Heard.times += 1
        tls = transport.get_extra_info("ssl_object")
        is_http2 = tls is not None and tls.selected_alpn_protocol() == PROTOCOL
        protocol = (self.http2 if is_http2 else self.http1)(**self._arguments)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


class _Calm(logging.Filter):
    """Requests that are cut short when the server stops are no errors: their clients did not read."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not (isinstance(error, asyncio.CancelledError) or "timeout graceful shutdown" in str(record.msg))


logging.getLogger("uvicorn.error").addFilter(_Calm())

_TICK_S = 0.1
"""How often uvicorn looks after itself."""


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = asyncio.Event()

    async def main_loop(self) -> None:
        """As uvicorn's, which hears of its end with the next tick only."""
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), _TICK_S)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the business of the owner of the event loop."""
        yield


class Server:
    """Serves an application until it is stopped."""

    def __init__(
        self,
        app: Application,
        host: str = "127.0.0.1",
        port: int = 0,
        certificates: Certificates | None = None,
        limits: connections.Limits = _LIMITS,
        http2: bool = True,
    ) -> None:
        """``port`` 0: any that is free. ``http2``: whether clients over TLS may choose it."""
        self._certificates = certificates
        self._host = host
        self._port = port
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._app = app
        self._tally = connections.Tally()
        self._protocols = [PROTOCOL, "http/1.1"] if http2 else ["http/1.1"]
        of_server = {"limits": limits, "tally": self._tally}
        chosen = {
            "http1": type("Http1", (_Connection,), of_server),
            "http2": type("Http2", (Http2Connection,), of_server),
        }
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            loop="none",
            http=type("Chosen", (_Chosen,), chosen),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_S),
            timeout_graceful_shutdown=_STOP_S,
        )
        self._server = _Uvicorn(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises OSError when the port is taken."""
        self._server.config.load()
        if self._certificates is not None:
            self._server.config.ssl = self._certificates.context(self._protocols)
            connections.spare_tls_buffers()
        # Stating the protocol lets asyncio set TCP_NODELAY: otherwise every answer takes 40 ms.
        listening = socket.socket(self._family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._host, self._port))
        except OSError:
            listening.close()
            raise
        self._port = listening.getsockname()[1]
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([listening]))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0.001)

    @property
    def url(self) -> str:
        scheme = "https" if self._certificates is not None else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self._port}"

    async def stop(self) -> None:
        """Ends all connections, within bounds."""
        if self._serving is not None:
            self._app.close()
            self._server.should_exit = True
            self._server.ending.set()
            await self._serving
            self._serving = None
            self._tally.tell()
            # Clients that keep a connection open need not answer when TLS says goodbye.
            for connection in list(self._server.server_state.connections):
                if connection.transport is not None:  # type: ignore[union-attr]
                    connection.transport.abort()  # type: ignore[union-attr]
            await asyncio.sleep(0)
