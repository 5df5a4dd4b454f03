"""Checks of what must hold on every node: no overcommitment, and no pod is bound twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kemu.checks.history import MIRROR, NODE_PREFIX, POD_PREFIX, History, parsed
from kemu.checks.history.facts import Fact
from kemu.checks.results import Check, Result, counted, seconds, several
from kemu.objects import pod_phases
from kemu.objects.amounts import requests

KUBELET = "kubelet/"
"""Kubelets are named so, with their nodes."""


SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
"""A kubelet that starts anew keeps pods of this priority without a second look (``IsCriticalPod``)."""


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


class NoNodeOvercommitted(Check):
    """What a kubelet admits fits into the allocatable of its node, beside everything that runs there.

    A pod counts from the moment when its kubelet admits it (or it is seen Running) until that kubelet says that its
    containers have ended, or its machine is off, whatever became of the object. A pod that is merely bound does not
    count: binding more than fits is Kubernetes' own race, and the kubelet's to settle. A resize must fit, too,
    once the kubelet has allocated it.

    An allocatable that shrinks ends nothing and breaks nothing; what is admitted after the kubelet has heard of it must
    fit. A kubelet that starts anew admits anew what had not started. It may refuse what runs, which then no longer
    counts (``HandlePodAdditions``, ``filterOutInactivePods``), and does not know the containers of pods that are over.
    """

    id: ClassVar[str] = "no-node-overcommitted"
    kinds: ClassVar[tuple[str, ...]] = (
        "store.txn", "kubelet.admit", "kubelet.running", "kubelet.terminated", "kubelet.finished", "actor.started",
        "actor.stopped", "machine.off", "watch.listed", "watch.events",
    )  # fmt: skip

    def __init__(self) -> None:
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
        self._ended: set[str] = set()
        self._off: set[str] = set()
        """Nodes whose machines are off, or gone."""
        self._again: set[str] = set()
        """Pods that ran when their machine went off."""
        self._findings: list[str] = []
        self._admitted = 0

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind in ("watch.events", "watch.listed"):
            if actor.startswith(KUBELET):
                self._kubelet_heard(actor.removeprefix(KUBELET), kind, data)
        elif kind == "store.txn":
            for op, key, value, _create, _version in data["changes"]:
                if key.startswith(POD_PREFIX):
                    self._pod_changed(time_ns, key, value if op == 0 else None)
                elif key.startswith(NODE_PREFIX) and op == 0:
                    self._node_changed(data["rev"], value)
        elif kind.startswith("actor."):
            if actor.startswith(KUBELET):
                node = actor.removeprefix(KUBELET)
                if kind == "actor.started":
                    self._kubelets.add(node)
                    self._off.discard(node)
                    self._kubelet_starts_anew(node)
                else:
                    self._machine_is_off(node)
        elif kind == "machine.off":
            self._machine_is_off(data["node"])
        elif kind in ("kubelet.terminated", "kubelet.finished"):
            self._end(data["uid"])
        else:
            self._kubelets.add(data["node"])
            if kind == "kubelet.running" or data["ok"]:
                self._begin(time_ns, data["uid"], data["node"])
            else:
                self._end(data["uid"])

    # --- objects -----------------------------------------------------------------------------------------------------

    def _node_changed(self, revision: int, value: bytes) -> None:
        node = parsed.node(value)
        name, allocatable = node.metadata.name, requests.resource_list(node.status.allocatable)
        views = self._views.setdefault(name, [])
        if not views or views[-1][1] != allocatable:
            if name not in self._sees:
                views.clear()
            views.append((revision, allocatable))

    def _kubelet_heard(self, node: str, kind: str, data: Mapping[str, Any]) -> None:
        resource = data["watch"].partition("#")[0]
        if resource == "pods" and kind == "watch.listed":
            self._kubelet_starts_anew(node)
        elif resource == "nodes":
            self._sees.add(node)
            seen = data["rev"] if kind == "watch.listed" else data["revs"][-1]
            views = self._views.get(node, [])
            while len(views) > 1 and views[1][0] <= seen:
                del views[0]

    def _pod_changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        if value is None:
            uid = self._uid_of_key.pop(key, "")
            if uid in self._pods:
                self._pods[uid].is_gone = True
                self._over(uid)
                if uid not in self._running:
                    self._drop(uid)
            return
        pod = parsed.pod(value)
        metadata, status = pod.metadata, pod.status
        uid = metadata.annotations.get(MIRROR, metadata.uid)
        known = self._pods.get(uid)
        if known is None:
            wanted = requests.allocated_requests(pod)
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
            self._begin(time_ns, uid, known.node)
        elif status.phase in pod_phases.TERMINAL:
            self._over(uid)

    def _over(self, uid: str) -> None:
        pod = self._pods[uid]
        pod.is_over = True
        if pod.node not in self._kubelets:
            self._end(uid)  # There is nobody who could say more.

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
        if pod is None or uid in self._running or uid in self._ended or node in self._off:
            return
        self._running[uid] = (node, pod.wanted)
        self._running_on.setdefault(node, {})[uid] = None
        self._admitted += 1
        used = self._used.setdefault(node, {})
        for resource, amount in (*pod.wanted.items(), ("pods", 1)):
            used[resource] = used.get(resource, 0) + amount
            if amount and not (pod.critical and uid in self._again):
                self._compare(time_ns, pod.name, node, resource)

    def _compare(self, time_ns: int, who: str, node: str, resource: str) -> None:
        views = self._views.get(node)
        if not views:
            return
        if requests.is_extended(resource) and any(resource not in allocatable for _, allocatable in views):
            return  # The kubelet overlooks what its node does not have (``removeMissingExtendedResources``).
        room = max(allocatable.get(resource, 0) for _, allocatable in views)
        used = self._used[node][resource]
        if used > room:
            self._findings.append(
                f"{seconds(time_ns)}: {who} on {node} makes {used} of {resource} in use, of {room} allocatable"
            )

    def _end(self, uid: str) -> None:
        if uid in self._running:
            self._forget(uid)
            self._ended.add(uid)
            if self._pods[uid].is_gone:
                self._drop(uid)

    def _drop(self, uid: str) -> None:
        """Neither object nor containers are left."""
        self._pods.pop(uid, None)
        self._ended.discard(uid)
        self._again.discard(uid)

    def _kubelet_starts_anew(self, node: str) -> None:
        """It adopts what has started and is not over."""
        for uid in self._on(node):
            if self._pods[uid].is_over or not self._pods[uid].has_started:
                self._forget(uid)

    def _machine_is_off(self, node: str) -> None:
        """Its containers have ended; its pods may run again when it is back."""
        self._off.add(node)
        for uid in self._on(node):
            self._forget(uid)
            self._again.add(uid)

    def _on(self, node: str) -> list[str]:
        return list(self._running_on.get(node, ()))

    def _forget(self, uid: str) -> None:
        node, wanted = self._running.pop(uid)
        del self._running_on[node][uid]
        used = self._used[node]
        for resource, amount in (*wanted.items(), ("pods", 1)):
            used[resource] -= amount

    def result(self, history: History) -> Result:
        if self._findings:
            return Result(self.id, False, several(self._findings))
        if not self._admitted:
            return Result(self.id, None, "no pod ran")
        return Result(self.id, True, f"{counted(self._admitted, 'pod')} ran on {counted(len(self._used), 'node')}")


class PodBoundAtMostOnce(Check):
    """Once a pod has a node, it keeps it: no second binding changes or clears ``spec.nodeName``.

    A binding that the store lost in a crash is none: whether it may lose it is for other checks.
    """

    id: ClassVar[str] = "pod-bound-at-most-once"

    def result(self, history: History) -> Result:
        findings = []
        bound = 0
        for pod in history.pods.values():
            bindings: list[Fact] = []
            wrong: list[Fact] = []
            allowed = 0 if pod.preset_node else 1
            for fact in pod.facts:
                if fact.what == "bound":
                    bindings.append(fact)
                    if len(bindings) > allowed:
                        wrong = [*bindings]
                elif fact.what == "unbound" and bindings:
                    bindings.pop()
            bound += bool(bindings)
            if wrong:
                nodes = ", then ".join(f"{fact.node or 'no node'} at {seconds(fact.time_ns)}" for fact in wrong)
                findings.append(f"{pod.key} was bound to {nodes}")
        if findings:
            return Result(self.id, False, several(findings))
        return Result(
            self.id, True if bound else None, f"{counted(bound, 'pod')} bound" if bound else "no pod was bound"
        )
