"""Timelines of the families that were recorded first: ``backoff``, ``priority``, ``nominated`` and ``mixed``.

``backoff``: pods that no node takes, and the events that wake them or do not; refused bindings, slow attempts, clusters
without nodes, long waits. ``priority``: many pods compete for room that becomes free bit by bit. ``nominated``:
preemption with slow victims, while pods and nodes come and go. ``mixed``: all of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
START = "2000-01-01T00:00:05Z"
BEFORE = "1999-12-31T23:{:02}:{:02}Z"
APPS = "abc"
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}
GATES = ("example.com/one", "example.com/two")
LONG_S = 400.5
"""Long enough for pods that nothing woke within five minutes."""


class Shape(NamedTuple):
    """What sets a family apart."""

    nodes: tuple[int, int]
    full: tuple[float, float]
    """How much of each node is taken at the beginning."""
    pending: tuple[int, int]
    arriving: tuple[int, int]
    priorities: tuple[int, ...]
    running: tuple[int, ...]
    """The priorities of pods that run from the beginning."""
    constraints: float
    """How many pods want more than room."""
    events: tuple[int, int]
    kinds: tuple[str, ...]
    gaps_s: tuple[float, float]
    slow: float
    """How likely attempts take time."""


OF_NODES = ("resize", "taint", "cordon", "relabel", "addNode", "deleteNode")
OF_PODS = ("deletePod", "deletePod", "finishPod", "labels", "requests", "tolerate", "removeGates")
SHAPES: Mapping[str, Shape] = {
    "backoff": Shape(
        nodes=(0, 3),
        full=(0.5, 1),
        pending=(0, 5),
        arriving=(0, 4),
        priorities=(0, 10, 20, 30, 40, 50),
        running=(1000,),
        constraints=0.6,
        events=(2, 14),
        kinds=(*OF_NODES, *OF_PODS),
        gaps_s=(0.4, 6),
        slow=0.2,
    ),
    "priority": Shape(
        nodes=(1, 4),
        full=(0.8, 1),
        pending=(2, 9),
        arriving=(1, 5),
        priorities=(0, 10, 20, 50, 100, 1000),
        running=(10_000, 0),
        constraints=0,
        events=(2, 8),
        kinds=("finishPod", "deletePod", "resize"),
        gaps_s=(0.4, 9),
        slow=0.12,
    ),
    "nominated": Shape(
        nodes=(1, 4),
        full=(0.6, 1),
        pending=(0, 3),
        arriving=(1, 5),
        priorities=(5, 50, 100, 100, 500, 1000, 5000),
        running=(0, 10, 20),
        constraints=0.05,
        events=(0, 6),
        kinds=(*OF_NODES[:3], "deletePod", "deletePod", "deleteNode"),
        gaps_s=(0.5, 9),
        slow=0.1,
    ),
    "mixed": Shape(
        nodes=(2, 6),
        full=(0.3, 1),
        pending=(0, 6),
        arriving=(1, 6),
        priorities=(-10, 0, 5, 10, 20, 50, 100, 1000, 5000),
        running=(0, 10, 20, 100, 5000),
        constraints=0.25,
        events=(2, 10),
        kinds=(*OF_NODES, *OF_PODS),
        gaps_s=(0.4, 9),
        slow=0.08,
    ),
}
FAMILIES = tuple(SHAPES)


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    made = _Maker(rng, family, SHAPES[family]).make()
    return {**made, "id": f"{family}-s{seed}-{number:05}", "family": family, "start": START}


class _Maker:
    def __init__(self, rng: random.Random, family: str, shape: Shape) -> None:
        self.rng = rng
        self.family = family
        self.shape = shape
        self.nodes: dict[str, Json] = {}
        self.names: list[str] = []
        self.gated: list[str] = []
        self.equal = rng.random() < 0.15

    def make(self) -> Json:
        rng, shape = self.rng, self.shape
        nodes = [self.node() for _ in range(rng.randint(*shape.nodes))]
        running = [pod for node in nodes for pod in self.filling(node)]
        pods = [*running, *(self.pod() for _ in range(rng.randint(*shape.pending)))]
        for place, pod in enumerate(running):
            at = BEFORE.format(place // 60, place % 60)
            pod["status"] = {"phase": "Running", "startTime": at}
        rng.shuffle(running)
        kinds = [rng.choice(shape.kinds) for _ in range(rng.randint(*shape.events))]
        kinds += ["createPod"] * rng.randint(*shape.arriving)
        rng.shuffle(kinds)
        events = []
        at_s = rng.choice((0.0, 0.0, 20.0))
        for kind in kinds:
            at_s = round(at_s + rng.uniform(*shape.gaps_s), 1)
            # The timers of the queue go off at whole seconds.
            at_s = round(at_s + {0: 0.3, 1: 0.2, 9: 0.4}.get(round(at_s * 10) % 10, 0), 1)
            events.append({"at_s": at_s, **self.event(kind)})
        made: Json = {"nodes": nodes, "pods": pods, "events": events, "horizon_s": round(at_s // 1 + 70.5, 1)}
        if rng.random() < shape.slow:
            made["attempt_s"] = round(rng.uniform(0.1, 2), 3)
        if rng.random() < 0.2 and any("nodeName" not in pod["spec"] for pod in pods):
            waiting = [pod["metadata"]["name"] for pod in pods if "nodeName" not in pod["spec"]]
            made["bindErrors"] = {name: rng.randint(1, 5) for name in rng.sample(waiting, min(len(waiting), 2))}
        if self.family == "backoff":
            if rng.random() < 0.15:
                made["featureGates"] = {"SchedulerPopFromBackoffQ": False}
            if rng.random() < 0.08:
                made["horizon_s"] = LONG_S
        return made

    def node(self) -> Json:
        rng = self.rng
        name = f"node-{len(self.nodes) + 1}"
        labels = {HOSTNAME: name}
        spec: Json = {}
        if self.shape.constraints > 0.1:
            if rng.random() < 0.7:
                labels[ZONE] = rng.choice(("z1", "z2", "z3"))
            if rng.random() < 0.12:
                spec["taints"] = [TAINT]
            if rng.random() < 0.06:
                spec["unschedulable"] = True
        if rng.random() < 0.3:
            labels["pool"] = rng.choice("ab")
        # Of different sizes, so that scores differ; but for some clusters.
        cpu = 4000 if self.equal else rng.randrange(3000, 6800, 100)
        memory = f"{8 if self.equal else 8 + 3 * len(self.nodes)}Gi"
        made = {
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": {"cpu": f"{cpu}m", "memory": memory, "pods": "110"}},
        }
        self.nodes[name] = made
        return made

    def filling(self, node: Json) -> list[Json]:
        rng = self.rng
        free = _milli(node["status"]["allocatable"]["cpu"])
        target = free * rng.uniform(*self.shape.full)
        pods = []
        used = 0
        while used < target:
            size = rng.randrange(300, 2000, 100)
            if used + size > free:
                break
            used += size
            pods.append(self.pod(node["metadata"]["name"], size))
        return pods

    def pod(self, on: str = "", size: int = 0) -> Json:
        rng, shape = self.rng, self.shape
        name = f"{'r' if on else 'p'}{len(self.names) + 1:02}"
        self.names.append(name)
        requests = {"cpu": f"{size or rng.randrange(300, 3600, 100)}m"}
        if rng.random() < 0.3:
            requests["memory"] = rng.choice(("512Mi", "1Gi", "2Gi"))
        container: Json = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": requests}}
        spec: Json = {
            "containers": [container],
            "priority": rng.choice(shape.running if on else shape.priorities),
            "preemptionPolicy": "Never" if rng.random() < 0.08 and not on else "PreemptLowerPriority",
            "terminationGracePeriodSeconds": rng.choice((0, 2, 3, 5, 10, 30)),
        }
        metadata: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": {}}
        metadata["labels"] = {"app": rng.choice(APPS)}
        if rng.random() < 0.25:
            metadata["annotations"]["kemu.dev/shutdown-seconds"] = str(rng.randint(1, 10))
        if rng.random() < 0.15 and self.family != "backoff":
            metadata["annotations"]["kemu.dev/run-seconds"] = f"{rng.randint(2, 60)}.{rng.choice((25, 45, 55, 65))}"
        if rng.random() < shape.constraints:
            self.constrain(spec, container)
        if on:
            spec["nodeName"] = on
            spec.pop("nodeSelector", None)
        elif shape.constraints > 0.1 and rng.random() < 0.08:
            spec["schedulingGates"] = [{"name": gate} for gate in GATES[: rng.randint(1, 2)]]
            self.gated.append(name)
        return {"metadata": metadata, "spec": spec, "status": {}}

    def constrain(self, spec: Json, container: Json) -> None:
        rng = self.rng
        selector = {"matchLabels": {"app": rng.choice(APPS)}}
        terms = [{"labelSelector": selector, "topologyKey": rng.choice((ZONE, HOSTNAME))}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        match rng.randrange(8):
            case 0:
                spec["affinity"] = {"podAffinity": required}
            case 1 | 2:
                spec["affinity"] = {"podAntiAffinity": required}
            case 3:
                spec["nodeSelector"] = {"pool": rng.choice("ab")}
            case 4:
                container["ports"] = [{"containerPort": 80, "hostPort": rng.choice((8000, 8001)), "protocol": "TCP"}]
            case 5:
                spec["tolerations"] = [TOLERATION]
            case 6 if self.nodes:
                spec["nodeSelector"] = {HOSTNAME: rng.choice(sorted(self.nodes))}
            case _:
                spread = {"maxSkew": 1, "topologyKey": rng.choice((ZONE, HOSTNAME)), "labelSelector": selector}
                spec["topologySpreadConstraints"] = [{**spread, "whenUnsatisfiable": "DoNotSchedule"}]

    def event(self, kind: str) -> Json:
        rng = self.rng
        if kind == "removeGates" and self.gated:
            return {"do": "updatePod", "name": rng.choice(self.gated), "removeGates": [rng.choice(GATES)]}
        if kind == "createPod" or kind == "removeGates" or (kind not in OF_NODES and not self.names):
            return {"do": "createPod", "pod": self.pod()}
        if kind == "addNode" or (kind in OF_NODES and not self.nodes):
            return {"do": "addNode", "node": self.node()}
        if kind in OF_NODES:
            name = rng.choice(sorted(self.nodes))
            if kind == "deleteNode":
                del self.nodes[name]
                return {"do": "deleteNode", "name": name}
            return {"do": "updateNode", "node": self.changed(kind, name)}
        name = rng.choice(self.names)
        if kind == "deletePod":
            event: Json = {"do": kind, "name": name}
            return {**event, "graceSeconds": rng.choice((0, 2))} if rng.random() < 0.2 else event
        if kind == "finishPod":
            return {"do": kind, "name": name}
        change: Json = {
            "labels": {"labels": {"app": rng.choice(APPS)}},
            "requests": {"requests": {"cpu": f"{rng.randrange(200, 1500, 100)}m"}},
            "tolerate": {"addTolerations": [TOLERATION]},
        }[kind]
        return {"do": "updatePod", "name": name, **change}

    def changed(self, kind: str, name: str) -> Json:
        """A node after a change, or two at once."""
        rng, old = self.rng, self.nodes[name]
        labels, spec = dict(old["metadata"]["labels"]), dict(old["spec"])
        amounts = dict(old["status"]["allocatable"])
        for change in {kind: None, rng.choice(OF_NODES[:4] if rng.random() < 0.2 else (kind,)): None}:
            if change == "resize":
                amounts["cpu"] = f"{max(500, _milli(amounts['cpu']) + rng.randrange(-2000, 4000, 100))}m"
            elif change == "relabel":
                key, value = rng.choice(((ZONE, "z1"), (ZONE, "z2"), ("pool", "a"), ("pool", "b"), ("unrelated", "1")))
                if labels.get(key) == value:
                    del labels[key]
                else:
                    labels[key] = value
            elif change == "taint":
                spec["taints"] = [] if spec.get("taints") else [TAINT]
            else:
                spec["unschedulable"] = not spec.get("unschedulable", False)
        new = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}
        self.nodes[name] = new
        return new


def _milli(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else 1000 * int(amount)
