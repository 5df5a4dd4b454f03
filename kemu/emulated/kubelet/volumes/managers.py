"""The volume manager: a pod's containers start when its volumes are attached and mounted, and it is gone when they are
unmounted.

A volume that is to be mounted is first reported in use (``status.volumesInUse`` of the Node), so that nobody detaches
it, and reported no longer when it has been unmounted for the last pod. The kubelet does not attach: it waits until the
VolumeAttachment of its node says so. A pod that waits for two minutes gets an event, and goes on waiting. The file
system on a volume that has grown is made larger when it is mounted, and, where classes allow that, at a sync of a pod
that has it mounted. Mirrors ``pkg/kubelet/volumemanager``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import cast

from kemu import errors
from kemu.emulated.client import clients, informers, recorders, retries, volume_drivers
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.volumes import csi_nodes, references
from kemu.emulated.objects.volumes import claims, expansions
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import distributions
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import FileSystemExpanded, MountTimedOut, VolumesMounted, VolumeUnmounted

TIMEOUT_S = 123.0
"""After so long without its volumes, the sync of a pod fails (``podAttachAndMountTimeout``)."""
RETRY_S = 10.0
"""From then until the next sync (``backOffPeriod``)."""
FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 122.0
"""Between two tries to set up a volume (``initialDurationBeforeRetry``, ``maxDurationBeforeRetry``)."""
SYNC_S, SYNC_JITTER = 60.0, 0.5
"""Between two syncs of a pod (``syncFrequency``, ``workerResyncIntervalJitterFactor``)."""
POLL_S = 0.3
"""How often a claim is looked at that is not bound yet (``podAttachAndMountRetryInterval``)."""


LIMIT_EXCEEDED = "VolumeAttachmentLimitExceeded"
_RESOURCE_EXHAUSTED = 8


class _Mounts:
    """The volumes of one pod."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """PersistentVolumes that are reported in use for it."""
        self.mounted: list[tuple[str, volume_drivers.Driver | None]] = []
        self.task: asyncio.Task[None] | None = None
        self.on_unmounted: list[Callable[[], None]] = []
        self.is_leaving = False


class VolumeManager:
    """Volume manager of one kubelet."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        node: str,
        known: volume_drivers.Drivers,
        recorder: recorders.Recorder,
        names: references.Names | None = None,
        growing: bool = False,
    ) -> None:
        """``names``: None: ConfigMaps and Secrets are taken to exist. ``growing``: mounted volumes may grow."""
        self._env = env
        self._clock = env.clock
        self._client = client
        self._node = node
        self._drivers = known
        self._recorder = recorder
        self.names = names
        self._growing = growing
        self._pods: dict[str, _Mounts] = {}
        """By UID."""
        self._users: dict[str, int] = {}
        """How many pods use a volume."""
        self._told: list[str] = []
        self._telling = False

    def concerns(self, pod: core_v1_pb2.Pod) -> bool:
        if not pod.spec.volumes:
            return False
        if self.names is not None and self.names.are_in_volumes(pod):
            return True
        return next(claims.claim_names(pod), None) is not None

    # Mounting --------------------------------------------------------------------------------------------------------

    def mount(self, worker: Worker, ready: Callable[[], None], rejected: Callable[[str], None]) -> None:
        """``ready`` is called when all volumes of the pod are mounted, unless it is told to go before; ``rejected``,
        with the reason, if the driver of one says that the node takes no more."""
        mounts = self._pods[worker.uid] = _Mounts()
        task = self._mount(worker, mounts, ready, rejected)
        mounts.task = self._env.spawn(task, f"mount volumes of {worker.key}")

    def adopt(self, worker: Worker) -> None:
        """The pod ran before this kubelet started: its volumes are mounted."""
        mounts = self._pods[worker.uid] = _Mounts()
        self._env.spawn(self._reconstruct(worker, mounts), f"volumes of {worker.key}")

    async def _reconstruct(self, worker: Worker, mounts: _Mounts) -> None:
        for name in claims.claim_names(worker.pod):
            _, volume = await self._volume_of(worker, name)
            self._use(mounts, volume.metadata.name)
            mounts.mounted.append((volume.metadata.name, self._driver_of(volume)))
        await self._tell()
        self._follow(worker, mounts)

    async def _mount(
        self, worker: Worker, mounts: _Mounts, ready: Callable[[], None], rejected: Callable[[str], None]
    ) -> None:
        started_ns = self._clock.now_ns()
        names = list(dict.fromkeys(claims.claim_names(worker.pod)))
        left = {volume.name: claims.claim_name(worker.pod.metadata.name, volume) for volume in worker.pod.spec.volumes}
        waiting = {volume: claim for volume, claim in left.items() if claim}
        if self.names is not None:
            waiting |= dict.fromkeys((volume.name for volume in worker.pod.spec.volumes), "")
        complaint = self._env.spawn(self._complain(worker, waiting, rejected), f"patience of {worker.key}")
        try:
            for name in names:
                claim, volume = await self._volume_of(worker, name)
                driver = self._driver_of(volume)
                self._use(mounts, volume.metadata.name)
                await self._tell()
                if driver is not None:
                    await self._until_attached(volume)
                    await self._take(driver, "mount")
                    await self._expand(worker, claim, volume, driver)
                mounts.mounted.append((volume.metadata.name, driver))
                waiting = {one: claim for one, claim in waiting.items() if claim != name}
            if self.names is not None:
                await self._set_up(worker, self.names, waiting)
        finally:
            complaint.cancel()
        mounts.task = None
        volumes = [name for name, _driver in mounts.mounted]
        self._env.log(
            VolumesMounted(pod=worker.key, uid=worker.uid, start=started_ns, volumes=volumes,)
        )  # fmt: skip
        self._follow(worker, mounts)
        ready()

    # Growing ---------------------------------------------------------------------------------------------------------

    def _follow(self, worker: Worker, mounts: _Mounts) -> None:
        if self._growing and any(driver is not None for _name, driver in mounts.mounted):
            mounts.task = self._env.spawn(self._expand_mounted(worker), f"growing volumes of {worker.key}")

    async def _expand_mounted(self, worker: Worker) -> None:
        """At each sync of the pod (``checkVolumeFSResize``)."""
        while True:
            await self._clock.sleep(SYNC_S * (1 + SYNC_JITTER * self._env.random.random()))
            for name in dict.fromkeys(claims.claim_names(worker.pod)):
                claim, volume = await self._volume_of(worker, name)
                driver = self._driver_of(volume)
                if driver is not None:
                    await self._expand(worker, claim, volume, driver)

    async def _expand(
        self,
        worker: Worker,
        claim: core_v1_pb2.PersistentVolumeClaim,
        volume: core_v1_pb2.PersistentVolume,
        driver: volume_drivers.Driver,
    ) -> None:
        """``NodeExpander``: what another kubelet, or the driver, has done meanwhile is left to the next sync, and so is
        a refusal."""
        states = (expansions.NODE_PENDING, expansions.NODE_IN_PROGRESS)
        if not expansions.has(claim) < claims.capacity(volume) or expansions.state(claim) not in states:
            return
        size = volume.spec.capacity[expansions.STORAGE].string
        with contextlib.suppress(errors.ApiError):
            claim = await self._write(claim, lambda one: _put(one, expansions.NODE_IN_PROGRESS))
            await self._take(driver, "expand_on_node")
            text = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.metadata.name}" {self._node}'
            reason = "FileSystemResizeSuccessful"
            self._recorder.event(worker.pod, recorders.NORMAL, reason, reason, text, routine=True)
            self._recorder.event(claim, recorders.NORMAL, reason, reason, text, routine=True)
            await self._write(claim, lambda one: expansions.finish(one, size, self._clock.unix_ns()))
            self._env.log(FileSystemExpanded(pod=worker.key, uid=worker.uid, volume=volume.metadata.name, size=size))

    async def _write(
        self, claim: core_v1_pb2.PersistentVolumeClaim, change: Callable[[core_v1_pb2.PersistentVolumeClaim], object]
    ) -> core_v1_pb2.PersistentVolumeClaim:
        """Writes its status. Raises Conflict where it has changed since."""
        changed = core_v1_pb2.PersistentVolumeClaim.FromString(claim.SerializeToString())
        change(changed)
        if changed == claim:
            return claim
        return await retries.patiently(self._env, lambda: self._client.update_status(changed))

    async def _set_up(self, worker: Worker, names: references.Names, waiting: dict[str, str]) -> None:
        """Wait until all is there that the volumes name. From try to try it waits longer (``exponentialbackoff``)."""
        for volume in worker.pod.spec.volumes:
            delay_s = FIRST_DELAY_S
            while lacking := await names.lacking_in_volume(worker.pod, volume):
                text = f'MountVolume.SetUp failed for volume "{volume.name}" : {lacking}'
                self._recorder.event(worker.pod, recorders.WARNING, "FailedMount", "FailedMount", text)
                await self._clock.sleep(delay_s)
                delay_s = min(2 * delay_s, LONGEST_DELAY_S)
            waiting.pop(volume.name, None)

    async def _complain(self, worker: Worker, waiting: dict[str, str], rejected: Callable[[str], None]) -> None:
        """The event of each sync that fails."""
        while True:
            await self._clock.sleep(TIMEOUT_S, background=True)
            names = " ".join(waiting)
            for claim_name in filter(None, list(waiting.values())):
                if await self._is_exhausted(worker, claim_name):
                    rejected(
                        "Node has reached its volume attachment limit, rejecting pod. unmounted "
                        f"volumes=[{names}], unattached volumes=[{names}], failed to process volumes=[]: context "
                        "deadline exceeded"
                    )
                    return
            text = (
                f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[{names}], failed "
                "to process volumes=[]: context deadline exceeded"
            )
            self._recorder.event(worker.pod, recorders.WARNING, "FailedMount", "FailedMount", text)
            self._env.log(MountTimedOut(pod=worker.key, uid=worker.uid, volumes=list(waiting)))
            await self._clock.sleep(RETRY_S, background=True)

    async def _is_exhausted(self, worker: Worker, claim_name: str) -> bool:
        """``VerifyExhaustedResource``, of a claim that is bound: then the node's number is stated anew."""
        with contextlib.suppress(errors.ApiError):
            namespace = worker.pod.metadata.namespace
            claim = await retries.patiently(
                self._env, lambda: self._client.get("persistentvolumeclaims", claim_name, namespace)
            )
            if not claim.spec.volumeName:
                return False
            volume = cast(core_v1_pb2.PersistentVolume, await self._get("persistentvolumes", claim.spec.volumeName))
            driver = self._driver_of(volume)
            if driver is None or driver.allocatable_update_period is None:
                return False
            source = volume.spec.persistentVolumeSource.csi
            name = claims.attachment_name(source.volumeHandle, source.driver, self._node)
            attachment = cast(storage_v1_pb2.VolumeAttachment, await self._get("volumeattachments", name))
            if attachment.status.attachError.errorCode == _RESOURCE_EXHAUSTED:
                await csi_nodes.update(self._env, self._client, self._node, driver)
                return True
        return False

    async def _volume_of(
        self, worker: Worker, claim_name: str
    ) -> tuple[core_v1_pb2.PersistentVolumeClaim, core_v1_pb2.PersistentVolume]:
        """A claim and its volume, once it is bound (``getPVCExtractPV`` and ``getPVSpec``).

        Whatever is refused is asked for again: of several API servers, one may not know yet that the volume is one of
        this node.
        """
        namespace = worker.pod.metadata.namespace
        while True:
            try:
                claim = await retries.patiently(
                    self._env, lambda: self._client.get("persistentvolumeclaims", claim_name, namespace)
                )
                if claim.status.phase == claims.BOUND and claim.spec.volumeName:
                    volume = await self._get("persistentvolumes", claim.spec.volumeName)
                    return claim, cast(core_v1_pb2.PersistentVolume, volume)
            except errors.ApiError:
                pass
            await self._clock.sleep(POLL_S)

    async def _take(self, driver: volume_drivers.Driver, what: str) -> None:
        """Let the time pass that it takes the driver on this node."""
        await self._clock.sleep(distributions.parse(getattr(driver, what)).draw(self._env.random))

    async def _get(self, resource: str, name: str) -> KubernetesObject:
        return await retries.patiently(self._env, lambda: self._client.get(resource, name))

    def _driver_of(self, volume: core_v1_pb2.PersistentVolume) -> volume_drivers.Driver | None:
        """None for a volume that no driver attaches: a directory of the node, or a network file system."""
        source = volume.spec.persistentVolumeSource
        return self._drivers.of(source.csi.driver) if source.HasField("csi") else None

    async def _until_attached(self, volume: core_v1_pb2.PersistentVolume) -> None:
        """``verifyControllerAttachedVolume`` and ``waitForVolumeAttachment``."""
        source = volume.spec.persistentVolumeSource.csi
        if not await self._needs_attaching(source.driver):
            return
        attached = asyncio.Event()

        def look(*objects: storage_v1_pb2.VolumeAttachment) -> None:
            attachment = objects[-1]
            if attachment.status.attached and not attachment.metadata.HasField("deletionTimestamp"):
                attached.set()

        name = claims.attachment_name(source.volumeHandle, source.driver, self._node)
        informer: informers.Informer[storage_v1_pb2.VolumeAttachment] = informers.Informer(
            self._client,
            "volumeattachments",
            handler=informers.Callbacks(look, look),
            field_selector=f"metadata.name={name}",
        )
        informer.start()
        try:
            await attached.wait()
        finally:
            informer.stop()

    async def _needs_attaching(self, driver: str) -> bool:
        try:
            found = await retries.patiently(self._env, lambda: self._client.get("csidrivers", driver))
        except errors.NotFound:
            return True
        return not found.spec.HasField("attachRequired") or bool(found.spec.attachRequired)

    # Unmounting ------------------------------------------------------------------------------------------------------

    def unmount(self, worker: Worker) -> None:
        """The pod has no containers left."""
        mounts = self._pods.get(worker.uid)
        if mounts is None or mounts.is_leaving:
            return
        mounts.is_leaving = True
        if mounts.task is not None:
            mounts.task.cancel()
        self._env.spawn(self._unmount(worker, mounts), f"unmount volumes of {worker.key}")

    def when_unmounted(self, worker: Worker, then: Callable[[], None]) -> None:
        """Call ``then`` when the pod has no volumes left; at once if it has none now."""
        mounts = self._pods.get(worker.uid)
        if mounts is None:
            then()
        else:
            mounts.on_unmounted.append(then)

    async def _unmount(self, worker: Worker, mounts: _Mounts) -> None:
        for name, driver in mounts.mounted:
            if driver is not None:
                await self._take(driver, "unmount")
            self._env.log(VolumeUnmounted(pod=worker.key, uid=worker.uid, volume=name))
        for name in mounts.names:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
        del self._pods[worker.uid]
        for then in mounts.on_unmounted:
            then()
        await self._tell()

    # The Node --------------------------------------------------------------------------------------------------------

    def _use(self, mounts: _Mounts, name: str) -> None:
        mounts.names.append(name)
        self._users[name] = self._users.get(name, 0) + 1

    async def _tell(self) -> None:
        """Report the volumes in use, before one is mounted and after one is unmounted."""
        while self._telling:
            await self._clock.sleep(0.001)
        self._telling = True
        try:
            while self._told != list(self._users):
                names = list(self._users)
                await retries.patiently(self._env, functools.partial(self._send, names))
                self._told = names
        finally:
            self._telling = False

    async def _send(self, names: list[str]) -> None:
        await self._client.patch("nodes", self._node, "", {"status": {"volumesInUse": names}}, "status")


def _put(claim: core_v1_pb2.PersistentVolumeClaim, state: str) -> None:
    claim.status.allocatedResourceStatuses[expansions.STORAGE] = state
