"""Resizes of the pods of a node, one after the other: what the allocation manager defers, and what it allocates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.kubelet.admission import arrivals, predicates
from kemu.emulated.kubelet.pods import claims, containers, workers
from kemu.emulated.kubelet.resizes import allocations
from kemu.emulated.objects import meta
from kemu.lab.conformance import readings
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog.events import Event
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]

APART_S = 10
"""From one step to the next."""


def answer(case: Json) -> Json:
    runtime = SimRuntime(0, lambda *event: None, {})

    async def play() -> Json:
        await runtime.begin()
        world = _World(runtime, case)
        states = []
        for step in case["steps"]:
            await runtime.clock.sleep(APART_S)
            if step["pod"] in world.workers:
                world.take(step)
                states.append(world.state())
        return {"states": states}

    return runtime.run(play())


class _Allocations(allocations.Allocations):
    """What is allocated is not carried out, as in the record: a pod that has shrunk would let others be tried again."""

    def _later(self, worker: workers.Worker, delay_ns: int, act: Callable[..., Any]) -> None:
        pass


class _World:
    """The owner of the pods."""

    def __init__(self, runtime: SimRuntime, case: Json) -> None:
        env = runtime.env("kubelet")
        self.workers: dict[str, workers.Worker] = {}
        self._usage = predicates.NodeClaims()
        self._arrivals = arrivals.Arrivals(env, "node", self._usage, self, self._fresh_node)  # type: ignore[arg-type]
        self._arrivals.node = predicates.NodeView(readings.node(case["node"]))
        self._allocations = _Allocations(env, self, self)  # type: ignore[arg-type]
        self._events: list[str] = []
        for data in case["pods"]:
            pod = readings.pod(data)
            worker = workers.Worker(pod, 0)
            worker.state, worker.claim = workers.ACTIVE, claims.claim_of(pod)
            worker.containers = containers.of(pod)
            self._usage.add(worker.claim)
            self.workers[pod.metadata.name] = worker

    async def _fresh_node(self) -> Any:
        raise AssertionError("nothing is read")

    def take(self, step: Json) -> None:
        worker = self.workers[step["pod"]]
        if step["what"] == "remove":
            del self.workers[step["pod"]]
            worker.state = workers.ENDED
            assert worker.claim is not None
            self._usage.remove(worker.claim)
            self._allocations.remove(worker)
            return
        old = worker.pod
        worker.pod = meta.copied(old)
        worker.pod.metadata.generation += 1
        for container in worker.pod.spec.containers:
            for name, amount in step["requests"].get(container.name, {}).items():
                container.resources.requests[name].string = amount
        self._allocations.see(worker, old)

    def state(self) -> Json:
        pending, allocated = {}, {}
        for name, worker in self.workers.items():
            resize = worker.resize
            if resize is not None and resize.pending is not None:
                pending[name] = list(resize.pending)
            of = {one.name: one.resources for one in worker.pod.spec.containers} if resize is None else resize.allocated
            allocated[name] = {
                container.name: {key: amount.string for key, amount in of[container.name].requests.items()}
                for container in worker.pod.spec.containers
            }
        events, self._events = self._events, []
        return {"pending": pending, "allocated": allocated, "events": events}

    # --- the owner ---------------------------------------------------------------------------------------------------

    def log(self, event: Event) -> None:
        pass

    def report(self, worker: workers.Worker) -> None:
        pass

    def fits(self, worker: workers.Worker, pod: core_v1_pb2.Pod) -> predicates.Decision:
        return self._arrivals.fits(worker, pod)

    def claim(self, worker: workers.Worker, claim: claims.Claim) -> None:
        assert worker.claim is not None
        self._usage.remove(worker.claim)
        worker.claim = claim
        self._usage.add(claim)

    def resize_restarts(self, worker: workers.Worker, container: containers.Container) -> None:
        pass

    def resized(self, worker: workers.Worker, memory_limits: dict[str, int]) -> None:
        pass

    def event(self, regarding: KubernetesObject, event_type: str, reason: str, action: str, note: str) -> None:
        """Record an event."""
        self._events.append(reason)
