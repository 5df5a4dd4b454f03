"""Which pods belong to an owner: it adopts those that it selects and releases those that it selects no more.

ReplicaSets belong to Deployments, and ControllerRevisions to DaemonSets, in the same way. Mirrors
``PodControllerRefManager`` and its like in ``pkg/controller``: a pod that another controller owns is left alone, a pod
without a controller is adopted if its labels match, and a pod whose labels were changed away is set free. Before the
first adoption the owner is read from the API server, as the cached one may already be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.objects import meta, resources
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodAdopted, PodReleased

K = TypeVar("K", bound=KubernetesObject)


class Claims:
    """Claims of one owner, in one sync. Raises ApiError when a patch fails for a reason that may pass."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        resource: str,
        kind: str,
        owner: KubernetesObject,
        dependents: str = "pods",
        *,
        finalizer: str = "",
        wrote: Callable[[KubernetesObject], object] | None = None,
    ) -> None:
        """``resource``, ``kind``: of the owner; ``dependents``: the resource of what belongs to it. ``finalizer``: they
        get it when they are adopted and lose it when they are released. ``wrote`` is told of each that is adopted."""
        self._env = env
        self._dependents = dependents
        self._client = client
        self._resource = resource
        self._kind = kind
        self._finalizer = finalizer
        self._wrote = wrote
        self._owner = owner
        self._is_being_deleted = bool(owner.metadata.HasField("deletionTimestamp"))
        self._may_adopt: bool | None = None

    async def claim(self, matches: Callable[[K], bool], owned: Iterable[K], orphans: Iterable[K]) -> list[K]:
        """The pods that the owner has afterwards. All are tried before the first failure is raised."""
        claimed, failures = [], []
        for pod in owned:
            if matches(pod):
                claimed.append(pod)
            elif not self._is_being_deleted:
                try:
                    await self._release(pod)
                except errors.ApiError as error:
                    failures.append(error)
        for pod in orphans:
            if self._is_being_deleted or pod.metadata.HasField("deletionTimestamp") or not matches(pod):
                continue
            try:
                if await self._adopt(pod):
                    claimed.append(pod)
            except errors.ApiError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return claimed

    async def _release(self, pod: KubernetesObject) -> None:
        reference = {"$patch": "delete", "uid": self._owner.metadata.uid}
        try:
            await self._patch(pod, reference, "$deleteFromPrimitiveList/finalizers")
        except (errors.NotFound, errors.Invalid, errors.Conflict):
            return  # It is gone, or its name has passed to another pod.
        self._log(PodReleased, pod)

    async def _adopt(self, pod: KubernetesObject) -> bool:
        if self._may_adopt is None:
            self._may_adopt = await self._is_still_there()
        if not self._may_adopt:
            raise errors.Conflict(f"{self._kind} {self._owner.metadata.name} is gone or being deleted")
        reference = {
            "apiVersion": resources.BY_PLURAL[self._resource].api_version,
            "kind": self._kind,
            "name": self._owner.metadata.name,
            "uid": self._owner.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        try:
            adopted = await self._patch(pod, reference, "finalizers")
        except errors.NotFound:
            return False
        if self._wrote is not None:
            self._wrote(adopted)
        self._log(PodAdopted, pod)
        return True

    async def _patch(self, pod: KubernetesObject, reference: dict[str, Any], finalizers: str) -> KubernetesObject:
        """``finalizers``: the key that says what becomes of the finalizer."""
        metadata = pod.metadata
        patch: dict[str, Any] = {"metadata": {"ownerReferences": [reference]}}
        if self._finalizer:
            patch["metadata"][finalizers] = [self._finalizer]
        return await self._client.patch(
            self._dependents, metadata.name, metadata.namespace, patch, type="strategic", uid=metadata.uid
        )

    async def _is_still_there(self) -> bool:
        metadata = self._owner.metadata
        try:
            fresh = await self._client.get(self._resource, metadata.name, metadata.namespace)
        except errors.NotFound:
            return False
        return fresh.metadata.uid == metadata.uid and not fresh.metadata.HasField("deletionTimestamp")

    def _log(self, kind: type[PodAdopted] | type[PodReleased], pod: KubernetesObject) -> None:
        if self._dependents == "pods":
            owner = f"{self._kind} {meta.namespaced_name(self._owner)}"
            self._env.log(kind(pod=meta.namespaced_name(pod), uid=pod.metadata.uid, owner=owner))
