"""What kubelets and controllers of claims do in a live comparison, and nothing else does.

Bound pods run, from a start time that is drawn, since preemption compares start times. Volumes that the scheduler has
chosen, or has asked a driver for, are bound to their claims. Claims of devices lose pods that have gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers, retries
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

COMPLETED, BY_CONTROLLER = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
SELECTED = "volume.kubernetes.io/selected-node"
STARTS = tuple(f"2026-01-01T0{hour}:00:00Z" for hour in range(8))


async def run_pod(client: clients.Client, namespace: str, name: str, rng: random.Random) -> None:
    """The kubelet says that a pod runs."""
    status = {"phase": "Running", "startTime": rng.choice(STARTS)}
    try:
        await client.patch("pods", name, namespace, {"status": status}, "status", "strategic")
    except errors.NotFound:
        return  # a victim already


async def release(client: clients.Client, claim: resource_v1_pb2.ResourceClaim, pod_uid: str) -> None:
    """A pod that has gone is taken off a claim; without pods the claim loses its devices."""
    users = [
        {"resource": one.resource, "name": one.name, "uid": one.uid}
        for one in claim.status.reservedFor
        if one.uid != pod_uid
    ]
    status: dict[str, Any] = {"reservedFor": users or None} | ({} if users else {"allocation": None})
    name, namespace = claim.metadata.name, claim.metadata.namespace
    try:
        await client.patch("resourceclaims", name, namespace, {"status": status}, "status")
    except errors.NotFound:
        return  # the cluster is being taken down


async def remove_claim(client: clients.Client, name: str, namespace: str) -> None:
    """Whatever its finalizer protects."""
    try:
        await client.patch("resourceclaims", name, namespace, {"metadata": {"finalizers": None}})
        await client.delete("resourceclaims", name, namespace)
    except errors.NotFound:
        return


class VolumeController:
    """Binds claims as the PersistentVolume controller does once the scheduler has chosen."""

    def __init__(self, env: Env, client: clients.Client) -> None:
        self._env = env
        self._client = client
        self._provisioned: set[str] = set()
        self._volumes: informers.Informer[core_v1_pb2.PersistentVolume] = informers.Informer(
            client,
            "persistentvolumes",
            handler=informers.Callbacks(on_add=self._volume, on_update=lambda old, new: self._volume(new)),
        )
        self._claims: informers.Informer[core_v1_pb2.PersistentVolumeClaim] = informers.Informer(
            client,
            "persistentvolumeclaims",
            handler=informers.Callbacks(on_update=lambda old, new: self._claim(new)),
        )

    async def start(self) -> None:
        await self._claims.synced()
        await self._volumes.synced()

    def _volume(self, volume: core_v1_pb2.PersistentVolume) -> None:
        reference = volume.spec.claimRef
        claim = self._claims.store.get(f"{reference.namespace}/{reference.name}")
        if reference.uid and claim is not None and claim.metadata.uid == reference.uid and not claim.spec.volumeName:
            self._env.spawn(self._bind(volume.metadata.name, claim), "bind a claim")

    def _claim(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        if claim.spec.volumeName or not claim.metadata.annotations.get(SELECTED):
            return
        if claim.metadata.uid not in self._provisioned:
            self._provisioned.add(claim.metadata.uid)
            self._env.spawn(self._provision(claim), "provision a volume")

    async def _bind(self, volume: str, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        metadata = claim.metadata
        patch = {
            "metadata": {"annotations": {COMPLETED: "yes", BY_CONTROLLER: "yes"}},
            "spec": {"volumeName": volume},
        }
        name, namespace = metadata.name, metadata.namespace
        await self._quietly(lambda: self._client.patch("persistentvolumeclaims", name, namespace, patch))
        bound = {"status": {"phase": "Bound"}}
        await self._quietly(lambda: self._client.patch("persistentvolumes", volume, "", bound, "status"))

    async def _provision(self, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        metadata = claim.metadata
        volume = core_v1_pb2.PersistentVolume()
        volume.metadata.name = f"pvc-{metadata.uid}"
        volume.spec.capacity["storage"].string = claim.spec.resources.requests["storage"].string
        volume.spec.accessModes.extend(claim.spec.accessModes)
        volume.spec.storageClassName = claim.spec.storageClassName
        volume.spec.persistentVolumeReclaimPolicy = "Retain"
        volume.spec.persistentVolumeSource.csi.driver = "csi.example.com"
        volume.spec.persistentVolumeSource.csi.volumeHandle = metadata.uid
        reference = volume.spec.claimRef
        reference.kind, reference.apiVersion = "PersistentVolumeClaim", "v1"
        reference.namespace, reference.name, reference.uid = metadata.namespace, metadata.name, metadata.uid
        await self._quietly(lambda: self._client.create(volume))

    async def _quietly(self, write: Callable[..., Any]) -> None:
        try:
            await retries.patiently(self._env, write)
        except errors.ApiError:
            return  # the cluster is being taken down


def is_running(pod: core_v1_pb2.Pod) -> bool:
    return bool(pod.status.phase == "Running")


def key_of(manifest: dict[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def name_of(obj: KubernetesObject) -> str:
    return str(meta.namespaced_name(obj))
