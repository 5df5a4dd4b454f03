"""The actor ``controller/resourceclaim``: the life of ResourceClaims.

It generates the claims of pods and PodGroups from their templates, takes pods that have ended and PodGroups that are
gone off the claims that they reserved, deallocates a claim when its last consumer has gone, and deletes generated
claims of pods that need them no longer. The scheduler allocates and reserves; only for pods that others have bound does
this controller reserve. Further config:
``events`` (:data:`kemu.emulated.client.recorders.LEVELS`), ``settings`` (:class:`Settings`). Mirrors
``pkg/controller/resourceclaim`` with the feature gates of v1.36; claims of PodGroups have one of their own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.devices.created_claims import CreatedClaims
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.settings.declared import Section, restored, setting
from kemu.emulated.settings.shapes import Switch
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from kemu.messages.k8s.scheduling_v1alpha2_pb2 import PodGroup, PodGroupResourceClaim
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ClaimCreated, ClaimDeallocated, ClaimDeleted

WORKERS = 50
"""``--concurrent-resource-claim-syncs``."""
MOST_DELETED = 500
"""Deleted pods that are remembered (``maxUIDCacheEntries``)."""
MANAGER = "ResourceClaimController"
"""The field manager of a pod's ``status.resourceClaimStatuses``."""
_POD, _GROUP, _CLAIM = "pod:", "podgroup:", "claim:"
_LONGEST_BASE = 57
"""What is left of a name for the pod and its claim, beside a hyphen and five random letters."""

User = core_v1_pb2.Pod | PodGroup


@dataclass(frozen=True, kw_only=True)
class FeatureGates:
    dra_workload_resource_claims: bool = setting(
        Switch(), "Whether PodGroups have claims that their pods share.", False, key=claims.GATE
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    feature_gates: FeatureGates = setting(Section(FeatureGates), "Feature gates of this controller.", {})


class ResourceClaimController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.devices.resource_claims:ResourceClaimController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "resource_claim", "0", level)
        self._queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="resource_claim")
        self._deleted: OrderedDict[str, None] = OrderedDict()
        """UIDs of pods and PodGroups that are known to be gone."""
        self._pods_by_claim: dict[str, dict[str, None]] = {}
        self._pods_by_template: dict[str, dict[str, None]] = {}
        self._pods_by_group: dict[str, dict[str, None]] = {}
        self._groups_by_claim: dict[str, dict[str, None]] = {}
        self._groups_by_template: dict[str, dict[str, None]] = {}
        self._claims_by_owner: dict[str, dict[str, None]] = {}
        """Keys of claims, by the UID of the pod or the PodGroup that owns them."""
        gates = restored(Settings, config.get("settings", {})).feature_gates
        self._of_groups = gates.dra_workload_resource_claims
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
        self._groups: informers.Informer[PodGroup] = informers.Informer(
            self.client,
            "podgroups",
            handler=informers.Callbacks(self._group_came, self._group_changed, self._group_gone),
        )
        self._created = CreatedClaims(self.clock, self._claims.store)

    async def run(self) -> None:
        of_groups = (self._groups,) if self._of_groups else ()
        await self.begin(self._pods, *of_groups, self._claims, self._templates)
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
        _index(pod, self._pods_by_template, self._pods_by_claim, remove)
        if self._of_groups and pod.spec.HasField("schedulingGroup"):
            group = f"{pod.metadata.namespace}/{pod.spec.schedulingGroup.podGroupName}"
            _put(self._pods_by_group, group, controllers.key_of(pod), remove)

    def _group_came(self, group: PodGroup) -> None:
        _index(group, self._groups_by_template, self._groups_by_claim, remove=False)
        self._enqueue_group(group)

    def _group_changed(self, old: PodGroup, new: PodGroup) -> None:
        _index(old, self._groups_by_template, self._groups_by_claim, remove=True)
        self._group_came(new)

    def _group_gone(self, group: PodGroup) -> None:
        _index(group, self._groups_by_template, self._groups_by_claim, remove=True)
        self._enqueue_group(group, deleted=True)

    def _claim_came(self, claim: ResourceClaim) -> None:
        uid = claims.owner_uid(claim)
        if uid:
            _put(self._claims_by_owner, uid, controllers.key_of(claim), remove=False)
        self._queue.add_after(_CLAIM + controllers.key_of(claim), self.lag_s())
        self._enqueue_users(claim)

    def _claim_changed(self, old: ResourceClaim, new: ResourceClaim) -> None:
        uid = claims.owner_uid(old)
        if uid:
            _put(self._claims_by_owner, uid, controllers.key_of(old), remove=True)
        self._claim_came(new)

    def _claim_gone(self, claim: ResourceClaim) -> None:
        uid = claims.owner_uid(claim)
        if uid:
            _put(self._claims_by_owner, uid, controllers.key_of(claim), remove=True)
        self._enqueue_users(claim)

    def _enqueue_users(self, claim: ResourceClaim) -> None:
        key_of_claim = controllers.key_of(claim)
        self._enqueue_all(self._pods_by_claim.get(key_of_claim, ()), self._groups_by_claim.get(key_of_claim, ()))

    def _template_came(self, template: ResourceClaimTemplate) -> None:
        name = controllers.key_of(template)
        self._enqueue_all(self._pods_by_template.get(name, ()), self._groups_by_template.get(name, ()))

    def _enqueue_all(self, pods: Iterable[str], groups: Iterable[str]) -> None:
        for key in list(pods):
            self._enqueue_pod(self._pods.store[key])
        for key in list(groups):
            self._enqueue_group(self._groups.store[key])

    def _enqueue_pod(self, pod: core_v1_pb2.Pod, *, deleted: bool = False) -> None:
        """``enqueuePod``."""
        extended = pod.status.HasField("extendedResourceClaimStatus")
        if not pod.spec.resourceClaims and not extended:
            return
        if deleted:
            self._gone(pod.metadata.uid)
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

    def _gone(self, uid: str) -> None:
        self._deleted[uid] = None
        self._deleted.move_to_end(uid)
        if len(self._deleted) > MOST_DELETED:
            self._deleted.popitem(last=False)

    def _enqueue_group(self, group: PodGroup, *, deleted: bool = False) -> None:
        """``enqueuePodGroup``."""
        if not group.spec.resourceClaims:
            return
        key, lag_s = controllers.key_of(group), self.lag_s()
        if deleted:
            self._gone(group.metadata.uid)
            for name in (_made_name(group, entry) for entry in group.spec.resourceClaims):
                if name is not None:
                    self._queue.add_after(f"{_CLAIM}{group.metadata.namespace}/{name}", lag_s)
        if not group.metadata.HasField("deletionTimestamp") and any(
            self._lacks(group, entry) for entry in group.spec.resourceClaims
        ):
            self._queue.add_after(_GROUP + key, lag_s)
        # What it has been given becomes that of its pods, too.
        self._enqueue_all(self._pods_by_group.get(key, ()), ())

    def _lacks(self, group: PodGroup, entry: PodGroupResourceClaim) -> bool:
        """``podGroupNeedsWork``, of one claim."""
        try:
            name, _must_own = claims.name_of(group, entry)
        except claims.NotMade:
            return True
        is_made = entry.HasField("resourceClaimTemplateName")
        return is_made and name is not None and f"{group.metadata.namespace}/{name}" not in self._claims.store

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
                if entry.HasField("resourceClaimTemplateName") and not self._is_of_group(pod, entry):
                    return True
                continue
            if must_own and claims.not_for_pod(pod, claim, of_groups=self._of_groups):
                continue
            if pod.spec.nodeName and self._is_unreserved(pod, claim):
                return True
        return False

    def _is_of_group(self, pod: core_v1_pb2.Pod, entry: core_v1_pb2.PodResourceClaim) -> bool:
        """Whether the claim is made for the PodGroup of the pod; not known as long as there is no such group."""
        try:
            return claims.is_group(claims.consumer_of(pod, self._group_of(pod), entry))
        except errors.ApiError:
            return False

    def _is_unreserved(self, pod: core_v1_pb2.Pod, claim: ResourceClaim) -> bool:
        is_allocated = claim.status.HasField("allocation")
        return is_allocated and not claims.is_reserved_for(pod, claim, of_groups=self._of_groups)

    def _group_of(self, pod: core_v1_pb2.Pod) -> PodGroup | None:
        """The PodGroup of a pod (``getPodGroup``); None: of claims, it has no say. Raises ServiceUnavailable."""
        if not self._of_groups or not pod.spec.HasField("schedulingGroup"):
            return None
        name = pod.spec.schedulingGroup.podGroupName
        group = self._groups.store.get(f"{pod.metadata.namespace}/{name}")
        if group is None:
            why = f'podgroup.scheduling.k8s.io "{name}" not found'
            raise errors.ServiceUnavailable(f"get PodGroup for Pod {controllers.key_of(pod)}: {why}")
        return group

    # --- work --------------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        if key.startswith(_POD):
            await self._sync_pod(key.removeprefix(_POD))
        elif key.startswith(_GROUP):
            await self._sync_group(key.removeprefix(_GROUP))
        else:
            await self._sync_claim(key.removeprefix(_CLAIM))

    async def _sync_pod(self, key: str) -> None:
        """``syncPod``."""
        pod = self._pods.store.get(key)
        if pod is None or pod.metadata.HasField("deletionTimestamp"):
            return
        group = self._group_of(pod)
        await self._make_all(pod, group)
        if pod.spec.nodeName:
            await self._reserve(pod, group)

    async def _sync_group(self, key: str) -> None:
        """``syncPodGroup``."""
        group = self._groups.store.get(key)
        if group is not None and not group.metadata.HasField("deletionTimestamp"):
            await self._make_all(group, group)

    async def _make_all(self, user: User, group: PodGroup | None) -> None:
        made: dict[str, str] = {}
        for entry in user.spec.resourceClaims:
            try:
                name = await self._handle(user, group, entry)
            except errors.ApiError as error:
                text = f"{_kind(user)}ResourceClaim {entry.name}: {error.message}"
                reason = "FailedResourceClaimCreation"
                self._recorder.event(user, recorders.WARNING, reason, reason, text)
                raise
            if name:
                made[entry.name] = name
        if made:
            await self.state(user, made)

    async def state(self, user: User, made: Mapping[str, str]) -> None:
        """Write the names of its generated claims, by entry, to the status of a pod or a PodGroup."""
        statuses = [{"name": entry, "resourceClaimName": name} for entry, name in made.items()]
        resource = resources.of(user)
        patch = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "status": {"resourceClaimStatuses": statuses},
        }
        await self.client.apply(resource.plural, user.metadata.name, user.metadata.namespace, patch, MANAGER, "status")

    async def _reserve(self, pod: core_v1_pb2.Pod, group: PodGroup | None) -> None:
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
            if must_own and (why := claims.not_for_pod(pod, claim, of_groups=self._of_groups)):
                raise errors.ServiceUnavailable(why)
            if self._is_unreserved(pod, claim):
                changed = meta.copied(claim)
                changed.status.reservedFor.append(claims.consumer_of(pod, group, entry))
                await self.client.update_status(changed)

    async def _handle(self, user: User, group: PodGroup | None, entry: claims.Entry) -> str:
        """``handleClaim``, ``handlePodGroupClaim``. Returns the name that the status has to have; empty: it is right,
        or there is none. ``group``: that of the pod."""
        namespace = user.metadata.namespace
        try:
            name, must_own = claims.name_of(user, entry)
        except claims.NotMade:
            pass
        else:
            if name is None:
                return ""
            claim = self._claims.store.get(f"{namespace}/{name}")
            if claim is not None and not (must_own and self._is_foreign(user, claim)):
                return ""
        if not entry.HasField("resourceClaimTemplateName"):
            return ""
        if isinstance(user, core_v1_pb2.Pod) and claims.is_group(claims.consumer_of(user, group, entry)):
            assert group is not None
            found = self._find(group, entry)
            return "" if found is None else str(found.metadata.name)
        found = self._find(user, entry)
        if found is None:
            found = await self._create(user, entry)
        return found.metadata.name

    def _is_foreign(self, user: User, claim: ResourceClaim) -> bool:
        if isinstance(user, PodGroup):
            return bool(claims.not_for_group(user, claim))
        return bool(claims.not_for_pod(user, claim, of_groups=self._of_groups))

    def _find(self, owner: User, entry: claims.Entry) -> ResourceClaim | None:
        """One that was made for it before its status could say so (``findPodResourceClaim``)."""
        uid = owner.metadata.uid
        for claim in self._created.of_owner(uid, self._claims_by_owner.get(uid, ())):
            if claim.metadata.annotations.get(claims.POD_CLAIM) == entry.name:
                return claim
        return None

    async def _create(self, owner: User, entry: claims.Entry) -> ResourceClaim:
        namespace, name = owner.metadata.namespace, entry.resourceClaimTemplateName
        template = self._templates.store.get(f"{namespace}/{name}")
        if template is None:
            why = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise errors.ServiceUnavailable(f'resource claim template "{name}": {why}')
        claim = ResourceClaim(spec=template.spec.spec)
        claim.metadata.namespace = namespace
        claim.metadata.generateName = _base_name(owner.metadata.name, entry.name)
        claim.metadata.annotations.update(template.spec.metadata.annotations)
        claim.metadata.annotations[claims.POD_CLAIM] = entry.name
        claim.metadata.labels.update(template.spec.metadata.labels)
        resource = resources.of(owner)
        reference = meta.owner_reference(owner, resource.api_version, resource.kind)
        reference.ClearField("blockOwnerDeletion")
        claim.metadata.ownerReferences.append(reference)
        try:
            made = await self.client.create(claim)
        except errors.ApiError as error:
            error.message = f"create ResourceClaim : {error.message}"
            raise
        self._created.add(made)
        key, uid = controllers.key_of(made), made.metadata.uid
        whose: dict[str, str] = {"pod": controllers.key_of(owner), "pod_uid": owner.metadata.uid}
        if isinstance(owner, PodGroup):
            whose = {"pod": "", "pod_uid": "", "group": controllers.key_of(owner)}
        self.env.log(ClaimCreated(claim=key, uid=uid, **whose))
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
        is_group = self._of_groups and claims.is_group(consumer)
        if not is_group and (consumer.apiGroup or consumer.resource != "pods"):
            return True
        if consumer.uid in self._deleted:
            return False
        namespace = claim.metadata.namespace
        known: Mapping[str, User] = self._groups.store if is_group else self._pods.store
        user = known.get(f"{namespace}/{consumer.name}")
        if user is not None:
            return user.metadata.uid == consumer.uid and (isinstance(user, PodGroup) or not _is_done(user))
        # It may be one that the informer does not show yet: only the API server knows.
        try:
            found = await self.client.get(consumer.resource, consumer.name, namespace)
        except errors.NotFound:
            return False
        return bool(found.metadata.uid == consumer.uid)

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


def _index(
    user: User, by_template: dict[str, dict[str, None]], by_claim: dict[str, dict[str, None]], remove: bool
) -> None:
    key, namespace = controllers.key_of(user), user.metadata.namespace
    for entry in user.spec.resourceClaims:
        if entry.HasField("resourceClaimTemplateName"):
            _put(by_template, f"{namespace}/{entry.resourceClaimTemplateName}", key, remove)
        name = _made_name(user, entry)
        if name is not None:
            _put(by_claim, f"{namespace}/{name}", key, remove)


def _kind(user: User) -> str:
    return "PodGroup" if isinstance(user, PodGroup) else "Pod"


def _made_name(user: User, entry: claims.Entry) -> str | None:
    """None: there is no claim for the entry, or not yet."""
    try:
        return claims.name_of(user, entry)[0]
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
