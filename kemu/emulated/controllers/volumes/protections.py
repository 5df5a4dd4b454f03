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
from kemu.emulated.objects import meta
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env


class VolumeProtection(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.volumes.protections:VolumeProtection``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._claim_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="pvcprotection")
        self._volume_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="pvprotection")
        self._claims = self._informer("persistentvolumeclaims", self._claim_queue)
        self._volumes = self._informer("persistentvolumes", self._volume_queue)
        self._attributes_queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="vacprotection")
        self._attributes: informers.Informer[Any] | None = None
        """Classes of attributes; None: there are none."""
        if config.get("attributes"):
            self._attributes = self._informer("volumeattributesclasses", self._attributes_queue)
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

        def updated(old: KubernetesObject, new: KubernetesObject) -> None:
            changed(new)
            self._look_at_attributes()

        handler = informers.Callbacks(changed, updated, lambda old: self._look_at_attributes())
        return informers.Informer(self.client, resource, handler=handler)

    async def run(self) -> None:
        await self.begin(self._claims, self._volumes, self._pods)
        if self._attributes is not None:
            await self.begin(self._attributes)
            self.env.spawn(self.work(self._attributes_queue, self._sync_attributes), "attributes")
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

    def _look_at_attributes(self) -> None:
        """A claim or a volume has changed or gone, and may use a class of attributes no more."""
        for obj in () if self._attributes is None else self._attributes.store.values():
            if obj.metadata.HasField("deletionTimestamp"):
                self._attributes_queue.add(obj.metadata.name)

    async def _sync_attributes(self, name: str) -> None:
        """``processVAC`` of ``vacprotection``."""
        found = None if self._attributes is None else self._attributes.store.get(name)
        if found is None or not _is_leaving(found, claims.ATTRIBUTES_PROTECTION):
            return
        volumes = (one.spec.volumeAttributesClassName for one in self._volumes.store.values())
        if name not in volumes and not any(name in _attributes_of(one) for one in self._claims.store.values()):
            await self._release(found, claims.ATTRIBUTES_PROTECTION)

    async def _release(self, obj: KubernetesObject, finalizer: str) -> None:
        changed = meta.copied(obj)
        changed.metadata.finalizers.remove(finalizer)
        with contextlib.suppress(errors.NotFound):
            await retries.patiently(self.env, lambda: self.client.update(changed))


def _claims_of(pod: core_v1_pb2.Pod) -> list[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in claims.claim_names(pod)] if pod.spec.volumes else []


def _attributes_of(claim: core_v1_pb2.PersistentVolumeClaim) -> tuple[str, str, str]:
    """The classes of attributes that it wants, has, or is on its way to."""
    status = claim.status
    target = status.modifyVolumeStatus.targetVolumeAttributesClassName
    return claim.spec.volumeAttributesClassName, status.currentVolumeAttributesClassName, target


def _is_leaving(obj: KubernetesObject, finalizer: str) -> bool:
    return obj.metadata.HasField("deletionTimestamp") and finalizer in obj.metadata.finalizers
