"""A long run: many pods through one scheduler while everything changes, and what is left of it in memory.

Store, API server and scheduler in one process, in virtual time, without kubelets: a driver makes pods of many kinds and
ends them, adds and removes nodes, cordons, taints and relabels them, relabels pods. At the end what the scheduler keeps
is compared with a cache built anew from the store's objects (:mod:`kemu.emulated.scheduler.consistency`), and its sizes
and the process's memory are reported after every 10,000 pods.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.scheduler import consistency
from kemu.emulated.scheduler.scheduler import Scheduler
from kemu.lab.bench import shapes
from kemu.lab.bench.schedulers.scheduling import TIMING
from kemu.lab.scenario.playing import plans
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.runlog.events import PodAttempted, PodBound, PreemptionPlanned, VictimDeleted
from kemu.runtime.sim.simulation import SimRuntime

SCHEDULER = "scheduler/default-scheduler/0"
ZONES = ("zone1", "zone2", "zone3")
BATCH = 50
STEP_S = 1.0
"""Virtual time between two batches."""
SETTLE_S = 60.0
"""Virtual time at the end, until nothing happens any more."""
REPORT_PODS = 10_000
PODS_PER_NODE = 6
"""The number of pods at one time: the cluster is nearly full, so important pods must preempt others."""

_KEPT = {"compaction_interval_s": 60.0, "event_ttl_s": 60.0, "window_events": 1000}
"""The past that the API server keeps, on purpose, is kept short, so that what grows can be seen."""

_TEMPLATES = (
    *("plain",) * 4,
    *("low",) * 6,
    *("node-affinity",) * 2,
    "anti-affinity",
    "affinity",
    "preferred-affinity",
    "preferred-anti-affinity",
    "spread",
    "preferred-spread",
)


class KeptScheduler(Scheduler):
    """A scheduler that the driver can inspect."""

    latest: KeptScheduler

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        type(self).latest = self


class _Driver:
    """What happens to the cluster, drawn from a seed."""

    def __init__(self, client: clients.Client, nodes: int, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.alive = nodes * PODS_PER_NODE
        self.made = 0
        self.pods: deque[str] = deque()
        """Names of the existing pods, oldest first."""
        self.nodes: list[str] = []
        self.node_number = 0
        self.refused = 0
        self._wanted_nodes = nodes

    async def set_up(self) -> None:
        await self.client.create(shapes.high_priority())
        await asyncio.gather(*(self.add_node() for _ in range(self._wanted_nodes)))

    async def add_node(self) -> None:
        node = shapes.node(self.node_number, shapes.SMALL_NODE, ZONES)
        self.node_number += 1
        if self.node_number % 3 == 0:
            node.status.images.add(names=[f"image-{self.node_number % 7}:1"], sizeBytes=500_000_000)
        self.nodes.append(node.metadata.name)
        await self.client.create(node)

    async def _try(self, change: Awaitable[object]) -> None:
        """Something may be gone already, or be changed by the scheduler at the same time."""
        try:
            await change
        except (errors.NotFound, errors.Conflict):
            self.refused += 1

    def _pod(self) -> core_v1_pb2.Pod:
        number, draw = self.made, self.random
        self.made += 1
        template = draw.choice(_TEMPLATES) if number % 10 else "high"
        pod = shapes.pod(template)
        pod.metadata.name = f"pod-{number}"
        requests = pod.spec.containers[0].resources.requests
        if draw.random() < 0.05:
            # Templates of their own.
            requests["memory"].string = f"{500 + number}Ki"
            pod.metadata.labels["only"] = f"{number}"
        if draw.random() < 0.02:
            pod.spec.containers[0].ports[0].hostPort = 8000 + number % 5
        if draw.random() < 0.01:
            requests["cpu"].string = "1000"
        if draw.random() < 0.02:
            # No node has it: the pod waits until it ends.
            for amounts in (requests, pod.spec.containers[0].resources.limits):
                amounts[f"example.com/device-{number}"].string = "1"
        if draw.random() < 0.05:
            pod.spec.tolerations.add(key="churn", operator="Exists")
        self.pods.append(pod.metadata.name)
        return pod

    async def step(self, count: int) -> None:
        changes = [self._try(self.client.create(self._pod())) for _ in range(count)]
        while len(self.pods) > self.alive:
            changes.append(self._try(self._end(self.pods.popleft())))
        changes += [self._try(self._relabel_pod(self.random.choice(self.pods))) for _ in range(3)]
        changes += [self._try(self._change_node(self.random.choice(self.nodes))) for _ in range(3)]
        changes.append(self.add_node())
        gone = self.nodes.pop(self.random.randrange(len(self.nodes)))
        changes.append(self._try(self.client.delete("nodes", gone)))
        await asyncio.gather(*changes)

    async def _end(self, name: str) -> None:
        if self.random.random() < 0.5:
            pod = await self.client.get("pods", name, "default")
            pod.status.phase = self.random.choice(pod_phases.TERMINAL)
            await self.client.update_status(pod)
        await self.client.delete("pods", name, "default")

    async def _relabel_pod(self, name: str) -> None:
        color = self.random.choice(("blue", "green", "red", "yellow"))
        patch = {"metadata": {"labels": {"color": color}}}
        await self.client.patch("pods", name, "default", patch)

    async def _change_node(self, name: str) -> None:
        draw = self.random
        node = await self.client.get("nodes", name)
        what = draw.randrange(5)
        if what == 0:
            node.spec.unschedulable = not node.spec.unschedulable
        elif what == 1 and not node.spec.taints:
            effect = draw.choice(("NoSchedule", "PreferNoSchedule"))
            node.spec.taints.add(key="churn", value=f"{self.made}", effect=effect)
        elif what == 1:
            del node.spec.taints[:]
        elif what == 2:
            node.metadata.labels[shapes.ZONE] = draw.choice(ZONES)
        elif what == 3:
            node.metadata.labels["churn"] = f"{self.made}"
        else:
            node.status.allocatable["cpu"].string = draw.choice(("3", "4", "5"))
            await self.client.update_status(node)
            return
        await self.client.update(node)


def _resident_mib() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 2**20, 1)


async def _drive(runtime: SimRuntime, nodes: int, pods: int, seed: int) -> dict[str, Any]:
    await runtime.launch([ActorSpec(plans.STORE, plans.STORE_FACTORY, {"fsync": "none"})])
    await runtime.launch([ActorSpec("apiserver/0", plans.APISERVER_FACTORY, {"store": plans.STORE, **_KEPT})])
    driver = _Driver(clients.Client(runtime.env("user")), nodes, seed)
    await driver.set_up()
    await runtime.launch([ActorSpec(SCHEDULER, "kemu.lab.bench.schedulers.soaks:KeptScheduler", {"timing": TIMING})])
    await runtime.begin()
    engine = KeptScheduler.latest.engine
    reports: list[Mapping[str, Any]] = []
    over = asyncio.Event()

    async def live() -> None:
        clock = runtime.env("user").clock
        begun, begun_cpu = time.perf_counter(), time.process_time()
        reported = 0
        while driver.made < pods:
            await driver.step(min(BATCH, pods - driver.made))
            await clock.sleep(STEP_S)
            if driver.made - reported >= min(REPORT_PODS, max(1, pods // 5)):
                spent = time.process_time() - begun_cpu
                sizes = consistency.sizes(engine)
                reports.append(
                    {
                        "pods": driver.made,
                        "wall_s": round(time.perf_counter() - begun, 1),
                        "cpu_us_per_pod": round(spent / (driver.made - reported) * 1e6),
                        "rss_mib": _resident_mib(),
                        "kept": sizes,
                    }
                )
                reported, begun, begun_cpu = driver.made, time.perf_counter(), time.process_time()
        await clock.sleep(SETTLE_S)
        over.set()

    runtime.env("user").spawn(live(), "life")
    await runtime.run_until(10**9 * SECOND_NS, stop=over)
    listed_nodes = await driver.client.list("nodes")
    listed_pods = await driver.client.list("pods")
    left = [pod for pod in cast(list[core_v1_pb2.Pod], listed_pods.items) if not pod_phases.is_terminal(pod)]
    found = consistency.differences(engine, cast(list[core_v1_pb2.Node], listed_nodes.items), left)
    await runtime.shutdown()
    return {
        "made": driver.made,
        "left": len(left),
        "nodes_made": driver.node_number,
        "differences": found,
        "reports": reports,
    }


def soak(nodes: int, pods: int, seed: int = 1) -> dict[str, Any]:
    """``differences`` must be empty; ``reports`` say what was kept and how much memory the process had."""
    kinds: dict[str, int] = {}

    def sink(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if isinstance(data, (PodBound, PreemptionPlanned, PodAttempted, VictimDeleted)):
            kinds[kind] = kinds.get(kind, 0) + 1

    runtime = SimRuntime(seed, sink, TIMING)
    figures = runtime.run(_drive(runtime, nodes, pods, seed))
    half = [report["rss_mib"] for report in figures["reports"]][(len(figures["reports"]) - 1) // 2 :]
    figures["rss_growth_mib"] = round(half[-1] - half[0], 1) if half else 0.0
    figures["rss_growth_percent"] = round(100 * (half[-1] / half[0] - 1), 1) if half else 0.0
    return {**figures, **{kind.replace(".", "_"): number for kind, number in kinds.items()}}
