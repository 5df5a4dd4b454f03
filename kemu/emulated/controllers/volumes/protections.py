"""The actor ``controller/volume-protection``: claims and volumes that are being deleted stay as long as they are used.

Of a claim the users are the pods on nodes, of a volume the claim that it is bound to. Mirrors
``pkg/controller/volume/pvcprotection`` and ``pvprotection``, in one actor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, cast

from kemu import errors
from kemu.emulated.client import informers, retries, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env


class VolumeProtection(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.volumes.protections:VolumeProtection``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._claim_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self._volume_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self._claims = self._informer("persistentvolumeclaims", self._claim_queue)
        self._volumes = self._informer("persistentvolumes", self._volume_queue)
        self._users: dict[str, dict[str, None]] = {}
        """The pods on nodes that use a claim, by claim."""
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(self._pod_seen, lambda old, new: self._pod_seen(new), self._pod_gone),
            field_selector="spec.nodeName!=",
        )

    def _informer(self, resource: str, queue: workqueues.WorkQueue[str]) -> informers.Informer[Any]:
        def changed(obj: KubernetesObject) -> None:
            if obj.metadata.HasField("deletionTimestamp"):
                queue.add(controllers.key_of(obj))

        handler = informers.Callbacks(changed, lambda old, new: changed(new))
        return informers.Informer(self.client, resource, handler=handler)

    async def run(self) -> None:
        await self.begin(self._claims, self._volumes, self._pods)
        self.env.spawn(self.work(self._claim_queue, self._sync_claim), "claims")
        await self.work(self._volume_queue, self._sync_volume)

    def _pod_seen(self, pod: core_v1_pb2.Pod) -> None:
        for key in _claims_of(pod):
            self._users.setdefault(key, {})[pod.metadata.uid] = None

    def _pod_gone(self, pod: core_v1_pb2.Pod) -> None:
        for key in _claims_of(pod):
            users = self._users.get(key, {})
            users.pop(pod.metadata.uid, None)
            if not users:
                self._users.pop(key, None)
            self._claim_queue.add(key)

    async def _sync_claim(self, key: str) -> None:
        claim = self._claims.store.get(key)
        if claim is None or not _is_leaving(claim, claims.CLAIM_PROTECTION) or key in self._users:
            return
        # The watch may be late: ask.
        pods = await retries.patiently(self.env, lambda: self.client.list("pods", claim.metadata.namespace))
        if not any(pod.spec.nodeName and key in _claims_of(pod) for pod in cast(list[core_v1_pb2.Pod], pods.items)):
            await self._release(claim, claims.CLAIM_PROTECTION)

    async def _sync_volume(self, name: str) -> None:
        volume = self._volumes.store.get(name)
        if volume is None or not _is_leaving(volume, claims.VOLUME_PROTECTION):
            return
        if volume.status.phase != claims.BOUND:
            await self._release(volume, claims.VOLUME_PROTECTION)

    async def _release(self, obj: KubernetesObject, finalizer: str) -> None:
        changed = type(obj)()
        changed.CopyFrom(obj)
        changed.metadata.finalizers.remove(finalizer)
        with contextlib.suppress(errors.NotFound):
            await retries.patiently(self.env, lambda: self.client.update(changed))


def _claims_of(pod: core_v1_pb2.Pod) -> list[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in claims.claim_names(pod)] if pod.spec.volumes else []


def _is_leaving(obj: KubernetesObject, finalizer: str) -> bool:
    return obj.metadata.HasField("deletionTimestamp") and finalizer in obj.metadata.finalizers
