"""Recorded loops of the eviction manager, in which a killed pod frees what it used, run by the kubelet's eviction loop.

How long pods take to be killed and cleaned up is up to the host of the loop, which takes it from the case.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from kemu.emulated.kubelet.images import stores
from kemu.emulated.kubelet.pods import claims, containers, statuses
from kemu.emulated.kubelet.pods.workers import ACTIVE, ENDED, STOPPING, Worker
from kemu.emulated.kubelet.pressure import eviction, eviction_loops
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import stats, usages
from kemu.lab.conformance import readings
from kemu.lab.conformance.kubelet import eviction_passes
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.sim.simulation import SimEnv, SimRuntime

Json = dict[str, Any]
_MS_NS = 1_000_000
_SIGNALS = {"memory": thresholds.MEMORY, "pids": thresholds.PIDS, "nodefs": thresholds.NODEFS}
_USAGES = {"memory": ("memory", "memory"), "pids": ("pids", "pids"), "nodefs": ("disk", "logs")}
"""By resource: what the usage of a node and of a pod calls it."""
_CAPACITIES = {"memory": "memory", "nodefs": "ephemeral-storage"}


def answer(case: Json) -> Json:
    runtime = SimRuntime(0, lambda now_ns, actor, kind, data: None)
    node = _Node(runtime.env("kubelet/node"), case)

    async def play() -> None:
        await runtime.begin()
        for data in sorted(case["pods"], key=lambda data: int(data.get("startMs", 0))):
            node.expect(data)
        node.loop.start(runtime.clock.now_ns())
        await runtime.clock.sleep_until_ns(int(case["horizonSeconds"] * 1000) * _MS_NS - 1)

    runtime.run(play())
    return {
        "passes": node.manager.passes,
        "evictions": node.evictions,
        "conditionChanges": node.changes,
        "admissions": node.admissions,
    }


class _Manager(eviction.Manager):
    """Notes each look at the stats: when, and how much there is of the resource."""

    def __init__(self, case: Json) -> None:
        super().__init__(**eviction_passes.settings_of(case["config"]))
        self.passes: list[list[int]] = []
        self._signal = _SIGNALS[case["resource"]]

    def synchronize(self, now_ns: int, active: Sequence[Any], can: eviction.Surroundings) -> eviction.Outcome:
        def look() -> stats.Summary | None:
            summary = can.look()
            assert summary is not None
            self.passes.append([now_ns // _MS_NS, summary.observations[self._signal].available])
            return summary

        return super().synchronize(now_ns, active, dataclasses.replace(can, look=look))


class _NoKernel:
    """In the record nothing else kills."""

    def plan(self, now_ns: int, end_ns: int, *, endless: bool) -> None:
        pass

    def kill_if_due(self, now_ns: int) -> None:
        pass

    def stop(self) -> None:
        pass


class Loop(eviction_loops.EvictionLoop):
    leaves_out = False

    def __init__(self, node: _Node, case: Json, *config: Any) -> None:
        super().__init__(*config)
        self._manager = node.manager
        self._oom_killer: Any = _NoKernel()


class _Node:
    """The host of the loop: pods that start, grow, and take their time to end."""

    def __init__(self, env: SimEnv, case: Json) -> None:
        self.admissions: list[Json] = []
        self.changes: list[Json] = []
        self.evictions: list[Json] = []
        self.manager = _Manager(case)
        self._clock = env.clock
        self._of_pods = _USAGES[case["resource"]][1]
        self._cases = {data["pod"]["metadata"]["name"]: data for data in case["pods"]}
        self._workers: dict[str, Worker] = {}
        node, config = _machine(case)
        self.loop = Loop(self, case, env, node, config, self, self._note_conditions, stores.Images(env, {}))

    @property
    def _now_ms(self) -> int:
        return self._clock.now_ns() // _MS_NS

    def expect(self, data: Json) -> None:
        """A pod that is there from the start, or arrives later."""
        if data.get("startMs"):
            self._in(int(data["startMs"]), self._offer, data)
        else:
            self._run(data)

    def _offer(self, data: Json) -> None:
        refusal = self.loop.admit(readings.pod(data["pod"]))
        name = data["pod"]["metadata"]["name"]
        self.admissions.append({"pod": name, "atMs": self._now_ms, "admit": refusal is None})
        if refusal is None:
            self._run(data)

    def _run(self, data: Json) -> None:
        pod = readings.pod(data["pod"])
        pod.metadata.annotations[usages.USAGE] = json.dumps({self._of_pods: _growth(data)})
        worker = self._workers[pod.metadata.name] = Worker(pod, self._clock.now_ns())
        worker.state, worker.claim = ACTIVE, claims.claim_of(pod)
        worker.containers = containers.of(pod)
        for container in worker.containers:
            container.state, container.has_started = containers.RUNNING, True
            container.started_ns = self._clock.now_ns()
        self.loop.take(worker)
        self.loop.changed(worker)

    def _in(self, ms: int, act: Callable[..., object], *arguments: Any) -> None:
        self._clock.call_at_ns(self._clock.now_ns() + ms * _MS_NS, act, *arguments)

    def _note_conditions(self, conditions: tuple[str, ...]) -> None:
        self.changes.append({"atMs": self._now_ms, "conditions": list(conditions)})

    # --- called by the loop ------------------------------------------------------------------------------------------

    def active(self) -> list[Worker]:
        found = (self._workers.get(name) for name in self._cases)
        return [worker for worker in found if worker is not None and worker.claim is not None]

    def kill(
        self,
        worker: Worker,
        failure: statuses.Failure,
        gone: Callable[[], None] | None = None,
        grace_s: int | None = None,
    ) -> None:
        name = worker.pod.metadata.name
        self.evictions.append({"pod": name, "atMs": self._now_ms, "gracePeriodOverride": grace_s})
        worker.state = STOPPING
        data = self._cases[name]

        def end() -> None:
            worker.state = ENDED
            for container in worker.containers:
                container.state = containers.DONE
            self.loop.release(worker)
            if data.get("cleanupSeconds", 0) >= 0:
                self._in(int(data.get("cleanupSeconds", 0) * 1000), self._clean, worker)
            if gone is not None:
                gone()

        self._in(int(data.get("killSeconds", 0) * 1000), end)

    def _clean(self, worker: Worker) -> None:
        worker.claim = None

    def oom_kill(self, worker: Worker, name: str, limit_bytes: int | None) -> bool:
        raise AssertionError("nobody runs out of memory")

    def images_in_use(self) -> list[str]:
        return []

    def forget_ended(self) -> None:
        pass


def _machine(case: Json) -> tuple[core_v1_pb2.Node, Json]:
    """The node, and the configuration of its kubelet."""
    resource, filesystem = case["resource"], case.get("filesystem") or {}
    node = core_v1_pb2.Node()
    node.metadata.name = "node"
    if resource in _CAPACITIES:
        node.status.capacity[_CAPACITIES[resource]].string = str(case["capacity"])
    machine: Json = {"splitImages": bool(filesystem.get("dedicatedContainerFs"))}
    if filesystem.get("dedicatedImageFs"):
        machine["imagefs"] = {"capacity": "1Ti"}
    if resource == "pids":
        machine["pids"] = str(case["capacity"])
    usage = {_USAGES[resource][0]: str(case.get("systemUsage", 0))}
    return node, {"kubelet": {"evictionHard": {}, "enforceNodeAllocatable": []}, "machine": machine, "usage": usage}


def _growth(data: Json) -> Any:
    """``min(max, start + growth * seconds)`` as a curve, exactly."""
    start, step, most = data.get("usageAtStart", 0), data.get("growthPerSecond", 0), data.get("usageMax", 0)
    if not step or start >= most:
        return str(min(start, most))
    whole = (most - start) // step
    points = [(0, start), *([(whole, start + whole * step)] if whole else []), (whole + 1, most)]
    return {"trace": [{"at": f"{second}s", "value": str(value)} for second, value in points]}
