"""The events of the controllers of nodes, pods, workloads, owners and namespaces, of the descheduler and of queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode
from kemu.runtime.runlog.events.words import (
    BAD,
    EVICTED,
    GOOD,
    OUTCOME,
    PLAIN,
    Deed,
    Line,
    Names,
    Traced,
    because,
    whole,
)
from kemu.runtime.words import listed, short

_NODES = "node lifecycle controller"
_WORKLOADS = "controllers of ReplicaSets, StatefulSets, DaemonSets, Jobs"
_DEPLOYMENTS = "controller of Deployments"
_GARBAGE = "garbage collector"
_DESCHEDULER = "descheduler"
_QUEUES = "kueue"


class NodeUnknown(Event, kind="node.unknown", by=_NODES, on_page=True):
    """The kubelet of a node is silent"""

    LIVE = Line("lost", "is silent", "nodes are silent", BAD)
    DEED = Deed("heard nothing of {node} any more", "{node} is silent", OUTCOME)

    node: str
    conditions: list[str]


class NodeTainted(Event, kind="node.tainted", by=_NODES, on_page=True):
    """Taints of a node are changed"""

    node: str
    start: int
    """When it was decided."""
    add: list[str]
    """As `key:effect`."""
    remove: list[str]

    def deed(self, pod: str, names: Names) -> Deed:
        added = listed(taint.removeprefix("node.kubernetes.io/") for taint in self.add)
        text = f"tainted {self.node} ({added})" if added else f"took taints off {self.node}"
        return Deed(text, f"taints {self.node}", OUTCOME, "tainted" if added else "untainted")


class OfPodDeletion(OfPodOnNode):
    """The DELETE of a pod returned"""

    start: int
    ok: bool
    why: str = ""

    def deed(self, pod: str, names: Names) -> Deed | None:
        return Deed(f"deleted {pod}{because(self.why)}", f"deletes {pod}", OUTCOME, "deletes") if self.ok else None

    def traced(self) -> Traced:
        why = self.why or f"does not tolerate a taint of {self.node}"
        return Traced("evicted", why, "Evicted") if self.ok else Traced("evicted", why, "NotFound", "it was gone")


class TaintEviction(OfPodDeletion, kind="taint.eviction", by="taint eviction controller", on_page=True):
    """The DELETE of a pod returned; `start` is when it had to go"""

    LIVE = EVICTED


class AffinityEviction(OfPodDeletion, kind="affinity.eviction", by="node affinity eviction controller", on_page=True):
    """The DELETE of a pod returned; `start` is when its node ceased to match"""

    LIVE = EVICTED


class OrphanedPodDeleted(OfPodDeletion, kind="podgc.deleted", by="garbage collector of pods", on_page=True):
    """The DELETE of a pod returned"""


class QuotaCounted(Event, kind="quota.counted", by="quota controller"):
    """It counted what is used of a quota, and wrote it unless that failed"""

    quota: str
    start: int


class PodCreated(OfPod, kind="controller.pod", by=_WORKLOADS, on_page=True):
    """A pod was made"""

    owner: str
    """As `KIND namespace/name`."""
    replaces: str
    """The pod whose place it takes."""
    replaces_uid: str

    def deed(self, pod: str, names: Names) -> Deed:
        place = f" in place of {short(self.replaces)}" if self.replaces else ""
        others = (self.replaces,) if self.replaces else ()
        return Deed(f"created {pod} for {self.owner}{place}", f"creates {pod}", OUTCOME, "created", others)


class PodAdopted(OfPod, kind="controller.adopted", by=_WORKLOADS, on_page=True):
    """A pod without a controller became the owner's"""

    owner: str


class PodReleased(OfPod, kind="controller.released", by=_WORKLOADS, on_page=True):
    """A pod whose labels were changed away was set free"""

    owner: str


class Named(TypedDict):
    """The fields of :class:`OfOwned`."""

    resource_kind: str
    name: str
    uid: str


class OfOwned(Event):
    """About an object with owners."""

    resource_kind: str = field(key="kind")
    name: str
    uid: str


OWNER_GONE = "its owner is gone"


class OwnedDeleted(OfOwned, kind="gc.deleted", by=_GARBAGE, on_page=True):
    """An object whose owners are gone was deleted"""

    policy: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        """The deletion of a pod is told as the pod's."""
        if self.resource_kind == "Pod":
            return ()
        phrase = f"{self.resource_kind} {short(self.name)} is deleted"
        return (whole("collected", phrase, f"{self.resource_kind} deleted", why=OWNER_GONE),)


class OwnedOrphaned(OfOwned, kind="gc.orphaned", by=_GARBAGE, on_page=True):
    """An object lost its reference to an owner that left it behind"""

    owner: str


class OwnerInvalid(OfOwned, kind="gc.invalid_owner", by=_GARBAGE):
    """A reference to an owner in another namespace"""

    owner: str


class NamespaceEmptied(Event, kind="namespace.emptied", by="namespace controller"):
    """One look at a namespace that is being deleted"""

    namespace: str
    remaining: dict[str, int]
    """How many objects are left, by kind."""
    estimate_s: int
    """Until it is gone."""

    SUBJECT = ("namespace",)

    def lines(self, before: NamespaceEmptied | None) -> Sequence[Line]:
        """Once when its deletion begins, and once when nothing is left."""
        left, name = any(self.remaining.values()), self.namespace
        if left and before is None:
            why = ", ".join(f"{count} {kind}" for kind, count in self.remaining.items())
            phrase = f"namespace {name} is being emptied"
            return (whole("collected", phrase, "namespaces are being emptied", PLAIN, f"left: {why}"),)
        if not left and (before is None or any(before.remaining.values())):
            return (whole("collected", f"namespace {name} is empty", "namespaces are empty", GOOD),)
        return ()


class CronJobReported(Event, kind="controller.cronjob", by="CronJob controller", on_page=True):
    """What it reported about a CronJob"""

    cronjob: str
    uid: str
    reason: str
    message: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        name, reason, message = f"CronJob {short(self.cronjob)}", self.reason, self.message
        if reason == "SuccessfulCreate":
            phrase = f"{name} starts Job {message.removeprefix('Created job ')}"
            return (whole("job", phrase, f"{name} starts"),)
        if reason in ("MissSchedule", "JobAlreadyActive"):
            return (whole("job", f"{name} skips a Job", f"{name} skips", BAD, message),)
        if reason in ("SawCompletedJob", "SuccessfulDelete", "MissingJob"):  # other lines tell it
            return ()
        return (whole("job", f"{name} reports {reason}", f"{name}: {reason}", BAD, message),)


class JobReported(Event, kind="controller.job", by="Job controller", on_page=True):
    """What it reported about a Job"""

    job: str
    uid: str
    reason: str
    """Completed, Suspended, Resumed, or why it failed."""
    message: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        says, tone = {
            "Completed": ("is complete", GOOD),
            "Suspended": ("is suspended", PLAIN),
            "Resumed": ("is resumed", PLAIN),
            "TooManySucceededPods": ("has too many succeeded pods", BAD),
        }.get(self.reason, (f"fails: {self.reason}", BAD))
        why = self.message if tone == BAD else ""
        return (whole("job", f"Job {short(self.job)} {says}", f"Jobs: {says}", tone, why),)


class ReplicaSetScaled(Event, kind="controller.scaled", by=_DEPLOYMENTS):
    """A ReplicaSet of a Deployment gets another size"""

    deployment: str
    replica_set: str
    revision: str
    before: int
    replicas: int

    SUBJECT = ("deployment", "replica_set")

    def lines(self, before: ReplicaSetScaled | None) -> Sequence[Line]:
        name, sizes = f"Deployment {short(self.deployment)}", (self.before, self.replicas)
        says = f"{name} scales {'up' if sizes[0] < sizes[1] else 'down'} ReplicaSet {self.replica_set}"
        phrase, why = f"{says} from {sizes[0]} to {sizes[1]}", f"revision {self.revision}" if self.revision else ""
        step = whole("rollout", phrase, says, PLAIN, why, sizes=sizes)
        was, now = (_number(one.revision) if one is not None else 0 for one in (before, self))
        if sizes[0] >= sizes[1] or not 0 < was < now:
            return (step,)
        phrase, why = f"{name} rolls back to ReplicaSet {self.replica_set}", f"revision {was} becomes revision {now}"
        return whole("rollout", phrase, f"{short(self.deployment)} rolls back", PLAIN, why), step

    def live(self) -> Line:
        phrase = f"{self.replica_set} of deployment {short(self.deployment)} goes from {self.before} to {self.replicas}"
        return whole("scaled", phrase, "replica sets get another size")


def _number(revision: str) -> int:
    return int(revision) if revision.isdecimal() else 0


class RolloutEnded(Event, kind="controller.rollout", by=_DEPLOYMENTS):
    """A rollout has ended"""

    deployment: str
    revision: str
    outcome: str
    """`complete`, or `stuck` at its progress deadline."""

    def lines(self, before: Event | None) -> Sequence[Line]:
        phrase, why = f"the rollout of Deployment {short(self.deployment)} is", f"revision {self.revision}"
        if self.outcome == "complete":
            return (whole("rollout", f"{phrase} complete", "complete", GOOD, why),)
        return (whole("rollout", f"{phrase} stuck", "stuck", BAD, f"{why} exceeded its progress deadline"),)

    def live(self) -> Line:
        says, tone = ("is rolled out", GOOD) if self.outcome == "complete" else ("is stuck", BAD)
        phrase = f"revision {self.revision} of deployment {short(self.deployment)} {says}"
        return whole(f"rollout {tone}", phrase, "rollouts end", tone)


class HashCollided(Event, kind="controller.hash_collision", by=_DEPLOYMENTS):
    """Another ReplicaSet has the name of the new one"""

    deployment: str
    collisions: int


class Autoscaled(Event, kind="hpa.scaled", by="horizontal pod autoscaler"):
    """A workload gets as many replicas as its HorizontalPodAutoscaler asks for"""

    autoscaler: str
    before: int
    replicas: int
    why: str

    SUBJECT = ("autoscaler",)

    def lines(self, before: Event | None) -> Sequence[Line]:
        says = (
            f"HorizontalPodAutoscaler {short(self.autoscaler)} scales {'up' if self.replicas > self.before else 'down'}"
        )
        phrase = f"{says} from {self.before} to {self.replicas}"
        return (whole("autoscaled", phrase, says, PLAIN, self.why, sizes=(self.before, self.replicas)),)

    def live(self) -> Line:
        phrase = f"autoscaler {short(self.autoscaler)} goes from {self.before} to {self.replicas}"
        return whole("autoscaled", phrase, "autoscalers give another size")


class PodDescheduled(OfPodDeletion, kind="descheduler.eviction", by=_DESCHEDULER, on_page=True):
    """The eviction of a pod returned; `start` is when it was decided"""

    LIVE = EVICTED

    strategy: str
    profile: str

    def deed(self, pod: str, names: Names) -> Deed | None:
        why = because(self.strategy)
        return Deed(f"evicted {pod}{why}", f"evicts {pod}", OUTCOME, "evicts") if self.ok else None

    def traced(self) -> Traced:
        return Traced("evicted", self.why or self.strategy, "Evicted" if self.ok else "TooManyRequests")


class DeschedulingRound(Event, kind="descheduler.round", by=_DESCHEDULER):
    """A round has ended"""

    evicted: int
    """How many pods."""
    why: str
    """Why it did nothing, if so."""


class JobAdmitted(Event, kind="kueue.admitted", by=_QUEUES, on_page=True):
    """A Job has quota for all of its pods, and is resumed"""

    job: str
    uid: str
    queue: str
    flavors: list[str]
    """As `flavor/resource`."""

    def lines(self, before: Event | None) -> Sequence[Line]:
        said = f"{short(self.job)} is admitted to {self.queue}"
        return (whole("scaled", said, said, GOOD, who="kueue"),)


class JobPreempted(Event, kind="kueue.preempted", by=_QUEUES, on_page=True):
    """A Job has to give its quota up, and is suspended"""

    job: str
    uid: str
    queue: str
    by: str
    """For which Job."""
    reason: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        said = f"{short(self.job)} is preempted in {self.queue}"
        return (whole("scaled", said, said, BAD, f"by {short(self.by)}: {self.reason}", who="kueue"),)


class WorkQueueChanged(Event, kind="workqueue.changed", by="controllers"):
    """The work queue of a controller has changed, where the scenario says `metrics: true`"""

    queue: str
    """Its name in the metrics of kube-controller-manager."""
    what: str
    """`added`, `taken`, `done`, or `retried`: to be added after a delay, because it failed."""
    took: int
    """How long the item has waited (`taken`), or was worked on (`done`), in ns."""
