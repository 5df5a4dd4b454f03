"""The events of the controllers of nodes, pods, workloads, owners and namespaces."""

from __future__ import annotations

from typing import TypedDict

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.subjects import OfPod, OfPodOnNode
from kemu.runtime.runlog.events.words import BAD, EVICTED, Told

_NODES = "node lifecycle controller"
_WORKLOADS = "controllers of ReplicaSets, StatefulSets, DaemonSets, Jobs"
_DEPLOYMENTS = "controller of Deployments"
_GARBAGE = "garbage collector"


class NodeUnknown(Event, kind="node.unknown", by=_NODES, on_page=True):
    """The kubelet of a node is silent"""

    TOLD = Told("lost", "is silent", "nodes are silent", BAD)

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


class OfPodDeletion(OfPodOnNode):
    """The DELETE of a pod returned"""

    start: int
    ok: bool
    why: str = ""


class TaintEviction(OfPodDeletion, kind="taint.eviction", by="taint eviction controller", on_page=True):
    """The DELETE of a pod returned; `start` is when it had to go"""

    TOLD = EVICTED


class AffinityEviction(OfPodDeletion, kind="affinity.eviction", by="node affinity eviction controller", on_page=True):
    """The DELETE of a pod returned; `start` is when its node ceased to match"""

    TOLD = EVICTED


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


class OwnedDeleted(OfOwned, kind="gc.deleted", by=_GARBAGE, on_page=True):
    """An object whose owners are gone was deleted"""

    policy: str


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


class CronJobReported(Event, kind="controller.cronjob", by="CronJob controller", on_page=True):
    """What it reported about a CronJob"""

    cronjob: str
    uid: str
    reason: str
    message: str


class JobReported(Event, kind="controller.job", by="Job controller", on_page=True):
    """What it reported about a Job"""

    job: str
    uid: str
    reason: str
    """Completed, Suspended, Resumed, or why it failed."""
    message: str


class ReplicaSetScaled(Event, kind="controller.scaled", by=_DEPLOYMENTS):
    """A ReplicaSet of a Deployment gets another size"""

    deployment: str
    replica_set: str
    revision: str
    before: int
    replicas: int


class RolloutEnded(Event, kind="controller.rollout", by=_DEPLOYMENTS):
    """A rollout has ended"""

    deployment: str
    revision: str
    outcome: str
    """`complete`, or `stuck` at its progress deadline."""


class HashCollided(Event, kind="controller.hash_collision", by=_DEPLOYMENTS):
    """Another ReplicaSet has the name of the new one"""

    deployment: str
    collisions: int
