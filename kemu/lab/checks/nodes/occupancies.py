"""What runs on every node, from the words of the kubelets, and what that says about their admissions.

Role: below ``placements``, whose checks read the findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.history import MIRROR, NODE_PREFIX, POD_PREFIX, STATUS, History, parsed
from kemu.lab.checks.results import Fold, seconds
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events

_Events = (
    events.Transaction | events.PodTerminated | events.PodFinished | events.ActorStarted | events.ActorStopped
    | events.MachineOff | events.WatchListed | events.WatchDelivered
)  # fmt: skip

KUBELET = "kubelet/"
"""Kubelets are named so, with their nodes."""

OUT_OF = "OutOf"
"""With the resource: the reason of a pod that its kubelet rejects because that is short."""

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
"""A kubelet that starts anew keeps pods of this priority without a second look (``IsCriticalPod``)."""


def is_critical(pod: core_v1_pb2.Pod) -> bool:
    """Its kubelet neither evicts it nor keeps it out under pressure. Static pods are known by their mirrors."""
    return pod.spec.priority >= SYSTEM_CRITICAL_PRIORITY or MIRROR in pod.metadata.annotations


@dataclass(slots=True)
class _Pod:
    name: str
    node: str
    wanted: dict[str, int]
    generation: int
    critical: bool
    has_started: bool = False
    """Its status says so: a kubelet that starts anew adopts it."""
    is_over: bool = False
    """The object is gone, or says that the pod has ended."""
    is_gone: bool = False


class Occupancy(Fold):
    """Which pods run where and what they take there, and the admissions and rejections that do not fit that."""

    actors: ClassVar[Mapping[type[events.Event], str]] = {events.WatchListed: KUBELET, events.WatchDelivered: KUBELET}
    watches: ClassVar[Mapping[type[events.Event], str]] = {events.WatchDelivered: "nodes"}
    keys: ClassVar[tuple[str, ...]] = (NODE_PREFIX,)

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._views: dict[str, list[tuple[int, dict[str, int]]]] = {}
        """By node: revisions and allocatables, from the one that its kubelet has seen last to the latest."""
        self._sees: set[str] = set()
        """Nodes whose kubelets say which of them they have seen."""
        self._kubelets: set[str] = set()
        """Nodes that have one."""
        self._pods: dict[str, _Pod] = {}
        """By UID, of a mirror pod that of its static pod."""
        self._uid_of_key: dict[str, str] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._running: dict[str, tuple[str, dict[str, int]]] = {}
        """UID → node and what the pod takes there."""
        self._running_on: dict[str, dict[str, None]] = {}
        """The UIDs of the same, by node."""
        self._unseen: dict[str, dict[str, None]] = {}
        """By node, what its kubelet took before the store knew it: static pods without a mirror."""
        self._refused: set[str] = set()
        """UIDs of pods of which a kubelet has said that it does not take them."""
        self._ended: set[str] = set()
        self._off: set[str] = set()
        """Nodes whose machines are off, or gone."""
        self._again: dict[str, dict[str, None]] = {}
        """By node, pods that ran when their machine went off."""
        self._taken_again: dict[str, dict[str, None]] = {}
        """By node, those of them that its kubelet has taken again, and that have not started yet: it says nothing of
        whom it takes again."""
        self.overcommitted: list[str] = []
        """Findings."""
        self.needlessly_rejected: list[str] = []
        """Findings."""
        self.admitted = 0
        self.rejected = 0
        """Pods for which a resource was too short, in the kubelet's words."""

    def on_event(self, time_ns: int, actor: str, event: _Events) -> None:
        if isinstance(event, (events.WatchDelivered, events.WatchListed)):
            if actor.startswith(KUBELET):
                self._kubelet_heard(actor.removeprefix(KUBELET), event)
        elif isinstance(event, events.Transaction):
            for op, key, value, _create, _version in event.changes:
                if key.startswith(NODE_PREFIX) and op == 0:
                    self._node_changed(event.rev, value)
        elif isinstance(event, (events.ActorStarted, events.ActorStopped)):
            if actor.startswith(KUBELET):
                node = actor.removeprefix(KUBELET)
                if isinstance(event, events.ActorStarted):
                    self._kubelets.add(node)
                    self._off.discard(node)
                    self._kubelet_starts_anew(node)
                else:
                    self._machine_is_off(node)
        elif isinstance(event, events.MachineOff):
            self._machine_is_off(event.node)
        else:
            self._unseen.get(event.node, {}).pop(event.uid, None)
            self._end(event.uid)

    def _on_words(self, time_ns: int, actor: str, event: events.AdmissionDecided | events.PodRunning) -> None:
        self._kubelets.add(event.node)
        if isinstance(event, events.PodRunning) or event.ok:
            if event.uid not in self._running:
                self._begin(time_ns, event.uid, event.node)
        else:
            self._end(event.uid)
            self._refused.add(event.uid)
            if event.reason.startswith(OUT_OF):
                self._rejected(time_ns, event.node, event.uid, event.reason)

    @property
    def in_use(self) -> int:
        """Nodes on which a pod ran."""
        return len(self._used)

    # --- objects -----------------------------------------------------------------------------------------------------

    def _node_changed(self, revision: int, value: bytes) -> None:
        node = parsed.node(value)
        name, allocatable = node.metadata.name, requests.resource_list(node.status.allocatable)
        views = self._views.setdefault(name, [])
        if not views or views[-1][1] != allocatable:
            if name not in self._sees:
                views.clear()
            views.append((revision, allocatable))

    def _kubelet_heard(self, node: str, event: events.WatchListed | events.WatchDelivered) -> None:
        resource = event.watch.partition("#")[0]
        if resource == "pods" and isinstance(event, events.WatchListed):
            self._kubelet_starts_anew(node)
            self._taken_again[node] = {
                uid: None for uid in self._again.get(node, ()) if uid not in self._running and self._is_adopted(uid)
            }
        elif resource == "nodes":
            self._sees.add(node)
            seen = event.rev if isinstance(event, events.WatchListed) else event.revs[-1]
            views = self._views.get(node, [])
            while len(views) > 1 and views[1][0] <= seen:
                del views[0]

    def pod_changes(self) -> int | None:
        return STATUS

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        if pod is None:
            uid = self._uid_of_key.pop(key, "")
            if uid in self._pods:
                self._pods[uid].is_gone = True
                self._over(uid)
                if uid not in self._running:
                    self._drop(uid)
            return
        metadata, status = pod.metadata, pod.status
        uid = metadata.annotations.get(MIRROR, metadata.uid)
        known = self._pods.get(uid)
        if known is None:
            # A mirror pod is known by another UID, and may have been written before.
            told = self.history.pods.get(uid)
            is_plain = told is not None and told.facts[-1].what == "created" and not requests.is_resized(pod)
            wanted = told.requests if told is not None and is_plain else requests.allocated_requests(pod)
            critical = pod.spec.priority >= SYSTEM_CRITICAL_PRIORITY
            name = key.removeprefix(POD_PREFIX)
            known = self._pods[uid] = _Pod(name, pod.spec.nodeName, wanted, metadata.generation, critical)
        elif known.generation != metadata.generation or requests.is_resized(pod):
            known.generation = metadata.generation
            if requests.is_resized(pod):
                self._resized(time_ns, uid, known, requests.allocated_requests(pod))
            elif uid not in self._running:
                known.wanted = requests.pod_requests(pod)
        self._uid_of_key[key] = uid
        known.node = pod.spec.nodeName
        known.has_started = status.phase == pod_phases.RUNNING or status.HasField("startTime")
        known.is_gone = known.is_over = False
        if status.phase == pod_phases.RUNNING:
            if uid not in self._running:
                self._begin(time_ns, uid, known.node)
        elif status.phase in pod_phases.TERMINAL:
            if status.reason.startswith(OUT_OF) and uid not in self._refused and known.node in self._kubelets:
                # Its kubelet has refused it without a word: one that starts anew, and looks at what runs.
                self._refused.add(uid)
                self._rejected(time_ns, known.node, uid, status.reason)
            self._over(uid)

    def _over(self, uid: str) -> None:
        pod = self._pods[uid]
        pod.is_over = True
        self._taken_again.get(pod.node, {}).pop(uid, None)
        if pod.node not in self._kubelets:
            self._end(uid)  # There is no component that could say more.

    def _resized(self, time_ns: int, uid: str, pod: _Pod, wanted: dict[str, int]) -> None:
        before, pod.wanted = pod.wanted, wanted
        if uid not in self._running or wanted == before:
            return
        node, _ = self._running[uid]
        self._running[uid] = (node, wanted)
        used = self._used[node]
        for resource in sorted({*before, *wanted}):
            more = wanted.get(resource, 0) - before.get(resource, 0)
            used[resource] = used.get(resource, 0) + more
            if more > 0:
                self._compare(time_ns, f"{pod.name}, resized,", node, resource)

    # --- what runs ---------------------------------------------------------------------------------------------------

    def _begin(self, time_ns: int, uid: str, node: str) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            self._unseen.setdefault(node, {})[uid] = None
            return
        if uid in self._running or uid in self._ended or node in self._off:
            return
        self._unseen.get(node, {}).pop(uid, None)
        self._taken_again.get(node, {}).pop(uid, None)
        self._running[uid] = (node, pod.wanted)
        self._running_on.setdefault(node, {})[uid] = None
        self.admitted += 1
        used = self._used.setdefault(node, {})
        for resource, amount in (*pod.wanted.items(), ("pods", 1)):
            used[resource] = used.get(resource, 0) + amount
            if not amount:
                continue
            if uid not in self._again.get(node, ()):
                self._compare(time_ns, pod.name, node, resource)
            elif not pod.critical:
                # Taken again when the kubelet came back: perhaps before those which it takes whatever fits.
                self._compare(time_ns, pod.name, node, resource, self._taken_unasked(node, resource))

    def _of_gone(self, node: str, resource: str) -> int:
        """What pods have whose objects are gone, and that have not ended yet: kubelets do not count them."""
        return sum(
            1 if resource == "pods" else self._running[uid][1].get(resource, 0)
            for uid in self._on(node)
            if self._pods[uid].is_gone
        )

    def _taken_unasked(self, node: str, resource: str) -> int:
        """What the critical pods have that came back with the kubelet."""
        back = self._again[node]
        return sum(
            1 if resource == "pods" else self._running[uid][1].get(resource, 0)
            for uid in self._on(node)
            if uid in back and self._pods[uid].critical
        )

    def _compare(self, time_ns: int, who: str, node: str, resource: str, unasked: int = 0) -> None:
        views = self._views.get(node)
        if not views:
            return
        if requests.is_extended(resource) and any(resource not in allocatable for _, allocatable in views):
            return  # The kubelet overlooks what its node does not have (``removeMissingExtendedResources``).
        room = max([allocatable.get(resource, 0) for _, allocatable in views])
        used = self._used[node][resource] - unasked
        if used > room:
            used -= self._of_gone(node, resource)
        if used > room:
            self.overcommitted.append(
                f"{seconds(time_ns)}: {who} on {node} makes {used} of {resource} in use, of {room} allocatable"
            )

    def _rejected(self, time_ns: int, node: str, uid: str, reason: str) -> None:
        """For want of a resource: with the pod, more of it would have been in use than any allocatable that the kubelet
        may have known has."""
        resource = reason.removeprefix(OUT_OF)
        pod, views = self._pods.get(uid), self._views.get(node)
        if pod is None or not views or self._unseen.get(node):
            return
        self.rejected += 1
        used = self._used.get(node, {}).get(resource, 0)
        for taken in self._taken_again.get(node, ()):
            used += 1 if resource == "pods" else self._pods[taken].wanted.get(resource, 0)
        wanted = 1 if resource == "pods" else pod.wanted.get(resource, 0)
        if uid in self._running:
            used -= wanted
        room = min(allocatable.get(resource, 0) for _, allocatable in views)
        if used + wanted <= room:
            self.needlessly_rejected.append(
                f"{seconds(time_ns)}: {node} rejects {pod.name}, which wants {wanted} of {resource}, where {used} of "
                f"{room} are in use"
            )

    def _end(self, uid: str) -> None:
        if uid in self._pods:
            self._taken_again.get(self._pods[uid].node, {}).pop(uid, None)
        if uid in self._running:
            self._forget(uid)
            self._ended.add(uid)
            if self._pods[uid].is_gone:
                self._drop(uid)

    def _drop(self, uid: str) -> None:
        """Neither object nor containers are left."""
        pod = self._pods.pop(uid, None)
        self._ended.discard(uid)
        if pod is not None:
            self._again.get(pod.node, {}).pop(uid, None)

    def _kubelet_starts_anew(self, node: str) -> None:
        """It adopts what has started and is not over."""
        for uid in self._on(node):
            if not self._is_adopted(uid):
                self._forget(uid)

    def _is_adopted(self, uid: str) -> bool:
        return self._pods[uid].has_started and not self._pods[uid].is_over

    def _machine_is_off(self, node: str) -> None:
        """Its containers have ended; its pods may run again when it is back."""
        self._off.add(node)
        self._unseen.pop(node, None)
        for uid in self._on(node):
            self._forget(uid)
            self._again.setdefault(node, {})[uid] = None
        self._taken_again.pop(node, None)

    def _on(self, node: str) -> list[str]:
        return list(self._running_on.get(node, ()))

    def _forget(self, uid: str) -> None:
        node, wanted = self._running.pop(uid)
        del self._running_on[node][uid]
        used = self._used[node]
        for resource, amount in (*wanted.items(), ("pods", 1)):
            used[resource] -= amount
