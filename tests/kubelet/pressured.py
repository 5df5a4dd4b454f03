"""A node under pressure without the rest of its kubelet
(:class:`kemu.emulated.kubelet.pressure.eviction_loops.EvictionLoop`).

Its host says how long its pods take to be killed, to be cleaned up, and to start again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.emulated.kubelet.images import stores
from kemu.emulated.kubelet.pods import claims, containers
from kemu.emulated.kubelet.pods.workers import ACTIVE, ENDED, STOPPING, Worker
from kemu.emulated.kubelet.pressure import eviction_loops
from kemu.emulated.kubelet.usage import usages
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import own
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder

KINDS = ("kubelet.thresholds", "kubelet.pressure", "kubelet.evicting", "kubelet.collected", "oom")


def node(**capacity: str) -> core_v1_pb2.Node:
    found = core_v1_pb2.Node()
    found.metadata.name = "n1"
    for name, amount in sorted(capacity.items()):
        found.status.capacity[name.replace("_", "-")].string = amount
    return found


def pod(name: str, usage: Any = None, *, priority: int = 0, **resources: Mapping[str, str]) -> core_v1_pb2.Pod:
    """``resources``: ``requests``, ``limits`` of its only container."""
    found = core_v1_pb2.Pod()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", f"uid-{name}"
    found.spec.priority = priority
    found.spec.terminationGracePeriodSeconds = 30
    container = found.spec.containers.add(name="main")
    for kind, amounts in resources.items():
        for resource, amount in sorted(amounts.items()):
            getattr(container.resources, kind)[resource].string = amount
    return with_usage(found, usage)


def with_usage(one: core_v1_pb2.Pod, usage: Any) -> core_v1_pb2.Pod:
    if usage is not None:
        one.metadata.annotations[usages.USAGE] = json.dumps(usage)
    return one


class Times:
    """Of one pod, in seconds. ``cleanup_s`` None: never. ``restart_s``: from an OOM kill until it runs again."""

    def __init__(self, kill_s: float = 0, cleanup_s: float | None = 0, restart_s: float | None = 0) -> None:
        self.kill_s, self.cleanup_s, self.restart_s = kill_s, cleanup_s, restart_s


class Bench:
    """What happened is in ``events``: (seconds, kind, what)."""

    def __init__(self, one: core_v1_pb2.Node, **config: Any) -> None:
        self.recorder = Recorder()
        self.runtime = SimRuntime(0, self.recorder, {})
        self.clock = self.runtime.clock
        self.workers: dict[str, Worker] = {}
        self.times: dict[str, Times] = {}
        self.order: list[str] = []
        self.conditions: list[tuple[float, tuple[str, ...]]] = []
        self.images = stores.Images(self.runtime.env("kubelet/n1"), {})
        self.pressures = eviction_loops.EvictionLoop(
            self.runtime.env("kubelet/n1"),
            one,
            config,
            self,
            lambda found: self.conditions.append((self.now, found)),
            self.images,
        )

    @property
    def now(self) -> float:
        return self.clock.now_ns() / SECOND_NS

    @property
    def events(self) -> list[tuple[float, str, Any]]:
        return [
            (ns / SECOND_NS, kind, {key: data[key] for key in sorted(data) if key != "uid"})
            for ns, _, kind, data in self.recorder.events
            if kind in KINDS
        ]

    def told(self, kind: str, key: str) -> list[tuple[float, Any]]:
        return [(seconds, data[key]) for seconds, what, data in self.events if what == kind]

    def evictions(self) -> list[tuple[float, str]]:
        return [(at, name.removeprefix("default/")) for at, name in self.told("kubelet.evicting", "pod")]

    def oom_kills(self) -> list[tuple[float, str]]:
        return [(at, name.removeprefix("default/")) for at, name in self.told("oom", "pod")]

    def play(self, until_s: float, at: Iterable[tuple[float, Callable[[], object]]] = ()) -> Bench:
        """``at``: what is done at which second; at 0 before the kubelet looks for the first time."""

        async def main() -> None:
            await self.runtime.begin()
            for seconds, act in at:
                if seconds:
                    self.clock.call_at_ns(int(seconds * SECOND_NS), act)
                else:
                    act()
            self.pressures.start(self.clock.now_ns())
            await self.clock.sleep_until_ns(int(until_s * SECOND_NS))

        self.runtime.run(main())
        return self

    # --- pods --------------------------------------------------------------------------------------------------------

    def run(self, one: core_v1_pb2.Pod, times: Times | None = None) -> None:
        worker = Worker(one, self.clock.now_ns())
        worker.containers = containers.of(one)
        worker.claim = claims.claim_of(one)
        worker.state = ACTIVE
        worker.start_ns = self.clock.now_ns()
        self.workers[one.metadata.name] = worker
        self.times[one.metadata.name] = times or Times()
        for container in worker.containers:
            self._start(container)
        self.pressures.take(worker)
        self.pressures.changed(worker)

    def offer(self, one: core_v1_pb2.Pod, times: Times | None = None) -> bool:
        """Run it unless the manager refuses it."""
        if self.pressures.admit(one) is not None:
            return False
        self.run(one, times)
        return True

    def end(self, name: str) -> None:
        """By itself."""
        self._end(self.workers[name])
        self._clean(self.workers[name])

    def _start(self, container: containers.Container) -> None:
        container.state = containers.RUNNING
        container.started_ns = self.clock.now_ns()
        container.has_started = True

    def _end(self, worker: Worker) -> None:
        for container in worker.containers:
            container.state = containers.DONE
        worker.state = ENDED
        self.pressures.release(worker)

    def _clean(self, worker: Worker) -> None:
        worker.claim = None

    def _in(self, seconds: float, act: Callable[..., object], *arguments: Any) -> None:
        if seconds:
            self.clock.call_at_ns(self.clock.now_ns() + int(seconds * SECOND_NS), act, *arguments)
        else:
            act(*arguments)

    # --- the host ----------------------------------------------------------------------------------------------------

    def images_in_use(self) -> list[str]:
        return [
            one.image for worker in self.workers.values() for one in worker.containers if one.created_ns is not None
        ]

    def forget_ended(self) -> None:
        for worker in self.workers.values():
            if worker.state == ENDED:
                worker.containers = []

    def active(self) -> list[Worker]:
        """In the order of ``order``, else in that of their arrival."""
        names = [*self.order, *(name for name in self.workers if name not in self.order)]
        found = [self.workers[name] for name in names if name in self.workers]
        return [worker for worker in found if worker.claim is not None]

    def kill(
        self, worker: Worker, failure: Any, gone: Callable[[], None] | None = None, grace_s: int | None = None
    ) -> None:
        times = self.times[worker.pod.metadata.name]
        worker.state = STOPPING

        def dead() -> None:
            if worker.state != ENDED:
                self._end(worker)
                if times.cleanup_s is not None:
                    self._in(times.cleanup_s, self._clean, worker)
            if gone is not None:
                gone()

        self._in(times.kill_s, dead)

    def oom_kill(self, worker: Worker, name: str, limit_bytes: int | None) -> bool:
        container = next(one for one in worker.containers if one.name == name)
        if not container.is_up:
            return False
        self.runtime.env("kubelet/n1").log(own("oom", {"pod": worker.key, "container": name}))
        times = self.times[worker.pod.metadata.name]
        container.state = containers.DONE
        if times.restart_s is not None:
            self._in(times.restart_s, self._restart, worker, container)
        self.pressures.changed(worker)
        return True

    def _restart(self, worker: Worker, container: containers.Container) -> None:
        if worker.state == ACTIVE:
            container.restarts += 1
            self._start(container)
            self.pressures.changed(worker)
