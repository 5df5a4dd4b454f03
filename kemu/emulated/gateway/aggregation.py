"""API servers of others, to which APIServices lead: whether they answer, what they serve, and requests that go there.

After ``kube-aggregator``. A process on loopback stands for a Service (``kemu up --service``); one of the type
ExternalName leads to that host. The keys with which the gateway says who asks never enter the emulated cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
import struct
import tempfile
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kemu.emulated.gateway.answers import responses, websockets
from kemu.emulated.gateway.answers.responses import Header, Response
from kemu.emulated.gateway.authentication.certificates import Authority
from kemu.emulated.gateway.backends import Backend, Refused
from kemu.emulated.gateway.discovery.catalogue import Entry, Kind, Subresource, Version
from kemu.emulated.gateway.limits.upgrades import Upgraded
from kemu.emulated.gateway.openapi import documents
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.objects import identities, meta
from kemu.emulated.objects.identities import User
from kemu.errors import ApiError
from kemu.messages.k8s import apiregistration_v1_pb2, core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime import outside
from kemu.runtime.env import Clock

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

PERIOD_S = 1.0
"""How often those that are not available are asked; the others a tenth as often, and whenever something was written."""
CHECK_S = 5.0
SWAGGER_EVERY_S = 60.0
"""How often OpenAPI v2 is asked for."""
DISCOVERY_S = 5.0
"""As ``aggregatedDiscoveryTimeout``."""
HEAD_BYTES = 64 << 10
"""Most of the head of an answer to an upgrade, and of a refusal's body."""
REFUSAL_S = 10.0
"""For that body, as in ``tryUpgrade``."""
PROXY = User("front-proxy-client", ())
"""Whom the certificate names that the gateway shows."""
AUTHENTICATION = "extension-apiserver-authentication"
"""The ConfigMap in which other API servers read whom to believe."""
_CHECKER = User("system:kube-aggregator", (identities.MASTERS,))
_DEFAULT_PORT = 443
_HOPS = frozenset(
    ("connection", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
     "authorization", "content-length", "date", "server")
)  # fmt: skip
"""Headers of one connection, and those that the gateway answers for."""
WATCHED = ("apiservices", "services")
"""Kinds whose changes the gateway tells."""

Service = apiregistration_v1_pb2.APIService


def authentication(authority: str) -> core_v1_pb2.ConfigMap:
    """What :data:`AUTHENTICATION` says. ``authority``: signs the certificates of clients and of the gateway; PEM."""
    found = core_v1_pb2.ConfigMap()
    found.metadata.name, found.metadata.namespace = AUTHENTICATION, "kube-system"
    found.data["client-ca-file"] = found.data["requestheader-client-ca-file"] = authority
    for key, names in (
        ("allowed-names", [PROXY.name]),
        ("username-headers", ["X-Remote-User"]),
        ("uid-headers", ["X-Remote-Uid"]),
        ("group-headers", ["X-Remote-Group"]),
        ("extra-headers-prefix", ["X-Remote-Extra-"]),
    ):
        found.data[f"requestheader-{key}"] = json.dumps(names)
    return found


class _Server:
    """What one APIService leads to."""

    def __init__(self, service: Service, host: str, port: int, identity: bytes) -> None:
        self.spec = service.spec.SerializeToString(deterministic=True)
        self.where = host, port
        self.path = f"/apis/{service.spec.group}/{service.spec.version}"
        self.version = Version(service.spec.group, service.spec.version, (), is_stale=True)
        """As it said last."""
        self.schema = ""
        """The path of its OpenAPI v3; empty: it has none."""
        self.swagger = b""
        """What its OpenAPI v2 says (:func:`kemu.emulated.gateway.openapi.documents.of_other`); empty: it has none."""
        self.swagger_asked = -SWAGGER_EVERY_S
        spec = service.spec
        self.priority = -spec.groupPriorityMinimum, -spec.versionPriority, service.metadata.name
        self.is_available = False
        self.checked = 0.0
        self.checking: asyncio.Task[None] | None = None
        self._name = f"{service.spec.service.name}.{service.spec.service.namespace}.svc"
        self.host = f"{self._name}:{service.spec.service.port or _DEFAULT_PORT}"
        self._service = service
        self._identity = identity
        self._sockets = outside.Sockets()
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> aiohttp.ClientSession:
        """Raises OSError and ValueError for a bundle of certificates that is none."""
        import aiohttp

        if self._session is None:
            place = outside.resolver(*self.where)
            connector = aiohttp.TCPConnector(
                ssl=self.context(), resolver=place, limit=0, socket_factory=self._sockets.open
            )
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False)
        return self._session

    def context(self) -> ssl.SSLContext:
        spec = self._service.spec
        context = ssl.create_default_context(cadata=bytes(spec.caBundle).decode() or None)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if spec.insecureSkipTLSVerify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self._identity:
            with tempfile.TemporaryDirectory() as directory:
                file = Path(directory) / "identity.pem"
                file.touch(0o600)
                file.write_bytes(self._identity)
                context.load_cert_chain(file)
        return context

    def ask(
        self, method: str, target: str, user: User, headers: Sequence[tuple[str, str]], body: bytes
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        import aiohttp
        import yarl

        return self.open().request(
            method,
            yarl.URL(f"https://{self.host}{target}", encoded=True),
            data=body or None,
            headers=[*headers, *_remote(user)],
            server_hostname=self._name,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
        )

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of its own. Raises OSError and ValueError."""
        async with asyncio.timeout(CHECK_S):
            return await asyncio.open_connection(
                *self.where, ssl=self.context(), server_hostname=self._name, limit=HEAD_BYTES
            )

    async def get(self, path: str) -> bytes:
        """Raises OSError, or what aiohttp raises."""
        asking = self.ask("GET", path, _CHECKER, [("accept", "application/json")], b"")
        async with asyncio.timeout(CHECK_S), asking as answer:
            if not 200 <= answer.status < 300:
                raise OSError(f"bad status from https://{self.where[0]}:{self.where[1]}{path}: {answer.status}")
            found = bytearray()
            async for piece in answer.content.iter_any():
                found += piece
                if len(found) > outside.MOST_BYTES:
                    raise OSError(f"the answer is larger than {outside.MOST_BYTES >> 20} MiB, which kemu does not read")
            return bytes(found)

    async def close(self) -> None:
        self._sockets.shut()
        if self.checking is not None:
            self.checking.cancel()
            await asyncio.wait({self.checking})
        if self._session is not None:
            await self._session.close()


class Aggregator:
    def __init__(self, clock: Clock, processes: Mapping[str, int], authority: Authority | None) -> None:
        """``processes``: ports of loopback by NAMESPACE/NAME of Services. ``authority``: None: the gateway shows no
        certificate."""
        self._clock = clock
        self._processes = processes
        pair = authority.client(PROXY) if authority is not None else None
        self._identity = pair.certificate + pair.key if pair is not None else b""
        self._servers: dict[str, _Server] = {}
        """By the names of the APIServices."""
        self.is_quiet = False
        """All APIServices are known, and none leads elsewhere."""
        self._remote: set[str] = set()
        """Names of all APIServices that lead elsewhere."""
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._looked = asyncio.Event()
        """The APIServices have been read once."""
        self._upgraded = weakref.WeakSet[asyncio.StreamWriter]()
        """Connections to others, which outlive their APIServices, as with kube-apiserver."""

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        for writer in self._upgraded:
            writer.transport.abort()

    def written(self, plural: str, backend: Backend) -> None:
        """An object of one of these kinds was written through ``backend``."""
        self._begin(backend)
        self._news.set()
        if plural == WATCHED[0]:
            self._looked.clear()
            self.is_quiet = False

    async def find(self, path: str, backend: Backend) -> _Server | None:
        """What a URL leads to, if an APIService says so; an answer that there is none available is for the caller."""
        await self._ready(backend)
        parts = path.strip("/").split("/")
        if parts[:2] == ["openapi", "v3"]:
            parts = parts[2:]
        if len(parts) < 3 or parts[0] != "apis":
            return None
        return self._servers.get(f"{parts[2]}.{parts[1]}")

    async def is_elsewhere(self, path: str, backend: Backend) -> bool:
        """Whether an APIService says that another server answers."""
        await self._ready(backend)
        parts = path.strip("/").split("/")
        return len(parts) > 2 and parts[0] == "apis" and f"{parts[2]}.{parts[1]}" in self._remote

    async def versions(self, backend: Backend) -> tuple[Version, ...]:
        """What discovery tells of other servers."""
        await self._ready(backend)
        return tuple(one.version for _, one in sorted(self._servers.items()))

    async def schemas(self, backend: Backend) -> dict[str, str]:
        """Paths of their OpenAPI v3, by ``apis/GROUP/VERSION``."""
        await self._ready(backend)
        return {one.path[1:]: one.schema for one in self._servers.values() if one.schema}

    async def swaggers(self, backend: Backend) -> tuple[bytes, ...]:
        """What they add to OpenAPI v2, in the order of their priorities."""
        await self._ready(backend)
        found = sorted(self._servers.values(), key=lambda one: one.priority)
        return tuple(one.swagger for one in found if one.swagger)

    async def forward(self, request: Request, server: _Server, most_bytes: int) -> Response:
        """``proxyHandler``. The user may do what the request asks for."""
        if not server.is_available:
            return responses.text(503, "service unavailable\n")
        body = await request.body(most_bytes) if request.method in ("POST", "PUT", "PATCH", "DELETE") else b""
        passed = [
            (name, value)
            for name, value in request.headers.items()
            if name not in _HOPS and not name.startswith(("x-remote-", "impersonate-"))
        ]
        if "upgrade" in request.headers.get("connection", "").lower() and request.upgrade is not None:
            return await _upgraded(request, request.upgrade, server, passed, self._upgraded)
        import aiohttp

        asking = server.ask(request.method, request.target, request.user, passed, body)
        # Clients look at discovery before anything else: it is to answer soon, or not at all.
        patience_s = DISCOVERY_S if request.path.strip("/").count("/") == 2 else None
        try:
            async with asyncio.timeout(patience_s):
                answer = await asking.__aenter__()
        except (TimeoutError, OSError, ValueError, aiohttp.ClientError) as error:
            why = str(error) or "context deadline exceeded"
            return responses.text(503, f"error trying to reach service: {why}\n")
        headers: list[Header] = [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in answer.headers.items()
            if name.lower() not in _HOPS
        ]
        return Response(answer.status, "", _pieces(request, answer), headers)

    # What is known of them

    async def _ready(self, backend: Backend) -> None:
        self._begin(backend)
        await self._looked.wait()

    def _begin(self, backend: Backend) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(backend), name="other API servers")

    async def _keep(self, backend: Backend) -> None:
        try:
            while True:
                self._news.clear()
                try:
                    await self._look(backend)
                except (Refused, ApiError) as error:
                    log.warning("API services: %s", error)
                if not self._news.is_set():
                    self._looked.set()
                    self.is_quiet = not self._remote
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), PERIOD_S if self._servers else None)
        finally:
            for server in self._servers.values():
                await server.close()

    async def _look(self, backend: Backend) -> None:
        """``AvailableConditionController.sync``, of those that a process stands for. Of the others the cluster itself
        says why they are not available."""
        listing = api_pb2.ListRequest(resource=api_pb2.Resource(resource="apiservices"))
        listed = (await backend.call("List", listing, identities.ADMINISTRATOR)).items
        found = {one.metadata.name: one for one in map(Service.FromString, listed) if one.spec.HasField("service")}
        self._remote = set(found)
        places = {name: await self._place(backend, one) for name, one in found.items()}
        for name in [*self._servers]:
            server, service = self._servers[name], found.get(name)
            spec = service.spec.SerializeToString(deterministic=True) if service is not None else b""
            if server.spec != spec or places.get(name) != server.where:
                await self._servers.pop(name).close()
        for name, service in found.items():
            place = places[name]
            if place is not None and name not in self._servers:
                self._servers[name] = _Server(service, *place, self._identity)
        now = asyncio.get_running_loop().time()
        for name, server in self._servers.items():
            is_due = not server.is_available or now - server.checked >= 10 * PERIOD_S
            if is_due and (server.checking is None or server.checking.done()):
                server.checked = now
                # It may take long, and others need not wait for it.
                server.checking = asyncio.create_task(self._check(backend, found[name], server), name=f"check {name}")

    async def _place(self, backend: Backend, service: Service) -> tuple[str, int] | None:
        """Host and port; None: nothing answers there."""
        where = service.spec.service
        get = api_pb2.GetRequest(
            resource=api_pb2.Resource(resource="services", namespace=where.namespace), name=where.name
        )
        try:
            found = core_v1_pb2.Service.FromString((await backend.call("Get", get, identities.ADMINISTRATOR)).object)
        except Refused:
            return None
        port = where.port if where.HasField("port") else _DEFAULT_PORT
        if found.spec.type == "ExternalName":
            return found.spec.externalName, port
        name = f"{where.namespace}/{where.name}"
        if name not in self._processes or all(one.port != port for one in found.spec.ports):
            return None
        return "127.0.0.1", self._processes[name]

    async def _check(self, backend: Backend, service: Service, server: _Server) -> None:
        import aiohttp

        unusable = (
            OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, TimeoutError, aiohttp.ClientError
        )  # fmt: skip
        state = "True", "Passed", "all checks passed"
        try:
            server.version = _version(server.version, json.loads(await server.get(server.path)))
            server.is_available = True
        except unusable as error:
            url = f"https://{server.where[0]}:{server.where[1]}{server.path}"
            why = str(error) or "context deadline exceeded"
            state = "False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {why}"
            server.is_available = False
            server.version = Version(
                server.version.group, server.version.version, server.version.entries, is_stale=True
            )
        if server.is_available:
            server.schema = ""
            with contextlib.suppress(*unusable):
                paths = json.loads(await server.get("/openapi/v3"))["paths"]
                server.schema = str(paths[server.path[1:]]["serverRelativeURL"])
            if server.checked - server.swagger_asked >= SWAGGER_EVERY_S:
                server.swagger_asked = server.checked
                try:
                    server.swagger = documents.of_other(await server.get("/openapi/v2"), server.path)
                except (*unusable, struct.error) as error:
                    log.info("OpenAPI v2 of the APIService %s is left out: %s", service.metadata.name, error)
        await self._tell(backend, service, state)

    async def _tell(self, backend: Backend, service: Service, state: tuple[str, str, str]) -> None:
        condition = next((one for one in service.status.conditions if one.type == "Available"), None)
        if condition is None:
            condition = service.status.conditions.add(type="Available")
        if (condition.status, condition.reason, condition.message) == state:
            return
        if condition.status != state[0]:
            meta.set_time(condition.lastTransitionTime, self._clock.unix_ns())
        condition.status, condition.reason, condition.message = state
        update = api_pb2.UpdateRequest(
            resource=api_pb2.Resource(resource="apiservices"),
            object=service.SerializeToString(deterministic=True),
            subresource="status",
            name=service.metadata.name,
        )
        with contextlib.suppress(Refused):  # somebody was faster: it is looked at anew
            await backend.call("Update", update, identities.ADMINISTRATOR)


def _remote(user: User) -> list[tuple[str, str]]:
    """``SetAuthProxyHeaders``."""
    found = [("X-Remote-User", user.name), *(("X-Remote-Group", group) for group in user.groups)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    return [*found, *((f"X-Remote-Extra-{quote(key, safe='')}", one) for key, values in user.extra for one in values)]


async def _upgraded(
    request: Request,
    upgrade: Callable[[Sequence[Header]], Upgraded],
    server: _Server,
    passed: Sequence[tuple[str, str]],
    writers: weakref.WeakSet[asyncio.StreamWriter],
) -> Response:
    """``UpgradeAwareHandler.tryUpgrade``: bytes in both directions once the other server has switched, until one side
    hangs up. Its refusal is the client's answer."""
    address = request.peer[0] if request.peer else ""
    forwarded = ", ".join(filter(None, (request.headers.get("x-forwarded-for", ""), address)))
    hop = [(name, request.headers[name]) for name in ("connection", "upgrade") if name in request.headers]
    head = [("Host", server.host), *passed, *hop, *_remote(request.user)]
    head = [(name, value) for name, value in head if name.lower() != "x-forwarded-for"]
    lines = [f"{name}: {value}" for name, value in (*head, ("X-Forwarded-For", forwarded), ("Content-Length", "0"))]
    writer = None
    try:
        reader, writer = await server.dial()
        writers.add(writer)
        writer.write("\r\n".join([f"{request.method} {request.target} HTTP/1.1", *lines, "", ""]).encode("latin-1"))
        found = await _heard(request, reader)
        status = int(found[0].split(" ", 2)[1])
        headers = [
            (name.strip().lower().encode("latin-1"), value.strip().encode("latin-1"))
            for name, _, value in (line.partition(":") for line in found[1:] if line)
        ]
        if status != 101 and status < 400:
            raise ValueError(f"invalid upgrade response: status code {status}")
    except (TimeoutError, OSError, ValueError, IndexError, EOFError, asyncio.LimitOverrunError) as error:
        if writer is not None:
            writer.close()
        return responses.text(503, f"{str(error) or 'context deadline exceeded'}\n")
    if status == 101:
        return websockets.Switching(upgrade, headers, lambda stream: _joined(stream, reader, writer))
    try:
        size = int(dict(headers).get(b"content-length", b"-1"))
        async with asyncio.timeout(REFUSAL_S):
            body = await reader.read(HEAD_BYTES) if size < 0 else await reader.readexactly(min(size, HEAD_BYTES))
    except (TimeoutError, OSError, ValueError, EOFError):
        body = b""
    finally:
        writer.close()
    kept = [(name, value) for name, value in headers if name.decode("latin-1") not in _HOPS]
    return Response(status, "", (body,), kept)


async def _heard(request: Request, reader: asyncio.StreamReader) -> list[str]:
    """The head of the answer, as long as the client waits for it."""
    reading = asyncio.ensure_future(reader.readuntil(b"\r\n\r\n"))
    gone = asyncio.ensure_future(request.disconnected())
    try:
        await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            raise ConnectionResetError("the client has gone")
        return reading.result().decode("latin-1").split("\r\n")
    finally:
        reading.cancel()
        gone.cancel()


async def _joined(stream: Upgraded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def up() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()

    async def down() -> None:
        while data := await reader.read(HEAD_BYTES):
            await stream.write(data)

    both = [asyncio.ensure_future(one()) for one in (up, down)]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in both:
            one.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        writer.close()


async def _pieces(request: Request, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The body, as long as the client listens. A client whose answer ends too early is told so by its connection."""
    import aiohttp

    gone = asyncio.ensure_future(request.disconnected())
    try:
        while True:
            reading = asyncio.ensure_future(answer.content.readany())
            await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                return
            try:
                piece = reading.result()
            except (aiohttp.ClientError, OSError) as error:
                log.warning("%s: the other API server has broken its answer off: %s", request.path, error)
                if request.reset is not None:
                    request.reset(True)
                return
            if not piece:
                return
            yield piece
    finally:
        gone.cancel()
        answer.close()


def _version(before: Version, document: Mapping[str, Any]) -> Version:
    """Of an ``APIResourceList``. Raises KeyError and TypeError for what is none."""
    entries: dict[str, dict[str, Any]] = {}
    parts: dict[str, list[Subresource]] = {}
    for one in document["resources"]:
        name, _, part = str(one["name"]).partition("/")
        kind = Kind(str(one["kind"]), str(one.get("group", "")), str(one.get("version", "")))
        if part:
            parts.setdefault(name, []).append(Subresource(part, kind, tuple(map(str, one["verbs"]))))
        else:
            entries[name] = one
    return Version(
        before.group,
        before.version,
        tuple(
            Entry(
                name,
                str(one.get("singularName", "")),
                str(one["kind"]),
                bool(one["namespaced"]),
                tuple(map(str, one["verbs"])),
                tuple(map(str, one.get("shortNames", ()))),
                tuple(map(str, one.get("categories", ()))),
                tuple(parts.get(name, ())),
                is_stored=False,
                is_custom=True,
            )
            for name, one in sorted(entries.items())
        ),
    )
