"""The probes of the pods of one kubelet: which containers have started, and which are ready.

Mirrors ``manager`` of ``pkg/kubelet/prober`` (``AddPod``, ``UpdatePodStatus``, ``StopLivenessAndStartup``,
``RemovePod``) and what ``syncLoopIteration`` of ``pkg/kubelet`` does with new results. Pods without probes are not kept
here. :mod:`kemu.emulated.kubelet.sync.starts` starts containers, and starts them anew when this module says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.pods.containers import Container
from kemu.emulated.kubelet.pods.workers import ACTIVE, STOPPING, Worker
from kemu.emulated.kubelet.probes import answers, handlers
from kemu.emulated.kubelet.probes.answers import LIVENESS, READINESS, STARTUP
from kemu.emulated.kubelet.probes.commands import CommandAnswers
from kemu.emulated.kubelet.probes.workers import FAILURE, SUCCESS, Answering, ProbeWorker
from kemu.emulated.kubelet.programs.residents import Programs
from kemu.emulated.kubelet.usage import usages
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import Event, ProbeChanged

UNHEALTHY = "Unhealthy"

RESTART_GRACE_S = 10

_PROBES = ((STARTUP, "startupProbe"), (READINESS, "readinessProbe"), (LIVENESS, "livenessProbe"))
_TITLES = {STARTUP: "Startup", READINESS: "Readiness", LIVENESS: "Liveness"}


class ProberHost(Protocol):
    """The owner of the pods."""

    def log(self, event: Event) -> None: ...

    def report(self, worker: Worker) -> None:
        """Its status has changed."""

    def passed_startup(self, worker: Worker) -> None:
        """A container counts as started now: the one after a sidecar may start."""

    def unhealthy(self, worker: Worker, container: Container, kind: str) -> None:
        """Its liveness or startup probe has failed as often as it may: it has to start anew."""


class Probers:
    """The startup, readiness and liveness probes of a node."""

    resync_s = 60
    """The kubelet syncs every pod again after this time (``syncFrequency``), and up to half of it more."""

    def __init__(
        self,
        env: Env,
        host: ProberHost,
        up_since_ns: int,
        recorder: recorders.Recorder | None = None,
        programs: Programs | None = None,
    ) -> None:
        """``up_since_ns``: when this kubelet started; less than 0: long ago. ``recorder`` writes event objects.
        ``programs`` run the commands of probes; None: these succeed."""
        self.programs = programs
        self._recorder = recorder
        self._env = env
        self._clock = env.clock
        self._host = host
        self._up_since_ns = up_since_ns
        self.pods: dict[str, _PodProbes] = {}
        """By UID: the pods that have probes."""

    def add(self, worker: Worker, *, is_adopted: bool = False) -> None:
        """A pod with probes has been admitted. ``is_adopted``: before this kubelet started."""
        self.pods[worker.uid] = _PodProbes(self, worker, is_adopted=is_adopted)

    def remove(self, worker: Worker) -> None:
        """Its containers are gone."""
        found = self.pods.pop(worker.uid, None)
        if found is not None:
            found.stop()

    def sync(self, worker: Worker) -> None:
        """The pod has changed, or a container of it has started or ended."""
        if (found := self.pods.get(worker.uid)) is not None:
            found.sync()

    # --- called by the probes of a pod -------------------------------------------------------------------------------

    def jitter_ns(self, worker: Worker, container: Container, kind: str, period_ns: int) -> int:
        """A kubelet that has just started does not begin all of its probes at once."""
        if self._up_since_ns < 0 or period_ns <= self._clock.now_ns() - self._up_since_ns:
            return 0
        return int(_uniform(f"{worker.uid}/{container.name}/{kind}/{self._up_since_ns}") * period_ns)

    def ran_before(self, container: Container) -> bool:
        """Whether it had run for a while when this kubelet started: then it stays ready until a probe says otherwise
        (``kubeletRestartGracePeriod``)."""
        return self._up_since_ns < 0 or container.started_ns < self._up_since_ns - RESTART_GRACE_S * SECOND_NS

    def failed(
        self, worker: Worker, probe: ProbeWorker, spec: core_v1_pb2.Probe, *, timed_out: bool, output: str | None
    ) -> None:
        if self._recorder is not None:
            container = containers.spec_of(worker.pod, probe.container)
            title = _TITLES[probe.kind]
            if output is None or timed_out:
                output = handlers.output(spec, worker.pod, container, timed_out=timed_out)
            note = f"{title} probe failed: {output}"
            self._recorder.event(worker.pod, recorders.WARNING, UNHEALTHY, f"{title}Probe", note)

    def updated(self, pod: _PodProbes, probe: ProbeWorker) -> None:
        """``syncLoopIteration``: what a new result comes to."""
        worker, container, kind, result = pod.worker, probe.container, probe.kind, probe.result
        if kind == LIVENESS and result != FAILURE:
            return
        has_failed = result == FAILURE and container.state == containers.RUNNING and worker.state == ACTIVE
        if kind != READINESS and (has_failed or result == SUCCESS):
            self.probed(worker, container, kind, ok=not has_failed)
        pod.sync()
        if kind == STARTUP and result == SUCCESS:
            self._host.passed_startup(worker)
        elif kind != READINESS and has_failed:
            self._host.unhealthy(worker, container, kind)

    def changed(self, worker: Worker) -> None:
        """What its status says of its containers."""
        self._host.report(worker)

    def probed(self, worker: Worker, container: Container, kind: str, *, ok: bool) -> None:
        self._host.log(ProbeChanged(**worker.named, container=container.name, probe=kind, ok=ok))


class _PodProbes:
    """The probes of one pod."""

    __slots__ = ("_kept", "_of_containers", "_owner", "_probes", "_resync", "_rules", "_shown", "_specs", "worker")

    def __init__(self, owner: Probers, worker: Worker, *, is_adopted: bool) -> None:
        self.worker = worker
        self._owner = owner
        self._rules = answers.of(worker.pod)
        self._resync: Timer | None = None
        self._probes: list[ProbeWorker] = []
        self._specs: dict[ProbeWorker, Any] = {}
        self._of_containers: list[tuple[Container, dict[str, ProbeWorker]]] = []
        self._shown: dict[Container, bool] = {}
        """Whether a container has started, by the status."""
        self._kept: dict[Container, bool] = {}
        """Those that ran before this kubelet, whose readiness has not been probed yet."""
        for container in sorted(worker.containers, key=lambda one: one.kind != containers.MAIN):
            # Main containers first, as AddPod has them.
            if container.is_probed:
                self._add(container, is_adopted=is_adopted and container.is_up and owner.ran_before(container))
        for probe in self._probes:
            period_ns = (self._specs[probe].periodSeconds or 10) * SECOND_NS
            probe.begin(owner.jitter_ns(worker, probe.container, probe.kind, period_ns))
        self.sync()

    def _add(self, container: Container, *, is_adopted: bool) -> None:
        spec = containers.spec_of(self.worker.pod, container)
        clock = self._owner._clock
        found = {}
        for kind, name in _PROBES:
            if spec.HasField(name):
                probe = ProbeWorker(clock, kind, getattr(spec, name), container, self, is_adopted=is_adopted)
                self._probes.append(probe)
                found[kind] = probe
                self._specs[probe] = getattr(spec, name)
        self._of_containers.append((container, found))
        self._shown[container] = is_adopted and not container.holds_start
        if is_adopted:
            self._kept[container] = True

    def sync(self) -> None:
        """``UpdatePodStatus``; and probes find out what has become of their containers."""
        worker = self.worker
        if self._rules is not (rules := answers.of(worker.pod)):
            self._rules = rules
            for probe in self._probes:
                probe.forget_answers()
        has_changed = False
        waiting = []
        for container, probes in self._of_containers:
            has_changed |= self._show(container, probes)
            readiness = probes.get(READINESS)
            if readiness is not None and self._shown[container] and readiness.current != SUCCESS:
                waiting.append(readiness)
        for probe in self._probes:
            if worker.state == STOPPING and probe.kind != READINESS:
                probe.stop()
            else:
                probe.changed()
        self._plan_resync(waits=len(waiting) > 0)
        if has_changed:
            self._owner.changed(worker)
        for probe in waiting:
            probe.trigger()

    def _show(self, container: Container, probes: Mapping[str, ProbeWorker]) -> bool:
        """Whether the status of a container is another than before."""
        before = container.holds_start, container.is_unready
        startup, readiness = probes.get(STARTUP), probes.get(READINESS)
        if not container.is_up:
            container.holds_start, container.is_unready = startup is not None, True
        else:
            if startup is not None:
                result = startup.current
                # What the status said of the container before, if none has seen that it was down, holds for this one
                # until its startup probe looks (``convertToAPIContainerStatuses``).
                container.holds_start = not self._shown[container] if result is None else result != SUCCESS
            if container.holds_start:
                container.is_unready = True
            elif readiness is None:
                container.is_unready = False
            elif readiness.current is not None or container not in self._kept:
                container.is_unready = readiness.current != SUCCESS
                self._kept.pop(container, None)
                if before[1] != container.is_unready:
                    self._owner.probed(self.worker, container, READINESS, ok=not container.is_unready)
        self._shown[container] = container.is_up and not container.holds_start
        return before != (container.holds_start, container.is_unready)

    def _plan_resync(self, *, waits: bool) -> None:
        """Every sync of the pod probes the readiness of a container that is not ready."""
        if self._resync is not None:
            self._resync.cancel()
            self._resync = None
        if waits:
            now_ns = self._owner._clock.now_ns()
            part = _uniform(f"{self.worker.uid}/{now_ns}")
            when_ns = now_ns + int(self._owner.resync_s * SECOND_NS * (1 + part / 2))
            self._resync = self._owner._clock.call_at_ns(when_ns, self._synced_again)

    def _synced_again(self) -> None:
        self._resync = None
        self.sync()

    def stop(self) -> None:
        for probe in self._probes:
            probe.stop()
        self._plan_resync(waits=False)

    # --- called by the workers ---------------------------------------------------------------------------------------

    def answers(self, probe: ProbeWorker) -> Answering:
        container = probe.container
        stated = self._rules.get(container.name, {}).get(probe.kind)
        spec, programs = self._specs[probe], self._owner.programs
        if stated is None and programs is not None and spec.handler.HasField("exec"):
            timeout_ns = (spec.timeoutSeconds or 1) * SECOND_NS
            return CommandAnswers(programs, self.worker, container, spec.handler.exec.command, timeout_ns)
        rules = stated or answers.SUCCEEDS
        load = _Load(self.worker, container) if rules.fails_above else _NO_LOAD
        seed = f"{self.worker.uid}/{container.name}/{probe.kind}"
        return answers.Answers(rules, container.restarts + 1, load, seed)

    def updated(self, probe: ProbeWorker) -> None:
        self._owner.updated(self, probe)

    def failed(self, probe: ProbeWorker, *, timed_out: bool, output: str | None) -> None:
        self._owner.failed(self.worker, probe, self._specs[probe], timed_out=timed_out, output=output)


class _Load:
    """What a container uses."""

    def __init__(self, worker: Worker, container: Container) -> None:
        self._worker = worker
        self._container = container
        usage = usages.of(worker.pod)
        self._gauge = None if usage is None else usages.Gauge(worker, usage)

    def most(self, resource: str, first_s: int, last_s: int) -> int:
        if self._gauge is None:
            return 0
        begin_ns = self._container.started_ns
        first_ns, last_ns = begin_ns + first_s * SECOND_NS, begin_ns + last_s * SECOND_NS
        return self._gauge.amount(resource, self._container, first_ns, last_ns)

    def limit(self, resource: str) -> int | None:
        limits = containers.spec_of(self._worker.pod, self._container).resources.limits
        if resource not in limits:
            return None
        read = quantities.milli if resource == "cpu" else quantities.value
        return read(limits[resource].string)


class _NoLoad:
    def most(self, resource: str, first_s: int, last_s: int) -> int:
        return 0

    def limit(self, resource: str) -> int | None:
        return None


_NO_LOAD = _NoLoad()


def _uniform(seed: str) -> float:
    drawn = hashlib.blake2b(seed.encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") / (1 << 64)
