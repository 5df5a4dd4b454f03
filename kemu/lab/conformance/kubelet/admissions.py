"""Recorded admissions of pods, and preemptions for critical pods, decided again by the kubelet's arrivals."""

from __future__ import annotations

from typing import Any

from kemu.emulated.kubelet.admission import predicates, preemption
from kemu.emulated.objects import meta
from kemu.lab.conformance import readings
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.kubelet import nodes
from kemu.messages.k8s import core_v1_pb2

Json = dict[str, Any]
_REJECTED = "Pod was rejected: "
"""How the kubelet begins the message of a pod that it does not take."""


def answer(case: Json) -> Json:
    plane = ControlPlane()
    return {"outcomes": [plane.run(lambda: (_recover if case["mode"] == "direct" else _admit)(plane, case))]}


async def _admit(plane: ControlPlane, case: Json) -> Json:
    """A pod arrives at a node that runs others."""
    node = readings.node(case["node"])
    workers = nodes.PodWorkers(plane, node.metadata.name, _read_again(case, node))
    if not case.get("nodeError"):
        workers.arrivals.node = predicates.NodeView(node)
    if case.get("pluginError"):
        workers.arrivals.allocate_devices = lambda pod: predicates.NO_DEVICES
    await workers.arrive(*readings.pods(case.get("pods")), running=True)
    await plane.runtime.begin()
    pod = readings.pod(case["pod"])
    await workers.arrive(pod)
    await workers.settle()
    decision, status = workers.arrivals.decision, (await plane.get(pod)).status
    assert decision is not None
    return {
        "admit": decision.admitted,
        "reason": status.reason,
        "message": status.message.removeprefix(_REJECTED),
        "failureReasons": [_failure_json(failure) for failure in decision.failures],
        "preempted": await workers.kills(),
    }


def _read_again(case: Json, node: core_v1_pb2.Node) -> core_v1_pb2.Node:
    """What the second look at the Node finds. Without news it is the object of the first look, which the kubelet has
    labelled with its operating system by then."""
    if "freshNode" in case:
        return readings.node(case["freshNode"])
    same = meta.copied(node)
    if same.metadata.labels:
        same.metadata.labels[predicates.OS_LABEL] = predicates.OS
    return same


async def _recover(plane: ControlPlane, case: Json) -> Json:
    """The checks have found these reasons; perhaps the pod is critical."""
    pod, found = readings.pod(case["pod"]), tuple(_failure(reason) for reason in case.get("reasons") or ())
    workers = nodes.PodWorkers(plane, "node")
    running = await workers.arrive(*readings.pods(case.get("pods")), running=True)
    recovery = preemption.handle(pod, found, [worker.pod for worker in running])
    await plane.runtime.begin()
    workers.arrivals.node = predicates.NodeView(core_v1_pb2.Node())
    workers.arrivals.found = found
    await workers.arrive(pod)
    await workers.settle()
    return {
        "failureReasons": case.get("reasons"),
        "remainingReasons": [_failure_json(failure) for failure in recovery.remaining],
        "error": recovery.error,
        "preempted": await workers.kills(),
    }


def _failure(reason: Json) -> predicates.Failure:
    if "predicate" in reason:
        return predicates.Unfit(reason["predicate"], reason.get("desc", ""))
    amounts = (reason.get(key, 0) for key in ("requested", "used", "capacity"))
    return predicates.Insufficient(reason["resource"], *amounts)


def _failure_json(failure: predicates.Failure) -> Json:
    if isinstance(failure, predicates.Unfit):
        return {"predicate": failure.predicate, "desc": failure.description}
    return {
        "resource": failure.resource,
        "requested": failure.requested,
        "used": failure.used,
        "capacity": failure.capacity,
    }
