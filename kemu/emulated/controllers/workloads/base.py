"""What the controllers of ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets have in common.

Each watches its owners and all pods, and syncs one owner at a time, several owners side by side. No sync begins before
its informers show what the last one wrote, and while pods that it created or deleted for an owner are missing from its
watch, it only reports that owner's status (:mod:`kemu.emulated.controllers.workloads.expectations`). The pods of an
owner that is gone are the garbage collector's.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from kemu import errors
from kemu.emulated import variants
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers, label_indexes
from kemu.emulated.controllers.workloads import claims, expectations, losses
from kemu.emulated.objects import meta, resources, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import PodCreated

Test = Callable[[Any], bool]
"""Test of a pod."""


def _always(pod: core_v1_pb2.Pod) -> bool:
    return True


Workload = apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet | apps_v1_pb2.DaemonSet
W = TypeVar("W", bound=Workload)


class WorkloadController(controllers.Controller, abc.ABC, Generic[W]):
    """Subclasses name their ``resource`` and ``kind`` and bring one owner closer to what it wants in :meth:`sync`."""

    resource: ClassVar[str]
    kind: ClassVar[str]
    workers: ClassVar[int] = 5
    """Owners that are synced at the same time, as by default in kube-controller-manager."""

    notes_gone: ClassVar[bool] = False
    """Whether the deletion of a pod that is gone already is written down, too."""
    reads_its_writes: ClassVar[bool] = True
    """Whether a sync waits for the informers (the feature gates StaleControllerConsistency…)."""
    waits_for_pods: ClassVar[bool] = True
    """Whether an owner is only managed when its expectations are met."""

    @property
    def api_version(self) -> str:
        return resources.BY_PLURAL[self.resource].api_version

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name=self.kind.lower())
        self.owners: informers.Informer[W] = informers.Informer(
            self.client,
            self.resource,
            handler=informers.Callbacks(self._owner_added, self._owner_updated, self._owner_deleted),
        )
        self.pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(lambda pod: self._pod_changed(None, pod), self._pod_changed, self._pod_deleted),
        )
        self.expectations = variants.choose(expectations.Expectations, variants.active(config))(env.clock)
        self.read: dict[str, informers.Informer[Any]] = {self.resource: self.owners, "pods": self.pods}
        """What syncs read of what they write, by resource."""
        self.writes = variants.choose(expectations.Writes, variants.active(config))(self.read)
        self.losses = losses.Losses()
        level = config.get("events", recorders.NOTABLE)
        self.recorder = recorders.Recorder(env, self.client, f"{self.kind.lower()}-controller", "0", level)
        self._owned: dict[str, dict[str, dict[str, Any]]] = {}
        """By key of the owner, then its UID: its pods by UID, in the order of their arrival."""
        self._orphans = label_indexes.LabelledObjects()
        """Pods without a controller."""
        self._selectors = label_indexes.Selectors()
        """Selectors of the owners."""

    async def run(self) -> None:
        await self.begin(*self.informers())
        await self.work(self.queue, self.reconcile, self.workers)

    def informers(self) -> tuple[informers.Informer[Any], ...]:
        """All that have to be filled before the first sync, in the order in which they are started."""
        return self.pods, self.owners

    @abc.abstractmethod
    async def sync(self, owner: W, may_manage: bool) -> None:
        """Bring the pods of one owner closer to what it wants, if ``may_manage``, and write its status.

        Raises ApiError to be called again later.
        """

    def place(self, pod: core_v1_pb2.Pod) -> str:
        """What a pod that replaces another has in common with it, besides the owner."""
        return ""

    def pod_changed(self, owner_uid: str, pod: core_v1_pb2.Pod) -> None:
        """A pod of this owner was added, changed or deleted."""

    def owner_changed(self, old: W | None, new: W | None) -> None:
        """An owner was added, changed or deleted."""

    def expired(self, owner: W) -> None:
        """Its expectations were not met in time: what is known of its pods may be wrong."""

    def forget(self, owner: W) -> None:
        """An owner is gone."""
        self.expectations.forget(owner.metadata.uid)
        self.writes.forget(controllers.key_of(owner))
        self.losses.forget(owner.metadata.uid)

    def owned(self, owner: W) -> dict[str, core_v1_pb2.Pod]:
        """The pods of an owner by UID, whatever their phase."""
        return self._owned.get(controllers.key_of(owner), {}).get(owner.metadata.uid, {})

    def orphans(self, owner: W, selector: selectors.LabelSelector) -> list[core_v1_pb2.Pod]:
        """The pods without a controller in the namespace of an owner that it selects."""
        keys = self._orphans.matching(owner.metadata.namespace, selector) if len(self._orphans) else ()
        return [self.pods.store[key] for key in keys]

    async def claim(
        self,
        owner: W,
        owned: list[core_v1_pb2.Pod],
        *,
        considers: Test = _always,
        fits: Test = _always,
    ) -> list[core_v1_pb2.Pod]:
        """Claim of the pods ``owned``, those that the owner keeps, and the orphans that it adopts (``ClaimPods``).

        ``considers``: which orphans are looked at; ``fits``: what a pod must be like besides having the right labels.
        """
        selector = selector_of(owner)
        orphans = [pod for pod in self.orphans(owner, selector) if considers(pod)]
        wrote = functools.partial(self.wrote, owner, "pods")
        claim = claims.Claims(self.env, self.client, self.resource, self.kind, owner, wrote=wrote)
        return await claim.claim(lambda pod: selector.matches(pod.metadata.labels) and fits(pod), owned, orphans)

    # --- events of owners --------------------------------------------------------------------------------------------

    def enqueue(self, owner: W) -> None:
        self.wake(controllers.key_of(owner))

    def wake(self, key: str, delay_s: float = 0) -> None:
        self.queue.add_after(key, delay_s + self.lag_s())

    def _owner_added(self, owner: W) -> None:
        self.owner_changed(None, owner)
        self._select(owner)

    def _owner_updated(self, old: W, new: W) -> None:
        if old.metadata.uid != new.metadata.uid:
            self.forget(old)
        self.owner_changed(old, new)
        self._select(new)

    def _select(self, owner: W) -> None:
        self._selectors.put(controllers.key_of(owner), owner.metadata.namespace, selector_of(owner))
        self.enqueue(owner)

    def _owner_deleted(self, owner: W) -> None:
        self.owner_changed(owner, None)
        self._selectors.remove(controllers.key_of(owner))
        self.forget(owner)
        self.enqueue(owner)

    # --- events of pods ----------------------------------------------------------------------------------------------

    def _pod_changed(self, old: core_v1_pb2.Pod | None, pod: core_v1_pb2.Pod) -> None:
        before = None if old is None else meta.controller_of(old)
        now = meta.controller_of(pod)
        if before is not None and (now is None or now.uid != before.uid) and before.kind == self.kind:
            self._drop(before, pod)
        if now is None:
            self._orphan_changed(old, pod)
            return
        if old is not None and before is None:
            self._orphans.remove(controllers.key_of(pod))
        if now.kind == self.kind:
            self._owned_changed(now, old, pod)

    def _owned_changed(
        self, reference: meta_v1_pb2.OwnerReference, old: core_v1_pb2.Pod | None, pod: core_v1_pb2.Pod
    ) -> None:
        metadata = pod.metadata
        key = f"{metadata.namespace}/{reference.name}"
        pods = self._owned.setdefault(key, {}).setdefault(reference.uid, {})
        last = pods.get(metadata.uid)
        pods[metadata.uid] = pod
        if last is not None and is_active(last) and not is_active(pod):
            self._note_loss(reference, pod)
        deleted = metadata.HasField("deletionTimestamp")
        self.expectations.observe(reference.uid, metadata.uid, expectations.CREATED)
        if deleted:
            self.expectations.observe(reference.uid, metadata.uid, expectations.DELETED)
        self.pod_changed(reference.uid, pod)
        self.wake(key)
        owner = self.owners.store.get(key)
        if owner is not None and owner.spec.minReadySeconds > 0:
            became_ready = old is not None and not meta.is_ready(old) and meta.is_ready(pod)
            if became_ready:
                self.wake(key, owner.spec.minReadySeconds)

    def _orphan_changed(self, old: core_v1_pb2.Pod | None, pod: core_v1_pb2.Pod) -> None:
        metadata = pod.metadata
        key = controllers.key_of(pod)
        if metadata.HasField("deletionTimestamp"):
            self._orphans.remove(key)
            return
        self._orphans.put(key, metadata.namespace, metadata.labels)
        is_new = old is None or meta.controller_of(old) is not None
        if is_new or (old is not None and not meta.same_labels(old.metadata.labels, metadata.labels)):
            for owner in self._selectors.matching(metadata.namespace, metadata.labels):
                self.wake(owner)

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        reference = meta.controller_of(pod)
        if reference is None:
            self._orphans.remove(controllers.key_of(pod))
        elif reference.kind == self.kind:
            last = self.owned_by(reference, pod.metadata.namespace).get(pod.metadata.uid)
            if last is not None and is_active(last):
                self._note_loss(reference, last)
            self._drop(reference, pod)

    def _drop(self, reference: meta_v1_pb2.OwnerReference, pod: core_v1_pb2.Pod) -> None:
        """A pod is no longer the owner's."""
        uid, key = pod.metadata.uid, f"{pod.metadata.namespace}/{reference.name}"
        by_owner = self._owned.get(key, {})
        pods = by_owner.get(reference.uid, {})
        if pods.pop(uid, None) is not None and not pods:
            del by_owner[reference.uid]
            if not by_owner:
                del self._owned[key]
        for what in (expectations.DELETED, expectations.CREATED):
            self.expectations.observe(reference.uid, uid, what)
        self.pod_changed(reference.uid, pod)
        self.wake(key)

    def owned_by(self, reference: meta_v1_pb2.OwnerReference, namespace: str) -> dict[str, core_v1_pb2.Pod]:
        return self._owned.get(f"{namespace}/{reference.name}", {}).get(reference.uid, {})

    def _note_loss(self, reference: meta_v1_pb2.OwnerReference, pod: core_v1_pb2.Pod) -> None:
        """A pod counts no more. One that this controller deleted was one too many."""
        owner = self.owners.store.get(f"{pod.metadata.namespace}/{reference.name}")
        is_there = owner is not None and owner.metadata.uid == reference.uid
        if is_there and not self.expectations.expects_deletion(reference.uid, pod.metadata.uid):
            self.losses.note(reference.uid, pod.metadata.uid, pod.metadata.name, self.place(pod))

    # --- work --------------------------------------------------------------------------------------------------------

    async def reconcile(self, key: str) -> None:
        """Bring the owner of this key closer to what it wants. Raises ApiError to be called again later."""
        if self.reads_its_writes:
            self.writes.check(key)
        owner = self.owners.store.get(key)
        if owner is None:
            self.writes.forget(key)
            return
        uid = owner.metadata.uid
        waited = self.waits_for_pods and self.expectations.waits(uid)
        may_manage = not waited or self.expectations.are_met(uid)
        if waited and may_manage:
            self.expired(owner)
        if not may_manage:
            # The event may have been missed, during a relist.
            self.queue.add_after(key, expectations.TIMEOUT_S, background=True)
        await self.sync(owner, may_manage and not owner.metadata.HasField("deletionTimestamp"))

    def new_pod(
        self,
        owner: W,
        name: str = "",
        template: core_v1_pb2.PodTemplateSpec | None = None,
    ) -> core_v1_pb2.Pod:
        """From the owner's template, or another; without ``name`` the API server generates one."""
        template = owner.spec.template if template is None else template
        pod = core_v1_pb2.Pod()
        pod.metadata.namespace = owner.metadata.namespace
        if name:
            pod.metadata.name = name
        else:
            pod.metadata.generateName = f"{owner.metadata.name}-"
        for key in sorted(template.metadata.labels):
            pod.metadata.labels[key] = template.metadata.labels[key]
        for key in sorted(template.metadata.annotations):
            pod.metadata.annotations[key] = template.metadata.annotations[key]
        pod.metadata.finalizers.extend(template.metadata.finalizers)
        pod.metadata.ownerReferences.append(meta.owner_reference(owner, self.api_version, self.kind))
        pod.spec.CopyFrom(template.spec)
        return pod

    async def create_pod(self, owner: W, pod: core_v1_pb2.Pod) -> None:
        """Raises ApiError, but not when the namespace is being terminated or a pod of this name exists."""
        try:
            created = await self.client.create(pod)
        except errors.AlreadyExists:
            return
        except errors.ApiError as error:
            if any(cause.reason == "NamespaceTerminating" for cause in error.causes):
                return
            self.note_write(owner, "create", pod, error)
            raise
        self.note_write(owner, "create", created, None)
        self.created(owner, created)

    def created(self, owner: W, pod: core_v1_pb2.Pod) -> None:
        """A pod exists now; the next sync waits until the watch has shown it."""
        uid, key = owner.metadata.uid, controllers.key_of(owner)
        self.wrote(owner, "pods", pod)
        known = self.owners.store.get(key)
        if pod.metadata.uid not in self.owned(owner) and known is not None and known.metadata.uid == uid:
            self.expectations.expect(uid, pod.metadata.uid, expectations.CREATED)
        self._log_created(owner, pod)

    def wrote(self, owner: W, resource: str, obj: KubernetesObject) -> None:
        """The next sync of the owner waits until the informer of this resource shows this write."""
        if self.reads_its_writes:
            self.writes.wrote(controllers.key_of(owner), resource, obj)

    def note_write(self, owner: W, verb: str, pod: core_v1_pb2.Pod, error: errors.ApiError | None) -> None:
        """An Event object for a pod that was created or deleted, or was not (``RealPodControl``)."""
        if error is None:
            if self.recorder.writes_routine:
                message = f"{verb.capitalize()}d pod: {pod.metadata.name}"
                reason = f"Successful{verb.capitalize()}"
                self.recorder.event(owner, recorders.NORMAL, reason, reason, message, routine=True)
            return
        message = f"Error {verb[:-1]}ing: {error.message}"
        reason = f"Failed{verb.capitalize()}"
        self.recorder.event(owner, recorders.WARNING, reason, reason, message)

    def _log_created(self, owner: W, pod: core_v1_pb2.Pod) -> None:
        """The pod replaces the first that was lost from its place."""
        old_uid, old_name = self.losses.take(owner.metadata.uid, self.place(pod))
        self.env.log(
            PodCreated(
                pod=controllers.key_of(pod),
                uid=pod.metadata.uid,
                owner=f"{self.kind} {controllers.key_of(owner)}",
                replaces=f"{pod.metadata.namespace}/{old_name}" if old_uid else "",
                replaces_uid=old_uid,
            ),
        )

    async def delete_pods(
        self, owner: W, pods: Iterable[core_v1_pb2.Pod], name: str = "delete pods"
    ) -> errors.ApiError | None:
        """At the same time. Returns the first failure; that a pod is gone is none."""
        failures: list[errors.ApiError] = []

        async def delete(pod: core_v1_pb2.Pod) -> None:
            try:
                if await self._delete_for(owner.metadata.uid, pod) or self.notes_gone:
                    self.note_write(owner, "delete", pod, None)
            except errors.ApiError as error:
                self.note_write(owner, "delete", pod, error)
                failures.append(error)

        await self.all([delete(pod) for pod in pods], name)
        return failures[0] if failures else None

    async def _delete_for(self, owner_uid: str, pod: core_v1_pb2.Pod) -> bool:
        """Whether it was still there."""
        metadata = pod.metadata
        uid = metadata.uid
        self.expectations.expect(owner_uid, uid, expectations.DELETED)
        try:
            await self.client.delete("pods", metadata.name, metadata.namespace)
        except errors.ApiError as error:
            self.expectations.observe(owner_uid, uid, expectations.DELETED)
            if not isinstance(error, errors.NotFound):
                raise
            return False
        return True

    async def report(
        self,
        owner: W,
        counts: Mapping[str, int],
        conditions: list[dict[str, Any]] | None = None,
        *,
        observes: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the owner's status where it has changed. ``conditions``: all that it has now; None: as they are.
        ``observes``: the owner's generation has been acted upon. ``extra``: fields that have changed."""
        known = owner.status
        status: dict[str, Any] = {name: count for name, count in counts.items() if getattr(known, name) != count}
        if "terminatingReplicas" in counts and not known.HasField("terminatingReplicas"):
            # No terminating pods is not the same as none counted.
            status["terminatingReplicas"] = counts["terminatingReplicas"]
        if observes and owner.status.observedGeneration != owner.metadata.generation:
            status["observedGeneration"] = owner.metadata.generation
        if conditions is not None:
            status["conditions"] = conditions
        status.update(extra or {})
        if not status:
            return
        # All counts, as an update writes them: what is known of the owner may be old.
        status = {**counts, **status}
        metadata = owner.metadata
        try:
            written = await self.client.patch(
                self.resource, metadata.name, metadata.namespace, {"status": status}, "status", uid=metadata.uid
            )
        except (errors.NotFound, errors.Conflict):
            return
        self.wrote(owner, self.resource, written)


def selector_of(owner: Workload) -> selectors.LabelSelector:
    """Which pods it wants to own."""
    if isinstance(owner, core_v1_pb2.ReplicationController):
        return selectors.labels_equal(owner.spec.selector)
    return selectors.compile_labels_field(owner.spec, "selector")


def is_active(pod: core_v1_pb2.Pod) -> bool:
    """Neither ended nor being deleted."""
    return not pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp")
