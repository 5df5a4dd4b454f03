"""The scheduler's events."""

from __future__ import annotations

from typing import Any

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode
from kemu.runtime.runlog.events.words import BAD, Told


class PodQueued(OfPod, kind="sched.queued", by="scheduler", on_page=True):
    """A pod left a part of the queue"""

    queue: str
    start: int
    event: str


class PodAttempted(OfPod, kind="sched.attempt", by="scheduler", on_page=True):
    """A scheduler tried to place a pod"""

    start: int
    n: int
    result: str
    """`scheduled unschedulable error skipped`."""
    node: str
    evaluated: int
    feasible: int
    plugins: dict[str, int] = field(default={})
    """How many nodes each plugin refused."""
    message: str


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


class VictimDeleted(OfVictim, kind="sched.victim", by="scheduler", on_page=True):
    """The DELETE of a victim returned"""

    TOLD = Told("preempted", "is preempted", "pods are preempted", BAD)


class RescheduledVictimDeleted(OfVictim, kind="rescheduler.victim", by="rescheduler", on_page=True):
    """The DELETE of a victim returned"""


class PodScored(OfPod, kind="sched.scores", by="scheduler"):
    """The scores of a decision, if an expectation asks for them"""

    totals: list[tuple[str, int]]
    """Pairs of node and weighted sum."""


class PodNominated(OfPodOnNode, kind="sched.nominated", by="scheduler", on_page=True):
    """A pod was nominated. An empty node: the nomination was cleared"""

    TOLD = Told("nominated", "is nominated to {node}", "pods are nominated")

    start: int
    why: str = ""
    """`preemption`, or `binding`: it will be bound there after its permit or PreBind."""


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
