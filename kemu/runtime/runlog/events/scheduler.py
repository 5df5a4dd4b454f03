"""The scheduler's events."""

from __future__ import annotations

from typing import Any

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode
from kemu.runtime.runlog.events.words import (
    BAD,
    DECISION,
    OUTCOME,
    USUAL,
    WRITE,
    Deed,
    Line,
    Names,
    Traced,
    because,
)
from kemu.runtime.words import listed, short


class PodQueued(OfPod, kind="sched.queued", by="scheduler", on_page=True):
    """A pod left a part of the queue"""

    queue: str
    start: int
    event: str

    def deed(self, pod: str, names: Names) -> Deed | None:
        if self.queue == "active":
            return None
        return Deed(f"requeued {pod} ({self.event})", f"requeues {pod}", USUAL, "requeued")

    def traced(self) -> Traced:
        return Traced("queue", "", name=f"queue {self.queue}")


class PodAttempted(OfPod, kind="sched.attempt", by="scheduler", on_page=True):
    """A scheduler tried to place a pod"""

    start: int
    n: int
    result: str
    """`scheduled unschedulable error skipped`; skipped: it is being deleted, or assumed already."""
    node: str
    evaluated: int
    feasible: int
    plugins: dict[str, int] = field(default={})
    """How many nodes each plugin refused."""
    message: str

    def live(self) -> Line | None:
        if self.result != "unschedulable" or self.n != 1:
            return None
        return Line("unschedulable", "fits on no node", "pods fit on no node", BAD)

    def deed(self, pod: str, names: Names) -> Deed:
        why = because(self._why)
        text, in_short = {
            "scheduled": (f"chose {self.node} for {pod}", f"{pod} → {self.node}"),
            "unschedulable": (f"found no node for {pod}{why}", f"no node for {pod}"),
            "skipped": (f"skipped {pod}", f"skips {pod}"),
        }.get(self.result, (f"failed to schedule {pod}{why}", f"error with {pod}"))
        return Deed(text, in_short, DECISION, f"attempt {self.result}")

    @property
    def _why(self) -> str:
        """The message without what says nothing here."""
        text = self.message.replace("no new claims to deallocate, ", "")
        return text.partition(" preemption: ")[0].strip().rstrip(".")

    def traced(self) -> Traced:
        if self.result != "error":
            return Traced("attempt", self.message)
        return Traced("attempt", self.message, "SchedulerError", self.message or "internal error")


class ExtenderAsked(OfPod, kind="sched.extender", by="scheduler", on_page=True):
    """An extender answered, or failed to"""

    start: int
    extender: str
    call: str
    nodes: int
    error: str


class PreemptionPlanned(OfPod, kind="sched.preemption", by="scheduler", on_page=True):
    """A scheduler looked for pods to preempt"""

    start: int
    node: str
    candidates: int
    victims: list[list[Any]]
    """Of each, `[pod, uid, priority]`."""
    violations: int = 0
    """How many of the victims a disruption budget cannot spare, as far as the scheduler knew."""

    def deed(self, pod: str, names: Names) -> Deed | None:
        if not self.node:
            return None
        others = tuple(key for key, _uid, _priority in self.victims)
        whom = f"to preempt {listed(map(short, others))} there" if others else "to preempt pods there"
        text = f"chose {self.node} for {pod}, {whom}"
        return Deed(text, f"preempts for {pod}", DECISION, "preemption", others)

    def traced(self) -> Traced:
        if not self.node:
            return Traced("preemption", "no preemption would help")
        if not self.victims:
            return Traced("preemption", f"no pod has to go from {self.node}")
        names = [key for key, _uid, _priority in self.victims]
        whom = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        of_them = f"{self.violations} of them " if self.violations < len(names) else ""
        beyond = f", {of_them}beyond a disruption budget" if self.violations else ""
        return Traced("preemption", f"makes room on {self.node} by preempting {whom}{beyond}")


class VictimsSearched(OfPod, kind="sched.search", by="scheduler"):
    """An experiment switch searched for victims in its own way"""

    start: int
    algorithm: str
    """The name of the switch."""
    evaluations: int
    found: bool
    gave_up: bool
    """Its limit was reached."""


class OfVictim(OfPod):
    """The DELETE of a victim returned"""

    by: str
    by_uid: str
    node: str
    start: int
    ok: bool
    how: str = "deleted"
    """`deleted`, or `rejected`: the victim was not bound yet (it waited for its permit or was in PreBind), so it was
    rejected instead of deleted."""

    @property
    def is_rejected(self) -> bool:
        return self.how == "rejected"

    def deed(self, pod: str, names: Names) -> Deed | None:
        if not self.ok:
            return None
        verb, by = "turned away" if self.is_rejected else "deleted", self.by
        text = f"{verb} {pod} on {self.node}" + (f" to make room for {short(by)}" if by else "")
        return Deed(text, f"deletes {pod}", OUTCOME, "victim", (by,) if by else ())

    def traced(self) -> Traced:
        why = f"preempted by {self.by} for room on {self.node}"
        if self.is_rejected:
            why = f"turned away from {self.node} for {self.by} before it was bound"
        if not self.ok:
            return Traced("preempted", why, "NotDeleted", "it could not be deleted")
        return Traced("preempted", why, "Preempted")


class VictimDeleted(OfVictim, kind="sched.victim", by="scheduler", on_page=True):
    """The DELETE of a victim returned"""

    LIVE = Line("preempted", "is preempted", "pods are preempted", BAD)


class RescheduledVictimDeleted(OfVictim, kind="rescheduler.victim", by="rescheduler", on_page=True):
    """The DELETE of a victim returned"""


class PodScored(OfPod, kind="sched.scores", by="scheduler"):
    """The scores of a decision, if an expectation asks for them"""

    totals: list[tuple[str, int]]
    """Pairs of node and weighted sum."""


class PodNominated(OfPodOnNode, kind="sched.nominated", by="scheduler", on_page=True):
    """A pod was nominated. An empty node: the nomination was cleared"""

    start: int
    why: str = ""
    """`preemption`, or `binding`: it will be bound there after its permit or PreBind."""

    def live(self) -> Line:
        if self.node:
            return Line("nominated", "is nominated to {node}", "pods are nominated")
        return Line("nomination cleared", "loses its nomination", "pods lose their nominations")

    def deed(self, pod: str, names: Names) -> Deed:
        if self.node:
            return Deed(f"nominated {self.node} for {pod}", f"nominates {self.node}", WRITE, "nominated")
        return Deed(f"cleared the nomination of {pod}", f"clears {pod}", WRITE, "nominated")

    def traced(self) -> Traced:
        if not self.node:
            return Traced("nomination", "it no longer needs or may keep its place", name="nomination cleared")
        if self.why == "binding":
            return Traced("nomination", f"it is to be bound to {self.node}, but has to wait")
        return Traced("nomination", f"room is being made for it on {self.node}")


class StatusLost(OfPod, kind="sched.status_lost", by="scheduler"):
    """The write of the result of an attempt failed"""

    start: int
    reason: str


class PodBound(OfPodOnNode, kind="sched.bind", by="scheduler", on_page=True):
    """A binding has ended"""

    start: int
    ok: bool
    reason: str
    """That of the API server (`Conflict`), the plugin that refused, or `SchedulerError`."""
    message: str

    def live(self) -> Line | None:
        if self.ok:
            return None
        return Line("not bound", "is not bound to {node}", "pods are not bound", BAD, self.message or self.reason)

    def deed(self, pod: str, names: Names) -> Deed | None:
        """Where it failed: what succeeded is told as it was stored."""
        if self.ok:
            return None
        text = f"was told that its binding of {pod} to {self.node} failed ({self.reason})"
        return Deed(text, f"{pod}: {self.reason}", OUTCOME, "bind refused")

    def traced(self) -> Traced:
        if self.ok:
            return Traced("bind", "")
        return Traced("bind", self.reason, self.reason or "SchedulerError", self.reason or "binding failed")


class AttemptsCounted(Event, kind="sched.counted", by="scheduler, with `--runtime real`"):
    """What a kube-scheduler says in its metrics that it has done since it was started, when it is stopped"""

    attempts: dict[str, int]
    """`scheduler_schedule_attempts_total`, by result."""
    durations: int
    """How many attempts `scheduler_scheduling_attempt_duration_seconds` has."""
    took: int
    """Their sum, in ns."""
    preemptions: int
    """How many preemptions `scheduler_preemption_victims` has."""
    victims: int
    """Their sum."""
    told: int
    """Attempts that its log has told."""

    @property
    def doubt(self) -> str:
        """Where the log tells other attempts than were made; "": they are the same."""
        counted = sum(self.attempts.values())
        return "" if counted == self.told else f"has counted {counted} attempts, but its log tells {self.told}"


class CacheAudited(Event, kind="sched.cache", by="scheduler"):
    """The contents of its cache ([checks](checks.md))"""

    nodes_rev: int
    pods_rev: int
    nodes: int
    pods: int
    node_prints: bytes
    """Four bytes for each node by name."""
    load_prints: bytes
    """Four bytes for each node with pods."""
    serves: list[str]
    waiting: int
    waiting_print: int
    assumed: list[list[Any]]
    """Of each, `[pod, uid, node, whether it is in its binding]`."""
