"""The figures of a run by workload and by scheduler: who waited, was served, and was thrown out."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.scheduling import waiting
from kemu.lab.checks.scheduling.waiting import Wait

SINGLE = "single pods"
"""The group of pods that no workload or controller made."""


def workloads(history: History, waits: Iterable[Wait]) -> dict[str, dict[str, float | int]]:
    """By workload, or controller as ``ReplicaSet/web``, in the order of their first pods: waiting times of the pods
    that a scheduler had to place, and how many pods were created, bound, preempted, evicted, rejected and
    OOM-killed. ``waits``: of the pods that are measured."""
    groups: dict[str, tuple[list[PodHistory], list[Wait]]] = {}
    for pod in history.measured():
        groups.setdefault(group_of(pod), ([], []))[0].append(pod)
    for wait in waits:
        groups[group_of(wait.pod)][1].append(wait)
    return {
        name: {
            "created": len(pods),
            "bound": sum(pod.first("bound") is not None for pod in pods),
            **{what: _times(pods, what) for what in ("preempted", "evicted", "rejected", "oomKilled")},
            **waiting.describe(waited),
        }
        for name, (pods, waited) in groups.items()
    }


def group_of(pod: PodHistory) -> str:
    """The workload or controller of a pod, or :data:`SINGLE`."""
    if pod.workload:
        return pod.workload
    kind, slash, name = pod.owner.partition("/")
    # The owner of a pod without a controller is its own name, or the generateName in its namespace.
    if slash and kind != pod.key.partition("/")[0]:
        return f"{kind}/{name}"
    return SINGLE


def _times(pods: Iterable[PodHistory], what: str) -> int:
    return sum(fact.what == what for pod in pods for fact in pod.facts)


_TOLD_BY = {"attempted": "attempts", "unschedulable": "unschedulable", "bound": "bound"}


def schedulers(history: History) -> dict[str, dict[str, int]]:
    """By replica, as ``red/0``: attempts, those that found no node, pods bound, conflicts (those of the
    whole run), and pods preempted."""
    found: dict[str, dict[str, int]] = {}
    for pod in history.measured():
        for fact in pod.facts:
            if fact.what in _TOLD_BY and fact.by:
                _row(found, fact.by)[_TOLD_BY[fact.what]] += 1
            elif fact.what == "preempted" and fact.actor.startswith("scheduler/"):
                _row(found, fact.actor.removeprefix("scheduler/"))["preempted"] += 1
    for replica, conflicts in history.bind_conflicts.items():
        _row(found, replica)["conflicts"] += conflicts
    return dict(sorted(found.items()))


def _row(found: dict[str, dict[str, int]], replica: str) -> dict[str, int]:
    empty = {"attempts": 0, "unschedulable": 0, "bound": 0, "conflicts": 0, "preempted": 0}
    return found.setdefault(replica, empty)
