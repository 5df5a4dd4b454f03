"""What one changed pod costs the controllers of workloads and budgets, at two sizes of what did not change.

Store, API server and one controller in sim. A step reports another pod as ready and lasts until nothing is left to do:
the write, the watch, the sync and the status that comes of it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from typing import Any

from kemu.emulated.client import clients
from kemu.emulated.objects.conversion import convert
from kemu.lab.bench import shapes
from kemu.messages.k8s import apps_v1_pb2, policy_v1_pb2
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.actor_tests import sim
from kemu.runtime.sim.simulation import SimRuntime

FACTORIES = {
    "daemonset": "kemu.emulated.controllers.workloads.daemon.daemon_sets:DaemonSetController",
    "disruption": "kemu.emulated.controllers.disruption:DisruptionController",
}
SIZES: dict[str, tuple[int, int]] = {"daemonset": (500, 5_000), "disruption": (2_000, 20_000)}
"""Nodes with a daemon pod each; pods of one budget."""
_QUIET_S = 5
_LABELS = {"app": "bench"}
_SELECTOR = {"matchLabels": _LABELS}
_READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


def changed_pod(controller: str, size: int, steps: int = 200) -> dict[str, Any]:
    """Microseconds of real time for each step."""
    specs = [
        ActorSpec("store", "kemu.emulated.store.server:Store", {}),
        ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {}),
        ActorSpec(f"controller/{controller}", FACTORIES[controller], {}),
    ]
    taken: list[float] = []

    async def main(runtime: SimRuntime) -> None:
        client = clients.Client(runtime.env("bench"))
        await (_daemons if controller == "daemonset" else _budget)(client, size)
        await runtime.clock.sleep(60)
        pods = (await client.list("pods", resource_version="0")).items
        assert len(pods) == size, f"{len(pods)} pods instead of {size}"
        gc.collect()
        gc.freeze()
        for pod in pods[:steps]:
            begun = time.perf_counter()
            await client.patch("pods", pod.metadata.name, pod.metadata.namespace, _READY, "status")
            await runtime.clock.sleep(_QUIET_S)
            taken.append(time.perf_counter() - begun)
        assert await _reported(client, controller) == steps

    sim(main, 1, specs)
    taken.sort()
    return {"us_median": round(taken[steps // 2] * 1e6, 1), "us_p90": round(taken[steps * 9 // 10] * 1e6, 1)}


async def _daemons(client: clients.Client, size: int) -> None:
    for number in range(size):
        await client.create(shapes.node(number, shapes.LARGE_NODE))
    template = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    daemon_set = convert.from_json(apps_v1_pb2.DaemonSet, {"spec": {"selector": _SELECTOR, "template": template}})
    daemon_set.metadata.name, daemon_set.metadata.namespace = "bench", "default"
    await client.create(daemon_set)


async def _budget(client: clients.Client, size: int) -> None:
    spec = {"spec": {"selector": _SELECTOR, "minAvailable": 1}}
    budget = convert.from_json(policy_v1_pb2.PodDisruptionBudget, spec)
    budget.metadata.name, budget.metadata.namespace = "bench", "default"
    await client.create(budget)
    for number in range(size):
        pod = shapes.pod("plain")
        pod.metadata.name = f"pod-{number}"
        for key, value in _LABELS.items():
            pod.metadata.labels[key] = value
        await client.create(pod)


async def _reported(client: clients.Client, controller: str) -> int:
    """How many ready pods the controller knows of."""
    if controller == "daemonset":
        return int((await client.get("daemonsets", "bench", "default")).status.numberReady)
    return int((await client.get("poddisruptionbudgets", "bench", "default")).status.currentHealthy)


def settings() -> tuple[Mapping[str, Any], ...]:
    return tuple({"controller": name, "size": size} for name, sizes in SIZES.items() for size in sizes)
