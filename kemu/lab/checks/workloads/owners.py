"""Workloads and their pods, as the store has them: what the checks of controllers judge by.

Role: below ``shortages`` and ``orders``, which listen to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import NODE_PREFIX, POD_PREFIX, STATUS, History, parsed
from kemu.lab.checks.results import Fold
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog.events import Transaction

KINDS = {
    "/registry/replicasets/": "ReplicaSet",
    "/registry/replicationcontrollers/": "ReplicationController",
    "/registry/statefulsets/": "StatefulSet",
    "/registry/daemonsets/": "DaemonSet",
    "/registry/jobs/": "Job",
    "/registry/deployments/": "Deployment",
}
"""What may control pods, or what does."""


@dataclass(eq=False, slots=True)
class Pod:
    """A pod that a workload controls."""

    uid: str
    name: str
    owner: str
    """The UID of the workload."""
    created_ns: int
    node: str = ""
    target: str = ""
    """The only node to which its affinity lets it go."""
    ready: bool = False
    unready_ns: int = 0
    """Since when it is not ready, if it is not."""
    over: bool = False
    """It has succeeded or failed."""
    failed: bool = False
    began_s: int = 0
    """When it was created, in Unix time."""
    ended_s: int = 0
    """When its last container ended, in Unix time; 0: not known."""
    deleting: bool = False

    @property
    def active(self) -> bool:
        return not self.over and not self.deleting


@dataclass(eq=False, slots=True)
class Owner:
    """A workload."""

    kind: str
    name: str
    """``namespace/name``."""
    uid: str
    value: Any
    changed_ns: int
    """When its specification last changed."""
    before: KubernetesObject
    """Its value before that."""
    pods: dict[str, Pod] = field(default_factory=dict)
    parent: str = ""
    """The UID of what controls it."""
    active: int | None = None
    """How many of its pods are; None: not counted yet."""

    def counted(self) -> int:
        """How many pods are active."""
        if self.active is None:
            self.active = sum(pod.active for pod in self.pods.values())
        return self.active

    @property
    def says(self) -> str:
        return f"{self.kind} {self.name.removeprefix('default/')}"


class Workloads(Fold):
    """``tell_owner``, ``tell_pod`` and ``tell_node`` are told of what has changed, after it has."""

    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX, *KINDS)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.owners: dict[str, Owner] = {}
        """By UID."""
        self.nodes: dict[str, Any] = {}
        self._pods: dict[str, Pod | None] = {}
        """By UID; None: no user's."""
        self._orphans: dict[str, dict[str, Pod]] = {}
        """By the UID of an owner that is not there, their pods."""
        self._uid_of_key: dict[str, str] = {}
        self.tell_owner: list[Callable[[int, Owner, bool], object]] = []
        """When, whom, and whether it is gone."""
        self.tell_pod: list[Callable[[int, Owner, Pod, bool], object]] = []
        self.tell_node: list[Callable[[int, str], object]] = []

    def on_event(self, time_ns: int, actor: str, event: Transaction) -> None:
        for op, key, value, _create, _version in event.changes:
            self._changed(time_ns, key, value if op == 0 else None)

    def pod_changes(self) -> int | None:
        return STATUS

    def _changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        if key.startswith(NODE_PREFIX):
            name = key.removeprefix(NODE_PREFIX)
            if value is None:
                self.nodes.pop(name, None)
            else:
                self.nodes[name] = parsed.node(value)
            for told in self.tell_node:
                told(time_ns, name)
        else:
            prefix = key[: key.find("/", 10) + 1]
            if prefix in KINDS:
                self._owner_changed(time_ns, KINDS[prefix], prefix, key, value)

    def _owner_changed(self, time_ns: int, kind: str, prefix: str, key: str, value: bytes | None) -> None:
        found: Any = None
        if value is not None:
            found = resources.BY_PLURAL[prefix.split("/")[2]].message.FromString(value)
        uid = self._uid_of_key.pop(key, "")
        if uid and (found is None or found.metadata.uid != uid):
            gone = self.owners.pop(uid)
            self._orphans[uid] = gone.pods
            for told in self.tell_owner:
                told(time_ns, gone, True)
        if found is None:
            return
        uid = self._uid_of_key[key] = found.metadata.uid
        owner = self.owners.get(uid)
        if owner is None:
            parent = meta.controller_of(found)
            owner = self.owners[uid] = Owner(
                kind, key.removeprefix(prefix), uid, found, time_ns, found, self._orphans.pop(uid, {}),
                parent.uid if parent is not None else "",
            )  # fmt: skip
        else:
            if found.metadata.generation != owner.value.metadata.generation:
                owner.changed_ns, owner.before = time_ns, owner.value
            owner.value = found
        for told in self.tell_owner:
            told(time_ns, owner, False)

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        before = self._uid_of_key.pop(key, "")
        if before and (pod is None or pod.metadata.uid != before):
            gone = self._pods.pop(before, None)
            if gone is not None:
                self._leave(time_ns, gone)
        if pod is None:
            return
        uid = self._uid_of_key[key] = pod.metadata.uid
        is_new = uid not in self._pods
        if not is_new:
            known = self._pods[uid]
            if known is None:
                return
        else:
            controller = meta.controller_of(pod) if pod.metadata.ownerReferences else None
            if controller is None:
                self._pods[uid] = None
                return
            known = Pod(uid, key.removeprefix(POD_PREFIX), controller.uid, time_ns, unready_ns=time_ns)
            known.began_s = pod.metadata.creationTimestamp.seconds
            known.target = _target(pod) if controller.kind == "DaemonSet" else ""
            self._pods[uid] = known
            self._of(known)[uid] = known
        was = known.node, known.over, known.deleting, known.ready
        known.node = pod.spec.nodeName
        known.over = pod_phases.is_terminal(pod)
        known.failed = pod.status.phase == pod_phases.FAILED
        if known.over and not was[1]:
            known.ended_s = _ended_s(pod)
        known.deleting = pod.metadata.HasField("deletionTimestamp")
        ready = meta.is_ready(pod) and not known.deleting
        if known.ready and not ready:
            known.unready_ns = time_ns
        known.ready = ready
        owner = self.owners.get(known.owner)
        if owner is not None and (is_new or was != (known.node, known.over, known.deleting, known.ready)):
            if owner.active is not None:
                owner.active += known.active - (not is_new and not was[1] and not was[2])
            for told in self.tell_pod:
                told(time_ns, owner, known, False)

    def _of(self, pod: Pod) -> dict[str, Pod]:
        owner = self.owners.get(pod.owner)
        return owner.pods if owner is not None else self._orphans.setdefault(pod.owner, {})

    def _leave(self, time_ns: int, pod: Pod) -> None:
        self._of(pod).pop(pod.uid, None)
        owner = self.owners.get(pod.owner)
        if owner is not None:
            if owner.active is not None:
                owner.active -= pod.active
            for told in self.tell_pod:
                told(time_ns, owner, pod, True)


def _ended_s(pod: core_v1_pb2.Pod) -> int:
    """0: of one of its containers it is not known."""
    ends = [one.state.terminated.finishedAt.seconds for one in pod.status.containerStatuses]
    return max(ends) if ends and all(ends) else 0


def _target(pod: core_v1_pb2.Pod) -> str:
    """``metadata.name`` in its required node affinity."""
    required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    for term in required.nodeSelectorTerms:
        for one in term.matchFields:
            if one.key == "metadata.name" and len(one.values) == 1:
                return str(one.values[0])
    return ""
