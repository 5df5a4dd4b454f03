"""VolumeBinding: a pod goes where its volumes are, or where they can be bound or created; and they are, before it is
bound.

The decisions are those of the :mod:`~kemu.emulated.scheduler.plugins.volumes.binders`. Scores by storage are off, as
the feature gate StorageCapacityScoring is in v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated.objects.volumes import claims, migration
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    SKIP,
    Cycle,
    FilterPlugin,
    Handle,
    PreBindPlugin,
    ReservePlugin,
    SignPlugin,
    Skip,
)
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import ERROR, Status, unresolvable
from kemu.emulated.scheduler.plugins.volumes import binders, hints
from kemu.emulated.scheduler.plugins.volumes.binders import Binder, BinderError, PodClaims, PodVolumes
from kemu.errors import ApiError
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2

BIND_TIMEOUT_S = 600


class _State:
    """``stateData``: what Filter found for each node, kept for Reserve and PreBind."""

    __slots__ = ("all_bound", "by_node", "claims", "statuses", "verdicts")

    def __init__(self, pod_claims: PodClaims) -> None:
        self.claims = pod_claims
        self.by_node: dict[str, PodVolumes] = {}
        self.all_bound = False
        self.verdicts: dict[str, int] = {}
        self.statuses: list[Status] = []
        """What verdicts from 1 on stand for."""

    def number(self, status: Status) -> int:
        if status not in self.statuses:
            self.statuses.append(status)
        return 1 + self.statuses.index(status)


class VolumeBinding(FilterPlugin, ReservePlugin, PreBindPlugin, SignPlugin):
    may_fail = True

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.binder = Binder(handle, args.get("bindTimeoutSeconds", BIND_TIMEOUT_S))
        self._storage = handle.cluster.storage

    def concerns(self, template: Template) -> bool:
        return bool(template.claims) or any(source.HasField("ephemeral") for source in template.volumes)

    # PreFilter, Filter ----------------------------------------------------------------------------------------------

    def prepare(self, cycle: Cycle) -> Any:
        wrong = self._what_is_wrong(cycle.message)
        if wrong:
            return unresolvable(wrong)
        try:
            found = self.binder.claims_of(cycle.message)
        except BinderError as error:
            return Status(ERROR, (str(error),))
        if found.immediate:
            return unresolvable("pod has unbound immediate PersistentVolumeClaims")
        state = cycle.data[self.name] = _State(found)
        return state

    def _what_is_wrong(self, pod: core_v1_pb2.Pod) -> str:
        """``podHasPVCs``: the first of its claims that is missing, lost, being deleted, or another pod's."""
        for volume in pod.spec.volumes:
            name = claims.claim_name(pod.metadata.name, volume)
            if not name:
                continue
            is_ephemeral = volume.volumeSource.HasField("ephemeral")
            claim = self._storage.claims.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                if is_ephemeral:
                    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                return f'persistentvolumeclaim "{name}" not found'
            if claim.status.phase == claims.LOST:
                volume_name = claim.spec.volumeName
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"'
            if claim.metadata.HasField("deletionTimestamp"):
                return f'persistentvolumeclaim "{name}" is being deleted'
            wrong = claims.not_for_pod(claim, pod) if is_ephemeral else ""
            if wrong:
                return wrong
        return ""

    def verdict(self, state: _State, node: NodeInfo) -> int:
        """The pods of the node do not matter, so that one answer serves all simulations."""
        known = state.verdicts.get(node.name)
        if known is not None:
            return known
        try:
            volumes, reasons = self.binder.find(state.claims, node)
        except BinderError as error:
            verdict = state.number(Status(ERROR, (str(error),)))
        else:
            verdict = state.number(unresolvable(*reasons)) if reasons else 0
            if not reasons:
                state.by_node[node.name] = volumes
        state.verdicts[node.name] = verdict
        return verdict

    def explain(self, state: _State, verdict: int) -> Status:
        return state.statuses[verdict - 1]

    def passes_anyway(self, state: _State, node: NodeInfo) -> bool:
        return not self.verdict(state, node)

    # Reserve, Unreserve ---------------------------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, node: str) -> Status | None:
        state: _State | None = cycle.data.get(self.name)
        if state is None:
            return None
        volumes = state.by_node.get(node)
        if volumes is None:
            state.all_bound = True
            return None
        try:
            state.all_bound = self.binder.assume(cycle.message, node, volumes)
        except BinderError as error:
            return Status(ERROR, (str(error),))
        return None

    def unreserve(self, cycle: Cycle, node: str) -> None:
        state: _State | None = cycle.data.get(self.name)
        if state is not None and node in state.by_node:
            self.binder.revert(state.by_node[node])

    # PreBind --------------------------------------------------------------------------------------------------------

    def pre_bind_pre_flight(self, cycle: Cycle, node: str) -> Status | Skip | None:
        state: _State | None = cycle.data.get(self.name)
        return SKIP if state is None or state.all_bound else None

    async def pre_bind(self, cycle: Cycle, node: str) -> Status | None:
        state: _State = cycle.data[self.name]
        pod = cycle.pod
        try:
            await self.binder.bind(
                cycle.message, node, state.by_node[node], lambda: self.handle.latest(pod) is not None
            )  # fmt: skip
        except BinderError as error:
            return Status(ERROR, (str(error),))
        except ApiError as error:
            return Status(ERROR, (error.message,))
        return None

    # Events ---------------------------------------------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.volumes(pod.pod)

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [
            (Event.STORAGE_CLASS_ADD, None),
            (Event.STORAGE_CLASS_UPDATE, _allows_other_topologies),
            (Event.CLAIM_ADD, hints.uses_claim),
            (Event.CLAIM_UPDATE, hints.uses_claim),
            (Event.VOLUME_ADD, None),
            (Event.VOLUME_UPDATE, None),
            (Event.NODE_ADD, None),
            (Event.NODE_LABELS, None),
            (Event.CSI_NODE_ADD, None),
            (Event.CSI_NODE_UPDATE, _migrates_otherwise),
            (Event.CSI_DRIVER_UPDATE, _stops_counting),
            (Event.CAPACITY_ADD, None),
            (Event.CAPACITY_UPDATE, _has_more_room),
        ]


def _allows_other_topologies(pod: PodInfo, old: storage_v1_pb2.StorageClass, new: storage_v1_pb2.StorageClass) -> bool:
    """``isSchedulableAfterStorageClassChange``."""
    return list(old.allowedTopologies) != list(new.allowedTopologies)


def _migrates_otherwise(pod: PodInfo, old: storage_v1_pb2.CSINode, new: storage_v1_pb2.CSINode) -> bool:
    """``isSchedulableAfterCSINodeChange``."""
    before, after = old.metadata.annotations, new.metadata.annotations
    return bool(before.get(migration.MIGRATED_PLUGINS, "") != after.get(migration.MIGRATED_PLUGINS, ""))


def _stops_counting(pod: PodInfo, old: storage_v1_pb2.CSIDriver, new: storage_v1_pb2.CSIDriver) -> bool:
    """``isSchedulableAfterCSIDriverChange``, which looks at volumes that name the driver themselves."""
    sources = [volume.volumeSource for volume in pod.pod.spec.volumes]
    named = any(one.HasField("csi") and one.csi.driver == new.metadata.name for one in sources)
    return named and bool(old.spec.storageCapacity and not new.spec.storageCapacity)


def _has_more_room(
    pod: PodInfo, old: storage_v1_pb2.CSIStorageCapacity, new: storage_v1_pb2.CSIStorageCapacity
) -> bool:
    """``isSchedulableAfterCSIStorageCapacityChange``."""
    before, after = binders.limit_of(old), binders.limit_of(new)
    return after is not None and (before is None or after > before)
