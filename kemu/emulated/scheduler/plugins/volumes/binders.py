"""The volume binder: which volumes a pod would get on a node, and how they are bound to its claims.

Mirrors binder.go of the plugin volumebinding. Claims of a pod are bound, or unbound and left to the scheduler (their
class waits for the first consumer), or unbound and another component's business. For those in the middle a free volume
is looked for (*static binding*), the smallest that fits, or one is to be created where the node can reach it (*dynamic
provisioning*). What was chosen is assumed, so that the next pod does not choose it too, and written when the pod is
bound: the volume's ``claimRef``, or the annotation ``selected-node`` of the claim. Then the binder waits until the
controllers have done the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kemu import errors
from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.volumes import claims, matching, migration
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.storage import AssumeCache, Storage, not_found
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_IS_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

POLL_S = 1.0
"""How often the binder looks whether claims are bound."""


class BinderError(Exception):
    """Something that is not the pod's fault, or not only."""


class StaticBinding(NamedTuple):
    claim: core_v1_pb2.PersistentVolumeClaim
    volume: core_v1_pb2.PersistentVolume
    """Once assumed or written: with the reference to the claim."""


class Provision(NamedTuple):
    claim: core_v1_pb2.PersistentVolumeClaim
    """Once assumed or written: with the selected node."""
    capacity: Any | None = None
    """The CSIStorageCapacity that has room for it; None: there is no count."""


class PodVolumes:
    """What a pod gets on one node."""

    __slots__ = ("provisions", "static")

    def __init__(self, static: list[StaticBinding], provisions: list[Provision]) -> None:
        self.static = static
        self.provisions = provisions


class PodClaims(NamedTuple):
    """The claims of a pod (``PodVolumeClaims``)."""

    bound: list[Any]
    delayed: list[Any]
    """Unbound: the scheduler binds them."""
    immediate: list[Any]
    """Unbound: another component ought to have bound them."""
    volumes: Mapping[str, list[Any]]
    """All volumes of the classes of ``delayed``, by class."""


class Binder:
    """Binder of one profile."""

    def __init__(self, handle: Handle, bind_timeout_s: float) -> None:
        self._handle = handle
        self._storage: Storage = handle.cluster.storage
        self._claims = AssumeCache(self._storage.claims)
        self._volumes = AssumeCache(self._storage.volumes)
        self._bind_timeout_s = bind_timeout_s

    # PreFilter ------------------------------------------------------------------------------------------------------

    def claims_of(self, pod: core_v1_pb2.Pod) -> PodClaims:
        """``GetPodVolumeClaims``. Raises BinderError."""
        found = PodClaims([], [], [], {})
        for volume in pod.spec.volumes:
            claim = self._claim_of(pod, volume)
            if claim is None:
                continue
            if claims.is_fully_bound(claim):
                found.bound.append(claim)
            elif self._is_delayed(claim) and not claim.spec.volumeName:
                found.delayed.append(claim)
            else:
                found.immediate.append(claim)
        by_class: dict[str, list[Any]] = {}
        for claim in found.delayed:
            name = claims.class_of_claim(claim)
            if name not in by_class:
                by_class[name] = [self._volumes.get(one.metadata.name) for one in self._storage.volumes_of_class(name)]
        return found._replace(volumes=by_class)

    def _claim_of(self, pod: core_v1_pb2.Pod, volume: core_v1_pb2.Volume) -> core_v1_pb2.PersistentVolumeClaim | None:
        """``isVolumeBound``: None for a volume without a claim."""
        source = volume.volumeSource
        is_ephemeral = source.HasField("ephemeral")
        if not is_ephemeral and not source.HasField("persistentVolumeClaim"):
            return None
        key = f"{pod.metadata.namespace}/{claims.claim_name(pod.metadata.name, volume)}"
        claim = self._claims.get(key)
        if claim is None:
            raise BinderError(f'error getting PVC "{key}": {not_found("persistentvolumeclaims", key)}')
        wrong = claims.not_for_pod(claim, pod) if is_ephemeral else ""
        if wrong:
            raise BinderError(wrong)
        return claim

    def _is_delayed(self, claim: core_v1_pb2.PersistentVolumeClaim) -> bool:
        """``IsDelayBindingMode``."""
        name = claims.class_of_claim(claim)
        storage_class = self._storage.classes.get(name) if name else None
        if storage_class is None:
            return False
        if not storage_class.volumeBindingMode:
            raise BinderError(f'VolumeBindingMode not set for StorageClass "{name}"')
        return bool(storage_class.volumeBindingMode == claims.WAIT_FOR_FIRST_CONSUMER)

    # Filter ---------------------------------------------------------------------------------------------------------

    def find(self, pod_claims: PodClaims, node: NodeInfo) -> tuple[PodVolumes, tuple[str, ...]]:
        """What the pod gets on a node, or the reasons why it cannot run there (``FindPodVolumes``).

        Raises BinderError.
        """
        bound = self._check_bound(pod_claims.bound, node) if pod_claims.bound else ""
        unbound, has_space = True, True
        static: list[StaticBinding] = []
        provisions: list[Provision] = []
        to_match, to_provision = [], []
        for claim in pod_claims.delayed:
            annotations = claim.metadata.annotations
            if claims.SELECTED_NODE not in annotations:
                to_match.append(claim)
            elif annotations[claims.SELECTED_NODE] == node.name:
                to_provision.append(claim)
            else:
                return PodVolumes([], []), _reasons(bound, unbound=False, has_space=True)
        if to_match:
            unbound, static, left = self._match(to_match, pod_claims.volumes, node)
            to_provision += left
        if to_provision:
            unbound, has_space, provisions = self._check_provisions(to_provision, node)
        return PodVolumes(static, provisions), _reasons(bound, unbound=unbound, has_space=has_space)

    def _check_bound(self, bound: list[core_v1_pb2.PersistentVolumeClaim], node: NodeInfo) -> str:
        """Why the node does not reach the volumes of bound claims, "" if it does (``checkBoundClaims``)."""
        for claim in bound:
            volume = self._volumes.get(claim.spec.volumeName)
            if volume is None:
                return VOLUME_IS_GONE
            if not matching.is_reachable(self._translated(volume, node.name), node.labels):
                return NODE_CONFLICT
        return ""

    def _translated(self, volume: core_v1_pb2.PersistentVolume, node: str) -> core_v1_pb2.PersistentVolume:
        """``tryTranslatePVToCSI``."""
        plugin = migration.plugin_of(volume.spec.persistentVolumeSource)
        if plugin is None or not plugin.is_migrated:
            return volume
        if not migration.migrated_on(self._storage.csi_nodes.get(node), plugin.name):
            return volume
        try:
            return migration.translated(volume)
        except migration.MigrationError as error:
            raise BinderError(f"could not translate pv: {error}") from None

    def _match(
        self, wanted: list[core_v1_pb2.PersistentVolumeClaim], volumes: Mapping[str, list[Any]], node: NodeInfo
    ) -> tuple[bool, list[StaticBinding], list[Any]]:
        """Free volumes for claims, small claims first; also the claims that found none (``findMatchingVolumes``)."""
        wanted.sort(key=claims.requested)
        static: list[StaticBinding] = []
        left: list[Any] = []
        chosen: dict[str, None] = {}
        where = node.labels, node.name
        for claim in wanted:
            volume = matching.find(claim, volumes[claims.class_of_claim(claim)], where, chosen, delays=True)
            if volume is None:
                left.append(claim)
            else:
                chosen[volume.metadata.name] = None
                static.append(StaticBinding(claim, volume))
        return not left, static, left

    def _check_provisions(
        self, wanted: list[core_v1_pb2.PersistentVolumeClaim], node: NodeInfo
    ) -> tuple[bool, bool, list[Provision]]:
        """Whether volumes can be created for claims, and whether there is room for them (``checkVolumeProvisions``)."""
        found: list[Provision] = []
        for claim in wanted:
            name = claims.class_of_claim(claim)
            storage_class = self._storage.classes.get(name)
            if storage_class is None:
                raise BinderError(f'failed to find storage class "{name}"')
            if storage_class.provisioner in ("", claims.NO_PROVISIONER):
                return False, True, []
            if not matching.allows_topology(storage_class.allowedTopologies, node.labels):
                return False, True, []
            has_room, capacity = self._has_room(storage_class, claim, node)
            if not has_room:
                return True, False, []
            found.append(Provision(claim, capacity))
        return True, True, found

    def _has_room(
        self, storage_class: storage_v1_pb2.StorageClass, claim: core_v1_pb2.PersistentVolumeClaim, node: NodeInfo
    ) -> tuple[bool, Any | None]:
        """``hasEnoughCapacity``: of drivers that publish how much room they have."""
        if "storage" not in claim.spec.resources.requests:
            return True, None
        driver = self._storage.drivers.get(storage_class.provisioner)
        if driver is None or not driver.spec.storageCapacity:
            return True, None
        size = claims.requested(claim).value
        for capacity in self._storage.capacities.values():
            if capacity.storageClassName != storage_class.metadata.name or not capacity.HasField("nodeTopology"):
                continue
            limit = limit_of(capacity)
            is_large = limit is not None and limit >= size
            if is_large and selectors.compile_labels(capacity.nodeTopology).matches(node.labels):
                return True, capacity
        return False, None

    # Reserve, Unreserve ---------------------------------------------------------------------------------------------

    def assume(self, pod: core_v1_pb2.Pod, node: str, volumes: PodVolumes) -> bool:
        """Assume what is to be written; True if everything is bound already (``AssumePodVolumes``).

        Raises BinderError.
        """
        if self._are_bound(pod):
            return True
        static: list[StaticBinding] = []
        for claim, volume in volumes.static:
            bound = claims.bound_to(volume, claim)
            wrong = self._volumes.assume(bound) if bound is not None else ""
            if wrong:
                self._restore(static, [])
                raise BinderError(wrong)
            static.append(StaticBinding(claim, volume if bound is None else bound))
        provisions: list[Provision] = []
        for claim, _capacity in volumes.provisions:
            selected = type(claim)()
            selected.CopyFrom(claim)
            selected.metadata.annotations[claims.SELECTED_NODE] = node
            wrong = self._claims.assume(selected)
            if wrong:
                self._restore(static, provisions)
                raise BinderError(wrong)
            provisions.append(Provision(selected))
        volumes.static, volumes.provisions = static, provisions
        return False

    def _are_bound(self, pod: core_v1_pb2.Pod) -> bool:
        """``arePodVolumesBound``."""
        try:
            found = [self._claim_of(pod, volume) for volume in pod.spec.volumes]
        except BinderError:
            return False
        return all(claim is None or claims.is_fully_bound(claim) for claim in found)

    def revert(self, volumes: PodVolumes) -> None:
        """``RevertAssumedPodVolumes``."""
        self._restore(volumes.static, volumes.provisions)

    def _restore(self, static: list[StaticBinding], provisions: list[Provision]) -> None:
        for binding in static:
            self._volumes.restore(binding.volume)
        for provision in provisions:
            self._claims.restore(provision.claim)

    # PreBind --------------------------------------------------------------------------------------------------------

    async def bind(self, pod: core_v1_pb2.Pod, node: str, volumes: PodVolumes, exists: Callable[[], bool]) -> None:
        """Write, and wait until all claims are bound (``BindPodVolumes``). ``exists``: whether the pod does.

        Raises BinderError or ApiError.
        """
        clock = self._handle.clock
        assert clock is not None, "nothing can be bound without a clock"
        await self._write(volumes)
        deadline_ns = clock.now_ns() + round(self._bind_timeout_s * SECOND_NS)
        while True:
            left_s = (deadline_ns - clock.now_ns()) / SECOND_NS
            await clock.sleep(min(POLL_S, left_s))
            if clock.now_ns() >= deadline_ns:
                raise BinderError("binding volumes: context deadline exceeded")
            try:
                if self._is_bound(pod, node, volumes, exists):
                    return
            except BinderError as error:
                raise BinderError(f"binding volumes: {error}") from None

    async def _write(self, volumes: PodVolumes) -> None:
        """``bindAPIUpdate``. What cannot be written is no longer assumed."""
        api = self._handle.api
        assert api is not None, "nothing can be bound without an API"
        written, selected = 0, 0
        try:
            for place, (claim, volume) in enumerate(volumes.static):
                volumes.static[place] = StaticBinding(claim, await api.update(volume))
                written += 1
            for place, (claim, _capacity) in enumerate(volumes.provisions):
                volumes.provisions[place] = Provision(await api.update(claim))
                selected += 1
        except errors.ApiError:
            self._restore(volumes.static[written:], volumes.provisions[selected:])
            raise

    def _is_bound(self, pod: core_v1_pb2.Pod, name: str, volumes: PodVolumes, exists: Callable[[], bool]) -> bool:
        """Whether all claims are bound as decided (``checkBindings``). Raises BinderError where they will not be."""
        node = self._handle.cluster.nodes.get(name)
        if node is None or node.held is None:
            raise BinderError(f'failed to get node "{name}": node "{name}" not found')
        if not exists():
            raise BinderError(f'pod does not exist any more: pod "{pod.metadata.name}" not found')
        for claim, written in volumes.static:
            volume, now = self._volumes.stored(written.metadata.name), self._claims.stored(_key(claim))
            if volume is None:
                raise BinderError(f"failed to check binding: {not_found('persistentvolumes', written.metadata.name)}")
            if now is None:
                raise BinderError(f"failed to check binding: {not_found('persistentvolumeclaims', _key(claim))}")
            if _is_newer(written, volume):
                return False
            self._check_node(volume, node)
            if not volume.spec.HasField("claimRef") or not volume.spec.claimRef.uid:
                raise BinderError(f'ClaimRef got reset for pv "{volume.metadata.name}"')
            if not claims.is_fully_bound(now):
                return False
        for provision in volumes.provisions:
            key = _key(provision.claim)
            now = self._claims.stored(key)
            if now is None:
                raise BinderError(f"failed to check provisioning pvc: {not_found('persistentvolumeclaims', key)}")
            if _is_newer(provision.claim, now):
                return False
            annotations = now.metadata.annotations
            if not annotations:
                raise BinderError(f'selectedNode annotation reset for PVC "{now.metadata.name}"')
            if annotations.get(claims.SELECTED_NODE, "") != name:
                raise BinderError(f'provisioning failed for PVC "{now.metadata.name}"')
            if now.spec.volumeName:
                volume = self._volumes.stored(now.spec.volumeName)
                if volume is None:
                    return False
                self._check_node(volume, node)
            if not claims.is_fully_bound(now):
                return False
        return True

    def _check_node(self, volume: core_v1_pb2.PersistentVolume, node: NodeInfo) -> None:
        if not matching.is_reachable(self._translated(volume, node.name), node.labels):
            why = f'node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            raise BinderError(f'pv "{volume.metadata.name}" {why}')


def _reasons(bound: str, *, unbound: bool, has_space: bool) -> tuple[str, ...]:
    """In the order in which the original appends them."""
    found = [bound] if bound == NODE_CONFLICT else []
    if not unbound:
        found.append(BIND_CONFLICT)
    if not has_space:
        found.append(NOT_ENOUGH_SPACE)
    if bound == VOLUME_IS_GONE:
        found.append(bound)
    return tuple(found)


def limit_of(capacity: storage_v1_pb2.CSIStorageCapacity) -> int | None:
    """The largest volume that fits (``volumeLimit``)."""
    if capacity.HasField("maximumVolumeSize"):
        return quantities.value(capacity.maximumVolumeSize.string)
    return quantities.value(capacity.capacity.string) if capacity.HasField("capacity") else None


def _key(claim: core_v1_pb2.PersistentVolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _is_newer(one: KubernetesObject, other: KubernetesObject) -> bool:
    """``CompareResourceVersion``; objects that no API server has stored are of version 0."""
    return int(one.metadata.resourceVersion or 0) > int(other.metadata.resourceVersion or 0)
