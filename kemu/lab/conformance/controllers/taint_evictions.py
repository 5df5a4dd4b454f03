"""Recorded taint-based evictions, repeated with the actor ``controller/taint-eviction``."""

from __future__ import annotations

from typing import Any

from kemu.emulated.controllers import taint_timers
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance import readings
from kemu.lab.conformance.control_planes import ControlPlane, Deletions
from kemu.messages.k8s import core_v1_pb2

Json = dict[str, Any]
FACTORY = "kemu.emulated.controllers.taint_eviction:TaintEvictionController"
_MS_NS = 1_000_000


def answer(case: Json) -> Json:
    plane = ControlPlane()
    nodes: list[Any] = [readings.node(data) for data in case.get("nodes") or ()]
    pods: list[Any] = readings.pods(case.get("pods"))
    by_name: dict[str, Any] = {one.metadata.name: one for one in (*nodes, *pods)}
    deletions = Deletions(plane)

    async def play() -> list[str]:
        await plane.put(*nodes, *pods)
        left = await plane.watch("pods", deletions)
        await plane.launch("controller/taint-eviction", FACTORY)
        await plane.runtime.begin()
        for event in case.get("events") or ():
            await plane.clock.sleep_until_ns(event["atMs"] * _MS_NS)
            await _happen(plane, by_name, event)
        await plane.clock.sleep_until_ns(case["horizonMs"] * _MS_NS)
        return sorted(pod.metadata.name for pod in left.values())

    remaining = plane.run(play)
    return {
        "deletions": [{"pod": name, "atMs": at_ns // _MS_NS} for at_ns, name in sorted(deletions.found)],
        "remaining": remaining,
        "minTolerationSeconds": {
            pod.metadata.name: taint_timers.shortest_toleration_s(pod.spec.tolerations) for pod in pods
        },
    }


async def _happen(plane: ControlPlane, by_name: dict[str, Any], event: Json) -> None:
    """What the case does to an object; to one that is not there it does nothing."""
    what = event["do"]
    if what == "addPod":
        pod = by_name[event["newPod"]["metadata"]["name"]] = readings.pod(event["newPod"])
        await plane.put(pod)
        return
    obj = by_name.get(event["node"] if "node" in event else event["pod"])
    if obj is None:
        return
    if what in ("deletePod", "deleteNode"):
        plane.removed.add(obj.metadata.uid)
        await plane.remove(obj)
        return
    field = "taints" if what == "setTaints" else "tolerations"
    message = core_v1_pb2.Taint if what == "setTaints" else core_v1_pb2.Toleration
    wanted = [convert.from_json(message, one) for one in event.get(field) or ()]

    def set_list(now: Any) -> None:
        values = getattr(now.spec, field)
        del values[:]
        values.extend(wanted)

    await plane.change(obj, set_list)
