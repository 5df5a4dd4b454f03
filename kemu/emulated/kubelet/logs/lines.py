"""What the simulated containers of a pod would say: the lines of ``kubectl logs``.

Nothing runs in them, so the lines follow from the pod: when a container started and how it ended stand in its status,
what it answers to its probes and what it uses in its annotations, by which the kubelet goes as well. So they are the
same for every reader, however often it asks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from kemu.emulated.kubelet.logs import stated
from kemu.emulated.kubelet.probes import answers
from kemu.emulated.kubelet.programs import printouts
from kemu.emulated.kubelet.programs.environments import NO_SOURCES, Sources
from kemu.emulated.kubelet.usage import meters
from kemu.emulated.objects import times
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2

USAGE_EVERY_S = 60
_BINARY = quantities.Format.BINARY_SI
_OOM = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Instance:
    """A container from one start to its end."""

    pod: core_v1_pb2.Pod
    container: core_v1_pb2.Container
    """Container of the spec."""
    restarts: int
    """How often it had been restarted by then."""
    started_s: int
    """Unix time."""
    ended: core_v1_pb2.ContainerStateTerminated | None = None
    """A ContainerStateTerminated; None: it runs."""
    programs: bool = False
    """Whether containers do what their commands say."""
    sources: Sources = field(default_factory=dict)
    """What the objects hold that their commands read."""

    @property
    def ended_s(self) -> int | None:
        return None if self.ended is None else int(self.ended.finishedAt.seconds)

    def lines(self, first_s: int, last_s: int) -> Iterator[tuple[int, str]]:
        """What it says from the first time on, and before the last one, with the time; Unix seconds."""
        ended_s = self.ended_s
        end_s = last_s if ended_s is None else min(last_s, ended_s)
        own = self._printed(first_s, last_s)
        if own is not None:
            yield from own
            return
        if first_s <= self.started_s < last_s:
            yield self.started_s, self._greeting()
        meter = meters.Meter(self.pod)
        sources = [self._probes(meter, kind, max(first_s, self.started_s), end_s) for kind in answers.KINDS]
        sources.append(self._usage(meter, max(first_s, self.started_s), end_s))
        yield from heapq.merge(*sources, key=lambda line: line[0])
        asked_s = self._asked_to_stop_s()
        if asked_s is not None and first_s <= asked_s < last_s and (ended_s is None or asked_s <= ended_s):
            yield asked_s, f"SIGTERM: {self.pod.metadata.deletionGracePeriodSeconds} s to stop"
        if ended_s is not None and first_s <= ended_s < last_s:
            yield ended_s, self._farewell()

    def _printed(self, first_s: int, last_s: int) -> Iterator[tuple[int, str]] | None:
        """What the pod says that it prints, or what its program does. None: that is not known."""
        lines = stated.of(self.pod, self.container.name)
        end_s = last_s if self.ended is None else min(last_s, int(self.ended.finishedAt.seconds) + 1)
        if lines is not None:
            begin_s = self.started_s
            found = stated.between(
                lines, self.pod, self.container.name, self.restarts, first_s - begin_s, end_s - begin_s
            )
            return ((begin_s + int(at_s), text) for at_s, text in found)
        if not self.programs:
            return None
        printed = printouts.of(self.pod, self.container, self.restarts, self.started_s, self.sources)
        return None if printed is None else printed.between(first_s, end_s)

    def _greeting(self) -> str:
        again = f", restart {self.restarts}" if self.restarts else ""
        return f"{self.container.name} starts: image {self.container.image}{again} (simulated by kemu)"

    def _farewell(self) -> str:
        assert self.ended is not None
        code, reason = self.ended.exitCode, self.ended.reason
        if reason == _OOM:
            limit = self.container.resources.limits
            most = f" of {limit['memory'].string}" if "memory" in limit else ""
            return f"out of memory: the limit{most} is reached, exit {code}"
        return f"{self.container.name} exits with {code}" + (f": {reason}" if reason else "")

    def _asked_to_stop_s(self) -> int | None:
        metadata = self.pod.metadata
        if not metadata.HasField("deletionTimestamp"):
            return None
        asked_s: int = metadata.deletionTimestamp.seconds - metadata.deletionGracePeriodSeconds
        return max(self.started_s, asked_s)

    def _probes(self, meter: meters.Meter, kind: str, first_s: int, last_s: int) -> Iterator[tuple[int, str]]:
        probe = getattr(self.container, f"{kind}Probe")
        if not self.container.HasField(f"{kind}Probe"):
            return
        rules = answers.of(self.pod).get(self.container.name, {}).get(kind, answers.SUCCEEDS)
        seed = f"{self.pod.metadata.uid}/{self.container.name}/{kind}"
        load = meters.ContainerLoad(meter, self.container)
        answering = answers.Answers(rules, self.restarts + 1, load, seed)
        period_s = probe.periodSeconds or 10
        begin_s = self.started_s + probe.initialDelaySeconds
        number = max(0, -((begin_s - first_s) // period_s))
        passed = 0
        while (at_s := begin_s + number * period_s) < last_s:
            fails = answering.fails((at_s - self.started_s) * times.UNITS_NS["s"], number)
            yield at_s, f"{_request(probe.handler, fails=fails)} ({kind} probe)"
            passed = 0 if fails else passed + 1
            if kind == answers.STARTUP and passed >= (probe.successThreshold or 1):
                return
            number += 1

    def _usage(self, meter: meters.Meter, first_s: int, last_s: int) -> Iterator[tuple[int, str]]:
        if not meter.is_used:
            return
        number = max(1, -((self.started_s - first_s) // USAGE_EVERY_S))
        while (at_s := self.started_s + number * USAGE_EVERY_S) < last_s:
            cpu, memory = (meter.amount(key, self.container.name, at_s - self.started_s) for key in meters.RESOURCES)
            yield at_s, f"usage: cpu {cpu}m, memory {quantities.format_value(memory, _BINARY)}"
            number += 1


def _request(handler: core_v1_pb2.ProbeHandler, *, fails: bool) -> str:
    """As a server would log it."""
    if handler.HasField("httpGet"):
        return f"GET {handler.httpGet.path or '/'} {503 if fails else 200}"
    if handler.HasField("grpc"):
        return f"grpc.health.v1.Health/Check {'NOT_SERVING' if fails else 'SERVING'}"
    if handler.HasField("tcpSocket"):
        return "connection refused" if fails else "connection accepted"
    return f"{' '.join(handler.exec.command)}: exit {1 if fails else 0}"


def current(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    *,
    programs: bool = False,
    sources: Sources = NO_SOURCES,
) -> Instance | None:
    """What runs, or ran last. None: it has not started, or waits for its next start."""
    status = _status(pod, container.name)
    if status is None:
        return None
    if status.state.HasField("running"):
        started_s = status.state.running.startedAt.seconds
        return Instance(pod, container, status.restartCount, started_s, programs=programs, sources=sources)
    if status.state.HasField("terminated"):
        ended = status.state.terminated
        return _ended(pod, container, status.restartCount, ended, programs=programs, sources=sources)
    if status.lastState.HasField("terminated"):
        # As the kubelet: of one that waits to be started again, the log of the start before.
        ended = status.lastState.terminated
        return _ended(pod, container, max(0, status.restartCount - 1), ended, programs=programs, sources=sources)
    return None


def previous(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    *,
    programs: bool = False,
    sources: Sources = NO_SOURCES,
) -> Instance | None:
    """The one before that; None: there was none, or it is forgotten."""
    status = _status(pod, container.name)
    if status is None or not status.lastState.HasField("terminated"):
        return None
    ended = status.lastState.terminated
    return _ended(pod, container, max(0, status.restartCount - 1), ended, programs=programs, sources=sources)


def waiting_reason(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> str:
    status = _status(pod, container.name)
    if status is None:
        return "ContainerCreating"
    return str(status.state.waiting.reason)


def _ended(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    restarts: int,
    terminated: core_v1_pb2.ContainerStateTerminated,
    *,
    programs: bool,
    sources: Sources,
) -> Instance:
    return Instance(pod, container, restarts, terminated.startedAt.seconds, terminated, programs, sources)


def _status(pod: core_v1_pb2.Pod, name: str) -> core_v1_pb2.ContainerStatus | None:
    statuses = (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    return next((one for one in statuses if one.name == name), None)


def containers(pod: core_v1_pb2.Pod) -> dict[str, core_v1_pb2.Container]:
    """By name, init containers first."""
    return {one.name: one for one in (*pod.spec.initContainers, *pod.spec.containers)}
