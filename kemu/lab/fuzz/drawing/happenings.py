"""Events of a drawn scenario."""

from __future__ import annotations

from kemu.lab.fuzz.drawing import clusters, objects
from kemu.lab.fuzz.drawing.canvases import Canvas, Data
from kemu.lab.fuzz.drawing.dice import Dice


def draw(canvas: Canvas) -> None:
    if canvas.has("nodes_change"):
        _nodes(canvas)
    if canvas.has("pods_change"):
        _pods(canvas)
    if canvas.has("workloads_change"):
        _workloads(canvas)
    events = canvas.spec.get("events")
    if events:
        events.sort(
            key=lambda event: (
                float(event["at"].removesuffix("ms")) / 1000 if "ms" in event["at"] else float(event["at"][:-1])
            )
        )


def _times(canvas: Canvas, dice: Dice, most: int) -> list[float]:
    """When something happens; often in the same second, as races need it."""
    return [float(dice.whole(1, canvas.active_s)) for _ in range(dice.log_whole(1, most))]


def _nodes(canvas: Canvas) -> None:
    dice = canvas.dice("nodes-change")
    what = canvas.level("nodes_change")
    victims = dice.shuffled(list(canvas.node_names))
    for index, at_s in enumerate(_times(canvas, dice, 3)):
        one = dice.part("nodes-change", index)
        if what == "join":
            canvas.event(at_s, "addNode", {"name": f"late-{index}", **clusters.node(canvas, one)})
            continue
        # One node is spared, so that there is somewhere to go.
        if index >= max(1, len(victims) - 1):
            break
        name = victims[index]
        if what == "leave":
            canvas.event(at_s, "removeNode", {"node": name})
        elif what == "drain":
            drain = {"node": name, "ignoreDaemonSets": True, "force": True, "deleteEmptyDirData": True}
            if one.chance(0.5):
                drain["timeout"] = f"{one.whole(10, 60)}s"
            canvas.event(at_s, "drain", drain)
            if one.chance(0.5):
                canvas.event(min(at_s + one.whole(5, 60), canvas.active_s), "uncordon", {"node": name})
        elif what == "cordon":
            canvas.event(at_s, "cordon", {"node": name})
            if one.chance(0.6):
                canvas.event(min(at_s + one.whole(5, 60), canvas.active_s), "uncordon", {"node": name})
        elif what == "taint":
            effect = one.pick(("NoSchedule", "NoExecute"))
            canvas.event(at_s, "taint", {"node": name, "key": "work", "value": "on", "effect": effect})
            if one.chance(0.6):
                canvas.event(min(at_s + one.whole(5, 60), canvas.active_s), "untaint", {"node": name, "key": "work"})
        else:
            canvas.event(at_s, "shutdownNode", {"node": name})
            if one.chance(0.7):
                canvas.event(at_s + one.whole(5, 40), "startNode", {"node": name})


def _pods(canvas: Canvas) -> None:
    dice = canvas.dice("pods-change")
    what = canvas.level("pods_change")
    if what == "late" or not canvas.single_pods:
        for index, at_s in enumerate(_times(canvas, dice, 8)):
            canvas.event(at_s, "create", objects.single_pod(canvas, dice.part("late", index), f"late-{index}"))
        return
    victims = dice.shuffled(list(canvas.single_pods))
    for index, at_s in enumerate(_times(canvas, dice, 4)):
        one = dice.part("pods-change", index)
        name = victims[index % len(victims)]
        if what == "evict":
            canvas.event(at_s, "evict", {"pod": name})
        elif what == "delete":
            canvas.event(at_s, "delete", {"pod": name, **one.pick(({}, {"gracePeriodSeconds": 1}))})
        elif what == "finish":
            canvas.event(at_s, "finish", {"pod": name, "exitCode": one.pick((0, 1))})
        else:
            amount = f"{canvas.cpu * one.whole(50, 500)}m"
            canvas.event(at_s, "resize", {"pod": name, "containers": {"main": {"requests": {"cpu": amount}}}})


def _workloads(canvas: Canvas) -> None:
    dice = canvas.dice("workloads-change")
    what = canvas.level("workloads_change")
    kept = [one for one in canvas.owners if one.kind in ("Deployment", "ReplicaSet", "StatefulSet")]
    if not kept:
        return
    deleted = False
    for index, at_s in enumerate(_times(canvas, dice, 3)):
        one = dice.part("workloads-change", index)
        target = one.pick(kept)
        named: Data = {"kind": target.kind, "name": target.name, "namespace": target.namespace}
        if what == "scale":
            count = one.log_whole(1, 20) if one.chance(0.8) else 0
            canvas.event(at_s, "patch", {**named, "merge": {"spec": {"replicas": count}}})
        elif what == "delete":
            if not deleted:
                canvas.event(
                    at_s, "delete", {**named, "propagationPolicy": one.pick(("Background", "Foreground", "Orphan"))}
                )
            deleted = True
        elif what == "image" and target.kind != "ReplicaSet":
            container = {"name": "main", "image": f"example.com/web:{one.whole(2, 4)}"}
            canvas.event(
                at_s, "patch", {**named, "strategic": {"spec": {"template": {"spec": {"containers": [container]}}}}}
            )
        elif what == "restart" and target.kind != "ReplicaSet" and target.namespace == "default":
            reference = f"{target.kind.lower()}/{target.name}"
            canvas.event(at_s, "rollout", {"restart": reference})
