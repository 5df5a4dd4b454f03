"""What the real kube-scheduler says of its decisions, in its log.

With ``--v=3 --vmodule=schedule_one=10,eventhandlers=4`` it tells of each attempt the scores of all nodes from each
plugin, the node or the whole message, the victims, and which events it has handled (``schedule_one.go``,
``eventhandlers.go``, ``framework/preemption/executor.go``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kemu.emulated.real import scheduler_logs
from kemu.lab.conformance.live.waiters import Waiters

BOUND, FAILED, ERROR = "bound", "failed", "error"


@dataclass(slots=True)
class Attempt:
    """One attempt of the real scheduler at one pod."""

    pod: str
    """``namespace/name``."""
    number: int = 1
    """Number of this pod."""
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node and plugin; empty where there was nothing to compare."""
    totals: dict[str, int] = field(default_factory=dict)
    outcome: str = ""
    node: str = ""
    """Where it is bound, or was to be before its binding failed."""
    message: str = ""
    nominated: str = ""
    """The node on which it preempts."""
    victims: list[str] = field(default_factory=list)
    is_evicting: bool = False
    """Its victims are being deleted."""


@dataclass(slots=True)
class GroupCycle:
    """One attempt of the real scheduler at a group."""

    members: list[str] = field(default_factory=list)
    """In the order in which it tried them."""
    is_over: bool = False


class SchedulerLog(Waiters):
    """Hears the log, keeps the attempts. ``on_end`` is told of each attempt that has ended."""

    def __init__(self, on_end: Callable[[Attempt], object]) -> None:
        super().__init__()
        self._on_end = on_end
        self.attempts: dict[str, Attempt] = {}
        """The latest of each pod."""
        self.first: dict[str, Attempt] = {}
        """The first of each pod, once that has ended; the next one may have begun since."""
        self._preempting: dict[str, Attempt] = {}
        """The last attempt of each pod that has chosen victims."""
        self._evicting: dict[str, list[Attempt]] = {}
        """The attempts of each pod whose victims are being deleted: when the last one is ending, the next attempt may
        choose the same ones, which it only skips."""
        self.handled: Counter[tuple[str, str]] = Counter()
        """Events: what, and the object."""
        self.group_cycles: dict[str, GroupCycle] = {}
        """The first of each group."""
        self.complaints: list[str] = []
        """Errors that belong to no attempt."""

    def forget(self) -> None:
        """The cluster is gone."""
        self.attempts.clear()
        self.first.clear()
        self._preempting.clear()
        self._evicting.clear()
        self.group_cycles.clear()
        self.handled.clear()

    def hear(self, said: str) -> None:
        line = scheduler_logs.parse(said)
        if line is None:
            return
        text = line.text
        say = _SAYINGS.get(text)
        if say is not None:
            say(self, line.values())
        elif " event for " in text:
            values = line.values()
            self.handled[text, values.get("pod") or values.get("node") or ""] += 1
        elif line.severity == "E":
            self.complaints.append(said.strip())
            return
        else:
            return
        if text != _SCORED:
            self.wake()

    def _end(self, attempt: Attempt) -> None:
        self.first.setdefault(attempt.pod, attempt)
        self._on_end(attempt)

    # Sayings ----------------------------------------------------------------------------------------------------------

    def _begins(self, said: dict[str, str]) -> None:
        pod = said["pod"]
        before = self.attempts.get(pod)
        self.attempts[pod] = Attempt(pod, before.number + 1 if before is not None else 1)

    def _begins_member(self, said: dict[str, str]) -> None:
        self._begins(said)
        cycle = self.group_cycles.setdefault(said["podGroup"], GroupCycle())
        if not cycle.is_over:
            cycle.members.append(said["pod"])

    def _group_is_over(self, said: dict[str, str]) -> None:
        self.group_cycles.setdefault(said["podGroup"], GroupCycle()).is_over = True

    def _scored(self, said: dict[str, str]) -> None:
        scores = self.attempts[said["pod"]].scores.setdefault(said["node"], {})
        scores[said["plugin"]] = int(said["score"])

    def _total(self, said: dict[str, str]) -> None:
        self.attempts[said["pod"]].totals[said["node"]] = int(said["score"])

    def _bound(self, said: dict[str, str]) -> None:
        attempt = self.attempts[said["pod"]]
        attempt.outcome, attempt.node = BOUND, said["node"]
        self._end(attempt)

    def _failed(self, said: dict[str, str]) -> None:
        attempt = self.attempts[said["pod"]]
        attempt.outcome, attempt.message = FAILED, said.get("err", "no nodes available to schedule pods")
        self._end(attempt)

    def _error(self, said: dict[str, str]) -> None:
        attempt = self.attempts.get(said.get("pod", ""))
        if attempt is not None:
            attempt.outcome, attempt.message = ERROR, said.get("err", "")
            self._end(attempt)

    def _about_to_bind(self, said: dict[str, str]) -> None:
        attempt = self.attempts.get(said["pod"])
        if attempt is not None and "conditionType" not in said:
            attempt.node = said["nominatedNodeName"]

    def _target(self, said: dict[str, str]) -> None:
        attempt = self._preempting[said["pod"]] = self.attempts[said["pod"]]
        attempt.nominated = said["node"]

    def _evicts(self, said: dict[str, str]) -> None:
        attempt = self._preempting[said["preemptor"]]
        attempt.is_evicting = True
        self._evicting.setdefault(attempt.pod, []).append(attempt)

    def _skipped(self, said: dict[str, str]) -> None:
        attempt = self._preempting.get(said["preemptor"])
        if attempt is not None:
            attempt.victims.append(said["victim"])

    def _victim(self, said: dict[str, str]) -> None:
        for attempt in self._evicting.get(said["preemptor"], ())[:1]:
            attempt.victims.append(said["victim"])

    def _evicted(self, said: dict[str, str]) -> None:
        attempts = self._evicting.get(said["preemptor"])
        if attempts:
            attempts.pop(0).is_evicting = False


_SCORED = "Plugin scored node for pod"
_SAYINGS: dict[str, Callable[[SchedulerLog, dict[str, str]], None]] = {
    "Attempting to schedule pod": SchedulerLog._begins,
    "Attempting to schedule a pod belonging to a pod group": SchedulerLog._begins_member,
    "Successfully scheduled a pod group": SchedulerLog._group_is_over,
    "Unable to schedule a pod group": SchedulerLog._group_is_over,
    "Pod group is waiting for preemption": SchedulerLog._group_is_over,
    "Error scheduling pod group": SchedulerLog._group_is_over,
    "Unable to schedule pod belonging to a pod group; waiting": SchedulerLog._failed,
    _SCORED: SchedulerLog._scored,
    "Calculated node's final score for pod": SchedulerLog._total,
    "Successfully bound pod to node": SchedulerLog._bound,
    "Unable to schedule pod; no fit; waiting": SchedulerLog._failed,
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": SchedulerLog._failed,
    "Error scheduling pod; retrying": SchedulerLog._error,
    "Updating pod condition and nominated node name": SchedulerLog._about_to_bind,
    "the target node for the preemption is determined": SchedulerLog._target,
    "Start the preemption asynchronously": SchedulerLog._evicts,
    "Preemptor Pod preempted victim Pod": SchedulerLog._victim,
    "Victim Pod is already being deleted, skipping the API call for it": SchedulerLog._skipped,
    # Another member of its group has evicted it a moment before.
    "Victim Pod is already deleted": SchedulerLog._victim,
    "Async Preemption finished completely": SchedulerLog._evicted,
}
