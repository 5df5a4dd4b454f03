"""What binding a pod writes about its claims: allocations, reservations, the claim for extended resources.

The calls and their order are those of kube-scheduler's PreBind, PostFilter and Unreserve. What a call answers lies in
the assume cache until the watch shows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, Literal, Protocol

from kemu.emulated.client import retries
from kemu.emulated.objects import meta
from kemu.emulated.objects.devices import claims
from kemu.emulated.scheduler.devices import pod_claims
from kemu.emulated.scheduler.devices.extended import IN_MEMORY
from kemu.emulated.scheduler.devices.pod_claims import FINALIZER, PodClaims
from kemu.emulated.scheduler.devices.trackers import Claim, Devices
from kemu.emulated.scheduler.framework.interfaces import Api
from kemu.errors import ApiError, Conflict, NotFound
from kemu.runtime.env import SECOND_NS, Clock, Random

_RETRIES = 5
_RETRY_S = 0.01
_POLL_S = 5.0
_CACHE_POLL_S, _CACHE_LIMIT_S = 1.0, 120


class ClaimsApi(Api, Protocol):
    """What the API has to offer for claims, too."""

    async def update_status(self, obj: Claim) -> Claim:
        """Like ``update``, of the status alone."""
        ...

    def create(self, obj: Claim) -> Awaitable[Claim]:
        """Returns the object as it is now."""
        ...

    async def get(self, resource: Literal["resourceclaims"], name: str, namespace: str = "") -> Claim:
        """Raises NotFound."""
        ...


class BindingError(Exception):
    """PreBind failed."""


class Binder:
    """Writes for one scheduler."""

    def __init__(self, devices: Devices, api: ClaimsApi, clock: Clock, rng: Random, timeout_s: float) -> None:
        self._devices = devices
        self._api = api
        self.clock = clock
        self.random = rng
        self._timeout_s = timeout_s

    # PreBind --------------------------------------------------------------------------------------------------------

    async def bind(self, state: PodClaims, node: str) -> None:
        """Reserve all claims for the pod, allocated as Reserve decided. Raises BindingError."""
        for place, claim in enumerate(state.claims):
            if not claims.is_reserved_for(state.pod, claim, of_groups=self._devices.of_groups):
                try:
                    state.claims[place] = await self._bind_claim(state, place, node)
                except ApiError as error:
                    raise BindingError(error.message) from None

    async def wait(self, state: PodClaims) -> None:
        """Until the devices are ready. Raises BindingError."""
        end_ns = self.clock.now_ns() + round(self._timeout_s * SECOND_NS)
        while not self._is_ready(state):
            left_ns = end_ns - self.clock.now_ns()
            if left_ns <= _POLL_S * SECOND_NS:
                await self.clock.sleep(max(left_ns, 0) / SECOND_NS)
                raise BindingError("device binding timeout: context deadline exceeded")
            await self.clock.sleep(_POLL_S)

    def _is_ready(self, state: PodClaims) -> bool:
        for place, known in enumerate(state.claims):
            key = meta.namespaced_name(known)
            claim = self._devices.claims.get(key)
            if claim is None:
                raise BindingError(f'could not find ResourceClaim "{key}"')
            state.claims[place] = claim
            ready, failure = pod_claims.readiness(claim)
            if failure:
                raise BindingError(failure)
            if not ready:
                if pod_claims.is_overdue(claim, self.clock.unix_ns(), self._timeout_s):
                    raise BindingError(f"device binding timeout: claim={claim.metadata.name}")
                return False
        return True

    async def _bind_claim(self, state: PodClaims, place: int, node: str) -> Claim:
        claim = state.claims[place]
        allocation = state.allocations.get(place)
        is_special = place >= state.of_user
        if is_special and allocation is None and not claim.spec.devices.requests:
            return claim  # device plugins offer it
        in_flight = claim.metadata.uid
        written: Claim | None = None
        try:
            if is_special and claim.metadata.name == IN_MEMORY:
                written = claim = await self._create(state, node)
                state.claims[place] = claim
            written = claim = await self._write(claim, state, place)
        finally:
            if written is not None:
                if is_special:
                    await self._show(written)
                else:
                    self._devices.assume(written)
            if allocation is not None:
                self._devices.release(in_flight, force=written is not None and not is_special)
        if is_special:
            await self._tell_pod(state, claim, node)
        return claim

    async def _create(self, state: PodClaims, node: str) -> Claim:
        plan = state.by_node.get(node)
        if plan is None or plan.special is None:
            raise BindingError(f"extended resource claim not found for node {node}")
        made = Claim()
        made.CopyFrom(plan.special)
        made.ClearField("status")
        made.metadata.name = made.metadata.uid = ""
        try:
            return await self._api.create(made)
        except ApiError as error:
            name = f"{made.metadata.namespace}/"
            raise BindingError(f"create claim for extended resources {name}: {error.message}") from None

    async def _write(self, claim: Claim, state: PodClaims, place: int) -> Claim:
        """Finalizer, allocation and reservation, tried again with the latest claim where others were faster."""
        key = meta.namespaced_name(claim)
        allocation = state.allocations.get(place)
        for attempt in range(_RETRIES):
            if attempt:
                await self.clock.sleep(_RETRY_S)
                try:
                    claim = await self._api.get("resourceclaims", claim.metadata.name, claim.metadata.namespace)
                except ApiError as error:
                    raise BindingError(f"get updated claim {key} after conflict: {error.message}") from None
            now = _copy(claim)
            if now.metadata.HasField("deletionTimestamp"):
                raise BindingError(f"claim {key} got deleted in the meantime")
            if allocation is not None:
                if now.status.HasField("allocation"):
                    raise BindingError(f"claim {key} got allocated elsewhere in the meantime")
                if FINALIZER not in now.metadata.finalizers:
                    now.metadata.finalizers.append(FINALIZER)
                    try:
                        now = _copy(await self._api.update(now))
                    except Conflict as error:
                        if attempt + 1 < _RETRIES:
                            continue
                        raise BindingError(f"add finalizer to claim {key}: {error.message}") from None
                    except ApiError as error:
                        raise BindingError(f"add finalizer to claim {key}: {error.message}") from None
                now.status.allocation.CopyFrom(allocation)
            elif not now.status.HasField("allocation"):
                raise BindingError(f"claim {key} got deallocated elsewhere in the meantime")
            now.status.reservedFor.append(state.consumer(place))
            if not now.status.allocation.HasField("allocationTimestamp"):
                meta.set_time(now.status.allocation.allocationTimestamp, self.clock.unix_ns())
            try:
                return await self._api.update_status(now)
            except ApiError as error:
                if isinstance(error, Conflict) and attempt + 1 < _RETRIES:
                    continue
                what = "add reservation" if allocation is None else "add allocation and reservation"
                raise BindingError(f"{what} to claim {key}: {error.message}") from None
        raise AssertionError("the last attempt raises")

    async def _show(self, claim: Claim) -> None:
        """A claim that was just created can be assumed only when the watch has shown it."""
        key, waited_s = meta.namespaced_name(claim), 0.0
        while key not in self._devices.claims and waited_s < _CACHE_LIMIT_S:
            await self.clock.sleep(_CACHE_POLL_S)
            waited_s += _CACHE_POLL_S
        self._devices.assume(claim)

    async def _tell_pod(self, state: PodClaims, claim: Claim, node: str) -> None:
        pod = state.pod.metadata
        plan = state.by_node.get(node)
        if plan is None or not plan.mappings:
            text = "nil or empty request mappings, no update of pod"
            raise BindingError(f"{text} {pod.namespace}/{pod.name} ExtendedResourceClaimStatus")
        mappings = [
            {"containerName": one.container, "resourceName": one.resource, "requestName": one.request}
            for one in plan.mappings
        ]
        status = {"requestMappings": mappings, "resourceClaimName": claim.metadata.name}
        patch = {"status": {"extendedResourceClaimStatus": status}}
        try:
            await retries.status_patch(self, self._api, "pods", pod.name, pod.namespace, patch)
        except ApiError as error:
            text = f"update pod {pod.namespace}/{pod.name} ExtendedResourceClaimStatus"
            raise BindingError(f"{text}: {error.message}") from None

    # PostFilter, Unreserve ------------------------------------------------------------------------------------------

    async def deallocate(self, claim: Claim) -> str:
        """Take an allocation back that cannot be used. Returns what went wrong."""
        now = _copy(claim)
        now.ClearField("status")
        try:
            await self._api.update_status(now)
        except ApiError as error:
            return error.message
        return ""

    async def delete(self, claim: Claim) -> str:
        """Delete the claim for extended resources, without its finalizer. Returns what went wrong."""
        name, namespace = claim.metadata.name, claim.metadata.namespace
        try:
            for attempt in range(_RETRIES):
                now = _copy(claim if not attempt else await self._api.get("resourceclaims", name, namespace))
                kept = [one for one in now.metadata.finalizers if one != FINALIZER]
                del now.metadata.finalizers[:]
                now.metadata.finalizers.extend(kept)
                try:
                    await self._api.update(now)
                    break
                except Conflict:
                    if attempt + 1 == _RETRIES:
                        raise
                    await self.clock.sleep(_RETRY_S)
            await self._api.delete("resourceclaims", name, namespace)
        except ApiError as error:
            return error.message
        return ""

    async def cancel_reservation(self, claim: Claim, uid: str) -> bool:
        """Of a pod or a PodGroup. Returns whether it has been."""
        patch: dict[str, Any] = {
            "metadata": {"uid": claim.metadata.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]},
        }
        try:
            await self._api.patch(
                "resourceclaims", claim.metadata.name, claim.metadata.namespace, patch, "status", "strategic"
            )
        except (ApiError, NotFound):
            return False  # the next attempt sees it again
        return True

    async def cancel_one(self, of_group: Iterable[Claim], uid: str) -> str:
        """The reservation of a PodGroup, of its first claim that can be written. Returns what PostFilter says if none
        could."""
        for claim in of_group:
            if await self.cancel_reservation(claim, uid):
                return ""
        return "still not schedulable"


def _copy(claim: Claim) -> Claim:
    """What the API answers may be in the stores of others, too."""
    made = Claim()
    made.CopyFrom(claim)
    return made
