"""Recorded decisions on taints and lost nodes."""

from __future__ import annotations

from typing import Any

from kemu.conformance import readings
from kemu.controllers import taint_eviction as taint_evictions
from kemu.k8s import core_v1_pb2
from kemu.objects import convert

Json = dict[str, Any]
_MS_NS = 1_000_000


def taint_eviction(case: Json) -> Json:
    world = _TaintedNodes()
    for node in (readings.node(data) for data in case.get("nodes") or ()):
        world.set_taints(node.metadata.name, node.spec.taints, 0)
    initial = readings.pods(case.get("pods"))
    for pod in initial:
        world.add(pod, 0)
    world.evict(0)
    for event in case.get("events") or ():
        at_ns = event["atMs"] * _MS_NS
        world.evict(at_ns)
        world.happen(event, at_ns)
    world.evict(case["horizonMs"] * _MS_NS)
    return {
        "deletions": [{"pod": name, "atMs": at_ns // _MS_NS} for at_ns, name in sorted(world.deletions)],
        "remaining": sorted(world.pods),
        "minTolerationSeconds": {
            pod.metadata.name: taint_evictions.shortest_toleration_s(pod.spec.tolerations) for pod in initial
        },
    }


class _TaintedNodes:
    """Nodes and pods, and the controller that watches them."""

    def __init__(self) -> None:
        self.controller = taint_evictions.TaintEviction()
        self.nodes: dict[str, None] = {}
        self.pods: dict[str, Any] = {}
        self.deletions: list[tuple[int, str]] = []

    def set_taints(self, name: str, taints: Any, now_ns: int) -> None:
        self.nodes[name] = None
        self.controller.set_node(name, taints, now_ns)

    def add(self, pod: Any, now_ns: int) -> None:
        self.pods[pod.metadata.name] = pod
        self.controller.set_pod(pod.metadata.name, pod, now_ns)

    def evict(self, now_ns: int) -> None:
        for at_ns, name in self.controller.due(now_ns):
            self.deletions.append((at_ns, name))
            del self.pods[name]
            self.controller.forget_pod(name)

    def happen(self, event: Json, now_ns: int) -> None:
        """Events on objects that are gone have no effect."""
        what = event["do"]
        if what == "addPod":
            self.add(readings.pod(event["newPod"]), now_ns)
        elif what in ("setTaints", "deleteNode"):
            name = event["node"]
            if name not in self.nodes:
                return
            if what == "setTaints":
                taints = [convert.from_json(core_v1_pb2.Taint, taint) for taint in event.get("taints") or ()]
                self.set_taints(name, taints, now_ns)
            else:
                del self.nodes[name]
                self.controller.forget_node(name)
        elif event["pod"] in self.pods:
            name = event["pod"]
            if what == "deletePod":
                del self.pods[name]
                self.controller.forget_pod(name)
            else:
                pod = core_v1_pb2.Pod()
                pod.CopyFrom(self.pods[name])
                del pod.spec.tolerations[:]
                pod.spec.tolerations.extend(
                    convert.from_json(core_v1_pb2.Toleration, one) for one in event.get("tolerations") or ()
                )
                self.add(pod, now_ns)
        self.evict(now_ns)


def differences(recorded: Json, answered: Json) -> list[str]:
    return [] if recorded == answered else ["differs"]


def node_failure(case: Json) -> Json:
    raise KeyError(case["id"])
