"""The subresource ``log`` of pods.

Refusals are those of ``pkg/registry/core/pod`` (``LogLocation``, ``getContainer``) and of the kubelet.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
from collections.abc import AsyncGenerator
from typing import Any

from kemu.emulated.gateway.answers import websockets
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.verbs import contents
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.kubelet.logs import lines, streams
from kemu.emulated.objects import times
from kemu.emulated.objects.validation import causes
from kemu.errors import ApiError, BadRequest, NotFound
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

_MEDIA = "text/plain"


async def read(call: Call) -> Response:
    call.form()
    options = _options(call)
    await call.require("get", "log")
    pod = await pod_of(call)
    container = container_of(pod, call.request.query.text("container"))
    if options.programs:
        sources = await contents.sources_of(call, pod, container, for_program=True)
        options = dataclasses.replace(options, sources=sources)
    if not pod.spec.nodeName:
        return Response(204, "", ())
    await check_host(call, pod)
    instance = streams.find(pod, container, options)
    if instance is None:
        raise BadRequest(streams.missing(pod, container, options))
    body = _body(call, instance, options)
    if websockets.is_asked(call.request.headers):
        return _over_socket(call, body)
    return Response(200, _MEDIA, body)


def _over_socket(call: Call, body: AsyncGenerator[bytes, None]) -> Response:
    """As a message for each piece (``wsstream.NewReader``)."""
    protocol = websockets.protocol_of(call.request.headers, ("binary.k8s.io", "base64.binary.k8s.io"))

    async def serve(socket: websockets.WebSocket) -> None:
        async with contextlib.aclosing(body):
            async for piece in body:
                for line in piece.splitlines(keepends=True):
                    await socket.send(base64.b64encode(line) if protocol and protocol.startswith("base64") else line)

    return websockets.switching(call.request, protocol, serve)


def _options(call: Call) -> streams.Options:
    """Raises BadRequest and Invalid (``ValidatePodLogOptions``)."""
    query = call.request.query
    problems = []
    numbers = {name: query.number(name) for name in ("tailLines", "sinceSeconds", "limitBytes")}
    for name, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
        number = numbers[name]
        if number is not None and number < least:
            said = "must be greater than or equal to 0" if not least else "must be greater than 0"
            problems.append(causes.invalid(name, number, said))
    since_s = None
    if text := query.text("sinceTime"):
        if numbers["sinceSeconds"] is not None:
            problems.append(causes.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
        try:
            since_s = times.parse_time(text) // 1_000_000_000
        except ValueError as error:
            raise BadRequest(f"sinceTime: {error}") from None
    elif (seconds := numbers["sinceSeconds"]) is not None:
        since_s = int(call.now_s()) - seconds
    if query.text("stream"):
        problems.append(causes.forbidden("stream", "may not be specified"))
    if problems:
        raise causes.error_of_kind("PodLogOptions", "PodLogOptions", call.path.name, problems)
    return streams.Options(
        follow=bool(query.flag("follow")),
        previous=bool(query.flag("previous")),
        timestamps=bool(query.flag("timestamps")),
        since_s=since_s,
        tail=numbers["tailLines"],
        limit_bytes=numbers["limitBytes"],
        programs=call.settings.programs,
    )


async def pod_of(call: Call) -> core_v1_pb2.Pod:
    """Raises Refused."""
    request = api_pb2.GetRequest(resource=call.where(), name=call.path.name)
    return core_v1_pb2.Pod.FromString((await call.look("Get", request)).object)


async def check_host(call: Call, pod: core_v1_pb2.Pod) -> None:
    """Raises BadRequest, and NotFound in the words for the kind that is asked for, as Kubernetes has it."""
    name = pod.spec.nodeName
    if not name:
        raise BadRequest(f"pod {pod.metadata.name} does not have a host assigned")
    try:
        await call.look("Get", api_pb2.GetRequest(resource=api_pb2.Resource(resource="nodes"), name=name))
    except Refused as refused:
        if refused.status.reason != NotFound.reason:
            raise
        raise NotFound(f'pods "{name}" not found', kind="pods", name=name) from None


def container_of(pod: core_v1_pb2.Pod, name: str) -> core_v1_pb2.Container:
    known = lines.containers(pod)
    if name in known:
        return known[name]
    if name:
        raise BadRequest(f"container {name} is not valid for pod {pod.metadata.name}")
    mains = [one.name for one in pod.spec.containers]
    if len(mains) == 1:
        return known[mains[0]]
    inits = [one.name for one in pod.spec.initContainers]
    text = f"a container name must be specified for pod {pod.metadata.name}, choose one of: [{' '.join(mains)}]"
    raise BadRequest(f"{text} or one of the init containers: [{' '.join(inits)}]" if inits else text)


async def _body(call: Call, instance: lines.Instance, options: streams.Options) -> AsyncGenerator[bytes, None]:
    reader = Reader(call, follows=options.follow)
    try:
        async for piece in streams.read(reader, instance, options):
            yield piece
    finally:
        reader.close()


class Reader:
    """The client of a call."""

    def __init__(self, call: Call, *, follows: bool) -> None:
        self._call = call
        self._ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(call.closing.wait())]
        if follows:
            self._ends.append(asyncio.ensure_future(call.request.disconnected()))

    def now_s(self) -> float:
        return self._call.now_s()

    async def pod(self) -> core_v1_pb2.Pod | None:
        try:
            return await pod_of(self._call)
        except (Refused, ApiError):
            return None

    async def wait(self, seconds: float) -> bool:
        looking = asyncio.ensure_future(self._call.clock.sleep(seconds, background=True))
        done, _ = await asyncio.wait([looking, *self._ends], return_when=asyncio.FIRST_COMPLETED)
        looking.cancel()
        return not done & set(self._ends)

    def close(self) -> None:
        for end in self._ends:
            end.cancel()
