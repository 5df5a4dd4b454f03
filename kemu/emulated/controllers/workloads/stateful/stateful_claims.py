"""The claims of a StatefulSet: one for each template and pod, owned as its retention policy says.

Mirrors ``stateful_pod_control.go`` and ``stateful_set_utils.go`` of ``pkg/controller/statefulset``. Claims are kept
when nothing else is said; a claim that is to go with its set or its pod gets that as its owner, and the garbage
collector deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers
from kemu.emulated.controllers.workloads.stateful import stateful_pods
from kemu.emulated.objects import meta
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

RETAIN, DELETE = "Retain", "Delete"


class Claims:
    """Claims of all StatefulSets. Nothing is watched before a set has templates of claims."""

    def __init__(self, client: clients.Client, wrote: Callable[[Any, core_v1_pb2.PersistentVolumeClaim], None]) -> None:
        """``wrote`` is told of each claim that was written for a set."""
        self._client = client
        self._wrote = wrote
        self._informer: informers.Informer[core_v1_pb2.PersistentVolumeClaim] | None = None

    @property
    def informer(self) -> informers.Informer[core_v1_pb2.PersistentVolumeClaim]:
        """Of the claims, once they have been needed."""
        assert self._informer is not None
        return self._informer

    async def needed(self, owner: apps_v1_pb2.StatefulSet) -> bool:
        """Whether a set has templates; if so, claims are known afterwards."""
        if not owner.spec.volumeClaimTemplates:
            return False
        await self.start()
        return True

    async def start(self) -> None:
        """Claims are known afterwards."""
        if self._informer is None:
            self._informer = informers.Informer(self._client, "persistentvolumeclaims")
        await self._informer.synced()

    def of_pod(self, owner: apps_v1_pb2.StatefulSet, ordinal: int) -> Iterator[tuple[Any, Any | None]]:
        """The templates of a set, and the claims that a pod has by them."""
        assert self._informer is not None
        for template in owner.spec.volumeClaimTemplates:
            name = stateful_pods.claim_name(owner, template, ordinal)
            yield template, self._informer.store.get(f"{owner.metadata.namespace}/{name}")

    async def create_missing(self, owner: apps_v1_pb2.StatefulSet, ordinal: int) -> tuple[list[str], list[str]]:
        """``createPersistentVolumeClaims``: the names of the claims that were created, and what failed."""
        created, failures = [], []
        for template, known in self.of_pod(owner, ordinal):
            claim = _new_claim(owner, template, ordinal)
            if known is None:
                try:
                    self._wrote(owner, await self._client.create(claim))
                except errors.ApiError as error:
                    failures.append(f"failed to create PVC {claim.metadata.name}: {error.message}")
                else:
                    created.append(claim.metadata.name)
            elif known.metadata.HasField("deletionTimestamp"):
                failures.append(f"pvc {claim.metadata.name} is being deleted")
        return created, failures

    def are_stale(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> bool:
        """Whether a claim still belongs to a former pod of this name, with which it will go (``PodClaimIsStale``)."""
        if policy(owner)[1] == RETAIN:
            return False
        claims = self.of_pod(owner, stateful_pods.ordinal_of(pod))
        return any(known is not None and _is_stale(known, pod, "v1", "Pod") for _, known in claims)

    def match_policy(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> bool:
        """``ClaimsMatchRetentionPolicy``."""
        claims = self.of_pod(owner, stateful_pods.ordinal_of(pod))
        return all(known is None or _is_owned_right(known, owner, pod) for _, known in claims)

    async def apply_policy(
        self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod, warn: Callable[[Any, str], None]
    ) -> None:
        """``UpdatePodClaimForRetentionPolicy``. ``warn`` is told of claims that another controller owns. Raises
        ApiError."""
        for _, known in self.of_pod(owner, stateful_pods.ordinal_of(pod)):
            if known is not None and _has_other_controller(known, owner, pod):
                warn(owner, known.metadata.name)
            if known is not None and not _is_owned_right(known, owner, pod):
                wanted = meta.copied(known)
                _set_owners(wanted, owner, pod)
                try:
                    self._wrote(owner, await self._client.update(wanted))
                except errors.ApiError as error:
                    name = known.metadata.name
                    error.message = f"could not update claim {name} for delete policy ownerRefs: {error.message}"
                    raise


def policy(owner: apps_v1_pb2.StatefulSet) -> tuple[str, str]:
    """What happens to claims when the set is deleted, and when it is scaled down."""
    given = owner.spec.persistentVolumeClaimRetentionPolicy
    return given.whenDeleted or RETAIN, given.whenScaled or RETAIN


def _new_claim(
    owner: apps_v1_pb2.StatefulSet, template: core_v1_pb2.PersistentVolumeClaim, ordinal: int
) -> core_v1_pb2.PersistentVolumeClaim:
    claim = meta.copied(template)
    claim.ClearField("status")
    metadata = claim.metadata
    metadata.name = stateful_pods.claim_name(owner, template, ordinal)
    metadata.namespace = owner.metadata.namespace
    for key in sorted(owner.spec.selector.matchLabels):
        metadata.labels[key] = owner.spec.selector.matchLabels[key]
    return claim


def _refers(reference: meta_v1_pb2.OwnerReference, obj: KubernetesObject, version: str, kind: str) -> bool:
    """Whether it names the object, whatever its UID."""
    return (reference.apiVersion, reference.kind, reference.name) == (version, kind, obj.metadata.name)


def _is_stale(claim: core_v1_pb2.PersistentVolumeClaim, obj: KubernetesObject, version: str, kind: str) -> bool:
    """``hasStaleOwnerRef``."""
    for reference in claim.metadata.ownerReferences:
        if _refers(reference, obj, version, kind):
            return bool(reference.uid != obj.metadata.uid)
    return False


def _is_owner(claim: core_v1_pb2.PersistentVolumeClaim, obj: KubernetesObject) -> bool:
    return any(reference.uid == obj.metadata.uid for reference in claim.metadata.ownerReferences)


def _has_other_controller(
    claim: core_v1_pb2.PersistentVolumeClaim, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod
) -> bool:
    """``hasUnexpectedController``."""
    if policy(owner) == (RETAIN, RETAIN):
        return False
    for reference in claim.metadata.ownerReferences:
        for obj, version, kind in ((owner, "apps/v1", "StatefulSet"), (pod, "v1", "Pod")):
            if _refers(reference, obj, version, kind):
                if reference.uid != obj.metadata.uid:
                    return True
                break
        else:
            if reference.controller:
                return True
    return False


def _wanted_owners(owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> tuple[bool, bool]:
    """Whether the set, and whether the pod, is to own the claims."""
    deleted, scaled = (each == DELETE for each in policy(owner))
    is_surplus = stateful_pods.ordinal_of(pod) not in stateful_pods.ordinals(owner)
    if not scaled:
        return deleted, False
    return deleted and not is_surplus, is_surplus


def _is_owned_right(
    claim: core_v1_pb2.PersistentVolumeClaim, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod
) -> bool:
    """``isClaimOwnerUpToDate``: what others than this controller have arranged is left alone."""
    if _is_stale(claim, owner, "apps/v1", "StatefulSet") or _is_stale(claim, pod, "v1", "Pod"):
        return True
    has = _is_owner(claim, owner), _is_owner(claim, pod)
    if _has_other_controller(claim, owner, pod):
        return not any(has)
    uids = (owner.metadata.uid, pod.metadata.uid)
    if any(one.uid in uids and not one.controller for one in claim.metadata.ownerReferences):
        return False
    return has == _wanted_owners(owner, pod)


def _set_owners(claim: core_v1_pb2.PersistentVolumeClaim, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> None:
    """``updateClaimOwnerRefForSetAndPod``."""
    others = _has_other_controller(claim, owner, pod)
    kept = [
        type(one).FromString(one.SerializeToString())
        for one in claim.metadata.ownerReferences
        if not (_refers(one, owner, "apps/v1", "StatefulSet") or _refers(one, pod, "v1", "Pod"))
    ]
    references = claim.metadata.ownerReferences
    del references[:]
    references.extend(kept)
    if others:
        return
    by_set, by_pod = _wanted_owners(owner, pod)
    if by_set:
        references.append(meta.owner_reference(owner, "apps/v1", "StatefulSet"))
    if by_pod:
        references.append(meta.owner_reference(pod, "v1", "Pod"))
