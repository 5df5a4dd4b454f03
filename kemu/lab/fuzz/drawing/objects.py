"""Objects of a drawn scenario: priority classes, workloads, budgets, quotas, claims, single pods."""

from __future__ import annotations

from kemu.lab.fuzz.drawing import templates
from kemu.lab.fuzz.drawing.canvases import Canvas, Data, Owner
from kemu.lab.fuzz.drawing.dice import Dice

CLASSES = {"high": 1000, "middle": 100, "low": 10}
OTHER = "team-a"
"""The second namespace."""
STORAGE_CLASS = "disk"
PROVISIONER = "disk.example.com"


def draw(canvas: Canvas) -> None:
    """All of them, in an order in which the API server takes them."""
    if canvas.has("priorities"):
        _classes(canvas)
    if canvas.has("namespaces"):
        canvas.manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}})
    if canvas.has("quota"):
        _quota(canvas)
    if canvas.has("claims"):
        canvas.manifest(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": STORAGE_CLASS},
                "provisioner": PROVISIONER,
                "volumeBindingMode": canvas.dice("claims").pick(("WaitForFirstConsumer", "Immediate")),
            }
        )
        canvas.spec["storage"] = {"drivers": {PROVISIONER: {"topologyKeys": []}}}
    for kind, feature in (
        ("Deployment", "deployment"),
        ("ReplicaSet", "replica_set"),
        ("StatefulSet", "stateful_set"),
        ("DaemonSet", "daemon_set"),
        ("Job", "job"),
        ("CronJob", "cron_job"),
    ):
        if canvas.has(feature):
            _owner(canvas, kind)
    if canvas.has("budget"):
        _budget(canvas)
    if canvas.has("pods") or not (canvas.owners or canvas.has("workload") or canvas.has("cron_job")):
        _single_pods(canvas)
    if canvas.has("workload"):
        _workload(canvas)
    if canvas.has("lives"):
        canvas.spec["lives"] = [{"startSeconds": canvas.dice("lives").pick((0, 3, {"uniform": {"min": 0, "max": 9}}))}]


def _classes(canvas: Canvas) -> None:
    found: Data = dict(CLASSES)
    if canvas.is_one("priorities", "never"):
        found["high"] = {"value": 1000, "preemptionPolicy": "Never"}
    canvas.spec["priorityClasses"] = found
    canvas.classes = list(found)
    if canvas.is_one("priorities", "critical"):
        canvas.classes += ["system-node-critical", "system-cluster-critical"]


def _quota(canvas: Canvas) -> None:
    dice = canvas.dice("quota")
    if canvas.is_one("quota", "limit-range"):
        limit = {"type": "Container", "defaultRequest": {"cpu": "100m", "memory": "64Mi"}}
        spec: Data = {"limits": [limit]}
        canvas.manifest({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "usual"}, "spec": spec})
        return
    spec = {"hard": {"pods": str(dice.log_whole(2, 50))}}
    canvas.manifest({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "fair"}, "spec": spec})


def _namespace(canvas: Canvas, dice: Dice) -> str:
    return OTHER if canvas.has("namespaces") and dice.chance(0.5) else "default"


NAMES = {
    "Deployment": "web", "ReplicaSet": "rs", "StatefulSet": "db", "DaemonSet": "agent", "Job": "batch",
    "CronJob": "cron",
}  # fmt: skip


def _owner(canvas: Canvas, kind: str) -> None:
    dice = canvas.dice("objects", kind)
    for index in range(dice.pick((1, 1, 1, 2))):
        one = dice.part("objects", kind, index)
        name = f"{NAMES[kind]}-{index}"
        canvas.manifest(owner(canvas, one, kind, name, _namespace(canvas, one)))


def owner(canvas: Canvas, dice: Dice, kind: str, name: str, namespace: str) -> Data:
    """An object that keeps pods."""
    is_daemon, is_batch = kind == "DaemonSet", kind in ("Job", "CronJob")
    made: Data = templates.template(canvas, dice, name, ends=is_batch, one_per_node=is_daemon)
    replicas = canvas.nodes if is_daemon else canvas.takes(dice, 40)
    spec: Data = {"template": made} if is_batch else {"selector": {"matchLabels": {"app": name}}, "template": made}
    if kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        spec["replicas"] = replicas
    if kind == "Deployment":
        spec["strategy"] = {"type": "Recreate"}
        if canvas.is_one("deployment", "rolling"):
            rolling = dice.pick(({"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": "25%", "maxUnavailable": "25%"}))
            spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    elif kind == "StatefulSet":
        spec["serviceName"] = name
        if canvas.is_one("stateful_set", "parallel"):
            spec["podManagementPolicy"] = "Parallel"
        if canvas.is_one("claims", "templates"):
            claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": STORAGE_CLASS}
            claim["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[assignment]
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    elif is_batch:
        made["spec"]["restartPolicy"] = dice.pick(("Never", "OnFailure"))
        job: Data = {"completions": replicas, "parallelism": dice.log_whole(1, replicas), "template": made}
        if canvas.is_one("job", "indexed"):
            job["completionMode"] = "Indexed"
        elif canvas.is_one("job", "failing") and dice.chance(0.6):
            made["metadata"]["annotations"]["kemu.dev/exit-code"] = "1"
            job["backoffLimit"] = dice.whole(0, 3)
        spec = job
        if kind == "CronJob":
            job["completions"] = job["parallelism"] = 1
            spec = {
                "schedule": "* * * * *",
                "concurrencyPolicy": dice.pick(("Allow", "Forbid", "Replace")),
                "jobTemplate": {"spec": job},
            }
    if canvas.is_one("claims", "ephemeral") and not is_daemon and not is_batch:
        claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": STORAGE_CLASS}
        claim["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[assignment]
        made["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
    canvas.owners.append(Owner(kind, namespace, name, replicas))
    version = "batch/v1" if is_batch else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _budget(canvas: Canvas) -> None:
    dice = canvas.dice("budget")
    kept = [one for one in canvas.owners if one.kind in ("Deployment", "ReplicaSet", "StatefulSet")]
    for index, one in enumerate(kept[: dice.whole(1, 2)]):
        limits: dict[str, Data] = {
            "min": {"minAvailable": max(0, one.replicas - dice.whole(0, 2))},
            "max": {"maxUnavailable": dice.whole(0, 2)},
            "percent": {"minAvailable": "50%"},
        }
        spec = {**limits[canvas.level("budget")], "selector": {"matchLabels": {"app": one.app}}}
        metadata = {"name": f"budget-{index}", "namespace": one.namespace}
        canvas.manifest({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec})


def _single_pods(canvas: Canvas) -> None:
    dice = canvas.dice("pods")
    placed = 0.8 if canvas.is_one("pods", "placed") else 0.25
    for index in range(canvas.takes(dice, 20)):
        pod = single_pod(canvas, dice.part("pods", index), f"pod-{index}", ends=canvas.is_one("pods", "finite"))
        if dice.chance(placed):
            # It runs when the clock starts.
            pod["spec"]["nodeName"] = dice.pick(canvas.node_names)
            for key in ("affinity", "topologySpreadConstraints", "schedulerName"):
                pod["spec"].pop(key, None)
        elif dice.chance(0.4):
            canvas.event(dice.whole(1, canvas.active_s), "create", pod)
            continue
        canvas.manifest(pod)


def single_pod(canvas: Canvas, dice: Dice, name: str, *, ends: bool = False) -> Data:
    made = templates.template(canvas, dice, name, ends=ends)
    made["metadata"] = {"name": name, **made["metadata"]}
    canvas.single_pods.append(name)
    return {"apiVersion": "v1", "kind": "Pod", **made}


def _workload(canvas: Canvas) -> None:
    dice = canvas.dice("workload")
    count = canvas.takes(dice, 60)
    until = max(10, canvas.active_s - 10)
    kinds: dict[str, Data] = {
        "poisson": {"poisson": {"rate": f"{max(0.1, count / until):.2f}/s"}, "count": count, "until": f"{until}s"},
        "every": {"every": f"{max(1, until * 1000 // count)}ms", "count": count},
        "at-once": {"count": count},
    }
    arrivals = kinds[canvas.level("workload")]
    made = templates.template(canvas, dice, "stream")
    # The life of a workload stands beside its template.
    notes = made["metadata"].get("annotations", {})
    for key in [key for key in notes if key in ("kemu.dev/run-seconds", "kemu.dev/exit-code")]:
        del notes[key]
    item: Data = {"name": "stream", "start": f"{dice.whole(0, 10)}s", "arrivals": arrivals, "pods": made}
    if dice.chance(0.7):
        item["life"] = {
            "runSeconds": dice.pick((20, {"exponential": {"mean": 30}}, {"uniform": {"min": 1, "max": 90}}))
        }
    if dice.chance(0.3):
        item["replaceFinished"] = True
    canvas.spec["workloads"] = [item]
