"""What ``external-resizer`` does beside a driver: it has volumes made larger, and given other attributes.

A claim grows in two steps: the driver makes the volume larger, then a kubelet the file system on it. An expansion that
the driver can never do is marked infeasible and tried again every five minutes; meanwhile the user may ask for less. A
claim with another VolumeAttributesClass has its volume modified, and says so until that is done. Part of
:mod:`kemu.emulated.controllers.volumes.csi_drivers`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kemu import errors
from kemu.emulated.client import clients, recorders, retries, volume_drivers
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.volumes import claims, expansions
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import VolumeExpanded, VolumeExpansionFailed, VolumeModified

K = TypeVar("K", bound=KubernetesObject)

INFEASIBLE_RETRY_S = 300.0
"""Until an infeasible call is made again (``--retry-interval-max``)."""

MODIFYING, MODIFY_ERROR = "ModifyingVolume", "ModifyVolumeError"
_MODIFICATION = (MODIFYING, MODIFY_ERROR)
PENDING, IN_PROGRESS, INFEASIBLE = "Pending", "InProgress", "Infeasible"
"""``modifyVolumeStatus.status``."""


class Resizer:
    """Of all drivers of a cluster."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        recorder: recorders.Recorder,
        take: Callable[[volume_drivers.Driver, str], Coroutine[Any, Any, None]],
        room_beside: Callable[[volume_drivers.Driver, core_v1_pb2.PersistentVolume], int | None],
        later: Callable[[str, float], None],
    ) -> None:
        """``take``: lets the time of a call pass. ``room_beside``: bytes that are left where a volume is; None: without
        end. ``later``: has a claim looked at again after some seconds."""
        self._env = env
        self._client = client
        self._recorder = recorder
        self._take = take
        self._room_beside = room_beside
        self._later = later
        self._failed: set[str] = set()
        """Claims whose last expansion the driver refused, by UID."""
        self._infeasible_ns: dict[str, int] = {}
        """When the call that was infeasible may be made again, by UID and what was asked for."""

    async def look_at(
        self,
        claim: core_v1_pb2.PersistentVolumeClaim,
        volume: core_v1_pb2.PersistentVolume,
        drivers: volume_drivers.Drivers,
    ) -> None:
        """``syncPVC`` of both controllers of external-resizer. Raises :class:`kemu.errors.ApiError` to be called
        again."""
        source = volume.spec.persistentVolumeSource
        if not source.HasField("csi") or not volume_drivers.is_simulated(source.csi.driver):
            return
        if not claims.is_bound_to(volume, claim) or claim.metadata.HasField("deletionTimestamp"):
            return
        driver = drivers.of(source.csi.driver)
        if expansions.is_wanted(claim):
            claim, volume = await self._expand(claim, volume, driver)
        await self._modify(claim, volume, driver)

    def _now_ns(self) -> int:
        return self._env.clock.unix_ns()

    async def _write(self, obj: K, change: Callable[[K], object]) -> K:
        """Raises Conflict where the object has changed since."""
        changed = type(obj).FromString(obj.SerializeToString())
        change(changed)
        return await retries.patiently(self._env, lambda: self._client.update(changed))

    async def _write_status(self, obj: K, change: Callable[[K], object]) -> K:
        changed = type(obj).FromString(obj.SerializeToString())
        change(changed)
        if changed == obj:
            return obj
        return await retries.patiently(self._env, lambda: self._client.update_status(changed))

    def _tell(self, claim: core_v1_pb2.PersistentVolumeClaim, kind: str, reason: str, text: str) -> None:
        self._recorder.event(claim, kind, reason, reason, text, routine=kind == recorders.NORMAL)

    def _waits(self, claim: core_v1_pb2.PersistentVolumeClaim, call: str) -> bool:
        """Whether the same call was infeasible not long ago."""
        left_ns = self._infeasible_ns.get(f"{claim.metadata.uid} {call}", 0) - self._env.clock.now_ns()
        if left_ns > 0:
            self._later(f"{claim.metadata.namespace}/{claim.metadata.name}", left_ns / SECOND_NS)
        return left_ns > 0

    def _put_off(self, claim: core_v1_pb2.PersistentVolumeClaim, call: str) -> None:
        until_ns = self._env.clock.now_ns() + int(INFEASIBLE_RETRY_S * SECOND_NS)
        self._infeasible_ns[f"{claim.metadata.uid} {call}"] = until_ns
        self._later(f"{claim.metadata.namespace}/{claim.metadata.name}", INFEASIBLE_RETRY_S)

    # Expansion -------------------------------------------------------------------------------------------------------

    async def _expand(
        self,
        claim: core_v1_pb2.PersistentVolumeClaim,
        volume: core_v1_pb2.PersistentVolume,
        driver: volume_drivers.Driver,
    ) -> tuple[core_v1_pb2.PersistentVolumeClaim, core_v1_pb2.PersistentVolume]:
        """``expandAndRecover``."""
        uid, name, started_ns = claim.metadata.uid, volume.metadata.name, self._env.clock.now_ns()
        amount = expansions.next_size(claim, volume, uid in self._failed)
        if amount is None:
            return claim, volume
        size = str(amount)
        if self._waits(claim, size):
            return claim, volume
        if expansions.NODE_EXPANSION_NOT_REQUIRED in claim.metadata.annotations:
            claim = await self._write(claim, _allow_node_expansion)
        claim = await self._write_status(claim, lambda one: expansions.begin(one, size, self._now_ns()))
        self._tell(claim, recorders.NORMAL, "Resizing", f"External resizer is resizing volume {name}")
        await self._take(driver, "expand")
        why = self._refusal(volume, driver, amount)
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        if why:
            self._failed.add(uid)
            self._put_off(claim, size)
            claim = await self._write_status(claim, lambda one: expansions.fail(one, why, True, self._now_ns()))
            text = f'resize volume "{name}" by resizer "{driver.name}" failed: {why}'
            self._tell(claim, recorders.WARNING, "VolumeResizeFailed", text)
            self._env.log(VolumeExpansionFailed(claim=key, uid=uid, driver=driver.name, start=started_ns, why=why))
            return claim, volume
        self._failed.discard(uid)
        on_node = volume.spec.volumeMode != claims.BLOCK
        before = claim.status.capacity[expansions.STORAGE].string

        def grow(one: core_v1_pb2.PersistentVolume) -> None:
            one.spec.capacity[expansions.STORAGE].string = size
            if on_node and expansions.PRE_RESIZE_CAPACITY not in one.metadata.annotations:
                one.metadata.annotations[expansions.PRE_RESIZE_CAPACITY] = before

        volume = await self._write(volume, grow)
        self._env.log(VolumeExpanded(claim=key, uid=uid, driver=driver.name, start=started_ns, volume=name, size=size))
        if on_node:
            claim = await self._write_status(claim, lambda one: expansions.leave_to_node(one, self._now_ns()))
            text = "Require file system resize of volume on node"
            self._tell(claim, recorders.NORMAL, "FileSystemResizeRequired", text)
            return claim, volume
        claim = await self._write(claim, lambda one: one.metadata.annotations.update({_NOT_REQUIRED: "true"}))
        claim = await self._write_status(claim, lambda one: expansions.finish(one, size, self._now_ns()))
        self._tell(claim, recorders.NORMAL, "VolumeResizeSuccessful", "Resize volume succeeded")
        return claim, volume

    def _refusal(
        self, volume: core_v1_pb2.PersistentVolume, driver: volume_drivers.Driver, size: quantities.Quantity
    ) -> str:
        left = self._room_beside(driver, volume)
        more = size.value - claims.capacity(volume).value
        if left is not None and left < more:
            return "rpc error: code = OutOfRange desc = no capacity left"
        return ""

    # Modification ----------------------------------------------------------------------------------------------------

    async def _modify(
        self,
        claim: core_v1_pb2.PersistentVolumeClaim,
        volume: core_v1_pb2.PersistentVolume,
        driver: volume_drivers.Driver,
    ) -> None:
        """``modify``."""
        status, name = claim.status, claim.spec.volumeAttributesClassName
        begun = status.modifyVolumeStatus if status.HasField("modifyVolumeStatus") else None
        if begun is None and name == status.currentVolumeAttributesClassName:
            return
        if not name and (begun is None or begun.status != IN_PROGRESS):
            if any(one.type == MODIFYING for one in status.conditions):
                self._tell(claim, recorders.NORMAL, "VolumeModifyCancelled", "Cancelled modify.")
                await self._write_status(claim, lambda one: _conditions(one, {}, self._now_ns(), keep=(MODIFY_ERROR,)))
            return
        target = name or (begun.targetVolumeAttributesClassName if begun is not None else "")
        if self._waits(claim, target):
            return
        try:
            attributes: Any = await self._client.get("volumeattributesclasses", target)
        except errors.NotFound:
            self._tell(claim, recorders.WARNING, "VolumeModifyFailed", f'VAC "{target}" does not exist.')
            await self._write_status(claim, _pend)
            raise
        claim = await self._write_status(claim, lambda one: _begin(one, target, self._now_ns()))
        text = f"external resizer is modifying volume {claim.metadata.name} with vac {target}"
        self._tell(claim, recorders.NORMAL, "VolumeModify", text)
        started_ns = self._env.clock.now_ns()
        await self._take(driver, "modify")
        why = _mismatch(attributes, driver)
        if why:
            self._put_off(claim, target)
            await self._write_status(claim, lambda one: _refuse(one, target, why, self._now_ns()))
            self._tell(
                claim, recorders.WARNING, "VolumeModifyFailed", f"rpc error: code = InvalidArgument desc = {why}"
            )
            return

        def give(one: core_v1_pb2.PersistentVolume) -> None:
            one.spec.volumeAttributesClassName = target

        volume = await self._write(volume, give)
        await self._write_status(claim, lambda one: _end(one, target, self._now_ns()))
        text = f"external resizer modified volume {claim.metadata.name} with vac {target} successfully"
        self._tell(claim, recorders.NORMAL, "VolumeModifySuccessful", text)
        self._env.log(
            VolumeModified(
                claim=f"{claim.metadata.namespace}/{claim.metadata.name}",
                uid=claim.metadata.uid,
                driver=driver.name,
                start=started_ns,
                volume=volume.metadata.name,
                attributes=target,
            )
        )


_NOT_REQUIRED = expansions.NODE_EXPANSION_NOT_REQUIRED


def _mismatch(attributes: storage_v1_pb2.VolumeAttributesClass, driver: volume_drivers.Driver) -> str:
    if attributes.driverName == driver.name:
        return ""
    name, other = attributes.metadata.name, attributes.driverName
    return f'VAC "{name}" is for driver "{other}", not "{driver.name}"'


def _conditions(
    claim: core_v1_pb2.PersistentVolumeClaim,
    new: dict[str, str],
    now_ns: int,
    keep: tuple[str, ...] = (),
    reasons: dict[str, str] | None = None,
) -> None:
    stale = [one for one in claim.status.conditions if one.type in new and one.message != new[one.type]]
    for one in stale:
        claim.status.conditions.remove(one)
    expansions.set_conditions(claim, new, now_ns, among=_MODIFICATION, keep=keep, reasons=reasons)


def _allow_node_expansion(claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    del claim.metadata.annotations[_NOT_REQUIRED]


def _pend(claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    claim.status.modifyVolumeStatus.status = PENDING


def _begin(claim: core_v1_pb2.PersistentVolumeClaim, target: str, now_ns: int) -> None:
    claim.status.modifyVolumeStatus.status = IN_PROGRESS
    claim.status.modifyVolumeStatus.targetVolumeAttributesClassName = target
    _conditions(claim, {MODIFYING: f'Modifying volume to "{target}" is in progress.'}, now_ns, keep=(MODIFY_ERROR,))


def _refuse(claim: core_v1_pb2.PersistentVolumeClaim, target: str, why: str, now_ns: int) -> None:
    claim.status.modifyVolumeStatus.status = INFEASIBLE
    new = {MODIFYING: f'Modifying volume to "{target}" failed. Waiting for retry.', MODIFY_ERROR: why}
    _conditions(claim, new, now_ns, reasons={MODIFY_ERROR: "InvalidArgument"})


def _end(claim: core_v1_pb2.PersistentVolumeClaim, target: str, now_ns: int) -> None:
    claim.status.ClearField("modifyVolumeStatus")
    claim.status.currentVolumeAttributesClassName = target
    _conditions(claim, {}, now_ns)
