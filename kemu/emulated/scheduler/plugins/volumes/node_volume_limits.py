"""NodeVolumeLimits: a node takes only so many volumes of a driver as its CSINode says.

Volumes of pods on the node count, each once, and volumes that are attached to the node without a pod, be it because
they are about to be detached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated.objects.volumes import claims, migration
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import Cycle, FilterPlugin, Handle, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import ERROR, Status, unresolvable, unschedulable
from kemu.emulated.scheduler.plugins.volumes import hints
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_EXCEEDED = unschedulable("node(s) exceed max volume count")

Volumes = dict[str, str]
"""``driver/handle`` → driver."""


class _Failed(Exception):
    """The volumes of a pod cannot be counted."""


class _MissingClaim(_Failed):
    pass


class _State:
    def __init__(self, cycle: Cycle) -> None:
        self.pod = cycle.pod
        self.failures: list[Status] = []
        """What verdicts from 2 on stand for."""

    def number(self, failure: Status) -> int:
        if failure not in self.failures:
            self.failures.append(failure)
        return 2 + self.failures.index(failure)


class NodeVolumeLimits(FilterPlugin, SignPlugin):
    may_fail = True

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self._storage = handle.cluster.storage

    def concerns(self, template: Template) -> bool:
        return bool(template.claims) or any(_is_counted(source) for source in template.volumes)

    def prepare(self, cycle: Cycle) -> _State:
        return _State(cycle)

    def verdict(self, state: _State, node: NodeInfo) -> int:
        csi_node = self._storage.csi_nodes.get(node.name)
        new: Volumes = {}
        try:
            self._count(state.pod, csi_node, new, is_new=True)
        except _MissingClaim as missing:
            return state.number(unresolvable(str(missing)))
        except _Failed as failed:
            return state.number(Status(ERROR, (str(failed),)))
        if not new:
            return 0
        limits = limits_of(csi_node)
        if not limits:
            return 0
        attached: Volumes = {}
        try:
            for other in node.pods.values():
                if other.template.volumes:
                    self._count(other, csi_node, attached, is_new=False)
        except _Failed as failed:
            return state.number(Status(ERROR, (str(failed),)))
        used: dict[str, int] = {}
        for driver in attached.values():
            used[driver] = used.get(driver, 0) + 1
        for volume, driver in self._attached_to(node.name).items():
            if volume not in attached:
                used[driver] = used.get(driver, 0) + 1
        wanted: dict[str, int] = {}
        for volume, driver in new.items():
            if volume not in attached:
                wanted[driver] = wanted.get(driver, 0) + 1
        exceeded = any(driver in limits and used.get(driver, 0) + n > limits[driver] for driver, n in wanted.items())
        return int(exceeded)

    def explain(self, state: _State, verdict: int) -> Status:
        return _EXCEEDED if verdict == 1 else state.failures[verdict - 2]

    def passes_anyway(self, state: _State, node: NodeInfo) -> bool:
        return (
            not node.nominated
            and not limits_of(self._storage.csi_nodes.get(node.name))
            and not self.verdict(state, node)
        )

    # Counting -------------------------------------------------------------------------------------------------------

    def _count(self, pod: PodInfo, csi_node: storage_v1_pb2.CSINode | None, found: Volumes, *, is_new: bool) -> None:
        """``filterAttachableVolumes``. Raises _Failed."""
        for volume in pod.pod.spec.volumes:
            source = volume.volumeSource
            is_ephemeral = source.HasField("ephemeral")
            if not is_ephemeral and not source.HasField("persistentVolumeClaim"):
                self._count_inline(volume.name, source, csi_node, found)
                continue
            name = claims.claim_name(pod.name, volume)
            if not name:
                raise _Failed("PersistentVolumeClaim had no name")
            claim = self._storage.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                if is_new:
                    text = f'looking up PVC {pod.namespace}/{name}: persistentvolumeclaim "{name}" not found'
                    raise _MissingClaim(text)
                continue
            if is_ephemeral and (wrong := claims.not_for_pod(claim, pod.pod)):
                raise _Failed(wrong)
            known = self._driver_and_handle(claim, csi_node)
            if known is not None:
                driver, handle = known
                if driver and handle:
                    found[f"{driver}/{handle}"] = driver

    def _count_inline(
        self, name: str, source: core_v1_pb2.VolumeSource, csi_node: storage_v1_pb2.CSINode | None, found: Volumes
    ) -> None:
        """``checkAttachableInlineVolume``."""
        if csi_node is None or not migration.is_inline(source):
            return
        try:
            known = migration.inline_handle(source)
        except migration.MigrationError as error:
            raise _Failed(f"converting volume({name}) from inline to csi: {error}") from None
        if known is not None:
            driver, handle = known
            found[f"{driver}/{handle}"] = driver

    def _driver_and_handle(
        self, claim: core_v1_pb2.PersistentVolumeClaim, csi_node: storage_v1_pb2.CSINode | None
    ) -> tuple[str, str] | None:
        """``getCSIDriverInfo``."""
        volume = self._storage.volumes.get(claim.spec.volumeName)
        if volume is None:
            return self._of_class(claim, csi_node)
        source = volume.spec.persistentVolumeSource
        if source.HasField("csi"):
            return source.csi.driver, source.csi.volumeHandle
        if csi_node is None:
            return None
        try:
            return migration.handle_of(source, volume.metadata.labels)
        except migration.MigrationError:
            return None

    def _of_class(
        self, claim: core_v1_pb2.PersistentVolumeClaim, csi_node: storage_v1_pb2.CSINode | None
    ) -> tuple[str, str] | None:
        """``getCSIDriverInfoFromSC``: a volume that will be created counts for the driver of its class."""
        storage_class = self._storage.classes.get(claims.class_of_claim(claim))
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        driver = migration.driver_of_provisioner(provisioner)
        if driver is None:
            driver = provisioner
        elif csi_node is None or not driver:
            return None
        return driver, f"-{claim.metadata.namespace}/{claim.metadata.name}"

    def _attached_to(self, node: str) -> Volumes:
        """``getNodeVolumeAttachmentInfo``."""
        found: Volumes = {}
        for attachment in self._storage.attachments.get(node, {}).values():
            driver, source = attachment.spec.attacher, attachment.spec.source
            volume = self._storage.volumes.get(source.persistentVolumeName)
            if driver and volume is not None and volume.spec.persistentVolumeSource.HasField("csi"):
                found[f"{driver}/{volume.spec.persistentVolumeSource.csi.volumeHandle}"] = driver
        return found

    # Events ---------------------------------------------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.volumes(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.CSI_NODE_ADD, None),
            (Event.CSI_NODE_UPDATE, _raises_a_limit),
            (Event.ASSIGNED_POD_DELETE, _frees_a_volume),
            (Event.CLAIM_ADD, hints.uses_claim),
            (Event.ATTACHMENT_DELETE, _may_free_a_place),
        ]


def limits_of(csi_node: storage_v1_pb2.CSINode | None) -> dict[str, int]:
    """By driver; without an entry there is no limit (``getVolumeLimits``)."""
    if csi_node is None:
        return {}
    return {
        one.name: one.allocatable.count
        for one in csi_node.spec.drivers
        if one.HasField("allocatable") and one.allocatable.HasField("count")
    }


def _is_counted(source: core_v1_pb2.VolumeSource) -> bool:
    return source.HasField("ephemeral") or migration.is_inline(source)


def _raises_a_limit(pod: PodInfo, old: storage_v1_pb2.CSINode, new: storage_v1_pb2.CSINode) -> bool:
    """``isSchedulableAfterCSINodeUpdated``."""
    before = limits_of(old)
    return any(count > before.get(driver, 0) for driver, count in limits_of(new).items())


def _frees_a_volume(pod: PodInfo, old: core_v1_pb2.Pod, new: KubernetesObject | None) -> bool:
    """``isSchedulableAfterPodDeleted``."""
    if not old.spec.nodeName and not old.status.nominatedNodeName:
        return False
    sources = [volume.volumeSource for volume in old.spec.volumes]
    return any(one.HasField("persistentVolumeClaim") or _is_counted(one) for one in sources)


def _may_free_a_place(pod: PodInfo, old: storage_v1_pb2.VolumeAttachment, new: KubernetesObject | None) -> bool:
    """``isSchedulableAfterVolumeAttachmentDeleted``."""
    for volume in pod.pod.spec.volumes:
        source = volume.volumeSource
        if source.HasField("persistentVolumeClaim"):
            return True
        if migration.is_inline(source):
            try:
                known = migration.inline_handle(source)
            except migration.MigrationError:
                return True
            if known is not None and known[0] == old.spec.attacher:
                return True
    return False
