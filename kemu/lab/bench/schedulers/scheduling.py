"""kube-scheduler's own benchmark: store, API server and scheduler in one process, no kubelets.

The shapes are those of ``scheduler_perf`` in Kubernetes (nodes, initial pods, measured pods, what disturbs them), run
in sim with all virtual times 0: what is measured is computing alone. The time is from the first request to create a
measured pod until the last of them is bound. No run log is written, as upstream writes none.

What upstream does at intervals (a preemptor every 200 ms) happens here between measured pods, once for as many of them
as upstream's expected rate binds in that time. So the number of disturbances per pod does not shrink with our speed.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.client import clients
from kemu.lab.bench import shapes
from kemu.lab.scenario.playing import plans
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.runlog.events import PodBound, PreemptionPlanned, VictimDeleted
from kemu.runtime.sim.simulation import SimRuntime

TIMING: Mapping[str, Any] = {"apiLatency": 0, "watchLatency": 0, "storeLatency": 0, "schedulingCycle": 0, "bind": 0}
SCHEDULER = "scheduler/default-scheduler/0"
ZONE1, MOONS = ("zone1",), ("moon-1", "moon-2", "moon-3")

BUDGET_GROUPS = 10


@dataclass(frozen=True)
class Workload:
    """One shape. Counts are those at ``nodes`` nodes; with other numbers of nodes initial pods shrink in proportion."""

    expected_per_s: float
    """What upstream expects at least. 0: nothing comparable."""
    template: str
    """Template of the measured pods."""
    pods: int
    """Measured ones."""
    initial: tuple[tuple[str, int], ...] = ()
    """Template and number of the pods that are there before."""
    spread_evenly: bool = False
    """Initial pods are put on the nodes in turn and not scheduled."""
    zones: tuple[str, ...] = ()
    namespaces: bool = False
    """Initial pods in namespace ``sched-0``, measured ones in ``sched-1``."""
    nodes: int = 5000
    disturbance: str = ""
    """Name in :data:`_DISTURBANCES`."""
    every_s: float = 0
    """How often it happens upstream."""
    budgets: bool = False


WORKLOADS: dict[str, Workload] = {
    "SchedulingBasic": Workload(270, "plain", 5000, (("plain", 1000),)),
    "NodeAffinity": Workload(220, "node-affinity", 5000, (("node-affinity", 5000),), zones=ZONE1),
    "PodAntiAffinity": Workload(60, "anti-affinity", 2000, (("anti-affinity", 1000),), namespaces=True),
    "RequiredPodAffinity": Workload(35, "affinity", 5000, (("affinity", 5000),), zones=ZONE1, namespaces=True),
    "PreferredPodAffinity": Workload(90, "preferred-affinity", 5000, (("preferred-affinity", 5000),), namespaces=True),
    "PreferredPodAntiAffinity": Workload(
        90, "preferred-anti-affinity", 5000, (("preferred-anti-affinity", 5000),), namespaces=True
    ),
    "TopologySpreading": Workload(85, "spread", 5000, (("plain", 5000),), zones=MOONS),
    "PreferredTopologySpreading": Workload(125, "preferred-spread", 5000, (("plain", 5000),), zones=MOONS),
    "PreemptionAsync": Workload(
        160, "plain", 5000, (("low", 20000),), spread_evenly=True, disturbance="preemptor", every_s=0.2
    ),
    "Unschedulable": Workload(140, "plain", 5000, (("plain", 100),), disturbance="too-large", every_s=0.2),
    "MixedChurn": Workload(265, "plain", 5000, disturbance="churn", every_s=1),
    "MixedSchedulingBasePod": Workload(
        140,
        "plain",
        5000,
        tuple(
            (template, 2000)
            for template in ("plain", "affinity", "anti-affinity", "preferred-affinity", "preferred-anti-affinity")
        ),
        zones=ZONE1,
    ),
}

_FULL = (("low", 2000),)
PREEMPTIONS: dict[str, Workload] = {
    "plain": Workload(0, "high", 500, _FULL, spread_evenly=True, nodes=500),
    "budgets": Workload(0, "high", 500, _FULL, spread_evenly=True, nodes=500, budgets=True),
    "affinity": Workload(0, "high-affinity", 500, _FULL, spread_evenly=True, nodes=500, zones=ZONE1),
}
"""Variants of ``Preemption500``: every pod has to preempt three of the four pods of a node of four cpus."""
PREEMPTION = "Preemption500"


class Progress:
    """The sink of the run's log: counts bindings, keeps nothing."""

    def __init__(self) -> None:
        self.prefix = "default/measured"
        self.bound = 0
        self.wanted = 0
        self.every = 0
        self.done = asyncio.Event()
        self.turn: Callable[[], None] | None = None
        """Called after each ``every`` bindings of measured pods."""
        self.latest = ""
        """The measured pod that was bound last, as ``namespace/name``."""
        self.last_s = self.last_cpu_s = 0.0
        self.preemptions = 0
        self.victims = 0

    def expect(self, prefix: str, wanted: int) -> None:
        self.prefix, self.wanted, self.bound = prefix, wanted, 0
        self.done.clear()

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if isinstance(data, PodBound):
            if not data.ok or not data.pod.startswith(self.prefix):
                return
            self.bound += 1
            self.latest = data.pod
            if self.bound == self.wanted:
                self.last_s, self.last_cpu_s = time.perf_counter(), time.process_time()
                self.done.set()
            elif self.turn is not None and self.bound % self.every == 0:
                self.turn()
        elif kind == PreemptionPlanned.KIND:
            self.preemptions += 1
        elif kind == VictimDeleted.KIND:
            self.victims += 1


async def create_all(client: clients.Client, objects: Iterable[Any]) -> None:
    """In groups, to limit the number of concurrent requests."""
    group = []
    for obj in objects:
        group.append(client.create(obj))
        if len(group) == 500:
            await asyncio.gather(*group)
            group = []
    await asyncio.gather(*group)


def _nodes(workload: Workload, nodes: int) -> Iterator[core_v1_pb2.Node]:
    for number in range(nodes):
        yield shapes.node(number, shapes.SMALL_NODE, workload.zones)


def _initial_pods(workload: Workload, nodes: int) -> Iterator[core_v1_pb2.Pod]:
    namespace = "sched-0" if workload.namespaces else "default"
    for kind, (template, count) in enumerate(workload.initial):
        for number, pod in enumerate(
            shapes.pods(template, namespace, f"initial-{kind}", count * nodes // workload.nodes)
        ):
            if workload.spread_evenly:
                pod.spec.nodeName = f"node-{number % nodes}"
            if workload.budgets:
                pod.metadata.labels["group"] = f"{number % BUDGET_GROUPS}"
            yield pod


async def _create_budgets(client: clients.Client) -> None:
    for number in range(BUDGET_GROUPS):
        budget = await client.create(shapes.budget(number, BUDGET_GROUPS))
        # No controller keeps the status here; half of the groups may lose pods, the others may not.
        budget.status.disruptionsAllowed = 1_000_000 if number % 2 else 0
        budget.status.observedGeneration = 1
        await client.update_status(budget)


async def _preemptors(client: clients.Client) -> AsyncIterator[None]:
    for pod in shapes.pods("high", "default", "preemptor", 1_000_000):
        await client.create(pod)
        yield


async def _too_large(client: clients.Client) -> AsyncIterator[None]:
    for pod in shapes.pods("high-too-large", "default", "too-large", 1_000_000):
        await client.create(pod)
        yield


async def _churn(client: clients.Client) -> AsyncIterator[None]:
    """A node, a pod that fits nowhere and a service, one of each, deleted and created in turn."""
    for number, pod in enumerate(shapes.pods("high-too-large", "default", "churn", 1_000_000)):
        node = shapes.node(number, shapes.SMALL_NODE)
        node.metadata.name = f"churn-{number}"
        service = shapes.service(f"churn-{number}")
        await asyncio.gather(client.create(node), client.create(pod), client.create(service))
        yield
        await asyncio.gather(
            client.delete("nodes", node.metadata.name),
            client.delete("pods", pod.metadata.name, "default"),
            client.delete("services", service.metadata.name, "default"),
        )
        yield


_DISTURBANCES = {"preemptor": _preemptors, "too-large": _too_large, "churn": _churn}


async def _drive(runtime: SimRuntime, workload: Workload, nodes: int, pods: int, progress: Progress) -> dict[str, Any]:
    begun = time.perf_counter()
    await runtime.launch([ActorSpec(plans.STORE, plans.STORE_FACTORY, {"fsync": "none"})])
    await runtime.launch([ActorSpec("apiserver/0", plans.APISERVER_FACTORY, {"store": plans.STORE})])
    env = runtime.env("user")
    client = clients.Client(env)
    await create_all(client, (shapes.namespace(name) for name in ("sched-0", "sched-1")))
    await client.create(shapes.high_priority())
    await create_all(client, _nodes(workload, nodes))
    if workload.budgets:
        await _create_budgets(client)
    if workload.spread_evenly:
        await create_all(client, _initial_pods(workload, nodes))
    await runtime.launch([ActorSpec(SCHEDULER, plans.SCHEDULER_FACTORY, {"timing": TIMING})])
    await runtime.begin()
    if not workload.spread_evenly:
        initial = sum(count * nodes // workload.nodes for _template, count in workload.initial)
        if initial:
            progress.expect("sched-0/initial" if workload.namespaces else "default/initial", initial)
            await create_all(client, _initial_pods(workload, nodes))
            await runtime.run_until(600 * SECOND_NS, stop=progress.done)
            _assert_done(progress)
    ready = time.perf_counter()
    namespace = "sched-1" if workload.namespaces else "default"
    measured = list(shapes.pods(workload.template, namespace, "measured", pods))
    progress.expect(f"{namespace}/measured", pods)
    if workload.disturbance:
        due = asyncio.Queue[None]()
        progress.every = max(1, round(workload.expected_per_s * workload.every_s))
        progress.turn = lambda: due.put_nowait(None)

        async def disturb() -> None:
            async for _ in _DISTURBANCES[workload.disturbance](client):
                await due.get()

        env.spawn(disturb(), "disturbance")
    gc.collect()
    gc.freeze()
    start, start_cpu = time.perf_counter(), time.process_time()
    creating = env.spawn(create_all(client, measured), "creation")
    await runtime.run_until(3600 * SECOND_NS, stop=progress.done)
    _assert_done(progress)
    await creating
    await runtime.shutdown()
    return {"setup_s": ready - begun, "start": start, "start_cpu": start_cpu}


def _assert_done(progress: Progress) -> None:
    if not progress.done.is_set():
        raise SystemExit(f"only {progress.bound} of {progress.wanted} pods were bound")


def _run(workload: Workload, nodes: int, pods: int) -> tuple[dict[str, Any], Progress]:
    progress = Progress()
    runtime = SimRuntime(1, progress, TIMING)
    times = runtime.run(_drive(runtime, workload, nodes, pods, progress))
    taken, cpu = progress.last_s - times["start"], progress.last_cpu_s - times["start_cpu"]
    figures = {
        "pods_per_s": round(pods / taken, 1),
        "pods_per_cpu_s": round(pods / cpu, 1),
        "cpu_us_per_pod": round(cpu / pods * 1e6),
        "wall_s": round(taken, 2),
        "setup_s": round(times["setup_s"], 2),
    }
    return figures, progress


def schedule(workload: str, nodes: int, pods: int, variant: str = "") -> dict[str, Any]:
    """Measured pods created and bound per second, beside what upstream expects; or a ``variant`` of preemption."""
    shape = PREEMPTIONS[variant] if workload == PREEMPTION else WORKLOADS[workload]
    figures, progress = _run(shape, nodes, pods)
    if shape.expected_per_s:
        figures["upstream"] = shape.expected_per_s
        figures["ratio"] = round(figures["pods_per_s"] / shape.expected_per_s, 1)
        figures["cpu_ratio"] = round(figures["pods_per_cpu_s"] / shape.expected_per_s, 1)
    if progress.preemptions:
        figures["preemptions"], figures["victims"] = progress.preemptions, progress.victims
    return figures


def settings() -> tuple[Mapping[str, Any], ...]:
    """All workloads in full size."""
    shapes_of_pods = [{"workload": name, "nodes": shape.nodes, "pods": shape.pods} for name, shape in WORKLOADS.items()]
    preemptions = [
        {"workload": PREEMPTION, "variant": variant, "nodes": shape.nodes, "pods": shape.pods}
        for variant, shape in PREEMPTIONS.items()
    ]
    return (*shapes_of_pods, *preemptions)
