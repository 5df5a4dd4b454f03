"""The actor ``controller/resourceclaim``: the life of ResourceClaims.

It generates the claims of pods from their templates, takes pods that have ended off the claims that they reserved,
deallocates a claim when its last consumer has gone, and deletes generated claims of pods that need them no longer. The
scheduler allocates and reserves; only for pods that others have bound does this controller reserve. Further config:
``events`` (:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors ``pkg/controller/resourceclaim`` with the feature
gates of v1.36: claims of PodGroups do not exist.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.devices.created_claims import CreatedClaims
from kemu.emulated.objects import meta
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ClaimCreated, ClaimDeallocated, ClaimDeleted

WORKERS = 50
"""``--concurrent-resource-claim-syncs``."""
MOST_DELETED = 500
"""Deleted pods that are remembered (``maxUIDCacheEntries``)."""
MANAGER = "ResourceClaimController"
"""The field manager of a pod's ``status.resourceClaimStatuses``."""
_POD, _CLAIM = "pod:", "claim:"
_LONGEST_BASE = 57
"""What is left of a name for the pod and its claim, beside a hyphen and five random letters."""


class ResourceClaimController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.devices.resource_claims:ResourceClaimController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "resource_claim", "0", level)
        self._queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="resource_claim")
        self._deleted: OrderedDict[str, None] = OrderedDict()
        """UIDs of pods that are known to be gone."""
        self._pods_by_claim: dict[str, dict[str, None]] = {}
        self._pods_by_template: dict[str, dict[str, None]] = {}
        self._claims_by_pod: dict[str, dict[str, None]] = {}
        """Keys of claims, by the UID of the pod that owns them."""
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client, "pods", handler=informers.Callbacks(self._pod_came, self._pod_changed, self._pod_gone)
        )
        self._claims: informers.Informer[ResourceClaim] = informers.Informer(
            self.client,
            "resourceclaims",
            handler=informers.Callbacks(self._claim_came, self._claim_changed, self._claim_gone),
        )
        self._templates: informers.Informer[ResourceClaimTemplate] = informers.Informer(
            self.client,
            "resourceclaimtemplates",
            handler=informers.Callbacks(self._template_came, lambda old, new: self._template_came(new)),
        )
        self._created = CreatedClaims(self.clock, self._claims.store)

    async def run(self) -> None:
        await self.begin(self._pods, self._claims, self._templates)
        await self.work(self._queue, self._sync, WORKERS)

    # --- events ------------------------------------------------------------------------------------------------------

    def _pod_came(self, pod: core_v1_pb2.Pod) -> None:
        if pod.spec.resourceClaims:
            self._index(pod)
        self._enqueue_pod(pod)

    def _pod_changed(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        if old.spec.resourceClaims:
            self._index(old, remove=True)
        self._pod_came(new)

    def _pod_gone(self, pod: core_v1_pb2.Pod) -> None:
        if pod.spec.resourceClaims:
            self._index(pod, remove=True)
        self._enqueue_pod(pod, deleted=True)

    def _index(self, pod: core_v1_pb2.Pod, *, remove: bool = False) -> None:
        key, namespace = controllers.key_of(pod), pod.metadata.namespace
        for entry in pod.spec.resourceClaims:
            if entry.HasField("resourceClaimTemplateName"):
                _put(self._pods_by_template, f"{namespace}/{entry.resourceClaimTemplateName}", key, remove)
            name = _made_name(pod, entry)
            if name is not None:
                _put(self._pods_by_claim, f"{namespace}/{name}", key, remove)

    def _claim_came(self, claim: ResourceClaim) -> None:
        uid = claims.owning_pod(claim)[1]
        if uid:
            _put(self._claims_by_pod, uid, controllers.key_of(claim), remove=False)
        self._queue.add_after(_CLAIM + controllers.key_of(claim), self.lag_s())
        self._enqueue_users(claim)

    def _claim_changed(self, old: ResourceClaim, new: ResourceClaim) -> None:
        uid = claims.owning_pod(old)[1]
        if uid:
            _put(self._claims_by_pod, uid, controllers.key_of(old), remove=True)
        self._claim_came(new)

    def _claim_gone(self, claim: ResourceClaim) -> None:
        uid = claims.owning_pod(claim)[1]
        if uid:
            _put(self._claims_by_pod, uid, controllers.key_of(claim), remove=True)
        self._enqueue_users(claim)

    def _enqueue_users(self, claim: ResourceClaim) -> None:
        for key in list(self._pods_by_claim.get(controllers.key_of(claim), ())):
            self._enqueue_pod(self._pods.store[key])

    def _template_came(self, template: ResourceClaimTemplate) -> None:
        for key in list(self._pods_by_template.get(controllers.key_of(template), ())):
            self._enqueue_pod(self._pods.store[key])

    def _enqueue_pod(self, pod: core_v1_pb2.Pod, *, deleted: bool = False) -> None:
        """``enqueuePod``."""
        extended = pod.status.HasField("extendedResourceClaimStatus")
        if not pod.spec.resourceClaims and not extended:
            return
        if deleted:
            self._deleted[pod.metadata.uid] = None
            self._deleted.move_to_end(pod.metadata.uid)
            if len(self._deleted) > MOST_DELETED:
                self._deleted.popitem(last=False)
        lag_s, namespace = self.lag_s(), pod.metadata.namespace
        if deleted or _is_done(pod):
            names = [_made_name(pod, entry) for entry in pod.spec.resourceClaims]
            if extended:
                names.append(pod.status.extendedResourceClaimStatus.resourceClaimName)
            for name in names:
                if name is not None:
                    self._queue.add_after(f"{_CLAIM}{namespace}/{name}", lag_s)
        if self._needs_work(pod):
            self._queue.add_after(_POD + controllers.key_of(pod), lag_s)

    def _needs_work(self, pod: core_v1_pb2.Pod) -> bool:
        """``podNeedsWork``."""
        if pod.metadata.HasField("deletionTimestamp"):
            return False
        for entry in pod.spec.resourceClaims:
            try:
                name, must_own = claims.name_of(pod, entry)
            except claims.NotMade:
                return True
            if name is None:
                continue
            claim = self._claims.store.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                if entry.HasField("resourceClaimTemplateName"):
                    return True
                continue
            if must_own and claims.not_for_pod(pod, claim):
                continue
            if pod.spec.nodeName and claim.status.HasField("allocation") and not claims.is_reserved_for(pod, claim):
                return True
        return False

    # --- work --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        if key.startswith(_POD):
            await self._sync_pod(key.removeprefix(_POD))
        else:
            await self._sync_claim(key.removeprefix(_CLAIM))

    async def _sync_pod(self, key: str) -> None:
        """``syncPod``."""
        pod = self._pods.store.get(key)
        if pod is None or pod.metadata.HasField("deletionTimestamp"):
            return
        made: dict[str, str] = {}
        for entry in pod.spec.resourceClaims:
            try:
                name = await self._handle(pod, entry)
            except errors.ApiError as error:
                text = f"PodResourceClaim {entry.name}: {error.message}"
                reason = "FailedResourceClaimCreation"
                self._recorder.event(pod, recorders.WARNING, reason, reason, text)
                raise
            if name:
                made[entry.name] = name
        if made:
            await self.state(pod, made)
        if pod.spec.nodeName:
            await self._reserve(pod)

    async def state(self, pod: core_v1_pb2.Pod, made: Mapping[str, str]) -> None:
        """Write the names of its generated claims, by entry, to the status of a pod."""
        statuses = [{"name": entry, "resourceClaimName": name} for entry, name in made.items()]
        patch = {"apiVersion": "v1", "kind": "Pod", "status": {"resourceClaimStatuses": statuses}}
        await self.client.apply("pods", pod.metadata.name, pod.metadata.namespace, patch, MANAGER, "status")

    async def _reserve(self, pod: core_v1_pb2.Pod) -> None:
        """For a pod that is bound and whose claims are allocated, but not for it."""
        for entry in pod.spec.resourceClaims:
            try:
                name, must_own = claims.name_of(pod, entry)
            except claims.NotMade as error:
                raise errors.ServiceUnavailable(str(error)) from None
            if name is None:
                continue
            claim = self._claims.store.get(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                return
            if must_own and (why := claims.not_for_pod(pod, claim)):
                raise errors.ServiceUnavailable(why)
            if claim.status.HasField("allocation") and not claims.is_reserved_for(pod, claim):
                changed = meta.copied(claim)
                changed.status.reservedFor.add(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                await self.client.update_status(changed)

    async def _handle(self, pod: core_v1_pb2.Pod, entry: core_v1_pb2.PodResourceClaim) -> str:
        """``handleClaim``. Returns the name that the status of the pod has to have; empty: it is right, or there is
        none."""
        namespace = pod.metadata.namespace
        try:
            name, must_own = claims.name_of(pod, entry)
        except claims.NotMade:
            pass
        else:
            if name is None:
                return ""
            claim = self._claims.store.get(f"{namespace}/{name}")
            if claim is not None and not (must_own and claims.not_for_pod(pod, claim)):
                return ""
        if not entry.HasField("resourceClaimTemplateName"):
            return ""
        found = self._find(pod, entry)
        if found is None:
            found = await self._create(pod, entry)
        return found.metadata.name

    def _find(self, pod: core_v1_pb2.Pod, entry: core_v1_pb2.PodResourceClaim) -> ResourceClaim | None:
        """One that was made for it before its status could say so (``findPodResourceClaim``)."""
        uid = pod.metadata.uid
        for claim in self._created.of_pod(uid, self._claims_by_pod.get(uid, ())):
            if claim.metadata.annotations.get(claims.POD_CLAIM) == entry.name:
                return claim
        return None

    async def _create(self, pod: core_v1_pb2.Pod, entry: core_v1_pb2.PodResourceClaim) -> ResourceClaim:
        namespace, name = pod.metadata.namespace, entry.resourceClaimTemplateName
        template = self._templates.store.get(f"{namespace}/{name}")
        if template is None:
            why = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise errors.ServiceUnavailable(f'resource claim template "{name}": {why}')
        claim = ResourceClaim(spec=template.spec.spec)
        claim.metadata.namespace = namespace
        claim.metadata.generateName = _base_name(pod.metadata.name, entry.name)
        claim.metadata.annotations.update(template.spec.metadata.annotations)
        claim.metadata.annotations[claims.POD_CLAIM] = entry.name
        claim.metadata.labels.update(template.spec.metadata.labels)
        reference = meta.owner_reference(pod, "v1", "Pod")
        reference.ClearField("blockOwnerDeletion")
        claim.metadata.ownerReferences.append(reference)
        try:
            made = await self.client.create(claim)
        except errors.ApiError as error:
            error.message = f"create ResourceClaim : {error.message}"
            raise
        self._created.add(made)
        key, uid = controllers.key_of(made), made.metadata.uid
        self.env.log(ClaimCreated(claim=key, uid=uid, pod=controllers.key_of(pod), pod_uid=pod.metadata.uid))
        return made

    async def _sync_claim(self, key: str) -> None:
        """``syncClaim``."""
        claim = self._claims.store.get(key)
        if claim is None:
            return
        consumers = claim.status.reservedFor
        remaining = [one for one in consumers if await self._still_needs(claim, one)]
        protected = claims.FINALIZER in claim.metadata.finalizers
        if len(remaining) < len(consumers):
            changed = meta.copied(claim)
            del changed.status.reservedFor[:]
            changed.status.reservedFor.extend(remaining)
            if not remaining and protected:
                changed.status.ClearField("allocation")
            changed = await self.client.update_status(changed)
            if not changed.status.HasField("allocation"):
                self._tell_deallocated(claim)
                if claims.FINALIZER in changed.metadata.finalizers:
                    await self._unprotect(changed)
        elif protected and claim.metadata.HasField("deletionTimestamp") and not remaining:
            changed = meta.copied(claim)
            if changed.status.HasField("allocation"):
                changed.status.ClearField("allocation")
                changed = await self.client.update_status(changed)
                self._tell_deallocated(claim)
            await self._unprotect(changed)
        if not remaining:
            await self._delete_unused(claim)

    async def _still_needs(self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> bool:
        if consumer.apiGroup or consumer.resource != "pods":
            return True
        if consumer.uid in self._deleted:
            return False
        namespace = claim.metadata.namespace
        pod = self._pods.store.get(f"{namespace}/{consumer.name}")
        if pod is not None:
            return pod.metadata.uid == consumer.uid and not _is_done(pod)
        # It may be one that the informer does not show yet: only the API server knows.
        try:
            pod = await self.client.get("pods", consumer.name, namespace)
        except errors.NotFound:
            return False
        return bool(pod.metadata.uid == consumer.uid)

    async def _unprotect(self, claim: ResourceClaim) -> None:
        changed = meta.copied(claim)
        changed.metadata.finalizers.remove(claims.FINALIZER)
        await self.client.update(changed)

    def _tell_deallocated(self, claim: ResourceClaim) -> None:
        devices = [claims.shown_key(claims.device_key(one)) for one in claim.status.allocation.devices.results]
        self.env.log(ClaimDeallocated(claim=controllers.key_of(claim), uid=claim.metadata.uid, devices=devices))

    async def _delete_unused(self, claim: ResourceClaim) -> None:
        """A generated claim whose pod will not run any more. If the pod is gone, the garbage collector deletes it."""
        name, uid = claims.owning_pod(claim)
        pod = self._pods.store.get(f"{claim.metadata.namespace}/{name}") if name else None
        if pod is not None and (pod.metadata.uid != uid or _is_done(pod)):
            await self.client.delete("resourceclaims", claim.metadata.name, claim.metadata.namespace)
            self.env.log(ClaimDeleted(claim=controllers.key_of(claim), uid=claim.metadata.uid))


def _put(index: dict[str, dict[str, None]], value: str, key: str, remove: bool) -> None:
    if not remove:
        index.setdefault(value, {})[key] = None
        return
    keys = index.get(value)
    if keys is not None:
        keys.pop(key, None)
        if not keys:
            del index[value]


def _made_name(pod: core_v1_pb2.Pod, entry: core_v1_pb2.PodResourceClaim) -> str | None:
    """None: there is no claim for the entry, or not yet."""
    try:
        return claims.name_of(pod, entry)[0]
    except claims.NotMade:
        return None


def _is_done(pod: core_v1_pb2.Pod) -> bool:
    """No container runs or ever will (``isPodDone``)."""
    return pod_phases.is_terminal(pod) or (pod.metadata.HasField("deletionTimestamp") and not pod.spec.nodeName)


def _base_name(pod: str, entry: str) -> str:
    """Both names are cut in proportion, lest nothing be left of the second."""
    name = f"{pod}-{entry}-"
    total = len(name)
    if total <= _LONGEST_BASE:
        return name
    return f"{pod[: len(pod) * _LONGEST_BASE // total]}-{entry[: len(entry) * _LONGEST_BASE // total]}"
