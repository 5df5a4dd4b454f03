"""Handlers of the watches: they update the cache, the nominator and the queue (``eventhandlers.go``).

One for each kind of object. Changes of the cache go through ``Cluster.change``, because an attempt under way keeps its
snapshot; the queue gets every event at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import intern
from typing import TYPE_CHECKING, Any

from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache import updates
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cache.updates import PodUpdate
from kemu.emulated.scheduler.experiments.switches import Policy
from kemu.emulated.scheduler.framework import events
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.queue.queues import GATED, POD_UPDATE, SchedulingQueue
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2, resource_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

if TYPE_CHECKING:
    from kemu.emulated.scheduler.devices.trackers import Devices


class PodFeed:
    """Pods that have not ended. A pod that ends leaves the watch, which looks like a deletion here."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        served: Mapping[str, object],
        seen: dict[str, Any],
        policy: Policy,
        reject_waiting: Callable[[str], bool],
        on_gone: Callable[[str], object],
    ) -> None:
        """``served``: scheduler names whose pods wait here; ``seen``: where every pod is kept as last seen, by UID.

        ``on_gone`` is called with the UID of every pod that ended or was deleted.
        """
        self._cluster = cluster
        self._queue = queue
        self._served = served
        self._cooperates = policy.cooperate and policy.nomination
        """Other schedulers' nominations count."""
        self._reject_waiting = reject_waiting
        self._on_gone = on_gone
        self.pods = seen
        """Every pod as last seen, by UID."""

    def find(self, uid: str) -> core_v1_pb2.Pod | None:
        return self.pods.get(uid)

    def on_add(self, pod: core_v1_pb2.Pod) -> None:
        uid = intern(pod.metadata.uid)
        self.pods[uid] = pod
        if pod.spec.nodeName:
            self._assigned(pod, uid)
        elif pod.spec.schedulerName in self._served:
            info = self._cluster.pending(pod)
            waiting = self._queue.add(info)
            if pod.status.nominatedNodeName and waiting.place != GATED:
                self._cluster.nominator.nominate(info, pod.status.nominatedNodeName)
        elif self._cooperates and pod.status.nominatedNodeName:
            self._cluster.nominator.nominate(self._cluster.pending(pod), pod.status.nominatedNodeName)

    def on_update(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        update = updates.KEPT.get(id(new))
        if update is None or update.old is not old:
            update = updates.of(old, new)
        cluster, queue, uid = self._cluster, self._queue, update.uid
        self.pods[uid] = new
        if not update.node:
            if new.spec.schedulerName in self._served:
                self._waiting_changed(update)
            elif self._cooperates:
                self._other_waiting_changed(old, new)
        elif not update.old_node:
            self._assigned(new, uid, update)
        else:
            # Cluster.change, inlined, as below.
            if cluster.held is None:
                cluster.see_update(update, update.spec_changed)
            else:
                cluster.held.append((cluster.see_update, (update, update.spec_changed)))
            if update.events is None:
                update.events = events.assigned_pod_events(update)
            for event in update.events:
                queue.move(event, old, new)

    def on_delete(self, pod: core_v1_pb2.Pod) -> None:
        uid = pod.metadata.uid
        self.pods.pop(uid, None)
        self._on_gone(uid)
        if pod.spec.nodeName:
            self._cluster.change(self._cluster.remove_pod, uid)
            self._queue.remove(uid)
            self._cluster.nominator.remove(uid)
            self._queue.move(Event.ASSIGNED_POD_DELETE, pod, None)
            return
        self._queue.remove(uid)
        self._cluster.nominator.remove(uid)
        if uid in self._cluster.assumed:
            self._assumed_ended(pod)
        elif pod.status.nominatedNodeName:
            self._nomination_ended(pod)

    def _assigned(self, pod: core_v1_pb2.Pod, uid: str, update: PodUpdate | None = None) -> None:
        """``update``: of a pod that had no node before."""
        cluster, queue = self._cluster, self._queue
        if uid in queue.pods:
            queue.remove(uid)
        if cluster.nominator.nodes:
            cluster.nominator.remove(uid)
        # The watch shows the pod on a node: it is no longer just assumed.
        assumed = cluster.assumed.pop(uid, None)
        if update is None:
            cluster.change(cluster.see_pod, pod, False)
        else:
            # A pod that was assumed may have changed before it was bound, and its requests with it.
            old = update.old
            spec_changed = assumed is not None and assumed.pod is not old and bool(assumed.pod.spec != old.spec)
            if cluster.held is None:
                cluster.see_update(update, spec_changed)
            else:
                cluster.held.append((cluster.see_update, (update, spec_changed)))
        queue.move(Event.ASSIGNED_POD_ADD, None, pod)

    def _waiting_changed(self, update: PodUpdate) -> None:
        old, new, uid = update.old, update.new, update.uid
        queue, nominator = self._queue, self._cluster.nominator
        if uid in self._cluster.assumed:
            if new.metadata.HasField("deletionTimestamp") and not old.metadata.HasField("deletionTimestamp"):
                self._assumed_ended(new)
            return
        known = queue.pods.get(uid)
        if known is None or update.spec_changed:
            info = self._cluster.pending(new)
        else:
            info = PodInfo(new, known.info.template)
        if known is None:
            queue.add(info, POD_UPDATE)
            nominator.renew(info, "", new.status.nominatedNodeName)
        elif queue.update(info, events.pending_pod_events(update), old):
            nominator.renew(info, old.status.nominatedNodeName, new.status.nominatedNodeName)
        if old.status.nominatedNodeName not in ("", new.status.nominatedNodeName):
            self._nomination_ended(old)

    def _assumed_ended(self, pod: core_v1_pb2.Pod) -> None:
        """A pod is deleted before the watch showed it on its node; a binding under way will fail.

        A pod that waits for its permit is rejected instead, and its binding cycle gives the room back.
        """
        uid = pod.metadata.uid
        node = self._cluster.assumed[uid].node_name
        if not self._reject_waiting(uid):
            self._cluster.forget(uid)
        self._queue.move(Event.ASSIGNED_POD_DELETE, events.assigned(pod, node), None)

    def _other_waiting_changed(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        before, after = old.status.nominatedNodeName, new.status.nominatedNodeName
        if after:
            self._cluster.nominator.nominate(self._cluster.pending(new), after)
        elif before:
            self._cluster.nominator.remove(new.metadata.uid)
        if before not in ("", after):
            self._nomination_ended(old)

    def _nomination_ended(self, pod: core_v1_pb2.Pod) -> None:
        """For pods that had to leave room for it, this is like the deletion of a pod on that node."""
        priority = pod.spec.priority
        self._queue.move(Event.ASSIGNED_POD_DELETE, pod, None, only=lambda waiting: waiting.priority <= priority)


class NodeFeed:
    """Nodes."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue) -> None:
        self._cluster = cluster
        self._queue = queue
        self._nodes = 0

    def on_add(self, node: core_v1_pb2.Node) -> None:
        self._nodes += 1
        self._queue.nodes_changed(True)
        self._cluster.change(self._cluster.set_node, node)
        self._queue.move(Event.NODE_ADD, None, node)

    def on_update(self, old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> None:
        happened = events.node_events(old, new)
        if happened or old.spec.unschedulable != new.spec.unschedulable or _images(old) != _images(new):
            self._cluster.change(self._cluster.set_node, new)
        elif new.status.images:
            self._cluster.change(self._cluster.node_seen, new.metadata.name)
        if not happened and self._queue.heeds_heartbeats:
            happened = [Event.NODE_CONDITIONS]
        for event in happened:
            self._queue.move(event, old, new)

    def on_delete(self, node: core_v1_pb2.Node) -> None:
        self._nodes -= 1
        self._queue.nodes_changed(self._nodes > 0)
        self._cluster.change(self._cluster.remove_node, node.metadata.name)
        self._queue.move(Event.NODE_DELETE, node, None)


class ObjectFeed:
    """Objects that are only looked up: ``write(object, exists)`` stores or removes one."""

    def __init__(self, cluster: Cluster, write: Callable[[Any, bool], object]) -> None:
        self._cluster = cluster
        self._write = write

    def on_add(self, obj: KubernetesObject) -> None:
        self._cluster.change(self._write, obj, True)

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._cluster.change(self._write, new, True)

    def on_delete(self, obj: KubernetesObject) -> None:
        self._cluster.change(self._write, obj, False)


class StorageFeed:
    """Objects of one kind that plugins for volumes ask for as the watch shows them: no part of a snapshot."""

    def __init__(
        self,
        queue: SchedulingQueue,
        write: Callable[[Any, bool], object],
        added: Event | None = None,
        updated: Event | None = None,
        deleted: Event | None = None,
    ) -> None:
        """``write(object, exists)`` stores or removes one; the events may make pods schedulable."""
        self._queue = queue
        self._write = write
        self._added = added
        self._updated = updated
        self._deleted = deleted

    def on_add(self, obj: KubernetesObject) -> None:
        self._write(obj, True)
        if self._added is not None:
            self._queue.move(self._added, None, obj)

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._write(new, True)
        if self._updated is not None:
            self._queue.move(self._updated, old, new)

    def on_delete(self, obj: storage_v1_pb2.VolumeAttachment) -> None:
        self._write(obj, False)
        if self._deleted is not None:
            self._queue.move(self._deleted, obj, None)


def storage_feeds(cluster: Cluster, queue: SchedulingQueue) -> dict[str, StorageFeed]:
    """The feeds of all kinds of storage, by plural. Events that no plugin in the tree registers are left out."""
    storage = cluster.storage

    def kept_in(store: dict[str, Any]) -> Callable[[Any, bool], None]:
        def write(obj: KubernetesObject, is_there: bool) -> None:
            key = meta.namespaced_name(obj)
            if is_there:
                store[key] = obj
            else:
                store.pop(key, None)

        return write

    def volume(obj: core_v1_pb2.PersistentVolume, is_there: bool) -> None:
        storage.set_volume(obj, is_there=is_there)

    def attachment(obj: storage_v1_pb2.VolumeAttachment, is_there: bool) -> None:
        storage.set_attachment(obj, is_there=is_there)

    feed = StorageFeed
    return {
        "storageclasses": feed(queue, kept_in(storage.classes), Event.STORAGE_CLASS_ADD, Event.STORAGE_CLASS_UPDATE),
        "csidrivers": feed(queue, kept_in(storage.drivers), updated=Event.CSI_DRIVER_UPDATE),
        "csinodes": feed(queue, kept_in(storage.csi_nodes), Event.CSI_NODE_ADD, Event.CSI_NODE_UPDATE),
        "csistoragecapacities": feed(queue, kept_in(storage.capacities), Event.CAPACITY_ADD, Event.CAPACITY_UPDATE),
        "persistentvolumes": feed(queue, volume, Event.VOLUME_ADD, Event.VOLUME_UPDATE),
        "persistentvolumeclaims": feed(queue, kept_in(storage.claims), Event.CLAIM_ADD, Event.CLAIM_UPDATE),
        "volumeattachments": feed(queue, attachment, deleted=Event.ATTACHMENT_DELETE),
    }


def device_feeds(cluster: Cluster, queue: SchedulingQueue) -> dict[str, StorageFeed]:
    """The feeds of claims, slices and classes of devices, by plural. A claim causes its events when the assume cache
    takes it, whoever has changed it."""
    devices = cluster.devices
    assert devices is not None

    def claim_changed(old: resource_v1_pb2.ResourceClaim | None, new: resource_v1_pb2.ResourceClaim | None) -> None:
        if old is None:
            queue.move(Event.RESOURCE_CLAIM_ADD, None, new)
        elif new is not None:
            queue.move(Event.RESOURCE_CLAIM_UPDATE, old, new)

    devices.on_claim = claim_changed
    claim, device_class, device_slice = _device_writes(devices)
    feed = StorageFeed
    return {
        "deviceclasses": feed(queue, device_class, Event.DEVICE_CLASS_ADD, Event.DEVICE_CLASS_UPDATE),
        "resourceslices": feed(queue, device_slice, Event.RESOURCE_SLICE_ADD, Event.RESOURCE_SLICE_UPDATE),
        "resourceclaims": feed(queue, claim),
    }


def device_lookups(cluster: Cluster, note: Callable[[], object]) -> dict[str, ObjectFeed]:
    """The same for who only asks for them; ``note`` is called with every change."""

    def noted(write: Callable[[Any, bool], object]) -> ObjectFeed:
        def both(obj: KubernetesObject, is_there: bool) -> None:
            write(obj, is_there)
            note()

        return ObjectFeed(cluster, both)

    claim, device_class, device_slice = _device_writes(cluster.devices)
    return {
        "deviceclasses": noted(device_class),
        "resourceslices": noted(device_slice),
        "resourceclaims": noted(claim),
    }


def _device_writes(devices: Devices) -> tuple[Callable[[Any, bool], object], ...]:
    """What stores or removes claims, classes and slices."""

    def claim(obj: resource_v1_pb2.ResourceClaim, is_there: bool) -> None:
        if is_there:
            devices.set_claim(obj)
        else:
            devices.remove_claim(obj)

    def device_class(obj: resource_v1_pb2.DeviceClass, is_there: bool) -> None:
        if is_there:
            devices.set_class(obj)
        else:
            devices.remove_class(obj)

    def device_slice(obj: resource_v1_pb2.ResourceSlice, is_there: bool) -> None:
        devices.set_slice(obj, is_there=is_there)

    return claim, device_class, device_slice


def lookup_feeds(cluster: Cluster) -> dict[str, ObjectFeed]:
    """The feeds of all kinds that are only looked up, by plural."""

    def namespace(obj: KubernetesObject, is_there: bool) -> None:
        cluster.set_namespace(obj.metadata.name, obj.metadata.labels if is_there else None)

    def budget(obj: policy_v1_pb2.PodDisruptionBudget, is_there: bool) -> None:
        cluster.set_budget(meta.namespaced_name(obj), obj if is_there else None)

    def service(obj: core_v1_pb2.Service, is_there: bool) -> None:
        cluster.set_service(meta.namespaced_name(obj), obj if is_there else None)

    def owner(kind: str) -> Callable[[Any, bool], None]:
        return lambda obj, is_there: cluster.set_owner(
            kind, obj.metadata.namespace, obj.metadata.name, obj if is_there else None
        )

    return {
        "namespaces": ObjectFeed(cluster, namespace),
        "poddisruptionbudgets": ObjectFeed(cluster, budget),
        "services": ObjectFeed(cluster, service),
        "replicationcontrollers": ObjectFeed(cluster, owner("ReplicationController")),
        "replicasets": ObjectFeed(cluster, owner("ReplicaSet")),
        "statefulsets": ObjectFeed(cluster, owner("StatefulSet")),
    }


def _images(node: core_v1_pb2.Node) -> list[core_v1_pb2.ContainerImage]:
    return list(node.status.images)
