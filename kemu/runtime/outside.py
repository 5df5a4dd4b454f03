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
"""Most of them to one place at the same time, so that one that hangs keeps no slot of others; further questions wait
for one."""

_IDLE_S = 90.0
"""How long a connection is kept without a question, as Go's clients do."""
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
    """On which the process listens, wherever the URL points; 0: where it points."""
    host: str = "127.0.0.1"
    """Of that port."""

    @property
    def address(self) -> tuple[str, int]:
        """Where to connect to."""
        place = urlsplit(self.url)
        return (self.host, self.port) if self.port else (place.hostname or "", place.port or 443)


class Answer(NamedTuple):
    status: int
    body: bytes
    is_text: bool = False
    """It says that it is for people."""


class Unanswered(KemuError):
    """There is no answer; the text says why."""


class BadAuthorities(KemuError):
    """The question holds no certificates."""


class Sockets:
    """Those of one client, so that they can be shut at once: TLS ends politely, which takes as long as the other side
    likes."""

    def __init__(self) -> None:
        self._opened: list[socket.socket] = []

    def open(self, address: tuple[Any, ...]) -> socket.socket:
        self._opened = [one for one in self._opened if one.fileno() >= 0]
        self._opened.append(socket.socket(*address[:3]))
        return self._opened[-1]

    def shut(self) -> None:
        for one in self._opened:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class _Lane:
    """One connection to a process, which questions use one after the other."""

    def __init__(self, question: Question, context: ssl.SSLContext) -> None:
        import aiohttp  # of the extra up: a run that asks nobody does without

        self.place = urlsplit(question.url)
        self.where = question.address
        self.has_answered = False
        self._sockets = Sockets()
        connector = aiohttp.TCPConnector(
            resolver=resolver(*self.where), ssl=context, keepalive_timeout=_IDLE_S, socket_factory=self._sockets.open
        )
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False)

    async def ask(self, question: Question) -> Answer:
        import aiohttp

        async with self._session.post(
            question.url,
            data=question.body,
            headers={"Content-Type": "application/json", "Accept": "application/json, */*"},
            allow_redirects=False,
            server_hostname=self.place.hostname,
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None),
            max_line_size=8190,
            max_field_size=8190,
        ) as response:
            kind = response.headers.get("content-type", "")
            answer = Answer(response.status, await _read(response), not kind or kind.startswith("text/"))
        self.has_answered = True
        return answer

    async def close(self) -> None:
        self._sockets.shut()
        await self._session.close()


class _Lanes:
    """Those of one event loop: to each place at most so many at work, and as many idle in all."""

    def __init__(self) -> None:
        self.slots: dict[tuple[str, int], asyncio.Semaphore] = {}
        """By address."""
        self._idle: dict[_Lane, _Way] = {}
        """The one that was used last stands at the end."""
        self._is_closed = False

    async def ask(self, question: Question, context: ssl.SSLContext) -> Answer:
        place = urlsplit(question.url)
        way = _Way(place.scheme, place.netloc, question.address, question.authorities)
        while True:
            lane = next((one for one in reversed(self._idle) if self._idle[one] == way), None)
            if lane is not None:
                del self._idle[lane]
            else:
                lane = _Lane(question, context)
            is_done = False
            try:
                answer = await lane.ask(question)
                is_done = True
                return answer
            except Exception as error:
                # The process may have closed it in the meantime, as Go's clients find out, too.
                if not (lane.has_answered and _is_hung_up(error)):
                    raise
            finally:
                if is_done and not self._is_closed:
                    self._idle[lane] = way
                    if len(self._idle) > CONNECTIONS:
                        oldest = next(iter(self._idle))
                        del self._idle[oldest]
                        await oldest.close()
                else:
                    await lane.close()

    async def close(self) -> None:
        self._is_closed = True
        while self._idle:
            await self._idle.popitem()[0].close()


class _Way(NamedTuple):
    """What makes a connection good for a question."""

    scheme: str
    netloc: str
    address: tuple[str, int]
    authorities: bytes


_lanes: dict[asyncio.AbstractEventLoop, _Lanes] = {}


async def ask(question: Question) -> Answer:
    """Raises Unanswered and BadAuthorities. Connections are kept until :func:`close`."""
    loop = asyncio.get_running_loop()
    lanes = _lanes.get(loop)
    if lanes is None:
        for ended in [one for one in _lanes if one.is_closed()]:
            del _lanes[ended]
        lanes = _lanes[loop] = _Lanes()
    context = _context(question.authorities)
    try:
        slots = lanes.slots.setdefault(question.address, asyncio.Semaphore(CONNECTIONS))
        async with asyncio.timeout(question.timeout_s), slots:
            return await _ask(question, context, lanes)
    except TimeoutError:
        raise Unanswered("context deadline exceeded") from None


async def close() -> None:
    """Close the connections of this event loop, which nobody uses."""
    lanes = _lanes.pop(asyncio.get_running_loop(), None)
    if lanes is not None:
        await lanes.close()


def _is_hung_up(error: Exception) -> bool:
    import aiohttp

    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)


async def _ask(question: Question, context: ssl.SSLContext, lanes: _Lanes) -> Answer:
    import aiohttp

    host, port = question.address
    try:
        return await lanes.ask(question, context)
    except aiohttp.ClientConnectorCertificateError as error:
        raise Unanswered(_certificate_problem(error.certificate_error)) from None
    except aiohttp.ClientConnectorSSLError as error:
        raise Unanswered(_tls_problem(error.os_error)) from None
    except aiohttp.ClientConnectorDNSError as error:
        raise Unanswered(f"dial tcp: lookup {host}: {_no_such_host(error.os_error)}") from None
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


async def _read(response: aiohttp.ClientResponse) -> bytes:
    found = bytearray()
    async for chunk in response.content.iter_any():
        found += chunk
        if len(found) > MOST_BYTES:
            raise Unanswered(f"the answer is larger than {MOST_BYTES >> 20} MiB, which kemu does not read")
    return bytes(found)


def resolver(host: str, port: int) -> AbstractResolver:
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
