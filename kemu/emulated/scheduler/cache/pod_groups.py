"""Which pods belong to which group, and how far they are (``backend/cache``, podgroupstate.go)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2

GANG, PREEMPTION, TOPOLOGY = "GangScheduling", "WorkloadAwarePreemption", "TopologyAwareWorkloadScheduling"
CLAIMS = "DRAWorkloadResourceClaims"
"""Feature gates of groups, beside GenericWorkload, without which there are none."""

Key = tuple[str, str]
"""Namespace and name of a PodGroup."""


def key_of(pod: core_v1_pb2.Pod) -> Key | None:
    """The group that a pod says it belongs to."""
    if not pod.spec.HasField("schedulingGroup"):
        return None
    return pod.metadata.namespace, pod.spec.schedulingGroup.podGroupName


class GroupState:
    """The pods of one group, each in one of three sets of UIDs, in the order in which they came there."""

    def __init__(self) -> None:
        self.pods: dict[str, core_v1_pb2.Pod] = {}
        """All that are known, by UID."""
        self.unscheduled: dict[str, None] = {}
        self.assumed: dict[str, str] = {}
        """The node of each."""
        self.assigned: dict[str, None] = {}
        self.pending: set[str] = set()
        """Of an attempt: UIDs of the claims of devices that it has allocated, which later members may share."""

    def copy(self) -> GroupState:
        found = GroupState()
        found.pods, found.unscheduled = dict(self.pods), dict(self.unscheduled)
        found.assumed, found.assigned = dict(self.assumed), dict(self.assigned)
        return found

    @property
    def scheduled_count(self) -> int:
        return len(self.assumed) + len(self.assigned)

    def scheduled_nodes(self) -> list[tuple[core_v1_pb2.Pod, str]]:
        """The pods that are assigned or assumed, each with its node."""
        found = [(self.pods[uid], self.pods[uid].spec.nodeName) for uid in self.assigned]
        return found + [(self.pods[uid], node) for uid, node in self.assumed.items()]

    def add(self, pod: core_v1_pb2.Pod) -> None:
        uid = pod.metadata.uid
        self.pods[uid] = pod
        if pod.spec.nodeName:
            self.assigned[uid] = None
        else:
            self.unscheduled[uid] = None

    def remove(self, uid: str) -> None:
        self.pods.pop(uid, None)
        for places in (self.unscheduled, self.assumed, self.assigned):
            places.pop(uid, None)

    def assume(self, uid: str, node: str) -> None:
        pod = self.pods.get(uid)
        if pod is None:
            return
        if pod.spec.nodeName:
            self.assigned[uid] = None
        else:
            self.assumed[uid] = node
        self.unscheduled.pop(uid, None)

    def forget(self, uid: str) -> None:
        pod = self.pods.get(uid)
        if pod is None:
            return
        self.assumed.pop(uid, None)
        if pod.spec.nodeName:
            self.assigned[uid] = None
        else:
            self.unscheduled[uid] = None


class Groups:
    """All groups that one scheduler knows."""

    def __init__(self, gates: Collection[str]) -> None:
        self.gates = frozenset(gates)
        self.objects: dict[Key, scheduling_v1alpha2_pb2.PodGroup] = {}
        """PodGroups as the watch last showed them."""
        self._states: dict[Key, GroupState] = {}
        self.trial: tuple[Key, GroupState] | None = None
        """While an attempt is under way: its group, as the snapshot has it."""
        self.ready_ns: dict[str, tuple[int, int]] = {}
        """By UID of a member that waits: when it first entered the active queue, and its number in the order of
        arrival."""

    def object_of(self, pod: core_v1_pb2.Pod) -> scheduling_v1alpha2_pb2.PodGroup | None:
        key = key_of(pod)
        return None if key is None else self.objects.get(key)

    def state(self, key: Key) -> GroupState | None:
        """That of the attempt under way, if it is about this group, or else the present one."""
        if self.trial is not None and self.trial[0] == key:
            return self.trial[1]
        return self._states.get(key)

    def live(self, key: Key) -> GroupState | None:
        return self._states.get(key)

    # What the cache hears ---------------------------------------------------------------------------------------------

    def add(self, pod: core_v1_pb2.Pod) -> None:
        key = key_of(pod)
        if key is not None:
            self._states.setdefault(key, GroupState()).add(pod)

    def update(self, pod: core_v1_pb2.Pod) -> None:
        """A waiting pod has changed."""
        key = key_of(pod)
        state = None if key is None else self._states.get(key)
        if state is not None:
            state.pods[pod.metadata.uid] = pod

    def remove(self, pod: core_v1_pb2.Pod) -> None:
        key = key_of(pod)
        state = None if key is None else self._states.get(key)
        if key is not None and state is not None:
            state.remove(pod.metadata.uid)
            if not state.pods:
                del self._states[key]

    def assume(self, pod: PodInfo, node: str) -> None:
        key = key_of(pod.pod)
        if key is not None:
            state = self._states.get(key)
            if state is None:
                state = self._states[key] = GroupState()
                state.pods[pod.uid] = pod.pod
            state.assume(pod.uid, node)

    def forget(self, pod: PodInfo) -> None:
        key = key_of(pod.pod)
        state = None if key is None else self._states.get(key)
        if state is not None:
            state.forget(pod.uid)

    def order(self, info: PodInfo, stamp: int) -> tuple[Any, ...]:
        """By priority, then by the time at which a member first entered the active queue."""
        return (-info.priority, *self.ready_ns.get(info.uid, (0, stamp)))
