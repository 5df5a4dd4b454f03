"""DynamicResources: a pod goes where its ResourceClaims are, or where devices for them can be allocated; and they are,
before it is bound.

The decisions are those of :mod:`kemu.emulated.scheduler.devices`, which is imported for the first pod with claims. In a
cluster without devices the plugin rejects no node and claims nothing, but its PostFilter is asked before
DefaultPreemption and adds its word to the message; where PreFilter ended before it was asked, it finds no state and
ends PostFilter with an error.

Filter has no timeout (DRASchedulerFilterTimeout), as a search takes no virtual time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.events import Event, Hint, KeyedHint
from kemu.emulated.scheduler.framework.interfaces import (
    SKIP,
    Cycle,
    Diagnosis,
    FilterPlugin,
    Handle,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    ReservePlugin,
    ScorePlugin,
    SignPlugin,
    Skip,
)
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import ERROR, Status, unresolvable
from kemu.emulated.scheduler.plugins import normalizing
from kemu.messages.k8s import core_v1_pb2

if TYPE_CHECKING:
    from kemu.emulated.scheduler.devices.binding import Binder
    from kemu.emulated.scheduler.devices.pod_claims import PodClaims
    from kemu.emulated.scheduler.devices.trackers import Claim, Devices

BINDING_TIMEOUT_S = 600.0
_PLACES_OF_MAP = 8

_NO_STATE = PostFilterResult(message="not found", failed=True)
_NO_CLAIMS = PostFilterResult(message="no new claims to deallocate")


class DynamicResources(
    PreEnqueuePlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin, SignPlugin
):
    may_fail = True
    asks_passing = True
    ends_search = True
    normalizes = True

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self._timeout_s = float(args.get("bindingTimeout") or BINDING_TIMEOUT_S)
        self._devices: Devices | None = handle.cluster.devices
        self.is_idle = self._devices is None

    # PreEnqueue, PreFilter ------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return self._missing(pod.pod)

    def _missing(self, pod: core_v1_pb2.Pod) -> Status | None:
        if not pod.spec.resourceClaims or self._devices is None:
            return None
        from kemu.emulated.scheduler.devices import pod_claims

        try:
            pod_claims.claims_of(pod, self._devices)
        except pod_claims.Missing as missing:
            return unresolvable(str(missing))
        return None

    def prepare(self, cycle: Cycle) -> Any:
        cycle.data[self.name] = _NO_CLAIMS
        devices = self._devices
        if devices is None and cycle.template.spec.resourceClaims:
            return unresolvable("ResourceClaims are not watched by this scheduler")
        if devices is None or not (cycle.template.spec.resourceClaims or devices.by_resource):
            return SKIP
        from kemu.emulated.scheduler.devices import extended, pod_claims

        pod = cycle.message
        amounts = {name: amount for name, amount in cycle.requests.items() if extended.may_be_devices(name)}
        special: Claim | None = None
        try:
            of_user = pod_claims.claims_of(pod, devices)
        except pod_claims.Missing as missing:
            return unresolvable(str(missing))
        if any(name in devices.by_resource for name in amounts):
            uid = self._new_uid()  # even if an earlier attempt has written the claim
            written = devices.special_of(pod.metadata.name, pod.metadata.uid)
            special = extended.claim_in_memory(pod, uid) if written is None else written
        if not of_user and special is None:
            return SKIP
        state = pod_claims.PodClaims(pod, devices, of_user, special)
        status = state.prepare(amounts, self._pending())
        if status is not None:
            return status
        cycle.data[self.name] = state
        return state

    def _pending(self) -> set[str]:
        """UIDs of the claims that the attempt under way has allocated for members of its group."""
        groups = self.handle.groups
        return groups.trial[1].pending if groups is not None and groups.trial is not None else set()

    def _new_uid(self) -> str:
        """As ``uuid.NewUUID``: 122 bits by chance."""
        bits = self.handle.random.getrandbits(128) & ~(0xF << 76 | 0x3 << 62) | 4 << 76 | 2 << 62
        digits = f"{bits:032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    # Filter, PostFilter ---------------------------------------------------------------------------------------------

    def verdict(self, state: PodClaims, node: NodeInfo) -> int:
        clock = self.handle.clock
        return state.verdict(node, clock.unix_ns() if clock is not None else 0, self._timeout_s)

    def explain(self, state: PodClaims, verdict: int) -> Status:
        return state.explain(verdict)

    def passes_anyway(self, state: PodClaims, node: NodeInfo) -> bool:
        return not self.verdict(state, node)

    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        state: Any = diagnosis.cycle.data.get(self.name, _NO_STATE)
        if isinstance(state, PostFilterResult):
            return state
        claims: PodClaims = state
        uid = claims.pod.metadata.uid
        special = claims.special
        is_written = special is not None and not special.metadata.name.startswith("<")
        places = list(claims.unavailable)
        if len(places) > 1:
            # kube-scheduler takes them in the order of a map, whose first eight entries begin at any of eight places.
            first = self.handle.random.randrange(_PLACES_OF_MAP)
            places = [*places[first:], *places[:first]]
        for place in places:
            if place >= claims.of_user:
                if is_written:
                    break
                continue
            claim = claims.claims[place]
            users = claim.status.reservedFor
            if not users or (len(users) == 1 and users[0].uid == uid):
                deallocate = functools.partial(self._binder().deallocate, claim)
                return PostFilterResult(message="deallocation of ResourceClaim completed", write=deallocate)
        if is_written and special is not None:
            delete = functools.partial(self._binder().delete, special)
            return PostFilterResult(message="deletion of ResourceClaim completed", write=delete)
        return PostFilterResult(message="still not schedulable")

    def _binder(self) -> Binder:
        from kemu.emulated.scheduler.devices.binding import Binder, ClaimsApi

        handle = self.handle
        assert self._devices is not None
        assert handle.api is not None
        assert handle.clock is not None
        return Binder(self._devices, cast(ClaimsApi, handle.api), handle.clock, handle.random, self._timeout_s)

    # Score ----------------------------------------------------------------------------------------------------------

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        state = cycle.data.get(self.name, _NO_CLAIMS)
        return SKIP if isinstance(state, PostFilterResult) else state

    def score(self, state: PodClaims, node: NodeInfo) -> int:
        return state.score(node.name)

    def normalize(self, state: PodClaims, scores: IntArray) -> IntArray:
        return normalizing.by_maximum(scores)

    # Reserve, Unreserve ---------------------------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, node: str) -> Status | None:
        state = self._state(cycle)
        if state is None:
            return None
        status = state.reserve(node, self._new_uid)
        self._pending().update(state.claims[place].metadata.uid for place in state.allocations)
        return status

    def unreserve(self, cycle: Cycle, node: str) -> None:
        state, devices = self._state(cycle), self._devices
        if state is None or devices is None:
            return
        from kemu.emulated.scheduler.devices import pod_claims
        from kemu.emulated.scheduler.devices.extended import IN_MEMORY

        uid, spawn = state.pod.metadata.uid, self.handle.spawn
        for claim in state.claims[: state.of_user]:
            metadata = claim.metadata
            if devices.release(metadata.uid):
                devices.restore(f"{metadata.namespace}/{metadata.name}")
                self._pending().discard(metadata.uid)
            if claim.status.HasField("allocation") and pod_claims.is_reserved_for(uid, claim):
                spawn(self._binder().cancel_reservation(claim, uid), f"unreserve {metadata.namespace}/{metadata.name}")
        special = state.special
        if special is None:
            return
        key = f"{special.metadata.namespace}/{special.metadata.name}"
        if devices.release(state.in_memory_uid):
            devices.restore(key)
        if special.metadata.name != IN_MEMORY:
            spawn(self._binder().delete(special), f"delete {key}")

    def _state(self, cycle: Cycle) -> PodClaims | None:
        found = cycle.data.get(self.name, _NO_CLAIMS)
        return None if isinstance(found, PostFilterResult) else found

    # PreBind --------------------------------------------------------------------------------------------------------

    def pre_bind_pre_flight(self, cycle: Cycle, node: str) -> Status | Skip | None:
        return SKIP if self._state(cycle) is None else None

    async def pre_bind(self, cycle: Cycle, node: str) -> Status | None:
        state = self._state(cycle)
        if state is None:
            return None
        from kemu.emulated.scheduler.devices import pod_claims
        from kemu.emulated.scheduler.devices.binding import BindingError

        binder = self._binder()
        try:
            await binder.bind(state, node)
            if any(pod_claims.has_conditions(claim) for claim in state.claims):
                text = f"waiting for binding conditions for device on node {node}"
                self.handle.event(state.pod, "BindingConditionsPending", "Scheduling", text)
                await binder.wait(state)
        except BindingError as error:
            return Status(ERROR, (str(error),))
        return None

    # Events ---------------------------------------------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return None if pod.template.spec.resourceClaims else {}

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        if self._devices is None:
            return []
        by_claim = KeyedHint(self._helped_by_claim, _claim_of_event, _claims_named)
        return [
            (Event.NODE_ADD, None),
            (Event.NODE_LABELS, None),
            (Event.NODE_ALLOCATABLE, None),
            (Event.RESOURCE_CLAIM_ADD, by_claim),
            (Event.RESOURCE_CLAIM_UPDATE, by_claim),
            (Event.POD_GENERATED_CLAIM, self._has_its_claims),
            (Event.DEVICE_CLASS_ADD, None),
            (Event.DEVICE_CLASS_UPDATE, None),
            (Event.RESOURCE_SLICE_ADD, None),
            (Event.RESOURCE_SLICE_UPDATE, None),
        ]

    def _helped_by_claim(self, pod: PodInfo, old: Claim | None, new: Claim) -> bool:
        """``isSchedulableAfterClaimChange``."""
        from kemu.emulated.scheduler.devices import pod_claims

        assert self._devices is not None
        try:
            own = pod_claims.claims_of(pod.pod, self._devices)
        except pod_claims.Missing:
            return False
        if _was_freed(old, new):
            return True
        if not any(claim.metadata.uid == new.metadata.uid for claim in own):
            return False
        return old is None or old.status != new.status

    def _has_its_claims(self, pod: PodInfo, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
        """``isSchedulableAfterPodChange``."""
        return bool(pod.uid == new.metadata.uid) and self._missing(new) is None


def _was_freed(old: Claim | None, new: Claim) -> bool:
    return old is not None and old.status.HasField("allocation") and not new.status.HasField("allocation")


def _claim_of_event(old: Claim | None, new: Claim) -> str | None:
    """The claim that a pod must name to be helped; devices that are free again may help any pod."""
    return None if _was_freed(old, new) else f"{new.metadata.namespace}/{new.metadata.name}"


def _claims_named(pod: core_v1_pb2.Pod) -> Iterable[str]:
    """By the pod's spec, or by its status where they were made of templates."""
    names = [entry.resourceClaimName for entry in pod.spec.resourceClaims]
    names += [status.resourceClaimName for status in pod.status.resourceClaimStatuses]
    return [f"{pod.metadata.namespace}/{name}" for name in names if name]
