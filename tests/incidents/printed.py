"""Dumps of clusters in trouble, as ``kubectl`` and Prometheus print them: those of examples/incidents, and larger ones.

    python -m tests.incidents.printed examples/incidents

makes the folders there anew. Nothing is random: the same call writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
NOW = datetime(2026, 11, 27, 9, 40, tzinfo=UTC)
"""When the dumps were taken."""
_STEP_S = 60
GIB, MIB = 1 << 30, 1 << 20


@dataclass(frozen=True)
class App:
    """A Deployment, a StatefulSet or a DaemonSet of the cluster, and what its pods use."""

    namespace: str
    name: str
    replicas: int
    requests: Mapping[str, str]
    memory: Callable[[float], float]
    """Working set in bytes by seconds since the first sample."""
    cpu: float = 0.05
    """Cores."""
    limits: Mapping[str, str] = field(default_factory=dict)
    kind: str = "Deployment"
    priority: str = ""
    min_available: int = 0
    """Of its disruption budget; 0: it has none."""
    age_h: float = 200
    waiting: int = 0
    """How many of its pods have no node."""
    stagger_s: float = 0
    """By how much each pod lags behind the one before."""

    def used(self, index: int, second: float) -> int:
        """Bytes of memory, in pages."""
        return int(self.memory(second - index * self.stagger_s)) // 4096 * 4096


@dataclass
class Cluster:
    nodes: int
    memory: str
    cpu: str
    apps: Sequence[App]
    classes: Mapping[str, int] = field(default_factory=dict)
    seconds: int = 1200
    """Of the measurement."""
    lost: Sequence[str] = ()
    """Nodes that are not ready."""
    warnings: Sequence[tuple[float, float, str, str, int, str]] = ()
    """Minutes before the dump from and to, reason, object, times, message."""


def steady(amount: float) -> Callable[[float], float]:
    """It breathes by two percent, as everything that is measured does."""
    return lambda second: amount * (1 + 0.02 * ((second // 60) % 3 - 1))


def rising(low: float, high: float, begin_s: float, end_s: float) -> Callable[[float], float]:
    def at(second: float) -> float:
        return low + (high - low) * min(max((second - begin_s) / (end_s - begin_s), 0), 1)

    return at


# --- objects ----------------------------------------------------------------------------------------------------------


def objects(cluster: Cluster) -> list[Object]:
    """As ``kubectl get … -A`` lists them: kind by kind."""
    found = [_node(cluster, number) for number in range(1, cluster.nodes + 1)]
    owners: list[Object] = []
    pods: list[Object] = []
    place = 0
    for app in cluster.apps:
        template = _template(app)
        made, owner = _owners(cluster, app, template)
        owners += made
        count = cluster.nodes if app.kind == "DaemonSet" else app.replicas
        for index in range(count):
            node = "" if index >= count - app.waiting else f"worker-{place % cluster.nodes + 1}"
            if app.kind == "DaemonSet":
                node = f"worker-{index + 1}"
            elif node in cluster.lost and app.waiting:
                place, node = place + 1, f"worker-{(place + 1) % cluster.nodes + 1}"
            place += app.kind != "DaemonSet"
            pods.append(_pod(cluster, app, owner, template, index, node))
    budgets = [_budget(app) for app in cluster.apps if app.min_available]
    namespaces = [_namespace(name) for name in dict.fromkeys(app.namespace for app in cluster.apps)]
    classes = [_class(name, value) for name, value in cluster.classes.items()]
    return [*found, *pods, *owners, *budgets, *classes, *namespaces, *_events(cluster)]


def _uid(*names: object) -> str:
    digest = hashlib.sha256("/".join(map(str, names)).encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], f"4{digest[13:16]}", f"8{digest[17:20]}", digest[20:32]))


def _word(*names: object, length: int = 5) -> str:
    letters = "bcdfghjklmnpqrstvwxz2456789"
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return "".join(letters[byte % len(letters)] for byte in digest[:length])


def _time(minutes: float) -> str:
    """So long before the dump."""
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _revision(*names: object) -> str:
    return str(int(hashlib.sha256("/".join(map(str, names)).encode()).hexdigest()[:6], 16))


def _meta(kind: str, namespace: str, name: str, age_h: float, **more: Any) -> Object:
    found: Object = {"creationTimestamp": _time(age_h * 60), "name": name}
    if namespace:
        found["namespace"] = namespace
    found |= {"resourceVersion": _revision(kind, namespace, name), "uid": _uid(kind, namespace, name), **more}
    return dict(sorted(found.items()))


def _node(cluster: Cluster, number: int) -> Object:
    name = f"worker-{number}"
    zone = "abc"[number % 3]
    lost = name in cluster.lost
    memory = int(cluster.memory.removesuffix("Gi")) * GIB // 1024
    resources = {"cpu": cluster.cpu, "ephemeral-storage": "104845292Ki", "hugepages-2Mi": "0", "pods": "110"}
    since = _time(6 if lost else 9000)
    conditions = [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available", "False"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure", "False"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available", "False"),
        ("Ready", "KubeletReady", "kubelet is posting ready status", "True"),
    ]
    unknown = ("NodeStatusUnknown", "Kubelet stopped posting node status.", "Unknown")
    taints = [
        {"effect": effect, "key": "node.kubernetes.io/unreachable", "timeAdded": since}
        for effect in ("NoSchedule", "NoExecute")
    ]
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m6i.xlarge",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": f"eu-central-1{zone}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _meta(
            "Node",
            "",
            name,
            900,
            annotations={"node.alpha.kubernetes.io/ttl": "0"},
            labels=dict(sorted(labels.items())),
        ),
        "spec": {
            "podCIDR": f"10.42.{number}.0/24",
            "providerID": f"aws:///eu-central-1{zone}/i-{_uid('node', number)[:8]}",
            **({"taints": taints} if lost else {}),
        },
        "status": {
            "addresses": [
                {"address": f"10.0.{number // 250}.{number % 250 + 4}", "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": {**resources, "memory": f"{memory - 512 * 1024}Ki"},
            "capacity": {**resources, "memory": f"{memory}Ki"},
            "conditions": [
                {
                    "lastHeartbeatTime": since if lost else _time(1),
                    "lastTransitionTime": since,
                    "message": unknown[1] if lost else message,
                    "reason": unknown[0] if lost else reason,
                    "status": unknown[2] if lost else status,
                    "type": type_,
                }
                for type_, reason, message, status in conditions
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": _uid("boot", name),
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.40-generic",
                "kubeProxyVersion": "v1.36.3",
                "kubeletVersion": "v1.36.3",
                "machineID": _uid("machine", name).replace("-", ""),
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.3 LTS",
                "systemUUID": _uid("system", name),
            },
        },
    }


def _template(app: App) -> Object:
    container = {
        "image": f"registry.example.com/{app.namespace}/{app.name}:1.{len(app.name)}.0",
        "imagePullPolicy": "IfNotPresent",
        "name": app.name,
        "resources": {**({"limits": dict(app.limits)} if app.limits else {}), "requests": dict(app.requests)},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "metadata": {"labels": {"app": app.name}},
        "spec": {
            "containers": [container],
            "dnsPolicy": "ClusterFirst",
            **({"priorityClassName": app.priority} if app.priority else {}),
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
    }


def _owners(cluster: Cluster, app: App, template: Object) -> tuple[list[Object], Object]:
    """What is above the pods, and which of it owns them."""
    count = cluster.nodes if app.kind == "DaemonSet" else app.replicas
    ready = count - app.waiting
    selector = {"matchLabels": {"app": app.name}}
    meta = _meta(app.kind, app.namespace, app.name, app.age_h, generation=1, labels={"app": app.name})
    head: Object = {"apiVersion": "apps/v1", "kind": app.kind, "metadata": meta}
    if app.kind == "DaemonSet":
        status = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberReady"), count)
        update = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"}
        spec = {"revisionHistoryLimit": 10, "selector": selector, "template": template, "updateStrategy": update}
        owner = head | {"spec": spec, "status": {**status, "numberMisscheduled": 0, "observedGeneration": 1}}
        return [owner], owner
    if app.kind == "StatefulSet":
        spec = {
            "podManagementPolicy": "OrderedReady",
            "replicas": count,
            "revisionHistoryLimit": 10,
            "selector": selector,
            "serviceName": app.name,
            "template": template,
            "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
        }
        revision = f"{app.name}-{_word(app.namespace, app.name, length=10)}"
        status: Object = {"collisionCount": 0, "currentRevision": revision, "replicas": count}
        status["updateRevision"] = revision
        owner = head | {"spec": spec, "status": {**status, "observedGeneration": 1, "readyReplicas": ready}}
        return [owner], owner
    pod_hash = _word(app.namespace, app.name, length=10)
    labels = {"app": app.name, "pod-template-hash": pod_hash}
    rolling = {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"}
    counted = {"observedGeneration": 1, "readyReplicas": ready, "replicas": count}
    meta["annotations"] = {"deployment.kubernetes.io/revision": "1"}
    deployment = head | {
        "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": count,
            "revisionHistoryLimit": 10,
            "selector": selector,
            "strategy": rolling,
            "template": template,
        },
        "status": {**counted, "availableReplicas": ready, "updatedReplicas": count},
    }
    inner = {"metadata": {"labels": labels}, "spec": template["spec"]}
    name = f"{app.name}-{pod_hash}"
    owner_meta = _meta("ReplicaSet", app.namespace, name, app.age_h, generation=1, labels=labels)
    owner_meta["annotations"] = {"deployment.kubernetes.io/revision": "1"}
    owner_meta["ownerReferences"] = [_reference(deployment)]
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": owner_meta,
        "spec": {"replicas": count, "selector": {"matchLabels": labels}, "template": inner},
        "status": {**counted, "availableReplicas": ready, "fullyLabeledReplicas": count},
    }
    return [deployment, replica_set], replica_set


def _reference(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }


def _pod(cluster: Cluster, app: App, owner: Object, template: Object, index: int, node: str) -> Object:
    name = pod_name(app, index)
    labels = {"app": app.name, **owner["metadata"]["labels"]}
    revision = _word(app.namespace, app.name, length=10)
    if app.kind == "StatefulSet":
        labels |= {"apps.kubernetes.io/pod-index": str(index), "statefulset.kubernetes.io/pod-name": name}
        labels["controller-revision-hash"] = f"{app.name}-{revision}"
    elif app.kind == "DaemonSet":
        labels |= {"controller-revision-hash": revision, "pod-template-generation": "1"}
    began = _time(app.age_h * 60 - 1)
    meta = _meta("Pod", app.namespace, name, app.age_h, labels=labels, ownerReferences=[_reference(owner)])
    meta["generateName"] = f"{owner['metadata']['name']}-"
    spec: Object = {**template["spec"], "enableServiceLinks": True, "serviceAccountName": "default"}
    spec |= {"preemptionPolicy": "PreemptLowerPriority", "priority": cluster.classes.get(app.priority, 0)}
    if node:
        spec["nodeName"] = node
    spec["tolerations"] = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    ready = "True" if node not in cluster.lost else "False"
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": began, "status": status, "type": type_}
        for type_, status in (("Initialized", "True"), ("Ready", ready), ("ContainersReady", ready))
    ]
    scheduled: Object = {"lastProbeTime": None, "lastTransitionTime": began, "status": "True", "type": "PodScheduled"}
    status: Object = {"phase": "Running", "qosClass": "Burstable", "startTime": began}
    if node:
        container = {"image": spec["containers"][0]["image"], "imageID": "", "lastState": {}, "name": app.name}
        container |= {"ready": True, "restartCount": 0, "started": True, "state": {"running": {"startedAt": began}}}
        status["containerStatuses"] = [container]
    else:
        scheduled |= {
            "message": f"0/{cluster.nodes} nodes are available.",
            "reason": "Unschedulable",
            "status": "False",
        }
        conditions, status = [], {"phase": "Pending", "qosClass": "Burstable"}
    status["conditions"] = [*conditions, scheduled]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": dict(sorted(meta.items())),
        "spec": dict(sorted(spec.items())),
        "status": dict(sorted(status.items())),
    }


def pod_name(app: App, index: int) -> str:
    if app.kind == "StatefulSet":
        return f"{app.name}-{index}"
    pod_hash = f"-{_word(app.namespace, app.name, length=10)}" if app.kind == "Deployment" else ""
    return f"{app.name}{pod_hash}-{_word(app.namespace, app.name, index)}"


def _budget(app: App) -> Object:
    ready = app.replicas - app.waiting
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta("PodDisruptionBudget", app.namespace, app.name, app.age_h, generation=1),
        "spec": {"minAvailable": app.min_available, "selector": {"matchLabels": {"app": app.name}}},
        "status": {
            "currentHealthy": ready,
            "desiredHealthy": app.min_available,
            "disruptionsAllowed": max(0, ready - app.min_available),
            "expectedPods": app.replicas,
            "observedGeneration": 1,
        },
    }


def _class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": _meta("PriorityClass", "", name, 900, generation=1),
        "preemptionPolicy": "PreemptLowerPriority",
        "value": value,
    }


def _namespace(name: str) -> Object:
    labels = {"kubernetes.io/metadata.name": name}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": _meta("Namespace", "", name, 900, labels=labels),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _events(cluster: Cluster) -> Iterator[Object]:
    for number, (begin, end, reason, whom, times, message) in enumerate(cluster.warnings):
        kind, _, name = whom.partition(" ")
        namespace, _, plain = name.rpartition("/")
        source = {"Node": "kubelet", "Pod": "default-scheduler"}.get(kind, "deployment-controller")
        yield {
            "apiVersion": "v1",
            "count": times,
            "eventTime": None,
            "firstTimestamp": _time(begin),
            "involvedObject": {"kind": kind, "name": plain, **({"namespace": namespace} if namespace else {})},
            "kind": "Event",
            "lastTimestamp": _time(end),
            "message": message,
            "metadata": _meta("Event", namespace or "default", f"{plain}.{_uid(number)[:8]}{number:08x}", begin / 60),
            "reason": reason,
            "reportingComponent": source,
            "reportingInstance": "",
            "source": {"component": source},
            "type": "Normal" if reason in ("ScalingReplicaSet", "TaintManagerEviction") else "Warning",
        }


# --- usage ------------------------------------------------------------------------------------------------------------


def _series(cluster: Cluster) -> Iterator[tuple[App, int, str]]:
    for app in cluster.apps:
        count = cluster.nodes if app.kind == "DaemonSet" else app.replicas - app.waiting
        for index in range(count):
            yield app, index, pod_name(app, index)


def prometheus(cluster: Cluster) -> str:
    """The answer of ``/api/v1/query_range?query=container_memory_working_set_bytes``."""
    first = int(NOW.timestamp()) - cluster.seconds
    found = [
        {
            "metric": {
                "__name__": "container_memory_working_set_bytes",
                "container": app.name,
                "job": "kubelet",
                "namespace": app.namespace,
                "pod": pod,
            },
            "values": [
                [first + second, str(app.used(index, second))] for second in range(0, cluster.seconds + 1, _STEP_S)
            ],
        }
        for app, index, pod in _series(cluster)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}}, separators=(",", ":"))


def top(cluster: Cluster) -> str:
    """``kubectl top pods -A --containers``"""
    rows = [("NAMESPACE", "POD", "NAME", "CPU(cores)", "MEMORY(bytes)")]
    for app, index, pod in _series(cluster):
        memory = f"{app.used(index, cluster.seconds) // MIB}Mi"
        rows.append((app.namespace, pod, app.name, f"{round(app.cpu * 1000)}m", memory))
    widths = [max(len(row[column]) for row in rows) + 3 for column in range(5)]
    return "".join(
        f"{''.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()}   \n" for row in rows
    )


def csv(cluster: Cluster) -> str:
    """As a dashboard exports it."""
    lines = ["time,namespace,pod,container,memory,cpu"]
    for app, index, pod in _series(cluster):
        for second in range(0, cluster.seconds + 1, 5 * _STEP_S):
            time = (NOW - timedelta(seconds=cluster.seconds - second)).strftime("%Y-%m-%dT%H:%M:%SZ")
            lines.append(f"{time},{app.namespace},{pod},{app.name},{app.used(index, second)},{app.cpu}")
    return "".join(f"{line}\n" for line in lines)


def printed(found: Sequence[Object], form: str = "yaml") -> str:
    """As ``kubectl get -o yaml`` or ``-o json`` prints several objects."""
    listed = {"apiVersion": "v1", "items": list(found), "kind": "List", "metadata": {"resourceVersion": ""}}
    if form == "json":
        return json.dumps(listed, indent=4) + "\n"
    return yaml.dump(listed, Dumper=_Dumper, sort_keys=False, width=1 << 20)


class _Dumper(yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        return True


# --- the incidents ----------------------------------------------------------------------------------------------------


def leak(times: int = 1) -> Cluster:
    """A release of the checkout leaks memory; who uses more than requested goes first. ``times``: six nodes each."""
    apps = (
        App("shop", "checkout", 6 * times, {"cpu": "250m", "memory": "512Mi"}, rising(420 * MIB, 6.5 * GIB, 120, 1500),
            0.2, priority="business-critical", min_available=5 * times, age_h=0.5, stagger_s=25 / times),
        App("shop", "web", 12 * times, {"cpu": "200m", "memory": "128Mi"}, steady(310 * MIB), 0.15, priority="standard",
            min_available=10 * times),
        App("shop", "catalog", 6 * times, {"cpu": "200m", "memory": "256Mi"}, steady(450 * MIB), 0.1,
            priority="standard", min_available=5 * times),
        App("shop", "sessions", 3 * times, {"cpu": "250m", "memory": "640Mi"}, steady(500 * MIB), 0.1,
            kind="StatefulSet", limits={"memory": "640Mi"}, priority="business-critical", min_available=2 * times),
        App("data", "reports", 6 * times, {"cpu": "500m", "memory": "400Mi"}, steady(720 * MIB), 0.4, priority="batch"),
        App("monitoring", "node-agent", 1, {"cpu": "50m", "memory": "64Mi"}, steady(60 * MIB), 0.02, kind="DaemonSet",
            priority="system-node-critical"),
    )  # fmt: skip
    classes = {"business-critical": 100000, "standard": 1000, "batch": 10}
    warnings = (
        (
            27,
            27,
            "ScalingReplicaSet",
            "Deployment shop/checkout",
            1,
            f"Scaled up replica set {pod_name(apps[0], 0)[:-6]} from 0 to {6 * times}",
        ),
        (3.5, 3.5, "EvictionThresholdMet", "Node worker-2", 1, "Attempting to reclaim memory"),
        (3.2, 3.2, "EvictionThresholdMet", "Node worker-5", 1, "Attempting to reclaim memory"),
        (
            3.1,
            0.5,
            "FailedScheduling",
            f"Pod data/{pod_name(apps[4], 5)}",
            9,
            "0/6 nodes are available: 6 Insufficient memory.",
        ),
    )
    return Cluster(6 * times, "8Gi", "4", apps, classes, 1500, (), warnings)


def lost_node() -> Cluster:
    """A node falls silent, and what ran there finds no room elsewhere: the others are full by requests."""
    apps = (
        App("shop", "web", 8, {"cpu": "500m", "memory": "1Gi"}, steady(700 * MIB), 0.2, min_available=7),
        App("shop", "orders", 4, {"cpu": "1", "memory": "5Gi"}, steady(2 * GIB), 0.4, priority="business-critical",
            min_available=3),
        App("data", "postgres", 3, {"cpu": "1", "memory": "4Gi"}, steady(3 * GIB), 0.5, kind="StatefulSet",
            priority="business-critical", min_available=2),
        App("data", "training", 4, {"cpu": "500m", "memory": "5Gi"}, steady(1 * GIB), 0.3, priority="batch"),
    )  # fmt: skip
    warnings = (
        (6, 6, "NodeNotReady", "Node worker-3", 1, "Node worker-3 status is now: NodeNotReady"),
        (
            1,
            0.2,
            "FailedScheduling",
            f"Pod shop/{pod_name(apps[1], 2)}",
            4,
            "0/4 nodes are available: 3 Insufficient memory.",
        ),
    )
    return Cluster(4, "16Gi", "4", apps, {"business-critical": 100000, "batch": 10}, 600, ("worker-3",), warnings)


def stampede() -> Cluster:
    """A team gives its batch the highest class: it pushes out what earns the money."""
    apps = (
        App("shop", "web", 9, {"cpu": "700m", "memory": "1Gi"}, steady(700 * MIB), 0.5, priority="standard",
            min_available=8),
        App("shop", "search", 3, {"cpu": "900m", "memory": "2Gi"}, steady(1.5 * GIB), 0.7, priority="standard",
            min_available=2),
        App("ml", "embeddings", 6, {"cpu": "1500m", "memory": "2Gi"}, steady(1 * GIB), 1.2, priority="urgent",
            age_h=0.05, waiting=6),
    )  # fmt: skip
    warnings = (
        (
            3,
            3,
            "ScalingReplicaSet",
            "Deployment ml/embeddings",
            1,
            f"Scaled up replica set {pod_name(apps[2], 0)[:-6]} from 0 to 6",
        ),
        (
            2.9,
            0.1,
            "FailedScheduling",
            f"Pod ml/{pod_name(apps[2], 0)}",
            12,
            "0/3 nodes are available: 3 Insufficient cpu.",
        ),
    )
    return Cluster(3, "16Gi", "4", apps, {"urgent": 500000, "standard": 1000}, 600, (), warnings)


def write(folder: Path) -> None:
    """The folders of examples/incidents, each in another form that clusters print."""
    for name, cluster in (("leak", leak()), ("lost-node", lost_node()), ("stampede", stampede())):
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        found = objects(cluster)
        if name == "leak":
            (place / "dump.yaml").write_text(printed(found))
            (place / "memory.json").write_text(prometheus(cluster))
        elif name == "lost-node":
            (place / "events.json").write_text(printed([one for one in found if one["kind"] == "Event"], "json"))
            (place / "dump.yaml").write_text(printed([one for one in found if one["kind"] != "Event"]))
            (place / "top.txt").write_text(top(cluster))
        else:
            (place / "dump.yaml").write_text(printed(found))
            (place / "usage.csv").write_text(csv(cluster))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
