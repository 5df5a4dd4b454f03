"""Clusters of all shapes for a live comparison: nodes, what lies around them, and how they change.

Everything is drawn from one seed, as Kubernetes JSON. Pods are drawn in :mod:`kemu.lab.conformance.live.drawn_pods`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from kemu.lab.conformance.live import drawn_extenders

Json = dict[str, Any]

HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NAMESPACES = ("default", "dev", "prod")
APPS = ("web", "db", "cache", "job")
IMAGES = ("nginx:1.27", "redis:7", "registry.local:5000/app/api:2.1", "big/model:1", "busybox@sha256:" + 64 * "0")
GPU, FPGA = "example.com/gpu", "example.com/fpga"
DRIVER = "csi.example.com"
CLASSES = {"urgent": 1000, "high": 500, "middle": 100, "low": -10, "patient": 800}
"""PriorityClasses and their values; ``patient`` preempts no pod."""
TAINTS = ("dedicated", "maintenance", "spot")
EFFECTS = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")


def fixed() -> list[Json]:
    """What lies around all clusters of a play."""
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "Never" if name == "patient" else "PreemptLowerPriority",
        }
        for name, value in CLASSES.items()
    ]
    storage = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
        }
        for name, provisioner, mode in (
            ("wait", DRIVER, "WaitForFirstConsumer"),
            ("manual", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("now", DRIVER, "Immediate"),
        )
    ]
    return [*classes, *storage, *map(_runtime_class, OVERHEADS)]


OVERHEADS: dict[str, Json] = {
    "kata": {"overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}},
    "gvisor": {
        "overhead": {"podFixed": {"memory": "64Mi"}},
        "scheduling": {
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
}
"""RuntimeClasses: what their pods take beside their containers, and where they may go."""


def _runtime_class(name: str) -> Json:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name} | (
        OVERHEADS[name]
    )


class Maker:
    """Maker of one cluster."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.number = number
        self.zones = [f"zone-{letter}" for letter in "abc"[: rng.randrange(1, 4)]]
        self._nodes = 0
        self.is_full = rng.random() < 0.35
        """Most of its nodes have hardly any room left: for preemption."""
        self.is_uniform = rng.random() < 0.3
        """All nodes are of one shape: for ties."""
        self._shape: Json = {}

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def some(self, choices: Sequence[Any], most: int) -> list[Any]:
        return self.rng.sample(choices, min(len(choices), self.rng.randrange(most + 1)))

    # Nodes ----------------------------------------------------------------------------------------------------------

    def nodes(self) -> list[Json]:
        return [self.node() for _ in range(self.rng.choice((1, 3, 5, 8, 8, 12, 16)))]

    def node(self) -> Json:
        self._nodes += 1
        name = f"c{self.number}-node-{self._nodes:02}"
        spec: Json = {}
        if self.chance(0.25):
            spec["taints"] = [self.taint()]
        if self.chance(0.06):
            spec["unschedulable"] = True
        amounts = self.amounts()
        if self.is_uniform:
            amounts = self._shape.setdefault("amounts", amounts)
            spec = {}
        status = {"allocatable": amounts, "capacity": dict(amounts), "images": self.images()}
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": self.labels(name)},
            "spec": spec,
            "status": status,
        }

    def labels(self, name: str) -> dict[str, str]:
        rng = self.rng
        if self.is_uniform:
            return {HOSTNAME: name, ZONE: rng.choice(self.zones)}
        labels = {HOSTNAME: name, "kubernetes.io/arch": rng.choice(("amd64", "amd64", "arm64"))}
        if self.chance(0.9):
            labels[ZONE] = rng.choice(self.zones)
            labels[REGION] = "region-1" if self.chance(0.9) else "region-2"
        for key, values in (
            ("disk", ("ssd", "hdd", "nvme")),
            ("gen", ("1", "8", "10", "x9", "01")),
            ("rack", ("r1", "r2", "r3")),
            ("team", ("red", "blue")),
        ):
            if self.chance(0.6):
                labels[key] = rng.choice(values)
        return labels

    def amounts(self) -> dict[str, str]:
        rng = self.rng
        amounts = {
            "cpu": rng.choice(("1", "2", "4", "8", "7910m")),
            "memory": rng.choice(("2Gi", "4Gi", "8Gi", "16Gi", "15890Mi")),
            "pods": rng.choice(("110", "110", "110", "4", "8")),
            "ephemeral-storage": rng.choice(("10Gi", "40Gi", "100Gi")),
        }
        if self.chance(0.3):
            amounts[GPU] = str(rng.randrange(5))
        if self.chance(0.15):
            amounts[FPGA] = str(rng.randrange(1, 3))
        for name in drawn_extenders.LANE, drawn_extenders.TRACK:
            if self.chance(0.75):
                amounts[name] = str(rng.randrange(1, 9))
        if self.chance(0.15):
            amounts["hugepages-2Mi"] = rng.choice(("256Mi", "768Mi"))
        return amounts

    def images(self) -> list[Json]:
        if self.is_uniform:
            return []
        sizes = (24117248, 734003200, 1047527424, 63199979, 9437184)
        return [{"names": [image], "sizeBytes": self.rng.choice(sizes)} for image in self.some(IMAGES, 4)]

    def taint(self) -> Json:
        rng = self.rng
        taint = {"key": rng.choice(TAINTS), "effect": rng.choice(EFFECTS)}
        return {**taint, "value": rng.choice(("a", "b"))} if self.chance(0.6) else taint

    # Around them ----------------------------------------------------------------------------------------------------

    def namespace_labels(self) -> dict[str, str]:
        labels = {"env": self.rng.choice(("dev", "prod"))} if self.chance(0.8) else {}
        return {**labels, "owner": self.rng.choice("ab")} if self.chance(0.4) else labels

    def around(self) -> list[Json]:
        """Services, owners and budgets."""
        made = [self.service(app) for app in self.some(APPS, 3)]
        made += [self.owner(app) for app in self.some(APPS, 2)]
        made += [self.budget(app) for app in self.some(APPS, 3)]
        return made

    def service(self, app: str) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"c{self.number}-{app}", "namespace": self.rng.choice(NAMESPACES)},
            "spec": {"clusterIP": "None", "selector": self.app_labels(app), "ports": [{"port": 80}]},
        }

    def app_labels(self, app: str) -> dict[str, str]:
        return {"app": app, "tier": self.rng.choice(("front", "back"))} if self.chance(0.3) else {"app": app}

    def owner(self, app: str) -> Json:
        labels = {"app": app, "owned": "yes"}
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"c{self.number}-{app}", "namespace": "default"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
                },
            },
        }

    def budget(self, app: str) -> Json:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"c{self.number}-{app}", "namespace": self.rng.choice(NAMESPACES)},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
        }

    def disruptions_allowed(self) -> int:
        return self.rng.choice((0, 0, 1, 2))

    # Volumes --------------------------------------------------------------------------------------------------------

    def storage(self, nodes: Sequence[Json]) -> list[Json]:
        """Limits of the driver on some nodes, and volumes in zones."""
        made: list[Json] = []
        for node in nodes:
            if self.chance(0.5):
                allocatable = {"allocatable": {"count": self.rng.randrange(1, 4)}} if self.chance(0.7) else {}
                driver = {"name": DRIVER, "nodeID": node["metadata"]["name"], "topologyKeys": [ZONE], **allocatable}
                made.append(
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": {"name": node["metadata"]["name"]},
                        "spec": {"drivers": [driver]},
                    }
                )
        return made

    def volume(self, name: str, claim: Json | None, storage_class: str = "manual") -> Json:
        """A PersistentVolume, of ``claim`` if there is one."""
        rng = self.rng
        labels = {ZONE: rng.choice(self.zones)} if self.chance(0.5) else {}
        spec: Json = {
            "capacity": {"storage": rng.choice(("1Gi", "5Gi", "20Gi"))},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class,
            "csi": {"driver": DRIVER, "volumeHandle": name},
        }
        if self.chance(0.5):
            where = {"key": ZONE, "operator": "In", "values": [rng.choice(self.zones)]}
            if self.chance(0.3):
                where = {"key": "disk", "operator": rng.choice(("Exists", "DoesNotExist"))}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}}
        if claim is not None:
            metadata = claim["metadata"]
            spec["claimRef"] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
            }
            spec["capacity"] = {"storage": "20Gi"}
            spec["accessModes"] = claim["spec"]["accessModes"]
        metadata = {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}

    def claim(self, name: str, namespace: str, storage_class: str, volume: str = "") -> Json:
        mode = "ReadWriteOncePod" if self.chance(0.2) else "ReadWriteOnce"
        spec: Json = {
            "accessModes": [mode],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": self.rng.choice(("1Gi", "2Gi", "5Gi"))}},
        }
        metadata: Json = {"name": name, "namespace": namespace}
        if volume:
            spec["volumeName"] = volume
            metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
