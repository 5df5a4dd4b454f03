"""VolumeRestrictions: disks that two pods of a node must not share, and claims that only one pod may use.

A claim with the access mode ReadWriteOncePod is a resource of the whole cluster: its user may run on any node. Removing
the user helps where preemption removes it, which is on its own node alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu.emulated.objects.volumes import claims
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable, unschedulable
from kemu.emulated.scheduler.plugins.volumes import hints
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_DISK = unschedulable("node(s) had no available disk")
_ONE_POD = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_STATUSES = (_DISK, _ONE_POD)
_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")


class _State:
    """``preFilterState``."""

    __slots__ = ("claims", "disks", "users")

    def __init__(self, disks: tuple[Any, ...], for_one_pod: dict[str, None], users: int) -> None:
        self.disks = disks
        """The sources of the pod's own volumes that other pods may hold."""
        self.claims = for_one_pod
        """The pod's claims with ReadWriteOncePod."""
        self.users = users
        """How often pods on nodes use one of them."""

    def count(self, pod: PodInfo, change: int) -> None:
        """Like the original, this compares names of claims and not their namespaces."""
        self.users += change * sum(name in self.claims for name in pod.template.claims)


class VolumeRestrictions(FilterPlugin, SignPlugin):
    def concerns(self, template: Template) -> bool:
        return bool(template.claims) or bool(_disks(template))

    def prepare(self, cycle: Cycle) -> Any:
        storage, namespace = self.handle.cluster.storage, cycle.namespace
        for_one_pod: dict[str, None] = {}
        for name in cycle.template.claims:
            claim = storage.claims.get(f"{namespace}/{name}")
            if claim is None:
                return unresolvable(f'persistentvolumeclaim "{name}" not found')
            if claims.READ_WRITE_ONCE_POD in claim.spec.accessModes:
                for_one_pod[name] = None
        users = sum(f"{namespace}/{name}" in storage.in_use for name in for_one_pod)
        disks = _disks(cycle.template)
        return _State(disks, for_one_pod, users) if disks or users else SKIP

    def verdict(self, state: _State, node: NodeInfo) -> int:
        if state.disks and any(_conflict(state.disks, other.template) for other in node.pods.values()):
            return 1
        return 2 if state.users > 0 else 0

    def explain(self, state: _State, verdict: int) -> Status:
        return _STATUSES[verdict - 1]

    def fork(self, state: _State) -> _State:
        return _State(state.disks, state.claims, state.users)

    def add_pod(self, state: _State, node: NodeInfo, pod: PodInfo) -> None:
        state.count(pod, 1)

    def remove_pod(self, state: _State, node: NodeInfo, pod: PodInfo) -> None:
        state.count(pod, -1)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.volumes(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.ASSIGNED_POD_DELETE, _frees_a_volume),
            (Event.NODE_ADD, None),
            (Event.CLAIM_ADD, hints.names_claim),
        ]


def _disks(template: Template) -> tuple[Any, ...]:
    """The sources that ``needsRestrictionsCheck``."""
    return tuple(one for one in template.volumes if any(one.HasField(disk) for disk in _DISKS))


def _conflict(disks: Iterable[Any], other: Template) -> bool:
    """``isVolumeConflict``, for all volumes of two pods."""
    theirs = other.volumes
    return bool(theirs) and any(_are_one(mine, one) for mine in disks for one in theirs)


def _are_one(mine: Any, other: Any) -> bool:
    """Whether two sources are the same disk, and not both read it only. Amazon's are never shared."""
    if mine.HasField("gcePersistentDisk") and other.HasField("gcePersistentDisk"):
        own, its = mine.gcePersistentDisk, other.gcePersistentDisk
        return bool(own.pdName == its.pdName) and not (own.readOnly and its.readOnly)
    if mine.HasField("awsElasticBlockStore") and other.HasField("awsElasticBlockStore"):
        return bool(mine.awsElasticBlockStore.volumeID == other.awsElasticBlockStore.volumeID)
    if mine.HasField("iscsi") and other.HasField("iscsi"):
        return bool(mine.iscsi.iqn == other.iscsi.iqn) and not (mine.iscsi.readOnly and other.iscsi.readOnly)
    if mine.HasField("rbd") and other.HasField("rbd"):
        own, its = mine.rbd, other.rbd
        shared = any(monitor in its.monitors for monitor in own.monitors)
        return shared and (own.pool, own.image) == (its.pool, its.image) and not (own.readOnly and its.readOnly)
    return False


def _frees_a_volume(pod: PodInfo, old: core_v1_pb2.Pod, new: KubernetesObject | None) -> bool:
    """``isSchedulableAfterPodDeleted``."""
    if old.metadata.namespace != pod.namespace:
        return False
    sources = [volume.volumeSource for volume in old.spec.volumes]
    if any(_are_one(mine, one) for mine in _disks(pod.template) for one in sources):
        return True
    wanted = pod.template.claims
    return any(
        one.HasField("persistentVolumeClaim") and one.persistentVolumeClaim.claimName in wanted for one in sources
    )
