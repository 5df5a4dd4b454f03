"""What became of pods, as plain data. Times are virtual seconds since the start of the run.

Role: views of :mod:`kemu.lab.checks.history`, for :mod:`runs` and :mod:`live_clusters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Fact, PodHistory
from kemu.lab.checks.scheduling import waiting

DEFAULT_NAMESPACE = "default/"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a pod."""

    time_s: float
    what: str
    """``created attempted unschedulable nominated nominationCleared bound unbound rejected running preempted evicted
    oomKilled terminating ended finished deleted``."""
    node: str = ""
    by: str = ""
    """``bound``, ``unschedulable``: the scheduler, ``<name>/<replica>``. ``preempted``: the preemptor."""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod as it was when it was looked at: in a :class:`kemu.Run`, at the end."""

    name: str
    """``web-0``; ``namespace/web-0`` outside of namespace ``default``."""
    uid: str
    priority: int
    scheduler: str
    """Its ``schedulerName``."""
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    """cpu in millicores, everything else in whole units (bytes, counts)."""
    node: str
    """That it is bound to; empty: none."""
    phase: str
    """``Pending Running Succeeded Failed``: as its status says, of a deleted pod as it last said."""
    nominated: str
    """The node on which a preemptor waits for room; empty: none."""
    waited_s: float
    """From its creation until it was bound; of a pod that was not, until it was deleted, or so far."""
    attempts: int
    """Scheduling attempts that kemu's scheduler made."""
    created_s: float
    bound_s: float | None
    running_s: float | None
    deleted_s: float | None
    """When the object was removed."""
    terminating: bool
    """Its deletion was asked for."""
    moments: tuple[Moment, ...]
    """What happened to it, in order."""

    @property
    def bound(self) -> bool:
        return bool(self.node)

    @property
    def running(self) -> bool:
        return self.phase == pod_phases.RUNNING and self.deleted_s is None

    @property
    def deleted(self) -> bool:
        return self.deleted_s is not None

    @property
    def bound_by(self) -> str:
        """The scheduler that bound it, ``<name>/<replica>``; empty: none, or not known."""
        return self._last("bound", "by")

    @property
    def preempted_by(self) -> str:
        """The preemptor, ``web-0`` or ``namespace/web-0``; empty: nobody."""
        return self._last("preempted", "by").removeprefix(DEFAULT_NAMESPACE)

    @property
    def rejected(self) -> str:
        """Why its kubelet turned it away (``OutOfcpu``, …); empty: it did not."""
        return self._last("rejected", "reason")

    @property
    def evicted(self) -> str:
        """Why it was evicted (``Evicted``, ``EvictionByEvictionAPI``, …); empty: it was not."""
        return self._last("evicted", "reason")

    def happened(self, what: str) -> bool:
        """Whether a moment of that kind is among :attr:`moments`."""
        return any(moment.what == what for moment in self.moments)

    def _last(self, what: str, attribute: str) -> str:
        found = [str(getattr(moment, attribute)) for moment in self.moments if moment.what == what]
        return found[-1] if found else ""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long one pod waited for a node. A list of them makes a table (``pandas.DataFrame(run.waits)``)."""

    pod: str
    seconds: float
    """From its creation until it was bound; if it never was, until it was deleted or the run ended."""
    bound: bool
    overtaken: int
    """Pods created later, of the same or lower priority, that were bound meanwhile."""
    priority: int
    workload: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check or of an expectation."""

    id: str
    holds: bool | None
    """None: nothing in the run could be judged."""
    detail: str
    """What was examined, or what is wrong: who, when, where."""
    text: str = ""
    """Text of an expectation: what the scenario says."""
    counts: bool = True
    """It changes the verdict. A detector does only where the scenario asks for it."""
    says: str = ""
    """For an expectation, the same as ``text``, as a sentence."""


def of(history: History, pod: PodHistory) -> Pod:
    until_ns = next((at for at in (pod.bound_ns, pod.deleting_ns, pod.gone_ns) if at is not None), history.now_ns)
    return Pod(
        name=pod.key.removeprefix(DEFAULT_NAMESPACE),
        uid=pod.uid,
        priority=pod.priority,
        scheduler=pod.scheduler_name,
        labels=dict(pod.labels),
        requests=dict(pod.requests),
        node=pod.node,
        phase=pod.phase,
        nominated=pod.nominated,
        waited_s=0.0 if pod.preset_node else (until_ns - pod.created_ns) / 1e9,
        attempts=pod.attempts,
        created_s=pod.created_ns / 1e9,
        bound_s=None if pod.bound_ns is None else pod.bound_ns / 1e9,
        running_s=None if pod.running_ns is None else pod.running_ns / 1e9,
        deleted_s=None if pod.gone_ns is None else pod.gone_ns / 1e9,
        terminating=pod.deleting_ns is not None,
        moments=tuple(_moment(fact) for fact in pod.facts),
    )


def _moment(fact: Fact) -> Moment:
    return Moment(fact.time_ns / 1e9, fact.what, fact.node, fact.by, fact.reason, fact.message)


def all_of(history: History) -> dict[str, Pod]:
    """By name; of pods that had one name, the last."""
    return {pod.name: pod for pod in (of(history, each) for each in history.pods.values())}


def waits(history: History) -> list[Wait]:
    """Waits of all pods that a scheduler had to place, in the order of their creation."""
    return [
        Wait(
            each.pod.key.removeprefix(DEFAULT_NAMESPACE),
            each.seconds,
            each.bound,
            each.overtaken,
            each.pod.priority,
            each.pod.workload,
        )
        for each in waiting.waits(history)
    ]
