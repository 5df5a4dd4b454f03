"""Cases for the controllers of workloads: single syncs of what may be there, and rollouts from beginning to end."""

from __future__ import annotations

import json
import random
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import pods as pod_defaults
from kemu.emulated.objects.templates import documents, hashes
from kemu.messages.k8s import core_v1_pb2

Json = dict[str, Any]

LABELS = {"app": "web"}
UID = "uid-owner"
CLAIMS = 0.35
"""The share of StatefulSets with templates of claims."""


def case(family: str, seed: int, number: int) -> Json:
    """The case of this number, of a family of :data:`FAMILIES`."""
    draw = random.Random(f"{family} {seed} {number}")
    return {**FAMILIES[family](draw), "id": f"{family}-s{seed}-{number:05}", "family": family}


def template(draw: random.Random, version: int) -> Json:
    """The same for every version but for the image, and for what a version adds."""
    container: Json = {"name": "main", "image": f"web:{version}"}
    if version % 2:
        container["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    if version % 3 == 1:
        container["ports"] = [{"containerPort": 80 + version, "name": "http"}]
        container["readinessProbe"] = {"httpGet": {"port": "http", "path": "/ready?a=1&b=<2>"}, "periodSeconds": 5}
    if version % 3 == 2:
        container["env"] = [{"name": "VERSION", "value": str(version)}]
        container["livenessProbe"] = {"tcpSocket": {"port": 80}}
    spec: Json = {"containers": [container]}
    if version % 4 == 3:
        spec["terminationGracePeriodSeconds"] = 30
        spec["volumes"] = [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1500Mi"}},
            {"name": "c", "configMap": {"name": "c"}},
        ]
        spec["securityContext"] = {"runAsUser": 1000, "fsGroup": 2000}
    metadata: Json = {"labels": dict(LABELS)}
    if version % 5 == 4:
        metadata["annotations"] = {"note": "a & b"}
        spec["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 10,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": LABELS},
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }
                ]
            }
        }
    return {"metadata": metadata, "spec": spec}


def message(given: Json) -> Any:
    """A template with its defaults."""
    made = convert.from_json(core_v1_pb2.PodTemplateSpec, given)
    pod_defaults.default_pod_spec(made.spec)
    return made


def owner_of(kind: str, name: str, uid: str, api_version: str = "apps/v1") -> list[Json]:
    return [
        {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def either(draw: random.Random, chance: float, one: Any, other: Any = None) -> Any:
    return one if draw.random() < chance else other


def limit(draw: random.Random) -> Any:
    return draw.choice([0, 1, 2, 3, 5, "0%", "10%", "25%", "34%", "50%", "100%"])


def rolling(draw: random.Random) -> Json:
    while True:
        surge, unavailable = limit(draw), limit(draw)
        if surge not in (0, "0%") or unavailable not in (0, "0%"):
            return {"maxSurge": surge, "maxUnavailable": unavailable}


def condition(draw: random.Random, kind: str, status: str, reason: str, message_: str, at: int) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message_,
        "lastUpdateTime": f"@{at}",
        "lastTransitionTime": f"@{at - draw.randrange(50)}",
    }


# Deployments ---------------------------------------------------------------------------------------------------------


def deployment(draw: random.Random, version: int, **spec: Any) -> Json:
    made: Json = {
        "kind": "Deployment",
        "metadata": {"name": "web", "uid": UID, "generation": draw.randrange(1, 4), "creationTimestamp": "@-1000"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template(draw, version), **spec},
    }
    if draw.random() < 0.3:
        made["metadata"]["annotations"] = {"kubernetes.io/change-cause": f"to {version}"}
    return made


def _deployment_sync(draw: random.Random) -> Json:
    version = draw.randrange(6)
    wanted = draw.choice([0, 1, 2, 3, 4, 5, 8, 10, 12])
    one = deployment(draw, version, replicas=wanted)
    spec = one["spec"]
    if draw.random() < 0.8:
        spec["strategy"] = {
            "type": "RollingUpdate",
            **({"rollingUpdate": rolling(draw)} if draw.random() < 0.8 else {}),
        }
    else:
        spec["strategy"] = {"type": "Recreate"}
    for name, chance, values in (
        ("minReadySeconds", 0.3, [5, 30]),
        ("revisionHistoryLimit", 0.5, [0, 1, 2, 2147483647]),
        ("progressDeadlineSeconds", 0.6, [40, 100, 600, 2147483647]),
        ("paused", 0.15, [True]),
    ):
        if draw.random() < chance:
            spec[name] = draw.choice(values)
    if spec.get("progressDeadlineSeconds", 600) <= spec.get("minReadySeconds", 0):
        del spec["progressDeadlineSeconds"]
    annotations = one["metadata"].setdefault("annotations", {})
    if draw.random() < 0.7:
        annotations["deployment.kubernetes.io/revision"] = str(draw.randrange(1, 6))
    if draw.random() < 0.12:
        annotations["deprecated.deployment.rollback.to"] = draw.choice(["0", "1", "2", "3", "9", "x"])
    versions = draw.sample(range(7), draw.randrange(5))
    sets = [_replica_set(draw, one, number, each, wanted) for number, each in enumerate(versions)]
    if draw.random() < 0.08 and version not in versions:
        sets.append(_collision(draw, one, version))
    if draw.random() < 0.7:
        one["status"] = _deployment_status(draw, one, sets)
    if draw.random() < 0.05:
        one["metadata"]["deletionTimestamp"] = "@-1"
        one["metadata"]["finalizers"] = ["foregroundDeletion"]
    pods = []
    if spec["strategy"]["type"] == "Recreate":
        for replica_set in sets:
            name, uid = replica_set["metadata"]["name"], replica_set["metadata"]["uid"]
            owners = owner_of("ReplicaSet", name, uid)
            pods += [_pod(draw, f"{name}-{n}", owners, {"pod-template-hash": "x"}) for n in range(draw.randrange(3))]
    steps = [{"do": "sync", "kind": "Deployment", "name": "web"}] * draw.choice([1, 2, 3])
    return {"objects": [one, *sets, *pods], "steps": steps}


def _replica_set(draw: random.Random, above: Json, number: int, version: int, wanted: int) -> Json:
    size = draw.choice([0, 0, draw.randrange(wanted + 3), wanted])
    name = f"web-{version}{chr(97 + number)}"
    made_of = template(draw, version)
    labels = {**LABELS, "pod-template-hash": f"h{version}"}
    made_of["metadata"]["labels"] = dict(labels)
    metadata: Json = {
        "name": name,
        "uid": f"uid-{name}",
        "labels": dict(labels),
        "creationTimestamp": f"@{-900 + 50 * draw.randrange(16) + number}",
        "generation": draw.randrange(1, 3),
        "annotations": {},
    }
    annotations = metadata["annotations"]
    if draw.random() < 0.92:
        annotations["deployment.kubernetes.io/revision"] = str(draw.choice([number + 1, number + 1, draw.randrange(7)]))
    if draw.random() < 0.04:
        annotations["deployment.kubernetes.io/revision"] = "seven"
    if draw.random() < 0.2:
        annotations["deployment.kubernetes.io/revision-history"] = "1,3"
    if draw.random() < 0.9:
        before = draw.choice([wanted, wanted, wanted, wanted + 2, max(0, wanted - 2)])
        annotations["deployment.kubernetes.io/desired-replicas"] = str(before)
        annotations["deployment.kubernetes.io/max-replicas"] = str(before + draw.randrange(3))
    if draw.random() < 0.2:
        annotations["kubernetes.io/change-cause"] = draw.choice(["to 1", "to 2"])
    ownership = draw.random()
    if ownership < 0.88:
        metadata["ownerReferences"] = owner_of("Deployment", "web", UID)
    elif ownership < 0.92:
        metadata["ownerReferences"] = owner_of("Deployment", "other", "uid-other")
    if draw.random() < 0.05:
        metadata["labels"] = {"app": "else", "pod-template-hash": f"h{version}"}
    running = draw.choice([size, size, draw.randrange(size + 2)])
    ready = draw.choice([running, draw.randrange(running + 1)])
    status: Json = {
        "replicas": running,
        "readyReplicas": ready,
        "availableReplicas": draw.choice([ready, draw.randrange(ready + 1)]),
    }
    if draw.random() < 0.9:
        status["observedGeneration"] = metadata["generation"] - either(draw, 0.1, 1, 0)
    if draw.random() < 0.85:
        status["terminatingReplicas"] = draw.choice([0, 0, 1, 2])
    if draw.random() < 0.1:
        status["conditions"] = [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": "quota",
                "lastTransitionTime": "@-60",
            }
        ]
    if draw.random() < 0.04:
        metadata["deletionTimestamp"] = "@-2"
        metadata["finalizers"] = ["foregroundDeletion"]
    return {
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {
            "replicas": size,
            "selector": {"matchLabels": dict(labels)},
            "template": made_of,
            "minReadySeconds": above["spec"].get("minReadySeconds", 0),
        },
        "status": status,
    }


def _collision(draw: random.Random, above: Json, version: int) -> Json:
    """A ReplicaSet that has the name which the new one would get."""
    found = _replica_set(draw, above, 9, (version + 1) % 7, 2)
    found["metadata"]["name"] = f"web-{hashes.of_template(message(above['spec']['template']))}"
    found["metadata"]["uid"] = "uid-collision"
    if draw.random() < 0.5:
        found["metadata"]["ownerReferences"] = owner_of("Deployment", "other", "uid-other")
    return found


def _deployment_status(draw: random.Random, one: Json, sets: list[Json]) -> Json:
    totals = {
        name: sum(each["status"].get(name, 0) for each in sets)
        for name in ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")
    }
    status: Json = {**totals, "updatedReplicas": draw.randrange(totals["replicas"] + 1)}
    for name in list(status):
        if draw.random() < 0.15:
            status[name] = max(0, status[name] + draw.choice([-1, 1]))
    status["observedGeneration"] = one["metadata"]["generation"] - either(draw, 0.3, 1, 0)
    if draw.random() < 0.2:
        status["collisionCount"] = draw.randrange(3)
    reasons = [
        ("True", "NewReplicaSetAvailable"),
        ("True", "ReplicaSetUpdated"),
        ("True", "NewReplicaSetCreated"),
        ("False", "ProgressDeadlineExceeded"),
        ("Unknown", "DeploymentPaused"),
        ("Unknown", "DeploymentResumed"),
        ("False", "ReplicaSetCreateError"),
    ]
    conditions = []
    if draw.random() < 0.85:
        verdict = draw.choice(reasons)
        conditions.append(condition(draw, "Progressing", *verdict, "so it is", -draw.choice([5, 50, 200, 700])))
    if draw.random() < 0.8:
        verdict = draw.choice([("True", "MinimumReplicasAvailable"), ("False", "MinimumReplicasUnavailable")])
        conditions.append(condition(draw, "Available", *verdict, "so it was", -draw.choice([5, 50, 200])))
    if draw.random() < 0.1:
        conditions.append(condition(draw, "ReplicaFailure", "True", "FailedCreate", "quota", -60))
    draw.shuffle(conditions)
    status["conditions"] = conditions
    return status


# Pods ----------------------------------------------------------------------------------------------------------------


def _pod(
    draw: random.Random, name: str, owners: list[Json] | None, labels: Json, version: int = 0, *, node: str = ""
) -> Json:
    """In some state, of a time of its own."""
    state = draw.choice(["ready"] * 5 + ["unready", "pending", "bound", "failed", "succeeded", "deleting"])
    created = -draw.randrange(20, 900)
    metadata: Json = {
        "name": name,
        "uid": f"uid-{name}",
        "labels": {**LABELS, **labels},
        "creationTimestamp": f"@{created}",
    }
    if owners:
        metadata["ownerReferences"] = owners
    spec = template(draw, version)["spec"]
    status: Json = {"phase": "Running"}
    if state != "pending" or node:
        spec["nodeName"] = node or f"node-{draw.randrange(3)}"
    if state == "pending" and node:
        del spec["nodeName"]
    if state in ("pending", "bound"):
        status["phase"] = "Pending"
    elif state in ("failed", "succeeded"):
        status["phase"] = state.capitalize()
    if state in ("ready", "unready", "deleting"):
        since = draw.randrange(created, 0)
        ready = "False" if state == "unready" else "True"
        status["conditions"] = [{"type": "Ready", "status": ready, "lastTransitionTime": f"@{since}"}]
    if draw.random() < 0.15:
        status["containerStatuses"] = [
            {"name": "main", "restartCount": draw.randrange(4), "image": "", "imageID": "", "ready": True}
        ]
    if state == "deleting":
        metadata["deletionTimestamp"] = f"@{draw.randrange(1, 25)}"
        metadata["deletionGracePeriodSeconds"] = 30
    if draw.random() < 0.15:
        metadata["annotations"] = {
            "controller.kubernetes.io/pod-deletion-cost": draw.choice(["-5", "10", "007", "x", "10"])
        }
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


# ReplicaSets ---------------------------------------------------------------------------------------------------------


def _replica_set_sync(draw: random.Random) -> Json:
    is_controller = draw.random() < 0.2
    kind = "ReplicationController" if is_controller else "ReplicaSet"
    labels = {**LABELS, "pod-template-hash": "h1"}
    made_of = template(draw, 1)
    made_of["metadata"]["labels"] = dict(labels)
    one: Json = {
        "kind": kind,
        "metadata": {"name": "web-1", "uid": UID, "generation": draw.randrange(1, 3), "creationTimestamp": "@-1000"},
        "spec": {
            "replicas": draw.randrange(8),
            "selector": dict(labels) if is_controller else {"matchLabels": dict(labels)},
            "template": made_of,
        },
    }
    if draw.random() < 0.3:
        one["spec"]["minReadySeconds"] = draw.choice([10, 100])
    if draw.random() < 0.6:
        one["status"] = {
            "replicas": draw.randrange(8),
            "readyReplicas": draw.randrange(4),
            "observedGeneration": draw.randrange(1, 3),
        }
        if draw.random() < 0.3:
            one["status"]["conditions"] = [
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreate",
                    "message": "no",
                    "lastTransitionTime": "@-60",
                }
            ]
    mine = owner_of(kind, "web-1", UID, "v1" if is_controller else "apps/v1")
    objects = [one]
    if not is_controller and draw.random() < 0.5:
        one["metadata"]["ownerReferences"] = owner_of("Deployment", "web", "uid-web")
        sibling = json.loads(json.dumps(one))
        sibling["metadata"].update({"name": "web-2", "uid": "uid-web-2"})
        sibling["spec"]["selector"] = {"matchLabels": {**LABELS, "pod-template-hash": "h2"}}
        sibling["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "h2"
        objects.append(sibling)
        theirs = owner_of("ReplicaSet", "web-2", "uid-web-2")
        objects += [_pod(draw, f"web-2-{n}", theirs, {"pod-template-hash": "h2"}) for n in range(draw.randrange(5))]
    if draw.random() < 0.05:
        one["metadata"]["deletionTimestamp"] = "@-1"
        one["metadata"]["finalizers"] = ["foregroundDeletion"]
    for number in range(draw.randrange(10)):
        ownership = draw.random()
        owners = mine if ownership < 0.85 else None if ownership < 0.95 else owner_of("ReplicaSet", "else", "uid-else")
        is_foreign = bool(owners) and owners[0]["name"] == "else"
        hashed = {
            "pod-template-hash": draw.choice(["h1", "h2", "h9"]) if is_foreign else either(draw, 0.93, "h1", "h7")
        }
        objects.append(_pod(draw, f"web-1-{number}", owners, hashed))
    steps: list[Json] = [{"do": "sync", "kind": kind, "name": "web-1"}] * draw.choice([1, 1, 2])
    failures = draw.choice([0, 0, 0, 1, 2, 9])
    return {"objects": objects, "steps": steps, "failures": failures}


# StatefulSets --------------------------------------------------------------------------------------------------------


def revision(owner: Json, kind: str, version: int, number: int, draw: random.Random) -> Json:
    made_of = message(template(draw, version))
    data = documents.patch(made_of)
    owned = draw.random() < 0.92
    if kind == "StatefulSet":
        value = hashes.of_revision(data, 0)
        labels = {**LABELS, "controller.kubernetes.io/hash": value}
    else:
        value = hashes.of_template(made_of)
        labels = {**LABELS, "controller-revision-hash": value}
    return {
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"web-{value}",
            "uid": f"uid-r{version}",
            "labels": labels,
            "creationTimestamp": f"@{-900 + number}",
            **({"ownerReferences": owner_of(kind, "web", owner["metadata"]["uid"])} if owned else {}),
        },
        "data": json.loads(data),
        "revision": number,
    }


def _stateful_set_sync(draw: random.Random) -> Json:
    version = draw.randrange(4)
    replicas, start = draw.randrange(6), draw.choice([0, 0, 0, 2])
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": template(draw, version),
        "serviceName": draw.choice(["web", ""]),
        "podManagementPolicy": draw.choice(["OrderedReady", "Parallel"]),
    }
    if start:
        spec["ordinals"] = {"start": start}
    strategy = draw.random()
    if strategy < 0.2:
        spec["updateStrategy"] = {"type": "OnDelete"}
    elif strategy < 0.7:
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": draw.choice([0, 0, 1, 3])}}
        if draw.random() < 0.5:
            spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = draw.choice([1, 2, 3, "50%", "10%"])
    if draw.random() < 0.3:
        spec["minReadySeconds"] = draw.choice([10, 100])
    if draw.random() < 0.5:
        spec["revisionHistoryLimit"] = draw.randrange(3)
    has_claims = draw.random() < CLAIMS
    if has_claims:
        spec["volumeClaimTemplates"] = [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ]
        if draw.random() < 0.6:
            spec["persistentVolumeClaimRetentionPolicy"] = {
                "whenDeleted": draw.choice(["Retain", "Delete"]),
                "whenScaled": draw.choice(["Retain", "Delete"]),
            }
    one: Json = {
        "kind": "StatefulSet",
        "metadata": {"name": "web", "uid": UID, "generation": draw.randrange(1, 3), "creationTimestamp": "@-1000"},
        "spec": spec,
    }
    if draw.random() < 0.3:
        one["metadata"]["annotations"] = {"note": "kept"}
    versions = draw.sample(range(5), draw.randrange(4))
    known = [revision(one, "StatefulSet", each, number + 1, draw) for number, each in enumerate(versions)]
    if known and draw.random() < 0.8:
        one["status"] = {
            "currentRevision": draw.choice(known)["metadata"]["name"],
            "updateRevision": known[-1]["metadata"]["name"],
            "replicas": replicas,
            "observedGeneration": 1,
            "currentReplicas": draw.randrange(replicas + 1),
        }
    mine = owner_of("StatefulSet", "web", UID)
    pods, claims = [], []
    quiet = draw.random() < 0.5
    for ordinal in range(start + replicas + 2):
        if draw.random() < 0.25 + (ordinal < start or ordinal >= start + replicas) * 0.3:
            continue
        name = f"web-{ordinal}"
        ours = draw.choice(known)["metadata"]["name"] if known else "web-old"
        labels = {
            "controller-revision-hash": ours,
            "statefulset.kubernetes.io/pod-name": name if draw.random() < 0.95 or has_claims else "else",
            "apps.kubernetes.io/pod-index": str(ordinal),
        }
        pod = _pod(draw, name, either(draw, 0.93, mine, None), labels)
        if quiet:
            pod = _healthy(pod)
        if has_claims:
            pod["spec"].setdefault("volumes", []).insert(
                0, {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
            )
            if draw.random() < 0.7:
                claims.append(_claim(draw, name))
        pods.append(pod)
    case_: Json = {
        "objects": [one, *known, *pods, *claims],
        "steps": [{"do": "sync", "kind": "StatefulSet", "name": "web"}] * draw.choice([1, 1, 2]),
        # Which of several creations at once fails first is chance.
        "failures": draw.choice([0, 0, 0, 0, 99]),
    }
    if draw.random() < 0.4:
        case_["gates"] = {"MaxUnavailableStatefulSet": True}
    if draw.random() < 0.05:
        one["metadata"]["deletionTimestamp"] = "@-1"
        one["metadata"]["finalizers"] = ["foregroundDeletion"]
    return case_


def _healthy(pod: Json) -> Json:
    """Running, ready for long, and there to stay."""
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        pod["metadata"].pop(name, None)
    pod["spec"].setdefault("nodeName", "node-0")
    pod["status"] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": pod["metadata"]["creationTimestamp"]}],
    }
    return pod


def _claim(draw: random.Random, pod: str) -> Json:
    metadata: Json = {"name": f"data-{pod}", "uid": f"uid-data-{pod}"}
    owners = []
    if draw.random() < 0.3:
        owners += owner_of("StatefulSet", "web", draw.choice([UID, UID, "uid-former"]))
    if draw.random() < 0.3:
        owners += owner_of("Pod", pod, draw.choice([f"uid-{pod}", "uid-former"]), "v1")
    if draw.random() < 0.1:
        owners += owner_of("Backup", "b", "uid-b", "example.com/v1")
    if len([each for each in owners if each["controller"]]) > 1:
        for each in owners[1:]:
            each["controller"] = False
    if owners:
        metadata["ownerReferences"] = owners
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


# DaemonSets ----------------------------------------------------------------------------------------------------------


def _daemon_set_sync(draw: random.Random) -> Json:
    version = draw.randrange(3)
    spec: Json = {"selector": {"matchLabels": LABELS}, "template": template(draw, version)}
    strategy = draw.random()
    if strategy < 0.15:
        spec["updateStrategy"] = {"type": "OnDelete"}
    elif strategy < 0.6:
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": draw.choice([1, 2, "34%", "100%"])},
        }
    elif strategy < 0.9:
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 0, "maxSurge": draw.choice([1, 2, "34%"])},
        }
    if draw.random() < 0.3:
        spec["minReadySeconds"] = draw.choice([10, 100])
    if draw.random() < 0.5:
        spec["revisionHistoryLimit"] = draw.randrange(2)
    if draw.random() < 0.3:
        spec["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    if draw.random() < 0.1:
        spec["template"]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    if draw.random() < 0.1:
        spec["template"]["spec"]["hostNetwork"] = True
    one: Json = {
        "kind": "DaemonSet",
        "metadata": {"name": "web", "uid": UID, "generation": draw.randrange(1, 3), "creationTimestamp": "@-1000"},
        "spec": spec,
    }
    if draw.random() < 0.4:
        one["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "2", "note": "kept"}
    current = message(spec["template"])
    versions = draw.sample(range(4), draw.randrange(3))
    known = [revision(one, "DaemonSet", each, number + 1, draw) for number, each in enumerate(versions)]
    new_hash = hashes.of_template(current)
    old_hashes = [each["metadata"]["labels"]["controller-revision-hash"] for each in known] or ["old"]
    nodes, pods = [], []
    quiet = draw.random() < 0.4
    for number in range(draw.randrange(1, 5)):
        name = f"node-{number}"
        node: Json = {
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
        }
        if draw.random() < 0.8:
            node["metadata"]["labels"]["disk"] = "ssd"
        if draw.random() < 0.2:
            node["spec"]["taints"] = [
                {
                    "key": draw.choice(["gpu", "node.kubernetes.io/unreachable", "x"]),
                    "effect": draw.choice(["NoSchedule", "NoExecute"]),
                }
            ]
        if draw.random() < 0.95:
            nodes.append(node)
        for copy in range(draw.choice([0, 1, 1, 1, 1, 2, 2, 3])):
            labels = {"controller-revision-hash": draw.choice([new_hash, *old_hashes, *old_hashes])}
            if draw.random() < 0.2:
                labels["pod-template-generation"] = draw.choice(["1", "2"])
            owners = either(draw, 0.95, owner_of("DaemonSet", "web", UID), None)
            pod = _pod(draw, f"web-{number}{copy}", owners, labels, version, node=name)
            if quiet:
                pod["spec"]["nodeName"] = name
                pod = _healthy(pod)
            if "nodeName" not in pod["spec"]:
                pod["spec"]["affinity"] = _pinned(name)
            pods.append(pod)
    if draw.random() < 0.5:
        one["status"] = {"observedGeneration": 1, "desiredNumberScheduled": 2, "numberReady": 1}
    return {
        "objects": [one, *known, *nodes, *pods],
        "steps": [{"do": "sync", "kind": "DaemonSet", "name": "web"}] * draw.choice([1, 1, 2]),
        "failures": draw.choice([0, 0, 0, 0, 99]),
    }


def _pinned(node: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


# Rollouts ------------------------------------------------------------------------------------------------------------


def _rollout(draw: random.Random) -> Json:
    kind = draw.choice(["Deployment"] * 3 + ["StatefulSet", "DaemonSet"])
    ready_s = {f"web:{version}": draw.choice([0, 1, 3]) for version in range(6)}
    if draw.random() < 0.3:
        del ready_s[f"web:{draw.randrange(1, 4)}"]  # Never.
    one = _first(draw, kind)
    objects = [one]
    if kind == "DaemonSet":
        objects += [
            {"kind": "Node", "metadata": {"name": f"node-{n}"}, "spec": {}} for n in range(draw.randrange(2, 6))
        ]
    steps: list[Json] = [{"do": "rounds", "count": draw.randrange(6, 12)}]
    now = one
    for _ in range(draw.randrange(1, 4)):
        now = json.loads(json.dumps({key: value for key, value in now.items() if key != "status"}))
        _change(draw, kind, now)
        steps += [{"do": "replace", "object": now}, {"do": "rounds", "count": draw.randrange(3, 16)}]
    steps.append({"do": "rounds", "count": 12})
    return {"objects": objects, "steps": steps, "readyS": ready_s, "shutdownS": draw.choice([0, 2])}


def _first(draw: random.Random, kind: str) -> Json:
    spec: Json = {"selector": {"matchLabels": LABELS}, "template": template(draw, 0)}
    if draw.random() < 0.3:
        spec["minReadySeconds"] = draw.choice([2, 4])
    if draw.random() < 0.4:
        spec["revisionHistoryLimit"] = draw.randrange(2)
    if kind == "Deployment":
        spec["replicas"] = draw.choice([1, 2, 3, 4, 6, 10])
        if draw.random() < 0.85:
            spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling(draw)}
        else:
            spec["strategy"] = {"type": "Recreate"}
        if draw.random() < 0.5:
            spec["progressDeadlineSeconds"] = draw.choice([6, 10])
    elif kind == "StatefulSet":
        spec["replicas"] = draw.choice([1, 2, 3, 4])
        spec["serviceName"] = "web"
        spec["podManagementPolicy"] = draw.choice(["OrderedReady", "Parallel"])
        if draw.random() < 0.4:
            spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": draw.choice([1, 2])}}
    elif draw.random() < 0.5:
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": 0, "maxSurge": draw.choice([1, "50%"])},
        }
    else:
        spec["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": draw.choice([1, 2, "50%"])},
        }
    return {"kind": kind, "metadata": {"name": "web", "creationTimestamp": "@-5"}, "spec": spec}


def _change(draw: random.Random, kind: str, one: Json) -> None:
    spec = one["spec"]
    what = draw.choice(["image"] * 4 + ["scale", "scale", "both", "pause", "back"])
    if what in ("image", "both"):
        spec["template"] = template(draw, draw.randrange(1, 5))
    if what in ("scale", "both") and "replicas" in spec:
        spec["replicas"] = draw.choice([0, 1, 2, 3, 5, 8])
    if what == "pause" and kind == "Deployment":
        spec["paused"] = not spec.get("paused", False)
    if what == "back":
        spec["template"] = template(draw, 0)
    if kind == "Deployment" and draw.random() < 0.2:
        one["metadata"].setdefault("annotations", {})["kubernetes.io/change-cause"] = f"cause {draw.randrange(9)}"


# Informers that are behind ----------------------------------------------------------------------------------------


def _stale(draw: random.Random) -> Json:
    """What a controller does while its informers do not show what it has written."""
    kind, sync = draw.choice(
        [("ReplicaSet", _replica_set_sync), ("StatefulSet", _stateful_set_sync), ("DaemonSet", _daemon_set_sync)]
    )
    made = sync(draw)
    step = made["steps"][0]
    held = draw.choice([["Pod"], ["Pod"], [step["kind"]], ["Pod", step["kind"]]])
    if step["kind"] == "ReplicationController":
        held = ["Pod"]
    if kind == "StatefulSet" and draw.random() < 0.3:
        held = [*held, "PersistentVolumeClaim"]
    steps: list[Json] = [*({"do": "hold", "kind": each} for each in held), step]
    for _ in range(draw.randrange(1, 4)):
        steps += [draw.choice([{"do": "pass"}, {"do": "sleep", "seconds": draw.choice([2, 301])}]), step]
    for each in draw.sample(held, len(held)):
        steps += [{"do": "release", "kind": each}, step]
    return {**made, "steps": [*steps, {"do": "pass"}, step, step], "readyS": {"web:0": 0, "web:1": 0, "web:2": 0}}


FAMILIES = {
    "stale": _stale,
    "deployments": _deployment_sync,
    "replica-sets": _replica_set_sync,
    "stateful-sets": _stateful_set_sync,
    "daemon-sets": _daemon_set_sync,
    "rollouts": _rollout,
}
