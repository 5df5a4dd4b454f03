"""Processes outside of the cluster that an actor asks over HTTPS: webhooks.

An actor asks by :meth:`kemu.runtime.env.Env.ask`. :func:`ask` is what carries it out where time is real; in virtual
time somebody else does, if anybody (``ask_outside`` of :class:`kemu.runtime.sim.simulation.SimRuntime`).

Whatever the process does, an answer has a size and a time limit, and redirections are not followed. The texts of
failures are those of Go's HTTP client.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from kemu.errors import KemuError

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

MOST_BYTES = 16 << 20
"""Most bytes of an answer. kube-apiserver reads all that comes."""
CONNECTIONS = 100
"""Most of them at the same time from one process; further questions wait for one."""

_LOOPBACK = "127.0.0.1"
_UNKNOWN_AUTHORITY = (2, 7, 18, 19, 20, 21)
"""OpenSSL's codes for chains that end in nobody who is trusted."""
_EXPIRED, _WRONG_NAME, _WRONG_ADDRESS = (9, 10), 62, 64


class Question(NamedTuple):
    """A POST of JSON."""

    url: str
    """``https://…``."""
    body: bytes
    timeout_s: float
    authorities: bytes = b""
    """Certificates in PEM that the process is to be recognised by; empty: those of the system."""
    port: int = 0
    """A port of loopback on which the process listens, wherever the URL points; 0: where it points."""


class Answer(NamedTuple):
    status: int
    body: bytes
    is_text: bool = False
    """It says that it is for people."""


class Unanswered(KemuError):
    """There is no answer; the text says why."""


class BadAuthorities(KemuError):
    """The question holds no certificates."""


_slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


async def ask(question: Question) -> Answer:
    """Raises Unanswered and BadAuthorities."""
    loop = asyncio.get_running_loop()
    slots = _slots.get(loop)
    if slots is None:
        _slots.clear()  # those of loops that have ended
        slots = _slots[loop] = asyncio.Semaphore(CONNECTIONS)
    context = _context(question.authorities)
    try:
        async with asyncio.timeout(question.timeout_s), slots:
            return await _ask(question, context)
    except TimeoutError:
        raise Unanswered("context deadline exceeded") from None


async def _ask(question: Question, context: ssl.SSLContext) -> Answer:
    import aiohttp  # of the extra up: a run that asks nobody does without

    place = urlsplit(question.url)
    host, port = (_LOOPBACK, question.port) if question.port else (place.hostname or "", place.port or 443)
    opened: list[socket.socket] = []

    def open_socket(address: tuple[Any, ...]) -> socket.socket:
        opened.append(socket.socket(*address[:3]))
        return opened[-1]

    connector = aiohttp.TCPConnector(
        resolver=_resolver(host, port), ssl=context, force_close=True, socket_factory=open_socket
    )
    try:
        async with (
            connector,
            aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False) as session,
            session.post(
                question.url,
                data=question.body,
                headers={"Content-Type": "application/json", "Accept": "application/json, */*"},
                allow_redirects=False,
                server_hostname=place.hostname,
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None),
                max_line_size=8190,
                max_field_size=8190,
            ) as response,
        ):
            kind = response.headers.get("content-type", "")
            return Answer(response.status, await _read(response), not kind or kind.startswith("text/"))
    except aiohttp.ClientConnectorCertificateError as error:
        raise Unanswered(_certificate_problem(error.certificate_error)) from None
    except aiohttp.ClientConnectorSSLError as error:
        raise Unanswered(_tls_problem(error.os_error)) from None
    except aiohttp.ClientConnectorDNSError as error:
        raise Unanswered(f"dial tcp: lookup {place.hostname}: {_no_such_host(error.os_error)}") from None
    except aiohttp.ClientConnectorError as error:
        raise Unanswered(f"dial tcp {_address(host, port)}: connect: {_refusal(error.os_error)}") from None
    except aiohttp.ServerDisconnectedError:
        raise Unanswered("EOF") from None
    except (aiohttp.ClientPayloadError, aiohttp.ClientOSError):
        raise Unanswered("unexpected EOF") from None
    except aiohttp.ClientResponseError as error:
        raise Unanswered(f"net/http: HTTP/1.x transport connection broken: {_one_line(error.message)}") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unanswered(_one_line(str(error))) from None
    finally:
        # TLS ends politely, which takes as long as the other side likes.
        for one in opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    found = bytearray()
    async for chunk in response.content.iter_any():
        found += chunk
        if len(found) > MOST_BYTES:
            raise Unanswered(f"the answer is larger than {MOST_BYTES >> 20} MiB, which kemu does not read")
    return bytes(found)


def _resolver(host: str, port: int) -> AbstractResolver:
    from aiohttp.abc import AbstractResolver, ResolveResult
    from aiohttp.resolver import ThreadedResolver

    class Fixed(AbstractResolver):
        """Connects there, whatever the name is."""

        async def resolve(self, name: str, _port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
            found = await ThreadedResolver().resolve(host, port, socket.AF_UNSPEC)
            return [{**one, "hostname": name, "port": port} for one in found]

        async def close(self) -> None:
            pass

    return Fixed()


@lru_cache(256)
def _context(authorities: bytes) -> ssl.SSLContext:
    if not authorities:
        return ssl.create_default_context()
    try:
        context = ssl.create_default_context(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, ValueError):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        raise BadAuthorities(why) from None
    # An authority may be given by one of its intermediates, as in Go.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _certificate_problem(error: Exception) -> str:
    code = getattr(error, "verify_code", 0)
    if code in _UNKNOWN_AUTHORITY:
        why = "certificate signed by unknown authority"
    elif code in _EXPIRED:
        why = "certificate has expired or is not yet valid"
    elif code in (_WRONG_NAME, _WRONG_ADDRESS):
        why = f"certificate is not valid for that name: {getattr(error, 'verify_message', '').rstrip('.')}"
    else:
        why = _one_line(getattr(error, "verify_message", "") or str(error))
    return f"tls: failed to verify certificate: x509: {why}"


def _tls_problem(error: OSError) -> str:
    reason = getattr(error, "reason", "") or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {reason.lower().replace('_', ' ') or _one_line(str(error))}"


def _refusal(error: OSError) -> str:
    return _one_line(error.strerror or str(error)).lower() if error.errno != 111 else "connection refused"


def _no_such_host(error: OSError) -> str:
    return "no such host" if isinstance(error, socket.gaierror) else _one_line(str(error))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
