"""The actor ``controller/csi-drivers``: all CSI drivers of the cluster, with the sidecars that run beside them.

It creates and deletes volumes as ``external-provisioner`` does, attaches and detaches them as ``external-attacher``
does, expands and modifies them as ``external-resizer`` does (:mod:`.resizes`), and publishes how much room is left.
What the drivers themselves do is time that passes (:mod:`kemu.emulated.client.volume_drivers`): drawn from a
distribution for each call. Creating a volume may fail, at random or because there is no room left. Then, if the claim
waits for its consumer, the driver takes the selected node off the claim, which sends the pod back to the scheduler;
otherwise it tries again later. Further config: ``drivers`` (settings by name) and ``events``
(:data:`kemu.emulated.client.recorders.LEVELS`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, retries, volume_drivers, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.volumes import resizes
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.defaulting import data_sources
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import (
    ProvisioningFailed,
    VolumeAttached,
    VolumeDeleted,
    VolumeDetached,
    VolumeProvisioned,
)

WORKERS = 100
"""Calls that the drivers work at side by side (``--worker-threads`` of external-provisioner)."""

_FIRST_RETRY_S, _LONGEST_RETRY_S = 1.0, 300.0
"""``--retry-interval-start`` and ``--retry-interval-max``."""
_NAMESPACE = "kube-system"
"""Namespace of CSIStorageCapacity objects."""
ATTACHER_PROTECTION = "external-attacher/"
"""The beginning of the finalizer by which an attachment waits for its volume to be detached."""

RESOURCE_EXHAUSTED = 8
"""``attachError.errorCode``: gRPC's code."""

Segment = tuple[tuple[str, str], ...]
"""A part of a driver's topology: labels and their values."""


class CsiDrivers(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.volumes.csi_drivers:CsiDrivers``. Raises ValueError for wrong settings."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._drivers = volume_drivers.Drivers(config.get("drivers") or {})
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "external-provisioner", "0", level)

        def queue() -> workqueues.WorkQueue[str]:
            return workqueues.WorkQueue(env, _FIRST_RETRY_S, _LONGEST_RETRY_S)

        self._claim_queue, self._volume_queue, self._attachment_queue = queue(), queue(), queue()
        self._claims = self._informer("persistentvolumeclaims", self._claim_queue)
        self._volumes = self._informer("persistentvolumes", self._volume_queue)
        self._attachments = self._informer("volumeattachments", self._attachment_queue)
        self._classes: informers.Informer[storage_v1_pb2.StorageClass] = informers.Informer(
            self.client, "storageclasses", handler=_Calls(self._look_at_capacity)
        )
        self._nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(
            self.client, "nodes", handler=_Calls(self._look_at_capacity)
        )
        self._capacity_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        resizer = recorders.Recorder(env, self.client, "external-resizer", "0", level)
        self._resizer = resizes.Resizer(
            env, self.client, resizer, self._take, self._room_beside, self._claim_queue.add_after
        )
        self._making: dict[str, tuple[str, Segment, int]] = {}
        """Volumes that are being created: driver, segment and size, by claim UID."""
        self._installed: dict[str, None] = {}
        """Drivers whose CSIDriver has been created."""
        self._published: dict[str, Any] = {}
        """CSIStorageCapacity objects by name."""

    def _informer(self, resource: str, queue: workqueues.WorkQueue[str]) -> informers.Informer[Any]:
        return informers.Informer(self.client, resource, handler=_Calls(lambda obj: queue.add(controllers.key_of(obj))))

    async def run(self) -> None:
        await self.begin(self._nodes, self._classes, self._volumes, self._claims, self._attachments)
        self.env.spawn(self.work(self._claim_queue, self._provision, WORKERS), "claims")
        self.env.spawn(self.work(self._volume_queue, self._delete_volume, WORKERS), "volumes")
        self.env.spawn(self.work(self._capacity_queue, self._publish), "capacities")
        await self.work(self._attachment_queue, self._attach_or_detach, WORKERS)

    async def _take(self, driver: volume_drivers.Driver, what: str) -> None:
        """Let the time pass that a call of the driver takes."""
        await self.clock.sleep(distributions.parse(getattr(driver, what)).draw(self.env.random))

    # Creating --------------------------------------------------------------------------------------------------------

    async def _provision(self, key: str) -> None:
        """``syncClaim`` and ``provisionClaimOperation`` of sig-storage-lib-external-provisioner; a claim that has a
        volume may want more of it."""
        claim = self._claims.store.get(key)
        if claim is None or claim.metadata.HasField("deletionTimestamp"):
            return
        if claim.spec.volumeName:
            volume = self._volumes.store.get(claim.spec.volumeName)
            if volume is not None and claim.status.phase == claims.BOUND:
                await self._resizer.look_at(claim, volume, self._drivers)
            return
        annotations = claim.metadata.annotations
        name = annotations.get(claims.STORAGE_PROVISIONER, "")
        storage_class = self._classes.store.get(claims.class_of_claim(claim))
        if not volume_drivers.is_simulated(name) or storage_class is None or storage_class.provisioner != name:
            return
        node = annotations.get(claims.SELECTED_NODE, "")
        waits = storage_class.volumeBindingMode == claims.WAIT_FOR_FIRST_CONSUMER
        if waits and not node:
            return
        volume_name = f"pvc-{claim.metadata.uid}"
        if volume_name in self._volumes.store:
            return
        if self._is_left_to_populator(claim):
            return
        await self._create(claim, storage_class, self._drivers.of(name), node if waits else "", volume_name)

    def _is_left_to_populator(self, claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
        """Drivers fill volumes from claims and snapshots; what else a claim names as its source, others do."""
        source = data_sources.of(claim.spec)
        if source is None or source.kind in (data_sources.CLAIM, data_sources.SNAPSHOT):
            return False
        text = "Assuming an external populator will provision the volume"
        self._recorder.event(claim, recorders.NORMAL, "Provisioning", "Provisioning", text, routine=True)
        return True

    def _source_failure(self, claim: core_v1_pb2.PersistentVolumeClaim, driver: volume_drivers.Driver) -> str:
        """Why the driver cannot fill the volume from what the claim names (``getPVCSource``); "" if it can."""
        source = data_sources.of(claim.spec)
        if source is None:
            return ""
        if source.kind == data_sources.SNAPSHOT:
            return f"error getting handle for DataSource Type VolumeSnapshot by Name {source.name}: not found"
        begin = f"error getting handle for DataSource Type PersistentVolumeClaim by Name {source.name}: "
        namespace = claim.metadata.namespace
        origin = self._claims.store.get(f"{namespace}/{source.name}")
        if origin is None:
            return f'{begin}error getting PVC {source.name} (namespace "{namespace}") from api server: not found'
        if origin.status.phase != claims.BOUND:
            return f"{begin}the PVC DataSource {source.name} must have a status of Bound. Got {origin.status.phase}"
        if origin.metadata.HasField("deletionTimestamp"):
            return f"{begin}the PVC DataSource {source.name} is currently being deleted"
        volume = self._volumes.store.get(origin.spec.volumeName)
        if volume is None or _segment_of(driver, volume) is None:
            return f"{begin}the source PVC {source.name} does not belong to the driver {driver.name}"
        if claims.requested(claim) < claims.capacity(volume):
            return f"{begin}new PVC request must be greater than or equal in size to the specified PVC data source"
        if (origin.spec.volumeMode or claims.FILESYSTEM) != (claim.spec.volumeMode or claims.FILESYSTEM):
            return f"{begin}the source PVC and destination PVCs must have the same volume mode for cloning"
        return ""

    async def _create(
        self,
        claim: core_v1_pb2.PersistentVolumeClaim,
        storage_class: storage_v1_pb2.StorageClass,
        driver: volume_drivers.Driver,
        node: str,
        name: str,
    ) -> None:
        uid, started_ns, size = claim.metadata.uid, self.clock.now_ns(), claims.requested(claim).value
        key = controllers.key_of(claim)
        text = f'External provisioner is provisioning volume for claim "{key}"'
        self._recorder.event(claim, recorders.NORMAL, "Provisioning", "Provisioning", text, routine=True)
        segment = self._segment_for(driver, storage_class, node)
        self._making[uid] = (driver.name, segment or (), size)
        try:
            await self._take(driver, "provision")
            failure = (
                self._source_failure(claim, driver)
                or self._failure(driver, segment, uid)
                or await self._attributes_failure(claim, driver)
            )
            if failure:
                self.env.log(ProvisioningFailed(claim=key, uid=uid, driver=driver.name, start=started_ns, why=failure))
                text = f'failed to provision volume with StorageClass "{storage_class.metadata.name}": {failure}'
                self._recorder.event(claim, recorders.WARNING, "ProvisioningFailed", "ProvisioningFailed", text)
                if node:
                    await self._send_back(claim)
                    return
                raise errors.ServiceUnavailable(failure)
            volume = _volume(claim, storage_class, driver, segment or (), name)
            with contextlib.suppress(errors.AlreadyExists):
                await retries.patiently(self.env, lambda: self.client.create(volume))
            self.env.log(VolumeProvisioned(claim=key, uid=uid, driver=driver.name, start=started_ns, volume=name))
            text = f"Successfully provisioned volume {name}"
            self._recorder.event(claim, recorders.NORMAL, "ProvisioningSucceeded", "Provisioning", text, routine=True)
        finally:
            del self._making[uid]
            self._look_at_capacity(None)

    def _failure(self, driver: volume_drivers.Driver, segment: Segment | None, uid: str) -> str:
        """Why the driver does not create the volume; "" if it does."""
        if segment is None:
            return "error generating accessibility requirements: no available topology found"
        if driver.failures and self.env.random.random() < driver.failures:
            return "rpc error: code = ResourceExhausted desc = the storage system refused"
        left = self._room_in(driver, segment, uid)
        if left is not None and left < self._making[uid][2]:
            return "rpc error: code = ResourceExhausted desc = no capacity left"
        return ""

    async def _attributes_failure(self, claim: core_v1_pb2.PersistentVolumeClaim, driver: volume_drivers.Driver) -> str:
        """Why the volume cannot have the class of attributes that the claim wants; "" if it can."""
        name = claim.spec.volumeAttributesClassName
        if not name:
            return ""
        try:
            found: Any = await self.client.get("volumeattributesclasses", name)
        except errors.NotFound as error:
            return error.message
        if found.driverName != driver.name:
            return f'VAC "{name}" is for driver "{found.driverName}", not "{driver.name}"'
        return ""

    async def _send_back(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        """``rescheduleProvisioning``: take the selected node off, so that the scheduler decides anew."""
        changed = meta.copied(claim)
        del changed.metadata.annotations[claims.SELECTED_NODE]
        with contextlib.suppress(errors.Conflict, errors.NotFound):
            await retries.patiently(self.env, lambda: self.client.update(changed))

    # Topology and capacity -------------------------------------------------------------------------------------------

    def _segment_for(
        self, driver: volume_drivers.Driver, storage_class: storage_v1_pb2.StorageClass, node: str
    ) -> Segment | None:
        """Where the volume is made: beside the selected node, or where the class allows it and most room is left."""
        if node:
            known = self._nodes.store.get(node)
            return None if known is None else _segment(driver, known)
        allowed = [one for one in self._segments(driver) if _allows(storage_class, one)]
        if not allowed:
            return None
        if driver.capacity_bytes is None:
            # As many volumes everywhere: claims that wait for no consumer are spread over the zones.
            counts = dict.fromkeys(allowed, 0)
            for volume in self._volumes.store.values():
                where = _segment_of(driver, volume)
                if where in counts:
                    counts[where] += 1
            return min(allowed, key=lambda one: counts[one])
        return max(allowed, key=lambda one: self._room_in(driver, one) or 0)

    def _segments(self, driver: volume_drivers.Driver) -> list[Segment]:
        return list(dict.fromkeys(_segment(driver, node) for node in self._nodes.store.values()))

    def _room_in(self, driver: volume_drivers.Driver, segment: Segment, of: str = "") -> int | None:
        """Bytes that are left there; None: without end. ``of``: for the volume of this claim (UID); those that were
        asked for later do not count."""
        if driver.capacity_bytes is None:
            return None
        left = driver.capacity_bytes
        for volume in self._volumes.store.values():
            if _segment_of(driver, volume) == segment:
                left -= claims.capacity(volume).value
        for uid, (name, where, size) in self._making.items():
            if uid == of:
                break
            if (name, where) == (driver.name, segment):
                left -= size
        return left

    def _room_beside(self, driver: volume_drivers.Driver, volume: core_v1_pb2.PersistentVolume) -> int | None:
        return self._room_in(driver, _segment_of(driver, volume) or ())

    def _look_at_capacity(self, obj: KubernetesObject | None) -> None:
        self._capacity_queue.add("")

    async def _publish(self, key: str) -> None:
        """See that the drivers of all classes are there; keep a CSIStorageCapacity for each class and segment of those
        whose capacity has an end."""
        for name in dict.fromkeys(one.provisioner for one in self._classes.store.values()):
            if volume_drivers.is_simulated(name):
                await self._install(self._drivers.of(name))
        wanted: dict[str, Any] = {}
        for storage_class in self._classes.store.values():
            driver = self._drivers.of(storage_class.provisioner)
            if driver.capacity_bytes is None:
                continue
            for segment in self._segments(driver):
                name = "-".join(["csisc", storage_class.metadata.name, *(value for _label, value in segment)])
                capacity = storage_v1_pb2.CSIStorageCapacity(storageClassName=storage_class.metadata.name)
                capacity.metadata.namespace, capacity.metadata.name = _NAMESPACE, name
                capacity.nodeTopology.SetInParent()
                capacity.nodeTopology.matchLabels.update(segment)
                left = max(0, self._room_in(driver, segment) or 0)
                capacity.capacity.string = quantities.format_value(left, quantities.Format.BINARY_SI)
                wanted[name] = capacity
        for capacity in wanted.values():
            await self._publish_one(capacity)

    async def _install(self, driver: volume_drivers.Driver) -> None:
        """Create the CSIDriver of a driver; one that is there already stays as it is."""
        if driver.name in self._installed:
            return
        self._installed[driver.name] = None
        csi_driver = storage_v1_pb2.CSIDriver()
        csi_driver.metadata.name = driver.name
        csi_driver.spec.attachRequired = True
        csi_driver.spec.storageCapacity = driver.capacity_bytes is not None
        if driver.allocatable_update_period is not None:
            csi_driver.spec.nodeAllocatableUpdatePeriodSeconds = int(driver.allocatable_update_period)
        with contextlib.suppress(errors.AlreadyExists):
            await retries.patiently(self.env, lambda: self.client.create(csi_driver))

    async def _publish_one(self, capacity: storage_v1_pb2.CSIStorageCapacity) -> None:
        name, client = capacity.metadata.name, self.client
        known = self._published.get(name)
        if known is None:
            try:
                known = await retries.patiently(self.env, lambda: client.create(capacity))
            except errors.AlreadyExists:
                known = await client.get("csistoragecapacities", name, _NAMESPACE)
        elif known.capacity.string != capacity.capacity.string:
            capacity.metadata.resourceVersion = known.metadata.resourceVersion
            known = await retries.patiently(self.env, lambda: client.update(capacity))
        self._published[name] = known

    # Deleting --------------------------------------------------------------------------------------------------------

    async def _delete_volume(self, name: str) -> None:
        """``syncVolume`` and ``deleteVolumeOperation`` of sig-storage-lib-external-provisioner."""
        self._look_at_capacity(None)
        volume = self._volumes.store.get(name)
        if volume is None or volume.status.phase != claims.RELEASED:
            return
        driver_name = volume.metadata.annotations.get(claims.PROVISIONED_BY, "")
        if volume.spec.persistentVolumeReclaimPolicy != claims.DELETE or not volume_drivers.is_simulated(driver_name):
            return
        attached = [one for one in self._attachments.store.values() if one.spec.source.persistentVolumeName == name]
        if attached:
            node = attached[0].spec.nodeName
            text = f"persistentvolume {name} is still attached to node {node}"
            self._recorder.event(volume, recorders.WARNING, "VolumeFailedDelete", "VolumeFailedDelete", text)
            raise errors.ServiceUnavailable(text)
        await self._take(self._drivers.of(driver_name), "delete")
        try:
            await retries.patiently(self.env, lambda: self.client.delete("persistentvolumes", name))
            await self._unprotect(name)
        except errors.NotFound:
            return
        self.env.log(VolumeDeleted(volume=name, driver=driver_name))

    async def _unprotect(self, name: str) -> None:
        """Raises Conflict, and the volume is looked at again."""
        client = self.client
        volume = await retries.patiently(self.env, lambda: client.get("persistentvolumes", name))
        if claims.PROVISIONER_PROTECTION in volume.metadata.finalizers:
            volume.metadata.finalizers.remove(claims.PROVISIONER_PROTECTION)
            await retries.patiently(self.env, lambda: client.update(volume))

    # Attaching -------------------------------------------------------------------------------------------------------

    async def _attach_or_detach(self, name: str) -> None:
        """``syncAttach`` and ``syncDetach`` of external-attacher."""
        attachment = self._attachments.store.get(name)
        if attachment is None or not volume_drivers.is_simulated(attachment.spec.attacher):
            return
        driver = self._drivers.of(attachment.spec.attacher)
        if attachment.metadata.HasField("deletionTimestamp"):
            await self._detach(attachment, driver)
        elif not attachment.status.attached:
            await self._attach(attachment, driver)

    async def _attach(self, attachment: storage_v1_pb2.VolumeAttachment, driver: volume_drivers.Driver) -> None:
        protection = ATTACHER_PROTECTION + driver.name.replace(".", "-")
        started_ns = self.clock.now_ns()
        if protection not in attachment.metadata.finalizers:
            changed = meta.copied(attachment)
            changed.metadata.finalizers.append(protection)
            attachment = await retries.patiently(self.env, lambda: self.client.update(changed))
        await self._take(driver, "attach")
        status: dict[str, Any] = {"attached": True}
        if attachment.status.HasField("attachError"):
            status["attachError"] = None
        why = self._exhaustion(attachment, driver)
        if why:
            error = {
                "time": times.format_time(self.unix_ns() // SECOND_NS),
                "message": why,
                "errorCode": RESOURCE_EXHAUSTED,
            }
            status = {"attached": False, "attachError": error}
        await retries.patiently(
            self.env,
            lambda: self.client.patch("volumeattachments", attachment.metadata.name, "", {"status": status}, "status"),
        )
        if why:
            raise errors.ServiceUnavailable(why)
        self._log_attachment(VolumeAttached, attachment, started_ns)

    def _exhaustion(self, attachment: storage_v1_pb2.VolumeAttachment, driver: volume_drivers.Driver) -> str:
        """Why the node takes no more volumes; "" if it does."""
        node, most = attachment.spec.nodeName, driver.attaches_per_node
        if most is None:
            return ""
        there = sum(
            one.status.attached and (one.spec.attacher, one.spec.nodeName) == (driver.name, node)
            for one in self._attachments.store.values()
        )
        return "" if there < most else f"rpc error: code = ResourceExhausted desc = {node} has {most} volumes attached"

    async def _detach(self, attachment: storage_v1_pb2.VolumeAttachment, driver: volume_drivers.Driver) -> None:
        protection = ATTACHER_PROTECTION + driver.name.replace(".", "-")
        if protection not in attachment.metadata.finalizers:
            return
        started_ns = self.clock.now_ns()
        await self._take(driver, "detach")
        name = attachment.metadata.name
        current = await retries.patiently(self.env, lambda: self.client.get("volumeattachments", name))
        if protection in current.metadata.finalizers:
            current.metadata.finalizers.remove(protection)
            await retries.patiently(self.env, lambda: self.client.update(current))
        self._log_attachment(VolumeDetached, attachment, started_ns)

    # The run log -----------------------------------------------------------------------------------------------------

    def _log_attachment(
        self,
        kind: type[VolumeAttached] | type[VolumeDetached],
        attachment: storage_v1_pb2.VolumeAttachment,
        started_ns: int,
    ) -> None:
        spec = attachment.spec
        name = spec.source.persistentVolumeName
        volume = self._volumes.store.get(name)
        modes = [] if volume is None else list(volume.spec.accessModes)
        self.env.log(kind(volume=name, node=spec.nodeName, driver=spec.attacher, modes=modes, start=started_ns))


class _Calls:
    """A handler that is told which object came, changed or went."""

    def __init__(self, changed: Callable[[KubernetesObject], object]) -> None:
        self._changed = changed

    def on_add(self, obj: KubernetesObject) -> None:
        self._changed(obj)

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._changed(new)

    def on_delete(self, old: KubernetesObject) -> None:
        self._changed(old)


def _volume(
    claim: core_v1_pb2.PersistentVolumeClaim,
    storage_class: storage_v1_pb2.StorageClass,
    driver: volume_drivers.Driver,
    segment: Segment,
    name: str,
) -> core_v1_pb2.PersistentVolume:
    """The PersistentVolume for what the driver has created."""
    volume = core_v1_pb2.PersistentVolume()
    metadata, spec = volume.metadata, volume.spec
    metadata.name = name
    metadata.annotations[claims.PROVISIONED_BY] = driver.name
    if storage_class.reclaimPolicy == claims.DELETE:
        metadata.finalizers.append(claims.PROVISIONER_PROTECTION)
    spec.capacity["storage"].string = claim.spec.resources.requests["storage"].string
    spec.accessModes.extend(claim.spec.accessModes)
    spec.persistentVolumeReclaimPolicy = storage_class.reclaimPolicy
    spec.storageClassName = claims.class_of_claim(claim)
    spec.volumeMode = claim.spec.volumeMode or claims.FILESYSTEM
    if claim.spec.volumeAttributesClassName:
        spec.volumeAttributesClassName = claim.spec.volumeAttributesClassName
    claims.refer(spec.claimRef, claim)
    source = spec.persistentVolumeSource.csi
    source.driver, source.volumeHandle = driver.name, name
    if segment:
        term = spec.nodeAffinity.required.nodeSelectorTerms.add()
        for key, value in segment:
            term.matchExpressions.add(key=key, operator="In", values=[value])
    return volume


def _segment(driver: volume_drivers.Driver, node: core_v1_pb2.Node) -> Segment:
    labels = node.metadata.labels
    return tuple((key, labels[key]) for key in driver.topology_keys if key in labels)


def _segment_of(driver: volume_drivers.Driver, volume: core_v1_pb2.PersistentVolume) -> Segment | None:
    """Where a volume of the driver is; None for that of another driver."""
    source = volume.spec.persistentVolumeSource
    if not source.HasField("csi") or source.csi.driver != driver.name:
        return None
    terms = volume.spec.nodeAffinity.required.nodeSelectorTerms
    return tuple((one.key, one.values[0]) for one in terms[0].matchExpressions) if terms else ()


def _allows(storage_class: storage_v1_pb2.StorageClass, segment: Segment) -> bool:
    labels = dict(segment)
    terms = storage_class.allowedTopologies
    return not terms or any(
        all(labels.get(one.key) in one.values for one in term.matchLabelExpressions) for term in terms
    )
