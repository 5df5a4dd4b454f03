"""Which pod takes whose place: what happens to a workload again and again happens to a line of pods, each once.

A pod takes the place of the one that its controller or workload made it for, or of an earlier pod of its own name.
"""

from __future__ import annotations

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory


def predecessors(history: History) -> dict[str, PodHistory]:
    """By UID, for every pod that takes the place of another."""
    found: dict[str, PodHistory] = {}
    latest: dict[str, PodHistory] = {}
    for uid, pod in history.pods.items():
        before = latest.get(pod.replaces or pod.key)
        if before is not None:
            found[uid] = before
        latest[pod.key] = pod
    return found


def founders(history: History) -> dict[str, PodHistory]:
    """By UID, the first pod of each one's line."""
    before = predecessors(history)
    found: dict[str, PodHistory] = {}
    for uid, pod in history.pods.items():
        found[uid] = found[before[uid].uid] if uid in before else pod
    return found
