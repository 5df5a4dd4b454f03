"""The actor ``controller/statefulset``: pods with stable names, ``<set>-<ordinal>``, updated one after the other.

A pod that has ended is deleted, and only when it has gone from the API is another created under its name: as long as
it is not known whether a lost node still runs it, it is not replaced. Each template that the set has had is kept as a
ControllerRevision; a pod carries the name of its own. Mirrors ``pkg/controller/statefulset``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, recorders, retries
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.workloads import availability, base, claims, histories, scaling, slow_start
from kemu.emulated.controllers.workloads.stateful import stateful_claims, stateful_pods
from kemu.emulated.objects import meta
from kemu.emulated.objects.defaulting import pods as pod_defaults
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.templates import documents, hashes
from kemu.emulated.settings.declared import Section, restored, setting
from kemu.emulated.settings.shapes import Switch
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.runtime.env import Env

LARGEST_BATCH = 500
"""Most batch of pods that are looked at together where the set is managed in parallel (``MaxBatchSize``)."""


@dataclass(frozen=True, kw_only=True)
class FeatureGates:
    max_unavailable_stateful_set: bool = setting(
        Switch(), "Whether rollingUpdate.maxUnavailable counts.", False, key="MaxUnavailableStatefulSet"
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    feature_gates: FeatureGates = setting(Section(FeatureGates), "Feature gates of this controller.", {})


class StatefulSetController(base.WorkloadController[apps_v1_pb2.StatefulSet]):
    """Factory: ``kemu.emulated.controllers.workloads.stateful.stateful_sets:StatefulSetController``."""

    resource, kind = "statefulsets", "StatefulSet"
    notes_gone = True  # DeleteStatefulPod
    waits_for_pods = False

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.histories = histories.Histories(self.client, self.kind)
        self.claims = stateful_claims.Claims(self.client, self._wrote_claim)
        gates = restored(Settings, config.get("settings", {})).feature_gates
        self._several_at_once = gates.max_unavailable_stateful_set

    def informers(self) -> tuple[informers.Informer[Any], ...]:
        return *super().informers(), self.histories.informer

    def forget(self, owner: apps_v1_pb2.StatefulSet) -> None:
        super().forget(owner)
        self.env.spawn(self.histories.delete_of(owner), "delete revisions of a deleted owner")

    def place(self, pod: core_v1_pb2.Pod) -> str:
        """Its name."""
        return str(pod.metadata.name)

    async def sync(self, owner: apps_v1_pb2.StatefulSet, may_manage: bool) -> None:
        """``sync`` and ``UpdateStatefulSet``."""
        await self._adopt_revisions(owner)
        pods = await self.claim(
            owner, list(self.owned(owner).values()), fits=lambda pod: stateful_pods.is_member(owner, pod)
        )
        if await self.claims.needed(owner):
            self.read["persistentvolumeclaims"] = self.claims.informer
        revisions = histories.in_order(self._revisions(owner))
        try:
            current, update, collisions = await self._revise(owner, revisions)
        except errors.ApiError:
            await self._forget_revisions(owner, pods, revisions, ())
            raise
        one = _Sync(self, owner, pods, current, update)
        # Of a set that is being deleted only the status is written.
        failure = await one.manage() if may_manage else None
        await self._report(owner, one, collisions)
        await self._forget_revisions(owner, pods, revisions, (current, update))
        if failure is not None:
            raise failure
        ready = [pod for pod in pods if stateful_pods.is_running_and_ready(pod)]
        wait_s = availability.next_check_s(ready, owner.spec.minReadySeconds, self.unix_ns())
        if wait_s is not None:
            self.queue.add_after(controllers.key_of(owner), wait_s)

    # --- revisions ---------------------------------------------------------------------------------------------------

    def _revisions(self, owner: apps_v1_pb2.StatefulSet) -> list[apps_v1_pb2.ControllerRevision]:
        """``ListRevisions``."""
        selector = base.selector_of(owner)
        owned = [one for one in self.histories.owned(owner) if selector.matches(one.metadata.labels)]
        return owned + self.histories.orphans(owner, selector)

    async def _adopt_revisions(self, owner: apps_v1_pb2.StatefulSet) -> None:
        orphans = self.histories.orphans(owner, base.selector_of(owner))
        if orphans:
            if owner.metadata.HasField("deletionTimestamp"):
                raise errors.Conflict(f"can't adopt ControllerRevisions: {owner.metadata.name} is being deleted")
            claim = claims.Claims(self.env, self.client, self.resource, self.kind, owner, "controllerrevisions")
            await claim.claim(lambda one: True, (), orphans)

    async def _revise(
        self, owner: apps_v1_pb2.StatefulSet, revisions: list[apps_v1_pb2.ControllerRevision]
    ) -> tuple[Any, Any, int]:
        """The revision that the set comes from, the one that it goes to, and how many hashes have met
        (``getStatefulSetRevisions``). ``revisions``: in order."""
        collisions = owner.status.collisionCount
        data = documents.patch(owner.spec.template)
        last = revisions[-1] if revisions else None
        equal = [one for one in revisions if one.data.raw == data]
        if last is not None and (last.data.raw == data or (not equal and _restores(last.data.raw, data))):
            update = last
        elif last is not None and equal:
            # A template that the set has had before: rolled back.
            update = await self.histories.renumber(equal[-1], last.revision + 1)
        else:
            number = 1 if last is None else last.revision + 1
            made = histories.new_revision(owner, self.kind, data, number)
            made.metadata.labels[histories.HASH_LABEL] = hashes.of_revision(data, collisions)
            update, collisions = await histories.create(self.client, owner, made, collisions)
        name = owner.status.currentRevision
        return next((one for one in revisions if one.metadata.name == name), update), update, collisions

    async def _forget_revisions(
        self,
        owner: apps_v1_pb2.StatefulSet,
        pods: list[core_v1_pb2.Pod],
        revisions: list[apps_v1_pb2.ControllerRevision],
        used: Iterable[apps_v1_pb2.ControllerRevision],
    ) -> None:
        """Delete the oldest revisions that are not used, beyond the history that is kept (``truncateHistory``)."""
        live = {one.metadata.name for one in used} | {histories.revision_of(pod) for pod in pods}
        history = [one for one in revisions if one.metadata.name not in live]
        for one in history[: max(0, len(history) - owner.spec.revisionHistoryLimit)]:
            await self.histories.delete(one)

    # --- writes ------------------------------------------------------------------------------------------------------

    async def _report(self, owner: apps_v1_pb2.StatefulSet, one: _Sync, collisions: int) -> None:
        """``updateStatefulSetStatus``."""
        spec, status = owner.spec, one.status
        names = {"currentRevision": one.current.metadata.name, "updateRevision": one.update.metadata.name}
        if spec.updateStrategy.type == "RollingUpdate" and (
            status["updatedReplicas"] == status["readyReplicas"] == status["replicas"] == spec.replicas
        ):
            # The rollout is complete.
            status["currentReplicas"], names["currentRevision"] = status["updatedReplicas"], names["updateRevision"]
        changed = {name: value for name, value in names.items() if getattr(owner.status, name) != value}
        extra = {**changed, "collisionCount": collisions} if changed else {}
        await self.report(owner, status, extra=extra)

    def note_write(
        self, owner: apps_v1_pb2.StatefulSet, verb: str, pod: core_v1_pb2.Pod, error: errors.ApiError | None
    ) -> None:
        """``recordPodEvent``."""
        self.note(owner, verb, f"Pod {pod.metadata.name}", "" if error is None else error.message)

    def note(
        self, owner: apps_v1_pb2.StatefulSet, verb: str, what: str, error: str, outcome: str = "successful"
    ) -> None:
        """An Event object about what was done for a pod."""
        title, place = verb.capitalize(), f"{what} in StatefulSet {owner.metadata.name}"
        if error:
            message = f"{title} {place} failed error: {error}"
            self.recorder.event(owner, recorders.WARNING, f"Failed{title}", f"Failed{title}", message)
        elif self.recorder.writes_routine:
            reason = f"Successful{title}"
            self.recorder.event(owner, recorders.NORMAL, reason, reason, f"{title} {place} {outcome}", routine=True)

    async def create_member(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod, ordinal: int) -> None:
        """``CreateStatefulPod``: first its claims, then the pod. Raises ApiError."""
        if owner.spec.volumeClaimTemplates:
            await self._create_claims(owner, pod, ordinal, "create")
        try:
            created = await self.client.create(pod)
        except errors.AlreadyExists:
            raise
        except errors.ApiError as error:
            # Its claims are there all the same.
            if owner.spec.volumeClaimTemplates:
                await self._apply_policy(owner, pod)
            self.note_write(owner, "create", pod, error)
            raise
        self.created(owner, created)
        if owner.spec.volumeClaimTemplates:
            await self._apply_policy(owner, pod)
        self.note_write(owner, "create", created, None)

    async def complete_claims(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> None:
        """``createMissingPersistentVolumeClaims`` of a pod that is pending."""
        created, failures = await self.claims.create_missing(owner, stateful_pods.ordinal_of(pod))
        self._note_claims(owner, pod, created)
        if failures:
            raise errors.InternalError("; ".join(failures))
        await self._apply_policy(owner, pod)

    async def repair_member(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> None:
        """Give a pod its labels and claims (``UpdateStatefulPod``). All of it is tried again after a conflict, with the
        pod as it was changed so far: if only a claim had changed meanwhile, the pod looks right then and is not
        written."""
        wanted = meta.copied(pod)
        tried = False
        for wait_s in (*retries.BACKOFF_S, None):
            failure: errors.ApiError | None = None
            try:
                if await self._repair(owner, wanted):
                    tried, fresh = True, wanted
                    try:
                        self.wrote(owner, "pods", await self.client.update(wanted))
                    except errors.ApiError:
                        fresh = meta.copied(self.pods.store.get(controllers.key_of(pod), pod))
                        raise
                    finally:
                        wanted = fresh
            except errors.ApiError as error:
                failure = error
                if isinstance(error, errors.Conflict) and wait_s is not None:
                    await self.clock.sleep(wait_s)
                    continue
            break
        if tried:
            self.note_write(owner, "update", pod, failure)
        if failure is not None:
            raise failure

    async def _repair(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> bool:
        """Change the pod to what it should be, and see to its claims. Whether the pod has to be written: also if only a
        claim was."""
        changed, ordinal = False, stateful_pods.ordinal_of(pod)
        if not stateful_pods.is_identity_right(owner, pod):
            stateful_pods.set_identity(pod, ordinal)
            changed = True
        if not stateful_pods.is_storage_right(owner, pod):
            stateful_pods.set_storage(owner, pod, ordinal)
            changed = True
            await self._create_claims(owner, pod, ordinal, "update")
        if owner.spec.volumeClaimTemplates and not self.claims.match_policy(owner, pod):
            await self._apply_policy(owner, pod)
            changed = True
        return changed

    async def _create_claims(
        self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod, ordinal: int, verb: str
    ) -> None:
        created, failures = await self.claims.create_missing(owner, ordinal)
        self._note_claims(owner, pod, created)
        if failures:
            error = errors.InternalError("; ".join(failures))
            self.note_write(owner, verb, pod, error)
            raise error

    def _wrote_claim(self, owner: apps_v1_pb2.StatefulSet, claim: core_v1_pb2.PersistentVolumeClaim) -> None:
        self.wrote(owner, "persistentvolumeclaims", claim)

    def _note_claims(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod, created: list[str]) -> None:
        for name in created:
            self.note(owner, "create", f"Claim {name} Pod {pod.metadata.name}", "", "success")

    def warn_of_controller(self, owner: apps_v1_pb2.StatefulSet, claim: str) -> None:
        """An Event object about a claim whose owners are left alone."""
        message = (
            f"PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging controller, "
            "the retention policy is ignored for this claim"
        )
        self.recorder.event(owner, recorders.WARNING, "ConflictingController", "ConflictingController", message)

    async def _apply_policy(self, owner: apps_v1_pb2.StatefulSet, pod: core_v1_pb2.Pod) -> None:
        try:
            await self.claims.apply_policy(owner, pod, self.warn_of_controller)
        except errors.ApiError as error:
            self.note_write(owner, "update", pod, error)
            raise


def _restores(patch: bytes, data: bytes) -> bool:
    """Whether a revision in another notation holds this template (``setMatchesLatestExistingRevision``)."""
    try:
        template = documents.template_of(patch)
    except (ValueError, KeyError):
        return False
    pod_defaults.default_pod_spec(template.spec)
    return documents.patch(template) == data


class _Sync:
    """One sync of one set."""

    def __init__(
        self,
        controller: StatefulSetController,
        owner: apps_v1_pb2.StatefulSet,
        pods: list[core_v1_pb2.Pod],
        current: apps_v1_pb2.ControllerRevision,
        update: apps_v1_pb2.ControllerRevision,
    ) -> None:
        self._controller = controller
        self._owner = owner
        self.current = current
        self.update = update
        self._now_ns = controller.unix_ns()
        self._wanted = stateful_pods.ordinals(owner)
        numbered = [(stateful_pods.ordinal_of(pod), pod) for pod in pods]
        self._pods = {ordinal: pod for ordinal, pod in numbered if ordinal in self._wanted}
        surplus = sorted((each for each in numbered if each[0] not in self._wanted and each[0] >= 0), key=_ordinal)
        self._condemned = [pod for _, pod in reversed(surplus)]
        self.status = self._counts(pods)

    def _counts(self, pods: Iterable[core_v1_pb2.Pod]) -> dict[str, int]:
        """``computeReplicaStatus``."""
        counts = dict.fromkeys(
            ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"), 0
        )
        current, update = self.current.metadata.name, self.update.metadata.name
        for pod in pods:
            created = bool(pod.status.phase)
            counts["replicas"] += created
            if stateful_pods.is_running_and_ready(pod):
                counts["readyReplicas"] += 1
                counts["availableReplicas"] += self._is_available(pod)
            if created and not stateful_pods.is_terminating(pod):
                revision = histories.revision_of(pod)
                counts["currentReplicas"] += revision == current
                counts["updatedReplicas"] += revision == update
        return counts

    def _is_available(self, pod: core_v1_pb2.Pod) -> bool:
        return availability.is_available(pod, self._owner.spec.minReadySeconds, self._now_ns)

    def _is_unavailable(self, pod: core_v1_pb2.Pod | None) -> bool:
        return pod is None or not self._is_available(pod) or stateful_pods.is_terminating(pod)

    async def manage(self) -> errors.ApiError | None:
        """``updateStatefulSet``. Returns the first failure."""
        try:
            await self._manage()
        except errors.ApiError as error:
            return error
        return None

    async def _manage(self) -> None:
        monotonic = self._owner.spec.podManagementPolicy != "Parallel"
        first_unhealthy = self._first_unhealthy()
        replicas = self._in_turn(monotonic) if monotonic else self._in_parallel()
        if await replicas:
            self._count_again()
            return
        if monotonic:
            self._controller.losses.forget(self._owner.metadata.uid)
        if self._owner.spec.volumeClaimTemplates:
            for pod in self._condemned:
                if not self._controller.claims.match_policy(self._owner, pod):
                    await self._controller.claims.apply_policy(self._owner, pod, self._controller.warn_of_controller)
        if await self._condemn(monotonic, first_unhealthy):
            self._count_again()
            return
        self._count_again()
        if self._owner.spec.updateStrategy.type == "OnDelete":
            return
        if self._controller._several_at_once:
            await self._update_several()
        else:
            await self._update_next()

    def _count_again(self) -> None:
        self.status = self._counts([*self._pods.values(), *self._condemned])

    def _first_unhealthy(self) -> core_v1_pb2.Pod | None:
        """The first pod that is unavailable, of those beyond what is wanted the one with the lowest ordinal. None, if
        it is one that does not exist."""
        for ordinal in self._wanted:
            pod = self._pods.get(ordinal)
            if self._is_unavailable(pod):
                return pod
        return next((pod for pod in reversed(self._condemned) if self._is_unavailable(pod)), None)

    # --- pods that are wanted ----------------------------------------------------------------------------------------

    async def _in_turn(self, monotonic: bool) -> bool:
        """The next pod is created when the one before is available. Whether the rest has to wait."""
        for ordinal in self._wanted:
            if await self._process(ordinal, monotonic):
                return True
        return False

    async def _in_parallel(self) -> bool:
        """In batches that double while all succeed; pods with which all is well count, too."""
        start, size, wanted = 0, slow_start.INITIAL_BATCH, self._wanted
        while start < len(wanted):
            batch = [ordinal for ordinal in wanted[start : start + size] if self._needs_work(ordinal)]
            _, failure = await slow_start.at_once(self._controller.env, batch, self._process_freely)
            if failure is not None:
                raise failure
            start, size = start + size, min(2 * size, LARGEST_BATCH)
        return False

    async def _process_freely(self, ordinal: int) -> None:
        await self._process(ordinal, False)

    def _needs_work(self, ordinal: int) -> bool:
        pod = self._pods.get(ordinal)
        return (
            pod is None
            or pod_phases.is_terminal(pod)
            or bool(self._owner.spec.volumeClaimTemplates)
            or not stateful_pods.is_identity_right(self._owner, pod)
        )

    async def _process(self, ordinal: int, monotonic: bool) -> bool:
        """``processReplica``. Whether the next ones have to wait."""
        owner, controller, pod = self._owner, self._controller, self._pods.get(ordinal)
        has_claims = bool(owner.spec.volumeClaimTemplates)
        if pod is None:
            new = self._new_pod(ordinal)
            if has_claims and controller.claims.are_stale(owner, new):
                return True
            await controller.create_member(owner, new, ordinal)
            if monotonic:
                return True
            # A claim that was changed for it looks as before, until the watch shows it.
            pod = new
        if pod_phases.is_terminal(pod):
            # Its successor is created when it has gone.
            if not stateful_pods.is_terminating(pod):
                await self._delete(pod)
            return True
        if has_claims and pod.status.phase == pod_phases.PENDING:
            await controller.complete_claims(owner, pod)
        if monotonic and (
            stateful_pods.is_terminating(pod)
            or not stateful_pods.is_running_and_ready(pod)
            or not self._is_available(pod)
        ):
            return True
        if (
            not stateful_pods.is_identity_right(owner, pod)
            or not stateful_pods.is_storage_right(owner, pod)
            or (has_claims and not controller.claims.match_policy(owner, pod))
        ):
            await controller.repair_member(owner, pod)
        return False

    def _new_pod(self, ordinal: int) -> core_v1_pb2.Pod:
        """``newVersionedStatefulSetPod``."""
        owner, revision = self._owner, self.update
        strategy, first = owner.spec.updateStrategy, self._wanted.start
        if strategy.HasField("rollingUpdate"):
            is_old = ordinal < first + strategy.rollingUpdate.partition
        else:
            is_old = strategy.type == "RollingUpdate" and ordinal < first + owner.status.currentReplicas
        if is_old:
            revision = self.current
        name = stateful_pods.name(owner, ordinal)
        pod = self._controller.new_pod(owner, name, _template_of(owner, revision))
        pod.metadata.generateName = f"{owner.metadata.name}-"
        stateful_pods.set_identity(pod, ordinal)
        pod.spec.hostname = name
        if owner.spec.serviceName:
            pod.spec.subdomain = owner.spec.serviceName
        stateful_pods.set_storage(owner, pod, ordinal)
        pod.metadata.labels[histories.REVISION_LABEL] = revision.metadata.name
        return pod

    async def _delete(self, pod: core_v1_pb2.Pod) -> None:
        failure = await self._controller.delete_pods(self._owner, [pod])
        if failure is not None:
            raise failure

    # --- pods that are not -------------------------------------------------------------------------------------------

    async def _condemn(self, monotonic: bool, first_unhealthy: core_v1_pb2.Pod | None) -> bool:
        """``processCondemned``: the highest ordinal goes first. Whether the update has to wait."""
        if not monotonic:
            doomed = [pod for pod in self._condemned if not stateful_pods.is_terminating(pod)]
            failure = await self._controller.delete_pods(self._owner, doomed)
            if failure is not None:
                raise failure
            return False
        for pod in self._condemned:
            if stateful_pods.is_terminating(pod):
                return True
            healthy = stateful_pods.is_running_and_ready(pod) and self._is_available(pod)
            if healthy or pod is first_unhealthy:
                await self._delete(pod)
            return True
        return False

    # --- updates -----------------------------------------------------------------------------------------------------

    def _is_old(self, pod: core_v1_pb2.Pod) -> bool:
        return histories.revision_of(pod) != self.update.metadata.name and not stateful_pods.is_terminating(pod)

    async def _update_next(self) -> None:
        """One pod at a time, from the highest ordinal down to the partition."""
        partition = self._owner.spec.updateStrategy.rollingUpdate.partition
        for ordinal in reversed(self._wanted[partition:]):
            pod = self._pods.get(ordinal)
            if pod is not None and self._is_old(pod):
                await self._delete(pod)
                self.status["currentReplicas"] -= 1
                return
            if self._is_unavailable(pod):
                return

    async def _update_several(self) -> None:
        """As many as ``maxUnavailable`` allows (``updateStatefulSetAfterInvariantEstablished``)."""
        strategy = self._owner.spec.updateStrategy
        partition, most = 0, 1
        if strategy.HasField("rollingUpdate"):
            partition = strategy.rollingUpdate.partition
            if strategy.rollingUpdate.HasField("maxUnavailable"):
                given = strategy.rollingUpdate.maxUnavailable
                most = max(1, scaling.scaled(given, self._owner.spec.replicas, up=False))
        unavailable = len(self._wanted) - sum(not self._is_unavailable(pod) for pod in self._pods.values())
        room = most - unavailable
        for ordinal in reversed(self._wanted[partition:]):
            if room <= 0:
                return
            pod = self._pods.get(ordinal)
            if pod is not None and self._is_old(pod):
                await self._delete(pod)
                room -= 1
                self.status["currentReplicas"] -= 1


def _ordinal(numbered: tuple[int, Any]) -> int:
    return numbered[0]


def _template_of(
    owner: apps_v1_pb2.StatefulSet, revision: apps_v1_pb2.ControllerRevision
) -> core_v1_pb2.PodTemplateSpec:
    """The template that a revision keeps (``ApplyRevision``)."""
    if revision.data.raw == documents.patch(owner.spec.template):
        return owner.spec.template
    return documents.template_of(revision.data.raw)
