"""What a rolling update of many Deployments costs the API server, beside as many bare pods created and deleted."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

import yaml

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import PodRunning
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.owners import OWNER
from kemu.runtime.sim.simulation import SimRuntime

PODS_OF_EACH = 10
CHANGE_S, END_S = 60, 600
POD = {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}]}


class _Meter(deque[Any]):
    """What is ready to run, and whose it was: the time from one entry to the next is charged to the owner of the
    first."""

    def __init__(self, entries: deque[Any]) -> None:
        super().__init__(entries)
        self.spent_ns: Counter[str] = Counter()
        self._owner = ""
        self._since_ns = time.process_time_ns()

    def popleft(self) -> Any:
        entry = super().popleft()
        now_ns = time.process_time_ns()
        self.spent_ns[self._owner] += now_ns - self._since_ns
        owner = entry[2].get(OWNER) if entry[2] is not None else None
        self._owner, self._since_ns = "" if owner is None else owner.name, now_ns
        return entry


def _scenario(nodes: int, change: Mapping[str, Any]) -> Scenario:
    """``change``: keys of the spec."""
    machines = {"namePrefix": "node-", "count": nodes, "allocatable": {"cpu": "32", "memory": "64Gi", "pods": "210"}}
    spec = {"duration": "1h", "podStatuses": "sparing", "nodes": [machines], **change}
    document = {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": {"name": "bench"}, "spec": spec}
    return loader.loads(yaml.safe_dump(document))


def _rolling(deployments: int) -> dict[str, Any]:
    def one(number: int) -> dict[str, Any]:
        labels = {"app": f"web-{number}"}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"web-{number}"},
            "spec": {
                "replicas": PODS_OF_EACH,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": POD},
            },
        }

    changes = [{"at": f"{CHANGE_S}s", "rollout": {"restart": f"deployment/web-{n}"}} for n in range(deployments)]
    return {"manifests": [one(number) for number in range(deployments)], "events": changes}


def _bare(pods: int) -> dict[str, Any]:
    def one(name: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": POD}

    made = {"apiVersion": "v1", "kind": "List", "items": [one(f"new-{n}") for n in range(pods)]}
    changes: list[dict[str, Any]] = [{"at": f"{CHANGE_S}s", "create": made}]
    changes += [{"at": f"{CHANGE_S}s", "delete": {"pod": f"old-{n}"}} for n in range(pods)]
    return {"manifests": [one(f"old-{n}") for n in range(pods)], "events": changes}


def _spent(scenario: Scenario, pods: int) -> tuple[float, float]:
    """CPU seconds of the API server, and of everything, from the change on."""
    running = [0]

    def sink(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        running[0] += kind == PodRunning.KIND

    loop = VirtualLoop()  # type: ignore[abstract]  # what it refuses is added by name
    meter = loop.ready = _Meter(loop.ready)
    runtime = SimRuntime(1, sink, scenario.timing, loop=loop)

    async def play() -> None:
        await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
        await runtime.begin()
        await runtime.run_until((CHANGE_S - 1) * SECOND_NS)
        meter.spent_ns.clear()
        await runtime.run_until(END_S * SECOND_NS)
        await runtime.shutdown()

    loop.run(play())
    if running[0] < 2 * pods:
        raise SystemExit(f"only {running[0]} of {2 * pods} pods came to run")
    server = sum(spent for name, spent in meter.spent_ns.items() if name.startswith("apiserver"))
    return server / 1e9, sum(meter.spent_ns.values()) / 1e9


def deployments(deployments: int) -> dict[str, Any]:
    """All roll at once, ten pods each; then the same number of pods without owners."""
    pods = deployments * PODS_OF_EACH
    nodes = max(1, pods // 100)
    rolled, rolled_all = _spent(_scenario(nodes, _rolling(deployments)), pods)
    bare, bare_all = _spent(_scenario(nodes, _bare(pods)), pods)
    return {
        "pods": pods,
        "apiserver_us_per_pod": round(rolled / pods * 1e6),
        "apiserver_us_per_bare_pod": round(bare / pods * 1e6),
        "ratio": round(rolled / bare, 2),
        "all_us_per_pod": round(rolled_all / pods * 1e6),
        "all_us_per_bare_pod": round(bare_all / pods * 1e6),
    }
