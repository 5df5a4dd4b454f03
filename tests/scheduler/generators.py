"""Questions to the scheduler, drawn at random: the form of the recorded cases, with all that may stand in one.

``case(seed)`` is a function of its seed. Objects are such as an API server would have stored.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

_KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack", "missing.example.com/key")
_IMAGES = ("nginx", "nginx:1.27", "registry.local:5000/app/api", "redis@sha256:00", "big/model:1", "absent:1")
_NAMESPACES = ("default", "prod", "dev")
_HOMES = ("default",) * 5 + _NAMESPACES
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "intel.com/foo", "hugepages-2Mi")
_AMOUNTS = {
    "cpu": ("0", "1m", "100m", "250m", "1", "1500m", "2", "3333m"),
    "memory": ("0", "1", "64Mi", "200Mi", "256e6", "1Gi", "3Gi", "1000000001", "100500m"),
    "ephemeral-storage": ("0", "1Gi", "20G"),
    "example.com/gpu": ("0", "1", "2", "4"),
    "intel.com/foo": ("0", "1", "3"),
    "hugepages-2Mi": ("0", "2Mi", "64Mi", "128Mi"),
}
_ALLOCATABLE = {
    "cpu": ("1", "2", "3900m", "8", "16"),
    "memory": ("1Gi", "4Gi", "8123456789", "16Gi", "64Gi"),
    "ephemeral-storage": ("10Gi", "50G"),
    "example.com/gpu": ("0", "2", "8"),
    "intel.com/foo": ("1", "8"),
    "hugepages-2Mi": ("0", "128Mi", "1Gi"),
}
_PRIORITIES = (0, 0, 0, 10, 100, 100, 1000, -5, 2_000_000_000)
_NODE_LABEL_VALUES = ("1", "007", "12", "x", "-3", "")


class Maker:
    """Draws objects from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.made = 0
        self.obstacles = self.one((0, 20, 100))
        """How often, of a hundred times, what keeps pods away from whole nodes is really drawn."""
        self.closeness = self.one((20, 100))
        """The same for what pods want of other pods."""
        self.is_roomy = self.random.randrange(3) == 0

    def chance(self, percent: int, scale: int = 100) -> bool:
        return self.random.randrange(10_000) < percent * scale

    def one(self, choices: Any) -> Any:
        return self.random.choice(choices)

    def some(self, choices: Any, most: int) -> list[Any]:
        """Up to so many different ones."""
        return self.random.sample(list(choices), self.random.randint(0, min(most, len(choices))))

    # Labels and selectors -------------------------------------------------------------------------------------------

    def labels(self) -> Json:
        found = {"app": self.one("abc")} if self.chance(85) else {}
        if self.chance(40):
            found["tier"] = self.one(("web", "db", ""))
        return found

    def expression(self, key: str, values: Any) -> Json:
        operator = self.one(("In", "NotIn", "Exists", "DoesNotExist"))
        found: Json = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            found["values"] = self.random.sample(list(values), self.random.randint(1, 2))
        return found

    def selector(self) -> Json:
        found: Json = {}
        if self.chance(70):
            found["matchLabels"] = {"app": self.one("abc")}
        if self.chance(35):
            found["matchExpressions"] = [self.expression(self.one(("tier", "app")), ("web", "db", "a", "b"))]
        return found

    def namespace_selector(self) -> Json:
        if self.chance(20):
            return {}
        if self.chance(50):
            return {"matchLabels": {"team": self.one("xy")}}
        return {"matchExpressions": [self.expression("team", "xy")]}

    def term(self) -> Json:
        found: Json = {"topologyKey": self.one(_KEYS[:3] if self.chance(90) else _KEYS)}
        if self.chance(94):
            found["labelSelector"] = self.selector()
        if self.chance(25):
            found["namespaces"] = self.random.sample(_NAMESPACES, self.random.randint(1, 2))
        if self.chance(25):
            found["namespaceSelector"] = self.namespace_selector()
        return found

    def pod_affinity(self) -> Json:
        found: Json = {}
        if self.chance(60):
            found["requiredDuringSchedulingIgnoredDuringExecution"] = [
                self.term() for _ in range(self.random.randint(1, 2))
            ]
        if self.chance(50):
            found["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.random.randint(1, 100), "podAffinityTerm": self.term()}
                for _ in range(self.random.randint(1, 3))
            ]
        return found

    # Nodes ----------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Json:
        labels = {"kubernetes.io/hostname": name} if self.chance(95) else {}
        for key, values in ((_KEYS[1], "xyz"), (_KEYS[2], ("r1", "r2", ""))):
            if self.chance(85):
                labels[key] = self.one(values)
        if self.chance(50):
            labels["size"] = self.one(_NODE_LABEL_VALUES[:4] if self.chance(90) else ("", "9" * 19))
        if self.chance(40):
            labels["disk"] = self.one(("ssd", "hdd"))
        allocatable = {name: self.one(_ALLOCATABLE[name]) for name in _RESOURCES[:2]}
        allocatable |= {name: self.one(_ALLOCATABLE[name]) for name in self.some(_RESOURCES[2:], 3)}
        if self.is_roomy:
            allocatable |= {"cpu": "64", "memory": "256Gi"}
        if self.chance(4):
            allocatable["cpu"] = "0"
        if self.chance(5):
            del allocatable[self.one(("cpu", "memory"))]
        if self.chance(97):
            allocatable["pods"] = "110" if self.is_roomy else self.one(("1", "3", "5", *["110"] * 5))
        spec: Json = {}
        if self.chance(40, self.obstacles):
            spec["taints"] = [self.taint() for _ in range(self.random.randint(1, 3))]
        if self.chance(12, self.obstacles):
            spec["unschedulable"] = True
        status: Json = {"allocatable": allocatable}
        if self.chance(40):
            status["images"] = [{"names": [image], "sizeBytes": self.size(image)} for image in self.some(_IMAGES, 4)]
            status["images"] += [{"names": ["nginx:latest", "nginx@sha256:1"], "sizeBytes": self.size("nginx")}]
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    @staticmethod
    def size(image: str) -> int:
        """The same on every node: whose size counts depends on who came first."""
        return 1024 * 1024 * (7 + 331 * len(image)) + len(image)

    def taint(self) -> Json:
        found = {"key": self.one("kl"), "effect": self.one(("NoSchedule", "NoExecute", "PreferNoSchedule"))}
        if self.chance(50):
            found["value"] = self.one("vw")
        return found

    def toleration(self) -> Json:
        found: Json = {}
        if self.chance(80):
            found["key"] = self.one(("k", "l", "node.kubernetes.io/unschedulable"))
        found["operator"] = self.one(("Exists", "Equal")) if "key" in found else "Exists"
        if found["operator"] == "Equal":
            if self.chance(30):
                del found["operator"]
            if self.chance(70):
                found["value"] = self.one("vw")
        if self.chance(60):
            found["effect"] = self.one(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        return found

    def node_term(self, names: list[str]) -> Json:
        found: Json = {}
        if self.chance(75):
            found["matchExpressions"] = [self.node_expression() for _ in range(self.random.randint(1, 2))]
        if self.chance(25):
            found["matchFields"] = [
                {"key": "metadata.name", "operator": self.one(("In", "In", "NotIn")), "values": [self.one(names)]}
                for _ in range(1 if self.chance(80) else 2)
            ]
        return found

    def node_expression(self) -> Json:
        if self.chance(30):
            return {"key": "size", "operator": self.one(("Gt", "Lt")), "values": [self.one(("1", "7", "010", "100"))]}
        key, values = self.one(((_KEYS[1], "xyz"), ("rack", ("r1", "r2", "")), ("disk", ("ssd", "hdd")), ("no", "1 2")))
        return self.expression(key, sorted(set(values) - {" "}))

    def weighted_node_terms(self, names: list[str]) -> list[Json]:
        terms = [self.node_term(names) for _ in range(self.random.randint(1, 3))]
        return [{"weight": self.random.randint(1, 100), "preference": term} for term in terms]

    # Pods -----------------------------------------------------------------------------------------------------------

    def amounts(self, names: Any, most: int) -> Json:
        return {name: self.one(_AMOUNTS[name]) for name in self.some(names, most)}

    def container(self, number: int) -> Json:
        found: Json = {"name": f"c{number}", "image": self.one(_IMAGES)}
        requests = self.amounts(_RESOURCES[:2], 2)
        if self.chance(10):
            requests |= self.amounts(_RESOURCES[2:], 2)
        if requests:
            found["resources"] = {"requests": requests}
        if self.chance(10):
            found["ports"] = [self.port() for _ in range(self.random.randint(1, 2))]
        return found

    def port(self) -> Json:
        found = {"containerPort": 80, "hostPort": self.one((80, 81)), "protocol": self.one(("TCP", "TCP", "UDP"))}
        if self.chance(50):
            found["hostIP"] = self.one(("0.0.0.0", "127.0.0.1", "10.0.0.1"))
        return found

    def pod(self, names: list[str]) -> Json:
        self.made += 1
        spec: Json = {"containers": [self.container(number) for number in range(1 if self.chance(75) else 2)]}
        if self.chance(20):
            spec["initContainers"] = [self.container(number) for number in range(5, 5 + self.random.randint(1, 3))]
            for container in spec["initContainers"]:
                if self.chance(50):
                    container["restartPolicy"] = "Always"
        if self.chance(8):
            spec["overhead"] = {"cpu": "100m", "memory": "64Mi"}
        if self.chance(8):
            spec["resources"] = {"requests": self.amounts(("cpu", "memory", "hugepages-2Mi"), 2)}
        spec["priority"] = self.one(_PRIORITIES)
        if self.chance(40):
            spec["tolerations"] = [self.toleration() for _ in range(self.random.randint(1, 3))]
        if self.chance(15, self.obstacles):
            spec["nodeSelector"] = {self.one(("disk", "rack")): self.one(("ssd", "r1"))}
        affinity: Json = {}
        if self.chance(20):
            node_affinity: Json = {}
            if self.chance(80, self.obstacles):
                terms = [self.node_term(names) for _ in range(self.random.randint(1, 2))]
                node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
            if self.chance(60):
                node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = self.weighted_node_terms(names)
            affinity["nodeAffinity"] = node_affinity
        for kind in ("podAffinity", "podAntiAffinity"):
            if self.chance(30, self.closeness):
                affinity[kind] = self.pod_affinity()
        if affinity:
            spec["affinity"] = affinity
        if self.chance(40, self.closeness):
            spec["topologySpreadConstraints"] = self.constraints(self.random.randint(1, 3))
        if self.chance(5):
            spec["volumes"] = [{"name": "v", "image": {"reference": self.one(_IMAGES)}}, {"name": "w", "emptyDir": {}}]
        metadata = {"name": f"p{self.made}", "namespace": self.one(_HOMES), "uid": f"uid-{self.made}"}
        return {"metadata": {**metadata, "labels": self.labels()}, "spec": spec, "status": {}}

    def constraints(self, number: int) -> list[Json]:
        """No two with the same key that also demand the same."""
        drawn = [self.constraint() for _ in range(number)]
        return list({(one["topologyKey"], one["whenUnsatisfiable"]): one for one in drawn}.values())

    def constraint(self) -> Json:
        found: Json = {"topologyKey": self.one(_KEYS[:3] if self.chance(97) else _KEYS)}
        found["maxSkew"] = self.one((1, 1, 1, 2, 3))
        found["whenUnsatisfiable"] = self.one(("DoNotSchedule", "ScheduleAnyway"))
        if self.chance(94):
            found["labelSelector"] = self.selector()
        if found["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(25):
            found["minDomains"] = self.random.randint(1, 5)
        if self.chance(30):
            found["nodeAffinityPolicy"] = self.one(("Honor", "Ignore"))
        if self.chance(30):
            found["nodeTaintsPolicy"] = self.one(("Honor", "Ignore"))
        return found

    def running(self, names: list[str]) -> Json:
        pod = self.pod(names)
        pod["spec"]["nodeName"] = self.one(names)
        pod["status"]["startTime"] = (
            f"2026-01-{1 + self.made // 3600:02}T00:{self.made // 60 % 60:02}:{self.made % 60:02}Z"
        )
        if self.chance(8):
            pod["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
            if self.chance(60):
                condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                pod["status"]["conditions"] = [condition]
        if self.chance(5):
            self.resize(pod)
        return pod

    def resize(self, pod: Json) -> None:
        """The status tells of other resources than the spec."""
        pod["status"]["containerStatuses"] = [
            {
                "name": container["name"],
                "resources": {"requests": self.amounts(_RESOURCES[:2], 2)},
                "allocatedResources": self.amounts(_RESOURCES[:2], 2),
            }
            for container in pod["spec"]["containers"]
        ]
        if self.chance(50):
            condition = {"type": "PodResizePending", "status": "True", "reason": self.one(("Infeasible", "Deferred"))}
            pod["status"]["conditions"] = [*pod["status"].get("conditions", ()), condition]

    def nominated(self, names: list[str]) -> Json:
        pod = self.pod(names)
        pod["status"]["nominatedNodeName"] = self.one(names)
        return pod

    # Other objects --------------------------------------------------------------------------------------------------

    def budget(self, number: int, pods: list[Json]) -> Json:
        disrupted = [pod["metadata"]["name"] for pod in pods if self.chance(10)]
        found: Json = {
            "metadata": {"name": f"budget-{number}", "namespace": self.one(_HOMES)},
            "spec": {"selector": self.selector()},
            "status": {
                "disruptionsAllowed": self.random.randint(0, 2),
                "currentHealthy": 3,
                "desiredHealthy": 2,
                "expectedPods": 3,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        }
        if self.chance(5):
            del found["spec"]["selector"]
        return found

    def default_spread(self, found: Json) -> None:
        """Services and owners, from which default constraints have their selector."""
        pod = found["pod"]
        namespace = pod["metadata"]["namespace"]
        found["services"] = [
            {"metadata": {"name": f"s{number}", "namespace": self.one((namespace, "dev"))}, "spec": spec}
            for number in range(self.random.randint(0, 3))
            for spec in [{"selector": {"app": self.one("abc")}} if self.chance(85) else {}]
        ]
        if not self.chance(60):
            return
        kind, key, version = self.one(
            (
                ("ReplicationController", "replicationControllers", "v1"),
                ("ReplicaSet", "replicaSets", "apps/v1"),
                ("StatefulSet", "statefulSets", "apps/v1"),
                ("Job", "", "batch/v1"),
                ("ReplicaSet", "replicaSets", "extensions/v1beta1"),
            )
        )
        reference = {"apiVersion": version, "kind": kind, "name": "owner", "uid": "o", "controller": self.chance(90)}
        pod["metadata"]["ownerReferences"] = [reference]
        if key:
            selector = {"app": self.one("abc")} if kind == "ReplicationController" else self.selector()
            found[key] = [{"metadata": {"name": "owner", "namespace": namespace}, "spec": {"selector": selector}}]

    def profile(self, names: list[str]) -> Json:
        args: Json = {}
        if self.chance(50):
            strategy: Json = {"type": self.one(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))}
            if self.chance(70):
                strategy["resources"] = self.weights()
            if strategy["type"] == "RequestedToCapacityRatio":
                points = sorted(self.random.sample(range(101), self.random.randint(1, 4)))
                shape = [{"utilization": point, "score": self.random.randint(0, 10)} for point in points]
                strategy["requestedToCapacityRatio"] = {"shape": shape}
            args["NodeResourcesFit"] = {"scoringStrategy": strategy}
            if self.chance(30):
                args["NodeResourcesFit"]["ignoredResources"] = ["example.com/gpu"]
            if self.chance(20):
                args["NodeResourcesFit"]["ignoredResourceGroups"] = ["intel.com"]
        if self.chance(30):
            args["NodeResourcesBalancedAllocation"] = {"resources": self.weights()}
            for entry in args["NodeResourcesBalancedAllocation"]["resources"]:
                entry["weight"] = 1
        if self.chance(30):
            args["InterPodAffinity"] = {"hardPodAffinityWeight": self.one((0, 1, 50, 100))}
            args["InterPodAffinity"]["ignorePreferredTermsOfExistingPods"] = self.chance(50)
        if self.chance(30):
            added: Json = {"preferredDuringSchedulingIgnoredDuringExecution": self.weighted_node_terms(names)}
            if self.chance(50):
                terms = {"nodeSelectorTerms": [self.node_term(names)]}
                added["requiredDuringSchedulingIgnoredDuringExecution"] = terms
            args["NodeAffinity"] = {"addedAffinity": added}
        if self.chance(40):
            constraints = self.constraints(self.random.randint(0, 2))
            plain = ("topologyKey", "maxSkew", "whenUnsatisfiable")
            args["PodTopologySpread"] = {
                "defaultingType": "List",
                "defaultConstraints": [{key: one[key] for key in plain} for one in constraints],
            }
        found: Json = {"pluginConfig": [{"name": name, "args": each} for name, each in args.items()]}
        if self.chance(40):
            scorers = ("TaintToleration", "NodeAffinity", "ImageLocality", "NodeResourcesFit", "PodTopologySpread")
            enabled = [{"name": name, "weight": self.random.randint(0, 9)} for name in self.some(scorers, 2)]
            disabled = [{"name": name} for name in self.some((*scorers, "InterPodAffinity"), 3)]
            found["plugins"] = {"score": {"enabled": enabled, "disabled": disabled}}
        return found

    def weights(self) -> list[Json]:
        names = self.random.sample(_RESOURCES, self.random.randint(1, 4))
        return [{"name": name, "weight": self.one((1, 2, 3, 7, 100))} for name in names]

    # The question ---------------------------------------------------------------------------------------------------

    def case(self) -> Json:
        names = [f"node-{number}" for number in range(self.random.randint(1, 7))]
        found: Json = {"nodes": [self.node(name) for name in names]}
        found["pods"] = [self.running(names) for _ in range(self.random.randint(0, 30))]
        found["pod"] = pod = self.pod(names)
        if self.chance(40):
            pod["spec"]["priority"] = self.one((100, 1000, 2_000_000_000))
        if self.chance(5):
            pod["spec"]["preemptionPolicy"] = "Never"
        if self.chance(10):
            pod["status"]["nominatedNodeName"] = self.one([*names, "gone"])
        if self.chance(4):
            pod["spec"]["nodeName"] = self.one([*names, "gone"])
        found["nominated"] = [self.nominated(names) for _ in range(self.random.randint(0, 3) if self.chance(30) else 0)]
        listed = [("prod", {"team": "x"}), ("dev", {"team": "y"}), ("default", {})]
        found["namespaces"] = [{"metadata": {"name": name, "labels": labels}} for name, labels in self.some(listed, 3)]
        budgets = self.random.randint(0, 3) if self.chance(40) else 0
        found["pdbs"] = [self.budget(number, found["pods"]) for number in range(budgets)]
        if self.chance(30):
            self.default_spread(found)
        if self.chance(40):
            found["profile"] = self.profile(names)
        return found


def case(seed: int) -> Json:
    return {"id": f"drawn-{seed}", **Maker(seed).case()}
