"""What the programs of containers print, as it follows from their pods: the same for whoever asks, however often."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

from kemu.emulated.kubelet.programs import courses
from kemu.emulated.kubelet.programs.courses import Volumes
from kemu.emulated.kubelet.programs.environments import NO_SOURCES, Sources
from kemu.emulated.kubelet.programs.shells import Process
from kemu.emulated.kubelet.programs.syntax import NotUnderstood
from kemu.messages.k8s import core_v1_pb2

_MOST_STEPS = 30_000
_MOST_LINES = 50_000
_REPEATED = 8
"""How many of the starts before this one are carried out, for what they left in the volumes of their pod."""


class Printout:
    """Grows as far as it is read."""

    def __init__(self, started_s: int) -> None:
        self._started_s = started_s
        self._pieces: list[tuple[float, str]] = []
        self._open: dict[int, tuple[float, str]] = {}
        """By descriptor: a line that has no end yet."""
        self._is_over = False
        self.process: Process | None = None

    def told(self, at_s: float, descriptor: int, text: str) -> None:
        *lines, rest = text.split("\n")
        for line in lines:
            begun_s, before = self._open.pop(descriptor, (at_s, ""))
            if len(self._pieces) < _MOST_LINES:
                self._pieces.append((begun_s, before + line))
        if rest:
            begun_s, before = self._open.get(descriptor, (at_s, ""))
            self._open[descriptor] = begun_s, before + rest

    def _grow(self, until_s: float) -> None:
        if self._is_over or self.process is None:
            return
        try:
            self._is_over = self.process.advance(until_s) is not None
        except NotUnderstood:
            self._is_over = True
        if self._is_over:
            self._pieces += self._open.values()
            self._open.clear()

    def between(self, first_s: int, last_s: int) -> Iterator[tuple[int, str]]:
        """Lines from the first time on, and before the last one; Unix seconds."""
        self._grow(last_s - self._started_s)
        for at_s, text in sorted(self._pieces, key=lambda piece: piece[0]):
            when_s = self._started_s + int(at_s)
            if first_s <= when_s < last_s:
                yield when_s, text


def of(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    restarts: int,
    started_s: int,
    sources: Sources = NO_SOURCES,
) -> Printout | None:
    """None: it is a server, or its program is not known. ``sources``: when its log is read for the first time."""
    command = courses.command_of(pod, container, sources)
    if command is None or courses.is_server(command):
        return None
    metadata = pod.metadata
    found = _kept(metadata.uid, container.name, restarts, started_s)
    if found.process is None:
        volumes = Volumes()
        repeat(pod, container, volumes, restarts)
        found.process = courses.process(
            pod, container, volumes, restarts, started_s, found.told, _MOST_STEPS, sources=sources
        )
    return found


@functools.lru_cache(128)
def _kept(uid: str, container: str, restarts: int, started_s: int) -> Printout:
    return Printout(started_s)


def repeat(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, volumes: Volumes, restarts: int) -> None:
    """What the pod's init containers and the starts before this one did to its volumes."""
    if not pod.spec.volumes:
        return
    for one in pod.spec.initContainers:
        if one.name == container.name:
            break
        _run(courses.process(pod, one, volumes, 0, 0.0))
    for number in range(max(0, restarts - _REPEATED), restarts):
        _run(courses.process(pod, container, volumes, number, 0.0))


def _run(process: Process | None) -> None:
    if process is not None:
        with contextlib.suppress(NotUnderstood):
            process.outcome_of_all()
