"""What a request for the log of a container gets: its latest lines, those since a time, or all as they come.

Mirrors ``PodLogOptions`` and ``ReadLogs`` of ``pkg/kubelet/kuberuntime/logs``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from kemu.emulated.kubelet.logs import lines as logs
from kemu.emulated.kubelet.logs.lines import Instance
from kemu.emulated.kubelet.programs.environments import Sources
from kemu.emulated.objects import times
from kemu.messages.k8s import core_v1_pb2

_LINES_AT_A_TIME = 500
_LOOK_EVERY_S = 1.0
"""While a log is followed; in the time of the cluster."""
_LATEST_S = 30
"""How late it may be known that a container has ended."""


@dataclass(frozen=True, slots=True)
class Options:
    """PodLogOptions."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_s: int | None = None
    """Unix time."""
    tail: int | None = None
    limit_bytes: int | None = None
    programs: bool = False
    """Whether containers do what their commands say."""
    sources: Sources = field(default_factory=dict)
    """What the objects hold that their commands read."""


class Reader(Protocol):
    """Who asks for a log, and where the pod is looked up."""

    def now_s(self) -> float:
        """Unix time of the cluster."""
        ...

    async def pod(self) -> core_v1_pb2.Pod | None:
        """As it is now; None: it is gone."""
        ...

    async def wait(self, seconds: float) -> bool:
        """In the time of the cluster. False: the reader is gone, or the server ends."""
        ...


def find(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, options: Options) -> Instance | None:
    """The start of the container that is asked for; None: there is none."""
    found = logs.previous if options.previous else logs.current
    return found(pod, container, programs=options.programs, sources=options.sources)


def missing(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, options: Options) -> str:
    """Why there is none (``validateContainerLogStatus``)."""
    names = f'container "{container.name}" in pod "{pod.metadata.name}"'
    if options.previous:
        return f"previous terminated {names} not found"
    return f"{names} is waiting to start: {logs.waiting_reason(pod, container)}"


async def read(reader: Reader, instance: Instance, options: Options) -> AsyncGenerator[bytes, None]:
    left = options.limit_bytes
    async for piece in _follow(reader, instance, options):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        yield piece
        if left == 0:
            return


async def _follow(reader: Reader, instance: Instance, options: Options) -> AsyncGenerator[bytes, None]:
    first_s = max(instance.started_s, options.since_s if options.since_s is not None else 0)
    now_s = int(reader.now_s()) + 1
    tail = _tail(instance, first_s, now_s, options.tail) if options.tail is not None else None
    async for piece in _pieces(iter(tail) if tail is not None else instance.lines(first_s, now_s), options):
        yield piece
    # What has become of a container is told late.
    known = set(instance.lines(now_s - _LATEST_S, now_s))
    while options.follow and instance.ended is None and await reader.wait(_LOOK_EVERY_S):
        later = await _later(reader, instance)
        if later is None:
            return
        instance, now_s = later, int(reader.now_s()) + 1
        recent = list(instance.lines(now_s - _LATEST_S, now_s))
        async for piece in _pieces((line for line in recent if line not in known), options):
            yield piece
        known = set(recent)


def _tail(instance: Instance, first_s: int, last_s: int, count: int) -> list[tuple[int, str]]:
    """The last lines: from the end backwards, until there are enough."""
    reach_s = 60
    while True:
        begin_s = max(first_s, last_s - reach_s)
        found = deque(instance.lines(begin_s, last_s), count)
        if len(found) >= count or begin_s == first_s:
            return list(found)
        reach_s *= 4


async def _later(reader: Reader, instance: Instance) -> Instance | None:
    """The same start of the container, as it is now. None: the pod is gone."""
    pod = await reader.pod()
    if pod is None or pod.metadata.uid != instance.pod.metadata.uid:
        return None
    for find_one in (logs.current, logs.previous):
        found = find_one(pod, instance.container, programs=instance.programs, sources=instance.sources)
        if found is not None and found.restarts == instance.restarts:
            return found
    return None


async def _pieces(lines: Iterator[tuple[int, str]], options: Options) -> AsyncGenerator[bytes, None]:
    while some := list(islice(lines, _LINES_AT_A_TIME)):
        yield "".join(_line(at_s, text, options) for at_s, text in some).encode(errors="surrogateescape")
        await asyncio.sleep(0)


def _line(at_s: int, text: str, options: Options) -> str:
    return f"{times.format_time(at_s)[:-1]}.000000000Z {text}\n" if options.timestamps else f"{text}\n"
