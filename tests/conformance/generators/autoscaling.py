"""HorizontalPodAutoscalers: their looks at pods that start, fail, and use more or less."""

from __future__ import annotations

import random
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults

Json = dict[str, Any]

FAMILIES = ("autoscaling",)
CONTAINERS = ("c", "d")


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    replicas = draw.choice([0, 1, 1, 2, 3, 4, 5, 8, 10, 15])
    state: Json = {"load": draw.choice([0.2, 0.5, 0.8, 1.0, 1.3, 2.0, 5.0]), "pods": draw.choice([1, 2, 3, 5, 8])}
    looks, now_s = [], 0
    for _ in range(draw.choice([1, 1, 2, 4, 8, 12])):
        after_s = draw.choice([15, 15, 15, 15, 16, 30, 61, 120, 400])
        now_s += after_s
        looks.append(_look(draw, after_s, now_s, state))
    return {
        "id": f"{family}-s{seed}-{number:05}",
        "family": family,
        "autoscaler": _autoscaler(draw),
        "replicas": replicas,
        "looks": looks,
    }


def _autoscaler(draw: random.Random) -> Json:
    spec: Json = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"},
        "maxReplicas": draw.choice([2, 5, 10, 10, 20, 100]),
        "metrics": [_metric(draw) for _ in range(draw.choice([1, 1, 1, 2, 3]))],
    }
    if draw.random() < 0.4:
        spec["minReplicas"] = draw.choice([1, 2, 3, 6])
    if draw.random() < 0.6:
        sides = draw.choice([("scaleUp",), ("scaleDown",), ("scaleUp", "scaleDown")])
        spec["behavior"] = {side: _rules(draw) for side in sides}
    data = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }
    # As the API server has it.
    message = convert.from_manifest(data)
    defaults.apply(message)
    return convert.to_json(message)


def _metric(draw: random.Random) -> Json:
    kind = draw.choice(["Resource"] * 6 + ["ContainerResource"] * 3 + ["Pods", "Object", "External"])
    if kind in ("Pods", "Object", "External"):
        by_average = kind == "Pods" or draw.random() < 0.5
        target: Json = (
            {"type": "AverageValue", "averageValue": "10"} if by_average else {"type": "Value", "value": "10"}
        )
        source: Json = {"metric": {"name": "rps"}, "target": target}
        if draw.random() < 0.3:
            source["metric"]["selector"] = {"matchLabels": {"q": "a"}}
        if kind == "Object":
            source["describedObject"] = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "i"}
        return {"type": kind, kind.lower(): source}
    name = draw.choice(["cpu", "cpu", "memory"])
    if draw.random() < 0.7:
        target = {"type": "Utilization", "averageUtilization": draw.choice([10, 50, 80, 80, 120])}
    else:
        amount = (
            draw.choice(["50m", "100m", "333m", "1"]) if name == "cpu" else draw.choice(["10Mi", "100Mi", "1234567"])
        )
        target = {"type": "AverageValue", "averageValue": amount}
    if kind == "Resource":
        return {"type": kind, "resource": {"name": name, "target": target}}
    container = draw.choice(["c", "c", "d", "side"])
    return {"type": kind, "containerResource": {"name": name, "container": container, "target": target}}


def _rules(draw: random.Random) -> Json:
    found: Json = {}
    if draw.random() < 0.6:
        found["stabilizationWindowSeconds"] = draw.choice([0, 15, 30, 60, 300, 600])
    if draw.random() < 0.5:
        found["selectPolicy"] = draw.choice(["Max", "Min", "Disabled"])
    if draw.random() < 0.7:
        found["policies"] = [
            {
                "type": (kind := draw.choice(["Pods", "Percent"])),
                "value": draw.choice([1, 2, 4, 10] if kind == "Pods" else [1, 10, 50, 75, 100, 200]),
                "periodSeconds": draw.choice([15, 30, 60, 300]),
            }
            for _ in range(draw.choice([1, 1, 2, 3]))
        ]
    if draw.random() < 0.4:
        found["tolerance"] = draw.choice(["0", "0.01", "0.05", "0.35", "0.5", "2"])
    return found


def _look(draw: random.Random, after_s: int, now_s: int, state: Json) -> Json:
    if draw.random() < 0.5:
        state["load"] = max(0.0, state["load"] * draw.choice([0.3, 0.7, 0.9, 1.0, 1.1, 1.5, 3.0]))
    if draw.random() < 0.4:
        state["pods"] = max(0, state["pods"] + draw.choice([-3, -1, 1, 1, 2, 4]))
    requests = {"c": {"cpu": draw.choice(["100m", "250m"]), "memory": "64Mi"}}
    two, lacking = draw.random() < 0.2, draw.random() < 0.04
    pods, samples = [], {}
    for index in range(state["pods"]):
        pod: Json = {
            "name": f"w-{index}",
            "phase": draw.choice(["Running"] * 9 + ["Pending", "Failed", "Succeeded"]),
            "ready": draw.choice(["True"] * 8 + ["False", "False", "Unknown", ""]),
            "readyS": now_s - draw.choice([1, 5, 9, 10, 20, 60, 200, 299, 400, 1000]),
            "startS": now_s - draw.choice([3, 20, 100, 299, 300, 301, 1000]),
            "requests": {name: dict(amounts) for name, amounts in requests.items()},
        }
        if draw.random() < 0.05:
            pod["deleted"] = True
        if draw.random() < 0.03:
            del pod["startS"]
        if two:
            pod["requests"]["d"] = {"cpu": "50m", "memory": "32Mi"}
        if lacking and index == 0:
            del pod["requests"]["c"]["cpu"]
        if draw.random() < 0.05:
            pod["sidecars"] = {"side": {"cpu": "10m", "memory": "8Mi"}}
        if draw.random() < 0.05:
            pod["podRequests"] = draw.choice([{"cpu": "300m"}, {"memory": "128Mi"}, {"cpu": "300m", "memory": "128Mi"}])
        pods.append(pod)
        if draw.random() < 0.9:
            samples[pod["name"]] = {
                name: {
                    "cpu": int(draw.choice([80, 100, 120, 200]) * state["load"]),
                    "memory": int(draw.choice([40, 64, 100]) * state["load"] * 1024) * 1024 * 1000,
                }
                for name in (*pod["requests"], *pod.get("sidecars", {}))
            }
    look: Json = {"afterS": after_s, "pods": pods, "samples": samples, "ageS": draw.choice([0, 0, 0, 5, 15])}
    if draw.random() < 0.06:
        look["replicas"] = draw.choice([0, 1, 4, 30])
    return look
