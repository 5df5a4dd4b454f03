"""The subresource ``log`` of pods.

Refusals are those of ``pkg/registry/core/pod`` (``LogLocation``, ``getContainer``) and of the kubelet
(``validateContainerLogStatus``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from itertools import islice

from kemu.emulated.gateway import logs
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.logs import Instance
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.objects import times
from kemu.emulated.objects.validation import causes
from kemu.errors import ApiError, BadRequest
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

_LINES_AT_A_TIME = 500
_LOOK_EVERY_S = 1.0
"""While a log is followed; in the time of the cluster."""
_LATEST_S = 30
"""How late it may be known that a container has ended."""
_MEDIA = "text/plain"


@dataclass(frozen=True, slots=True)
class Options:
    """PodLogOptions."""

    container: str
    follow: bool
    previous: bool
    timestamps: bool
    since_s: int | None
    """Unix time."""
    tail: int | None
    limit_bytes: int | None


async def read(call: Call) -> Response:
    options = _options(call)
    await call.require("get", "log")
    pod = await _pod(call)
    container = _container(pod, options.container)
    if not pod.spec.nodeName:
        return Response(200, _MEDIA, (b"",))
    instance = logs.previous(pod, container) if options.previous else logs.current(pod, container)
    if instance is None:
        raise BadRequest(_missing(pod, container, options))
    return Response(200, _MEDIA, _body(call, instance, options))


def _options(call: Call) -> Options:
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
            problems.append(causes.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
        try:
            since_s = times.parse_time(text) // 1_000_000_000
        except ValueError as error:
            raise BadRequest(f"sinceTime: {error}") from None
    elif (seconds := numbers["sinceSeconds"]) is not None:
        since_s = int(call.now_s()) - seconds
    if problems:
        raise causes.error_of_kind("PodLogOptions", "PodLogOptions", call.path.name, problems)
    return Options(
        container=query.text("container"),
        follow=bool(query.flag("follow")),
        previous=bool(query.flag("previous")),
        timestamps=bool(query.flag("timestamps")),
        since_s=since_s,
        tail=numbers["tailLines"],
        limit_bytes=numbers["limitBytes"],
    )


async def _pod(call: Call) -> core_v1_pb2.Pod:
    """Raises Refused."""
    request = api_pb2.GetRequest(resource=call.where(), name=call.path.name)
    return core_v1_pb2.Pod.FromString((await call.look("Get", request)).object)


def _container(pod: core_v1_pb2.Pod, name: str) -> core_v1_pb2.Container:
    known = logs.containers(pod)
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


def _missing(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, options: Options) -> str:
    names = f'container "{container.name}" in pod "{pod.metadata.name}"'
    if options.previous:
        return f"previous terminated {names} not found"
    return f"{names} is waiting to start: {logs.waiting_reason(pod, container)}"


async def _body(call: Call, instance: Instance, options: Options) -> AsyncGenerator[bytes, None]:
    left = options.limit_bytes
    first_s = max(instance.started_s, options.since_s if options.since_s is not None else 0)
    now_s = int(call.now_s()) + 1
    lines = _tail(instance, first_s, now_s, options.tail) if options.tail is not None else None
    async for piece in _follow(call, instance, options, lines, first_s, now_s):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        yield piece
        if left == 0:
            return


def _tail(instance: Instance, first_s: int, last_s: int, count: int) -> list[tuple[int, str]]:
    """The last lines: from the end backwards, until there are enough."""
    reach_s = 60
    while True:
        begin_s = max(first_s, last_s - reach_s)
        found = deque(instance.lines(begin_s, last_s), count)
        if len(found) >= count or begin_s == first_s:
            return list(found)
        reach_s *= 4


async def _follow(
    call: Call,
    instance: Instance,
    options: Options,
    tail: list[tuple[int, str]] | None,
    first_s: int,
    now_s: int,
) -> AsyncGenerator[bytes, None]:
    gone = asyncio.ensure_future(call.request.disconnected()) if options.follow else None
    closing = asyncio.ensure_future(call.closing.wait())
    try:
        async for piece in _pieces(iter(tail) if tail is not None else instance.lines(first_s, now_s), options):
            yield piece
        # What has become of a container is told late.
        known = set(instance.lines(now_s - _LATEST_S, now_s))
        while gone is not None and instance.ended is None and not gone.done() and not closing.done():
            looking = asyncio.ensure_future(call.clock.sleep(_LOOK_EVERY_S, background=True))
            await asyncio.wait([looking, gone, closing], return_when=asyncio.FIRST_COMPLETED)
            looking.cancel()
            later = await _later(call, instance)
            if later is None:
                return
            instance, now_s = later, int(call.now_s()) + 1
            recent = list(instance.lines(now_s - _LATEST_S, now_s))
            async for piece in _pieces((line for line in recent if line not in known), options):
                yield piece
            known = set(recent)
    finally:
        closing.cancel()
        if gone is not None:
            gone.cancel()


async def _later(call: Call, instance: Instance) -> Instance | None:
    """The same start of the container, as it is now. None: the pod is gone."""
    try:
        pod = await _pod(call)
    except (Refused, ApiError):
        return None
    if pod.metadata.uid != instance.pod.metadata.uid:
        return None
    for find in (logs.current, logs.previous):
        found = find(pod, instance.container)
        if found is not None and found.restarts == instance.restarts:
            return found
    return None


async def _pieces(lines: Iterator[tuple[int, str]], options: Options) -> AsyncGenerator[bytes, None]:
    while some := list(islice(lines, _LINES_AT_A_TIME)):
        yield "".join(_line(at_s, text, options) for at_s, text in some).encode()
        await asyncio.sleep(0)


def _line(at_s: int, text: str, options: Options) -> str:
    return f"{times.format_time(at_s)[:-1]}.000000000Z {text}\n" if options.timestamps else f"{text}\n"
