"""The pods that were never bound, and what the schedulers said of them last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory

_AVAILABLE = re.compile(r"0/(\d+) nodes are available: ")
_NUMBER = re.compile(r"(?:(?<=^)|(?<=, ))\d+ ")
_PREEMPTION = " preemption: "
_OF_CLAIMS = re.compile(" (no new claims to deallocate|still not schedulable),")
"""What DynamicResources adds."""
_NO_NODES = "no nodes available to schedule pods"
NO_NODE = "there was no node"
_NOT_TRIED = "no scheduler tried it"


@dataclass(frozen=True, slots=True)
class Unbound:
    """Pods that were never bound for the same reason."""

    reason: str
    """The scheduler's last message, without numbers of nodes and what it says about preemption."""
    hopeless: bool
    """No node could take them, even without any pod on it: the scheduler found that preemption cannot help."""
    pods: tuple[PodHistory, ...]
    """In the order of their creation."""


def of(history: History) -> list[Unbound]:
    """Grouped by reason: the hopeless first, then the largest groups."""
    groups: dict[tuple[str, bool], list[PodHistory]] = {}
    for pod in history.pods.values():
        if pod.bound_ns is None and not pod.preset_node:
            groups.setdefault(_why(pod), []).append(pod)
    found = [Unbound(reason, hopeless, tuple(pods)) for (reason, hopeless), pods in groups.items()]
    return sorted(found, key=lambda group: (not group.hopeless, -len(group.pods)))


def _why(pod: PodHistory) -> tuple[str, bool]:
    last = next((fact for fact in reversed(pod.facts) if fact.what in ("unschedulable", "attempted")), None)
    if last is not None and last.reason == "error":
        return f"its attempts failed: {last.message}", False
    last = next((fact for fact in reversed(pod.facts) if fact.what == "unschedulable"), None)
    if last is None:
        return (_NOT_TRIED if not pod.attempts else "it was tried, and not bound"), False
    message, _, preemption = _OF_CLAIMS.sub("", last.message).partition(_PREEMPTION)
    if message == _NO_NODES:
        return NO_NODE, True
    nodes = _AVAILABLE.match(message)
    if nodes is None:
        return message, False
    # Where no node is any use to preemption (UnschedulableAndUnresolvable), none can take the pod as it is.
    hopeless = f"0/{nodes[1]} nodes are available: {nodes[1]} Preemption is not helpful for scheduling" in preemption
    reasons = message.removeprefix(nodes[0]).removesuffix(".")
    return _NUMBER.sub("", reasons), hopeless


def data(found: list[Unbound]) -> dict[str, Any]:
    """For verdict.json."""
    return {
        "pods": sum(len(group.pods) for group in found),
        "hopeless": sum(len(group.pods) for group in found if group.hopeless),
        "reasons": [
            {"reason": group.reason, "hopeless": group.hopeless, "pods": len(group.pods), "first": group.pods[0].key}
            for group in found
        ],
    }
