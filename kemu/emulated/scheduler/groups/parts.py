"""The cache, the queue and the event handlers of a scheduler that knows groups."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from typing import Any, cast

from kemu.emulated.scheduler.cache import pod_groups
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pod_groups import Groups, Key
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.feeds import PodFeed
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.queue.queues import (
    ACTIVE,
    ATTEMPT_FAILED,
    BACKOFF,
    IN_FLIGHT,
    POD_ADD,
    QueuedPod,
    SchedulingQueue,
)
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2


def joined(kind: type[Any], chosen: type[Any]) -> type[Any]:
    """A class that is both: that of a scheduler with groups, and the one that was chosen for the scheduler."""
    return _joined(cast(Hashable, kind), cast(Hashable, chosen))


@functools.cache
def _joined(kind: Hashable, chosen: Hashable) -> type[Any]:
    return type(cast(type[Any], chosen).__name__, cast(tuple[type[Any], ...], (kind, chosen)), {})


class GroupCluster(Cluster):
    """Tells the groups which pods are assumed."""

    groups: Groups

    def assume(self, pod: PodInfo, node_name: str) -> None:
        super().assume(pod, node_name)
        self.groups.assume(pod, node_name)

    def forget(self, uid: str) -> bool:
        pod = self.assumed.get(uid)
        forgotten = super().forget(uid)
        if forgotten and pod is not None:
            self.groups.forget(pod)
        return forgotten


class GroupQueue(SchedulingQueue):
    """Hands out the members of a group together."""

    groups: Groups
    _arrivals = 0

    def add(self, info: PodInfo, cause: str = POD_ADD) -> QueuedPod:
        if info.pod.spec.HasField("schedulingGroup"):
            self._arrivals += 1
            self.groups.ready_ns[info.uid] = (-1, self._arrivals)
        return super().add(info, cause)

    def remove(self, uid: str) -> QueuedPod | None:
        self.groups.ready_ns.pop(uid, None)
        return super().remove(uid)

    def done(self, uid: str) -> None:
        super().done(uid)
        self.groups.ready_ns.pop(uid, None)

    def _activate(self, pod: QueuedPod, cause: str) -> None:
        super()._activate(pod, cause)
        ready = self.groups.ready_ns.get(pod.info.uid)
        if ready is not None and ready[0] < 0 and pod.place == ACTIVE:
            self.groups.ready_ns[pod.info.uid] = (self._clock.now_ns(), ready[1])

    def failed(self, pod: QueuedPod, rejectors: tuple[str, ...], pending: tuple[str, ...] = ()) -> None:
        """No event requeues a member that plugins rejected: its backoff alone counts, from which it may be taken early
        (``determineSchedulingHintForInFlightPod``)."""
        if not rejectors or not pod.info.pod.spec.HasField("schedulingGroup"):
            super().failed(pod, rejectors, pending)
            return
        self._restamp(pod)
        pod.rejectors, pod.pending = rejectors, pending
        self._end_flight(pod.info.uid)
        self.pods[pod.info.uid] = pod
        pod.unschedulable_count += 1
        pod.error_count = 0
        self._requeue(pod, ATTEMPT_FAILED)

    def take_members(self, first: QueuedPod, uids: Iterable[str]) -> list[QueuedPod]:
        """A member and the others that wait in some place where no plugin holds them, all in flight
        (``PopSpecificPod``)."""
        found = [first]
        for uid in uids:
            pod = self.pods.get(uid)
            if pod is None or pod is first or pod.place == IN_FLIGHT:
                continue
            if pod.place == BACKOFF and self._pops_from_backoff:
                pass  # PreEnqueue was asked when it came there.
            elif pod.place != ACTIVE:
                self._activate(pod, Event.ACTIVATE.value)
                if pod.place != ACTIVE:
                    continue
            self._leave(pod)
            pod.place = IN_FLIGHT
            pod.attempts += 1
            pod.rejectors = pod.pending = ()
            pod.gate = ""
            self._in_flight[uid] = self._forgotten + len(self._events)
            found.append(pod)
        return found


class GroupPodFeed(PodFeed):
    """Keeps the states of groups up to date, and tells the queue of every new pod that waits."""

    groups: Groups

    def on_add(self, pod: core_v1_pb2.Pod) -> None:
        waits = not pod.spec.nodeName and pod.spec.schedulerName in self._served
        if waits or pod.spec.nodeName:
            self.groups.add(pod)
        super().on_add(pod)
        if waits and pod_groups.GANG in self.groups.gates:
            self._queue.move(Event.POD_ADD, None, pod)

    def on_update(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        if new.spec.nodeName:
            self.groups.remove(old)
            self.groups.add(new)
        elif new.spec.schedulerName in self._served:
            self.groups.update(new)
        super().on_update(old, new)

    def on_delete(self, pod: core_v1_pb2.Pod) -> None:
        self.groups.remove(pod)
        super().on_delete(pod)


class GroupFeed:
    """PodGroups."""

    def __init__(self, groups: Groups, queue: SchedulingQueue) -> None:
        self._groups = groups
        self._queue = queue

    def on_add(self, group: scheduling_v1alpha2_pb2.PodGroup) -> None:
        self._groups.objects[_key(group)] = group
        self._queue.move(Event.POD_GROUP_ADD, None, group)

    def on_update(self, old: scheduling_v1alpha2_pb2.PodGroup, new: scheduling_v1alpha2_pb2.PodGroup) -> None:
        self._groups.objects[_key(new)] = new

    def on_delete(self, group: scheduling_v1alpha2_pb2.PodGroup) -> None:
        self._groups.objects.pop(_key(group), None)


def _key(group: scheduling_v1alpha2_pb2.PodGroup) -> Key:
    return group.metadata.namespace, group.metadata.name
