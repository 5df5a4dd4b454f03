"""Checks that priority means what Kubernetes says it means: who preempts whom, and who is served first."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemu.emulated.objects.amounts import requests
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, History, parsed
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.checks.limits import DEFAULT, Limits
from kemu.lab.checks.results import Check, LimitedCheck, Result, seconds, several
from kemu.runtime.runlog import events
from kemu.runtime.words import counted

_Events = events.PodQueued | events.PodAttempted | events.PreemptionPlanned | events.PodNominated | events.PodBound

SYSTEM_CRITICAL = 2_000_000_000
"""A pod of this priority or a higher one is critical (``SystemCriticalPriority`` in pkg/apis/scheduling)."""


class PreemptorsOutrankVictims(LimitedCheck):
    """No pod is preempted for a pod of the same or a lower priority.

    A kubelet may also preempt any pod that is not critical for one that is (``Preemptable`` in pkg/kubelet/types). Not
    judged are the victims of a scheduler with ``victimOrder: qos``, which ranks pods by QoS class first, and pods that
    the store never held (static ones), unless their mirror's priority is known.
    """

    id: ClassVar[str] = "preemptors-outrank-victims"

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self._by_qos = limits.rank_by_qos
        self._preemptions: list[tuple[int, str, events.PodPreempting | events.OfVictim]] = []

    def on_event(self, time_ns: int, actor: str, event: events.PodPreempting | events.OfVictim) -> None:
        self._preemptions.append((time_ns, actor, event))

    def result(self, history: History) -> Result:
        findings: list[str] = []
        judged = exempt = 0
        for time_ns, actor, event in self._preemptions:
            by_kubelet = isinstance(event, events.PodPreempting)
            victim, preemptor = history.pods.get(event.uid), history.known(event.by_uid)
            if not by_kubelet and preemptor is not None and preemptor.scheduler_name in self._by_qos:
                exempt += 1
                continue
            if victim is None or (preemptor is None and not by_kubelet):
                continue
            judged += 1
            # A static pod, which the store knows by its mirror only, is critical whatever its priority.
            critical = event.by_uid not in history.pods or preemptor is None or preemptor.priority >= SYSTEM_CRITICAL
            if by_kubelet and critical and victim.priority < SYSTEM_CRITICAL:
                continue
            if preemptor is None or preemptor.priority <= victim.priority:
                rank = preemptor.priority if preemptor is not None else "unknown"
                findings.append(
                    f"{seconds(time_ns)}: {actor} preempts {victim.key} (priority {victim.priority}) on {event.node} "
                    f"for {event.by} (priority {rank})"
                )
        if findings:
            return Result(self.id, False, several(findings))
        if not judged:
            return Result(self.id, None, "every victim was chosen by QoS class" if exempt else "nobody was preempted")
        rest = f", {exempt} more chosen by QoS class" if exempt else ""
        return Result(self.id, True, f"{counted(judged, 'victim')} outranked{rest}")


@dataclass(frozen=True, slots=True)
class _Placement:
    """A scheduling attempt that gave a pod a node."""

    start_ns: int
    end_ns: int
    pod: PodHistory
    node: str


@dataclass(slots=True)
class _Scheduler:
    """What one scheduler did so far."""

    since_ns: int
    lowest: list[_Placement] = field(default_factory=list)
    """Placements that no later one of the same or a lower priority hides: from first to last, priorities rise."""
    served: dict[str, list[_Placement]] = field(default_factory=dict)
    """All placements, by the schedulerName of their pods."""
    on: dict[str, dict[str, PodHistory]] = field(default_factory=dict)
    """By node and UID, the pods that it has put there."""
    nominated: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node and UID, since when it keeps room there for a pod."""
    kept_on: dict[str, dict[str, None]] = field(default_factory=dict)
    """By UID, the nodes in ``nominated`` where it may be."""
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    """By UID: the nominations that the last attempt of the pod ended, by node."""
    tries: dict[str, list[int]] = field(default_factory=dict)
    """By UID, when attempts to schedule a pod began, those still to come included."""


class NoPriorityInversion(Check):
    """No pod waits for room that its scheduler gives to one of lower priority while it could have been served itself.

    It could have been served, when the attempt of the lower one began, if it stood in the active queue of that
    scheduler since before (not in backoff, not among the unschedulable, not gated), or if that scheduler had nominated
    it to the node in question, which has no room for both. A scheduler with a queue or plugins of its own need not keep
    this: with one of them the check tells what it finds and does not change the verdict.
    """

    id: ClassVar[str] = "no-priority-inversion"

    def __init__(self) -> None:
        self._events: list[tuple[str, str, str, int, int, str]] = []
        """Kind, actor, UID, time, start, and what else matters: the node, or the queue."""
        self._ending: set[tuple[str, int, str]] = set()
        """Attempts that end the nomination of their pod: actor, start, UID."""

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        return not limits.own_queues

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, events.PodAttempted):
            rest = event.node if event.result == "scheduled" else ""
            if _ends_nomination(event):
                self._ending.add((actor, event.start, event.uid))
        elif isinstance(event, events.PodQueued):
            rest = event.queue
        elif isinstance(event, events.PreemptionPlanned):
            rest = event.node
        elif isinstance(event, events.PodNominated):
            rest = event.node if event.why != "binding" else ""
        elif event.ok:
            return
        else:
            rest = event.node
        self._events.append((event.KIND, actor, event.uid, time_ns, event.start, rest))

    def result(self, history: History) -> Result:
        schedulers: dict[str, _Scheduler] = {}
        for kind, actor, uid, _, start_ns, _ in self._events:
            scheduler = schedulers.setdefault(actor, _Scheduler(start_ns))
            if kind == events.PodAttempted.KIND:
                scheduler.tries.setdefault(uid, []).append(start_ns)
        findings: list[str] = []
        left: set[str] = set()
        placed = 0
        capacities = _Capacities(history)
        for kind, actor, uid, time_ns, start_ns, rest in self._events:
            pod, scheduler = history.pods.get(uid), schedulers[actor]
            if pod is None:
                continue
            if kind == events.PodAttempted.KIND:
                if (actor, start_ns, uid) in self._ending:
                    _drop_nominations(scheduler, uid)
                if rest:
                    placed += 1
                    placement = _Placement(start_ns, time_ns, pod, rest)
                    findings += _took_kept_room(actor, scheduler, placement, history, capacities)
                    _note(scheduler, placement)
            elif kind == events.PodQueued.KIND:
                left.add(uid)
                lower = _lowest_since(scheduler, start_ns)
                if rest == "active" and lower is not None and lower.pod.priority < pod.priority:
                    findings.append(_passed_over(actor, pod, lower, f"from {seconds(start_ns)} to {seconds(time_ns)}"))
            elif kind == events.PreemptionPlanned.KIND:
                if rest in scheduler.dropped.get(uid, {}):
                    _keep_room(scheduler, uid, rest, scheduler.dropped[uid][rest])
            elif kind == events.PodNominated.KIND:
                if rest:
                    _keep_room(scheduler, uid, rest, time_ns)
            else:
                scheduler.on.get(rest, {}).pop(uid, None)
        for actor, scheduler in schedulers.items():
            findings += _left_behind(actor, scheduler, history, left)
        if findings:
            return Result(self.id, False, several(findings))
        if not placed:
            return Result(self.id, None, "no scheduler placed a pod")
        return Result(
            self.id, True, f"{counted(placed, 'placement')}, none before a higher pod that could have been served"
        )


def _note(scheduler: _Scheduler, placement: _Placement) -> None:
    pod, lowest = placement.pod, scheduler.lowest
    while lowest and lowest[-1].pod.priority >= pod.priority:
        lowest.pop()
    lowest.append(placement)
    scheduler.served.setdefault(pod.scheduler_name, []).append(placement)
    scheduler.on.setdefault(placement.node, {})[pod.uid] = pod


def _lowest_since(scheduler: _Scheduler, since_ns: int) -> _Placement | None:
    """A placement with the lowest priority among those whose attempts began later."""
    at = bisect.bisect_right(scheduler.lowest, since_ns, key=lambda placement: placement.start_ns)
    return scheduler.lowest[at] if at < len(scheduler.lowest) else None


def _passed_over(actor: str, pod: PodHistory, lower: _Placement, when: str) -> str:
    return (
        f"{pod.key} (priority {pod.priority}) stood in the active queue of {actor} {when}, while {lower.pod.key} "
        f"(priority {lower.pod.priority}) got {lower.node} at {seconds(lower.start_ns)}"
    )


def _left_behind(actor: str, scheduler: _Scheduler, history: History, left: set[str]) -> list[str]:
    """Pods that never left the queue, while younger ones of lower priority did and got a node.

    A watch tells of pods in the order of their creation: who placed the younger one had heard of the older one.
    """
    findings = []
    order = {uid: number for number, uid in enumerate(history.pods)}
    for name, placements in scheduler.served.items():
        placements.sort(key=lambda placement: order[placement.pod.uid])
        lowest: list[_Placement] = []
        for placement in reversed(placements):
            lower = lowest[-1] if lowest and lowest[-1].pod.priority <= placement.pod.priority else placement
            lowest.append(lower)
        lowest.reverse()
        numbers = [order[placement.pod.uid] for placement in placements]
        for uid, pod in history.pods.items():
            if uid in left or pod.scheduler_name != name or not _is_waiting(pod, history):
                continue
            at = bisect.bisect_right(numbers, order[uid])
            if at < len(lowest) and lowest[at].pod.priority < pod.priority:
                findings.append(_passed_over(actor, pod, lowest[at], f"since {seconds(pod.created_ns)} or soon after"))
    return findings


def _is_waiting(pod: PodHistory, history: History) -> bool:
    """At the end of the run, never gated, and for a node alone."""
    if pod.node or pod.attempts or pod.gone_ns is not None or pod.deleting_ns is not None:
        return False
    value = history.values.get(POD_PREFIX + pod.key)
    if value is None:
        return False
    found = parsed.pod(value)
    waits_for_others = bool(found.spec.schedulingGates) or found.spec.HasField("schedulingGroup")
    return not waits_for_others and found.metadata.generation <= 1


# Nominations ---------------------------------------------------------------------------------------------------------

_NATIVE = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources that no extender can manage instead of the scheduler."""


class _Capacities:
    """What nodes could hold at most, and who ran there from the beginning; looked up where it is needed."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._values: dict[str, list[bytes]] | None = None
        self._known: dict[str, dict[str, int]] = {}

    def of(self, node: str) -> dict[str, int]:
        """The highest allocatable that the node ever had."""
        if self._values is None:
            self._values = {}
            for change in self._history.changes:
                if change.key.startswith(NODE_PREFIX) and (value := change.value) is not None:
                    self._values.setdefault(change.key.removeprefix(NODE_PREFIX), []).append(value)
        if node not in self._known:
            highest = self._known[node] = {}
            for value in self._values.get(node, ()):
                found = parsed.node(value)
                for resource, amount in requests.resource_list(found.status.allocatable).items():
                    highest[resource] = max(amount, highest.get(resource, 0))
        return self._known[node]


def _took_kept_room(
    actor: str, scheduler: _Scheduler, placement: _Placement, history: History, capacities: _Capacities
) -> list[str]:
    """The pods of higher priority that are nominated to the node and no longer fit beside the one that got it.

    Counted are only pods that the scheduler certainly counted, too: those that it put there itself, as long as the
    store has them, and those that were there before it began.
    """
    findings = []
    node, lower = placement.node, placement.pod
    for uid, since_ns in list(scheduler.nominated.get(node, {}).items()):
        pod = history.pods[uid]
        end_ns, cleared = _end_of_nomination(pod, node, since_ns)
        if end_ns is not None and end_ns <= placement.end_ns:
            del scheduler.nominated[node][uid]
            continue
        if pod.priority <= lower.priority or uid == lower.uid:
            continue
        if cleared and end_ns is not None:
            # The attempt that dropped it may be over, while its write is still on its way.
            tries = scheduler.tries.get(uid, [])
            if bisect.bisect_right(tries, placement.start_ns) == bisect.bisect_right(tries, end_ns):
                continue
        there = [
            other
            for other in scheduler.on.get(node, {}).values()
            if other.node == node
            and other is not pod
            and other is not lower
            and not _has_ended(other, placement.end_ns)
        ]
        wanted = [pod.requests, lower.requests, *(other.requests for other in there)]
        allocatable = capacities.of(node)
        for resource in _NATIVE:
            most = allocatable.get(resource)
            total = len(wanted) if resource == "pods" else sum(each.get(resource, 0) for each in wanted)
            both = resource == "pods" or (pod.requests.get(resource) and lower.requests.get(resource))
            if most is not None and both and total > most:
                findings.append(
                    f"{seconds(placement.start_ns)}: {actor} gives {node} to {lower.key} (priority {lower.priority}), "
                    f"where {pod.key} (priority {pod.priority}) is nominated since {seconds(since_ns)}: with both, "
                    f"{total} of {most} {resource}"
                )
                break
    return findings


_KEPT = "preemption: not eligible"
"""In the message of an attempt that leaves the nomination of its pod as it is (``PodEligibleToPreemptOthers``)."""


def _ends_nomination(attempt: Mapping[str, Any]) -> bool:
    """Whether the scheduler forgets the nomination in its memory, as it does at once, whatever becomes of the write.

    ``assume`` ends it, wherever the pod goes, and it does not come back if the binding fails; so does an attempt that
    finds no node (``clearNominatedNode`` in schedule_one.go), unless it preempts there again.
    """
    if attempt["node"]:
        return True
    return attempt["result"] == "unschedulable" and _KEPT not in attempt["message"]


def _keep_room(scheduler: _Scheduler, uid: str, node: str, since_ns: int) -> None:
    scheduler.nominated.setdefault(node, {})[uid] = since_ns
    scheduler.kept_on.setdefault(uid, {})[node] = None


def _drop_nominations(scheduler: _Scheduler, uid: str) -> None:
    nominated = scheduler.nominated
    dropped = {node: nominated[node].pop(uid) for node in scheduler.kept_on.pop(uid, ()) if uid in nominated[node]}
    if dropped:
        scheduler.dropped[uid] = dropped


def _end_of_nomination(pod: PodHistory, node: str, since_ns: int) -> tuple[int | None, bool]:
    """When it ended, and whether it was cleared or changed rather than fulfilled.

    A pod may be bound or gone, or nominated elsewhere by another scheduler, before the one that asked is told that its
    nomination was written (``since_ns``).
    """
    overwritten_ns = None
    is_written = False
    for fact in pod.facts:
        is_nomination = fact.what in ("nominated", "nominationCleared")
        if not is_nomination and fact.what not in ("bound", "terminating", "deleted"):
            continue
        if fact.time_ns > since_ns or not is_nomination:
            return (fact.time_ns, is_nomination) if overwritten_ns is None else (overwritten_ns, True)
        if fact.what == "nominated" and fact.node == node:
            is_written, overwritten_ns = True, None
        elif is_written and overwritten_ns is None:
            overwritten_ns = fact.time_ns
    return overwritten_ns, overwritten_ns is not None


def _has_ended(pod: PodHistory, now_ns: int) -> bool:
    if pod.gone_ns is not None and pod.gone_ns <= now_ns:
        return True
    finished = pod.first("finished")
    return finished is not None and finished.time_ns <= now_ns
