"""The prober on containers that start, end and answer by a script, conditions of pods, and resizes of pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kemu.emulated.kubelet.pods import containers, statuses, workers
from kemu.emulated.kubelet.probes import answers, handlers, probers
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.validation.pod_specs import resizes
from kemu.lab.conformance import readings
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import Event
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]

_MS_NS = 1_000_000
_APART_NS = 137 * _MS_NS
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def answer_probes(case: Json) -> Json:
    runtime = SimRuntime(0, lambda *event: None, {})

    async def play() -> Json:
        await runtime.begin()
        world = _World(runtime, case)
        world.begin()
        await runtime.clock.sleep(case["horizonMs"] / 1000)
        return {"changes": world.changes or None, "failures": world.failures or None, "kills": world.kills or None}

    return runtime.run(play())


class _Probers(probers.Probers):
    """Its workers begin one after the other, as in the record, so that no two of them tick in the same instant."""

    resync_s = 1_000_000
    begun = 0

    def jitter_ns(self, worker: workers.Worker, container: containers.Container, kind: str, period_ns: int) -> int:
        self.begun += 1
        return self.begun * _APART_NS

    def failed(
        self, worker: workers.Worker, probe: Any, spec: core_v1_pb2.Probe, *, timed_out: bool, output: str | None
    ) -> None:
        assert isinstance(self._host, _World)
        self._host.failed(worker, probe, spec, timed_out=timed_out)


class _World:
    """The containers of one pod, and the owner of its probes."""

    def __init__(self, runtime: SimRuntime, case: Json) -> None:
        self._clock = runtime.clock
        self._probers = _Probers(runtime.env("kubelet"), self, -1)
        self.changes: list[Any] = []
        self.failures: list[Any] = []
        self.kills: list[Any] = []
        self._case = case
        pod = readings.pod(case["pod"])
        pod.metadata.annotations[answers.PROBES] = json.dumps(case["rules"])
        self._worker = workers.Worker(pod, 0)
        self._worker.state = workers.ACTIVE
        self._worker.containers = containers.of(pod)
        self._shown = {one.name: (False, False) for one in self._worker.containers}

    def begin(self) -> None:
        self._begin_ns = self._clock.now_ns()
        for step in self._case["script"]:
            self._in(step["atMs"], self._step, step["what"], step["container"])
        self._probers.add(self._worker)

    def _in(self, ms: int, act: Callable[..., Any], *arguments: Any) -> None:
        self._clock.call_at_ns(self._clock.now_ns() + ms * _MS_NS, act, *arguments)

    def _now_ms(self) -> int:
        return (self._clock.now_ns() - self._begin_ns) // _MS_NS

    def _step(self, what: str, name: str) -> None:
        container = next(one for one in self._worker.containers if one.name == name)
        if what == "start" and not container.is_up:
            container.restarts += container.has_started
            container.has_started = True
            container.state, container.started_ns = containers.RUNNING, self._clock.now_ns()
        elif what == "exit" and container.is_up:
            container.state = containers.IDLE
        self._probers.sync(self._worker)
        self._note()

    def _note(self) -> None:
        for one in sorted(self._worker.containers, key=lambda one: one.kind != containers.MAIN):
            show = one.is_up and not one.holds_start, one.is_ready
            if self._shown[one.name] != show:
                self._shown[one.name] = show
                self.changes.append([self._now_ms(), one.name, *show])

    # --- the owner ---------------------------------------------------------------------------------------------------

    def log(self, event: Event) -> None:
        pass

    def report(self, worker: workers.Worker) -> None:
        self._note()

    def passed_startup(self, worker: workers.Worker) -> None:
        self._note()

    def unhealthy(self, worker: workers.Worker, container: containers.Container, kind: str) -> None:
        # A container takes time to stop: what else is due in this instant comes first, as in the record.
        self._in(0, self._kill, container, kind)

    def _kill(self, container: containers.Container, kind: str) -> None:
        self.kills.append([self._now_ms(), container.name, kind])
        if self._case["restartMs"]:
            self._in(self._case["restartMs"], self._step, "start", container.name)
            self._step("exit", container.name)
        else:
            container.state = containers.IDLE
            self._step("start", container.name)

    def failed(self, worker: workers.Worker, probe: Any, spec: core_v1_pb2.Probe, *, timed_out: bool) -> None:
        container = containers.spec_of(worker.pod, probe.container)
        output = "timed out" if timed_out else handlers.output(spec, worker.pod, container, timed_out=False)
        self.failures.append([self._now_ms(), f"{probe.kind.capitalize()} probe failed: {output}"])


def answer_readiness(case: Json) -> Json:
    pod = readings.pod(case["pod"])
    told = {one["name"]: one for one in case["containers"]}
    found = containers.of(pod)
    for container in found:
        _restore(container, told[container.name])
    status = core_v1_pb2.PodStatus()
    phase = case["phase"] if case["phase"] in (pod_phases.SUCCEEDED, pod_phases.FAILED) else ""
    statuses.write(status, pod, found, phase, None, sandbox=case["sandbox"], start_unix_ns=0, now_unix_ns=0, epoch_ns=0)
    made = {}
    for name in _CONDITIONS:
        one = next(one for one in status.conditions if one.type == name)
        made[name] = [one.status, one.reason, one.message, one.observedGeneration]
    return {"conditions": made}


def _restore(container: containers.Container, told: Json) -> None:
    state = told["state"]
    if state == "running":
        container.state, container.has_started = containers.RUNNING, True
        container.holds_start, container.is_unready = not told["started"], not told["ready"]
    elif state == "terminated":
        container.state, container.has_started = containers.DONE, True
        container.last = containers.Exit(told["exitCode"], 0, 0)


def answer_resize(case: Json) -> Json:
    """What the API server has against a resize."""
    old, new = readings.pod(case["old"]), readings.pod(case["new"])
    for pod in (old, new):
        defaults.apply(pod)
    return {"causes": sorted([cause.field, cause.message] for cause in resizes.validate(new, old))}
