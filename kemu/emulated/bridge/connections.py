"""The HTTP connection to a real API server: address, credentials, limits.

Kubeconfigs (certificates, tokens, exec plugins) and service accounts of pods are read by ``kubernetes_asyncio``, and
aiohttp speaks HTTP; both come with the extra ``cluster`` and are imported when a connection is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kemu.emulated.bridge.requests import Request
from kemu.emulated.client.limits import Rate, TokenBucket
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.objects.wire import envelopes
from kemu.errors import KemuError
from kemu.runtime.env import SECOND_NS

REQUEST_TIMEOUT_S = 60.0
"""As long as a real API server works on a request (``--request-timeout``)."""
WATCH_SILENCE_S = 180.0
"""A watch with bookmarks says something each minute; one that is silent for so long is taken for broken."""
_ACCEPT = f"{envelopes.MEDIA_TYPE},application/json"
_ACCEPT_WATCH = f"{envelopes.MEDIA_TYPE};stream=watch,application/json;stream=watch"
_UNAUTHORIZED = 401
_READ_BUFFER = 2 << 20
"""More than any object has bytes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the cluster is and how it is asked."""

    kubeconfig: str = ""
    """A file; "": that of kubectl (``KUBECONFIG``, ``~/.kube/config``), or, in a pod, its service account."""
    context: str = ""
    qps: float = 0.0
    """Requests a second, watches apart; 0: no limit."""
    burst: int = 0
    user_agent: str = "kemu"


def packages() -> Any:
    """``aiohttp``, which takes long to import. Raises ClusterError where the packages of the extra are missing."""
    try:
        import aiohttp
    except ImportError:
        raise ClusterError("to reach a cluster, kemu needs its extra: pip install 'kemu[cluster]'") from None
    return aiohttp


CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="")
"""The actor for which a request is sent; the audit log of the cluster has it in the user agent."""


class ClusterError(KemuError):
    """The cluster cannot be reached at all: no configuration, no credentials."""


class Unreachable(Exception):
    """A request or a watch was cut; what became of it is not known."""


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """Opened by :meth:`open`, in the loop that uses it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        rate = Rate(settings.qps, max(1, settings.burst))
        self._bucket = TokenBucket(rate) if rate.qps > 0 else None
        self._client: Any = None
        self._session: Any = None
        self._lost: tuple[type[BaseException], ...] = ()
        self._timeout: Any = None
        self.server = ""
        """Its URL."""

    async def open(self) -> None:
        """Read the configuration; nothing is sent yet. Raises ClusterError."""
        aiohttp = packages()
        self._lost = (aiohttp.ClientError, TimeoutError, OSError)
        self._timeout = aiohttp.ClientTimeout
        await self._configure()

    async def _configure(self) -> None:
        self._client = await _client_of(self._settings)
        self.server = self._client.configuration.host.rstrip("/")
        self._session = _session_of(self._client, self.server)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def send(self, request: Request) -> Answer:
        """Raises Unreachable. Credentials that are refused are read once more: exec plugins' tokens expire."""
        if self._bucket is not None and (wait_ns := self._bucket.reserve(time.monotonic_ns())):
            await asyncio.sleep(wait_ns / SECOND_NS)
        answer = await self._send(request)
        if answer.code == _UNAUTHORIZED:
            await self.close()
            await self._configure()
            answer = await self._send(request)
        return answer

    async def _send(self, request: Request) -> Answer:
        timeout = self._timeout(total=REQUEST_TIMEOUT_S)
        with self._losses():
            async with self._session.request(
                request.method,
                self.server + request.path,
                params=request.query,
                data=request.body or None,
                headers=await self._headers(_ACCEPT, request.content_type),
                timeout=timeout,
            ) as response:
                return Answer(response.status, response.headers, await response.read())

    async def read_json(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Any path, with an answer in JSON. Raises Unreachable."""
        with self._losses():
            async with self._session.get(
                self.server + path,
                params=query or {},
                headers=await self._headers("application/json", ""),
                timeout=self._timeout(total=REQUEST_TIMEOUT_S),
            ) as response:
                return Answer(response.status, response.headers, await response.read())

    async def watch(self, request: Request) -> AsyncIterator[bytes | Answer]:
        """The frames of a watch, without their lengths, or what was answered instead; ends where the server ends it.
        Raises Unreachable."""
        timeout = self._timeout(total=None, sock_connect=REQUEST_TIMEOUT_S, sock_read=WATCH_SILENCE_S)
        with self._losses():
            async with self._session.get(
                self.server + request.path,
                params=request.query,
                headers=await self._headers(_ACCEPT_WATCH, ""),
                timeout=timeout,
            ) as response:
                protobuf = response.headers.get("Content-Type", "").startswith(envelopes.MEDIA_TYPE)
                if response.status != 200 or not protobuf:
                    yield Answer(response.status, response.headers, await response.read())
                    return
                buffer = bytearray()
                async for chunk in response.content.iter_any():
                    buffer += chunk
                    while len(buffer) >= 4:
                        end = 4 + int.from_bytes(buffer[:4], "big")
                        if len(buffer) < end:
                            break
                        yield bytes(buffer[4:end])
                        del buffer[:end]

    @contextlib.contextmanager
    def _losses(self) -> Iterator[None]:
        """What keeps a request from its answer becomes Unreachable."""
        session = self._session
        if session is None:
            raise Unreachable("the connection is closed")
        try:
            yield
        except self._lost as error:
            raise Unreachable(_told(error)) from error
        except AssertionError as error:
            # aiohttp asserts that its session is open still when a request has got its connection.
            if not session.closed:
                raise
            raise Unreachable("the connection was closed") from error

    async def _headers(self, accept: str, content_type: str) -> dict[str, str]:
        caller = CALLER.get()
        agent = f"{self._settings.user_agent} ({caller})" if caller else self._settings.user_agent
        headers = {"Accept": accept, "User-Agent": agent}
        if content_type:
            headers["Content-Type"] = content_type
        await self._client.update_params_for_auth(headers, [], ["BearerToken"])
        return headers


async def _client_of(settings: Settings) -> Any:
    """A client of ``kubernetes_asyncio``, for its TLS and its credentials."""
    from kubernetes_asyncio import client, config

    await asyncio.to_thread(_check, settings)
    configuration = client.Configuration()
    configuration.connection_pool_maxsize = 0  # watches keep their connections
    try:
        if not settings.kubeconfig and not settings.context and _in_cluster():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await config.load_kube_config(
                config_file=settings.kubeconfig or None,
                context=settings.context or None,
                client_configuration=configuration,
                persist_config=False,
            )
    except Exception as error:  # a file that is no kubeconfig breaks its reader in many ways
        where = settings.kubeconfig or "the kubeconfig"
        raise ClusterError(f"{where}: {error}") from error
    return client.ApiClient(configuration)


def _session_of(client: Any, server: str) -> Any:
    """A session with the connections of ``client``. Its own one reads ~/.netrc, twice for each request."""
    aiohttp = packages()
    rest = client.rest_client
    proxy = rest.proxy
    if not proxy:
        with contextlib.suppress(LookupError):
            proxy, _ = aiohttp.helpers.get_env_proxy_for_url(aiohttp.client.URL(server))
    return aiohttp.ClientSession(
        connector=rest.pool_manager.connector,
        connector_owner=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=_READ_BUFFER,
        proxy=proxy,
    )


def _check(settings: Settings) -> None:
    """``kubernetes_asyncio`` reads whatever it is given to its end. Raises ClusterError."""
    if settings.kubeconfig:
        files = [Path(settings.kubeconfig)]
    else:
        # As kubectl: what is not there is passed over.
        named = os.environ.get("KUBECONFIG") or "~/.kube/config"
        files = [file for each in named.split(os.pathsep) if each and (file := Path(each).expanduser()).exists()]
    for file in files:
        try:
            user_files.read_yaml(file)
        except user_files.FileProblem as error:
            raise ClusterError(f"{file} {error}") from None


def _in_cluster() -> bool:
    return Path("/var/run/secrets/kubernetes.io/serviceaccount/token").is_file()


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__
