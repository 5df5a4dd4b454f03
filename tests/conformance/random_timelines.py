"""Random timelines of the shape of the recorded ones: a small cluster, and what happens to it."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = ("web", "db", "cache")


def case(seed: int, *, simple: bool = False, horizon_s: float = 40) -> Json:
    """``simple``: one node where only CPU counts, pods that differ in priority only, time for all backoff to end."""
    rng = random.Random(seed)
    return _Maker(rng, simple).make(f"random-{seed}", horizon_s)


class _Maker:
    def __init__(self, rng: random.Random, simple: bool) -> None:
        self.rng = rng
        self.simple = simple
        self.nodes: dict[str, Json] = {}
        self.names: list[str] = []
        self.gated: dict[str, list[str]] = {}

    def make(self, name: str, horizon_s: float) -> Json:
        rng = self.rng
        nodes = [self.node() for _ in range(1 if self.simple else rng.randrange(0 if rng.random() < 0.1 else 1, 5))]
        running = [self.pod(on=rng.choice(nodes)["metadata"]["name"]) for _ in range(rng.randrange(6)) if nodes]
        pods = [*running, *(self.pod() for _ in range(rng.randrange(1, 7)))]
        events = []
        at_s = 0.0
        steps = (12.3, 15.4) if self.simple else (0.3, 0.4, 1.1, 2.3)
        while (at_s := round(at_s + rng.choice(steps), 1)) < horizon_s - 2:
            if at_s % 1 in (0.0, 0.1, 0.9):
                at_s = round(at_s + 0.3, 1)
            events.append({"at_s": at_s, **self.event()})
        made: Json = {
            "id": name,
            "start": "2026-01-01T00:00:00Z",
            "horizon_s": horizon_s,
            "nodes": nodes,
            "pods": pods,
            "events": events,
        }
        if self.simple:
            return made
        if rng.random() < 0.3:
            made["attempt_s"] = round(rng.uniform(0.1, 2), 3)
        if rng.random() < 0.2:
            made["bindErrors"] = {rng.choice(self.names): rng.randrange(1, 4)}
        if rng.random() < 0.15:
            made["featureGates"] = {"SchedulerPopFromBackoffQ": False}
        return made

    def node(self, name: str = "") -> Json:
        rng = self.rng
        name = name or f"node-{len(self.nodes)}"
        labels = {HOSTNAME: name}
        spec: Json = {}
        if not self.simple:
            if rng.random() < 0.8:
                labels[ZONE] = rng.choice("ab")
            if rng.random() < 0.3:
                labels["disk"] = "ssd"
            if rng.random() < 0.2:
                spec["taints"] = [{"key": "only", "value": rng.choice("xy"), "effect": "NoSchedule"}]
            if rng.random() < 0.1:
                spec["unschedulable"] = True
        amounts = {"cpu": str(rng.randrange(2, 9)), "memory": "8Gi", "pods": rng.choice(("3", "110"))}
        made = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}
        self.nodes[name] = made
        return made

    def pod(self, on: str = "") -> Json:
        rng = self.rng
        name = f"p{len(self.names):02}"
        self.names.append(name)
        requests = {"cpu": "1" if self.simple else f"{rng.randrange(1, 9) * 500}m"}
        container: Json = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
        priority = rng.randrange(10**6) if self.simple else rng.choice((0, 0, 10, 100))
        spec: Json = {"containers": [container], "priority": priority, "preemptionPolicy": "Never"}
        metadata: Json = {"name": name, "namespace": "default", "labels": {}, "annotations": {}}
        if self.simple:
            spec |= {"terminationGracePeriodSeconds": 0, **({"nodeName": on} if on else {})}
            return {"metadata": metadata, "spec": spec, "status": {}}
        metadata["labels"]["app"] = rng.choice(APPS)
        self.constrain(spec, container)
        spec["terminationGracePeriodSeconds"] = rng.choice((0, 3, 30))
        if rng.random() < 0.3:
            metadata["annotations"]["kemu.dev/run-seconds"] = str(round(rng.uniform(1, 20), 1))
        if rng.random() < 0.3:
            metadata["annotations"]["kemu.dev/shutdown-seconds"] = str(round(rng.uniform(0.3, 5), 1))
        if on:
            spec["nodeName"] = on
        elif rng.random() < 0.15:
            gates = ["g1", "g2"][: rng.randrange(1, 3)]
            spec["schedulingGates"] = [{"name": gate} for gate in gates]
            self.gated[name] = gates
        return {"metadata": metadata, "spec": spec, "status": {}}

    def constrain(self, spec: Json, container: Json) -> None:
        rng = self.rng
        selector = {"matchLabels": {"app": rng.choice(APPS)}}
        term = {"labelSelector": selector, "topologyKey": rng.choice((ZONE, HOSTNAME))}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        chance = rng.random()
        if chance < 0.1:
            spec["affinity"] = {"podAffinity": required}
        elif chance < 0.25:
            spec["affinity"] = {"podAntiAffinity": required}
        elif chance < 0.35:
            spec["nodeSelector"] = {"disk": "ssd"}
        elif chance < 0.45:
            container["ports"] = [{"containerPort": 80, "hostPort": rng.choice((80, 81)), "protocol": "TCP"}]
        elif chance < 0.6:
            constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
        if rng.random() < 0.5:
            spec["preemptionPolicy"] = "PreemptLowerPriority"

    def event(self) -> Json:
        rng = self.rng
        name = rng.choice(self.names)
        kinds = ["createPod", "createPod", "deletePod", "finishPod", "resize", "deletePod"]
        if not self.simple:
            kinds += [
                "addNode",
                "relabel",
                "taint",
                "cordon",
                "labels",
                "requests",
                "removeGates",
                "tolerate",
                "deleteNode",
            ]
        kind = rng.choice(kinds)
        if kind == "addNode" or (not self.nodes and kind in ("resize", "relabel", "taint", "cordon", "deleteNode")):
            return {"do": "addNode", "node": self.node()} if len(self.nodes) < 7 else self.delete(name)
        if kind == "createPod":
            return {"do": "createPod", "pod": self.pod()}
        if kind == "deletePod":
            return self.delete(name)
        if kind == "finishPod":
            return {"do": "finishPod", "name": name}
        if kind in ("labels", "requests", "removeGates", "tolerate"):
            return {"do": "updatePod", "name": name, **self.update(kind, name)}
        node = rng.choice(sorted(self.nodes))
        if kind == "deleteNode":
            if rng.random() < 0.7:
                return self.delete(name)
            del self.nodes[node]
            return {"do": "deleteNode", "name": node}
        return {"do": "updateNode", "node": self.changed(kind, node)}

    def delete(self, name: str) -> Json:
        event: Json = {"do": "deletePod", "name": name}
        return {**event, "graceSeconds": 0} if self.rng.random() < 0.3 else event

    def update(self, kind: str, name: str) -> Json:
        rng = self.rng
        if kind == "labels":
            return {"labels": {"app": rng.choice(APPS)}}
        if kind == "requests":
            return {"requests": {"cpu": f"{rng.randrange(1, 4) * 250}m"}}
        if kind == "tolerate":
            return {"addTolerations": [{"key": "only", "operator": "Exists"}]}
        return {"removeGates": self.gated.get(name, ["g1"])[: rng.randrange(1, 3)]}

    def changed(self, kind: str, name: str) -> Json:
        rng, old = self.rng, self.nodes[name]
        labels, spec = dict(old["metadata"]["labels"]), dict(old["spec"])
        amounts = dict(old["status"]["allocatable"])
        if kind == "resize":
            amounts["cpu"] = str(rng.randrange(1, 10))
        elif kind == "relabel":
            key = rng.choice((ZONE, "disk"))
            if key in labels and rng.random() < 0.5:
                del labels[key]
            else:
                labels[key] = "ssd" if key == "disk" else rng.choice("ab")
        elif kind == "taint":
            spec["taints"] = [] if spec.get("taints") else [{"key": "only", "value": "x", "effect": "NoSchedule"}]
        else:
            spec["unschedulable"] = not spec.get("unschedulable", False)
        new = {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}
        self.nodes[name] = new
        return new
