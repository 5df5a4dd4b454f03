"""Recorded decisions under node pressure: the ranking of pods, and the eviction manager pass by pass.

A pass is :meth:`kemu.emulated.kubelet.pressure.eviction.Manager.synchronize`. The kubelet's pod workers kill the pods
that it evicts, and their statuses are what the status manager writes. Pods that arrive between passes go through the
arrivals.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.kubelet.pressure import eviction, eviction_loops, ranking
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.usage import stats
from kemu.emulated.objects.amounts import requests
from kemu.lab.conformance import readings
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.kubelet import nodes
from kemu.messages.k8s import core_v1_pb2

Json = dict[str, Any]
_SECOND_NS = readings.SECOND_NS


def rank(case: Json) -> Json:
    pods = readings.pods(case.get("pods"))
    measured = {one.uid: one for one in map(stats.read_pod, case.get("stats") or ())}
    layout = _layout(case)
    return {
        "rankings": {
            signal: {"order": [pod.metadata.name for pod in ranking.rank(pods, measured, signal, layout)]}
            for signal in thresholds.SIGNALS
        }
    }


def manager(case: Json) -> Json:
    """Every step gives its pods anew, also those that were evicted before."""
    plane = ControlPlane()
    by_name = {pod.metadata.name: pod for pod in readings.pods(case.get("pods"))}
    probes = readings.pods(case.get("probes"))
    under_test = eviction.Manager(**settings_of(case["config"]))
    steps = []
    for step in case["steps"]:
        at_ns = int(step["at"] * _SECOND_NS)
        active = [by_name[name] for name in step.get("activePods") or ()]
        outcome = under_test.synchronize(at_ns, active, _surroundings(step, _layout(case)))
        steps.append(
            {
                "error": outcome.error,
                "thresholdsObserved": [
                    {**readings.threshold_json(threshold), "firstObservedAt": since_ns / _SECOND_NS}
                    for threshold, since_ns in under_test.first_observed_ns.items()
                ],
                "thresholdsMet": [readings.threshold_json(threshold) for threshold in under_test.met],
                "nodeConditions": list(under_test.conditions),
                "conditionLastObservedAt": {
                    condition: at / _SECOND_NS for condition, at in under_test.condition_observed_ns.items()
                },
                "admission": {probe.metadata.name: _offer(plane, under_test, probe) for probe in probes},
                "outcomes": [
                    {
                        "attemptedReclaim": outcome.reclaimed,
                        "gc": outcome.collections,
                        "evictionSignal": " ".join(sorted({one.signal for one in outcome.evictions})),
                        "evictions": _evict(outcome),
                        "returned": [one.pod.metadata.name for one in outcome.evictions],
                    }
                ],
            }
        )
    return {"steps": steps}


def _offer(plane: ControlPlane, under_test: eviction.Manager, probe: core_v1_pb2.Pod) -> Json:
    """A pod arrives at a node that has room for it."""
    node = core_v1_pb2.Node()
    for resource in ("pods", *requests.pod_requests(probe)):
        node.status.allocatable[resource].string = "1P"
    decision = nodes.offered(plane, node, probe, lambda pod: eviction_loops.refusal_of(under_test, pod))
    return {"admit": decision.admitted, "reason": decision.reason, "message": decision.message}


def _evict(outcome: eviction.Outcome) -> list[Json]:
    """On a node that runs those who are evicted."""
    if not outcome.evictions:
        return []
    plane = ControlPlane()

    async def play() -> list[Json]:
        workers = nodes.PodWorkers(plane, "node")
        victims = await workers.arrive(*(one.pod for one in outcome.evictions), running=True)
        await plane.runtime.begin()
        for worker, one in zip(victims, outcome.evictions, strict=True):
            workers.kill(worker, eviction_loops.failure_of(one), None, one.grace_s)
        await workers.settle()
        return await workers.kills()

    return plane.run(play)


def settings_of(config: Json) -> Json:
    """The arguments of a manager. Those of a kubelet have defaults; here a field that is not given is 0."""
    found = thresholds.parse(
        config.get("evictionHard") or {},
        config.get("evictionSoft") or {},
        config.get("evictionSoftGracePeriod") or {},
        config.get("evictionMinimumReclaim") or {},
        config.get("enforceNodeAllocatable") or (),
    )
    return {
        "configured": found,
        "transition_ns": int(config.get("evictionPressureTransitionPeriodSeconds", 0) * _SECOND_NS),
        "max_pod_grace_period_s": config.get("evictionMaxPodGracePeriod", 0),
        "local_storage_isolation": bool(config.get("localStorageCapacityIsolation", False)),
    }


def _layout(case: Json) -> thresholds.Layout:
    filesystem = case.get("filesystem") or {}
    return thresholds.Layout(
        bool(filesystem.get("dedicatedImageFs", False)), bool(filesystem.get("dedicatedContainerFs", False))
    )


def _surroundings(step: Json, layout: thresholds.Layout) -> eviction.Surroundings:
    looks = 0
    node = step.get("node")

    def tell_layout() -> thresholds.Layout:
        if step.get("imageFsError"):
            raise eviction.LayoutUnknown(step["imageFsError"])
        return layout

    def look() -> stats.Summary | None:
        nonlocal looks
        looks += 1
        if step.get("summaryError" if looks == 1 else "summaryErrorAfterReclaim"):
            return None
        return stats.read_summary(node or {}, step.get("podStats") or ())

    def collect(collection: str) -> None:
        nonlocal node
        node = step.get("nodeAfterContainerGC" if collection == eviction.CONTAINER_GC else "nodeAfterImageGC") or node

    return eviction.Surroundings(tell_layout, look, collect)
