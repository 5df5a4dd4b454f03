"""Pods of all families for a live comparison, drawn from one seed as Kubernetes JSON."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

from kemu.lab.conformance.live import drawn_devices
from kemu.lab.conformance.live.drawn_extenders import LANE, TRACK
from kemu.lab.conformance.live.makers import (
    APPS,
    CLASSES,
    FPGA,
    GPU,
    HOSTNAME,
    IMAGES,
    NAMESPACES,
    OVERHEADS,
    REGION,
    TAINTS,
    ZONE,
    Json,
    Maker,
)

PROFILES: tuple[Json, ...] = (
    {"schedulerName": "default-scheduler"},
    {
        "schedulerName": "packing",
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {
                        "type": "MostAllocated",
                        "resources": [{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 1}],
                    }
                },
            }
        ],
    },
    {
        "schedulerName": "ratio",
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {
                        "type": "RequestedToCapacityRatio",
                        "resources": [{"name": GPU, "weight": 3}, {"name": "cpu", "weight": 1}],
                        "requestedToCapacityRatio": {
                            "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                        },
                    }
                },
            },
            {
                "name": "PodTopologySpread",
                "args": {
                    "defaultingType": "List",
                    "defaultConstraints": [
                        {"maxSkew": 3, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"}
                    ],
                },
            },
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
        ],
    },
    {
        "schedulerName": "least",
        "plugins": {"score": {"disabled": [{"name": "ImageLocality"}, {"name": "TaintToleration"}]}},
        "pluginConfig": [
            {
                "name": "NodeAffinity",
                "args": {
                    "addedAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 40,
                                "preference": {
                                    "matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]
                                },
                            }
                        ]
                    }
                },
            }
        ],
    },
)
"""Profiles of the schedulers that are compared; pods choose one by its name."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class PodMaker:
    """Pod maker of the pods of one cluster."""

    def __init__(self, cluster: Maker) -> None:
        self.cluster = cluster
        self.rng: random.Random = cluster.rng
        self._pods = 0
        self._families: dict[str, Callable[[Json], None]] = {
            "resources": self._resources,
            "labels": self._affinity_to_nodes,
            "pod-affinity": self._pod_affinity,
            "spread": self._spread,
            "taints": self._tolerations,
            "ports": self._ports,
            "images": self._images,
            "preemption": self._urgent,
            "volumes": self._volumes,
            "gates": self._gates,
            "mixed": self._mixed,
            "devices": self._devices,
            "overhead": self._overhead,
            "extenders": self._lanes,
        }
        self._weights = [16, 11, 13, 13, 9, 6, 6, 16, 5, 3, 12, 14, 6, 12]
        self._groups = 0
        self.claims: list[str] = []
        """Claims of pods that are to come: ``namespace/name``."""
        self.device_claims: list[str] = []
        """The same of devices."""
        self.extra: list[Json] = []
        """What has to be there before the pod that was drawn last."""

    def draw(self) -> tuple[str, Json]:
        """A family and a pod of it."""
        family = self.rng.choices(list(self._families), self._weights)[0]
        self.extra = []
        pod = self.plain()
        self._families[family](pod)
        return family, pod

    def group(self) -> tuple[Json, list[Json]]:
        """A PodGroup, and its members; ``extra`` has what has to be there before."""
        rng = self.rng
        self._groups += 1
        self.extra = []
        made = [self.plain() for _ in range(rng.choice((2, 2, 3, 3, 4, 6)))]
        first, alike = made[0], self.chance(0.7)
        for family in rng.sample((self._resources, self._affinity_to_nodes, self._pod_affinity, self._spread,
                                  self._tolerations, self._urgent), rng.choice((0, 1, 1, 2))):  # fmt: skip
            family(first)
        if self.chance(0.25):
            self._ask_extenders(first)
        name = f"c{self.cluster.number}-group-{self._groups:02}"
        for pod in made:
            if alike:
                pod["metadata"] = {**first["metadata"], "name": pod["metadata"]["name"]}
                pod["spec"] = copy.deepcopy(first["spec"])
            pod["metadata"]["namespace"] = first["metadata"]["namespace"]
            pod["spec"] |= {"schedulingGroup": {"podGroupName": name}}
            pod["spec"]["schedulerName"] = first["spec"].get("schedulerName", PROFILES[0]["schedulerName"])
        if self.chance(0.25):
            for pod in made:
                self.extra += drawn_devices.give(self.cluster, pod, self.device_claims)
        least = rng.choice((len(made), len(made), len(made) - 1, 1))
        policy: Json = {"basic": {}} if self.chance(0.15) else {"gang": {"minCount": least}}
        group = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": first["metadata"]["namespace"]},
            "spec": {"schedulingPolicy": policy},
        }
        return group, made

    def running(self, node: str) -> Json:
        """A pod that is on a node from the start."""
        pod = self.plain()
        pod["spec"]["nodeName"] = node
        if self.chance(0.2):
            self._pod_affinity(pod, only_preferred=True)
        if self.chance(0.1):
            self._ports(pod)
        pod["spec"]["priorityClassName"] = self.rng.choice(("low", "low", "middle", "high"))
        if self.cluster.is_full:
            pod["spec"]["containers"][0]["resources"] = {
                "requests": {
                    "cpu": self.rng.choice(("500m", "1", "1500m")),
                    "memory": self.rng.choice(("512Mi", "1Gi")),
                }
            }
        return pod

    def plain(self) -> Json:
        rng = self.rng
        self._pods += 1
        labels = {"app": rng.choice(APPS)}
        if self.chance(0.4):
            labels["tier"] = rng.choice(("front", "back"))
        if self.chance(0.4):
            labels["version"] = rng.choice(("v1", "v2"))
        container: Json = {"name": "c0", "image": rng.choice(IMAGES), "resources": self._amounts()}
        spec: Json = {"containers": [container], "terminationGracePeriodSeconds": rng.choice((0, 0, 30))}
        if self.chance(0.25):
            spec["schedulerName"] = rng.choice(PROFILES)["schedulerName"]
        if self.chance(0.5):
            spec["priorityClassName"] = rng.choice(("middle", "low", "low", "high"))
        metadata: Json = {
            "name": f"c{self.cluster.number}-pod-{self._pods:03}",
            "namespace": rng.choice(("default", *NAMESPACES)),
            "labels": labels,
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def _amounts(self) -> Json:
        rng = self.rng
        if self.chance(0.08):
            return {}
        requests = {"cpu": rng.choice(("100m", "150m", "250m", "500m", "1", "33m"))}
        if self.chance(0.9):
            requests["memory"] = rng.choice(("64Mi", "128Mi", "33M", "512Mi", "1Gi", "268435456"))
        return {"requests": requests}

    # Families ---------------------------------------------------------------------------------------------------------

    def _resources(self, pod: Json) -> None:
        rng, spec = self.rng, pod["spec"]
        resources = spec["containers"][0].setdefault("resources", {})
        requests = resources.setdefault("requests", {})
        requests["cpu"] = rng.choice(("700m", "1500m", "2", "3900m", "9"))
        limits: dict[str, str] = {}
        if self.chance(0.35):
            limits[GPU] = str(rng.randrange(1, 4))
        if self.chance(0.15):
            limits[FPGA] = "1"
        if self.chance(0.15):
            limits["hugepages-2Mi"] = "256Mi"
            requests.setdefault("memory", "64Mi")
        if self.chance(0.2):
            requests["ephemeral-storage"] = rng.choice(("1Gi", "20Gi", "60Gi"))
        if limits:
            resources["limits"] = limits
            requests |= limits
        if self.chance(0.25):
            spec["initContainers"] = [self._init(number) for number in range(rng.randrange(1, 4))]
        if self.chance(0.15):
            spec["containers"].append({"name": "c1", "image": rng.choice(IMAGES), "resources": self._amounts()})
        if self.chance(0.1) and not limits:
            spec["resources"] = {"requests": {"cpu": "2500m", "memory": "1Gi"}}
            spec["containers"][0]["resources"] = {}
            if len(spec["containers"]) > 1:
                spec["containers"][1]["resources"] = {}
            spec.pop("initContainers", None)

    def _init(self, number: int) -> Json:
        rng = self.rng
        made: Json = {
            "name": f"init{number}",
            "image": rng.choice(IMAGES),
            "resources": {"requests": {"cpu": rng.choice(("200m", "820m", "2500m")), "memory": "256Mi"}},
        }
        return {**made, "restartPolicy": "Always"} if self.chance(0.5) else made

    def _affinity_to_nodes(self, pod: Json) -> None:
        rng, spec = self.rng, pod["spec"]
        if self.chance(0.4):
            labels = (("disk", "ssd"), ("team", "red"), ("rack", "r1"))
            spec["nodeSelector"] = dict(rng.sample(labels, rng.randrange(1, 3)))
        affinity: Json = {}
        if self.chance(0.6):
            terms = [self._node_term() for _ in range(rng.randrange(1, 3))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.chance(0.6):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.randrange(1, 101), "preference": self._node_term()} for _ in range(rng.randrange(1, 4))
            ]
        if affinity:
            spec.setdefault("affinity", {})["nodeAffinity"] = affinity

    def _node_term(self) -> Json:
        rng = self.rng
        expressions = []
        for _ in range(rng.randrange(1, 3)):
            key, values = rng.choice(
                (("disk", ("ssd", "hdd", "nvme")), ("gen", ("8",)), ("rack", ("r1", "r2", "r3")),
                 ("team", ("red", "blue")), (ZONE, ("zone-a", "zone-b", "zone-c")))
            )  # fmt: skip
            operator = rng.choice(("Gt", "Lt")) if key == "gen" else rng.choice(OPERATORS)
            expression: Json = {"key": key, "operator": operator}
            if operator in ("In", "NotIn"):
                expression["values"] = rng.sample(values, rng.randrange(1, len(values) + 1))
            elif operator in ("Gt", "Lt"):
                expression["values"] = [rng.choice(("0", "8", "9"))]
            expressions.append(expression)
        term: Json = {"matchExpressions": expressions}
        if self.chance(0.12):
            name = f"c{self.cluster.number}-node-{rng.randrange(1, 17):02}"
            fields = [{"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": [name]}]
            term = {**term, "matchFields": fields} if self.chance(0.5) else {"matchFields": fields}
        return term

    def _pod_affinity(self, pod: Json, *, only_preferred: bool = False) -> None:
        rng, affinity = self.rng, pod["spec"].setdefault("affinity", {})
        for kind in ("podAffinity", "podAntiAffinity"):
            if self.chance(0.4):
                continue
            one: Json = {}
            if self.chance(0.5) and not only_preferred:
                terms = [self._pod_term() for _ in range(rng.randrange(1, 3))]
                one["requiredDuringSchedulingIgnoredDuringExecution"] = terms
            if self.chance(0.6):
                one["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": rng.randrange(1, 101), "podAffinityTerm": self._pod_term()}
                    for _ in range(rng.randrange(1, 3))
                ]
            if one:
                affinity[kind] = one
        if not affinity:
            del pod["spec"]["affinity"]

    def _pod_term(self) -> Json:
        rng = self.rng
        term: Json = {
            "labelSelector": self._selector(),
            "topologyKey": rng.choice((HOSTNAME, ZONE, ZONE, REGION, "rack")),
        }
        chance = rng.random()
        if chance < 0.2:
            term["namespaces"] = rng.sample(NAMESPACES, rng.randrange(1, 3))
        elif chance < 0.4:
            selectors: tuple[Json, ...] = ({}, {"matchLabels": {"env": "prod"}}, {"matchLabels": {"owner": "a"}})
            term["namespaceSelector"] = rng.choice(selectors)
        if self.chance(0.15):
            term["matchLabelKeys"] = ["version"]
        elif self.chance(0.1):
            term["mismatchLabelKeys"] = ["version"]
        return term

    def _selector(self) -> Json:
        rng = self.rng
        selector: Json = {"matchLabels": {"app": rng.choice(APPS)}}
        if self.chance(0.3):
            operator = rng.choice(OPERATORS)
            expression: Json = {"key": "tier", "operator": operator}
            if operator in ("In", "NotIn"):
                expression["values"] = ["front"]
            selector["matchExpressions"] = [expression]
            if self.chance(0.3):
                del selector["matchLabels"]
        return selector

    def _spread(self, pod: Json) -> None:
        rng = self.rng
        keys = rng.sample((HOSTNAME, ZONE, REGION, "rack"), rng.randrange(1, 3))
        constraints = []
        for key in keys:
            how = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
            one: Json = {
                "maxSkew": rng.randrange(1, 4),
                "topologyKey": key,
                "whenUnsatisfiable": how,
                "labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
                if self.chance(0.7)
                else self._selector(),
            }
            if how == "DoNotSchedule" and self.chance(0.3):
                one["minDomains"] = rng.randrange(1, 5)
            if self.chance(0.25):
                one["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
            if self.chance(0.25):
                one["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
            if self.chance(0.2):
                one["matchLabelKeys"] = ["version"]
            constraints.append(one)
        pod["spec"]["topologySpreadConstraints"] = constraints
        if self.chance(0.3):
            self._affinity_to_nodes(pod)
        if self.chance(0.3):
            self._tolerations(pod)

    def _tolerations(self, pod: Json) -> None:
        rng = self.rng
        tolerations: list[Json] = []
        for _ in range(rng.randrange(1, 4)):
            if self.chance(0.15):
                tolerations.append({"operator": "Exists"})
                continue
            one: Json = {"key": rng.choice((*TAINTS, "node.kubernetes.io/unschedulable"))}
            if self.chance(0.5):
                one["operator"] = "Exists"
            else:
                one |= {"operator": "Equal", "value": rng.choice("ab")}
            if self.chance(0.6):
                one["effect"] = rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
            tolerations.append(one)
        pod["spec"]["tolerations"] = tolerations

    def _ports(self, pod: Json) -> None:
        rng = self.rng
        ports = []
        for port in rng.sample((80, 443, 8080, 9090), rng.randrange(1, 3)):
            one: Json = {"containerPort": port, "hostPort": port, "protocol": rng.choice(("TCP", "TCP", "UDP"))}
            if self.chance(0.3):
                one["hostIP"] = rng.choice(("10.0.0.7", "10.0.0.8", "127.0.0.1"))
            ports.append(one)
        pod["spec"]["containers"][0]["ports"] = ports

    def _images(self, pod: Json) -> None:
        containers = [{"name": f"i{number}", "image": image} for number, image in enumerate(self.rng.sample(IMAGES, 2))]
        pod["spec"]["containers"] += containers

    def _urgent(self, pod: Json) -> None:
        rng, spec = self.rng, pod["spec"]
        spec["priorityClassName"] = rng.choice(("urgent", "urgent", "high", "patient"))
        requests = {"cpu": rng.choice(("1", "1800m", "2500m", "3500m")), "memory": rng.choice(("512Mi", "2Gi", "3Gi"))}
        spec["containers"][0]["resources"] = {"requests": requests}
        if self.chance(0.15):
            self._affinity_to_nodes(pod)
        if self.chance(0.1):
            self._ports(pod)
        if self.chance(0.1):
            self._pod_affinity(pod)
        if self.chance(0.1):
            self._spread(pod)

    def _gates(self, pod: Json) -> None:
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        if self.chance(0.5):
            self._affinity_to_nodes(pod)

    def _mixed(self, pod: Json) -> None:
        for family in self.rng.sample((self._affinity_to_nodes, self._pod_affinity, self._spread, self._tolerations,
                                       self._ports, self._resources), 3):  # fmt: skip
            family(pod)
        if self.chance(0.4):
            pod["spec"]["priorityClassName"] = self.rng.choice(list(CLASSES))

    def _devices(self, pod: Json) -> None:
        self.extra += drawn_devices.give(self.cluster, pod, self.device_claims)
        if self.chance(0.2):
            self._affinity_to_nodes(pod)
        if self.chance(0.2):
            pod["spec"]["priorityClassName"] = "urgent"

    def _lanes(self, pod: Json) -> None:
        self._ask_extenders(pod)
        if self.chance(0.3):
            self._affinity_to_nodes(pod)
        if self.chance(0.4):
            pod["spec"]["priorityClassName"] = "urgent"

    def _ask_extenders(self, pod: Json) -> None:
        """For pods with these resources an extender is asked, or two."""
        resources = pod["spec"]["containers"][0].setdefault("resources", {})
        for name in self.rng.choice(((LANE,), (LANE,), (TRACK,), (LANE, TRACK))):
            for amounts in ("requests", "limits"):
                resources.setdefault(amounts, {})[name] = "1"

    def _overhead(self, pod: Json) -> None:
        pod["spec"]["runtimeClassName"] = self.rng.choice(list(OVERHEADS))
        if self.chance(0.6):
            self._resources(pod)
        if self.chance(0.2):
            pod["spec"]["priorityClassName"] = "urgent"

    def _volumes(self, pod: Json) -> None:
        rng, cluster = self.rng, self.cluster
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        chance = rng.random()
        if chance < 0.12:
            claim = f"{name}-none"  # which is nowhere
        elif chance < 0.22:
            claim = f"{name}-now"
            self.extra.append(cluster.claim(claim, namespace, "now"))
        elif chance < 0.32:
            claim = f"{name}-wait"
            self.extra.append(cluster.claim(claim, namespace, rng.choice(("wait", "manual"))))
        elif chance < 0.45 and any(one.startswith(f"{namespace}/") for one in self.claims):
            claim = rng.choice([one for one in self.claims if one.startswith(f"{namespace}/")]).partition("/")[2]
        else:
            claim = f"{name}-bound"
            wanted = cluster.claim(claim, namespace, "manual", volume=f"{claim}-volume")
            self.extra += [wanted, cluster.volume(f"{claim}-volume", wanted)]
            self.claims.append(f"{namespace}/{claim}")
        pod["spec"]["volumes"] = [{"name": "v0", "persistentVolumeClaim": {"claimName": claim}}]
