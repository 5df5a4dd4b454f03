"""The claims of one pod in one attempt: PreFilter, Filter, Score and Reserve of the plugin DynamicResources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from kemu.emulated.cel.numbers import quoted
from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.devices import claims as owners
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.devices import extended, results
from kemu.emulated.scheduler.devices.allocators import AllocationError, Allocator, Plan
from kemu.emulated.scheduler.devices.extended import ForContainer
from kemu.emulated.scheduler.devices.trackers import Claim, Devices
from kemu.emulated.scheduler.framework.statuses import ERROR, Status, unresolvable
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.messages.k8s.scheduling_v1alpha2_pb2 import PodGroup

FINALIZER = "resource.kubernetes.io/delete-protection"
BINDING_TIMEOUT_S = 600
_MOST_ALTERNATIVES = 8
"""``FirstAvailableDeviceRequestMaxSize``: what the first alternative of a request scores."""


_NO_ENTRY = core_v1_pb2.PodResourceClaim()
_NOT_ALL = unresolvable("cannot allocate all claims")


class Missing(Exception):
    """A claim of the pod is not there, or not the pod's."""


def claims_of(pod: core_v1_pb2.Pod, devices: Devices) -> list[Claim]:
    """The claims that the pod names, without those that it needs none for. Raises Missing."""
    found: list[Claim] = []
    metadata = pod.metadata
    for entry in pod.spec.resourceClaims:
        own = False
        if entry.HasField("resourceClaimName"):
            name = entry.resourceClaimName
        elif entry.HasField("resourceClaimTemplateName"):
            own = True
            status = next((one for one in pod.status.resourceClaimStatuses if one.name == entry.name), None)
            if status is None:
                raise Missing(f'pod "{metadata.namespace}/{metadata.name}": ResourceClaim not created yet')
            if not status.HasField("resourceClaimName"):
                continue
            name = status.resourceClaimName
        else:
            where = f'pod "{metadata.namespace}/{metadata.name}", spec.resourceClaim "{entry.name}"'
            raise Missing(f"{where}: none of the supported fields are set")
        key = f"{metadata.namespace}/{name}"
        claim = devices.claims.get(key)
        if claim is None:
            raise Missing(f'could not find ResourceClaim "{key}"')
        if claim.metadata.HasField("deletionTimestamp"):
            raise Missing(f'resourceclaim "{name}" is being deleted')
        if own and (why := owners.not_for_pod(pod, claim, of_groups=devices.of_groups)):
            raise Missing(why)
        found.append(claim)
    return found


class NodePlan(NamedTuple):
    """What Filter found for a node."""

    plans: list[Plan]
    special: Claim | None
    """The claim for extended resources, with the requests that it has for this node."""
    mappings: list[ForContainer]


class PodClaims:
    """``stateData``. Claims are replaced as they are written."""

    __slots__ = (
        "_allocated", "_allocator", "_amounts", "_devices", "_group", "_has_alternatives", "_made", "_selectors",
        "_statuses", "_verdicts", "_wanted", "allocations", "by_node", "claims", "in_memory_uid", "of_user", "pod",
        "shared", "unavailable",
    )  # fmt: skip

    def __init__(
        self,
        pod: core_v1_pb2.Pod,
        devices: Devices,
        of_user: list[Claim],
        special: Claim | None,
        group: PodGroup | None = None,
    ) -> None:
        """``group``: that of the pod, if it may have claims."""
        self.pod = pod
        self._group = group
        self._devices = devices
        self.claims = of_user if special is None else [*of_user, special]
        self.of_user = len(of_user)
        """How many of the claims the pod names; the last one may be for extended resources."""
        self.in_memory_uid: str = "" if special is None else special.metadata.uid
        self._amounts: dict[str, int] = {}
        self._selectors: dict[int, selectors.NodeSelector] = {}
        self._allocator: Allocator | None = None
        self._allocated: list[int] = []
        """The places of claims that are allocated."""
        self._wanted: list[Claim] = []
        """Claims that need devices on each node."""
        self._made: dict[tuple[str, ...], tuple[Claim, list[ForContainer]]] = {}
        """The claim for extended resources, by those that a node does not offer."""
        self._has_alternatives = any(one.firstAvailable for claim in of_user for one in claim.spec.devices.requests)
        self.by_node: dict[str, NodePlan] = {}
        self.unavailable: dict[int, None] = {}
        """Allocated claims, by place, that cannot be used on some node, or are not ready."""
        self.allocations: dict[int, resource_v1_pb2.AllocationResult] = {}
        """What Reserve allocated, by the place of the claim."""
        self.shared: dict[int, resource_v1_pb2.AllocationResult] = {}
        """Allocations in flight, by the place of the claim, that an earlier member of the pod's group waits for."""
        self._verdicts: dict[str, int] = {}
        self._statuses: list[Status] = []

    @property
    def special(self) -> Claim | None:
        return self.claims[self.of_user] if len(self.claims) > self.of_user else None

    def consumer(self, place: int) -> resource_v1_pb2.ResourceClaimConsumerReference:
        """For whom a claim is to be reserved (``getBinding``). As in Kubernetes, its place is taken for that of its
        entry, even if an entry before it needs no claim."""
        entries = self.pod.spec.resourceClaims
        if place < len(entries):
            return owners.consumer_of(self.pod, self._group, entries[place])
        return owners.consumer_of(self.pod, None, _NO_ENTRY)

    def unallocated(self) -> Iterator[tuple[int, Claim]]:
        for place, claim in enumerate(self.claims):
            if not claim.status.HasField("allocation"):
                yield place, claim

    # PreFilter ------------------------------------------------------------------------------------------------------

    def prepare(self, amounts: dict[str, int], pending: Collection[str] = ()) -> Status | None:
        """``amounts``: the pod's requests of resources that devices may stand behind; ``pending``: UIDs of claims that
        the present attempt at its group has allocated. A status rejects the pod."""
        self._amounts = amounts
        devices = self._devices
        allocates = False
        for place, claim in enumerate(self.claims):
            if claim.status.HasField("allocation"):
                if claim.status.allocation.HasField("nodeSelector"):
                    self._selectors[place] = selectors.NodeSelector(claim.status.allocation.nodeSelector)
                continue
            allocates = True
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            if claim.metadata.uid in devices.in_flight and claim.metadata.uid in pending:
                # On whichever node: its selector is not asked.
                self.shared[place] = devices.in_flight[claim.metadata.uid].status.allocation
                continue
            if claim.metadata.uid in devices.in_flight:
                return unresolvable(f"resource claim {key} is in the process of being allocated")
            if place < self.of_user:
                status = self._check_classes(claim, key)
                if status is not None:
                    return status
        self._allocated = [place for place, one in enumerate(self.claims) if one.status.HasField("allocation")]
        self._wanted = [claim for place, claim in self.unallocated() if place not in self.shared]
        if allocates:
            self._allocator = Allocator(devices.allocated(), devices.classes, devices.pools_of)
        return None

    def _check_classes(self, claim: Claim, key: str) -> Status | None:
        for request in claim.spec.devices.requests:
            if request.HasField("exactly"):
                asked = [(request.name, request.exactly.deviceClassName)]
            elif request.firstAvailable:
                asked = [(f"{request.name}/{one.name}", one.deviceClassName) for one in request.firstAvailable]
            else:
                return unresolvable(f"resource claim {key}, request {request.name}: unknown request type")
            for name, class_name in asked:
                if not class_name:
                    return Status(ERROR, (f"request {name}: unsupported request type",))
                if class_name not in self._devices.classes:
                    return unresolvable(f"request {name}: device class {class_name} does not exist")
        return None

    # Filter ---------------------------------------------------------------------------------------------------------

    def verdict(self, node: NodeInfo, now_ns: int, timeout_s: float) -> int:
        """The pods of the node do not matter, so that one answer serves all simulations."""
        known = self._verdicts.get(node.name)
        if known is None:
            status = self._filter(node, now_ns, timeout_s)
            known = 0
            if status is not None:
                if status not in self._statuses:
                    self._statuses.append(status)
                known = 1 + self._statuses.index(status)
            self._verdicts[node.name] = known
        return known

    def explain(self, verdict: int) -> Status:
        return self._statuses[verdict - 1]

    def _filter(self, node: NodeInfo, now_ns: int, timeout_s: float) -> Status | None:
        special: Claim | None = None
        mappings: list[ForContainer] = []
        if self.special is not None:
            answer = self._special_for(node, self.special)
            if isinstance(answer, Status):
                return answer
            special, mappings = answer
            if special is None and not self.of_user:
                return None
        unavailable = [
            place
            for place in self._allocated
            if not self._is_usable(place, self.claims[place], node, now_ns, timeout_s)
        ]
        plans: list[Plan] = []
        if self._allocator is not None:
            wanted = self._wanted if special is None else [*self._wanted[:-1], special]
            try:
                found = self._allocator.allocate(node, wanted)
            except AllocationError as error:
                return unresolvable(str(error)) if error.of_node else Status(ERROR, (str(error),))
            if found is None:
                return _NOT_ALL
            plans = found
        if unavailable:
            self.unavailable.update(dict.fromkeys(unavailable))
            return unresolvable("resourceclaim not available on the node")
        if self._allocator is not None:
            self.by_node[node.name] = NodePlan(plans, special, mappings)
        return None

    def _special_for(self, node: NodeInfo, special: Claim) -> Status | tuple[Claim | None, list[ForContainer]]:
        """The claim for extended resources as it is for a node; none where device plugins offer them all."""
        if special.spec.devices.requests:
            # An earlier attempt has left it; PostFilter deletes it.
            return unresolvable("cannot schedule extended resource claim")
        allocatable = node.node.status.allocatable
        wanted: list[str] = []
        for resource in self._amounts:
            offered = allocatable[resource].string if resource in allocatable else ""
            if resource in self._devices.by_resource and not (offered and quantities.parse(offered).value):
                wanted.append(resource)
            elif not offered:
                return unresolvable("cannot fit resource")
        if not self.of_user and not wanted:
            return None, []
        if special.status.HasField("allocation"):
            return None, []
        known = self._made.get(tuple(wanted))
        if known is None:
            made = Claim()
            made.CopyFrom(special)
            asked, mappings = extended.requests_for(self.pod, wanted, self._devices.by_resource)
            made.spec.devices.requests.extend(asked)
            known = self._made[tuple(wanted)] = made, mappings
        return known

    def _is_usable(self, place: int, claim: Claim, node: NodeInfo, now_ns: int, timeout_s: float) -> bool:
        where = self._selectors.get(place)
        if where is not None and not where.matches(node.labels, node.name):
            return False
        if not claim.status.HasField("allocation"):
            return True
        ready, failure = readiness(claim)
        return not failure and (ready or not is_overdue(claim, now_ns, timeout_s))

    # Score, Reserve -------------------------------------------------------------------------------------------------

    def score(self, node: str) -> int:
        """More for earlier alternatives of prioritized lists."""
        found = self.by_node.get(node)
        if found is None or not self._has_alternatives:
            return 0
        made = [{one.request.full_name for one in plan.devices} for plan in found.plans]
        made += [{one.request for one in shared.devices.results} for shared in self.shared.values()]
        left = iter(made)
        score = 0
        for claim in self.claims:
            if claim.status.HasField("allocation"):
                names = {one.request for one in claim.status.allocation.devices.results}
            else:
                names = next(left)
            for request in claim.spec.devices.requests:
                for place, one in enumerate(request.firstAvailable):
                    if f"{request.name}/{one.name}" in names:
                        score += _MOST_ALTERNATIVES - place
        return score

    def reserve(self, node: str, share_id: Callable[[], str]) -> Status | None:
        """Make the allocations of the node known to the attempts that follow."""
        wanted = list(self.unallocated())
        if not wanted:
            return None
        found = self.by_node.get(node)
        if found is None or not (found.plans or self.shared):
            if all(place >= self.of_user for place, _claim in wanted):
                return None  # the node's device plugins offer it all
            return Status(ERROR, ("claim allocation not found for node",))
        made = [results.allocation(plan, node, share_id) for plan in found.plans]
        # As in Kubernetes: behind the new ones, whichever claims they are of.
        made += self.shared.values()
        for (place, claim), allocation in zip(wanted, made, strict=True):
            self.allocations[place] = allocation
            pending = Claim()
            pending.CopyFrom(found.special if place >= self.of_user and found.special is not None else claim)
            if FINALIZER not in pending.metadata.finalizers:
                pending.metadata.finalizers.append(FINALIZER)
            pending.status.allocation.CopyFrom(allocation)
            self._devices.signal(claim.metadata.uid, pending)
        return None


def readiness(claim: Claim) -> tuple[bool, str]:
    """Whether all binding conditions of the allocated devices hold; or the reason why binding failed."""
    if not claim.status.HasField("allocation"):
        return False, ""
    for result in claim.status.allocation.devices.results:
        if not result.bindingConditions:
            continue
        key = (result.driver, result.pool, result.device)
        status = next((one for one in claim.status.devices if (one.driver, one.pool, one.device) == key), None)
        if status is None:
            return False, ""
        for kind in result.bindingFailureConditions:
            failed = next((one for one in status.conditions if one.type == kind), None)
            if failed is not None and failed.status == "True":
                name, message = claim.metadata.name, quoted(failed.message)
                return False, f"device binding failed: claim={name}, reason={failed.reason}, message={message}"
        for kind in result.bindingConditions:
            if not any(one.type == kind and one.status == "True" for one in status.conditions):
                return False, ""
    return True, ""


def is_overdue(claim: Claim, now_ns: int, timeout_s: float) -> bool:
    """Whether its devices have not become ready in time."""
    allocation = claim.status.allocation
    if not claim.status.HasField("allocation") or not allocation.HasField("allocationTimestamp"):
        return False
    made = allocation.allocationTimestamp
    end_ns = made.seconds * 10**9 + made.nanos + round(timeout_s * 10**9)
    return end_ns < now_ns and any(one.bindingConditions for one in allocation.devices.results)


def has_conditions(claim: Claim) -> bool:
    return any(one.bindingConditions for one in claim.status.allocation.devices.results)
