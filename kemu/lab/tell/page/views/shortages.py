"""What was missing where when no node took a pod: what would have had to change for it to fit.

A walk through time counts what the pods on each node request, as the node's kubelet would: from the binding until the
containers have ended. Neighbour: ``attempts`` asks for every attempt that found no node.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import NodeHistory, PodHistory
from kemu.lab.tell.page.views import nodes, pods

FIT = "NodeResourcesFit"
MOST_COMPARISONS = 300_000
"""Most comparisons of an attempt with a node; of more, the last attempt of each pod is told, or none."""

_REMEDIES = {
    "NodeAffinity": "a node would have to match its node selector or affinity",
    "NodeName": "the node that it names would have to be there",
    "NodePorts": "a host port that it wants would have to be free",
    "NodeUnschedulable": "a node would have to be uncordoned",
    "TaintToleration": "it would have to tolerate the taint of a node, or the taint would have to go",
    "InterPodAffinity": "a node would have to satisfy its affinity to other pods",
    "PodTopologySpread": "a node would have to satisfy its topology spread constraints",
    "VolumeBinding": "its volumes would have to be available on a node",
}
"""By plugin: what would have to change on one of the nodes that it refused."""


@dataclass(frozen=True)
class Question:
    """An attempt that found no node."""

    time_ns: int
    uid: str
    plugins: Mapping[str, int]
    """How many nodes each refused."""


def answers(history: History, questions: Sequence[Question]) -> list[str]:
    """In the order of the questions; empty where there is nothing to say."""
    asked = list(questions)
    if len(asked) * len(history.nodes) > MOST_COMPARISONS:
        last = {one.uid: one for one in asked}
        asked = list(last.values()) if len(last) * len(history.nodes) <= MOST_COMPARISONS else []
    walk = _Walk(history)
    found = {id(one): walk.answer(one) for one in sorted(asked, key=lambda one: one.time_ns)}
    return [found.get(id(one), "") for one in questions]


class _Walk:
    """Through time, once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._changes = sorted(_changes(history), key=lambda one: (one[0], one[1]))
        self._next = 0
        self._used: dict[str, dict[str, int]] = {name: {} for name in history.nodes}
        self._since = {name: [time_ns for time_ns, _ in node.allocatable] for name, node in history.nodes.items()}

    def answer(self, question: Question) -> str:
        self._move_to(question.time_ns)
        pod = self._history.pods.get(question.uid)
        if pod is None:
            return ""
        found = [_REMEDIES[plugin] for plugin in question.plugins if plugin in _REMEDIES]
        if FIT in question.plugins:
            found.insert(0, self._shortage(pod, question.time_ns))
        return "; or ".join(one for one in found if one)

    def _move_to(self, time_ns: int) -> None:
        while self._next < len(self._changes) and self._changes[self._next][0] <= time_ns:
            _, sign, node, pod = self._changes[self._next]
            used = self._used.setdefault(node, {})
            for resource, value in (*pod.requests.items(), ("pods", 1)):
                used[resource] = used.get(resource, 0) + sign * value
            self._next += 1

    def _shortage(self, pod: PodHistory, time_ns: int) -> str:
        """On the node that lacks least."""
        wanted = {**{name: value for name, value in pod.requests.items() if value}, "pods": 1}
        best: tuple[float, str, dict[str, tuple[int, int, int]]] | None = None
        for name, node in self._history.nodes.items():
            there = self._allocatable(node, time_ns)
            lacks = {
                resource: (want, there.get(resource, 0) - self._used[name].get(resource, 0), there.get(resource, 0))
                for resource, want in wanted.items()
                if resource in there or resource != "pods"
            }
            lacks = {resource: each for resource, each in lacks.items() if each[0] > each[1]}
            missing = sum((want - free) / want for want, free, _ in lacks.values())
            if there and lacks and (best is None or missing < best[0]):
                best = missing, name, lacks
        if best is None:
            return ""
        parts = [_lack(resource, *each) for resource, each in best[2].items()]
        return f"{best[1]} was short of {' and '.join(parts)}"

    def _allocatable(self, node: NodeHistory, time_ns: int) -> Mapping[str, int]:
        index = bisect.bisect_right(self._since[node.name], time_ns) - 1
        return node.allocatable[index][1] if index >= 0 else {}


def _lack(resource: str, want: int, free: int, total: int) -> str:
    missing, left = pods.amount(resource, want - free), pods.amount(resource, max(free, 0))
    if want > total:
        has = pods.amount(resource, total)
        return f"{missing} {resource} ({pods.amount(resource, want)} wanted, and it has no more than {has})"
    return f"{missing} {resource} ({pods.amount(resource, want)} wanted, {left} free)"


def _changes(history: History) -> Iterator[tuple[int, int, str, PodHistory]]:
    for pod in history.pods.values():
        for node, begin_ns, end_ns in nodes.of_pod(pod):
            yield begin_ns, 1, node, pod
            if end_ns is not None:
                yield end_ns, -1, node, pod
