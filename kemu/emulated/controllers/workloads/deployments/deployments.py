"""The actor ``controller/deployment``: when it looks at a Deployment, and what one sync does.

A sync works on copies, as what informers hold is shared. It writes with the resource version that the informer has
shown, so a second write of the Deployment in one sync fails with a conflict, and the sync is repeated. Logs of real
controllers are full of that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers, label_indexes
from kemu.emulated.controllers.workloads import claims
from kemu.emulated.controllers.workloads.deployments import revisions, rollouts, statuses
from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.templates import hashes
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import HashCollided, ReplicaSetScaled, RolloutEnded

M = TypeVar("M", bound=Message)

WORKERS = 5
MAX_RETRIES = 15
"""Failed syncs in a row after which a Deployment waits for its next event (``maxRetries``)."""
LONGEST_NAME = 253
Sets = list[Any]
"""ReplicaSets."""


class DeploymentController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.workloads.deployments.deployments:DeploymentController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="deployment")
        self.deployments: informers.Informer[apps_v1_pb2.Deployment] = informers.Informer(
            self.client,
            "deployments",
            handler=informers.Callbacks(self._deployment_added, self._deployment_updated, self._deployment_deleted),
        )
        self.replica_sets: informers.Informer[apps_v1_pb2.ReplicaSet] = informers.Informer(
            self.client,
            "replicasets",
            handler=informers.Callbacks(
                lambda one: self._replica_set_changed(None, one), self._replica_set_changed, self._replica_set_deleted
            ),
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] | None = None
        """Only Recreate looks at pods."""
        self._pods_of: dict[str, dict[str, Any]] = {}
        """By UID of the ReplicaSet, then their own."""
        self._owned: dict[str, dict[str, None]] = {}
        """Keys of ReplicaSets by UID of the Deployment."""
        self._orphans = label_indexes.LabelledObjects()
        self._selectors = label_indexes.Selectors()
        level = config.get("events", recorders.NOTABLE)
        self.recorder = recorders.Recorder(env, self.client, "deployment-controller", "0", level)

    async def run(self) -> None:
        await self.begin(*self.informers())
        await self.work(self.queue, self.reconcile, WORKERS)

    def informers(self) -> tuple[informers.Informer[Any], ...]:
        """All that have to be filled before the first sync."""
        return self.replica_sets, self.deployments

    # --- events ------------------------------------------------------------------------------------------------------

    def _deployment_added(self, deployment: apps_v1_pb2.Deployment) -> None:
        key = controllers.key_of(deployment)
        self._selectors.put(key, deployment.metadata.namespace, _selector(deployment))
        if self._pods is None and not rollouts.is_rolling(deployment):
            self._pods = informers.Informer(
                self.client, "pods", handler=informers.Callbacks(self._pod_added, self._pod_updated, self._pod_deleted)
            )
            self._pods.start()
        self._wake(key)

    def _deployment_updated(self, old: apps_v1_pb2.Deployment, new: apps_v1_pb2.Deployment) -> None:
        self._deployment_added(new)

    def _deployment_deleted(self, deployment: apps_v1_pb2.Deployment) -> None:
        key = controllers.key_of(deployment)
        self._selectors.remove(key)
        self._wake(key)

    def _replica_set_changed(self, old: KubernetesObject | None, new: KubernetesObject) -> None:
        key, metadata = controllers.key_of(new), new.metadata
        before = None if old is None else meta.controller_of(old)
        now = meta.controller_of(new)
        if before is not None and (now is None or now.uid != before.uid):
            self._drop(before, key, metadata.namespace)
        if now is not None:
            self._orphans.remove(key)
            if now.kind == "Deployment":
                self._owned.setdefault(now.uid, {})[key] = None
                self._wake_owner(now, metadata.namespace)
            return
        if metadata.HasField("deletionTimestamp"):
            self._orphans.remove(key)
            return
        self._orphans.put(key, metadata.namespace, metadata.labels)
        if old is None or before is not None or not meta.same_labels(old.metadata.labels, metadata.labels):
            for owner in self._selectors.matching(metadata.namespace, metadata.labels):
                self._wake(owner)

    def _replica_set_deleted(self, replica_set: apps_v1_pb2.ReplicaSet) -> None:
        key, owner = controllers.key_of(replica_set), meta.controller_of(replica_set)
        self._orphans.remove(key)
        if owner is not None:
            self._drop(owner, key, replica_set.metadata.namespace)

    def _drop(self, owner: meta_v1_pb2.OwnerReference, key: str, namespace: str) -> None:
        owned = self._owned.get(owner.uid, {})
        owned.pop(key, None)
        if not owned:
            self._owned.pop(owner.uid, None)
        self._wake_owner(owner, namespace)

    def _wake_owner(self, reference: meta_v1_pb2.OwnerReference, namespace: str) -> None:
        key = f"{namespace}/{reference.name}"
        deployment = self.deployments.store.get(key)
        if deployment is not None and deployment.metadata.uid == reference.uid:
            self._wake(key)

    def _wake(self, key: str) -> None:
        self.queue.add_after(key, self.lag_s())

    def _pod_added(self, pod: core_v1_pb2.Pod) -> None:
        owner = meta.controller_of(pod)
        if owner is not None and owner.kind == "ReplicaSet":
            self._pods_of.setdefault(owner.uid, {})[pod.metadata.uid] = pod

    def _pod_updated(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        before = meta.controller_of(old)
        if before is not None:
            self._pods_of.get(before.uid, {}).pop(old.metadata.uid, None)
        self._pod_added(new)

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        """A Recreate Deployment goes on when the last of its pods is gone (``deletePod``)."""
        owner = meta.controller_of(pod)
        if owner is None or owner.kind != "ReplicaSet":
            return
        pods = self._pods_of.get(owner.uid, {})
        pods.pop(pod.metadata.uid, None)
        if not pods:
            self._pods_of.pop(owner.uid, None)
        replica_set = self.replica_sets.store.get(f"{pod.metadata.namespace}/{owner.name}")
        if replica_set is None or replica_set.metadata.uid != owner.uid:
            return
        above = meta.controller_of(replica_set)
        if above is not None and not any(self._has_pods(key) for key in self._owned.get(above.uid, ())):
            self._wake_owner(above, pod.metadata.namespace)

    def _has_pods(self, key: str) -> bool:
        return self.replica_sets.store[key].metadata.uid in self._pods_of

    # --- one sync ----------------------------------------------------------------------------------------------------

    async def reconcile(self, key: str) -> None:
        """Bring the Deployment of this key closer to what it wants (``syncDeployment``). Raises ApiError to be called
        again later."""
        try:
            await self._sync(key)
        except errors.ApiError as error:
            is_over = any(cause.reason == "NamespaceTerminating" for cause in error.causes)
            if not is_over and self.queue.failures(key) < MAX_RETRIES:
                raise

    async def _sync(self, key: str) -> None:
        known = self.deployments.store.get(key)
        if known is None:
            return
        if self._pods is not None:
            await self._pods.synced()
        deployment = meta.copied(known)
        sets = await self._claim(deployment)
        if deployment.metadata.HasField("deletionTimestamp"):
            new, old = await self._revise(deployment, sets, creates=False)
            await self._report(deployment, [*old, new], new)
            return
        await self._note_pause(deployment)
        if deployment.spec.paused:
            await self._resize(deployment, sets)
        elif _rollback_to(deployment) is not None:
            await self._roll_back(deployment, sets)
        elif await self._is_scaled(deployment, sets):
            await self._resize(deployment, sets)
        elif rollouts.is_rolling(deployment):
            await self._roll(deployment, sets)
        else:
            await self._recreate(deployment, sets)

    async def _claim(self, deployment: apps_v1_pb2.Deployment) -> Sets:
        """Its ReplicaSets, after adoption and release (``getReplicaSetsForDeployment``)."""
        store, selector = self.replica_sets.store, _selector(deployment)
        owned = [store[key] for key in self._owned.get(deployment.metadata.uid, ())]
        keys = self._orphans.matching(deployment.metadata.namespace, selector) if len(self._orphans) else ()
        claim = claims.Claims(self.env, self.client, "deployments", "Deployment", deployment, "replicasets")
        return await claim.claim(lambda one: selector.matches(one.metadata.labels), owned, [store[key] for key in keys])

    async def _note_pause(self, deployment: apps_v1_pb2.Deployment) -> None:
        """``checkPausedConditions``: time in which it is paused does not count against the deadline."""
        if not statuses.has_deadline(deployment):
            return
        known = meta.get_condition(deployment.status.conditions, statuses.PROGRESSING)
        if known is not None and known.reason == statuses.TIMED_OUT:
            return
        is_noted = known is not None and known.reason == statuses.PAUSED
        if is_noted == deployment.spec.paused:
            return
        verdict = (
            (statuses.PAUSED, "Deployment is paused")
            if deployment.spec.paused
            else (statuses.RESUMED, "Deployment is resumed")
        )
        self._put(deployment, "Unknown", *verdict)
        await self.client.update_status(deployment)

    async def _is_scaled(self, deployment: apps_v1_pb2.Deployment, sets: Sets) -> bool:
        """Whether its number of replicas has changed (``isScalingEvent``)."""
        new, old = await self._revise(deployment, sets, creates=False)
        wanted = deployment.spec.replicas
        return any(
            revisions.replicas_annotation(one, revisions.DESIRED) not in (None, wanted)
            for one in rollouts.active([*old, new])
        )

    # --- revisions ---------------------------------------------------------------------------------------------------

    async def _revise(
        self, deployment: apps_v1_pb2.Deployment, sets: Sets, *, creates: bool
    ) -> tuple[apps_v1_pb2.ReplicaSet | None, Sets]:
        """The ReplicaSet of its template, with its revision, and the others
        (``getAllReplicaSetsAndSyncRevision``). ``creates``: the first is made if there is none."""
        new = revisions.find_new(deployment, sets)
        old = revisions.find_old(sets, new)
        number = revisions.max_revision(old) + 1
        if new is not None:
            return await self._update_new(deployment, new, number), old
        return await self._create_new(deployment, old, number) if creates else None, old

    async def _update_new(
        self, deployment: apps_v1_pb2.Deployment, known: apps_v1_pb2.ReplicaSet, number: int
    ) -> apps_v1_pb2.ReplicaSet:
        """``getNewReplicaSet`` of one that exists."""
        new = meta.copied(known)
        changed = revisions.set_new(deployment, new, number)
        if new.spec.minReadySeconds != deployment.spec.minReadySeconds:
            new.spec.minReadySeconds = deployment.spec.minReadySeconds
            changed = True
        if changed:
            return await self.client.update(new)
        changed = revisions.set_revision(deployment, new.metadata.annotations.get(revisions.REVISION, ""))
        progressing = meta.get_condition(deployment.status.conditions, statuses.PROGRESSING)
        if statuses.has_deadline(deployment) and progressing is None:
            self._put(deployment, "True", statuses.FOUND, f'Found new replica set "{new.metadata.name}"')
            changed = True
        if changed:
            await self.client.update_status(deployment)
        return new

    async def _create_new(self, deployment: apps_v1_pb2.Deployment, old: Sets, number: int) -> apps_v1_pb2.ReplicaSet:
        """``getNewReplicaSet`` where there is none."""
        new = self._new_replica_set(deployment, old, number)
        existed = False
        try:
            created = await self.client.create(new)
        except errors.AlreadyExists:
            created, existed = await self._known_or_collision(deployment, new), True
        except errors.ApiError as error:
            if not any(cause.reason == "NamespaceTerminating" for cause in error.causes):
                await self._report_failed_creation(deployment, new, error)
            raise
        if not existed and new.spec.replicas > 0:
            self._note_scaling(deployment, created, 0, new.spec.replicas)
        changed = revisions.set_revision(deployment, str(number))
        if not existed and statuses.has_deadline(deployment):
            self._put(deployment, "True", statuses.CREATED, f'Created new replica set "{created.metadata.name}"')
            changed = True
        if changed:
            await self.client.update_status(deployment)
        return created

    def _new_replica_set(self, deployment: apps_v1_pb2.Deployment, old: Sets, number: int) -> apps_v1_pb2.ReplicaSet:
        spec, metadata = deployment.spec, deployment.metadata
        collisions = deployment.status.collisionCount if deployment.status.HasField("collisionCount") else None
        template_hash = hashes.of_template(spec.template, collisions)
        new = apps_v1_pb2.ReplicaSet()
        new.metadata.name = f"{metadata.name[: LONGEST_NAME - 1 - len(template_hash)]}-{template_hash}"
        new.metadata.namespace = metadata.namespace
        new.metadata.ownerReferences.append(meta.owner_reference(deployment, "apps/v1", "Deployment"))
        new.spec.minReadySeconds = spec.minReadySeconds
        new.spec.selector.CopyFrom(spec.selector)
        new.spec.template.CopyFrom(spec.template)
        for labels in (new.spec.selector.matchLabels, new.spec.template.metadata.labels):
            labels[revisions.HASH_LABEL] = template_hash
        for key in sorted(new.spec.template.metadata.labels):
            new.metadata.labels[key] = new.spec.template.metadata.labels[key]
        new.spec.replicas = rollouts.new_size(deployment, old, 0)
        revisions.set_new(deployment, new, number)
        revisions.set_replicas(new, spec.replicas, spec.replicas + rollouts.max_surge(deployment))
        return new

    async def _known_or_collision(
        self, deployment: apps_v1_pb2.Deployment, new: apps_v1_pb2.ReplicaSet
    ) -> apps_v1_pb2.ReplicaSet:
        """The ReplicaSet of this name if it is the Deployment's own; else two templates have one hash, and the next
        sync tries another."""
        known = self.replica_sets.store.get(controllers.key_of(new))
        if known is None:
            raise errors.NotFound(f'replicaset.apps "{new.metadata.name}" not found')
        owner = meta.controller_of(known)
        if (
            owner is not None
            and owner.uid == deployment.metadata.uid
            and revisions.is_same_template(deployment.spec.template, known.spec.template)
        ):
            return known
        deployment.status.collisionCount += 1
        self.env.log(
            HashCollided(deployment=controllers.key_of(deployment), collisions=deployment.status.collisionCount),
        )
        await self.client.update_status(deployment)
        raise errors.AlreadyExists(f'replicasets.apps "{new.metadata.name}" already exists')

    async def _report_failed_creation(
        self, deployment: apps_v1_pb2.Deployment, new: KubernetesObject, error: errors.ApiError
    ) -> None:
        message = f'Failed to create new replica set "{new.metadata.name}": {error.message}'
        if statuses.has_deadline(deployment):
            self._put(deployment, "False", statuses.CREATE_FAILED, message)
            # That it cannot be created is the bigger issue.
            with contextlib.suppress(errors.ApiError):
                await self.client.update_status(deployment)
        self._event(deployment, recorders.WARNING, statuses.CREATE_FAILED, message)

    # --- rollouts ----------------------------------------------------------------------------------------------------

    async def _roll(self, deployment: apps_v1_pb2.Deployment, sets: Sets) -> None:
        """``rolloutRolling``: the new ReplicaSet grows as far as the surge allows, the old ones shrink as far as
        enough pods are available."""
        new, old = await self._revise(deployment, sets, creates=True)
        assert new is not None
        everything = [*old, new]
        grown = await self._grow_new(deployment, everything, new)
        changed = grown or await self._shrink_old(deployment, everything, rollouts.active(old), new)
        if not changed and statuses.is_complete(deployment, deployment.status):
            await self._clean_up(deployment, old)
        await self._report_rollout(deployment, everything, new)

    async def _grow_new(
        self, deployment: apps_v1_pb2.Deployment, everything: Sets, new: apps_v1_pb2.ReplicaSet
    ) -> bool:
        """``reconcileNewReplicaSet``. Whether its size was changed."""
        wanted = deployment.spec.replicas
        if new.spec.replicas == wanted:
            return False
        size = wanted
        if new.spec.replicas < wanted:
            size = rollouts.new_size(deployment, everything, new.spec.replicas)
        return (await self._scale(deployment, new, size))[0]

    async def _shrink_old(
        self, deployment: apps_v1_pb2.Deployment, everything: Sets, old: Sets, new: apps_v1_pb2.ReplicaSet
    ) -> bool:
        """``reconcileOldReplicaSets``. Whether any was changed; failures are left to the next sync."""
        removable = rollouts.removable(deployment, everything, new)
        if rollouts.replicas(old) == 0 or removable <= 0:
            return False
        try:
            unhealthy, old = await self._remove_unhealthy(deployment, old, removable)
            healthy = await self._remove_healthy(deployment, old, new)
        except errors.ApiError:
            return False
        return unhealthy + healthy > 0

    async def _remove_unhealthy(self, deployment: apps_v1_pb2.Deployment, old: Sets, most: int) -> tuple[int, Sets]:
        """``cleanupUnhealthyReplicas``: how many went, and the ReplicaSets afterwards."""
        removed, left = 0, []
        for one in sorted(old, key=revisions.age):
            unhealthy = one.spec.replicas - one.status.availableReplicas
            now = one
            if removed < most and one.spec.replicas and unhealthy:
                count = min(most - removed, unhealthy)
                if count < 0:
                    # It has just been sized down, and its status is of before: nothing is done until it is not.
                    raise errors.InternalError(f"invalid request to scale down {one.metadata.name}")
                _, now = await self._scale(deployment, one, one.spec.replicas - count)
                removed += count
            left.append(now)
        return removed, left

    async def _remove_healthy(self, deployment: apps_v1_pb2.Deployment, old: Sets, new: apps_v1_pb2.ReplicaSet) -> int:
        """``scaleDownOldReplicaSetsForRollingUpdate``."""
        least = deployment.spec.replicas - rollouts.max_unavailable(deployment)
        most = rollouts.available([*old, new]) - least
        removed = 0
        for one in sorted(old, key=revisions.age):
            if removed >= most:
                break
            count = min(one.spec.replicas, most - removed)
            if count:
                await self._scale(deployment, one, one.spec.replicas - count)
                removed += count
        return removed

    async def _recreate(self, deployment: apps_v1_pb2.Deployment, sets: Sets) -> None:
        """``rolloutRecreate``: first all old pods go, then the new ones come."""
        new, old = await self._revise(deployment, sets, creates=False)
        everything = [*old, new]
        scaled = False
        for one in rollouts.active(old):
            scaled |= (await self._scale(deployment, one, 0))[0]
        if scaled or self._old_pods_run(new, old):
            await self._report_rollout(deployment, everything, new)
            return
        if new is None:
            new, old = await self._revise(deployment, sets, creates=True)
            everything = [*old, new]
        assert new is not None
        await self._scale(deployment, new, deployment.spec.replicas)
        if statuses.is_complete(deployment, deployment.status):
            await self._clean_up(deployment, old)
        await self._report_rollout(deployment, everything, new)

    def _old_pods_run(self, new: KubernetesObject | None, old: Sets) -> bool:
        """``oldPodsRunning``."""
        if any(one.status.replicas > 0 for one in old):
            return True
        others = [one for one in old if new is None or one.metadata.uid != new.metadata.uid]
        pods = (pod for one in others for pod in self._pods_of.get(one.metadata.uid, {}).values())
        return any(not pod_phases.is_terminal(pod) for pod in pods)

    async def _resize(self, deployment: apps_v1_pb2.Deployment, sets: Sets) -> None:
        """``sync``: of a Deployment whose number of replicas has changed, or that is paused."""
        new, old = await self._revise(deployment, sets, creates=False)
        await self._share_out(deployment, new, old)
        if deployment.spec.paused and _rollback_to(deployment) is None:
            await self._clean_up(deployment, old)
        await self._report(deployment, [*old, new], new)

    async def _share_out(
        self, deployment: apps_v1_pb2.Deployment, new: apps_v1_pb2.ReplicaSet | None, old: Sets
    ) -> None:
        """``scale``."""
        only = rollouts.only_active_or_latest(new, old)
        if only is not None:
            await self._scale(deployment, only, deployment.spec.replicas)
        elif rollouts.is_saturated(deployment, new):
            for one in rollouts.active(old):
                await self._scale(deployment, one, 0)
        elif rollouts.is_rolling(deployment):
            for one, size in rollouts.proportional_sizes(deployment, [*old, new]):
                await self._scale(deployment, one, size, always=True)

    async def _roll_back(self, deployment: apps_v1_pb2.Deployment, sets: Sets) -> None:
        """``rollback``: the annotation of the old API asks for it; ``kubectl rollout undo`` patches the template."""
        new, old = await self._revise(deployment, sets, creates=True)
        everything = [*old, new]
        number = _rollback_to(deployment) or revisions.last_revision(everything)
        target = next((one for one in everything if number and revisions.revision(one) == number), None)
        name, done = deployment.metadata.name, ""
        if target is None:
            what = "Unable to find the revision to rollback to." if number else "Unable to find last revision."
            self._event(deployment, recorders.WARNING, "DeploymentRollbackRevisionNotFound", what)
        elif revisions.is_same_template(deployment.spec.template, target.spec.template):
            what = f'The rollback revision contains the same template as current deployment "{name}"'
            self._event(deployment, recorders.WARNING, "DeploymentRollbackTemplateUnchanged", what)
        else:
            restore(deployment, target)
            done = f'Rolled back deployment "{name}" to revision {number}'
        del deployment.metadata.annotations[revisions.ROLLBACK_TO]
        await self.client.update(deployment)
        if done:
            self._event(deployment, recorders.NORMAL, "DeploymentRollback", done)

    # --- writes ------------------------------------------------------------------------------------------------------

    async def _scale(
        self, deployment: apps_v1_pb2.Deployment, known: apps_v1_pb2.ReplicaSet, size: int, *, always: bool = False
    ) -> tuple[bool, Any]:
        """Give a ReplicaSet this size (``scaleReplicaSet``). Whether it had another, and what it is now. ``always``:
        its annotations are brought up to date even if it has this size."""
        before = known.spec.replicas
        if not always and before == size:
            return False, known
        wanted = meta.copied(known)
        most = deployment.spec.replicas + rollouts.max_surge(deployment)
        noted = revisions.set_replicas(wanted, deployment.spec.replicas, most)
        if before == size and not noted:
            return False, known
        wanted.spec.replicas = size
        written = await self.client.update(wanted)
        if before != size:
            self._note_scaling(deployment, written, before, size)
        return before != size, written

    def _note_scaling(
        self, deployment: apps_v1_pb2.Deployment, replica_set: apps_v1_pb2.ReplicaSet, before: int, size: int
    ) -> None:
        name = replica_set.metadata.name
        self.env.log(
            ReplicaSetScaled(
                deployment=controllers.key_of(deployment),
                replica_set=name,
                revision=replica_set.metadata.annotations.get(revisions.REVISION, ""),
                before=before,
                replicas=size,
            ),
        )
        direction = "up" if before < size else "down"
        message = f"Scaled {direction} replica set {name} from {before} to {size}"
        self._event(deployment, recorders.NORMAL, "ScalingReplicaSet", message)

    async def _clean_up(self, deployment: apps_v1_pb2.Deployment, old: Sets) -> None:
        """Delete the oldest ReplicaSets beyond the history that is kept (``cleanupDeployment``)."""
        spec = deployment.spec
        if not spec.HasField("revisionHistoryLimit") or spec.revisionHistoryLimit == revisions.LARGEST_INT32:
            return
        alive = [one for one in old if not one.metadata.HasField("deletionTimestamp")]
        for one in revisions.by_revision(alive)[: max(0, len(alive) - spec.revisionHistoryLimit)]:
            metadata, status = one.metadata, one.status
            if status.replicas or one.spec.replicas or metadata.generation > status.observedGeneration:
                continue
            try:
                await self.client.delete("replicasets", metadata.name, metadata.namespace)
            except errors.NotFound:
                continue

    async def _report(
        self, deployment: apps_v1_pb2.Deployment, everything: Sets, new: apps_v1_pb2.ReplicaSet | None
    ) -> None:
        """``syncDeploymentStatus``."""
        await self._write_status(deployment, statuses.calculated(deployment, everything, new, self.unix_ns()))

    async def _report_rollout(
        self, deployment: apps_v1_pb2.Deployment, everything: Sets, new: apps_v1_pb2.ReplicaSet | None
    ) -> None:
        """``syncRolloutStatus``."""
        status = statuses.of_rollout(deployment, everything, new, self.unix_ns())
        if not await self._write_status(deployment, status):
            self._come_back(deployment, status)

    async def _write_status(self, deployment: apps_v1_pb2.Deployment, status: apps_v1_pb2.DeploymentStatus) -> bool:
        if statuses.is_equal(deployment.status, status):
            return False
        before = meta.get_condition(deployment.status.conditions, statuses.PROGRESSING)
        now = meta.get_condition(status.conditions, statuses.PROGRESSING)
        reasons = tuple("" if one is None else one.reason for one in (before, now))
        deployment.status.CopyFrom(status)
        await self.client.update_status(deployment)
        if reasons[0] != reasons[1] and reasons[1] in (statuses.COMPLETE, statuses.TIMED_OUT):
            self.env.log(
                RolloutEnded(
                    deployment=controllers.key_of(deployment),
                    revision=deployment.metadata.annotations.get(revisions.REVISION, ""),
                    outcome="complete" if reasons[1] == statuses.COMPLETE else "stuck",
                ),
            )
        return True

    def _come_back(self, deployment: apps_v1_pb2.Deployment, status: apps_v1_pb2.DeploymentStatus) -> None:
        """Look again when the deadline is over: nothing else may happen until then (``requeueStuckDeployment``)."""
        current = meta.get_condition(deployment.status.conditions, statuses.PROGRESSING)
        if not statuses.has_deadline(deployment) or current is None:
            return
        if statuses.is_complete(deployment, status) or current.reason == statuses.TIMED_OUT:
            return
        key = controllers.key_of(deployment)
        after_ns = statuses.deadline_ns(deployment, current) - self.unix_ns()
        if after_ns < SECOND_NS:
            self.queue.add_rate_limited(key)
        else:
            self.queue.add_after(key, after_ns / SECOND_NS + 1)

    def _put(self, deployment: apps_v1_pb2.Deployment, status: str, reason: str, message: str) -> None:
        """A condition Progressing."""
        made = statuses.condition(statuses.PROGRESSING, status, reason, message, self.unix_ns())
        statuses.put(deployment.status, made)

    def _event(self, deployment: apps_v1_pb2.Deployment, kind: str, reason: str, message: str) -> None:
        self.recorder.event(deployment, kind, reason, reason, message, routine=kind == recorders.NORMAL)


def restore(deployment: apps_v1_pb2.Deployment, replica_set: apps_v1_pb2.ReplicaSet) -> None:
    """Give a Deployment the template and the annotations of a revision (``rollbackToTemplate``)."""
    template = deployment.spec.template
    template.CopyFrom(replica_set.spec.template)
    if revisions.HASH_LABEL in template.metadata.labels:
        del template.metadata.labels[revisions.HASH_LABEL]
    annotations, given = deployment.metadata.annotations, replica_set.metadata.annotations
    for key in [key for key in annotations if key not in revisions.NOT_COPIED]:
        del annotations[key]
    for key in sorted(given):
        if key not in revisions.NOT_COPIED:
            annotations[key] = given[key]


def _rollback_to(deployment: apps_v1_pb2.Deployment) -> int | None:
    """``getRollbackTo``; 0: to the last revision."""
    return revisions.integer(deployment.metadata.annotations.get(revisions.ROLLBACK_TO, ""))


def _selector(deployment: apps_v1_pb2.Deployment) -> selectors.LabelSelector:
    return selectors.compile_labels_field(deployment.spec, "selector")
