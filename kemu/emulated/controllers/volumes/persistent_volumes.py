"""The actor ``controller/persistentvolume-binder``: binds claims to volumes, and says what becomes of volumes after
that.

It syncs claims and volumes one by one; either side may have been bound first, by a user, a provisioner or a scheduler.
A binding takes four writes: the volume's ``claimRef``, the volume's phase, the claim's ``volumeName``, the claim's
phase. A controller that dies between them goes on where it stopped. Claims of a class that waits for its first
consumer are left alone until a scheduler has chosen a volume or a node. Volumes are created and deleted by their CSI
drivers (:mod:`kemu.emulated.controllers.volumes.csi_drivers`); there are no plugins in the tree. Further config:
``events`` (:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors ``pkg/controller/volume/persistentvolume``.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, TypeVar

from kemu import errors
from kemu.emulated.client import informers, recorders, retries, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.volumes import claims, matching, migration
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import ClaimBound

RESYNC_NS = 15 * SECOND_NS
"""How often everything is looked at again (``pvClaimBinderSyncPeriod``), as long as something is not settled."""

_IN_TREE_PROTECTION = "kubernetes.io/pv-controller"
_MODES = (claims.READ_WRITE_ONCE, claims.READ_ONLY_MANY, claims.READ_WRITE_MANY, claims.READ_WRITE_ONCE_POD)
_NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
_NO_DELETER = "error getting deleter volume plugin for volume {name!r}: no deletable volume plugin matched"


class _Failed(errors.ApiError):
    """A sync that cannot go on and is tried again."""


K = TypeVar("K", core_v1_pb2.PersistentVolume, core_v1_pb2.PersistentVolumeClaim)


class PersistentVolumeController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.volumes.persistent_volumes:PersistentVolumeController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "persistentvolume-controller", "0", level)
        self._claim_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="claims")
        self._volume_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="volumes")
        self._claims_seen = self._informer("persistentvolumeclaims", self._claim_queue)
        self._volumes_seen = self._informer("persistentvolumes", self._volume_queue)
        self._classes: informers.Informer[storage_v1_pb2.StorageClass] = informers.Informer(
            self.client, "storageclasses"
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client, "pods", field_selector="spec.nodeName="
        )
        """Those that have no node yet."""
        self._volumes: dict[str, Any] = {}
        self._claims: dict[str, Any] = {}
        """As this controller knows them: what it has written itself comes before the watch."""
        self._timer: Timer | None = None

    def _informer(self, resource: str, queue: workqueues.WorkQueue[str]) -> informers.Informer[Any]:
        def changed(obj: KubernetesObject) -> None:
            queue.add(controllers.key_of(obj))

        handler = informers.Callbacks(changed, lambda old, new: changed(new), changed)
        return informers.Informer(self.client, resource, handler=handler)

    async def run(self) -> None:
        await self.begin(self._classes, self._pods, self._volumes_seen, self._claims_seen)
        for volume in self._volumes_seen.store.values():
            _store(self._volumes, volume)
        for claim in self._claims_seen.store.values():
            _store(self._claims, claim)
        self.env.spawn(self.work(self._claim_queue, self._sync_claim_by_key), "claims")
        await self.work(self._volume_queue, self._sync_volume_by_key)

    # Looking again ---------------------------------------------------------------------------------------------------

    def _arm(self, *, needed: bool = False) -> None:
        """Everything is looked at again at multiples of the period, unless there is nothing left to do. ``needed``: a
        volume refers to a claim that is gone without having named it."""
        if self._timer is not None or (not needed and self._is_settled()):
            return
        turn = self.clock.now_ns() // RESYNC_NS + 1
        self._timer = self.clock.call_at_ns(turn * RESYNC_NS, self._resync, background=True)

    def _is_settled(self) -> bool:
        waiting = any(claim.status.phase == claims.PENDING for claim in self._claims.values())
        return not waiting and all(volume.status.phase != claims.PENDING for volume in self._volumes.values())

    def _resync(self) -> None:
        self._timer = None
        for key in self._claims_seen.store:
            self._claim_queue.add(key)
        for key in self._volumes_seen.store:
            self._volume_queue.add(key)
        self._arm()

    # Claims ----------------------------------------------------------------------------------------------------------

    async def _sync_claim_by_key(self, key: str) -> None:
        if lag_s := self.lag_s():
            await self.clock.sleep(lag_s)
        claim = self._claims_seen.store.get(key)
        if claim is None:
            known = self._claims.pop(key, None)
            if known is not None and known.spec.volumeName:
                self._volume_queue.add(known.spec.volumeName)
            elif known is not None and any(_claim_key(one) == key for one in self._volumes.values()):
                self._arm(needed=True)
            return
        if _store(self._claims, claim):
            try:
                await self._sync_claim(claim)
            finally:
                self._arm()

    async def _sync_claim(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        claim = await self._update_claim_migration(claim)
        if claims.BIND_COMPLETED in claim.metadata.annotations:
            await self._sync_bound_claim(claim)
        else:
            await self._sync_unbound_claim(claim)

    async def _sync_unbound_claim(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        if not claim.spec.volumeName:
            await self._find_volume(claim)
            return
        volume = self._volumes.get(claim.spec.volumeName)
        if volume is None:
            await self._update_claim_status(claim, claims.PENDING)
        elif not volume.spec.HasField("claimRef"):
            why = _why_not(volume, claim)
            if why:
                name = volume.metadata.name
                self._warn(claim, "VolumeMismatch", f'Cannot bind to requested volume "{name}": {why}')
                await self._update_claim_status(claim, claims.PENDING)
            else:
                await self._bind(volume, claim)
        elif claims.is_bound_to(volume, claim):
            await self._bind(volume, claim)
        else:
            text = f'volume "{volume.metadata.name}" already bound to a different claim.'
            self._warn(claim, "FailedBinding", text)
            if claims.BOUND_BY_CONTROLLER in claim.metadata.annotations:
                raise _Failed(f"invalid binding of claim {controllers.key_of(claim)}: {text}")
            await self._update_claim_status(claim, claims.PENDING)

    async def _find_volume(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        """The first half of ``syncUnboundClaim``: the claim names no volume."""
        delays = self._waits_for_consumer(claim)
        volume = self._best_match(claim, delays)
        if volume is not None:
            await self._bind(volume, claim)
            return
        if await self._assign_default_class(claim):
            return
        if delays and claims.SELECTED_NODE not in claim.metadata.annotations:
            self._say_who_is_awaited(claim)
        elif claims.class_of_claim(claim):
            await self._provision(claim)
            return
        else:
            self._tell(claim, "FailedBinding", _NO_CLASS, routine=False)
        await self._update_claim_status(claim, claims.PENDING)

    def _waits_for_consumer(self, claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
        """``IsDelayBindingMode``."""
        storage_class = self._class_of(claim)
        return storage_class is not None and storage_class.volumeBindingMode == claims.WAIT_FOR_FIRST_CONSUMER

    def _class_of(self, claim: core_v1_pb2.PersistentVolumeClaim) -> storage_v1_pb2.StorageClass | None:
        return self._classes.store.get(claims.class_of_claim(claim))

    def _best_match(
        self, claim: core_v1_pb2.PersistentVolumeClaim, delays: bool
    ) -> core_v1_pb2.PersistentVolume | None:
        """``findByClaim``: of volumes with few access modes before volumes with many."""
        by_modes: dict[tuple[str, ...], list[Any]] = {}
        for volume in self._volumes.values():
            modes = tuple(mode for mode in _MODES if mode in volume.spec.accessModes)
            by_modes.setdefault(modes, []).append(volume)
        fitting = [modes for modes in by_modes if all(mode in modes for mode in claim.spec.accessModes)]
        for modes in sorted(fitting, key=len):
            found = matching.find(claim, by_modes[modes], delays=delays)
            if found is not None:
                return found
        return None

    async def _assign_default_class(self, claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
        """A claim that names no class gets the default one as soon as there is one (``assignDefaultStorageClass``)."""
        if claims.has_class(claim):
            return False
        default = claims.default_of(self._classes.store.values())
        if default is None:
            return False
        changed = meta.copied(claim)
        changed.spec.storageClassName = default.metadata.name
        await self._write(changed)
        return True

    def _say_who_is_awaited(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        """``emitEventForUnboundDelayBindingClaim``."""
        metadata = claim.metadata
        names = [
            pod.metadata.name
            for pod in self._pods.store.values()
            if pod.metadata.namespace == metadata.namespace
            and metadata.name in claims.claim_names(pod)
            and not pod_phases.is_terminal(pod)
        ]
        if not names:
            self._tell(claim, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        else:
            some = f"pod {names[0]}" if len(names) == 1 else f"pods {','.join(names)}"
            self._tell(claim, "WaitForPodScheduled", f"waiting for {some} to be scheduled")

    async def _provision(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        """Ask the provisioner of its class for a volume (``provisionClaimOperationExternal``)."""
        name = claims.class_of_claim(claim)
        storage_class = self._classes.store.get(name)
        if storage_class is None:
            self._warn(claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
            return
        provisioner = storage_class.provisioner
        driver = migration.new_driver_of(provisioner)
        if driver is None and provisioner.startswith("kubernetes.io/"):
            self._warn(claim, "ProvisioningFailed", f"no volume plugin matched name: {provisioner}")
            return
        provisioner = driver or provisioner
        if claim.metadata.annotations.get(claims.STORAGE_PROVISIONER) != provisioner:
            changed = meta.copied(claim)
            annotations = changed.metadata.annotations
            annotations[claims.BETA_STORAGE_PROVISIONER] = annotations[claims.STORAGE_PROVISIONER] = provisioner
            _migrate(annotations, claims.STORAGE_PROVISIONER)
            claim = await self._write(changed)
            _store(self._claims, claim)
        self._tell(
            claim,
            "ExternalProvisioning",
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered.",
        )

    async def _sync_bound_claim(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        if not claim.spec.volumeName:
            text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            await self._lose(claim, "ClaimLost", text)
            return
        volume = self._volumes.get(claim.spec.volumeName)
        if volume is None:
            await self._lose(
                claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            )  # fmt: skip
        elif not volume.spec.HasField("claimRef") or volume.spec.claimRef.uid == claim.metadata.uid:
            await self._bind(volume, claim)
        else:
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lose(claim, "ClaimMisbound", text)

    async def _lose(self, claim: core_v1_pb2.PersistentVolumeClaim, reason: str, text: str) -> None:
        if claim.status.phase != claims.LOST:
            claim = await self._update_claim_status(claim, claims.LOST)
            self._warn(claim, reason, text)

    # Volumes ---------------------------------------------------------------------------------------------------------

    async def _sync_volume_by_key(self, key: str) -> None:
        if lag_s := self.lag_s():
            await self.clock.sleep(lag_s)
        volume = self._volumes_seen.store.get(key)
        if volume is None:
            known = self._volumes.pop(key, None)
            if known is not None and known.spec.HasField("claimRef"):
                self._claim_queue.add(_claim_key(known))
            return
        if _store(self._volumes, volume):
            try:
                await self._sync_volume(volume)
            finally:
                self._arm()

    async def _sync_volume(self, volume: core_v1_pb2.PersistentVolume) -> None:
        volume = await self._update_volume_migration(volume)
        if not volume.spec.HasField("claimRef") or not volume.spec.claimRef.uid:
            await self._update_volume_phase(volume, claims.AVAILABLE)
            return
        claim = await self._claim_of(volume)
        if claim is None:
            await self._release(volume)
        elif not claim.spec.volumeName:
            if matching.modes_differ(claim, volume):
                name, other = claim.metadata.name, volume.metadata.name
                why = "due to incompatible volumeMode."
                text = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{name}" {why}'
                self._warn(volume, "VolumeMismatch", text)
                text = f'Cannot bind PersistentVolume "{other}" to requested PersistentVolumeClaim {why}'
                self._warn(claim, "VolumeMismatch", text)
                return
            self._claim_queue.add(controllers.key_of(claim))
        elif claim.spec.volumeName == volume.metadata.name:
            await self._update_volume_phase(volume, claims.BOUND)
        elif (
            claims.PROVISIONED_BY in volume.metadata.annotations
            and volume.spec.persistentVolumeReclaimPolicy == claims.DELETE
        ):
            # It was created for a claim that has got another volume.
            await self._release(volume)
        else:
            await self._unbind(volume)

    async def _claim_of(self, volume: core_v1_pb2.PersistentVolume) -> core_v1_pb2.PersistentVolumeClaim | None:
        """The claim that the volume is bound to; None if it is gone, or another one has its name."""
        reference = volume.spec.claimRef
        claim = self._claims.get(_claim_key(volume))
        if claim is None and volume.status.phase not in (claims.RELEASED, claims.FAILED):
            claim = self._claims_seen.store.get(_claim_key(volume)) or await self._live_claim(reference)
        if claim is not None and claim.metadata.uid != reference.uid:
            claim = await self._live_claim(reference)
            if claim is not None and claim.metadata.uid != reference.uid:
                return None
        return claim

    async def _live_claim(self, reference: core_v1_pb2.ObjectReference) -> core_v1_pb2.PersistentVolumeClaim | None:
        try:
            return await self.client.get("persistentvolumeclaims", reference.name, reference.namespace)
        except errors.NotFound:
            return None

    async def _release(self, volume: core_v1_pb2.PersistentVolume) -> None:
        """Its claim is gone, or has no use for it (``reclaimVolume``)."""
        if volume.status.phase not in (claims.RELEASED, claims.FAILED):
            volume = await self._update_volume_phase(volume, claims.RELEASED)
        if volume.metadata.annotations.get(claims.MIGRATED_TO):
            return
        policy = volume.spec.persistentVolumeReclaimPolicy
        if policy == claims.RECYCLE:
            text = "No recycler plugin found for the volume!"
            await self._fail_volume(volume, "VolumeFailedRecycle", text)
        elif policy == claims.DELETE and not _has_deleter(volume):
            text = _NO_DELETER.format(name=volume.metadata.name).replace("'", '"')
            await self._fail_volume(volume, "VolumeFailedDelete", text)

    async def _fail_volume(self, volume: core_v1_pb2.PersistentVolume, reason: str, text: str) -> None:
        if volume.status.phase != claims.FAILED:
            volume = await self._update_volume_phase(volume, claims.FAILED, text)
            self._warn(volume, reason, text)

    async def _unbind(self, volume: core_v1_pb2.PersistentVolume) -> None:
        """``unbindVolume``: a user's own reference stays, without the UID."""
        changed = meta.copied(volume)
        if claims.BOUND_BY_CONTROLLER in volume.metadata.annotations:
            changed.spec.ClearField("claimRef")
            del changed.metadata.annotations[claims.BOUND_BY_CONTROLLER]
        else:
            changed.spec.claimRef.ClearField("uid")
        changed = await self._write(changed)
        _store(self._volumes, changed)
        await self._update_volume_phase(changed, claims.AVAILABLE)

    # Binding ---------------------------------------------------------------------------------------------------------

    async def _bind(self, volume: core_v1_pb2.PersistentVolume, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        """The four writes, those that are still missing (``bind``)."""
        referring = claims.bound_to(volume, claim)
        if referring is not None:
            volume = await self._write(referring)
            _store(self._volumes, volume)
        self.env.step("volume-bound")
        volume = await self._update_volume_phase(volume, claims.BOUND)
        claim = await self._bind_claim(claim, volume)
        await self._update_claim_status(claim, claims.BOUND, volume)

    async def _bind_claim(
        self, claim: core_v1_pb2.PersistentVolumeClaim, volume: core_v1_pb2.PersistentVolume
    ) -> core_v1_pb2.PersistentVolumeClaim:
        """``bindClaimToVolume``."""
        changed = meta.copied(claim)
        annotations, name = changed.metadata.annotations, volume.metadata.name
        if claim.spec.volumeName != name:
            changed.spec.volumeName = name
            if claims.BOUND_BY_CONTROLLER not in annotations:
                annotations[claims.BOUND_BY_CONTROLLER] = "yes"
        if claims.BIND_COMPLETED not in annotations:
            annotations[claims.BIND_COMPLETED] = "yes"
        if changed == claim:
            return claim
        changed = await self._write(changed)
        _store(self._claims, changed)
        self.env.log(
            ClaimBound(claim=controllers.key_of(claim), uid=claim.metadata.uid, volume=name)
        )  # fmt: skip
        return changed

    # Writing ---------------------------------------------------------------------------------------------------------

    async def _write(self, obj: K) -> K:
        return await retries.patiently(self.env, lambda: self.client.update(obj))

    async def _update_claim_status(
        self, claim: core_v1_pb2.PersistentVolumeClaim, phase: str, volume: core_v1_pb2.PersistentVolume | None = None
    ) -> core_v1_pb2.PersistentVolumeClaim:
        """``updateClaimStatus``."""
        changed = meta.copied(claim)
        status = changed.status
        status.phase = phase
        if volume is None:
            del status.accessModes[:]
            status.capacity.clear()
            status.ClearField("currentVolumeAttributesClassName")
        else:
            del status.accessModes[:]
            status.accessModes.extend(volume.spec.accessModes)
            if claim.status.phase != phase and _capacity_differs(claim, volume):
                status.capacity.clear()
                for name in volume.spec.capacity:
                    status.capacity[name].string = volume.spec.capacity[name].string
            if (claim.status.phase, phase) == (claims.PENDING, claims.BOUND):
                status.ClearField("currentVolumeAttributesClassName")
                if volume.spec.HasField("volumeAttributesClassName"):
                    status.currentVolumeAttributesClassName = volume.spec.volumeAttributesClassName
        if changed.status == claim.status:
            return claim
        changed = await retries.patiently(self.env, lambda: self.client.update_status(changed))
        _store(self._claims, changed)
        return changed

    async def _update_volume_phase(
        self, volume: core_v1_pb2.PersistentVolume, phase: str, message: str = ""
    ) -> core_v1_pb2.PersistentVolume:
        if volume.status.phase == phase:
            return volume
        changed = meta.copied(volume)
        changed.status.phase = phase
        changed.status.ClearField("message")
        if message:
            changed.status.message = message
        changed = await retries.patiently(self.env, lambda: self.client.update_status(changed))
        _store(self._volumes, changed)
        return changed

    async def _update_claim_migration(
        self, claim: core_v1_pb2.PersistentVolumeClaim
    ) -> core_v1_pb2.PersistentVolumeClaim:
        changed = meta.copied(claim)
        key = claims.STORAGE_PROVISIONER
        if key not in changed.metadata.annotations:
            key = claims.BETA_STORAGE_PROVISIONER
        if not _migrate(changed.metadata.annotations, key):
            return claim
        changed = await self._write(changed)
        _store(self._claims, changed)
        return changed

    async def _update_volume_migration(self, volume: core_v1_pb2.PersistentVolume) -> core_v1_pb2.PersistentVolume:
        """``updateVolumeMigrationAnnotationsAndFinalizers``."""
        changed = meta.copied(volume)
        has_changed = _migrate(changed.metadata.annotations, claims.PROVISIONED_BY)
        has_changed |= _finalize(changed)
        if not has_changed:
            return volume
        changed = await self._write(changed)
        _store(self._volumes, changed)
        return changed

    # Events ----------------------------------------------------------------------------------------------------------

    def _warn(self, obj: KubernetesObject, reason: str, text: str) -> None:
        self._recorder.event(obj, recorders.WARNING, reason, reason, text)

    def _tell(self, obj: KubernetesObject, reason: str, text: str, *, routine: bool = True) -> None:
        self._recorder.event(obj, recorders.NORMAL, reason, reason, text, routine=routine)


def _store(known: dict[str, K], obj: K) -> bool:
    """False, and nothing is stored, if a newer version is known (``storeObjectUpdate``)."""
    key = controllers.key_of(obj)
    old = known.get(key)
    if old is not None and int(old.metadata.resourceVersion or 0) > int(obj.metadata.resourceVersion or 0):
        return False
    known[key] = obj
    return True


def _claim_key(volume: core_v1_pb2.PersistentVolume) -> str:
    reference = volume.spec.claimRef
    return f"{reference.namespace}/{reference.name}"


def _why_not(volume: core_v1_pb2.PersistentVolume, claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    """Why the volume that a claim names does not suit it (``checkVolumeSatisfyClaim``)."""
    if volume.metadata.HasField("deletionTimestamp"):
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if claims.capacity(volume).value < claims.requested(claim).value:
        return "requested PV is too small"
    if claims.class_of_volume(volume) != claims.class_of_claim(claim):
        return "storageClassName does not match"
    if volume.spec.volumeAttributesClassName != claim.spec.volumeAttributesClassName:
        return "volumeAttributesClassName does not match"
    if matching.modes_differ(claim, volume):
        return "incompatible volumeMode"
    return "" if matching.has_access_modes(claim, volume) else "incompatible accessMode"


def _capacity_differs(claim: core_v1_pb2.PersistentVolumeClaim, volume: core_v1_pb2.PersistentVolume) -> bool:
    if "storage" not in claim.status.capacity:
        return True
    return quantities.parse(claim.status.capacity["storage"].string) != claims.capacity(volume)


def _has_deleter(volume: core_v1_pb2.PersistentVolume) -> bool:
    """Whether a CSI driver deletes it (``findDeletablePlugin`` finds no plugin, and no error)."""
    annotations = volume.metadata.annotations
    provisioner = annotations.get(claims.PROVISIONED_BY, "")
    if provisioner:
        return not provisioner.startswith("kubernetes.io/")
    return claims.MIGRATED_TO in annotations or volume.spec.persistentVolumeSource.HasField("csi")


def _migrate(annotations: MutableMapping[str, str], key: str) -> bool:
    """``updateMigrationAnnotations``: True if there was something to change."""
    provisioner = annotations.get(key)
    if provisioner is None:
        return False
    driver = migration.new_driver_of(provisioner)
    if driver is not None and annotations.get(claims.MIGRATED_TO) != driver:
        annotations[claims.MIGRATED_TO] = driver
        return True
    if driver is None and annotations.get(claims.MIGRATED_TO):
        del annotations[claims.MIGRATED_TO]
        return True
    return False


def _finalize(volume: core_v1_pb2.PersistentVolume) -> bool:
    """``modifyDeletionFinalizers``, of volumes that a provisioner in the tree has created."""
    annotations, finalizers = volume.metadata.annotations, volume.metadata.finalizers
    provisioner = annotations.get(claims.PROVISIONED_BY)
    if provisioner is None or not provisioner.startswith("kubernetes.io/"):
        return False
    before = list(finalizers)
    wanted = [one for one in before if one != _IN_TREE_PROTECTION]
    if migration.new_driver_of(provisioner) is None:
        wanted = [one for one in wanted if one != claims.PROVISIONER_PROTECTION]
        if volume.spec.persistentVolumeReclaimPolicy == claims.DELETE:
            wanted.append(_IN_TREE_PROTECTION)
    if wanted == before:
        return False
    del finalizers[:]
    finalizers.extend(wanted)
    return True
