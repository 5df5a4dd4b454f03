"""The DRA drivers of one node: they publish its devices in ResourceSlices, and prepare claims in their time.

The pool of a driver is called after the node, unless stated. A slice holds as many devices as the API allows; whatever
changes in the pool raises its generation. Mirrors ``k8s.io/dynamic-resource-allocation/resourceslice``, but that a
slice that somebody else deletes comes back only with the next change of the pool, or with the next start of the
kubelet. That one deletes the slices of its node when it starts, as no driver has registered then
(``pkg/kubelet/cm/dra/plugin``).
"""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.emulated.kubelet.settings.devices import Devices
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import CounterSet, Device, DeviceAttribute, DeviceTaint, ResourceSlice
from kemu.runtime import distributions
from kemu.runtime.env import Env
from kemu.runtime.faults.handlers import Assignment, End
from kemu.runtime.runlog.events import SlicePublished

MOST_IN_SLICE, MOST_WITH_TAINTS, MOST_COUNTERS = 128, 64, 8
"""``ResourceSliceMaxDevices``, ``ResourceSliceMaxDevicesWithAdvancedFeatures`` and ``ResourceSliceMaxCounterSets``."""
LATE, VANISH, UNHEALTHY, FAIL = "lateSlices", "devicesVanish", "devicesUnhealthy", "prepareFails"
"""Faults that drivers carry out."""


@dataclass(frozen=True)
class _Part:
    """Of a pool, in one slice: devices, or counters."""

    devices: Sequence[Device] = ()
    counters: Sequence[CounterSet] = ()


class Pool:
    """What one driver publishes under one name."""

    def __init__(self, name: str, groups: Sequence[Devices]) -> None:
        self.name = name
        self.devices = [device for group in groups for device in devices_of(group)]
        self.counters = [counters for group in groups for counters in counters_of(group)]
        self.generation = 0
        self.published: list[ResourceSlice] = []


class Driver:
    """One driver on the node."""

    def __init__(self, name: str, node: str, groups: Sequence[Devices]) -> None:
        self.name = name
        pools: dict[str, list[Devices]] = {}
        for group in groups:
            pools.setdefault(group.pool or node, []).append(group)
        self.pools = [Pool(called, found) for called, found in pools.items()]
        first = groups[0]
        self.publish = distributions.parse(first.publish)
        self.prepare = distributions.parse(first.prepare)
        self.unprepare = distributions.parse(first.unprepare)
        self.reports_health = any(group.health for group in groups)


class Drivers:
    """The drivers of one node."""

    def __init__(self, env: Env, client: clients.Client, node: str, stated: Sequence[Mapping[str, Any]]) -> None:
        """``stated``: :class:`Devices` as plain data."""
        self._env = env
        self._client = client
        self._node = node
        self.by_name = drivers_of(node, stated)
        self._owner: core_v1_pb2.Node | None = None
        self._late: dict[str, Assignment] = {}
        self._vanished: dict[str, Assignment] = {}
        self._failing: dict[str, Assignment] = {}
        self._unhealthy: dict[str, Assignment] = {}
        self.on_health: Callable[[], object] = lambda: None
        """Called when the health of a device has changed."""
        self._turn = asyncio.Lock()
        env.on_fault(LATE, lambda fault: self._begin(self._late, fault))
        env.on_fault(VANISH, self._vanish)
        env.on_fault(UNHEALTHY, self._fall_ill)
        env.on_fault(FAIL, lambda fault: self._begin(self._failing, fault))

    async def start(self, node: core_v1_pb2.Node) -> None:
        """The node is registered: slices of an earlier kubelet go, and the drivers publish theirs."""
        self._owner = node
        selector = f"spec.nodeName={self._node}"
        await retries.patiently(
            self._env, lambda: self._client.delete_collection("resourceslices", field_selector=selector)
        )
        for driver in self.by_name.values():
            self._env.spawn(self._publish_first(driver), f"slices of {driver.name}")

    async def _publish_first(self, driver: Driver) -> None:
        wait_s = driver.publish.draw(self._env.random)
        for fault in self._late.values():
            wait_s += distributions.parse(fault.parameters["by"]).draw(fault.random)
            fault.hit("")
        if wait_s > 0:
            await self._env.clock.sleep(wait_s)
        await self._publish(driver)

    async def _publish(self, driver: Driver) -> None:
        """Bring the slices of its pools up to date."""
        async with self._turn:
            for pool in driver.pools:
                await self._publish_pool(driver, pool)

    async def _publish_pool(self, driver: Driver, pool: Pool) -> None:
        devices = [device for device in pool.devices if not self._has_vanished(device.name)]
        parts = _parts(devices, pool.counters)
        pool.generation += 1
        old, pool.published = pool.published, []
        for index, part in enumerate(parts):
            wanted = self._slice(driver, pool, index, part, len(parts))
            known = old[index] if index < len(old) else None
            pool.published.append(await self._write(wanted, known))
        for known in old[len(parts) :]:
            await self._remove(known)
        event = SlicePublished(node=self._node, driver=driver.name, generation=pool.generation, devices=len(devices))
        self._env.log(event)

    def _slice(self, driver: Driver, of: Pool, index: int, part: _Part, count: int) -> ResourceSlice:
        found = _slice(driver.name, self._node, of, part, count)
        assert self._owner is not None
        found.metadata.generateName = f"{index:0{len(f'{count - 1:x}')}x}-{driver.name}-{self._node}-"
        reference = meta.owner_reference(self._owner, "v1", "Node")
        reference.ClearField("blockOwnerDeletion")
        found.metadata.ownerReferences.append(reference)
        return found

    async def _write(self, wanted: ResourceSlice, known: ResourceSlice | None) -> ResourceSlice:
        if known is not None:
            changed = meta.copied(known)
            changed.metadata.ClearField("resourceVersion")
            changed.spec.CopyFrom(wanted.spec)
            try:
                return await retries.patiently(self._env, lambda: self._client.update(changed))
            except errors.NotFound:
                pass
        return await retries.patiently(self._env, lambda: self._client.create(wanted))

    async def _remove(self, known: ResourceSlice) -> None:
        try:
            name = known.metadata.name
            await retries.patiently(self._env, lambda: self._client.delete("resourceslices", name))
        except errors.NotFound:
            pass

    # --- preparing ---------------------------------------------------------------------------------------------------

    async def prepare(self, driver: Driver, claim: str, devices: Iterable[str]) -> str:
        """``NodePrepareResources``. Returns what is wrong; of devices that are not there in the words of Kubernetes'
        example driver (``dra-example-driver``)."""
        await self._take(driver.prepare)
        for device in devices:
            if self._has_vanished(device):
                return f"requested device is not allocatable: {device}"
        for fault in self._failing.values():
            if fault.random.random() < fault.parameters.get("failures", 1.0):
                fault.hit("")
                return f"driver {driver.name} cannot prepare claim {claim}"
        return ""

    async def unprepare(self, driver: Driver) -> None:
        """``NodeUnprepareResources``."""
        await self._take(driver.unprepare)

    async def _take(self, time: distributions.Distribution) -> None:
        seconds = time.constant if time.constant is not None else time.draw(self._env.random)
        if seconds > 0:
            await self._env.clock.sleep(seconds)

    # --- faults ------------------------------------------------------------------------------------------------------

    def _begin(self, kind: dict[str, Assignment], fault: Assignment) -> End:
        kind[fault.id] = fault
        return lambda: kind.pop(fault.id, None)

    def _vanish(self, fault: Assignment) -> End:
        self._vanished[fault.id] = fault
        fault.hit("")
        self._changed()

        def end() -> None:
            del self._vanished[fault.id]
            self._changed()

        return end

    def _has_vanished(self, device: str) -> bool:
        return any(_names(fault, device) for fault in self._vanished.values())

    def _fall_ill(self, fault: Assignment) -> End:
        self._unhealthy[fault.id] = fault
        fault.hit("")
        self.on_health()

        def end() -> None:
            del self._unhealthy[fault.id]
            self.on_health()

        return end

    def health(self, driver: str, device: str) -> tuple[str, str]:
        """``Healthy``, ``Unhealthy`` or ``Unknown``, and what the driver says of it."""
        known = self.by_name.get(driver)
        if known is None or not known.reports_health:
            return "Unknown", ""
        for fault in self._unhealthy.values():
            if _names(fault, device):
                return "Unhealthy", fault.parameters.get("message") or ""
        return "Healthy", ""

    def _changed(self) -> None:
        for driver in self.by_name.values():
            if any(pool.generation for pool in driver.pools):
                self._env.spawn(self._publish(driver), f"slices of {driver.name}")


def _names(fault: Assignment, device: str) -> bool:
    return any(fnmatch.fnmatchcase(device, pattern) for pattern in fault.parameters.get("devices") or ["*"])


def _parts(devices: Sequence[Device], counters: Sequence[CounterSet]) -> list[_Part]:
    """Of a pool, as many in a slice as the API allows."""
    is_advanced = any(device.taints or device.consumesCounters for device in devices)
    limit = MOST_WITH_TAINTS if is_advanced else MOST_IN_SLICE
    return [
        *(_Part(counters=counters[at : at + MOST_COUNTERS]) for at in range(0, len(counters), MOST_COUNTERS)),
        *(_Part(devices=devices[at : at + limit]) for at in range(0, len(devices), limit)),
    ]


def _slice(driver: str, node: str, of: Pool, part: _Part, count: int) -> ResourceSlice:
    """Without a name."""
    found = ResourceSlice()
    found.spec.driver, found.spec.nodeName = driver, node
    pool = found.spec.pool
    pool.name, pool.generation, pool.resourceSliceCount = of.name, of.generation, count
    found.spec.devices.extend(part.devices)
    found.spec.sharedCounters.extend(part.counters)
    return found


def slices_of(node: str, stated: Sequence[Mapping[str, Any]]) -> list[ResourceSlice]:
    """What the drivers of a node will publish, with names of their own. ``stated``: :class:`Devices` as plain data."""
    found = []
    for driver in drivers_of(node, stated).values():
        for pool in driver.pools:
            parts = _parts(pool.devices, pool.counters)
            for index, part in enumerate(parts):
                one = _slice(driver.name, node, pool, part, len(parts))
                one.metadata.name = f"{driver.name}-{pool.name}-{index}"
                found.append(one)
    return found


def drivers_of(node: str, stated: Sequence[Mapping[str, Any]]) -> dict[str, Driver]:
    """By name. ``stated``: :class:`Devices` as plain data."""
    groups: dict[str, list[Devices]] = {}
    for one in stated:
        group = restored(Devices, one)
        groups.setdefault(group.driver, []).append(group)
    return {name: Driver(name, node, found) for name, found in groups.items()}


def devices_of(group: Devices) -> list[Device]:
    """Raises ValueError for an attribute that is none, ConversionError for a taint or a device that is none."""
    if group.count is None:
        return [convert.from_json(Device, one) for one in group.devices]
    template = Device()
    for name, value in group.attributes.items():
        template.attributes[name].CopyFrom(_attribute(name, value))
    for name, amount in group.capacity.items():
        template.capacity[name].value.string = amount
    if group.shared:
        template.allowMultipleAllocations = True
    for taint in group.taints:
        template.taints.append(convert.from_json(DeviceTaint, taint))
    found = []
    for number in range(group.count):
        device = meta.copied(template)
        device.name = f"{group.prefix}-{number}"
        found.append(device)
    return found


def counters_of(group: Devices) -> list[CounterSet]:
    """Raises ConversionError for what is none."""
    return [convert.from_json(CounterSet, one) for one in group.shared_counters]


def _attribute(name: str, value: object) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool=value)
    if isinstance(value, int):
        return DeviceAttribute(int=value)
    if isinstance(value, str):
        return DeviceAttribute(string=value)
    if isinstance(value, Mapping) and set(value) == {"version"} and isinstance(value["version"], str):
        return DeviceAttribute(version=value["version"])
    raise ValueError(f"{name}: must be a text, a whole number, true, false, or {{version: 1.2.3}}")
