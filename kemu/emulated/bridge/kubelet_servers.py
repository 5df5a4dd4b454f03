"""The server that an API server asks on behalf of ``kubectl logs``: one for all kubelets of this process.

A pod's namespace and name say which it is, so the nodes need no servers of their own: each Node tells the address and
port of this one. What else a kubelet serves (exec, attach, port-forward) needs real containers; it is refused by name.
Paths are those of ``pkg/kubelet/server``.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.emulated.bridge import answers, connections, requests
from kemu.emulated.kubelet.logs import lines, streams
from kemu.emulated.objects import times
from kemu.errors import KemuError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.host import certificates

if TYPE_CHECKING:
    from aiohttp import web

_STOP_S = 1.0
_WITHOUT_CONTAINERS = ("exec", "attach", "portForward", "run", "checkpoint")


class KubeletServer:
    """HTTPS with a certificate that it has signed itself, as a kubelet's without one that was given to it."""

    def __init__(self, connection: connections.Connection, address: str) -> None:
        self.address = address
        self.port = 0
        """Known when it has started."""
        self._connection = connection
        self._runner: web.AppRunner | None = None
        self._closing = asyncio.Event()

    async def start(self) -> None:
        """Raises KemuError where it cannot listen."""
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        app.router.add_get("/healthz", self._healthy)
        for path in _WITHOUT_CONTAINERS:
            app.router.add_route("*", f"/{path}/{{rest:.*}}", self._refuse)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_STOP_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.address, 0, ssl_context=await asyncio.to_thread(_context, self.address))
        try:
            await site.start()
        except OSError as error:
            raise KemuError(f"{self.address}: {error.strerror}") from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def pod(self, namespace: str, name: str) -> core_v1_pb2.Pod | None:
        """As the API server has it; None: it has none, or does not answer."""
        where = api_pb2.Resource(resource="pods", namespace=namespace)
        request = requests.of("get", api_pb2.GetRequest(resource=where, name=name))
        with contextlib.suppress(connections.Unreachable, answers.Refused):
            answer = answers.of(request, await self._connection.send(request))
            assert isinstance(answer, api_pb2.ObjectResponse)
            return core_v1_pb2.Pod.FromString(answer.object)
        return None

    async def closes_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
            return True
        return False

    async def _healthy(self, request: web.Request) -> web.Response:
        from aiohttp import web

        return web.Response(text="ok")

    async def _refuse(self, request: web.Request) -> web.Response:
        from aiohttp import web

        return web.Response(status=501, text="simulated containers run no program and have no network\n")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        where = request.match_info
        try:
            options = _options(request.query)
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")
        pod = await self.pod(where["namespace"], where["pod"])
        if pod is None:
            return web.Response(status=404, text=f"pod {where['pod']!r} does not exist\n")
        container = lines.containers(pod).get(where["container"])
        if container is None:
            text = f"container {where['container']!r} not found in pod {where['pod']!r}\n"
            return web.Response(status=404, text=text)
        instance = streams.find(pod, container, options)
        if instance is None:
            return web.Response(status=400, text=streams.missing(pod, container, options) + "\n")
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            async for piece in streams.read(_Reader(self, where["namespace"], where["pod"]), instance, options):
                await response.write(piece)
        return response


class _Reader:
    """A client of this server; one that is gone is noticed when something is written to it."""

    def __init__(self, server: KubeletServer, namespace: str, name: str) -> None:
        self._server = server
        self._where = namespace, name

    def now_s(self) -> float:
        return time.time()

    async def pod(self) -> core_v1_pb2.Pod | None:
        return await self._server.pod(*self._where)

    async def wait(self, seconds: float) -> bool:
        return not await self._server.closes_within(seconds)


def _options(query: Mapping[str, str]) -> streams.Options:
    """Raises ValueError for a value that is no number or time; an API server has checked them already."""
    numbers = {
        name: int(query[name]) if name in query else None for name in ("tailLines", "sinceSeconds", "limitBytes")
    }
    since_s = None
    if numbers["sinceSeconds"] is not None:
        since_s = int(time.time()) - numbers["sinceSeconds"]
    elif "sinceTime" in query:
        since_s = times.parse_time(query["sinceTime"]) // times.UNITS_NS["s"]
    return streams.Options(
        follow=query.get("follow") == "true",
        previous=query.get("previous") == "true",
        timestamps=query.get("timestamps") == "true",
        since_s=since_s,
        tail=numbers["tailLines"],
        limit_bytes=numbers["limitBytes"],
    )


def _context(address: str) -> ssl.SSLContext:
    identity = certificates.make(address)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "certificate"
        file.touch(0o600)
        file.write_bytes(identity.certificate + identity.key)
        context.load_cert_chain(file)
    return context
