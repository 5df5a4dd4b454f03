"""Recorded searches for victims of Kueue's scheduler, repeated by :mod:`kemu.emulated.queues.preemption`.

A case says which queues and cohorts there are, what is admitted, and what needs room; the answer is who has to go, why.
"""

from __future__ import annotations

from typing import Any

from kemu.emulated.queues import preemption, quotas, workloads

Json = dict[str, Any]


def answer(case: Json) -> Json:
    cohorts = {name: quotas.Node(name, _quotas(one), one["weight"]) for name, one in case["cohorts"].items()}
    for name, one in sorted(case["cohorts"].items()):
        _attach(cohorts[name], cohorts.get(one["parent"]))
    queues = {name: _queue(name, one) for name, one in case["clusterQueues"].items()}
    for name, one in sorted(case["clusterQueues"].items()):
        _attach(queues[name], cohorts.get(one["cohort"]))
    for node in (*cohorts.values(), *queues.values()):
        if node.parent is None:
            node.settle()
    for name, one in case["clusterQueues"].items():
        for admitted in one["workloads"]:
            queues[name].admit(_workload(admitted))
    rules = preemption.Rules(
        fair=tuple(case["strategies"]) if case["fairSharing"] else (),
        needs_buffer=case["timestampBuffer"],
        within_nominal=case["withinNominal"],
    )
    found = preemption.targets(
        _workload(case["workload"]), queues[case["workload"]["clusterQueue"]], case["needs"], rules, case["now"]
    )
    return {"targets": [{"workload": one.workload.name, "reason": one.reason} for one in found]}


def agrees(expect: Json, given: Json) -> list[str]:
    """The order of victims does not count: all of them go at once."""
    wanted, told = (sorted((one["workload"], one["reason"]) for one in side["targets"]) for side in (expect, given))
    return [] if wanted == told else [f"{told}, not {wanted}"]


def _attach(node: quotas.Node, parent: quotas.Node | None) -> None:
    node.parent = parent
    if parent is not None:
        parent.children.append(node)


def _quotas(one: Json) -> dict[str, quotas.Quota]:
    return {
        name: quotas.Quota(stated["nominal"], stated.get("borrowingLimit"), stated.get("lendingLimit"))
        for name, stated in one["quotas"].items()
    }


def _queue(name: str, one: Json) -> workloads.Queue:
    stated = one["preemption"]
    borrow = stated.get("borrowWithinCohort") or {}
    return workloads.Queue(
        name,
        _quotas(one),
        one["weight"],
        within=stated["withinClusterQueue"] or workloads.NEVER,
        reclaim=stated["reclaimWithinCohort"] or workloads.NEVER,
        borrow=borrow.get("policy") or workloads.NEVER,
        borrow_below=borrow.get("maxPriorityThreshold"),
    )


def _workload(one: Json) -> workloads.Workload:
    return workloads.Workload(
        one["name"],
        one["uid"],
        one["priority"],
        dict(one["usage"]),
        frozenset(one["uses"]),
        one["queued"],
        one["reserved"],
        one["evicted"],
    )
