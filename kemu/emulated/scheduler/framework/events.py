"""Cluster events that may make a waiting pod schedulable.

A change of an object is broken down into :class:`Event` kinds. Plugins register those that could help a pod that they
rejected (``Plugin.events``), so that an event requeues no pod that it cannot help. The hints of the plugins in the tree
follow that table of kube-scheduler v1.36 (``EventsToRegister`` of each plugin).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cache.updates import PodUpdate
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


class Event(enum.Enum):
    """A kind of change. The value is the name in the run log."""

    __hash__ = object.__hash__  # that of Enum is written in Python

    ASSIGNED_POD_ADD = "AssignedPod/Add"
    ASSIGNED_POD_DELETE = "AssignedPod/Delete"
    ASSIGNED_POD_LABELS = "AssignedPod/UpdateLabel"
    ASSIGNED_POD_SCALE_DOWN = "AssignedPod/UpdateScaleDown"
    ASSIGNED_POD_UPDATE = "AssignedPod/Update"
    """Any other update, also of the status. No plugin in the tree wants it, but one that registers every event does."""
    NODE_ADD = "Node/Add"
    NODE_DELETE = "Node/Delete"
    NODE_ALLOCATABLE = "Node/UpdateAllocatable"
    NODE_LABELS = "Node/UpdateLabel"
    NODE_TAINTS = "Node/UpdateTaint"
    """Taints changed, or ``unschedulable`` became false."""
    NODE_CONDITIONS = "Node/UpdateCondition"
    """The status of a condition changed."""
    NODE_ANNOTATIONS = "Node/UpdateAnnotation"
    NODE_FEATURES = "Node/UpdateNodeDeclaredFeature"
    POD_LABELS = "Pod/UpdateLabel"
    """Pod labels of a waiting pod, as those below. When both are in flight, another pod hears of it too (see
    :data:`Hint`)."""
    POD_SCALE_DOWN = "Pod/UpdateScaleDown"
    POD_TOLERATIONS = "Pod/UpdateToleration"
    POD_GATES = "Pod/UpdateSchedulingGatesEliminated"
    POD_GENERATED_CLAIM = "Pod/UpdatePodGeneratedResourceClaim"
    """The status names a ResourceClaim that was made of a template."""
    POD_UPDATE = "Pod/Update"
    """As ``ASSIGNED_POD_UPDATE``: for example, the condition that reports a failed attempt was written."""
    TIMEOUT = "UnschedulableTimeout"
    """Pods that waited for five minutes are requeued. No plugin is asked about this event and the next one."""
    ACTIVATE = "Activate"
    """One pod is to be retried; new is its UID."""
    CLAIM_ADD = "PersistentVolumeClaim/Add"
    CLAIM_UPDATE = "PersistentVolumeClaim/Update"
    VOLUME_ADD = "PersistentVolume/Add"
    VOLUME_UPDATE = "PersistentVolume/Update"
    STORAGE_CLASS_ADD = "StorageClass/Add"
    STORAGE_CLASS_UPDATE = "StorageClass/Update"
    CSI_NODE_ADD = "CSINode/Add"
    CSI_NODE_UPDATE = "CSINode/Update"
    CSI_DRIVER_UPDATE = "CSIDriver/Update"
    CAPACITY_ADD = "CSIStorageCapacity/Add"
    CAPACITY_UPDATE = "CSIStorageCapacity/Update"
    ATTACHMENT_DELETE = "VolumeAttachment/Delete"
    RESOURCE_CLAIM_ADD = "ResourceClaim/Add"
    RESOURCE_CLAIM_UPDATE = "ResourceClaim/Update"
    RESOURCE_SLICE_ADD = "ResourceSlice/Add"
    RESOURCE_SLICE_UPDATE = "ResourceSlice/Update"
    DEVICE_CLASS_ADD = "DeviceClass/Add"
    DEVICE_CLASS_UPDATE = "DeviceClass/Update"
    POD_ADD = "Pod/Add"
    """A new pod waits. Only schedulers with groups take it for an event (GangScheduling)."""
    POD_GROUP_ADD = "PodGroup/Add"
    AVOIDANCE_OVER = "AvoidEvictedNode/Over"
    """The pods of a workload may use a node again that they had to avoid (``policy.avoidEvictedNode``). Old is the pod
    that was evicted there."""


FOR_ALL_PLUGINS = frozenset((Event.TIMEOUT, Event.ACTIVATE))

Hint = Callable[[PodInfo, Any, Any], bool]
"""(waiting pod, old object, new object) → whether the event could make the pod schedulable.

The objects are ``core.v1`` messages; old is None for an addition, new for a removal. For the events of a waiting pod
both are versions of it. It may be another pod than the one that the hint is asked for, when both are in flight."""


@dataclass(frozen=True, slots=True)
class KeyedHint:
    """A hint for pods that have the key of the event alone, so that a queue looks them up by it."""

    hint: Hint
    key: Callable[[Any, Any], str | None]
    """Of an event, by its old and new object; None: any pod may be helped."""
    keys: Callable[[core_v1_pb2.Pod], Iterable[str]]

    def __call__(self, pod: PodInfo, old: KubernetesObject | None, new: KubernetesObject | None) -> bool:
        key = self.key(old, new)
        return (key is None or key in self.keys(pod.pod)) and self.hint(pod, old, new)


def of_the_pod_itself(pod: PodInfo, old: core_v1_pb2.Pod, new: KubernetesObject) -> bool:
    """A hint: updates of other waiting pods do not help."""
    return bool(new.metadata.uid == pod.uid)


def node_events(old: core_v1_pb2.Node, new: core_v1_pb2.Node) -> list[Event]:
    """The events of an update of a node, in the order in which kube-scheduler handles them."""
    events = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        events.append(Event.NODE_TAINTS)
    if requests.resource_list(old.status.allocatable) != requests.resource_list(new.status.allocatable):
        events.append(Event.NODE_ALLOCATABLE)
    if not meta.have_same_entries(old.metadata.labels, new.metadata.labels):
        events.append(Event.NODE_LABELS)
    if taints_of(old) != taints_of(new):
        events.append(Event.NODE_TAINTS)
    if _conditions_of(old) != _conditions_of(new):
        events.append(Event.NODE_CONDITIONS)
    if not meta.have_same_entries(old.metadata.annotations, new.metadata.annotations):
        events.append(Event.NODE_ANNOTATIONS)
    if old.status.declaredFeatures != new.status.declaredFeatures:
        events.append(Event.NODE_FEATURES)
    return events


def assigned(pod: core_v1_pb2.Pod, node: str) -> core_v1_pb2.Pod:
    """A copy of a pod with a node name: the object of the event when an assumed pod is forgotten."""
    there = type(pod)()
    there.CopyFrom(pod)
    there.spec.nodeName = node
    return there


def _conditions_of(node: core_v1_pb2.Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def taints_of(node: core_v1_pb2.Node) -> list[tuple[str, str, str]]:
    return [(taint.key, taint.value, taint.effect) for taint in node.spec.taints]


def assigned_pod_events(update: PodUpdate) -> list[Event]:
    """The events of an update of a pod on a node (``PodSchedulingPropertiesChange``)."""
    events = []
    if update.relabelled:
        events.append(Event.ASSIGNED_POD_LABELS)
    if (update.spec_changed or update.was_resized or update.is_resized) and scaled_down(
        requests.pod_requests_on_node(update.old), requests.pod_requests_on_node(update.new)
    ):
        events.append(Event.ASSIGNED_POD_SCALE_DOWN)
    return events or [Event.ASSIGNED_POD_UPDATE]


def pending_pod_events(update: PodUpdate) -> list[Event]:
    """The events of an update of a waiting pod, for that pod."""
    events = []
    if update.relabelled:
        events.append(Event.POD_LABELS)
    if update.spec_changed:
        old, new = update.old, update.new
        if scaled_down(requests.pod_requests(old), requests.pod_requests(new)):
            events.append(Event.POD_SCALE_DOWN)
        if old.spec.schedulingGates and not new.spec.schedulingGates:
            events.append(Event.POD_GATES)
        if len(old.spec.tolerations) != len(new.spec.tolerations):
            events.append(Event.POD_TOLERATIONS)
    if update.new.spec.resourceClaims and (
        list(update.old.status.resourceClaimStatuses) != list(update.new.status.resourceClaimStatuses)
    ):
        events.append(Event.POD_GENERATED_CLAIM)
    return events or [Event.POD_UPDATE]


def scaled_down(old: dict[str, int], new: dict[str, int], among: Iterable[str] | None = None) -> bool:
    """Whether a request got lower, of any resource or of those in ``among``."""
    return any(new.get(name, 0) < old.get(name, 0) for name in (old if among is None else among))
