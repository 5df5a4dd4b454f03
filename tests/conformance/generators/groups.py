"""Groups for the recorder: ``group-decisions`` ask for the first attempt of each group, ``gangs`` for what comes of
groups over half a minute."""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.generators.timelines import BEFORE, START

Json = dict[str, Any]

FAMILIES = ("group-decisions", "gangs")
HOSTNAME, RACK = "kubernetes.io/hostname", "example.com/rack"
GATES = ("GangScheduling", "WorkloadAwarePreemption", "TopologyAwareWorkloadScheduling")


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    made = _Maker(rng, family).make()
    running = [pod for pod in made["pods"] if "nodeName" in pod["spec"]]
    for place, pod in enumerate(running):
        pod["status"]["startTime"] = BEFORE.format(place // 60, place % 60)
    return {**made, "id": f"{family}-s{seed}-{number:05}", "family": family, "start": START}


class _Maker:
    def __init__(self, rng: random.Random, family: str) -> None:
        self.rng = rng
        self.calm = family == "gangs"
        self.topology = rng.random() < 0.3
        self.preempts = rng.random() < 0.35
        self.names: list[str] = []
        self.members: list[str] = []

    def make(self) -> Json:
        rng = self.rng
        gates = {"GenericWorkload": True, "GangScheduling": self.preempts or rng.random() < 0.93}
        gates |= {"WorkloadAwarePreemption": self.preempts, "TopologyAwareWorkloadScheduling": self.topology}
        if self.calm or self.topology or rng.random() < 0.5:
            gates["SchedulerPopFromBackoffQ"] = False
        if rng.random() < 0.3:
            gates["OpportunisticBatching"] = False
        nodes = [self.node(number) for number in range(rng.randrange(1, 6))]
        names = [node["metadata"]["name"] for node in nodes]
        groups = [self.group(number) for number in range(rng.choice((1, 1, 1, 2, 2, 3)) if self.calm else 1)]
        held = [group for group in groups if rng.random() < 0.3]
        pods = [
            self.pod(on=rng.choice(names), group=rng.choice(held) if held and rng.random() < 0.35 else None)
            for _ in range(rng.randrange(0, 7))
        ]
        late: list[Json] = []
        for group in groups:
            for pod in self.gang(group):
                (late if self.calm and rng.random() < 0.3 else pods).append(pod)
        if self.calm and rng.random() < 0.5:
            pods.append(self.pod())
        # Where pods are taken from backoff, a group that does not fit is tried again each millisecond.
        horizon_s = 35 if self.calm else 0.9 if gates.get("SchedulerPopFromBackoffQ") is False else 0.03
        made: Json = {"horizon_s": horizon_s, "featureGates": gates, "nodes": nodes, "pods": pods, "podGroups": groups}
        if rng.random() < 0.2:
            made["pdbs"] = [self.budget(app) for app in "ab"]
        made["events"] = self.events(nodes, late, groups) if self.calm else []
        return made

    def node(self, number: int) -> Json:
        rng = self.rng
        name = f"node-{number}"
        labels = {HOSTNAME: name, "pool": rng.choice("ab")}
        if rng.random() < 0.9:
            labels[RACK] = rng.choice(("r1", "r2"))
        amounts = {"cpu": str(rng.randrange(1, 6)), "memory": "8Gi", "pods": "110"}
        spec: Json = {}
        if rng.random() < 0.1:
            spec["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}

    def group(self, number: int) -> Json:
        rng = self.rng
        policy: Json = {"basic": {}} if rng.random() < 0.15 else {"gang": {"minCount": rng.randrange(1, 5)}}
        spec: Json = {"schedulingPolicy": policy}
        if self.topology and rng.random() < 0.75:
            spec["schedulingConstraints"] = {"topology": [{"key": rng.choice((RACK, RACK, HOSTNAME))}]}
        if self.preempts:
            spec["priority"] = rng.choice((0, 10, 100, 1000))
            if rng.random() < 0.5:
                spec["disruptionMode"] = rng.choice(("Pod", "PodGroup"))
        name = f"g{number}"
        return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-group-{name}"}, "spec": spec}

    def gang(self, group: Json) -> list[Json]:
        rng = self.rng
        least = group["spec"]["schedulingPolicy"].get("gang", {}).get("minCount", 2)
        count = max(1, least + rng.choice((-1, 0, 0, 0, 1, 2)))
        requests = rng.randrange(1, 5) * 500
        priority = group["spec"].get("priority", rng.choice((0, 10, 100)))
        mixed, ranked = rng.random() < 0.3, rng.random() < 0.2
        found = []
        for place in range(count):
            amount = rng.randrange(1, 5) * 500 if mixed else requests
            found.append(self.pod(group=group, cpu=amount, priority=priority + (place % 3 if ranked else 0)))
        return found

    def pod(self, on: str = "", group: Json | None = None, cpu: int = 0, priority: int | None = None) -> Json:
        rng = self.rng
        name = f"p{len(self.names):02}"
        self.names.append(name)
        container: Json = {"name": "main", "image": "app:1"}
        container["resources"] = {"requests": {"cpu": f"{cpu or rng.randrange(1, 5) * 500}m"}}
        if priority is None:
            priority = rng.choice((0, 5, 10)) if on else rng.choice((0, 10, 200))
        spec: Json = {
            "containers": [container],
            "priority": priority,
            "preemptionPolicy": "Never" if not on and rng.random() < 0.05 else "PreemptLowerPriority",
            "terminationGracePeriodSeconds": rng.choice((0, 3)),
        }
        metadata: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        metadata |= {"labels": {"app": rng.choice("ab")}, "annotations": {}}
        if self.calm and rng.random() < 0.4:
            metadata["annotations"]["kemu.dev/run-seconds"] = str(round(rng.uniform(3, 20), 1))
        if on:
            spec["nodeName"] = on
        elif rng.random() < 0.12:
            spec["nodeSelector"] = {"pool": "a"}
        if group is not None:
            spec["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}
            if not on:
                self.members.append(name)
        return {"metadata": metadata, "spec": spec, "status": {}}

    def budget(self, app: str) -> Json:
        allowed = self.rng.choice((0, 0, 1, 2))
        return {
            "metadata": {"name": f"budget-{app}", "namespace": "default", "uid": f"uid-budget-{app}"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": allowed + 1, "desiredHealthy": 1},
        }

    def events(self, nodes: list[Json], late: list[Json], groups: list[Json]) -> list[Json]:
        rng = self.rng
        made: list[Json] = []
        at_s = 0.0
        while at_s < 20:
            at_s = round(at_s + rng.choice((1.3, 2.6, 4.7, 7.4)), 1)
            if at_s % 1 in (0.0, 0.1, 0.9):
                at_s = round(at_s + 0.3, 1)
            if late and rng.random() < 0.7:
                made.append({"at_s": at_s, "do": "createPod", "pod": late.pop(0)})
                continue
            made.append({"at_s": at_s, **self.event(nodes, groups)})
        return made

    def event(self, nodes: list[Json], groups: list[Json]) -> Json:
        rng = self.rng
        kind = rng.choice(("createPod", "createMember", "deletePod", "finishPod", "resize", "addNode"))
        if kind == "createPod":
            return {"do": kind, "pod": self.pod()}
        if kind == "createMember":
            return {"do": "createPod", "pod": self.pod(group=rng.choice(groups))}
        if kind == "deletePod":
            return {"do": kind, "name": rng.choice(self.names), **({"graceSeconds": 0} if rng.random() < 0.5 else {})}
        if kind == "finishPod":
            return {"do": kind, "name": rng.choice(self.names)}
        if kind == "addNode":
            return {"do": kind, "node": self.node(10 + rng.randrange(90))}
        node = rng.choice(nodes)
        amounts = {**node["status"]["allocatable"], "cpu": str(rng.randrange(1, 8))}
        return {"do": "updateNode", "node": {**node, "status": {"allocatable": amounts}}}
