"""Checks of a kubelet under pressure: it acts on what it has measured, and keeps pods out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import qos
from kemu.lab.checks.attention import Attention, Punctual
from kemu.lab.checks.history import History, parsed
from kemu.lab.checks.nodes.occupancies import KUBELET, is_critical
from kemu.lab.checks.results import Check, Fold, Result, seconds, several
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorStarted,
    ActorStopped,
    AdmissionDecided,
    PodEvicting,
    PressureChanged,
    ThresholdsMet,
)
from kemu.runtime.words import counted

_Events = ThresholdsMet | PressureChanged | PodEvicting | ActorStarted | ActorCrashed | ActorStopped
_Events2 = PressureChanged | AdmissionDecided | ActorStarted | ActorCrashed | ActorStopped

_MEMORY, _DISK, _PIDS = "MemoryPressure", "DiskPressure", "PIDPressure"
_CONDITIONS = {
    "memory.available": _MEMORY, "allocatableMemory.available": _MEMORY, "pid.available": _PIDS,
    "nodefs.available": _DISK, "nodefs.inodesFree": _DISK, "imagefs.available": _DISK, "imagefs.inodesFree": _DISK,
    "containerfs.available": _DISK, "containerfs.inodesFree": _DISK,
}  # fmt: skip
"""By signal. Limits of local storage are not among them."""
_SOON_S = 30.0
"""For a pass of the eviction manager, every ten seconds, and one that waits for a victim to go."""
_MEMORY_TAINT = core_v1_pb2.Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


@dataclass(slots=True)
class _Node:
    met: dict[tuple[str, float, int], int] = field(default_factory=dict)
    """Since when, by signal, grace period in seconds and threshold."""
    conditions: tuple[str, ...] = ()


class PressureFollowsWhatIsMeasured(Punctual):
    """A kubelet acts on a threshold when less is available than that says, and no longer than that.

    A threshold that is met stays so up to its minimum reclaim. A pod is evicted for a signal when a threshold of it has
    been met for its grace period. A condition of pressure comes with its threshold, and goes when none of its
    thresholds has been met for ``evictionPressureTransitionPeriod`` (``managerImpl.synchronize``).
    """

    id: ClassVar[str] = "pressure-follows-what-is-measured"
    nothing: ClassVar[str] = "no kubelet was short of anything"
    unit: ClassVar[str] = "decision"

    def given(self, *folds: Attention) -> None:
        super().given(*folds)
        self._nodes: dict[str, _Node] = {}
        self._findings: list[str] = []

    def saw(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, (ActorStarted, ActorCrashed, ActorStopped)):
            if actor.startswith(KUBELET):
                self._begins_anew(actor.removeprefix(KUBELET))
            return
        node = self._nodes.setdefault(event.node, _Node())
        if isinstance(event, ThresholdsMet):
            self._measured(time_ns, event.node, node, event.met)
        elif isinstance(event, PodEvicting):
            self._evicts(time_ns, node, event)
        else:
            without = {_CONDITIONS[signal] for signal, _, _ in node.met}
            for condition in event.conditions:
                if condition not in node.conditions and condition not in without:
                    text = f"{seconds(time_ns)}: {event.node} has {condition}, and no threshold of it is met"
                    self._findings.append(text)
            node.conditions = tuple(event.conditions)
        if not isinstance(event, PodEvicting):
            self._look(time_ns, event.node, node)

    def _begins_anew(self, name: str) -> None:
        """A new process has measured nothing."""
        if self._nodes.pop(name, None) is not None:
            for key in self._overdue.open():
                if key[0] == name:
                    self._overdue.drop(key)

    def _measured(self, time_ns: int, name: str, node: _Node, met: list[list[Any]]) -> None:
        before, node.met = node.met, {}
        for signal, available, least, enough, grace_s in met:
            key = signal, grace_s, least
            node.met[key] = before.get(key, time_ns)
            limit = enough if key in before else least
            if available >= limit:
                self._findings.append(
                    f"{seconds(time_ns)}: for {name} the threshold of {limit} for {signal} counts as met, with "
                    f"{available} available"
                )

    def _evicts(self, time_ns: int, node: _Node, event: PodEvicting) -> None:
        signal = event.signal
        if signal not in _CONDITIONS:
            return
        self._overdue.judged += 1
        since = [time_ns - since_ns >= grace_s * 1e9 for (of, grace_s, _), since_ns in node.met.items() if of == signal]
        if not any(since):
            why = "before the grace period of its threshold is over" if since else "whose threshold is not met"
            self._findings.append(f"{seconds(time_ns)}: {event.node} evicts {event.pod} for {signal}, {why}")

    def _look(self, time_ns: int, name: str, node: _Node) -> None:
        caused = {_CONDITIONS[signal] for signal, _, _ in node.met}
        who, transition_s = f"{KUBELET}{name}", self._limits.pressure_transition_ns / 1e9
        for condition in (_MEMORY, _DISK, _PIDS):
            has, wants = condition in node.conditions, condition in caused
            for is_wrong, key, within_s, text in (
                (has and not wants, "goes", transition_s + _SOON_S, "still has"),
                (wants and not has, "comes", _SOON_S, "does not have"),
            ):
                if is_wrong:
                    self._overdue.begin((name, condition, key), time_ns, who, within_s, f"{name} {text} {condition}")
                elif key == "goes" and wants:
                    self._overdue.drop((name, condition, key))  # It has a cause again.
                else:
                    self._overdue.end((name, condition, key), time_ns)

    def result(self, history: History) -> Result:
        found = super().result(history)
        if self._findings:
            return Result(self.id, False, several(self._findings))
        return found


class PressureKeepsPodsOut(Check):
    """A kubelet under pressure admits no pod that it would have to evict.

    Critical and static pods come in. So do others where memory alone is short: those that request any, and best-effort
    pods that tolerate the taint ``memory-pressure`` (``managerImpl.Admit``).
    """

    id: ClassVar[str] = "pressure-keeps-pods-out"
    folds: ClassVar[tuple[type[Fold], ...]] = (Attention,)

    def given(self, *folds: Attention) -> None:
        self._history = folds[0].history

    def __init__(self) -> None:
        self._pressed: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By node: its conditions, and since when it has them."""
        self._judged = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: _Events2) -> None:
        if isinstance(event, PressureChanged):
            self._pressed[event.node] = time_ns, tuple(event.conditions)
        elif isinstance(event, AdmissionDecided):
            self._decided(time_ns, event)
        elif actor.startswith(KUBELET):
            self._pressed.pop(actor.removeprefix(KUBELET), None)

    def _decided(self, time_ns: int, event: AdmissionDecided) -> None:
        since_ns, conditions = self._pressed.get(event.node, (time_ns, ()))
        pod = self._history.pods.get(event.uid)
        known = pod.change if pod is not None else None
        # Between its arrival and the decision about it pressure may come and go.
        if known is None or not conditions or since_ns > event.start:
            return
        self._judged += 1
        if event.ok and not _comes_in(parsed.pod(known.value or b""), conditions):
            has = " and ".join(conditions)
            self._findings.append(f"{seconds(time_ns)}: {event.node} has {has} and admits {event.pod}")

    def result(self, history: History) -> Result:
        good = f"{counted(self._judged, 'decision')} under pressure"
        return self.concluded(self._findings, self._judged, "no pod came to a node under pressure", good)


def _comes_in(pod: core_v1_pb2.Pod, conditions: tuple[str, ...]) -> bool:
    if is_critical(pod):
        return True
    if conditions != (_MEMORY,):
        return False
    return qos.qos_class(pod) != qos.BEST_EFFORT or selectors.tolerates_any(pod.spec.tolerations, _MEMORY_TAINT)
