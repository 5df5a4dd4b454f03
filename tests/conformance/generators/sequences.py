"""Pods that one scheduler decides on in turn: samples of large clusters, narrowed searches, several profiles.

Where a search begins depends on how far the ones before came, so a single wrong step shows in all that follow.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("sampling", "narrowed", "profiles")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = ("web", "db", "cache", "job")


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    return _Maker(rng, family).make(f"{family}-s{seed}-{number:05}")


class _Maker:
    def __init__(self, rng: random.Random, family: str) -> None:
        self.rng = rng
        self.family = family
        self.nodes: list[str] = []

    def make(self, name: str) -> Json:
        rng = self.rng
        # Some clusters are too small for samples: all nodes are looked at.
        size = rng.choice((40, 99, 100, 101, 120, 150, 200, 260, 330))
        zones = [f"zone-{letter}" for letter in "abc"[: rng.randrange(1, 4)]]
        nodes = [self.node(number, zones) for number in range(size)]
        self.nodes = [node["metadata"]["name"] for node in nodes]
        profiles = self.profiles()
        templates = [self.template() for _ in range(rng.randrange(2, 6))]
        names = [profile["schedulerName"] for profile in profiles]
        return {
            "id": name,
            "family": self.family,
            "nodes": nodes,
            "pods": [self.running(number) for number in range(rng.randrange(size // 2))],
            "configuration": {"parallelism": 1, **self.percentage("percentageOfNodesToScore"), "profiles": profiles},
            "pending": [
                self.pending(number, rng.choice(templates), rng.choice(names))
                for number in range(rng.randrange(12, 30))
            ],
        }

    def percentage(self, key: str) -> Json:
        value = self.rng.choice((None, 0, 1, 5, 20, 40, 70, 100))
        return {} if value is None else {key: value}

    def profiles(self) -> list[Json]:
        if self.family != "profiles":
            return [{"schedulerName": "default-scheduler"}]
        profiles: list[Json] = []
        for name in ("default-scheduler", "packing", "plain")[: self.rng.randrange(2, 4)]:
            profile: Json = {"schedulerName": name, **self.percentage("percentageOfNodesToScore")}
            if name == "packing":
                strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
                profile["pluginConfig"] = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
            if name == "plain":
                profile["plugins"] = {self.rng.choice(("score", "preScore")): {"disabled": [{"name": "ImageLocality"}]}}
                if self.rng.random() < 0.5:
                    # Nobody compares nodes: the first that passes is taken.
                    profile["plugins"] = {point: {"disabled": [{"name": "*"}]} for point in ("preScore", "score")}
            profiles.append(profile)
        return profiles

    def node(self, number: int, zones: list[str]) -> Json:
        rng = self.rng
        name = f"node-{number:03}"
        labels = {HOSTNAME: name, ZONE: rng.choice(zones)}
        if rng.random() < 0.6:
            labels["disk"] = "ssd"
        spec: Json = {}
        if rng.random() < 0.15:
            spec["taints"] = [{"key": "only", "value": "x", "effect": rng.choice(("NoSchedule", "PreferNoSchedule"))}]
        amounts = {"cpu": rng.choice(("2", "4", "4", "8")), "memory": rng.choice(("8Gi", "16Gi")), "pods": "110"}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}

    def running(self, number: int) -> Json:
        rng = self.rng
        made = self.pod(f"running-{number:03}", f"{rng.randrange(1, 9) * 400}m", rng.choice(APPS))
        made["spec"] |= {"nodeName": rng.choice(self.nodes), "priority": rng.choice((0, 100))}
        made["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        return made

    def pod(self, name: str, cpu: str, app: str) -> Json:
        container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": app}}
        return {"metadata": metadata, "spec": {"containers": [container], "priority": 0}, "status": {}}

    def template(self) -> Json:
        rng = self.rng
        made: Json = {"cpu": rng.choice(("100m", "500m", "1", "1900m", "3", "9")), "app": rng.choice(APPS), "spec": {}}
        spec = made["spec"]
        selector = {"matchLabels": {"app": made["app"]}}
        chance = rng.random()
        if chance < 0.25:
            spec["nodeSelector"] = {"disk": "ssd"}
        elif chance < 0.35:
            term = {"labelSelector": selector, "topologyKey": HOSTNAME}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif chance < 0.5:
            constraint = {"maxSkew": rng.randrange(1, 4), "topologyKey": ZONE, "labelSelector": selector}
            how = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
            spec["topologySpreadConstraints"] = [{**constraint, "whenUnsatisfiable": how}]
        if rng.random() < 0.3:
            spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
        return made

    def pending(self, number: int, template: Json, scheduler: str) -> Json:
        rng = self.rng
        made = self.pod(f"pod-{number:03}", template["cpu"], template["app"])
        made["spec"] |= {**template["spec"], "schedulerName": scheduler, "priority": rng.choice((0, 0, 10))}
        if self.family != "narrowed":
            return made
        chance = rng.random()
        if chance < 0.4:
            affinity = {**made["spec"].get("affinity", {}), "nodeAffinity": {"required" + _SUFFIX: self.by_name()}}
            made["spec"]["affinity"] = affinity
        if 0.3 < chance < 0.6:
            made["status"]["nominatedNodeName"] = rng.choice((*self.nodes, "node-gone"))
        return made

    def by_name(self) -> Json:
        """What the DaemonSet controller asks for: nodes by their name, mostly one."""
        rng = self.rng
        terms = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            field = {"key": "metadata.name", "operator": "In", "values": [rng.choice((*self.nodes, "node-gone"))]}
            terms.append({"matchFields": [field]})
        return {"nodeSelectorTerms": terms}


_SUFFIX = "DuringSchedulingIgnoredDuringExecution"
