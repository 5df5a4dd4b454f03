"""Which pod of a run is worth a look: the one that failed or starved, whatever the seed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.scheduling import waiting
from kemu.lab.checks.scheduling.waiting import Wait
from kemu.runtime.words import short

STARVED_OVERTAKEN = 5
STARVED_S = 10.0
"""A pod that waited less has not starved, nor one that was bound and overtaken less often."""

_WORD = re.compile(r"[\w./\-]+")
_TELLING = ("rejected", "nominated", "preempted", "bound")
"""What happens to a pod that is worth a look where nothing failed, the most telling first."""
_COUNTED = {
    "preemptions": "preempted",
    "budget_violations": "preempted",
    "evictions": "evicted",
    "admissions_rejected": "rejected",
    "oom_kills": "oomKilled",
    "nominations": "nominated",
    "attempts_unschedulable": "unschedulable",
}
"""What happened to a pod that a counter counts."""
_COUNTER = re.compile(r"\{counter: (\w+)")
_WORKLOAD = re.compile(r"\{pods: \{workload: ([\w.-]+)\}")


def of_run(verdict: Mapping[str, Any], history: History) -> str:
    """Its name, with the namespace where that is not ``default``; empty where there is no pod.

    What a finding is about, else the pod that starved, else one to which the most telling things happened.
    """
    findings = list(_findings(verdict))
    # A pod that a finding names says more than one of those that another finding counts.
    for text in findings:
        for word in _WORD.findall(text):
            key = _known(word.strip(".-"), history)
            if key:
                return key
    for text in findings:
        for pod in _counted(text, history):
            return short(pod.key)
    wait = starved(verdict, history)
    if wait is not None:
        return name(wait)
    if verdict["unbound"]["reasons"] and (not verdict["expectations"] or verdict["verdict"] != "holds"):
        return short(verdict["unbound"]["reasons"][0]["first"])
    for what in _TELLING:
        for pod in history.pods.values():
            if pod.first(what) is not None:
                return short(pod.key)
    return short(next(iter(history.pods.values())).key) if history.pods else ""


def starved(verdict: Mapping[str, Any], history: History) -> Wait | None:
    """Among the pods that others overtook again and again, or that were never bound, the one that was overtaken most,
    then the one that waited longest."""
    groups = verdict["waiting"].values()
    if not any(group["unbound"] or group["overtaken_max"] >= STARVED_OVERTAKEN for group in groups):
        return None
    hungry = (wait for wait in waiting.waits(history) if _has_starved(wait))
    return max(hungry, key=misery, default=None)


def misery(wait: Wait) -> tuple[int, float]:
    """The larger, the longer it starved."""
    return wait.overtaken, wait.seconds


def name(wait: Wait) -> str:
    """Name of its pod, with the namespace where that is not ``default``."""
    return short(wait.pod.key)


def _has_starved(wait: Wait) -> bool:
    is_served = wait.bound or wait.pod.deleting_ns is not None
    return wait.seconds >= STARVED_S and (wait.overtaken >= STARVED_OVERTAKEN or not is_served)


def _findings(verdict: Mapping[str, Any]) -> Iterator[str]:
    """What names pods of which something does not hold: expectations, then checks, then what could not be judged."""
    judged = verdict["expectations"]
    expected = [one for one in judged if one["holds"] is True]
    for holds in (False, None):
        for one in judged:
            if one["holds"] is holds:
                # An expectation of one pod is about that pod, of several about the first that its detail names.
                is_about_one = one["text"].startswith("{pod:")
                yield f"{one['text']} {one['detail']}" if is_about_one else f"{one['detail']} {one['text']}"
        for check in verdict["checks"]:
            if holds is False and check["holds"] is False and not any(check["id"] in one["text"] for one in expected):
                yield check["detail"]


def _counted(text: str, history: History) -> Iterator[PodHistory]:
    """Pods that a finding without names is about: what a counter counts, or those of a workload."""
    counter, workload = _COUNTER.search(text), _WORKLOAD.search(text)
    for pod in history.pods.values():
        if counter and counter[1] in _COUNTED and pod.first(_COUNTED[counter[1]]) is not None:
            yield pod
        if workload and pod.workload == workload[1]:
            yield pod


def _known(word: str, history: History) -> str:
    key = word if "/" in word else f"default/{word}"
    return short(key) if key in history.names else ""
