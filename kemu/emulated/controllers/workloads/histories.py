"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had (``pkg/controller/history``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.templates import hashes
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

REVISION_LABEL = "controller-revision-hash"
"""Revision label of pods: the name of their revision if a StatefulSet made them, its hash if a DaemonSet did."""
HASH_LABEL = "controller.kubernetes.io/hash"
LONGEST_PREFIX = 223


class Histories:
    """The ControllerRevisions of all owners of one kind."""

    def __init__(self, client: clients.Client, kind: str) -> None:
        self._client = client
        self._kind = kind
        self._by_owner: dict[str, dict[str, None]] = {}
        """Keys by UID of the owner."""
        self._orphans: dict[str, dict[str, None]] = {}
        """Keys of revisions without an owner, by namespace."""
        self.informer: informers.Informer[apps_v1_pb2.ControllerRevision] = informers.Informer(
            client,
            "controllerrevisions",
            handler=informers.Callbacks(self._put, lambda old, new: self._replace(old, new), self._remove),
        )

    def _put(self, revision: apps_v1_pb2.ControllerRevision) -> None:
        key, owner = controllers.key_of(revision), meta.controller_of(revision)
        if owner is None:
            self._orphans.setdefault(revision.metadata.namespace, {})[key] = None
        elif owner.kind == self._kind:
            self._by_owner.setdefault(owner.uid, {})[key] = None

    def _replace(self, old: Any, new: Any) -> None:
        if old.metadata.ownerReferences != new.metadata.ownerReferences:
            self._remove(old)
            self._put(new)

    def _remove(self, revision: apps_v1_pb2.ControllerRevision) -> None:
        key, owner = controllers.key_of(revision), meta.controller_of(revision)
        places, place = (self._orphans, revision.metadata.namespace) if owner is None else (self._by_owner, owner.uid)
        keys = places.get(place, {})
        keys.pop(key, None)
        if not keys:
            places.pop(place, None)

    def owned(self, owner: KubernetesObject) -> list[apps_v1_pb2.ControllerRevision]:
        store = self.informer.store
        return [store[key] for key in self._by_owner.get(owner.metadata.uid, ())]

    def orphans(self, owner: KubernetesObject, selector: selectors.LabelSelector) -> list[Any]:
        """Those in the namespace of an owner whose labels it selects."""
        store = self.informer.store
        found = (store[key] for key in self._orphans.get(owner.metadata.namespace, ()))
        return [one for one in found if selector.matches(one.metadata.labels)]

    async def renumber(self, revision: apps_v1_pb2.ControllerRevision, number: int) -> apps_v1_pb2.ControllerRevision:
        """``UpdateControllerRevision``."""
        wanted = meta.copied(revision)
        wanted.revision = number
        return await self._client.update(wanted)

    async def delete(self, revision: apps_v1_pb2.ControllerRevision) -> None:
        await self._client.delete("controllerrevisions", revision.metadata.name, revision.metadata.namespace)

    async def delete_of(self, owner: KubernetesObject) -> None:
        """All revisions of an owner that is gone."""
        for one in self.owned(owner):
            with contextlib.suppress(errors.ApiError):
                await self.delete(one)


def new_revision(
    owner: apps_v1_pb2.DaemonSet | apps_v1_pb2.StatefulSet, kind: str, data: bytes, number: int
) -> apps_v1_pb2.ControllerRevision:
    """Without a name: that is made of the hash of its data."""
    made = apps_v1_pb2.ControllerRevision(revision=number)
    made.data.raw = data
    metadata = made.metadata
    metadata.namespace = owner.metadata.namespace
    for target, given in (
        (metadata.labels, owner.spec.template.metadata.labels),
        (metadata.annotations, owner.metadata.annotations),
    ):
        for key in sorted(given):
            target[key] = given[key]
    metadata.ownerReferences.append(meta.owner_reference(owner, "apps/v1", kind))
    return made


async def create(
    client: clients.Client, owner: KubernetesObject, revision: apps_v1_pb2.ControllerRevision, collisions: int
) -> tuple[Any, int]:
    """Create it under a name that no other data has, and the number of collisions up to there
    (``CreateControllerRevision``)."""
    data = revision.data.raw
    while True:
        prefix = owner.metadata.name[:LONGEST_PREFIX]
        revision.metadata.name = f"{prefix}-{hashes.of_revision(data, collisions)}"
        try:
            return await client.create(revision), collisions
        except errors.AlreadyExists:
            metadata = revision.metadata
            known = await client.get("controllerrevisions", metadata.name, metadata.namespace)
            if known.data.raw == data:
                return known, collisions
            collisions += 1


def in_order(revisions: Iterable[apps_v1_pb2.ControllerRevision]) -> list[apps_v1_pb2.ControllerRevision]:
    """``SortControllerRevisions``."""
    return sorted(revisions, key=lambda one: (one.revision, one.metadata.creationTimestamp.seconds, one.metadata.name))


def revision_of(pod: core_v1_pb2.Pod) -> str:
    return str(pod.metadata.labels.get(REVISION_LABEL, ""))
