"""Pods and templates of pods."""

from __future__ import annotations

import json
from typing import Any

from kemu.lab.fuzz.drawing.canvases import HOST, ZONE, Canvas, Data
from kemu.lab.fuzz.drawing.clusters import DEDICATED
from kemu.lab.fuzz.drawing.dice import Dice

SHARES = {"ample": (5, 20), "tight": (10, 45), "over": (20, 90)}
"""Per cent of a node that a pod requests."""


def template(canvas: Canvas, dice: Dice, app: str, *, ends: bool = False, one_per_node: bool = False) -> Data:
    """Metadata and spec. ``ends``: its containers end by themselves. ``one_per_node``: a DaemonSet puts it there."""
    annotations: Data = {}
    container: Data = {"name": "main"}
    resources = _resources(canvas, dice)
    if resources:
        container["resources"] = resources
    if canvas.has("images"):
        container["image"] = dice.pick(("example.com/web:1", "example.com/web:2", "example.com/other:1"))
    spec: Data = {"containers": [container]}
    _containers(canvas, dice, spec, container, annotations, ends=ends)
    _probes(canvas, dice, container, annotations)
    if canvas.has("priorities") and dice.chance(0.8):
        spec["priorityClassName"] = dice.pick(canvas.classes)
    if len(canvas.scheduler_names) > 1 and not one_per_node:
        spec["schedulerName"] = dice.pick(canvas.scheduler_names)
    if not one_per_node:
        _placement(canvas, dice, spec, app)
    elif canvas.is_one("daemon_set", "some-nodes"):
        spec["nodeSelector"] = {"disk": "ssd"}
    if canvas.has("tolerations") or canvas.has("taints"):
        _tolerations(canvas, dice, spec)
    if canvas.has("grace"):
        grace = dice.pick((0, 1, 5)) if canvas.is_one("grace", "short") else dice.pick((30, 60, 120, 300))
        spec["terminationGracePeriodSeconds"] = grace
        annotations["kemu.dev/shutdown-seconds"] = str(dice.pick((0, grace // 2, grace, grace * 2)))
    if canvas.has("usage") and dice.chance(0.8):
        annotations["kemu.dev/usage"] = json.dumps(_usage(canvas, dice))
        if canvas.is_one("usage", "limits"):
            limit = max(16, canvas.memory_mib * dice.pick((5, 20, 40)) // 100)
            requested = container.get("resources", {}).get("requests", {}).get("memory", "0Mi")
            limits = container.setdefault("resources", {}).setdefault("limits", {})
            limits.setdefault("memory", f"{max(limit, int(requested.removesuffix('Mi')))}Mi")
    if ends:
        annotations["kemu.dev/run-seconds"] = str(dice.log_whole(1, 60))
    metadata: Data = {"labels": {"app": app}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec}


def _resources(canvas: Canvas, dice: Dice) -> Data:
    level = canvas.level("qos")
    if level == "mixed":
        level = dice.pick(("-", "best-effort", "guaranteed"))
    if level == "best-effort":
        return {}
    least, most = SHARES[canvas.level("room")]
    amounts = {
        "cpu": f"{max(10, canvas.cpu * 10 * dice.whole(least, most))}m",
        "memory": f"{max(16, canvas.memory_mib * dice.whole(least, most) // 100)}Mi",
    }
    if level == "guaranteed":
        return {"requests": amounts, "limits": dict(amounts)}
    return {"requests": amounts if dice.chance(0.7) else {"cpu": amounts["cpu"]}}


def _containers(canvas: Canvas, dice: Dice, spec: Data, container: Data, annotations: Data, *, ends: bool) -> None:
    level = canvas.level("containers")
    if level == "init" and dice.chance(0.7):
        spec["initContainers"] = [{"name": "first"}]
        annotations["kemu.dev/run-seconds.first"] = str(dice.whole(0, 8))
    elif level == "sidecar" and dice.chance(0.7):
        spec["initContainers"] = [{"name": "proxy", "restartPolicy": "Always"}]
    elif level == "ports" and dice.chance(0.5):
        container["ports"] = [{"containerPort": 80, "hostPort": 8000 + dice.whole(0, 2)}]
    elif level == "crashing" and dice.chance(0.4) and not ends:
        annotations["kemu.dev/run-seconds"] = str(dice.whole(1, 20))
        annotations["kemu.dev/exit-code"] = "1"


def _probes(canvas: Canvas, dice: Dice, container: Data, annotations: Data) -> None:
    if not canvas.has("probes") or dice.chance(0.3):
        return
    kind = canvas.level("probes")
    handler = {"httpGet": {"path": "/", "port": 80}}
    container[f"{kind}Probe"] = {
        **handler,
        "periodSeconds": dice.pick((1, 5)),
        "initialDelaySeconds": dice.whole(0, 10),
    }
    if dice.chance(0.4):
        rule: Data = {"failsFrom": f"{dice.whole(5, 40)}s", "failsFor": f"{dice.whole(1, 20)}s"}
        if kind == "liveness":
            rule["starts"] = 1
        annotations["kemu.dev/probes"] = json.dumps({"main": {kind: rule}})


def _placement(canvas: Canvas, dice: Dice, spec: Data, app: str) -> None:
    level = canvas.level("affinity")
    selector = {"matchLabels": {"app": app}}
    key = ZONE if canvas.has("zones") and dice.chance(0.5) else HOST
    expression = {"key": "disk", "operator": dice.pick(("In", "NotIn")), "values": ["ssd"]}
    affinity: Data = {}
    if level == "node":
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    elif level == "pod":
        term = {"labelSelector": selector, "topologyKey": key}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif level == "anti":
        term = {"labelSelector": selector, "topologyKey": key}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif level == "preferred":
        soft: Data = {"weight": 10, "podAffinityTerm": {"labelSelector": selector, "topologyKey": key}}
        affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [soft]}}
    if affinity and dice.chance(0.7):
        spec["affinity"] = affinity
    if canvas.has("spread") and dice.chance(0.7):
        when = "DoNotSchedule" if canvas.is_one("spread", "hard") else "ScheduleAnyway"
        spec["topologySpreadConstraints"] = [
            {"maxSkew": dice.whole(1, 2), "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}
        ]


def _tolerations(canvas: Canvas, dice: Dice, spec: Data) -> None:
    level = canvas.level("tolerations")
    found: list[Data] = []
    if level == "all":
        found = [{"operator": "Exists"}]
    elif level == "seconds":
        for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"):
            found.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": dice.whole(0, 60)}
            )
    if level == "some" or (canvas.has("taints") and dice.chance(0.6)):
        found.append({"key": DEDICATED, "operator": "Exists"})
    if found:
        spec["tolerations"] = found


def _usage(canvas: Canvas, dice: Dice) -> Data:
    size = canvas.memory_mib * dice.pick((5, 15, 40, 80)) // 100
    level = canvas.level("usage")
    if level == "disk":
        return dice.pick(
            (
                {"rootfs": {"ramp": {"from": "100Mi", "to": f"{dice.whole(1, 9)}Gi", "over": "60s"}}},
                {"logs": f"{dice.whole(1, 9)}Gi"},
                {"inodes": "100000", "pids": "500"},
            )
        )
    if level == "ramp":
        over = f"{dice.whole(10, 120)}s"
        memory: Any = {
            "ramp": {"from": f"{size // 4}Mi", "to": f"{size}Mi", "over": over, "after": f"{dice.whole(0, 60)}s"}
        }
        return {
            "memory": dice.pick(
                (memory, {"steps": [{"at": "0s", "value": "16Mi"}, {"at": "30s", "value": f"{size}Mi"}]})
            )
        }
    return {"memory": f"{size}Mi", **dice.pick(({}, {"cpu": "500m"}))}
