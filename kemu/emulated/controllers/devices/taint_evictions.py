"""The actor ``controller/device-taint-eviction``: deletes pods whose devices have a NoExecute taint that their claims
do not tolerate.

Which pods, and when, is decided in :mod:`kemu.emulated.controllers.devices.tainted_devices`. Further config: ``events``
(:data:`kemu.emulated.client.recorders.LEVELS`), ``settings``
(:class:`kemu.emulated.controllers.devices.resource_claims.Settings`). Mirrors ``pkg/controller/devicetainteviction``.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.devices import resource_claims
from kemu.emulated.controllers.devices.tainted_devices import Eviction, PodKey, TaintedDevices
from kemu.emulated.objects import meta
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim, ResourceSlice
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import DeviceTaintEviction

WORKERS = 8
"""``--concurrent-device-taint-eviction-syncs``."""
MOST_EVICTED = 500
"""Evicted pods that are remembered (``maxUIDCacheEntries``)."""
REASON = "DeletionByDeviceTaintManager"
MESSAGE = "Device Taint manager: deleting due to NoExecute taint"
_EVENT = "DeviceTaintManagerEviction"


class DeviceTaintEvictionController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.devices.taint_evictions:DeviceTaintEvictionController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "device-taint-eviction-controller", "0", level)
        self._queue: workqueues.WorkQueue[PodKey] = workqueues.WorkQueue(env, name="device-taint-eviction-controller")
        self._due: dict[PodKey, Eviction] = {}
        self._evicted: OrderedDict[str, None] = OrderedDict()
        """UIDs."""
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(
                lambda new: self._devices.set_pod(None, new),
                lambda old, new: self._devices.set_pod(old, new),
                lambda old: self._devices.set_pod(old, None),
            ),
        )
        gates = restored(resource_claims.Settings, config.get("settings", {})).feature_gates
        of_groups = gates.dra_workload_resource_claims
        self._devices = TaintedDevices(self._pods.store, self._evict, self._cancel, of_groups=of_groups)
        devices = self._devices
        self._claims: informers.Informer[ResourceClaim] = informers.Informer(
            self.client,
            "resourceclaims",
            handler=informers.Callbacks(
                lambda new: devices.set_claim(None, new), devices.set_claim, lambda old: devices.set_claim(old, None)
            ),
        )
        self._slices: informers.Informer[ResourceSlice] = informers.Informer(
            self.client,
            "resourceslices",
            handler=informers.Callbacks(
                lambda new: devices.set_slice(None, new), devices.set_slice, lambda old: devices.set_slice(old, None)
            ),
        )

    async def run(self) -> None:
        await self.begin(self._pods, self._claims, self._slices)
        for number in range(1, WORKERS):
            self.env.spawn(self._work_on(), f"worker {number}")
        await self._work_on()

    def _evict(self, pod: PodKey, eviction: Eviction) -> None:
        self._due[pod] = eviction
        self._queue.add_after_ns(pod, eviction.at_ns - self.unix_ns())

    def _cancel(self, pod: PodKey) -> None:
        if self._due.pop(pod, None) is None:
            return
        known = self._pods.store.get(pod.key)
        if known is not None and known.metadata.uid == pod.uid:
            self._tell(known, "Cancelling deletion")

    def _tell(self, pod: core_v1_pb2.Pod, text: str) -> None:
        self._recorder.event(pod, recorders.NORMAL, _EVENT, _EVENT, text, routine=True)

    async def _work_on(self) -> None:
        queue = self._queue
        while True:
            pod = await queue.get()
            try:
                again_ns = await self._maybe_delete(pod)
                if again_ns > 0:
                    queue.add_after_ns(pod, again_ns)
                else:
                    queue.forget(pod)
            except errors.ApiError:
                queue.add_rate_limited(pod)
            finally:
                queue.done(pod)

    async def _maybe_delete(self, pod: PodKey) -> int:
        """``maybeDeletePod``. Returns after how many ns to look again; 0: never."""
        eviction = self._due.get(pod)
        if eviction is None or pod.uid in self._evicted:
            return 0
        wait_ns = eviction.at_ns - self.unix_ns()
        if wait_ns > 0:
            return wait_ns
        if lag_s := self.lag_s():
            await self.clock.sleep_until_ns(self.clock.now_ns() + int(lag_s * SECOND_NS))
        with contextlib.suppress(errors.NotFound):
            await self._delete(pod, eviction)
        self._due.pop(pod, None)
        self._evicted[pod.uid] = None
        if len(self._evicted) > MOST_EVICTED:
            self._evicted.popitem(last=False)
        return 0

    async def _delete(self, key: PodKey, eviction: Eviction) -> None:
        """``addConditionAndDeletePod``."""
        namespace, name = meta.split_name(key.key)
        pod = await self.client.get("pods", name, namespace)
        if pod.metadata.uid != key.uid or pod.metadata.HasField("deletionTimestamp"):
            return
        self._tell(pod, "Marking for deletion")
        patch = meta.condition_patch(
            pod.status.conditions, controllers.DISRUPTION_TARGET, "True", REASON, MESSAGE, self.unix_ns()
        )
        if patch is not None:
            await self.client.patch("pods", name, namespace, patch, "status", "strategic", key.uid)
        await self.client.delete("pods", name, namespace, uid=key.uid)
        taints = ["/".join(map(str, one)) for one in eviction.taints]
        start_ns = eviction.at_ns - self.clock.unix_offset_ns
        self.env.log(DeviceTaintEviction(pod=key.key, uid=key.uid, start=start_ns, taints=taints))
