"""The actor ``controller/ephemeral-volume``: makes the claims of ephemeral volumes, which go with their pods.

Further config: ``events`` (:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors ``pkg/controller/volume/ephemeral``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, retries, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env


class EphemeralVolumeController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.volumes.ephemeral_claims:EphemeralVolumeController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "ephemeral_volume", "0", level)
        self._queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="ephemeral_volume")
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client, "pods", handler=informers.Callbacks(self._pod_came)
        )
        self._claims: informers.Informer[core_v1_pb2.PersistentVolumeClaim] = informers.Informer(
            self.client, "persistentvolumeclaims", handler=informers.Callbacks(on_delete=self._claim_gone)
        )

    async def run(self) -> None:
        await self.begin(self._claims, self._pods)
        await self.work(self._queue, self._sync)

    def _pod_came(self, pod: core_v1_pb2.Pod) -> None:
        if any(volume.volumeSource.HasField("ephemeral") for volume in pod.spec.volumes):
            self._queue.add(controllers.key_of(pod))

    def _claim_gone(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        owner = meta.controller_of(claim)
        if owner is not None and owner.kind == "Pod":
            self._queue.add(f"{claim.metadata.namespace}/{owner.name}")

    async def _sync(self, key: str) -> None:
        if lag_s := self.lag_s():
            await self.clock.sleep(lag_s)
        pod = self._pods.store.get(key)
        if pod is None or pod.metadata.HasField("deletionTimestamp"):
            return
        for volume in pod.spec.volumes:
            if volume.volumeSource.HasField("ephemeral"):
                wrong = await self._make(pod, volume)
                if wrong:
                    text = f"ephemeral volume {volume.name}: {wrong}"
                    self._recorder.event(pod, recorders.WARNING, "FailedBinding", "FailedBinding", text)
                    raise errors.ServiceUnavailable(f"pod {key}, {text}")

    async def _make(self, pod: core_v1_pb2.Pod, volume: core_v1_pb2.Volume) -> str:
        """``handleVolume``. Returns what is wrong."""
        name = claims.claim_name(pod.metadata.name, volume)
        known = self._claims.store.get(f"{pod.metadata.namespace}/{name}")
        if known is not None:
            return claims.not_for_pod(known, pod)
        template = volume.volumeSource.ephemeral.volumeClaimTemplate
        claim = core_v1_pb2.PersistentVolumeClaim(spec=template.spec)
        claim.metadata.namespace, claim.metadata.name = pod.metadata.namespace, name
        claim.metadata.annotations.update(template.metadata.annotations)
        claim.metadata.labels.update(template.metadata.labels)
        claim.metadata.ownerReferences.append(meta.owner_reference(pod, "v1", "Pod"))
        try:
            await retries.patiently(self.env, lambda: self.client.create(claim))
        except errors.ApiError as error:
            return f"create PVC {name}: {error.message}"
        return ""
