"""What a history consists of: pods, nodes and faults, and the facts that the log tells of them.

Neighbours: ``stores`` has the changes of the store; ``histories`` folds all of it from the run log; checks,
expectations and reports read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kemu.lab.checks.history.stores import Change
from kemu.runtime.runlog.events import FaultBegun


class Words(NamedTuple):
    """What is said of one pod or node, and of several."""

    one: str
    many: str
    what: str = ""
    """After the verb."""
    found: str = ""
    """As what it was found, where that is not ``what``: ``never attempted``."""
    at: str = "on"
    """Before the name of its node."""

    @property
    def participle(self) -> str:
        return self.found or self.what


_IS = "is", "are"
WORDS: Mapping[str, Words] = {
    "created": Words(*_IS, "created"),
    "attempted": Words(*_IS, "tried", "attempted"),
    "scored": Words("has", "have", "a score", "scored"),
    "unschedulable": Words(*_IS, "found unschedulable"),
    "nominated": Words(*_IS, "nominated", at="to"),
    "nominationCleared": Words("loses", "lose", "its nomination", "stripped of its nomination"),
    "bound": Words(*_IS, "bound", at="to"),
    "unbound": Words("loses", "lose", "its binding", "stripped of its binding", "to"),
    "rejected": Words(*_IS, "rejected", at="by"),
    "running": Words("runs", "run", found="running"),
    "preempted": Words(*_IS, "preempted"),
    "evicted": Words(*_IS, "evicted", at="from"),
    "oomKilled": Words(*_IS, "OOM-killed"),
    "terminating": Words("begins", "begin", "to terminate", "terminating"),
    "ended": Words("ends", "end", found="ended"),
    "finished": Words("finishes", "finish", found="finished"),
    "deleted": Words(*_IS, "gone"),
    "added": Words("joins", "join", found="added"),
    "condition": Words("becomes", "become", found="changed its condition"),
    "tainted": Words("gets", "get", found="tainted"),
    "untainted": Words("loses", "lose", found="freed of the taint"),
    "draining": Words(*_IS, "being drained"),
    "drainWaits": Words("waits", "wait"),
    "drained": Words(*_IS, "drained"),
    "drainFailed": Words(*_IS, "not drained"),
    "removed": Words(*_IS, "removed"),
}
"""The words of all facts, those of pods first; ``draining`` and ``drainWaits`` are told by stories only."""


@dataclass(slots=True)
class Fact:
    """Something that happened to a pod."""

    time_ns: int
    what: str
    """A key of :data:`WORDS`."""
    node: str = ""
    by: str = ""
    """``preempted``: the preemptor, ``namespace/name``. ``bound``, ``unschedulable``: the scheduler,
    ``<name>/<replica>``."""
    reason: str = ""
    """Why it was rejected or evicted, or the phase in which it finished. Of a node: the type of the condition, the key
    of the taint, the pod for which a drain waits. ``preempted``: ``rejected`` where it was not deleted but turned away,
    as it was not bound yet. ``deleted``: ``Lost`` where the store came back without it."""
    message: str = ""
    status: str = ""
    """Status of a condition; of a taint its effect."""
    also: tuple[str, ...] = ()
    """Further reasons for the same fact."""
    actor: str = ""
    """``preempted``: the actor that makes room."""
    amount: int = 0
    """``scored``: the weighted sum of the plugins' scores."""


@dataclass(slots=True)
class PodHistory:
    """One pod, by UID: a name may be used again."""

    uid: str
    key: str
    """``namespace/name``."""
    created_ns: int
    priority: int
    scheduler_name: str
    labels: dict[str, str]
    requests: dict[str, int]
    """cpu in millicores, everything else in whole units."""
    preset_node: bool
    """Created with ``spec.nodeName``: no scheduler chose its node."""
    priority_class: str = ""
    """Empty: it names none."""
    facts: list[Fact] = field(default_factory=list)
    node: str = ""
    phase: str = "Pending"
    nominated: str = ""
    bound_ns: int | None = None
    deleting_ns: int | None = None
    gone_ns: int | None = None
    attempts: int = 0
    admissions: int = 0
    """How often a kubelet has admitted it."""
    ran_ns: int | None = None
    """When its kubelet first said that its containers run."""
    workload: str = ""
    """Workload of the scenario."""
    created_by: str = ""
    """The actor that created it; empty if the API server crashed before it logged that."""
    deleted_by: list[str] = field(default_factory=list)
    """The actors whose requests to delete it were granted, in order: the last one ended it."""
    owner: str = ""
    """``<kind>/<name>`` of its controller, or the scenario's workload, or its own name."""
    replaces: str = ""
    """``namespace/name`` of the pod whose place it takes."""
    evicted: bool = False
    change: Change | None = None
    """The change that wrote it last; None where no changes are kept."""
    ready: bool = False
    """Its object says so now, and is not being deleted."""

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]

    def first(self, what: str) -> Fact | None:
        return next((fact for fact in self.facts if fact.what == what), None)

    @property
    def running_ns(self) -> int | None:
        """When its object said first that it runs; of a pod that ended before it could, when its kubelet said so."""
        found = self.first("running")
        return self.ran_ns if found is None else found.time_ns


@dataclass(slots=True)
class InstanceHistory:
    """A machine of a provider, which is paid for while it runs."""

    group: str
    price: float
    """For an hour."""
    running_ns: int
    gone_ns: int | None = None


@dataclass(slots=True)
class NodeHistory:
    """One node, by name; it may have been removed and added again."""

    name: str
    facts: list[Fact] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)
    """Status by type, as they are now."""
    taints: dict[tuple[str, str], None] = field(default_factory=dict)
    """Key and effect, as they are now."""
    present: bool = False
    allocatable: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    """Since when how much of each resource; nothing while the node is not there."""
    written: tuple[str, ...] = ()
    """What the Node says of it now, of the resources that are measured."""


@dataclass(slots=True)
class Refusal:
    """Requests of one kind about one object that were refused for one reason."""

    verb: str
    resource: str
    namespace: str
    name: str
    reason: str
    first_ns: int
    count: int = 0


@dataclass(slots=True)
class Fault:
    """Something that chaos did."""

    id: str
    what: str
    """The name of its kind: see :mod:`kemu.runtime.faults.kinds`."""
    begin_ns: int
    data: FaultBegun
    """As in the run log: ``actors``, ``between`` and so on."""
    hits: dict[tuple[str, str], int] = field(default_factory=dict)
    """Whom it struck, and when first: an actor and an empty text, or sender and receiver."""
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Return:
    """Something that happened again to an owner: an eviction from the same node, or a preemption in turn."""

    time_ns: int
    who: str
    """The owner to whose pod it happened."""
    where: str
    """The node, or the owner that did it."""
    times: int
    """How often so far, not counting the first time."""


@dataclass(slots=True)
class WatchSession:
    """One watch of an informer, from its list to its end; a list anew begins another one."""

    actor: str
    watch: str
    """Its id at the client."""
    resource: str
    namespace: str
    label_selector: str
    field_selector: str
    since: int
    """Revision of the list."""
    listed_ns: int
    objects: int
    digest: int | None
    """Digest of the objects in the list; None: the client knew them without a list."""
    revisions: list[int] = field(default_factory=list)
    """Revisions of the events that were delivered; without the bookmarks."""
    types: list[str] = field(default_factory=list)
    """A letter for each: A(DDED), M(ODIFIED), D(ELETED)."""
    digests: list[int] = field(default_factory=list)
    """CRC-32 of the bytes of each object."""
    batches: list[tuple[int, int]] = field(default_factory=list)
    """When events were delivered, and how many there had been before that."""
    bookmarks: list[tuple[int, int]] = field(default_factory=list)
    """Revision, and how many events had been delivered before it."""
    ended_ns: int | None = None
    reason: str = ""
    """Why the watch ended; empty: its client did."""

    @property
    def selection(self) -> tuple[str, str, str, str]:
        return self.resource, self.namespace, self.label_selector, self.field_selector
