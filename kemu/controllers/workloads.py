"""What the controllers that keep pods have in common: ReplicaSet, StatefulSet, DaemonSet.

Each watches its owners and all pods, and reconciles one owner at a time. An owner is not looked at while pods that
were created or deleted for it have not been seen in the watch yet (``ControllerExpectations`` in ``pkg/controller``):
with an old view it would make too many. When an owner is gone its pods are deleted, which is the garbage collector's
work in Kubernetes.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from kemu import errors
from kemu.client import informers, retries, workqueues
from kemu.controllers import controllers
from kemu.k8s import core_v1_pb2
from kemu.objects import meta, pod_phases
from kemu.runtime.env import SECOND_NS, Env

EXPECTED_S = 5 * 60
"""How long news of what was done are waited for (``ExpectationsTimeout``)."""


class WorkloadController(controllers.Controller, abc.ABC):
    """Subclasses name their ``resource``, ``kind`` and say in :meth:`sync` what to do."""

    resource: ClassVar[str]
    kind: ClassVar[str]

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self.owners = informers.Informer(self.client, self.resource, handler=_Owners(self))
        self.pods = informers.Informer(self.client, "pods", handler=self)
        self._of: dict[str, dict[str, Any]] = {}
        """By UID of the owner: its pods by UID, in the order of their arrival."""
        self._expected: dict[str, dict[str, str]] = {}
        """By UID of the owner: UIDs of pods that were created or deleted and not yet seen to be so, and which."""
        self._expected_ns: dict[str, int] = {}
        """Since when at the most."""
        self._lost: dict[str, dict[str, tuple[str, str]]] = {}
        """By UID of the owner: pods that it lost and that nobody has replaced yet, in the order of their loss, UID →
        name and place. What was lost while this controller did not run is not known."""

    async def run(self) -> None:
        await self.begin(self.pods, self.owners)
        await self.work(self.queue, self._reconcile)

    @abc.abstractmethod
    async def sync(self, owner: Any, pods: list[Any]) -> None:
        """Bring the pods of one owner closer to what it wants. Raises ApiError to be called again later."""

    def place(self, pod: Any) -> str:
        """What a pod that replaces another has in common with it, beside the owner."""
        return ""

    # --- news --------------------------------------------------------------------------------------------------------

    def enqueue(self, owner: Any) -> None:
        self.queue.add_after(controllers.key_of(owner), self.lag_s())

    def on_add(self, obj: Any) -> None:
        self._observe(obj, "created")

    def on_update(self, old: Any, new: Any) -> None:
        self._observe(new, "deleted" if new.metadata.HasField("deletionTimestamp") else "")

    def on_delete(self, old: Any) -> None:
        reference = self._owner_of(old)
        if reference is not None:
            last = self._of.get(reference.uid, {}).pop(old.metadata.uid, None)
            if last is not None and is_active(last):
                self._note_loss(reference.uid, last)
            self._seen(reference.uid, old.metadata.uid, "deleted")
            self._seen(reference.uid, old.metadata.uid, "created")
            self._wake(reference, old.metadata.namespace)

    def _observe(self, pod: Any, what: str) -> None:
        reference = self._owner_of(pod)
        if reference is not None:
            pods = self._of.setdefault(reference.uid, {})
            last = pods.get(pod.metadata.uid)
            pods[pod.metadata.uid] = pod
            if last is not None and is_active(last) and not is_active(pod):
                self._note_loss(reference.uid, pod)
            self._seen(reference.uid, pod.metadata.uid, what)
            self._wake(reference, pod.metadata.namespace)

    def _owner_of(self, pod: Any) -> Any | None:
        reference = meta.controller_of(pod)
        return reference if reference is not None and reference.kind == self.kind else None

    def _wake(self, reference: Any, namespace: str) -> None:
        self.queue.add_after(f"{namespace}/{reference.name}", self.lag_s())

    def _note_loss(self, owner_uid: str, pod: Any) -> None:
        """A pod counts no more. One that this controller deleted was one too many."""
        uid = pod.metadata.uid
        if self._expected.get(owner_uid, {}).get(uid) != "deleted":
            self._lost.setdefault(owner_uid, {})[uid] = pod.metadata.name, self.place(pod)

    def _seen(self, owner_uid: str, pod_uid: str, what: str) -> None:
        expected = self._expected.get(owner_uid)
        if expected is not None and expected.get(pod_uid) == what:
            del expected[pod_uid]
            if not expected:
                del self._expected[owner_uid]

    # --- work --------------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> None:
        owner = self.owners.store.get(key)
        if owner is not None and not owner.metadata.HasField("deletionTimestamp"):
            uid = owner.metadata.uid
            if uid in self._expected and self.clock.now_ns() - self._expected_ns[uid] < EXPECTED_S * SECOND_NS:
                # The news may have been missed, in a list anew.
                self.queue.add_after(key, EXPECTED_S, background=True)
                return
            self._expected.pop(uid, None)
            await self.sync(owner, list(self._of.get(uid, {}).values()))

    def complete(self, owner: Any) -> None:
        """Nothing is missing: what was lost up to now will not be replaced by what may come."""
        self._lost.pop(owner.metadata.uid, None)

    async def disown(self, owner: Any) -> None:
        """The owner is gone: its pods go as well."""
        self.complete(owner)
        pods = list(self._of.pop(owner.metadata.uid, {}).values())
        await self.all([self.delete_pod(owner, pod) for pod in pods], "delete pods of a deleted owner")

    def new_pod(self, owner: Any, name: str = "") -> core_v1_pb2.Pod:
        """From the owner's template; without ``name`` the API server makes one up."""
        template = owner.spec.template
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
        pod.metadata.ownerReferences.append(meta.owner_reference(owner, "apps/v1", self.kind))
        pod.spec.CopyFrom(template.spec)
        return pod

    async def create_pod(self, owner: Any, pod: core_v1_pb2.Pod) -> bool:
        """False: there is one of this name already."""
        try:
            created = await retries.patiently(self.env, lambda: self.client.create(pod))
        except errors.AlreadyExists:
            return False
        uid = owner.metadata.uid
        if created.metadata.uid not in self._of.get(uid, {}):
            self._expect(uid, created.metadata.uid, "created")
        self._log_created(owner, created)
        return True

    def _log_created(self, owner: Any, pod: core_v1_pb2.Pod) -> None:
        """The pod replaces the first that was lost from its place."""
        lost, place, namespace = self._lost.get(owner.metadata.uid, {}), self.place(pod), pod.metadata.namespace
        old_uid = next((uid for uid, (_, left) in lost.items() if left == place), "")
        old_name, _ = lost.pop(old_uid, ("", ""))
        self.env.log(
            "controller.pod",
            {
                "pod": controllers.key_of(pod),
                "uid": pod.metadata.uid,
                "owner": f"{self.kind} {controllers.key_of(owner)}",
                "replaces": f"{namespace}/{old_name}" if old_uid else "",
                "replaces_uid": old_uid,
            },
        )

    def _expect(self, owner_uid: str, uid: str, what: str) -> None:
        self._expected.setdefault(owner_uid, {})[uid] = what
        self._expected_ns[owner_uid] = self.clock.now_ns()

    async def delete_pod(self, owner: Any, pod: Any) -> None:
        metadata = pod.metadata
        owner_uid, uid = owner.metadata.uid, metadata.uid
        self._expect(owner_uid, uid, "deleted")
        try:
            await retries.patiently(
                self.env, lambda: self.client.delete("pods", metadata.name, metadata.namespace, uid=uid)
            )
        except (errors.NotFound, errors.Conflict):
            self._seen(owner_uid, uid, "deleted")

    async def report(self, owner: Any, **counts: int) -> None:
        """Write the owner's status where it has changed."""
        changed = {name: count for name, count in counts.items() if getattr(owner.status, name) != count}
        if owner.status.observedGeneration != owner.metadata.generation:
            changed["observedGeneration"] = owner.metadata.generation
        if not changed:
            return
        metadata = owner.metadata
        try:
            await retries.patiently(
                self.env,
                lambda: self.client.patch(
                    self.resource,
                    metadata.name,
                    metadata.namespace,
                    {"status": changed},
                    "status",
                    uid=metadata.uid,
                ),
            )
        except (errors.NotFound, errors.Conflict):
            return


class _Owners:
    """News of the owners."""

    def __init__(self, controller: WorkloadController) -> None:
        self._controller = controller

    def on_add(self, obj: Any) -> None:
        self._controller.enqueue(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._controller.enqueue(new)

    def on_delete(self, old: Any) -> None:
        self._controller.env.spawn(self._controller.disown(old), f"disown {controllers.key_of(old)}")


def is_active(pod: Any) -> bool:
    """It has not ended and is not about to."""
    return not pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp")
