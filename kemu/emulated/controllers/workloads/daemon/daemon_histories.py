"""The revisions of DaemonSets: ControllerRevisions whose hash their pods carry (``update.go`` of
``pkg/controller/daemon``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.controllers.workloads import claims, histories
from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.templates import documents, hashes
from kemu.messages.k8s import apps_v1_pb2

LABEL = histories.REVISION_LABEL


class DaemonHistories(histories.Histories):
    """Daemon histories of all DaemonSets."""

    def __init__(self, client: clients.Client) -> None:
        super().__init__(client, "DaemonSet")

    async def revise(
        self, owner: apps_v1_pb2.DaemonSet, claim: claims.Claims, pods: Iterable[Any], selector: selectors.LabelSelector
    ) -> tuple[str, list[Any]]:
        """The hash of the current revision, which is made if there is none, and the old revisions
        (``constructHistory``). ``claim``: of revisions; ``pods``: of the owner."""
        found = await claim.claim(
            lambda one: selector.matches(one.metadata.labels), self.owned(owner), self.orphans(owner, selector)
        )
        data = documents.patch(owner.spec.template)
        current: list[Any] = []
        old: list[Any] = []
        for one in found:
            labelled = one if LABEL in one.metadata.labels else await self._label(one)
            (current if labelled.data.raw == data else old).append(labelled)
        number = max((one.revision for one in old), default=0) + 1
        if not current:
            chosen = await self._snapshot(owner, data, number)
        else:
            chosen = await self._deduplicated(current, pods)
            if chosen.revision < number:
                await self.renumber(chosen, number)
        return str(chosen.metadata.labels[LABEL]), old

    async def _label(self, revision: apps_v1_pb2.ControllerRevision) -> apps_v1_pb2.ControllerRevision:
        """One of another version of Kubernetes lacks it; its name serves as well."""
        wanted = meta.copied(revision)
        wanted.metadata.labels[LABEL] = wanted.metadata.name
        return await self._client.update(wanted)

    async def _snapshot(self, owner: apps_v1_pb2.DaemonSet, data: bytes, number: int) -> apps_v1_pb2.ControllerRevision:
        """``snapshot``. Raises AlreadyExists if another template has this hash: the next sync tries the next one."""
        status = owner.status
        collisions = status.collisionCount if status.HasField("collisionCount") else None
        template_hash = hashes.of_template(owner.spec.template, collisions)
        made = histories.new_revision(owner, "DaemonSet", data, number)
        made.metadata.name = f"{owner.metadata.name}-{template_hash}"
        made.metadata.labels[LABEL] = template_hash
        try:
            return await self._client.create(made)
        except errors.AlreadyExists:
            metadata = owner.metadata
            known = await self._client.get("controllerrevisions", made.metadata.name, metadata.namespace)
            if known.data.raw == data:
                return known
            fresh = await self._client.get("daemonsets", metadata.name, metadata.namespace)
            if fresh.status.HasField("collisionCount") == (collisions is not None) and (
                fresh.status.collisionCount == (collisions or 0)
            ):
                fresh.status.collisionCount += 1
                await self._client.update_status(fresh)
            raise

    async def _deduplicated(
        self, current: list[apps_v1_pb2.ControllerRevision], pods: Iterable[Any]
    ) -> apps_v1_pb2.ControllerRevision:
        """Keep the latest of several revisions with one template; pods of the others become its own
        (``dedupCurHistories``)."""
        if len(current) == 1:
            return current[0]
        kept = max(current, key=lambda one: one.revision)
        value = kept.metadata.labels[LABEL]
        for pod in pods:
            if pod.metadata.labels.get(LABEL) != value:
                metadata = pod.metadata
                patch = {"metadata": {"labels": {LABEL: value}}}
                await self._client.patch("pods", metadata.name, metadata.namespace, patch, uid=metadata.uid)
        for one in current:
            if one is not kept:
                await self.delete(one)
        return kept

    async def clean_up(self, owner: apps_v1_pb2.DaemonSet, old: list[Any], pods: Iterable[Any]) -> None:
        """Delete the oldest revisions that no pod has, beyond the history that is kept (``cleanupHistory``)."""
        surplus = len(old) - owner.spec.revisionHistoryLimit
        if surplus <= 0:
            return
        live = {histories.revision_of(pod) for pod in pods}
        doomed = [one for one in sorted(old, key=lambda one: one.revision) if one.metadata.labels[LABEL] not in live]
        for one in doomed[:surplus]:
            await self.delete(one)
