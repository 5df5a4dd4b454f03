"""The DRA manager: the containers of a pod start when its claims are prepared, and it is gone when they are unprepared.

A claim must be allocated and reserved for the pod, and its drivers registered, before anything is prepared; a failure
gets an event, and the kubelet tries again after its back-off. What is prepared outlives the kubelet. Mirrors
``pkg/kubelet/cm/dra``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kemu import errors
from kemu.emulated.client import clients, recorders
from kemu.emulated.kubelet.devices.checkpoints import Claims, ClaimState
from kemu.emulated.kubelet.devices.drivers import Drivers
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.objects.devices import claims
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import DevicesPrepared, DevicesUnprepared, PreparationFailed

RETRY_S = 10.0
"""From a failure to the next sync of the pod (``backOffPeriod``)."""
RECONCILE_S = 60.0
"""How often claims of pods that are gone are looked for (``defaultReconcilePeriod``)."""
FAILED = "FailedPrepareDynamicResources"


class _Wrong(Exception):
    """Why claims cannot be prepared, in Kubernetes' words."""


class DeviceManager:
    """DRA manager of one kubelet."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        drivers: Drivers,
        recorder: recorders.Recorder,
        is_here: Callable[[str], bool],
        *,
        of_groups: bool = False,
    ) -> None:
        """``is_here``: whether the kubelet has a pod of this UID; ``of_groups``: claims may be those of PodGroups."""
        self._of_groups = of_groups
        self._env = env
        self._clock = env.clock
        self._client = client
        self._drivers = drivers
        self._recorder = recorder
        self._is_here = is_here
        self.claims = Claims(env.disk)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Preparations that are under way, by the UID of the pod."""
        self._leaving: dict[str, None] = {}
        self._reconciles = False
        drivers.on_health = lambda: self.on_health()
        self.on_health: Callable[[], object] = lambda: None
        """Called when the status of pods may have to tell another health of their devices."""
        if self.claims.by_key:
            self._watch()

    def concerns(self, pod: core_v1_pb2.Pod) -> bool:
        return bool(pod.spec.resourceClaims) or pod.status.HasField("extendedResourceClaimStatus")

    # --- preparing ---------------------------------------------------------------------------------------------------

    def prepare(self, worker: Worker, ready: Callable[[], None]) -> None:
        """``ready`` is called when all claims of the pod are prepared, unless it is told to go before."""
        self._watch()
        self._tasks[worker.uid] = self._env.spawn(self._prepare(worker, ready), f"prepare devices of {worker.key}")

    async def _prepare(self, worker: Worker, ready: Callable[[], None]) -> None:
        started_ns = self._clock.now_ns()
        while True:
            try:
                names = await self._try(worker)
                break
            except _Wrong as wrong:
                text = f"Failed to prepare dynamic resources: prepare dynamic resources: {wrong}"
                self._recorder.event(worker.pod, recorders.WARNING, FAILED, FAILED, text)
                self._env.log(PreparationFailed(pod=worker.key, uid=worker.uid, why=str(wrong)))
            await self._clock.sleep(RETRY_S)
        self._tasks.pop(worker.uid, None)
        self._env.log(DevicesPrepared(pod=worker.key, uid=worker.uid, start=started_ns, claims=names))
        ready()

    async def _try(self, worker: Worker) -> list[str]:
        """``prepareResources``: check everything, note it, then ask the drivers. Returns the keys of the claims. Raises
        _Wrong."""
        pod = worker.pod
        found = [await self._checked(pod, entry) for entry in _entries(pod)]
        here = [claim for claim in found if claim is not None]
        for claim in here:
            for driver in _drivers_of(claim):
                if driver not in self._drivers.by_name:
                    raise _Wrong(f"DRA driver {driver} is not registered")
        waiting: dict[str, dict[str, ClaimState]] = {}
        for claim in here:
            key, state = self._noted(claim, worker.uid)
            if not state.prepared:
                for driver in state.drivers:
                    waiting.setdefault(driver, {})[key] = state
        for driver, states in waiting.items():
            for key, state in states.items():
                devices = [device for of, _pool, device, _request in state.devices if of == driver]
                if why := await self._drivers.prepare(self._drivers.by_name[driver], key.partition("/")[2], devices):
                    raise _Wrong(f"NodePrepareResources failed for ResourceClaim {key.partition('/')[2]}: {why}")
        for key in dict.fromkeys(key for states in waiting.values() for key in states):
            if key in self.claims.by_key:
                self.claims.by_key[key].prepared = True
        self._save()
        return [f"{claim.metadata.namespace}/{claim.metadata.name}" for claim in here]

    async def _checked(self, pod: core_v1_pb2.Pod, entry: core_v1_pb2.PodResourceClaim) -> ResourceClaim | None:
        """The claim behind an entry; None: it needs none."""
        try:
            name, must_own = claims.name_of(pod, entry)
        except claims.NotMade as error:
            raise _Wrong(str(error)) from None
        if name is None:
            return None
        try:
            claim = await self._client.get("resourceclaims", name, pod.metadata.namespace)
        except errors.ApiError as error:
            raise _Wrong(f"fetch ResourceClaim {name}: {error.message}") from None
        assert isinstance(claim, ResourceClaim)
        if must_own and (why := claims.not_for_pod(pod, claim, of_groups=self._of_groups)):
            raise _Wrong(why)
        if not claims.is_reserved_for(pod, claim, of_groups=self._of_groups):
            raise _Wrong(
                f"pod {pod.metadata.name} ({pod.metadata.uid}) is not allowed to use ResourceClaim {name} "
                f"({claim.metadata.uid})"
            )
        if not claim.status.HasField("allocation"):
            raise _Wrong(f"ResourceClaim {name}: not allocated")
        return claim

    def _noted(self, claim: ResourceClaim, uid: str) -> tuple[str, ClaimState]:
        """The claim in the checkpoint, with the pod as one of its users."""
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        state = self.claims.by_key.get(key)
        if state is None:
            results = claim.status.allocation.devices.results
            devices = [[one.driver, one.pool, one.device, one.request] for one in results]
            state = self.claims.by_key[key] = ClaimState(claim.metadata.uid, _drivers_of(claim), devices)
        elif state.uid != claim.metadata.uid:
            raise _Wrong(
                f"old ResourceClaim with same name {claim.metadata.name} and different UID {state.uid} still exists "
                "(previous pod force-deleted?!)"
            )
        if uid not in state.pods:
            state.pods.append(uid)
        self._save()
        return key, state

    def _save(self) -> None:
        if why := self.claims.save():
            raise _Wrong(why)

    # --- health ------------------------------------------------------------------------------------------------------

    def describe(self, pod: core_v1_pb2.Pod, status: core_v1_pb2.PodStatus) -> None:
        """The devices of each container, and their health (``UpdateAllocatedResourcesStatus``)."""
        entries = {entry.name: entry for entry in pod.spec.resourceClaims}
        wanted = {one.name: one.resources.claims for one in pod.spec.containers if one.resources.claims}
        for found in status.containerStatuses:
            for one in wanted.get(found.name, ()):
                try:
                    name = claims.name_of(pod, entries[one.name])[0]
                except claims.NotMade:
                    continue
                state = self.claims.by_key.get(f"{pod.metadata.namespace}/{name}")
                devices = {} if state is None or not state.prepared else self._devices_for(state, one.request)
                if devices:
                    called = f"claim:{one.name}/{one.request}" if one.request else f"claim:{one.name}"
                    resources = found.allocatedResourcesStatus.add(name=called).resources
                    for place, (health, message) in devices.items():
                        resources.add(resourceID=place, health=health, **({"message": message} if message else {}))

    def _devices_for(self, state: ClaimState, request: str) -> dict[str, tuple[str, str]]:
        """Health, and what there is to say of it, by ``driver/pool/device``; of one request, or of all."""
        wanted = request.partition("/")[0]
        return {
            f"{driver}/{pool}/{device}": self._drivers.health(driver, device)
            for name in state.drivers
            for driver, pool, device, of in state.devices
            if driver == name and (not wanted or of.partition("/")[0] == wanted)
        }

    def users(self) -> list[str]:
        """UIDs of the pods that have prepared claims."""
        return list(dict.fromkeys(uid for one in self.claims.by_key.values() if one.prepared for uid in one.pods))

    # --- unpreparing -------------------------------------------------------------------------------------------------

    def holds(self, worker: Worker) -> bool:
        """Whether anything of the pod is, or is about to be, prepared (``PodMightNeedToUnprepareResources``)."""
        return worker.uid in self._tasks or worker.uid in self._leaving or self.claims.uses(worker.uid)

    def unprepare(self, worker: Worker, then: Callable[[], None]) -> None:
        """The pod has no containers left. ``then`` is called when it has no claims left either."""
        task = self._tasks.pop(worker.uid, None)
        if task is not None:
            task.cancel()
        if worker.uid in self._leaving:
            return  # it is on its way, and will be told of what has come meanwhile
        self._leaving[worker.uid] = None

        async def leave() -> None:
            keys = await self._unprepare(worker.uid)
            del self._leaving[worker.uid]
            if keys:
                self._env.log(DevicesUnprepared(pod=worker.key, uid=worker.uid, claims=keys))
            then()

        self._env.spawn(leave(), f"unprepare devices of {worker.key}")

    async def _unprepare(self, uid: str) -> list[str]:
        """``unprepareResources``. Returns the keys of the claims that it used."""
        keys = [key for key, state in self.claims.by_key.items() if uid in state.pods]
        for key in keys:
            state = self.claims.by_key[key]
            if len(state.pods) == 1:
                for name in state.drivers:
                    driver = self._drivers.by_name.get(name)
                    if driver is not None:
                        await self._drivers.unprepare(driver)
            state.pods.remove(uid)
            if not state.pods:
                self.claims.by_key.pop(key, None)
        while self.claims.save():
            await self._clock.sleep(RETRY_S)
        return keys

    def _watch(self) -> None:
        if not self._reconciles:
            self._reconciles = True
            self._env.spawn(self._reconcile(), "claims of pods that are gone")

    async def _reconcile(self) -> None:
        """``reconcileLoop``: pods may have gone while no kubelet was there."""
        while True:
            await self._clock.sleep(RECONCILE_S, background=True)
            users = dict.fromkeys(uid for state in self.claims.by_key.values() for uid in state.pods)
            for uid in users:
                if not self._is_here(uid) and uid not in self._leaving:
                    await self._unprepare(uid)


def _entries(pod: core_v1_pb2.Pod) -> list[core_v1_pb2.PodResourceClaim]:
    """Those of the spec, and the claim that the scheduler made for extended resources."""
    entries = list(pod.spec.resourceClaims)
    if pod.status.HasField("extendedResourceClaimStatus"):
        name = pod.status.extendedResourceClaimStatus.resourceClaimName
        entries.append(core_v1_pb2.PodResourceClaim(resourceClaimName=name))
    return entries


def _drivers_of(claim: ResourceClaim) -> list[str]:
    return list(dict.fromkeys(one.driver for one in claim.status.allocation.devices.results))
