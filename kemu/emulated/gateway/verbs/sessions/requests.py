"""The subresources ``exec``, ``attach`` and ``portforward`` of pods.

Refusals are those of ``pkg/registry/core/pod`` (``streamLocation``) and of the kubelet.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from kemu.emulated.gateway import handlers
from kemu.emulated.gateway.answers import websockets
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.answers.websockets import WebSocket
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.verbs import admissions, contents, logs
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.sessions import commands, consoles, ports, spdy
from kemu.emulated.gateway.verbs.sessions.places import Places
from kemu.emulated.kubelet.logs import lines, streams
from kemu.emulated.objects.conversion import convert
from kemu.errors import BadRequest, NotFound, TooManyRequests
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

MOST = 200
"""Most sessions of one user."""
LAST_WORDS_S = 3.0
"""For which what a container printed last still comes to who is attached to it."""
LOOK_EVERY_S = 1.0
"""How often it is looked whether the container is still there, in real time."""
SPDY = "ports of this cluster are forwarded over WebSockets: by kubectl v1.31 or later, or a client that speaks them"
SIMULATED = "the containers of this cluster are simulated, and no handler answers for this one (kemu up --handlers)"


class Sessions:
    """What the sessions of one gateway have in common."""

    def __init__(self) -> None:
        self.places = Places()
        self._counts: Counter[str] = Counter()

    @contextlib.contextmanager
    def one_of(self, user: str) -> Iterator[None]:
        self._counts[user] += 1
        try:
            yield
        finally:
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]

    def check(self, user: str) -> None:
        """Raises TooManyRequests."""
        if self._counts[user] >= MOST:
            raise TooManyRequests(f"{user} has {MOST} sessions with containers already")


async def execute(call: Call, sessions: Sessions) -> Response:
    return await _command(call, sessions, handlers.EXEC)


async def attach(call: Call, sessions: Sessions) -> Response:
    return await _command(call, sessions, handlers.ATTACH)


async def _command(call: Call, sessions: Sessions, kind: str) -> Response:
    await call.require(call.request.info.verb, call.path.subresource)
    await call.require("create", call.path.subresource)
    await admissions.connect(call)
    pod = await logs.pod_of(call)
    query = call.request.query
    container = logs.container_of(pod, query.text("container"))
    wanted = bool(query.flag("stdin")), bool(query.flag("stdout")), bool(query.flag("stderr")), bool(query.flag("tty"))
    command = tuple(query.texts("command"))
    await logs.check_host(call, pod)
    if "upgrade" not in call.request.headers:
        raise BadRequest("Upgrade request required")
    if not any(wanted[:3]):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    if kind == handlers.EXEC and not command:
        raise BadRequest("you must specify at least 1 command for the container")
    _check_runs(pod, container)
    handler = call.settings.handlers.find(kind, pod, container)
    if handler is None:
        if not call.settings.programs:
            raise not_implemented(SIMULATED)
        console = consoles.Console(call, sessions.places, pod, container)
        handler = console.run if kind == handlers.EXEC else _attached(call, console, pod, container)
    sessions.check(call.request.user.name)
    has_spdy = spdy.is_asked(call.request.headers)
    protocol = commands.V5 if has_spdy else websockets.protocol_of(call.request.headers, commands.PROTOCOLS)
    answering = handler

    async def serve(socket: commands.Socket) -> None:
        session = commands.CommandSession(socket, protocol, wanted, convert.to_json(pod), container.name, command)
        with sessions.one_of(call.request.user.name):
            ends_within_s = LAST_WORDS_S if kind == handlers.ATTACH else 0.0
            await commands.serve(session, answering, _ended(call, pod, container), ends_within_s)

    if has_spdy:
        return spdy.switching(call.request, wanted, serve)
    return websockets.switching(call.request, protocol, serve)


def _attached(
    call: Call, console: consoles.Console, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container
) -> handlers.Handler:
    """Attach out of the box: a shell that waits for commands, or what the container prints from now on."""

    async def follow(session: handlers.Session) -> int:
        if container.stdin:
            session.command = ("sh",)
            return await console.run(session)
        sources = await contents.sources_of(call, pod, container, for_program=True)
        now_s = int(call.now_s())
        options = streams.Options(follow=True, since_s=now_s, programs=call.settings.programs, sources=sources)
        instance = streams.find(pod, container, options)
        reader = logs.Reader(call, follows=False)
        try:
            if instance is not None:
                async with contextlib.aclosing(streams.read(reader, instance, options)) as pieces:
                    async for piece in pieces:
                        await session.write(piece.replace(b"\n", b"\r\n") if session.tty else piece)
        finally:
            reader.close()
        return 0  # as kubelets: the exit code stands in the status of the pod

    return follow


async def forward(call: Call, sessions: Sessions) -> Response:
    """Port-forward."""
    await call.require(call.request.info.verb, call.path.subresource)
    await call.require("create", call.path.subresource)
    await admissions.connect(call)
    pod = await logs.pod_of(call)
    await logs.check_host(call, pod)
    if "upgrade" not in call.request.headers:
        raise BadRequest("Upgrade request required")
    if pod.status.phase != "Running":
        raise BadRequest(f"unable to forward port because pod is not running. Current status={pod.status.phase}")
    if not websockets.is_asked(call.request.headers):
        raise not_implemented(SPDY)
    sessions.check(call.request.user.name)
    protocol = websockets.protocol_of(call.request.headers, (spdy.TUNNEL, *ports.PROTOCOLS))
    asked = ports.asked(call.request.query.texts("ports"))
    if protocol != spdy.TUNNEL and not asked:
        raise BadRequest("you must specify at least 1 port")

    def find(port: int) -> handlers.Handler:
        container = next(
            (one for one in pod.spec.containers if any(own.containerPort == port for own in one.ports)),
            pod.spec.containers[0],
        )
        handler = call.settings.handlers.find(handlers.PORT_FORWARD, pod, container)
        if handler is None and call.settings.programs:
            return ports.web_server(call, sessions.places, pod, container, SIMULATED)
        if handler is None:
            raise ConnectionRefusedError(SIMULATED)
        return handler

    data = convert.to_json(pod)

    async def serve(socket: WebSocket) -> None:
        with sessions.one_of(call.request.user.name):
            ended = _ended(call, pod, None)
            if protocol == spdy.TUNNEL:
                await spdy.serve(socket, data, find, ended)
            else:
                await ports.serve(socket, asked, data, find, ended)

    return websockets.switching(call.request, protocol, serve)


def _check_runs(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> None:
    """Raises BadRequest, and NotFound for a container that does not run."""
    if not pod.spec.nodeName:
        raise BadRequest(f"pod {pod.metadata.name} does not have a host assigned")
    instance = lines.current(pod, container)
    if instance is None or instance.ended is not None:
        raise NotFound(f'unable to upgrade connection: container not found ("{container.name}")')


def not_implemented(text: str) -> Refused:
    return Refused(meta_v1_pb2.Status(status="Failure", message=text, reason="NotImplemented", code=501))


def _ended(call: Call, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container | None) -> Callable[[], Awaitable[str]]:
    """Waits until the container (None: the pod) has ended, or the gateway does; says which."""

    async def wait() -> str:
        before = lines.current(pod, container) if container is not None else None
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(call.closing.wait(), LOOK_EVERY_S)
                return "the server ends"
            now = await consoles.pod_of(call)
            if now is None or now.metadata.uid != pod.metadata.uid:
                return f"pod {pod.metadata.name} is gone"
            if now.status.phase in ("Succeeded", "Failed"):
                return f"pod {pod.metadata.name} has ended"
            if container is None or before is None:
                continue
            found = lines.current(now, container)
            if found is None or found.ended is not None or found.restarts != before.restarts:
                return f"container {container.name} has ended"

    return wait
