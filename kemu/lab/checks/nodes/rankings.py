"""The check that a kubelet under pressure evicts in the order of the rules."""

from __future__ import annotations

from typing import ClassVar

from kemu.emulated.objects.amounts import requests
from kemu.lab.checks.attention import Attention
from kemu.lab.checks.history import History, parsed
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.nodes.occupancies import is_critical
from kemu.lab.checks.results import Check, Fold, Result, seconds
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import PodEvicting
from kemu.runtime.words import counted

_SIGNALS = {"memory.available": "memory", "allocatableMemory.available": "memory", "pid.available": "pid"}


class EvictionsFollowTheRanking(Check):
    """A kubelet evicts the pod that the rules put first, by what it had measured at that moment.

    Short of memory: pods that use more than they request, then those of lower priority, then those that exceed their
    request by most. Short of processes: those of lower priority, then those that have most (``rankMemoryPressure``,
    ``rankPIDPressure``). Critical, static and mirror pods are not evicted.
    """

    id: ClassVar[str] = "evictions-follow-the-ranking"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention,)

    def given(self, *folds: Attention) -> None:
        self._history = folds[0].history

    def __init__(self) -> None:
        self._judged = 0
        self._findings: list[str] = []

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return not limits.own_ranking

    def on_event(self, time_ns: int, actor: str, event: PodEvicting) -> None:
        resource = _SIGNALS.get(event.signal)
        used = event.used
        known = self._history.pods
        if resource is None or not used or event.uid not in known or event.uid not in used:
            return
        self._judged += 1
        # As they were last: a kubelet may not have heard yet that one is gone.
        written = {uid: known[uid].change for uid in used if uid in known}
        pods = {uid: parsed.pod(change.value or b"") for uid, change in written.items() if change is not None}
        victim = pods[event.uid]
        keys = {
            uid: _key(pods[uid], amount, resource)
            for uid, amount in used.items()
            if uid in pods and not is_critical(pods[uid])
        }
        own = _key(victim, used[event.uid], resource)
        first = min(keys, key=lambda uid: (keys[uid], uid), default=event.uid)
        if is_critical(victim) or keys[first] < own:
            name = pods[first].metadata.name
            self._findings.append(
                f"{seconds(time_ns)}: {event.node} evicts {event.pod} for {event.signal} "
                f"({_said(own, resource)}), before {name} ({_said(keys.get(first, own), resource)})"
            )

    def result(self, history: History) -> Result:
        good = f"{counted(self._judged, 'eviction')} in order"
        return self.concluded(self._findings, self._judged, "no pod was evicted for lack of memory or processes", good)


def _key(pod: core_v1_pb2.Pod, used: int, resource: str) -> tuple[bool, int, int]:
    """The order in which pods are evicted, the least first."""
    if resource == "pid":
        return False, pod.spec.priority, -used
    request = requests.ranking_request(pod, resource)
    return used <= request, pod.spec.priority, request - used


def _said(key: tuple[bool, int, int], resource: str) -> str:
    if resource == "pid":
        return f"priority {key[1]}, {counted(-key[2], 'process', 'processes')}"
    return f"priority {key[1]}, {abs(key[2])} bytes {'below' if key[0] else 'above'} its request"
