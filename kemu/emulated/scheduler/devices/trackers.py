"""What the scheduler knows about devices: claims, slices and classes, and which allocations are on their way.

As kube-scheduler's ``DefaultDRAManager``: claims are read through an assume cache, on top of which lie the allocations
that a pod's Reserve has made and its PreBind has not written yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kemu.emulated.objects import meta
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.devices import pools
from kemu.emulated.scheduler.devices.inventory import Slice
from kemu.emulated.scheduler.devices.pools import Pool
from kemu.emulated.scheduler.devices.states import AllocatedState
from kemu.messages.k8s import resource_v1_pb2
from kemu.runtime.env import Clock

Claim = resource_v1_pb2.ResourceClaim
DeviceClass = resource_v1_pb2.DeviceClass

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""``true``: the scheduler has made the claim for the extended resources of its owner."""
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""The resource of this prefix and the name of a class stands for devices of the class."""


class Devices:
    """All by name, or by ``ns/name``, in the order in which they appeared."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.of_groups = False
        """The feature gate DRAWorkloadResourceClaims: claims may be those of PodGroups."""
        self.claims: dict[str, Claim] = {}
        """As this scheduler assumes them, or as the watch has shown them."""
        self._special: dict[tuple[str, str], dict[str, Claim]] = {}
        """Those for extended resources, by name and UID of the pod."""
        self._shown: dict[str, Claim] = {}
        self.slices: dict[str, Slice] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.by_resource: dict[str, DeviceClass] = {}
        """The classes that stand behind extended resources."""
        self.mapping = 0
        """Counts changes of ``by_resource``."""
        self.in_flight: dict[str, Claim] = {}
        """Claims with allocations that are not written yet, by UID."""
        self._sharers: dict[str, int] = {}
        """By UID of a claim in flight: how many pods wait for its allocation, where several do."""
        self._allocated = AllocatedState()
        self.on_claim: Callable[[Claim | None, Claim | None], object] = lambda old, new: None
        """Called when a claim changed, before and after it, in whatever way."""
        self._on_node: dict[str, list[Slice]] = {}
        """Slices of one node, by its name."""
        self._shared: list[Slice] = []
        """All others; those with counters are among them."""
        self._pools: dict[str, tuple[object, list[Pool]]] = {}
        """By node, with the Node that they were gathered for."""
        self._is_sorted = True

    # Claims ---------------------------------------------------------------------------------------------------------

    def set_claim(self, claim: Claim) -> None:
        """The watch shows a claim; what is assumed stays as long as it is newer."""
        key = meta.namespaced_name(claim)
        old = self.claims.get(key)
        if old is not None and _version(claim) <= _version(old):
            return
        self._shown[key] = claim
        self._replace(key, old, claim)

    def remove_claim(self, claim: Claim) -> None:
        key = meta.namespaced_name(claim)
        self._shown.pop(key, None)
        self._replace(key, self.claims.get(key), None)

    def assume(self, claim: Claim) -> bool:
        """Take a claim for what it is after a write of this scheduler. False: the watch has not shown it yet, or has
        shown a newer one."""
        key = meta.namespaced_name(claim)
        old = self.claims.get(key)
        if old is None or _version(claim) < _version(old):
            return False
        self._replace(key, old, claim)
        return True

    def restore(self, key: str) -> None:
        """Forget what is assumed of a claim."""
        shown, now = self._shown.get(key), self.claims.get(key)
        if shown is not None and now is not shown:
            self._replace(key, now, shown)

    def _replace(self, key: str, old: Claim | None, new: Claim | None) -> None:
        self._count(old, new)
        was_for, is_for = _special_for(old), _special_for(new)
        if was_for is not None and was_for != is_for:
            del self._special[was_for][key]
            if not self._special[was_for]:
                del self._special[was_for]
        if is_for is not None and new is not None:
            self._special.setdefault(is_for, {})[key] = new
        if new is None:
            self.claims.pop(key, None)
        else:
            self.claims[key] = new
        if old is not None or new is not None:
            self.on_claim(old, new)

    def special_of(self, pod: str, uid: str) -> Claim | None:
        """The first claim that was written for the extended resources of a pod."""
        return next(iter(self._special.get((pod, uid), {}).values()), None)

    def signal(self, uid: str, claim: Claim) -> None:
        """A pod waits for this allocation; or shares the one that is in flight (``SignalClaimPendingAllocation``)."""
        if uid in self.in_flight:
            self._sharers[uid] = self._sharers.get(uid, 1) + 1
        else:
            self.in_flight[uid] = claim

    def release(self, uid: str, *, force: bool = False) -> bool:
        """A pod waits no longer, or none needs to. Returns whether the claim is no longer in flight
        (``MaybeRemoveClaimPendingAllocation``)."""
        left = self._sharers.pop(uid, 1) - 1
        if left and not force:
            self._sharers[uid] = left
            return False
        return self.in_flight.pop(uid, None) is not None

    def _count(self, old: Claim | None, new: Claim | None) -> None:
        """Devices are allocated, or free again."""
        had = old is not None and old.status.HasField("allocation")
        has = new is not None and new.status.HasField("allocation")
        if had and not has:
            assert old is not None
            self._allocated.remove(old)
        elif has and not had:
            assert new is not None
            self._allocated.add(new)

    def allocated(self) -> AllocatedState:
        """What is allocated, or about to be. A copy."""
        found = self._allocated.copy()
        for claim in self.in_flight.values():
            found.add(claim)
        return found

    # Slices and classes ---------------------------------------------------------------------------------------------

    def set_slice(self, message: resource_v1_pb2.ResourceSlice, *, is_there: bool) -> None:
        name = message.metadata.name
        if is_there:
            self.slices[name] = Slice(message)
        else:
            self.slices.pop(name, None)
        self._is_sorted = False

    def slices_of(self, node: str) -> list[Slice]:
        """Those of this node alone."""
        return [one for one in self.slices.values() if one.where.name == node]

    def add_slices(self, slices: Iterable[Slice]) -> None:
        self.slices.update((one.name, one) for one in slices)
        self._is_sorted = False

    def drop_slices(self, slices: Iterable[Slice]) -> None:
        for one in slices:
            self.slices.pop(one.name, None)
        self._is_sorted = False

    def pools_of(self, node: NodeInfo) -> list[Pool]:
        """The pools for a node, gathered anew when slices or the node have changed."""
        if not self._is_sorted:
            self._on_node, self._shared, self._pools, self._is_sorted = {}, [], {}, True
            for one in self.slices.values():
                if one.where.name and not one.counter_sets:
                    self._on_node.setdefault(one.where.name, []).append(one)
                else:
                    self._shared.append(one)
        known = self._pools.get(node.name)
        if known is None or known[0] is not node.node:
            slices = [*self._on_node.get(node.name, ()), *self._shared]
            found = pools.gather(slices, node, list(self.slices.values()))
            known = self._pools[node.name] = node.node, found
        return known[1]

    def set_class(self, new: DeviceClass) -> None:
        """Of classes with the same extended resource the newer one stands behind it, then the one whose name comes
        first; one that loses is not mapped at all, as in Kubernetes (``updateResourceName2class``)."""
        old = self.classes.get(new.metadata.name)
        self.classes[new.metadata.name] = new
        self.mapping += 1
        resource = new.spec.extendedResourceName
        rival = self.by_resource.get(resource) if new.spec.HasField("extendedResourceName") else None
        if rival is not None:
            made, others = new.metadata.creationTimestamp.seconds, rival.metadata.creationTimestamp.seconds
            if made < others or (made == others and new.metadata.name >= rival.metadata.name):
                return
        if old is not None:
            self._unmap(old)
        if new.spec.HasField("extendedResourceName"):
            self.by_resource[resource] = new
        self.by_resource[IMPLICIT + new.metadata.name] = new

    def remove_class(self, old: DeviceClass) -> None:
        self.classes.pop(old.metadata.name, None)
        self.mapping += 1
        self._unmap(old)

    def _unmap(self, old: DeviceClass) -> None:
        self.by_resource.pop(IMPLICIT + old.metadata.name, None)
        if old.spec.HasField("extendedResourceName"):
            self.by_resource.pop(old.spec.extendedResourceName, None)


def _special_for(claim: Claim | None) -> tuple[str, str] | None:
    """For the extended resources of which pod the scheduler has made the claim."""
    if claim is not None and claim.metadata.annotations.get(ANNOTATION) == "true":
        for owner in claim.metadata.ownerReferences:
            if owner.controller:
                return owner.name, owner.uid
    return None


def _version(claim: Claim) -> int:
    return int(claim.metadata.resourceVersion or 0)
