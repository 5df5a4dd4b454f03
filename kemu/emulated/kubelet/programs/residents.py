"""The programs of the containers of one kubelet, and the commands that the kubelet runs in them: hooks and probes.

What a program does to files is done when it starts, unless there is someone who could tell the difference: a hook or a
probe that runs a command, or two containers that share a volume. The programs of such a pod go on side by side, step by
step, as its clock does; the kubelet wakes at each step (:meth:`Programs.next_s`).

Times are seconds of the kubelet's clock, but for ``unix_s``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kemu.emulated.kubelet.programs import courses, environments, images
from kemu.emulated.kubelet.programs.courses import FOREVER, TASK, Volumes
from kemu.emulated.kubelet.programs.environments import Sources
from kemu.emulated.kubelet.programs.files import Files, Store
from kemu.emulated.kubelet.programs.shells import Outcome, Process
from kemu.emulated.kubelet.programs.syntax import NotUnderstood
from kemu.messages.k8s import core_v1_pb2

_TINY_S = 1e-6
"""Clocks count in ns."""
_MOST_OUTPUT = 10 << 10
"""As the kubelet keeps of a probe."""


@dataclass(frozen=True)
class Answer:
    """What came of a command in a container."""

    code: int
    output: str
    took_s: float
    """Infinite: it did not end in time."""
    is_lasting: bool
    """It would come out the same as long as no file changes."""


@dataclass
class _Resident:
    """A container from one start to its end."""

    container: core_v1_pb2.Container
    files: Files
    process: Process | None
    """None: what it runs is not understood."""
    started_s: float
    unix_s: float
    restarts: int
    asked: int = 0
    """How many commands were run in it."""

    @property
    def next_s(self) -> float:
        """When its program goes on; infinity: not any more."""
        if self.process is None or self.process.outcome is not None:
            return math.inf
        return self.started_s + self.process.next_s


@dataclass
class _Pod:
    volumes: dict[str, Store] = field(default_factory=dict)
    sources: dict[str, Sources] = field(default_factory=dict)
    """By container."""
    residents: dict[str, _Resident] = field(default_factory=dict)
    changes: int = 0
    """How often a file was changed."""

    def change(self) -> None:
        self.changes += 1

    def advance(self, until_s: float) -> None:
        """Let all programs go on, in the order of their steps."""
        while self.residents:
            first = min(self.residents.values(), key=lambda one: one.next_s)
            if first.next_s > until_s + _TINY_S:
                return
            assert first.process is not None
            try:
                first.process.advance(first.process.next_s)
            except NotUnderstood:
                first.process.outcome = FOREVER

    def next_s(self) -> float:
        """When one of the programs goes on; infinity: none."""
        return min((one.next_s for one in self.residents.values()), default=math.inf)


class Programs:
    def __init__(self, allocatable: Mapping[str, str] | None = None) -> None:
        """``allocatable``: what the node can give to pods."""
        self._of_node: dict[str, Store] = {}
        self._pods: dict[str, _Pod] = {}
        self._known: Sources = {} if allocatable is None else {environments.NODE: allocatable}

    # What it refers to

    def wanted(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> list[tuple[str, str]]:
        """What has to be known before it starts, so that its commands see what they should."""
        return [one for one in read_by(pod, container) if one != environments.NODE]

    def learn(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, sources: Sources) -> None:
        self._pods.setdefault(pod.metadata.uid, _Pod()).sources[container.name] = {**self._known, **sources}

    def _sources(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> Sources:
        found = self._pods.get(pod.metadata.uid)
        return self._known if found is None else found.sources.get(container.name, self._known)

    # Starts and ends

    def begin(
        self,
        pod: core_v1_pb2.Pod,
        container: core_v1_pb2.Container,
        *,
        is_init: bool,
        restarts: int,
        unix_s: float,
        now_s: float = 0.0,
    ) -> Outcome | None:
        """It starts, for the first time or again. None: it lives as ever. An outcome without an end may still get one:
        see :meth:`next_s`."""
        sources = self._sources(pod, container)
        is_followed = not is_init and is_followed_step_by_step(pod)
        if is_followed or pod.spec.volumes:
            own = self._pods.setdefault(pod.metadata.uid, _Pod())
        else:
            own = _Pod()
        volumes = Volumes(own.volumes, self._of_node)
        if is_followed:
            found = self._begin_to_follow(own, pod, container, volumes, restarts, unix_s, now_s, sources)
        else:
            process = courses.process(pod, container, volumes, restarts, unix_s, sources=sources)
            found = None
            if process is not None:
                with contextlib.suppress(NotUnderstood):
                    found = process.outcome_of_all()
        if found is not None or is_init:
            return found
        return FOREVER if pod.spec.restartPolicy in ("", "Always") else TASK

    def _begin_to_follow(
        self,
        own: _Pod,
        pod: core_v1_pb2.Pod,
        container: core_v1_pb2.Container,
        volumes: Volumes,
        restarts: int,
        unix_s: float,
        now_s: float,
        sources: Sources,
    ) -> Outcome | None:
        """None: what it runs is not understood."""
        own.advance(now_s)
        own.residents.pop(container.name, None)
        command = courses.command_of(pod, container, sources)
        process = None
        if command is not None and _is_understood(pod, container, volumes, restarts, unix_s, sources):
            files = courses.files_of(pod, container, volumes, sources)
            files.changed = own.change
            process = courses.process_in(pod, container, files, command, restarts, unix_s, sources=sources)
        else:
            files = courses.files_of(pod, container, volumes, sources)
            files.changed = own.change
        files.is_partial = process is None or command is None or _serves(command)
        own.change()
        own.residents[container.name] = _Resident(container, files, process, now_s, unix_s, restarts)
        own.advance(now_s)
        if process is None:
            return None
        return process.outcome or FOREVER

    def look(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, now_s: float) -> Outcome | None:
        """What became of it by now; None: it runs, or is not followed."""
        own = self._pods.get(pod.metadata.uid)
        if own is None or container.name not in own.residents:
            return None
        own.advance(now_s)
        process = own.residents[container.name].process
        return None if process is None or process.outcome is None else process.outcome

    def next_s(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> float | None:
        """When its program goes on and may end; None: it is not followed step by step, or has no steps left."""
        own = self._pods.get(pod.metadata.uid)
        found = None if own is None else own.residents.get(container.name)
        return None if found is None or math.isinf(found.next_s) else found.next_s

    def ended(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> None:
        """It has ended or was killed."""
        own = self._pods.get(pod.metadata.uid)
        if own is not None:
            own.residents.pop(container.name, None)

    def forget(self, pod: core_v1_pb2.Pod) -> None:
        """It has gone."""
        self._pods.pop(pod.metadata.uid, None)

    def stop(
        self,
        pod: core_v1_pb2.Pod,
        container: core_v1_pb2.Container,
        *,
        restarts: int,
        unix_s: float,
        after_s: float,
        has_traps: bool,
    ) -> Outcome | None:
        """What becomes of one that is told to stop ``after_s`` from its start. None: it stops at once, as those do that
        have no traps."""
        own = self._pods.get(pod.metadata.uid)
        found = None if own is None else own.residents.get(container.name)
        if found is not None:
            process = found.process
        elif not has_traps:
            return None
        else:
            volumes = _copies(Volumes(own.volumes if own is not None else {}, self._of_node))
            sources = self._sources(pod, container)
            process = courses.process(pod, container, volumes, restarts, unix_s, sources=sources)
        with contextlib.suppress(NotUnderstood):
            return None if process is None else process.stop(after_s)
        return None

    # Commands of hooks and probes

    def run(
        self,
        pod: core_v1_pb2.Pod,
        container: core_v1_pb2.Container,
        command: Sequence[str],
        now_s: float,
        limit_s: float,
        *,
        takes_time: bool = False,
    ) -> Answer | None:
        """Run a command in a container that is up. None: it, or what it needs, is not understood. ``takes_time``: the
        programs of the pod go on while it runs; otherwise what it finds is what there is now."""
        own = self._pods.get(pod.metadata.uid)
        found = None if own is None else own.residents.get(container.name)
        if own is None or found is None or not command:
            return None
        own.advance(now_s)
        found.asked += 1
        printed: list[str] = []
        before = own.changes
        shell = courses.shell_in(
            pod,
            container,
            found.files,
            seed=f"{pod.metadata.uid}/{container.name}/{found.restarts}/{found.asked}",
            unix_s=found.unix_s + now_s - found.started_s,
            sources=self._sources(pod, container),
            told=lambda at_s, descriptor, text: printed.append(text),
        )
        process = Process(shell, list(command))
        try:
            while process.outcome is None and process.next_s <= limit_s:
                if takes_time:
                    own.advance(now_s + process.next_s)
                process.advance(process.next_s)
        except NotUnderstood:
            return None
        outcome = process.outcome
        is_lasting = own.changes == before and not shell.world.tells_time
        output = "".join(printed)[:_MOST_OUTPUT].encode(errors="surrogateescape").decode(errors="replace")
        if outcome is None or outcome.run_s is None:
            return Answer(0, output, math.inf, is_lasting)
        return Answer(outcome.exit_code, output, outcome.run_s, is_lasting)

    def changes(self, pod: core_v1_pb2.Pod) -> int:
        """Grows with each change of a file in it."""
        own = self._pods.get(pod.metadata.uid)
        return 0 if own is None else own.changes

    def next_change_s(self, pod: core_v1_pb2.Pod) -> float:
        """Until then no program of it changes a file."""
        own = self._pods.get(pod.metadata.uid)
        return math.inf if own is None else own.next_s()


def read_by(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> list[tuple[str, str]]:
    """What the commands of a container may read (:func:`environments.named`)."""
    texts = list(_texts(pod, container))
    return environments.named(pod, container, texts) if texts else []


def is_followed_step_by_step(pod: core_v1_pb2.Pod) -> bool:
    """Whether there is someone who could tell when a program of it does what."""
    lasting = [*(one for one in pod.spec.initContainers if one.restartPolicy == "Always"), *pod.spec.containers]
    if any(next(_commands(one), None) is not None for one in lasting):
        return True
    if len(lasting) < 2 or not pod.spec.volumes:
        return False
    writers: dict[str, int] = {}
    for one in lasting:
        for name in {mount.name: None for mount in one.volumeMounts}:
            writers[name] = writers.get(name, 0) + 1
    kinds = ("configMap", "secret", "downwardAPI", "projected", "image", "hostPath")
    return any(
        writers.get(volume.name, 0) > 1 and not any(volume.volumeSource.HasField(kind) for kind in kinds)
        for volume in pod.spec.volumes
    )


def _commands(container: core_v1_pb2.Container) -> Iterator[Sequence[str]]:
    """Those of its hooks and probes."""
    lifecycle = container.lifecycle
    for hook in (lifecycle.postStart, lifecycle.preStop):
        if hook.HasField("exec"):
            yield hook.exec.command
    for probe in (container.startupProbe, container.readinessProbe, container.livenessProbe):
        if probe.handler.HasField("exec"):
            yield probe.handler.exec.command


def _texts(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> Iterator[str]:
    """The words of all commands that run in it, as far as they may be understood."""
    command = courses.command_of(pod, container)
    if command is not None and (not _serves(command) or any("$(" in word for word in command)):
        yield from command
    for words in _commands(container):
        yield from words


def _serves(command: Sequence[str]) -> bool:
    if command[0].rpartition("/")[2] == images.AGNHOST:
        return command[1:2] == [] or command[1] not in images.ENDING
    return courses.is_server(command)


def _is_understood(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    volumes: Volumes,
    restarts: int,
    unix_s: float,
    sources: Sources,
) -> bool:
    """Whether its program could be carried out to its end, if nothing else changed its files."""
    process = courses.process(pod, container, _copies(volumes), restarts, unix_s, sources=sources)
    if process is None:
        return False
    try:
        process.outcome_of_all()
    except NotUnderstood:
        return False
    return True


def _copies(volumes: Volumes) -> Volumes:
    return Volumes(_copied(volumes.of_pod), _copied(volumes.of_node))


def _copied(stores: Mapping[str, Store]) -> dict[str, Store]:
    return {name: dict(store) for name, store in stores.items()}
