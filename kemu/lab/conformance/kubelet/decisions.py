"""Recorded decisions of the kubelet and of the node controllers, made again: a function for each family of cases.

Those that take neither time nor an actor are here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.kubelet.pods import critical
from kemu.emulated.kubelet.pressure import oom_scores
from kemu.emulated.kubelet.settings import kubelet_configurations, thresholds
from kemu.emulated.objects.amounts import qos, requests
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import Report
from kemu.lab.conformance import readings
from kemu.lab.conformance.controllers import node_failures, taint_evictions
from kemu.lab.conformance.kubelet import admissions, eviction_loops, eviction_passes, probings, resizings

Json = dict[str, Any]

MIXED = "-mixed"
"""What the families of cases end in that were mixed from the parts of others, and ask the same questions."""
_QOS_RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "pods")


def answer(case: Json) -> Json:
    """What kemu decides about a case. Raises KeyError for an unknown family."""
    family = case.get("family") or case["id"].rpartition("-")[0]
    return _FAMILIES[family.removesuffix(MIXED)](case)


# Families ------------------------------------------------------------------------------------------------------------


def _qos(case: Json) -> Json:
    pod = readings.pod(case["pod"])
    wanted = requests.ranking_request
    names = {*_QOS_RESOURCES}
    return {
        "qosClass": qos.qos_class(pod),
        "computedQOSClass": qos.computed_qos_class(pod),
        "oomScoreAdj": {
            container.name: oom_scores.score(pod, container, case["memoryCapacity"])
            for container in (*pod.spec.initContainers, *pod.spec.containers)
        },
        "requests": {name: wanted(pod, name) for name in sorted(names)},
    }


def _critical(case: Json) -> Json:
    pods = readings.pods(case["pods"])
    return {
        "pods": {
            pod.metadata.name: {
                "static": critical.is_static(pod),
                "mirror": critical.is_mirror(pod),
                "critical": critical.is_critical(pod),
                "nodeCritical": critical.is_node_critical(pod),
            }
            for pod in pods
        },
        "canPreempt": {
            pod.metadata.name: [other.metadata.name for other in pods if critical.preemptable(pod, other)]
            for pod in pods
        },
    }


def _thresholds(case: Json) -> Json:
    try:
        found = thresholds.parse(
            case.get("evictionHard") or {},
            case.get("evictionSoft") or {},
            case.get("evictionSoftGracePeriod") or {},
            case.get("evictionMinimumReclaim") or {},
            case.get("enforceNodeAllocatable") or (),
        )
    except thresholds.ThresholdError as error:
        return {"outcomes": [{"error": str(error), "errorCategory": error.category}]}
    amounts: dict[str, list[list[int]]] = {}
    for threshold in found:
        row = [threshold.value.of(capacity).value for capacity in case["capacities"]]
        amounts.setdefault(threshold.signal, []).append(row)
    layouts = {
        "single": thresholds.Layout(),
        "dedicatedImageFs": thresholds.Layout(dedicated_imagefs=True),
        "dedicatedContainerFs": thresholds.Layout(dedicated_imagefs=True, split=True),
    }
    added = {}
    for name, layout in layouts.items():
        all_of_them, replaced = thresholds.with_container_filesystem(found, layout)
        added[name] = {
            "thresholds": [readings.threshold_json(one) for one in all_of_them],
            "overridesConfigured": bool(replaced),
        }
    outcome = {
        "thresholds": [readings.threshold_json(one) for one in found],
        "amounts": {signal: sorted(rows) for signal, rows in amounts.items()},
        "withContainerFs": added,
    }
    return {"outcomes": [outcome]}


def _config_defaults(case: Json) -> Json:
    stated = case["kubeletConfiguration"]
    settings = kubelet_configurations.SHAPE.formed(stated, (), Report(Document("", stated), []))
    config: Json = {
        "enforceNodeAllocatable": list(settings.enforce_node_allocatable),
        "evictionHard": settings.hard,
        "evictionSoft": settings.eviction_soft,
        "evictionSoftGracePeriod": settings.eviction_soft_grace_period,
        "evictionMinimumReclaim": settings.eviction_minimum_reclaim,
        "evictionMaxPodGracePeriod": settings.eviction_max_pod_grace_period,
        "evictionPressureTransitionPeriodSeconds": settings.eviction_pressure_transition_period_ns / readings.SECOND_NS,
        "localStorageCapacityIsolation": settings.local_storage_capacity_isolation,
        "maxPods": settings.max_pods,
    }
    try:
        config["thresholds"] = [readings.threshold_json(one) for one in settings.eviction_thresholds]
    except thresholds.ThresholdError as error:
        config["error"] = error.category
    return {"config": config}


_FAMILIES: dict[str, Callable[[Json], Json]] = {
    "qos": _qos,
    "critical": _critical,
    "thresholds": _thresholds,
    "config-defaults": _config_defaults,
    "admission": admissions.answer,
    "critical-preemption": admissions.answer,
    "eviction-rank": eviction_passes.rank,
    "eviction-manager": eviction_passes.manager,
    "eviction-loop": eviction_loops.answer,
    "taint-eviction": taint_evictions.answer,
    "probes": probings.answer_probes,
    "readiness": probings.answer_readiness,
    "resize": probings.answer_resize,
    "allocations": resizings.answer,
    "node-failure": node_failures.answer,
}
