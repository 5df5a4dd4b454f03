"""Incidents with a planted cause: a seed gives a scenario of 20 to 60 nodes, with decoys, and who is to blame.

Nothing here is known to what finds causes. ``python -m tests.causes.incidents SEED [FILE]`` writes one as a scenario.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
NAMES = [
    "atlas", "birch", "cedar", "delta", "ember", "flint", "grove", "heron", "iris", "jade", "kite", "lotus", "maple",
    "nova", "onyx", "pearl", "quartz", "reed",
]  # fmt: skip


@dataclass
class Planted:
    """Who is to blame. Any of these in a root is a hit."""

    events: set[int] = field(default_factory=set)
    """Places in ``events``."""
    faults: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    """As roots name objects: ``Deployment web``, ``ResourceQuota team/quota``."""


@dataclass
class Incident:
    seed: int
    kind: str
    scenario: Object
    planted: list[Planted]
    """All of them have to be found."""


class Cluster:
    """A cluster with what usually goes on in it."""

    def __init__(self, seed: int, kind: str, size: tuple[int, int]) -> None:
        self.random = rng = random.Random(f"{kind}-{seed}")
        self.names = rng.sample(NAMES, len(NAMES))
        self.cpu, self.memory_gi = rng.choice([(4, 16), (8, 32), (16, 64)])
        self.zones = rng.choice([2, 3])
        per_zone = rng.randint(*size) // self.zones
        self.count = per_zone * self.zones
        tight: Object = {"kubelet": {"evictionHard": {"memory.available": "10%"}}}
        self.kubelet = tight if rng.random() < 0.5 else {}
        self.nodes: list[Object] = [
            {
                "namePrefix": f"{'abc'[zone]}-node-",
                "count": per_zone,
                "labels": {"topology.kubernetes.io/zone": f"zone-{'abc'[zone]}"},
                "allocatable": {"cpu": str(self.cpu), "memory": f"{self.memory_gi}Gi", "pods": "110"},
                **self.kubelet,
            }
            for zone in range(self.zones)
        ]
        self.manifests: list[Object] = []
        self.events: list[Object] = []
        self.chaos: list[Object] = []
        self.workloads: list[Object] = []
        self.priorities = {"vital": 10000, "usual": 1000, "spare": 0}
        self.extra: Object = {}
        self.at = rng.randint(100, 250)
        self.duration = self.at + rng.randint(350, 600)
        self.victims: list[str] = []
        """Deployments of the background."""
        for _ in range(rng.randint(3, 5)):
            self.background()
        agent = self.names.pop()
        self.agent = agent
        self.manifests.append(
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": agent},
                "spec": {
                    "selector": {"matchLabels": {"app": agent}},
                    "template": self.template(agent, "50m", "64Mi", "40Mi"),
                },
            }
        )
        self.decoys()

    def background(self) -> None:
        rng, name = self.random, self.names.pop()
        replicas = rng.randint(6, max(8, self.count // 2))
        memory = rng.choice([512, 1024, 2048])
        priority = rng.choice(["vital", "usual", "usual", "spare"])
        self.deployment(
            name, replicas, f"{rng.choice([250, 500, 750])}m", f"{memory}Mi", f"{memory * 3 // 4}Mi", priority
        )
        self.victims.append(name)
        if rng.random() < 0.6:
            self.budget(name, rng.choice(["25%", "50%"]))

    def budget(self, name: str, unavailable: str | int, kind: str = "maxUnavailable") -> None:
        self.manifests.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name},
                "spec": {kind: unavailable, "selector": {"matchLabels": {"app": name}}},
            }
        )

    def template(self, name: str, cpu: str, memory: str, used: str, priority: str = "", **more: Any) -> Object:
        spec: Object = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}
        if priority:
            spec["priorityClassName"] = priority
        spec.update(more)
        return {
            "metadata": {"labels": {"app": name}, "annotations": {"kemu.dev/usage": f"memory: {used}"}},
            "spec": spec,
        }

    def deployment(
        self, name: str, replicas: int, cpu: str, memory: str, used: str, priority: str = "", **more: Any
    ) -> Object:
        made = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self.template(name, cpu, memory, used, priority, **more),
            },
        }
        self.manifests.append(made)
        return made

    def decoys(self) -> None:
        """Rollouts that work, faults that are over at once, a deletion that hurts nobody."""
        rng = self.random
        for _ in range(rng.randint(2, 4)):
            at = rng.randint(60, self.duration - 60)
            what = rng.choice(["rollout", "fault", "delete", "config", "scale"])
            name = rng.choice(self.victims)
            if what == "rollout":
                self.event(
                    at,
                    patch={
                        "kind": "Deployment",
                        "name": name,
                        "strategic": {"spec": {"template": {"metadata": {"annotations": {"version": f"v{at}"}}}}},
                    },
                )
            elif what == "fault":
                zone, node = rng.randrange(self.zones), rng.randint(1, min(5, self.count // self.zones))
                self.chaos.append(
                    {
                        "id": f"hiccup-{len(self.chaos)}",
                        "at": f"{at}s",
                        "for": "3s",
                        "crash": {"actor": f"kubelet/{'abc'[zone]}-node-{node}"},
                    }
                )
            elif what == "delete":
                self.event(at, delete={"kind": "ConfigMap", "name": "kube-root-ca.crt"})
            elif what == "config":
                self.event(
                    at,
                    create={
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": f"settings-{at}"},
                        "data": {"level": "info"},
                    },
                )
            else:
                self.event(
                    at,
                    create={
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "metadata": {"name": f"probe-{at}"},
                        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
                    },
                )

    def event(self, at: float, **what: Any) -> Object:
        made = {"at": f"{at}s", **what}
        self.events.append(made)
        return made

    def patch(self, name: str, spec: Object, kind: str = "Deployment", at: float | None = None) -> Object:
        return self.event(self.at if at is None else at, patch={"kind": kind, "name": name, "strategic": spec})

    def victim(self) -> str:
        return self.random.choice(self.victims)

    def replicas(self, name: str) -> int:
        return next(
            int(one["spec"]["replicas"])
            for one in self.manifests
            if one["metadata"]["name"] == name and one["kind"] == "Deployment"
        )

    def bind(self, name: str) -> None:
        """A cluster in which there is always something to schedule: a pod every few seconds, each short."""
        self.workloads.append(
            {
                "name": name,
                "start": "20s",
                "arrivals": {"every": "5s"},
                "pods": {
                    "spec": {
                        "priorityClassName": "usual",
                        "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}],
                    }
                },
                "life": {"runSeconds": 40},
            }
        )

    def scenario(self, name: str) -> Object:
        events = sorted(self.events, key=lambda one: float(one["at"][:-1]))
        self.events = events
        spec = {
            "seed": self.random.randint(1, 10**6),
            "duration": f"{self.duration}s",
            "nodes": self.nodes,
            "priorityClasses": self.priorities,
            "manifests": self.manifests,
            "events": events,
            "chaos": self.chaos,
            "workloads": self.workloads,
            **self.extra,
        }
        return {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": {"name": name}, "spec": spec}


Blame = list[Any]
"""For each planted cause, what is to blame: events (their dicts), ids of faults, names."""


def _template(**annotations: str) -> Object:
    return {
        "spec": {
            "template": {
                "metadata": {
                    "annotations": {f"kemu.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
                }
            }
        }
    }


def _container(resources: Object) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "resources": resources}]}}}}


def bad_rollout(c: Cluster) -> Blame:
    return [c.patch(c.victim(), _template(run_seconds=str(c.random.randint(3, 20)), exit_code="1"))]


def bad_image(c: Cluster) -> Blame:
    return [
        c.patch(
            c.victim(),
            {
                "spec": {
                    "template": {
                        "metadata": {"annotations": {"kemu.dev/image-pull-error": "manifest unknown"}},
                        "spec": {"containers": [{"name": "main", "image": "registry.example/web:v2"}]},
                    }
                }
            },
        )
    ]


def bad_probe(c: Cluster) -> Blame:
    spec = _template(probes="main: {readiness: {failsFrom: 0s}}")
    probe = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5}
    spec["spec"]["template"]["spec"] = {"containers": [{"name": "main", "readinessProbe": probe}]}
    return [c.patch(c.victim(), spec)]


def _ramp(to: str, over: int) -> str:
    return f"memory: {{ramp: {{from: 40Mi, to: {to}, over: {over}s}}}}"


def leak(c: Cluster) -> Blame:
    name = c.victim()
    size = int(c.memory_gi * c.count / max(4, c.replicas(name)) * 1.2)
    return [c.patch(name, _template(usage=_ramp(f"{min(size, c.memory_gi)}Gi", 200)))]


def leaking_agent(c: Cluster) -> Blame:
    return [c.patch(c.agent, _template(usage=_ramp(f"{c.memory_gi}Gi", c.random.randint(150, 300))), "DaemonSet")]


def limit_too_low(c: Cluster) -> Blame:
    return [c.patch(c.victim(), _container({"limits": {"memory": "128Mi"}, "requests": {"memory": "128Mi"}}))]


def wrong_request(c: Cluster) -> Blame:
    return [c.patch(c.victim(), _container({"requests": {"cpu": str(c.cpu * 2)}}))]


def wrong_request_from_the_start(c: Cluster) -> Blame:
    name = c.names.pop()
    memory = int(c.memory_gi * 1024 * 0.85)
    c.deployment(name, c.count, "100m", "64Mi", "40Mi", "usual")
    c.manifests[-1]["spec"]["template"]["metadata"]["annotations"]["kemu.dev/usage"] = (
        f"memory: {{ramp: {{from: 40Mi, to: {memory}Mi, over: {c.at}s}}}}"
    )
    c.deployment(other := c.names.pop(), c.count, "100m", f"{memory // 4}Mi", f"{memory // 4}Mi", "spare")
    c.victims.append(other)
    return [f"Deployment {name}"]


def lost_zone(c: Cluster) -> Blame:
    c.chaos.append(
        {
            "id": "outage",
            "at": f"{c.at}s",
            "for": f"{c.duration}s",
            **c.random.choice([{"crash": {"zone": "zone-a"}}, {"partition": {"zone": "zone-a"}}]),
        }
    )
    return ["outage"]


def greedy_tenant(c: Cluster) -> Blame:
    name = c.names.pop()
    if c.random.random() < 0.5:
        c.workloads.append(
            {
                "name": name,
                "start": f"{c.at}s",
                "arrivals": {"count": c.count * c.cpu},
                "pods": {
                    "spec": {
                        "priorityClassName": "usual",
                        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "512Mi"}}}],
                    }
                },
            }
        )
        c.bind(c.names.pop())
        return [[f"workload {name}"]]
    made = c.deployment(name, c.count * c.cpu, "1", "512Mi", "256Mi", "usual")
    c.manifests.remove(made)
    c.bind(c.names.pop())
    return [c.event(c.at, create=made)]


def scaled_up(c: Cluster) -> Blame:
    name = c.victim()
    c.bind(c.names.pop())
    return [c.patch(name, {"spec": {"replicas": c.count * c.cpu * 3}})]


def priority_misuse(c: Cluster) -> Blame:
    name = c.names.pop()
    made = c.deployment(name, c.count * c.cpu, "1500m", "512Mi", "256Mi", "vital")
    c.manifests.remove(made)
    return [c.event(c.at, create=made)]


def budget_that_allows_nothing(c: Cluster) -> Blame:
    name = c.names.pop()
    c.deployment(name, c.count, "200m", "256Mi", "128Mi", "usual")
    c.budget(name, c.count, "minAvailable")
    drains = [
        c.event(c.at + 20 * number, drain={"node": f"a-node-{number + 1}", "ignoreDaemonSets": True})
        for number in range(4)
    ]
    del drains
    return [f"PodDisruptionBudget {name}"]


def full_disk_of_nodes(c: Cluster) -> Blame:
    for kubelet in c.kubelet.values():  # a threshold of memory alone leaves full disks alone
        kubelet["mergeDefaultEvictionSettings"] = True
    usage = "memory: 100Mi\nlogs: {ramp: {from: 10Mi, to: 108Gi, over: 200s}}"
    return [c.patch(c.victim(), _template(usage=usage))]


def full_disk_of_the_store(c: Cluster) -> Blame:
    c.bind(c.names.pop())
    c.chaos.append(
        {"id": "full", "at": f"{c.at}s", "for": f"{c.random.randint(100, 300)}s", "diskFull": {"actor": "store"}}
    )
    return ["full"]


def slow_api_server(c: Cluster) -> Blame:
    c.bind(c.names.pop())
    seconds = c.random.randint(3, 8)
    fault = c.random.choice(
        [
            {"delay": {"from": "apiserver/*", "to": "*", "by": f"{seconds}s"}},
            {"slowDisk": {"actor": "store", "fsync": f"{seconds}s"}},
            {"pause": {"actor": "apiserver/0"}},
        ]
    )
    c.chaos.append({"id": "slow", "at": f"{c.at}s", "for": "200s", **fault})
    return ["slow"]


def scheduler_killed(c: Cluster) -> Blame:
    c.bind(c.names.pop())
    c.chaos.append(
        {
            "id": "kill",
            "at": f"{c.at}s",
            "for": f"{c.random.randint(150, 400)}s",
            "crash": {"actor": "scheduler/default-scheduler/0"},
        }
    )
    return ["kill"]


def low_quota(c: Cluster) -> Blame:
    name = c.victim()
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "limits"},
        "spec": {"hard": {"pods": "5"}},
    }
    made = c.event(c.at, create=quota)
    c.patch(name, {"spec": {"template": {"metadata": {"annotations": {"version": "next"}}}}}, at=c.at + 30)
    c.bind(c.names.pop())
    return [[made, "ResourceQuota limits"]]


def admission_outage(c: Cluster) -> Blame:
    name = c.names.pop()
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [
                {
                    "expression": "has(object.metadata.labels) && 'team' in object.metadata.labels",
                    "message": "a team is needed",
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    first = c.event(c.at, create=policy)
    second = c.event(c.at, create=binding)
    c.bind(c.names.pop())
    c.patch(c.victim(), {"spec": {"template": {"metadata": {"annotations": {"version": "next"}}}}}, at=c.at + 30)
    return [[first, second]]


def tainted_nodes(c: Cluster) -> Blame:
    made = [
        c.event(
            c.at,
            taint={
                "node": f"{'abc'[zone]}-node-{number + 1}",
                "key": "maintenance",
                "value": "yes",
                "effect": "NoExecute",
            },
        )
        for zone in range(c.zones)
        for number in range(c.count // c.zones - 2)
    ]
    return [made]


def drained_zone(c: Cluster) -> Blame:
    made = c.event(
        c.at, drain={"selector": "topology.kubernetes.io/zone=zone-a", "atOnce": 10, "ignoreDaemonSets": True}
    )
    c.bind(c.names.pop())
    for name in c.victims:
        next(one for one in c.manifests if one["metadata"]["name"] == name)["spec"]["template"]["spec"].setdefault(
            "nodeSelector", {"topology.kubernetes.io/zone": "zone-a"}
        )
    return [made]


def tight_spread(c: Cluster) -> Blame:
    name = c.victim()
    key = c.random.choice(["topology.kubernetes.io/zone", "kubernetes.io/hostname"])
    rule = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": key}
    more = c.count * 2 if key.startswith("kubernetes") else 12
    return [
        c.patch(
            name,
            {
                "spec": {
                    "replicas": more,
                    "template": {
                        "spec": {
                            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
                        }
                    },
                }
            },
        )
    ]


def wrong_selector(c: Cluster) -> Blame:
    return [c.patch(c.victim(), {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}})]


def nodes_removed(c: Cluster) -> Blame:
    c.bind(c.names.pop())
    c.deployment(name := c.names.pop(), c.count * 2, f"{c.cpu * 300}m", "256Mi", "128Mi", "usual")
    c.victims.append(name)
    return [
        [
            c.event(c.at, removeNode={"node": f"{'abc'[zone]}-node-{number + 1}"})
            for zone in range(c.zones)
            for number in range(c.count // c.zones // 2)
        ]
    ]


def dead_controller(c: Cluster) -> Blame:
    c.chaos.append({"id": "gone", "at": f"{c.at}s", "for": "2000s", "crash": {"actor": "controller/replicaset"}})
    name = c.victim()
    c.patch(name, {"spec": {"replicas": c.replicas(name) + 15}}, at=c.at + 20)
    return ["gone"]


def paused_kubelets(c: Cluster) -> Blame:
    c.chaos.append({"id": "stuck", "at": f"{c.at}s", "for": "300s", "pause": {"actor": "kubelet/*", "share": 0.4}})
    c.bind(c.names.pop())
    return ["stuck"]


def two_at_once(c: Cluster) -> Blame:
    first, second = c.random.sample([bad_image, bad_rollout, scheduler_killed, limit_too_low, wrong_selector], 2)
    found = first(c)
    if first is not scheduler_killed and second is not scheduler_killed:
        c.victims.remove(c.events[-1]["patch"]["name"])
    c.at += c.random.randint(0, 60)
    return [*found, *second(c)]


NAMED: tuple[Callable[[Cluster], Blame], ...] = (
    bad_rollout, leak, wrong_request, lost_zone, greedy_tenant, budget_that_allows_nothing, full_disk_of_nodes,
    full_disk_of_the_store, slow_api_server, two_at_once,
)  # fmt: skip
OTHERS: tuple[Callable[[Cluster], Blame], ...] = (
    bad_image, bad_probe, leaking_agent, limit_too_low, wrong_request_from_the_start, scaled_up, priority_misuse,
    scheduler_killed, low_quota, admission_outage, tainted_nodes, drained_zone, tight_spread, wrong_selector,
    nodes_removed, dead_controller, paused_kubelets,
)  # fmt: skip
ALL = NAMED + OTHERS


def incident(seed: int, kind: str = "", size: tuple[int, int] = (20, 60)) -> Incident:
    """The kind follows from the seed unless it is given. ``size``: least and greatest number of nodes."""
    make = next((one for one in ALL if one.__name__ == kind), ALL[seed % len(ALL)])
    cluster = Cluster(seed, make.__name__, size)
    found = make(cluster)
    name = f"incident-{seed}"
    scenario = cluster.scenario(name)
    places = {id(event): index for index, event in enumerate(cluster.events)}
    planted = []
    for one in found:
        blamed = Planted()
        for part in one if isinstance(one, list) else [one]:
            if isinstance(part, dict):
                blamed.events.add(places[id(part)])
            elif " " in part:
                blamed.names.add(part)
            else:
                blamed.faults.add(part)
        planted.append(blamed)
    return Incident(seed, make.__name__, scenario, planted)


def main() -> None:
    made = incident(int(sys.argv[1]))
    text = yaml.safe_dump(made.scenario, sort_keys=False)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(text)
    print(made.kind, made.planted) if len(sys.argv) > 2 else print(text)


if __name__ == "__main__":
    main()
