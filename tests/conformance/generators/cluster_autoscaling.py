"""Small clusters for the cluster autoscaler: groups of machines, waiting pods, nodes that are hardly used, failures."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]

FAMILIES = ("scale-up", "scale-down", "scaling", "stated")
"""``stated``: the worlds of the autoscaler's own unit tests, one after the other, whatever the seed."""
ZONES = ("a", "b")
POOL = "kops.k8s.io/instancegroup"
"""Groups that differ only in this label are alike."""
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def case(family: str, seed: int, number: int) -> Json:
    if family == "stated":
        return _stated(number)
    draw = random.Random(f"{family} {seed} {number}")
    return {"id": f"{family}-s{seed}-{number:05}", "family": family, **_MAKERS[family](draw)}


def _scale_up(draw: random.Random) -> Json:
    """One look, or a few that follow at once."""
    groups = [_group(draw, name) for name in "abcd"[: draw.choice([1, 2, 2, 3, 4])]]
    nodes = _nodes(draw, groups, [0, 0, 1, 1, 2])
    pods = [pod for node in nodes for pod in _running(draw, node, draw.choice([0, 1, 2]))]
    pods += _pending(draw, groups)
    settings = _up_settings(draw, groups)
    settings["scaleDown"] = {"enabled": draw.random() < 0.3}
    after = [0, *draw.choice([[], [], [1], [10], [10, 10], [11, 30]])]
    return _case(draw, settings, groups, nodes, pods, after)


def _scale_down(draw: random.Random) -> Json:
    """Looks until what is unneeded is gone."""
    groups = [_group(draw, name) for name in "abc"[: draw.choice([1, 1, 2, 3])]]
    nodes = _nodes(draw, groups, [1, 2, 3, 4])
    if draw.random() < 0.2:
        nodes.append(_node(draw, draw.choice(groups), "own", ""))
    pods = [pod for node in nodes for pod in _running(draw, node, draw.choice([0, 0, 1, 2, 3]), hard=True)]
    if draw.random() < 0.2:
        pods += _pending(draw, groups)
    settings = {"scaleDown": _down_settings(draw)}
    looks = draw.choice([2, 3, 5, 8])
    after = [0] + [draw.choice([1, 10, 10, 10, 11, 60, 299, 300, 301, 600, 601, 1200, 1201]) for _ in range(looks)]
    made = _case(draw, settings, groups, nodes, pods, after)
    for node in nodes:
        if draw.random() < 0.12:
            node["ready"] = [{"from": draw.randrange(len(after)), "is": False}]
            if draw.random() < 0.4:
                node["ready"].append({"from": draw.randrange(node["ready"][0]["from"], len(after)) + 1, "is": True})
    return made


def _scaling(draw: random.Random) -> Json:
    """Up and down over time, with machines that do not come."""
    groups = [_group(draw, name) for name in "abc"[: draw.choice([1, 2, 2, 3])]]
    looks = draw.choice([6, 10, 16])
    for group in groups:
        group["registerS"] = draw.choice([1, 5, 25, 60, 200])
        group["readyS"] = draw.choice([0, 0, 5, 30, 1000])
        group["removeS"] = draw.choice([0, 0, 25])
        if draw.random() < 0.5:
            begin = draw.choice([0, 0, 0, 2, 4])
            kind = draw.choice(["error", "out-of-resources", "never-registers"])
            group["fails"] = [{"kind": kind, "from": begin, "until": begin + draw.choice([1, 3, 20])}]
    nodes = _nodes(draw, groups, [0, 1, 2])
    pods = [pod for node in nodes for pod in _running(draw, node, draw.choice([0, 1, 2]), hard=draw.random() < 0.3)]
    pods += _pending(draw, groups)
    for pod in pods:
        if draw.random() < 0.4:
            pod["until"] = draw.randrange(1, looks + 1)
        if not pod["pod"]["spec"].get("nodeName") and draw.random() < 0.3:
            pod["from"] = draw.randrange(looks)
            pod["until"] = max(pod.get("until", looks + 1), pod["from"] + 1)
    settings = _up_settings(draw, groups)
    settings["scaleDown"] = _down_settings(draw)
    if draw.random() < 0.5:
        settings["maxNodeProvisionTime"] = draw.choice(["30s", "100s", "300s"])
    if draw.random() < 0.3:
        settings["maxNodeStartupTime"] = draw.choice(["20s", "120s"])
    if draw.random() < 0.3:
        settings["okTotalUnreadyCount"] = draw.choice([0, 1])
    if draw.random() < 0.3:
        settings |= {"initialNodeGroupBackoff": "60s", "maxNodeGroupBackoff": draw.choice(["60s", "200s"])}
    if draw.random() < 0.2:
        settings["nodeGroupBackoffReset"] = "400s"
    after = [0] + [draw.choice([1, 10, 10, 10, 11, 20, 60, 121, 300, 301, 700, 901]) for _ in range(looks)]
    made = _case(draw, settings, groups, nodes, pods, after)
    for node in nodes:
        if draw.random() < 0.15:
            node["ready"] = [{"from": draw.randrange(len(after)), "is": False}]
    return made


_MAKERS = {"scale-up": _scale_up, "scale-down": _scale_down, "scaling": _scaling}


def _case(
    draw: random.Random, settings: Json, groups: list[Json], nodes: list[Json], pods: list[Json], after: list[int]
) -> Json:
    for pod in pods:
        pod.setdefault("until", len(after))
    pods.sort(key=lambda pod: int(pod["from"]))
    # It taints and waits, so that what follows falls between two looks.
    settings.setdefault("scaleDown", {})["deleteDelayAfterTaint"] = "5250ms"
    return {
        "settings": settings,
        "groups": groups,
        "nodes": nodes,
        "pods": pods,
        "afterS": after,
        "replicaSets": [
            {
                "metadata": {"name": f"rs-{index}", "namespace": "default", "uid": f"rs-{index}"},
                "spec": {"replicas": index},
            }
            for index in range(1, 5)
        ],
        "jobs": [{"metadata": {"name": "job", "namespace": "default", "uid": "job"}}],
        "daemonSets": _daemon_sets(draw, pods),
        "budgets": _budgets(draw),
    }


def _up_settings(draw: random.Random, groups: list[Json]) -> Json:
    settings: Json = {}
    expander = draw.choice(
        [
            "",
            "",
            "least-waste",
            "most-pods",
            "least-nodes",
            "price",
            "price",
            "priority",
            "most-pods,least-waste",
            "least-nodes,price",
        ]
    )
    if expander:
        settings["expander"] = expander
    if "priority" in expander:
        names = [group["name"] for group in groups]
        settings["priorities"] = {
            str(draw.choice([1, 10, 50])): [f"^{draw.choice(names)}$"],
            "5": draw.choice([[".*"], ["^a", "b$"], ["nothing"]]),
        }
    if draw.random() < 0.3:
        settings["balanceSimilarNodeGroups"] = True
    if draw.random() < 0.15:
        settings["maxNodesTotal"] = draw.choice([2, 3, 5, 8])
    if draw.random() < 0.15:
        settings["maxNodesPerScaleUp"] = draw.choice([1, 2, 3])
    if draw.random() < 0.15:
        settings["enforceNodeGroupMinSize"] = True
    if draw.random() < 0.1:
        settings["scaleUpFromZero"] = False
    if draw.random() < 0.1:
        settings["forceDaemonSets"] = True
    if draw.random() < 0.1:
        settings["newPodScaleUpDelay"] = draw.choice(["5s", "30s"])
    if draw.random() < 0.15:
        settings["cutOff"] = draw.choice([-100, 0, 10])
    return settings


def _down_settings(draw: random.Random) -> Json:
    settings: Json = {}
    for name, chance, values in (
        ("delayAfterAdd", 0.6, ["0s", "0s", "30s", "300s"]),
        ("delayAfterDelete", 0.2, ["10s", "60s"]),
        ("unneededTime", 0.6, ["0s", "10s", "60s", "300s"]),
        ("unreadyTime", 0.3, ["0s", "60s"]),
        ("utilizationThreshold", 0.3, [0.2, 0.25, 0.7, 1.0]),
        ("unreadyEnabled", 0.15, [False]),
        ("unremovableRecheckTime", 0.3, ["0s", "10s", "60s"]),
        ("ignoreDaemonSetsUtilization", 0.2, [True]),
        ("skipNodesWithSystemPods", 0.2, [False]),
        ("skipNodesWithLocalStorage", 0.2, [False]),
        ("skipNodesWithCustomControllerPods", 0.2, [False]),
        ("systemPodDisruptionTime", 0.2, ["60s", "0s"]),
        ("minReplicaCount", 0.2, [1, 2, 3]),
        ("maxParallelism", 0.2, [1, 2]),
        ("maxDrainParallelism", 0.2, [2, 5]),
        ("cordon", 0.15, [False]),
        ("daemonSetEvictionForEmptyNodes", 0.15, [True]),
        ("daemonSetEvictionForOccupiedNodes", 0.15, [False]),
        ("maxBulkSoftTaints", 0.1, [1, 0]),
    ):
        if draw.random() < chance:
            settings[name] = draw.choice(values)
    return settings


def _group(draw: random.Random, name: str) -> Json:
    cpu, memory = draw.choice(
        [("2", "4Gi"), ("2", "4Gi"), ("4", "8Gi"), ("4", "16Gi"), ("4", "16200Mi"), ("1930m", "7Gi")]
    )
    amounts = {"cpu": cpu, "memory": memory, "pods": draw.choice(["110", "110", "5"])}
    labels = {POOL: name, "disk": draw.choice(["ssd", "ssd", "hdd"]), "topology.kubernetes.io/zone": draw.choice(ZONES)}
    least = draw.choice([0, 0, 0, 1, 2])
    node: Json = {"metadata": {"labels": labels}, "status": {"allocatable": amounts, "capacity": dict(amounts)}}
    if draw.random() < 0.2:
        node["spec"] = {"taints": [{"key": "for", "value": draw.choice(["x", "y"]), "effect": "NoSchedule"}]}
    return {
        "name": name,
        "min": least,
        "max": max(least, draw.choice([1, 2, 3, 5, 10, 10])),
        "price": draw.choice([0.1, 0.2, 0.25, 0.4, 1.0]),
        "template": node,
        "registerS": draw.choice([5, 30]),
        "readyS": draw.choice([0, 20]),
        "removeS": 0,
    }


def _nodes(draw: random.Random, groups: list[Json], counts: list[int]) -> list[Json]:
    found = []
    for group in groups:
        names = [f"{group['name']}-{index}" for index in range(min(draw.choice(counts), group["max"]))]
        found += [_node(draw, group, name, group["name"]) for name in names]
    return found


def _node(draw: random.Random, like: Json, name: str, group: str) -> Json:
    template = like["template"]
    metadata: Json = {
        "name": name,
        "uid": name,
        "labels": {**template["metadata"]["labels"], "kubernetes.io/hostname": name},
    }
    if draw.random() < 0.06:
        metadata["annotations"] = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    node: Json = {"metadata": metadata, "status": {key: dict(value) for key, value in template["status"].items()}}
    if "spec" in template:
        node["spec"] = {"taints": [dict(taint) for taint in template["spec"]["taints"]]}
    if draw.random() < 0.04:
        node.setdefault("spec", {})["unschedulable"] = True
    if draw.random() < 0.08:
        key = draw.choice(
            ["startup-taint.cluster-autoscaler.kubernetes.io/x", "node.kubernetes.io/memory-pressure", "other"]
        )
        node.setdefault("spec", {}).setdefault("taints", []).append({"key": key, "effect": "NoSchedule"})
    return {"group": group, "node": node, "ageS": draw.choice([30, 61, 100, 1000, 10000])}


def _pod(draw: random.Random, name: str, namespace: str, owner: tuple[str, str] | None) -> Json:
    cpu = draw.choice(["0", "100m", "200m", "500m", "500m", "1", "1500m", "3"])
    memory = draw.choice(["64Mi", "256Mi", "1Gi", "1Gi", "2Gi", "5Gi"])
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "labels": {}}
    if owner is not None:
        kind, owned = owner
        group = {"Job": "batch/v1", "Custom": "example.com/v1"}.get(kind, "apps/v1")
        metadata["ownerReferences"] = [
            {"apiVersion": group, "kind": kind, "name": owned, "uid": owned, "controller": True}
        ]
        metadata["labels"]["app"] = owned
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "metadata": metadata,
        "spec": {"containers": [container], "restartPolicy": "Always", "schedulerName": "default-scheduler"},
        "status": {"phase": "Running"},
    }


def _running(draw: random.Random, node: Json, count: int, *, hard: bool = False) -> list[Json]:
    """Pods on a node; ``hard``: some of them keep it."""
    found = []
    on = node["node"]["metadata"]["name"]
    taints = node["node"].get("spec", {}).get("taints", [])
    for index in range(count):
        owner: tuple[str, str] | None = draw.choice(
            [
                ("ReplicaSet", "rs-1"),
                ("ReplicaSet", "rs-2"),
                ("ReplicaSet", "rs-3"),
                ("Job", "job"),
                ("DaemonSet", "ds-0"),
            ]
        )
        if hard and draw.random() < 0.1:
            owner = draw.choice(
                [None, ("Custom", "c"), ("ReplicaSet", "gone"), ("StatefulSet", "set"), ("Job", "gone")]
            )
        namespace = "kube-system" if hard and draw.random() < 0.06 else "default"
        pod = _pod(draw, f"{on}-p{index}", namespace, owner)
        spec, metadata = pod["spec"], pod["metadata"]
        spec["nodeName"] = on
        if taints:
            spec["tolerations"] = [{"operator": "Exists"}]
        if draw.random() < 0.15:
            spec["priority"] = draw.choice([-20, -10, 0, 1000])
        one: Json = {"pod": pod, "ageS": draw.choice([5, 100, 4000]), "from": 0}
        if hard:
            if draw.random() < 0.15:
                metadata["annotations"] = {SAFE: draw.choice(["true", "false", "false", "on-completion", "maybe"])}
            if draw.random() < 0.12:
                spec["volumes"] = [
                    {
                        "name": "v",
                        **draw.choice(
                            [{"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}}, {"hostPath": {"path": "/"}}]
                        ),
                    }
                ]
                if draw.random() < 0.3:
                    metadata.setdefault("annotations", {})[
                        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
                    ] = draw.choice(["v", "w,v", "w"])
            if draw.random() < 0.05:
                metadata.setdefault("annotations", {})["kubernetes.io/config.mirror"] = "x"
                metadata["annotations"]["kubernetes.io/config.source"] = "file"
                metadata.pop("ownerReferences", None)
            if draw.random() < 0.05:
                one["deletedAgoS"] = draw.choice([1, 20, 59, 61, 200])
            if draw.random() < 0.06:
                metadata.setdefault("annotations", {})["cluster-autoscaler.kubernetes.io/enable-ds-eviction"] = (
                    draw.choice(["true", "false"])
                )
            if draw.random() < 0.06:
                metadata.setdefault("annotations", {})["cluster-autoscaler.kubernetes.io/daemonset-pod"] = "true"
            _constrain(draw, spec, metadata, 0.2)
        found.append(one)
    return found


def _constrain(draw: random.Random, spec: Json, metadata: Json, chance: float) -> None:
    """Where the pod may run."""
    app = {"matchLabels": {"app": metadata["labels"].get("app", "none")}}
    if draw.random() < chance:
        spec["nodeSelector"] = draw.choice(
            [{"disk": "ssd"}, {"disk": "hdd"}, {"topology.kubernetes.io/zone": "a"}, {POOL: "a"}, {"disk": "tape"}]
        )
    if draw.random() < chance / 2:
        term = {
            "labelSelector": app,
            "topologyKey": draw.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        }
        kind = draw.choice(["podAntiAffinity", "podAntiAffinity", "podAffinity"])
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if draw.random() < chance / 2:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draw.choice([1, 1, 2]),
                "topologyKey": draw.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
                "whenUnsatisfiable": draw.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
                "labelSelector": app,
            }
        ]
    if draw.random() < chance / 3:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def _pending(draw: random.Random, groups: list[Json]) -> list[Json]:
    found = []
    left = 12  # Go sorts no more of them stably.
    for kind in range(draw.choice([1, 2, 3, 3])):
        owner = draw.choice(
            [("ReplicaSet", "rs-3"), ("ReplicaSet", "rs-4"), ("Job", "job"), None, ("DaemonSet", "ds-0")]
        )
        one = _pod(draw, "", "default", owner)
        spec, metadata = one["spec"], one["metadata"]
        metadata["labels"].setdefault("app", "lone")
        _constrain(draw, spec, metadata, 0.3)
        if draw.random() < 0.3:
            spec["tolerations"] = [
                {"key": "for", "operator": "Equal", "value": draw.choice(["x", "y"]), "effect": "NoSchedule"}
            ]
        if draw.random() < 0.25:
            spec["priority"] = draw.choice([-1000, -11, -10, -1, 0, 5, 1000])
        if draw.random() < 0.07:
            metadata["annotations"] = {
                "cluster-autoscaler.kubernetes.io/pod-scale-up-delay": draw.choice(["20s", "3s", "never"])
            }
        one["status"] = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        }
        if draw.random() < 0.05:
            one["status"] = {"phase": "Pending"}
        elif draw.random() < 0.05:
            one["status"]["nominatedNodeName"] = f"{draw.choice(groups)['name']}-0"
        count = min(left, draw.choice([1, 1, 2, 3, 5, 8, 12]))
        left -= count
        for index in range(count):
            name = f"wait-{kind}-{index}"
            copy = {**one, "metadata": {**metadata, "name": name, "uid": f"default/{name}"}}
            found.append({"pod": copy, "ageS": draw.choice([1, 3, 10, 10, 100]), "from": 0})
    return found


def _daemon_sets(draw: random.Random, pods: list[Json]) -> list[Json]:
    """The one that running pods may name, and perhaps another."""
    found = []
    for index in range(draw.choice([1, 1, 2])):
        spec: Json = {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
        }
        if draw.random() < 0.3:
            spec["nodeSelector"] = {"disk": "ssd"}
        if index and draw.random() < 0.3:
            spec["priorityClassName"] = "system-node-critical"
        labels = {"app": f"ds-{index}"}
        found.append(
            {
                "metadata": {"name": f"ds-{index}", "namespace": "default", "uid": f"ds-{index}"},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            }
        )
    return found


def _budgets(draw: random.Random) -> list[Json]:
    return [
        {
            "metadata": {"name": f"budget-{app}", "namespace": draw.choice(["default"] * 5 + ["kube-system"])},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": draw.choice([0, 0, 1, 2])},
        }
        for app in draw.sample(["rs-1", "rs-2", "rs-3", "job", "ds-0"], draw.choice([0, 1, 1, 2]))
    ]


def _stated(number: int) -> Json:
    """Which pods may be drained (``simulator/drain_test.go``), which nodes may go (``simulator/cluster_test.go``,
    ``core/scaledown/eligibility``), how many nodes pods need (``estimator/binpacking_estimator_test.go``)."""
    worlds = [*_drains(), *_removals(), *_estimates()]
    name, settings, world = worlds[number % len(worlds)]
    made = _case(random.Random(name), settings, world["groups"], world["nodes"], world["pods"], [0, 10, 10])
    of_system = {"metadata": {"name": "rs-3", "namespace": "kube-system", "uid": "rs-3"}, "spec": {"replicas": 3}}
    made["replicaSets"].append(of_system)
    if name.startswith("estimate-"):
        made["daemonSets"] = []
    return {"id": f"stated-{name}", "family": "stated", **made, "budgets": world.get("budgets", [])}


_DOWN: Json = {"delayAfterAdd": "0s", "unneededTime": "0s"}
_LOCAL = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_RS = ("ReplicaSet", "rs-3")


def _of_group(name: str, amounts: Json, least: int = 0, most: int = 20) -> Json:
    labels = {POOL: name, "topology.kubernetes.io/zone": "a"}
    status = {"allocatable": amounts, "capacity": dict(amounts)}
    ages = {"registerS": 5, "readyS": 0, "removeS": 0}
    template = {"metadata": {"labels": labels}, "status": status}
    return {"name": name, "min": least, "max": most, "price": 1.0, "template": template, **ages}


def _on(group: Json, name: str, *, annotations: Json | None = None) -> Json:
    template = group["template"]
    labels = {**template["metadata"]["labels"], "kubernetes.io/hostname": name}
    metadata: Json = {"name": name, "uid": name, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    status = {key: dict(value) for key, value in template["status"].items()}
    return {"group": group["name"], "node": {"metadata": metadata, "status": status}, "ageS": 10000}


def _placed(
    node: str,
    name: str,
    owner: tuple[str, str] | None = _RS,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    namespace: str = "default",
    annotations: Json | None = None,
    spec: Json | None = None,
    status: Json | None = None,
    **more: Any,
) -> Json:
    made = _pod(random.Random(name), name, namespace, owner)
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu, "memory": memory}
    made["spec"] |= {"nodeName": node, **(spec or {})}
    made["status"] |= status or {}
    if annotations:
        made["metadata"]["annotations"] = annotations
    return {"pod": made, "ageS": 4000, "from": 0, **more}


def _world(*pods: Json, budgets: Any = ()) -> Json:
    """Two nodes; one keeps what is on it, and has room for the pods of the other, of which it is asked."""
    group = _of_group("a", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    stays = _placed("a-1", "stays", cpu="2500m", annotations={SAFE: "false"})
    nodes = [_on(group, "a-0"), _on(group, "a-1")]
    return {"groups": [group], "nodes": nodes, "pods": [stays, *pods], "budgets": list(budgets)}


def _budget(app: str, allowed: int, namespace: str = "default") -> Json:
    return {
        "metadata": {"name": "budget", "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _drains() -> list[tuple[str, Json, Json]]:
    empty = {"volumes": [{"name": name, "emptyDir": {}} for name in ("one", "two")]}
    mirror = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
    system = {"namespace": "kube-system"}
    pods: dict[str, Json] = {
        "nobody-s": {"owner": None},
        "replica-set": {},
        "replica-set-gone": {"owner": ("ReplicaSet", "gone")},
        "too-few-replicas": {"owner": ("ReplicaSet", "rs-1"), "settings": {"minReplicaCount": 2}},
        "enough-replicas": {"owner": ("ReplicaSet", "rs-2"), "settings": {"minReplicaCount": 2}},
        "mirror": {"owner": None, "annotations": mirror},
        "daemon-set": {"owner": ("DaemonSet", "ds-0")},
        "custom-daemon-set": {"owner": ("Custom", "c"), "annotations": {f"{_PREFIX}daemonset-pod": "true"}},
        "custom-controller": {"owner": ("Custom", "c")},
        "custom-controller-allowed": {
            "owner": ("Custom", "c"),
            "settings": {"skipNodesWithCustomControllerPods": False},
        },
        "job": {"owner": ("Job", "job")},
        "job-gone": {"owner": ("Job", "gone")},
        "stateful-set-gone": {"owner": ("StatefulSet", "set")},
        "system": system,
        "system-young": {**system, "ageS": 10, "settings": {"systemPodDisruptionTime": "60s"}},
        "system-old": {**system, "settings": {"systemPodDisruptionTime": "60s"}},
        "system-allowed": {**system, "settings": {"skipNodesWithSystemPods": False}},
        "system-safe": {**system, "annotations": {SAFE: "true"}},
        "system-budget": {**system, "budgets": [_budget("rs-3", 1, "kube-system")]},
        "system-budget-spent": {**system, "budgets": [_budget("rs-3", 0, "kube-system")]},
        "system-budget-of-others": {**system, "budgets": [_budget("rs-2", 1, "kube-system")]},
        "system-budget-elsewhere": {**system, "budgets": [_budget("rs-3", 1)]},
        "budget-of-system": {"budgets": [_budget("rs-3", 0, "kube-system")]},
        "budget": {"budgets": [_budget("rs-3", 1)]},
        "budget-spent": {"budgets": [_budget("rs-3", 0)]},
        "budget-of-others": {"budgets": [_budget("rs-2", 0)]},
        "local": {"spec": empty},
        "local-allowed": {"spec": empty, "settings": {"skipNodesWithLocalStorage": False}},
        "local-in-memory": {"spec": {"volumes": [{"name": "one", "emptyDir": {"medium": "Memory"}}]}},
        "local-host-path": {"spec": {"volumes": [{"name": "one", "hostPath": {"path": "/"}}]}},
        "not-local": {"spec": {"volumes": [{"name": "one", "gitRepo": {"repository": "one"}}]}},
        "local-safe": {"spec": empty, "annotations": {SAFE: "true"}},
        **{
            f"local-{name}": {"spec": empty, "annotations": {_LOCAL: volumes}}
            for name, volumes in (
                ("all", "one,two"),
                ("some", "one"),
                ("others", "x,y"),
                ("empty", ""),
                ("more", "x,two,one"),
            )
        },
        "ended-long-ago": {"deletedAgoS": 3600},
        "ends-long": {"deletedAgoS": 100},
        "ends": {"deletedAgoS": 20},
        "ends-long-without-grace": {"owner": None, "deletedAgoS": 61, "spec": {"terminationGracePeriodSeconds": 0}},
        "ends-with-much-grace": {"owner": None, "deletedAgoS": 100, "spec": {"terminationGracePeriodSeconds": 300}},
        "failed": {"owner": None, "spec": {"restartPolicy": "OnFailure"}, "status": {"phase": "Failed"}},
        "failed-restarts": {"owner": None, "status": {"phase": "Failed"}},
        "evicted": {"owner": None, "status": {"phase": "Failed", "reason": "Evicted"}},
        "succeeded": {"owner": None, "spec": {"restartPolicy": "OnFailure"}, "status": {"phase": "Succeeded"}},
        "safe": {"owner": None, "annotations": {SAFE: "true"}},
        "not-safe": {"annotations": {SAFE: "false"}},
        "not-safe-daemon": {"owner": ("DaemonSet", "ds-0"), "annotations": {SAFE: "false"}},
        "not-safe-job": {"owner": ("Job", "job"), "annotations": {SAFE: "false"}},
        "on-completion": {"annotations": {SAFE: "on-completion"}},
        "on-completion-nobody-s": {"owner": None, "annotations": {SAFE: "on-completion"}},
        "on-completion-failed": {"annotations": {SAFE: "on-completion"}, "status": {"phase": "Failed"}},
    }
    found = []
    for name, stated in pods.items():
        pod = {"owner": _RS, **{key: value for key, value in stated.items() if key not in ("settings", "budgets")}}
        settings = {"scaleDown": {**_DOWN, **stated.get("settings", {})}}
        world = _world(_placed("a-0", "asked", pod.pop("owner"), **pod), budgets=stated.get("budgets", ()))
        found.append((f"drain-{name}", settings, world))
    return found


_PREFIX = "cluster-autoscaler.kubernetes.io/"


def _removals() -> list[tuple[str, Json, Json]]:
    small = {"cpu": "1", "memory": "1000Mi", "pods": "10"}

    def world(*pods: Json, count: int = 2, least: int = 0, **more: Any) -> Json:
        group = _of_group("a", dict(small), least)
        return {"groups": [group], "nodes": [_on(group, f"a-{one}", **more) for one in range(count)], "pods": [*pods]}

    def down(**more: Any) -> Json:
        return {"scaleDown": {**_DOWN, **more}}

    full = _placed("a-1", "full", cpu="950m", annotations={SAFE: "false"})
    half, less = _placed("a-0", "half", cpu="500m"), _placed("a-0", "less", cpu="490m")
    of_daemon = _placed("a-0", "daemon", ("DaemonSet", "ds-0"), cpu="400m")
    disabled = {f"{_PREFIX}scale-down-disabled": "true"}
    return [
        ("removal-nothing-on-it", down(), world(count=1)),
        ("removal-nothing-on-them", down(), world(count=3)),
        ("removal-least", down(), world(count=3, least=2)),
        ("removal-no-room", down(), world(full, _placed("a-0", "moves", cpu="100m"))),
        ("removal-room", down(), world(full, _placed("a-0", "moves", cpu="50m"))),
        ("removal-no-room-beside-an-empty-one", down(), world(full, _placed("a-0", "moves", cpu="100m"), count=3)),
        ("removal-half", down(), world(half, count=3)),
        ("removal-less-than-half", down(), world(less, count=3)),
        ("removal-at-a-threshold", down(utilizationThreshold=0.5), world(half, count=3)),
        ("removal-memory", down(), world(_placed("a-0", "large", memory="501Mi"), count=3)),
        ("removal-daemons-count", down(), world(of_daemon, _placed("a-0", "other", cpu="200m"), count=3)),
        (
            "removal-daemons-do-not-count",
            down(ignoreDaemonSetsUtilization=True),
            world(of_daemon, _placed("a-0", "other", cpu="200m"), count=3),
        ),
        ("removal-disabled", down(), world(count=2, annotations=disabled)),
        ("removal-not-yet", down(unneededTime="60s"), world(count=2)),
        (
            "removal-two-for-one-room",
            down(maxDrainParallelism=2, maxParallelism=2),
            world(
                _placed("a-0", "one", cpu="400m"),
                _placed("a-1", "two", cpu="400m"),
                _placed("a-2", "three", cpu="450m"),
                count=3,
            ),
        ),
    ]


def _estimates() -> list[tuple[str, Json, Json]]:
    def world(cpu: str, memory: str, *kinds: tuple[int, Json]) -> Json:
        group = _of_group("a", {"cpu": cpu, "memory": memory, "pods": "10"})
        other = _of_group("old", {"cpu": "100m", "memory": "100Mi", "pods": "10"})
        old = {**_on(other, "old"), "group": ""}
        old["node"]["metadata"]["labels"]["topology.kubernetes.io/zone"] = "b"
        pods = []
        for kind, (count, pod) in enumerate(kinds):
            for index in range(count):
                made = _placed("", f"wait-{kind}-{index}", ("ReplicaSet", f"rs-{kind + 3}"), **pod)
                del made["pod"]["spec"]["nodeName"]
                unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                made["pod"]["status"] = {"phase": "Pending", "conditions": [unschedulable]}
                pods.append(made)
        return {"groups": [group], "nodes": [old], "pods": pods}

    def spread(skew: int, key: str, domains: int) -> Json:
        app = {"matchLabels": {"app": "rs-3"}}
        limit = {"maxSkew": skew, "topologyKey": key, "minDomains": domains, "whenUnsatisfiable": "DoNotSchedule"}
        return {"spec": {"topologySpreadConstraints": [{**limit, "labelSelector": app}]}}

    def of(cpu: str, memory: str, **more: Any) -> Json:
        return {"cpu": cpu, "memory": memory, **more}

    host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
    port = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 5555, "protocol": "TCP"}]}
    asked = {"requests": {"cpu": "200m", "memory": "1000Mi"}}
    held = {"spec": {"containers": [{**port, "resources": asked}]}}
    off: Json = {"scaleDown": {"enabled": False}}
    five = {**off, "maxNodesPerScaleUp": 5}
    return [
        ("estimate-resources", off, world("1", "2000Mi", (10, of("350m", "1000Mi")))),
        ("estimate-pods-of-a-node", off, world("10", "20000Mi", (20, of("10m", "100Mi")))),
        ("estimate-host-ports", off, world("1", "5000Mi", (8, {**of("200m", "1000Mi"), **held}))),
        ("estimate-limit", five, world("1", "5000Mi", (20, of("500m", "1000Mi")))),
        ("estimate-large-ones-first", five, world("1", "5000Mi", (6, of("50m", "1000Mi")), (6, of("500m", "1000Mi")))),
        ("estimate-spread-over-nodes", off, world("1", "5000Mi", (8, {**of("200m", "200Mi"), **spread(2, host, 1)}))),
        ("estimate-spread-over-zones", off, world("1", "5000Mi", (8, {**of("20m", "100Mi"), **spread(2, zone, 1)}))),
        ("estimate-spread-in-turns", off, world("1", "5000Mi", (12, {**of("20m", "100Mi"), **spread(1, host, 3)}))),
        ("estimate-two-kinds", off, world("1", "1000Mi", (5, of("300m", "50Mi")), (3, of("500m", "60Mi")))),
        ("estimate-too-large", off, world("1", "1000Mi", (2, of("1100m", "50Mi")), (2, of("500m", "60Mi")))),
    ]
