"""Objects as ``kubectl get -o yaml`` prints them: with a status, a uid, times, managed fields.

Without a ``resourceVersion``: an API server refuses to create what has one, so users who keep dumps take it away.
"""

from __future__ import annotations

import copy

from kemu.lab.fuzz.drawing.canvases import Canvas, Data
from kemu.lab.fuzz.drawing.dice import Dice

CREATED = "1999-12-31T20:00:00Z"
KINDS = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "PodDisruptionBudget", "Job", "CronJob")
"""Kinds of which users keep dumps."""


def draw(canvas: Canvas) -> None:
    """Turns objects of the scenario into dumps."""
    if not canvas.has("dumped"):
        return
    dice = canvas.dice("dumps")
    items = canvas.spec.get("manifests", [])
    made = [dumped(item, dice) if item.get("kind") in KINDS and dice.chance(0.8) else item for item in items]
    if canvas.is_one("dumped", "list"):
        made = (
            [{"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": made}] if made else []
        )
    elif canvas.is_one("dumped", "with-nodes"):
        names = dice.some(canvas.node_names, 2) + (["elsewhere-1"] if dice.chance(0.5) else [])
        made = [*(node(canvas, name, dice) for name in names if name not in canvas.node_names), *made]
    if made:
        canvas.spec["manifests"] = made


def dumped(item: Data, dice: Dice) -> Data:
    """An object of a cluster where it had been for some hours."""
    made = copy.deepcopy(item)
    metadata = made["metadata"]
    metadata.setdefault("namespace", "default")
    metadata |= {
        "creationTimestamp": CREATED,
        "generation": 1,
        "uid": f"{dice.whole(0x10000000, 0x7FFFFFFF):08x}-0000-4000-8000-{dice.whole(0, 0xFFFFFFFF):012x}",
        "managedFields": [
            {
                "apiVersion": made["apiVersion"],
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {}},
                "manager": "kubectl-client-side-apply",
                "operation": "Update",
                "time": CREATED,
            }
        ],
    }
    status = _status(made)
    if status:
        made["status"] = status
    return made


def _status(item: Data) -> Data:
    kind, spec = item["kind"], item.get("spec", {})
    count = spec.get("replicas", 1)
    if kind == "PodDisruptionBudget":
        healthy = {"currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1, "expectedPods": 3}
        return {"observedGeneration": 1, **healthy, "conditions": [_condition("DisruptionAllowed", "SufficientPods")]}
    if kind == "Deployment":
        counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), count)
        return {"observedGeneration": 1, **counts, "conditions": [_condition("Available", "MinimumReplicasAvailable")]}
    if kind in ("ReplicaSet", "StatefulSet"):
        return {"observedGeneration": 1, **dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), count)}
    if kind == "DaemonSet":
        counts = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberReady"), 3)
        return {"observedGeneration": 1, "numberMisscheduled": 0, **counts}
    return {}


def _condition(kind: str, reason: str) -> Data:
    return {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": CREATED}


def node(canvas: Canvas, name: str, dice: Dice) -> Data:
    """A Node of the cluster of which the rest is a dump, too."""
    sizes = {"cpu": str(canvas.cpu), "memory": f"{canvas.memory_mib}Mi", "pods": "110", "ephemeral-storage": "20Gi"}
    made: Data = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"disk": "ssd"}}}
    made["metadata"]["creationTimestamp"] = CREATED
    made["status"] = {
        "allocatable": sizes,
        "capacity": dict(sizes),
        "conditions": [{**_condition("Ready", "KubeletReady"), "lastHeartbeatTime": CREATED}],
    }
    return made
