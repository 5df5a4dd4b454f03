"""Which pods must go because a device that they use has a NoExecute taint, and when: the decisions of
:mod:`kemu.emulated.controllers.devices.taint_evictions`.

Told of changed claims, slices and pods, it says of each pod concerned when it has to be evicted, or no longer. Mirrors
``pkg/controller/devicetainteviction`` without DeviceTaintRules, whose feature gate is off. Times are Unix ns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kemu.emulated.objects import meta
from kemu.emulated.objects.devices import claims
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import (
    Device,
    DeviceRequestAllocationResult,
    DeviceTaint,
    ResourceClaim,
    ResourceSlice,
)

NO_EXECUTE = "NoExecute"
_SECOND_NS = 1_000_000_000

PoolKey = tuple[str, str]
"""Driver and pool."""


class PodKey(NamedTuple):
    """One instance of a pod."""

    key: str
    """``namespace/name``."""
    uid: str


class Eviction(NamedTuple):
    at_ns: int
    taints: tuple[tuple[str, str, str, int], ...]
    """The reasons, in order: driver, pool, device and the number of the taint."""


class _Pool:
    __slots__ = ("generation", "slices")

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.generation = 0

    def replace(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None:
            self.slices.pop(old.metadata.name, None)
        if new is not None:
            self.slices[new.metadata.name] = new
        self.generation = max((one.spec.pool.generation for one in self.slices.values()), default=0)

    def devices(self) -> Iterable[Device]:
        """Those of the newest generation."""
        for one in self.slices.values():
            if one.spec.pool.generation == self.generation:
                yield from one.spec.devices

    def device(self, name: str) -> Device | None:
        return next((one for one in self.devices() if one.name == name), None)

    def tainted(self) -> list[tuple[str, DeviceTaint]]:
        found = [(device.name, taint) for device in self.devices() for taint in device.taints]
        return sorted(((name, taint) for name, taint in found if taint.effect == NO_EXECUTE), key=lambda one: one[0])


class TaintedDevices:
    """``evict(pod, eviction)`` and ``cancel(pod)`` are called as the state changes; both may come again without
    news."""

    def __init__(
        self,
        pods: Mapping[str, core_v1_pb2.Pod],
        evict: Callable[[PodKey, Eviction], None],
        cancel: Callable[[PodKey], None],
        *,
        of_groups: bool = False,
    ) -> None:
        """``pods``: by key, as they are now. ``of_groups``: claims may be those of PodGroups."""
        self._of_groups = of_groups
        self._pods = pods
        self._evict, self._cancel = evict, cancel
        self._claims: dict[str, tuple[ResourceClaim, Eviction | None]] = {}
        """Allocated ones, by key."""
        self._pools: dict[PoolKey, _Pool] = {}

    # --- claims ------------------------------------------------------------------------------------------------------

    def set_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """``handleClaimChange``. ``old`` None: it was added; ``new`` None: it was deleted."""
        if new is None:
            if old is not None:
                self._claims.pop(meta.namespaced_name(old), None)
                self._handle_consumers(old)
            return
        if old is not None and old.metadata.uid != new.metadata.uid:
            self.set_claim(old, None)
            old = None
        key = meta.namespaced_name(new)
        was, is_allocated = old is not None and old.status.HasField("allocation"), new.status.HasField("allocation")
        if is_allocated:
            # An allocation does not change.
            known = self._claims.get(key) if was else None
            self._claims[key] = new, self._eviction_of(new) if known is None else known[1]
        elif was:
            self._claims.pop(key, None)
        else:
            return
        if old is not None and list(old.status.reservedFor) != list(new.status.reservedFor):
            self._handle_consumers(old)
        self._handle_consumers(new)

    def _eviction_of(self, claim: ResourceClaim) -> Eviction | None:
        """``claimEvictionTime``."""
        at_ns: int | None = None
        reasons: dict[tuple[str, str, str, int], None] = {}
        for result in claim.status.allocation.devices.results:
            pool = self._pools.get((result.driver, result.pool))
            device = None if pool is None else pool.device(result.device)
            if device is None:
                continue
            for number, taint in enumerate(device.taints):
                if taint.effect != NO_EXECUTE:
                    continue
                stays_ns = _tolerated_ns(result, taint)
                if stays_ns is None:
                    continue
                reasons[result.driver, result.pool, device.name, number] = None
                due_ns = meta.unix_ns(taint.timeAdded) + stays_ns
                at_ns = due_ns if at_ns is None else min(at_ns, due_ns)
        return None if at_ns is None else Eviction(at_ns, tuple(sorted(reasons)))

    def _handle_consumers(self, claim: ResourceClaim) -> None:
        """``handlePods``."""
        for consumer in claim.status.reservedFor:
            if self._of_groups and claims.is_group(consumer):
                self._handle_members(claim.metadata.namespace, consumer.name)
            if consumer.apiGroup or consumer.resource != "pods":
                continue
            pod = self._pods.get(f"{claim.metadata.namespace}/{consumer.name}")
            if pod is not None and pod.metadata.uid == consumer.uid:
                self._handle_pod(pod)

    def _handle_members(self, namespace: str, group: str) -> None:
        for pod in list(self._pods.values()):
            if pod.metadata.namespace == namespace and pod.spec.schedulingGroup.podGroupName == group:
                self._handle_pod(pod)

    # --- slices ------------------------------------------------------------------------------------------------------

    def set_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """``handleSliceChange``."""
        one = old if new is None else new
        assert one is not None
        key = one.spec.driver, one.spec.pool.name
        pool = self._pools.setdefault(key, _Pool())
        before = pool.tainted()
        pool.replace(old, new)
        if not pool.slices:
            del self._pools[key]
        after = pool.tainted()
        if not before and not after:
            return
        modified = _modified(before, after)
        for name, (claim, eviction) in list(self._claims.items()):
            results = claim.status.allocation.devices.results
            if not any((each.driver, each.pool) == key and each.device in modified for each in results):
                continue
            found = self._eviction_of(claim)
            # None is no less news than before: nothing can come of it.
            if found is None or found != eviction:
                self._claims[name] = claim, found
                self._handle_consumers(claim)

    # --- pods --------------------------------------------------------------------------------------------------------

    def set_pod(self, old: core_v1_pb2.Pod | None, new: core_v1_pb2.Pod | None) -> None:
        """``handlePodChange``."""
        if new is None:
            if old is not None:
                self._cancel(key_of(old))
            return
        if (
            old is not None
            and old.spec.nodeName == new.spec.nodeName
            and list(old.status.resourceClaimStatuses) == list(new.status.resourceClaimStatuses)
        ):
            return
        self._handle_pod(new)

    def _handle_pod(self, pod: core_v1_pb2.Pod) -> None:
        eviction = self._eviction_of_pod(pod)
        if eviction is None:
            self._cancel(key_of(pod))
        else:
            self._evict(key_of(pod), eviction)

    def _eviction_of_pod(self, pod: core_v1_pb2.Pod) -> Eviction | None:
        """``podEvictionTime``."""
        if not pod.spec.nodeName:
            return None
        found: Eviction | None = None
        for entry in pod.spec.resourceClaims:
            try:
                name, must_own = claims.name_of(pod, entry)
            except claims.NotMade:
                continue
            claim, eviction = self._claims.get(f"{pod.metadata.namespace}/{name}", (None, None))
            if claim is None or eviction is None:
                continue
            if must_own and claims.not_for_pod(pod, claim, of_groups=self._of_groups):
                continue
            if not claims.is_reserved_for(pod, claim, of_groups=self._of_groups):
                continue
            if found is None:
                found = eviction
            else:
                reasons = tuple(sorted({*found.taints, *eviction.taints}))
                found = Eviction(min(found.at_ns, eviction.at_ns), reasons)
        return found


def key_of(pod: core_v1_pb2.Pod) -> PodKey:
    return PodKey(meta.namespaced_name(pod), pod.metadata.uid)


def _tolerated_ns(result: DeviceRequestAllocationResult, taint: DeviceTaint) -> int | None:
    """None: for ever."""
    least_s: int | None = None
    for toleration in result.tolerations:
        if toleration.effect != NO_EXECUTE or not claims.tolerates(toleration, taint):
            continue
        if not toleration.HasField("tolerationSeconds"):
            return None
        seconds = max(0, toleration.tolerationSeconds)
        least_s = seconds if least_s is None else min(least_s, seconds)
    return (least_s or 0) * _SECOND_NS


def _modified(before: list[tuple[str, DeviceTaint]], after: list[tuple[str, DeviceTaint]]) -> set[str]:
    """Devices whose taints differ, found as the controller finds them: side by side, in the order of their names."""
    found: set[str] = set()
    o = n = 0
    while o < len(before) or n < len(after):
        while o < len(before) and n < len(after) and before[o][0] == after[n][0]:
            if before[o][1] != after[n][1]:
                found.add(before[o][0])
            o, n = o + 1, n + 1
        new = after[n][0] if n < len(after) else ""
        while o < len(before) and before[o][0] != new:
            found.add(before[o][0])
            o += 1
        old = before[o][0] if o < len(before) else ""
        if n < len(after) and after[n][0] != old:
            found.add(after[n][0])
            n += 1
    return found
