"""Loads on a real control plane, and the timing preset that is fitted to what they took.

found = [play(load, folder, seed=1) for load in LOADS]     each a run of ``--runtime real``
fit(found).text()                                          a file that ``timing: {preset: FILE}`` names
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from kemu.emulated.objects.facts import KUBERNETES
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.lab.real import measurements
from kemu.lab.real.measurements import Measured
from kemu.lab.scenario.format.keys import timing_keys
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.control_planes import Cluster
from kemu.runtime.env import SECOND_NS

QUANTILES = (0.5, 0.9, 0.99)
LEAST_SAMPLES = 50
"""Fewer say nothing of a 99th percentile."""
_MICROSECOND_NS = 1_000


class Load(NamedTuple):
    """What a run asks of the control plane."""

    nodes: int
    pods: int
    per_second: float
    are_replaced: bool = False
    """Pods are there from the start, each in a ReplicaSet, and are deleted at that rate."""

    @property
    def name(self) -> str:
        how = "-replaced" if self.are_replaced else ""
        return f"{self.nodes}-nodes-{self.per_second:g}{how}-per-second"

    def __str__(self) -> str:
        how = "replaced " if self.are_replaced else ""
        return f"{self.pods} pods {how}at {self.per_second:g}/s on {self.nodes} nodes"


LOADS = (Load(100, 300, 15), Load(100, 600, 40), Load(500, 300, 15), Load(10, 60, 4, are_replaced=True))
"""A light load, from which latencies are taken; a heavier one on the same nodes, for what a pod costs; the light one on
more nodes, for what a node costs; and one for a controller."""


def loads(*, is_guest: bool = False) -> Sequence[Load]:
    """Those that say something: nobody tells a guest what controllers of the cluster ask for."""
    return [load for load in LOADS if not (is_guest and load.are_replaced)]


@dataclass(frozen=True)
class Found:
    """One run, measured."""

    load: Load
    measured: Measured


@dataclass(frozen=True)
class Preset:
    """Times as a scenario writes them, and where each comes from."""

    timing: Mapping[str, Any]
    sources: Mapping[str, str]
    about: Mapping[str, Any]

    def fitted(self, key: str) -> Json:
        """A distribution of the preset, as a scenario writes it; of a cycle, without its nodes."""
        time = self.timing[key]
        return time.get("base", time)  # type: ignore[no-any-return]

    def text(self) -> str:
        data = {
            "apiVersion": timing_keys.API_VERSION,
            "kind": timing_keys.KIND,
            "measured": dict(self.about),
            "timing": dict(self.timing),
            "sources": dict(self.sources),
        }
        return yaml.safe_dump(data, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True)


def scenario_of(load: Load, seed: int) -> dict[str, Any]:
    """A scenario in which one scheduler binds pods that are all alike and arrive by themselves."""
    duration = load.pods / load.per_second + 15
    return {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": load.name},
        "spec": {
            "seed": seed,
            "duration": f"{duration:g}s",
            "nodes": [
                {
                    "namePrefix": "node-",
                    "count": load.nodes,
                    "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
                }
            ],
            **(_replaced(load) if load.are_replaced else _arriving(load)),
        },
    }


_START_S = 5
_SPEC = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}


def _arriving(load: Load) -> dict[str, Any]:
    every = {"exponential": {"mean": f"{1000 / load.per_second:g}ms"}}
    arrivals = {"every": every, "count": load.pods}
    return {"workloads": [{"name": "pods", "start": f"{_START_S}s", "arrivals": arrivals, "pods": {"spec": _SPEC}}]}


def _replaced(load: Load) -> dict[str, Any]:
    """ReplicaSets adopt pods that have names, so that events can name them."""
    pods, sets, events = [], [], []
    for number in range(load.pods):
        name, labels = f"pod-{number}", {"set": f"set-{number}"}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": _SPEC})
        template = {"metadata": {"labels": labels}, "spec": _SPEC}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        sets.append({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": labels["set"]}, "spec": spec})
        events.append({"at": f"{_START_S + number / load.per_second:g}s", "delete": {"pod": name}})
    # Waiting for its rate of requests is no lag.
    controllers = {"replicaset": {"clientConnection": {"qps": 5000, "burst": 5000}}}
    return {"controllers": controllers, "manifests": [*pods, *sets], "events": events}


def play(load: Load, folder: Path, seed: int, cluster: Cluster | None = None) -> Found:
    """Run it on real components, below ``folder``; ``cluster``: one that stands, None: a control plane is started.
    Raises KemuError."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{load.name}.yaml"
    file.write_text(yaml.safe_dump(scenario_of(load, seed), sort_keys=False))
    out = folder / load.name
    options = runner.Options(out=out, runtime="real", force=True)
    if cluster is not None:
        options = dataclasses.replace(options, kubeconfig=cluster.kubeconfig, context=cluster.context)
    runner.run(loader.load(file), options)
    return measure(load, out)


def measure(load: Load, folder: Path) -> Found:
    """What a run that was played before has taken."""
    return Found(load, measurements.of_run(folder))


def fit(found: Sequence[Found]) -> Preset:
    """Raises KemuError where there are too few samples."""
    light, heavy, wide, *replaced = found
    samples = light.measured
    requests = samples.bindings
    is_told_apart = any(samples.calls)
    calls = samples.calls if is_told_apart else requests
    for what, list_ in (("bindings", requests), ("calls", calls), ("watch events", samples.watches)):
        if len(list_) < LEAST_SAMPLES:
            raise KemuError(f"only {len(list_)} {what} were measured: {LEAST_SAMPLES} at least are needed")
    lags = [lag for one in replaced for lag in one.measured.lags]
    if replaced and len(lags) < LEAST_SAMPLES:
        raise KemuError(
            f"only {len(lags)} reactions of a controller were measured: {LEAST_SAMPLES} at least are needed"
        )
    base, per_node = _cycle(samples.cycles, wide.measured.cycles)
    timing: dict[str, Any] = {
        "apiLatency": _lognormal(samples.calls) if is_told_apart else 0,
        "watchLatency": _lognormal(samples.watches),
        "storeLatency": 0,
        "fsync": _lognormal(requests),
        "schedulingCycle": {"base": base, "perNode": _written(per_node)},
        **({timing_keys.CONTROLLER_LAG: _lognormal(lags)} if lags else {}),
        timing_keys.CLIENT_LIMITS: timing_keys.KUBERNETES,
    }
    count = len(requests)
    loads = ", ".join(str(one.load) for one in found)
    sources = {
        "apiLatency": f"from a scheduler's decision until an API server had its binding, {len(samples.calls)} times",
        "watchLatency": "from the answer to the creation of a pod until an idle scheduler began its attempt, "
        f"{len(samples.watches)} times",
        "storeLatency": "part of fsync, from which it cannot be told from outside",
        "fsync": f"from when an API server had a binding until it had answered, {count} times: its own work, etcd's "
        "and the disk's",
        "schedulingCycle": f"from the start of an attempt to its decision: {len(samples.cycles)} attempts on "
        f"{light.load.nodes} nodes, {len(wide.measured.cycles)} on {wide.load.nodes}",
        **(
            {
                timing_keys.CONTROLLER_LAG: "from the answer to the deletion of a pod until an API server had the "
                f"request of its ReplicaSet's controller for another, {len(lags)} times, without the median of a watch "
                "and of a call"
            }
            if lags
            else {}
        ),
        timing_keys.CLIENT_LIMITS: "the defaults of kube-scheduler and kube-controller-manager",
    }
    if not is_told_apart:
        sources["apiLatency"] = "part of fsync: the audit log of the cluster was not there to tell them apart"
        sources["fsync"] = f"from a scheduler's decision until it had the answer to its binding, {count} times"
        sources["watchLatency"] += "; the answer as kemu's process had it"
    about = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "kubernetes": KUBERNETES,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "loads": loads,
        **_cost(light, heavy),
    }
    return Preset(timing, sources, about)


def _cost(light: Found, heavy: Found) -> dict[str, float]:
    """Seconds of a core that API server and store need for a pod, and how many cores they need without pods; nothing
    where they are processes of others."""
    if "store" not in light.measured.cpu:
        return {}

    def used(one: Found) -> float:
        cpu = one.measured.cpu
        return sum(cpu_ns for actor, cpu_ns in cpu.items() if actor.startswith(("apiserver/", "store"))) / SECOND_NS

    # used = idle · seconds + per_pod · pods, for both.
    (t1, w1, u1), (t2, w2, u2) = [
        (one.measured.stopped / SECOND_NS, one.measured.pods, used(one)) for one in (light, heavy)
    ]
    determinant = t1 * w2 - t2 * w1
    if not determinant:
        raise KemuError("two loads with the same pace say nothing of what a pod costs")
    per_pod, idle = (t1 * u2 - t2 * u1) / determinant, (u1 * w2 - u2 * w1) / determinant
    return {"coreSecondsPerPod": round(per_pod, 6), "coresWhenIdle": round(idle, 4)}


def _cycle(few: Sequence[tuple[int, int]], many: Sequence[tuple[int, int]]) -> tuple[dict[str, Any], float]:
    """``base`` and, in ns, ``perNode``: by the medians on few and on many nodes."""
    points = [
        (statistics.median([nodes for nodes, _ in one]), statistics.median([took for _, took in one]))
        for one in (few, many)
    ]
    (few_nodes, few_ns), (many_nodes, many_ns) = points
    per_node = max(0.0, (many_ns - few_ns) / (many_nodes - few_nodes)) if many_nodes > few_nodes else 0.0
    return _lognormal([took - round(per_node * nodes) for nodes, took in few]), per_node


def _lognormal(samples: Sequence[int]) -> dict[str, Any]:
    """Of the same median and 99th percentile; times below a microsecond count as one."""
    median, p99 = np.quantile([max(one, _MICROSECOND_NS) for one in samples], (0.5, 0.99))
    return {"lognormal": {"median": _written(median), "p99": _written(max(p99, median * 1.01))}}


def _written(time_ns: float) -> str:
    """Three digits, in a unit in which they are short."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= size:
            return f"{time_ns / size:.3g}{unit}"
    return f"{round(time_ns)}ns"


class Quantity(NamedTuple):
    """Something that is measured."""

    key: str
    """The time of the preset that is made of it."""
    name: str
    samples: Callable[[Measured], Sequence[int]]
    """In ns."""

    def __str__(self) -> str:
        return f"{self.name} ({self.key})"


QUANTITIES = (
    Quantity("fsync", "request", lambda one: one.bindings),
    Quantity("apiLatency", "call", lambda one: one.calls),
    Quantity("watchLatency", "watch", lambda one: one.watches),
    Quantity("schedulingCycle", "cycle", lambda one: [took for _, took in one.cycles]),
    Quantity(timing_keys.CONTROLLER_LAG, "reaction", lambda one: one.lags),
)


def rows(found: Sequence[Found]) -> list[tuple[str, ...]]:
    """What was measured: load, quantity, how many samples, and three quantiles in ms."""
    made = []
    for one in found:
        for quantity in QUANTITIES:
            if samples := quantity.samples(one.measured):
                figures = (f"{time_ns / 1e6:.2f}" for time_ns in np.quantile(samples, QUANTILES))
                made.append((one.load.name, str(quantity), str(len(samples)), *figures))
    return made
