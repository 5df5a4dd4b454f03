"""Pods that one scheduler decides on in turn: samples of large clusters, narrowed searches, several profiles, batches.

Where a search begins depends on how far the ones before came, so a single wrong step shows in all that follow.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("sampling", "narrowed", "profiles", "batching", "features")
FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "SomethingNew",
    "UserNamespacesHostNetworkSupport",
)
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = ("web", "db", "cache", "job")


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    maker = {"batching": _Batches, "features": _Features}.get(family, _Maker)
    return maker(rng, family).make(f"{family}-s{seed}-{number:05}")


class _Maker:
    sizes: tuple[int, ...] = (40, 99, 100, 101, 120, 150, 200, 260, 330)
    """Numbers of nodes. Some clusters are too small for samples: all nodes are looked at."""

    def __init__(self, rng: random.Random, family: str) -> None:
        self.rng = rng
        self.family = family
        self.nodes: list[str] = []

    def make(self, name: str) -> Json:
        rng = self.rng
        size = rng.choice(self.sizes)
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


class _Features(_Maker):
    """Nodes that declare features, and pods that need some."""

    sizes = (4, 12)

    def node(self, number: int, zones: list[str]) -> Json:
        made = super().node(number, zones)
        if self.rng.random() < 0.8:
            made["status"]["declaredFeatures"] = [name for name in FEATURES if self.rng.random() < 0.5]
        return made

    def pending(self, number: int, template: Json, scheduler: str) -> Json:
        made = super().pending(number, template, scheduler)
        rng, spec = self.rng, made["spec"]
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
        if rng.random() < 0.4:
            spec["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
        elif rng.random() < 0.3:
            init = {"name": "init", "image": "app:1", "restartPolicy": "Never", "restartPolicyRules": [rule]}
            spec["initContainers"] = [init]
        if rng.random() < 0.2:
            spec |= {"hostNetwork": True, "hostUsers": False}
        return made


_SUFFIX = "DuringSchedulingIgnoredDuringExecution"


class _Batches(_Maker):
    """Runs of like pods, most of which fill a node, in profiles without default constraints (OpportunisticBatching)."""

    def make(self, name: str) -> Json:
        rng = self.rng
        zones = [f"zone-{letter}" for letter in "abc"[: rng.randrange(1, 4)]]
        nodes = [self.node(number, zones) for number in range(rng.choice((3, 8, 20, 20, 40, 120, 200)))]
        self.nodes = [node["metadata"]["name"] for node in nodes]
        profiles = self.profiles()
        names = [profile["schedulerName"] for profile in profiles]
        templates = [self.template() for _ in range(rng.randrange(1, 4))]
        template, scheduler, pending = templates[0], names[0], []
        for number in range(rng.randrange(12, 40)):
            if rng.random() < 0.2:
                template = rng.choice(templates)
            if rng.random() < 0.08:
                scheduler = rng.choice(names)
            pending.append(self.like(number, template, scheduler))
        return {
            "id": name,
            "family": self.family,
            "nodes": nodes,
            "pods": [self.running(number) for number in range(rng.randrange(1 + len(nodes) // 3))],
            "configuration": {"parallelism": 1, **self.percentage("percentageOfNodesToScore"), "profiles": profiles},
            "popped": True,
            "pending": sorted(pending, key=lambda pod: -int(pod["spec"]["priority"])),
        }

    def profiles(self) -> list[Json]:
        return [self.profile(name) for name in ("default-scheduler", "second")[: self.rng.choice((1, 1, 1, 2))]]

    def profile(self, name: str) -> Json:
        rng = self.rng
        args: Json = {"defaultingType": "List", "defaultConstraints": []}
        profile: Json = {"schedulerName": name, "pluginConfig": [{"name": "PodTopologySpread", "args": args}]}
        chance = rng.random()
        if chance < 0.1:
            args["defaultingType"] = "System"
        elif chance < 0.2:
            soft = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
            args["defaultConstraints"] = [soft]
        elif chance < 0.3:
            ignoring = {"ignorePreferredTermsOfExistingPods": True}
            profile["pluginConfig"].append({"name": "InterPodAffinity", "args": ignoring})
        elif chance < 0.4:
            volumes = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
            profile["plugins"] = {"multiPoint": {"disabled": [{"name": one} for one in volumes]}}
        elif chance < 0.5:
            unused = rng.choice(("PodTopologySpread", "InterPodAffinity", "ImageLocality", "NodeName"))
            profile["plugins"] = {"multiPoint": {"disabled": [{"name": unused}]}}
        if rng.random() < 0.2:
            strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
            profile["pluginConfig"].append({"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}})
        return profile

    def template(self) -> Json:
        made = super().template()
        made["cpu"] = self.rng.choice(("1100m", "1900m", "2", "2100m", "3", "100m"))
        made["port"] = self.rng.choice((0, 0, 0, 80, 81))
        if self.rng.random() < 0.15:
            made["spec"]["affinity"] = {"nodeAffinity": {"required" + _SUFFIX: self.by_name()}}
        elif self.rng.random() < 0.7:
            made["spec"] = {}
        return made

    def like(self, number: int, template: Json, scheduler: str) -> Json:
        """A pod of the template, now and then with a difference that counts or does not count."""
        rng = self.rng
        made = self.pod(f"pod-{number:03}", template["cpu"], template["app"])
        spec = made["spec"]
        spec |= {**template["spec"], "schedulerName": scheduler, "priority": rng.choice((0, 0, 0, 0, 10))}
        container = spec["containers"][0]
        if template["port"]:
            container["ports"] = [{"containerPort": 80, "hostPort": template["port"]}]
        chance = rng.random()
        if chance < 0.03:
            made["metadata"]["labels"]["version"] = str(number)
        elif chance < 0.06:
            made["metadata"]["namespace"] = "other"
        elif chance < 0.09:
            spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        elif chance < 0.12:
            spec["volumes"] = [{"name": "settings", "configMap": {"name": f"settings-{number}"}}]
        elif chance < 0.15:
            container["image"] = rng.choice(("app:2", "app"))
        elif chance < 0.18:
            spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
        elif chance < 0.21:
            container["ports"] = [{"containerPort": 80, "hostPort": 82, "protocol": rng.choice(("TCP", "UDP"))}]
        elif chance < 0.24:
            made["status"]["nominatedNodeName"] = rng.choice((*self.nodes, "node-gone"))
        elif chance < 0.27:
            container["resources"]["limits"] = {"cpu": "8"}
        elif chance < 0.3:
            spec["initContainers"] = [{"name": "before", "image": "app:1"}]
        return made
