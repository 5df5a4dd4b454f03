"""VolumeZone: zones and regions in the labels of bound volumes must be those of the node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kemu.emulated.objects.volumes import claims, migration
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, FilterPlugin, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.emulated.scheduler.plugins.volumes import hints
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

_CONFLICT = unresolvable("node(s) had no available volume zone")
_LABELS = (migration.BETA_ZONE, migration.BETA_REGION, migration.ZONE, migration.REGION)
_TODAY = {migration.BETA_REGION: migration.REGION, migration.BETA_ZONE: migration.ZONE}


class Topology(NamedTuple):
    """A label of a volume."""

    key: str
    values: tuple[str, ...]


class VolumeZone(FilterPlugin, SignPlugin):
    def concerns(self, template: Template) -> bool:
        return bool(template.claims)

    def prepare(self, cycle: Cycle) -> Any:
        """``getPVbyPod``."""
        storage = self.handle.cluster.storage
        found: list[Topology] = []
        for name in cycle.template.claims:
            if not name:
                return unresolvable("PersistentVolumeClaim had no name")
            claim = storage.claims.get(f"{cycle.namespace}/{name}")
            if claim is None:
                return unresolvable(f'persistentvolumeclaim "{name}" not found')
            if not claim.spec.volumeName:
                class_name = claims.class_of_claim(claim)
                if not class_name:
                    return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
                storage_class = storage.classes.get(class_name)
                if storage_class is None:
                    return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
                if not storage_class.volumeBindingMode:
                    return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
                if storage_class.volumeBindingMode == claims.WAIT_FOR_FIRST_CONSUMER:
                    continue
                return unresolvable("PersistentVolume had no name")
            volume = storage.volumes.get(claim.spec.volumeName)
            if volume is None:
                return unresolvable(f'persistentvolume "{claim.spec.volumeName}" not found')
            found += topologies(volume)
        return tuple(found) or SKIP

    def verdict(self, state: tuple[Topology, ...], node: NodeInfo) -> int:
        labels = node.labels
        if not any(key in labels for key in _LABELS):
            return 0
        for wanted in state:
            value = labels.get(wanted.key)
            if value is None:
                value = labels.get(_TODAY.get(wanted.key, wanted.key))
            if value is None or value not in wanted.values:
                return 1
        return 0

    def explain(self, state: tuple[Topology, ...], verdict: int) -> Status:
        return _CONFLICT

    def passes_anyway(self, state: tuple[Topology, ...], node: NodeInfo) -> bool:
        return not self.verdict(state, node)

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.volumes(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.STORAGE_CLASS_ADD, _waits_for_consumers),
            (Event.NODE_ADD, None),
            (Event.NODE_LABELS, None),
            (Event.CLAIM_ADD, hints.names_claim),
            (Event.CLAIM_UPDATE, hints.names_claim),
            (Event.VOLUME_ADD, None),
            (Event.VOLUME_UPDATE, _moves),
        ]


def topologies(volume: core_v1_pb2.PersistentVolume) -> list[Topology]:
    """``getPVTopologies``. A label with an empty zone in it says nothing (``LabelZonesToSet``)."""
    found = []
    labels = volume.metadata.labels
    for key in _LABELS:
        if key in labels:
            values = tuple(one.strip() for one in labels[key].split(migration.ZONES_APART))
            if all(values):
                found.append(Topology(key, values))
    return found


def _waits_for_consumers(pod: PodInfo, old: storage_v1_pb2.StorageClass, new: storage_v1_pb2.StorageClass) -> bool:
    """``isSchedulableAfterStorageClassAdded``."""
    return bool(new.volumeBindingMode == claims.WAIT_FOR_FIRST_CONSUMER)


def _moves(pod: PodInfo, old: core_v1_pb2.PersistentVolume, new: core_v1_pb2.PersistentVolume) -> bool:
    """``isSchedulableAfterPersistentVolumeChange``."""
    return topologies(old) != topologies(new)
