"""Checks of what must hold on every node: no overcommitment, and no pod is bound twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kemu.checks.history import NODE_PREFIX, POD_PREFIX, History
from kemu.checks.results import Check, Result, counted, seconds, several
from kemu.k8s import core_v1_pb2
from kemu.objects import pod_phases, requests


class NoNodeOvercommitted(Check):
    """The requests of the pods that a node runs never exceed what it can allocate.

    A pod counts from the moment when its kubelet admits it (or it is seen Running) until its containers are gone. A pod
    that is merely bound does not count: binding more than fits is Kubernetes' own race, and the kubelet's to settle.
    A kubelet that starts anew admits anew: what nobody had seen Running has to be admitted again.
    """

    id: ClassVar[str] = "no-node-overcommitted"
    kinds: ClassVar[tuple[str, ...]] = (
        "store.txn", "kubelet.admit", "kubelet.terminated", "kubelet.finished", "actor.started",
    )  # fmt: skip

    def __init__(self) -> None:
        self._allocatable: dict[str, dict[str, int]] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._running: dict[str, tuple[str, dict[str, int]]] = {}
        """UID → node and requests of the pods that run."""
        self._seen_running: set[str] = set()
        """Pods whose status in the store says so."""
        self._ended: set[str] = set()
        self._pods: dict[str, tuple[str, str, dict[str, int]]] = {}
        """UID → name, node, requests."""
        self._uid_of_key: dict[str, str] = {}
        self._findings: list[str] = []
        self._admitted = 0

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "store.txn":
            for op, key, value, _create, _version in data["changes"]:
                if key.startswith(POD_PREFIX):
                    self._pod_changed(time_ns, key, value if op == 0 else None)
                elif key.startswith(NODE_PREFIX) and op == 0:
                    node = core_v1_pb2.Node.FromString(value)
                    self._allocatable[node.metadata.name] = requests.resource_list(node.status.allocatable)
        elif kind == "kubelet.admit":
            if data["ok"]:
                self._begin(time_ns, data["uid"], data["node"])
        elif kind == "actor.started":
            self._kubelet_started(actor)
        else:
            self._end(data["uid"])

    def _pod_changed(self, time_ns: int, key: str, value: bytes | None) -> None:
        if value is None:
            uid = self._uid_of_key.pop(key, "")
            self._end(uid)
            self._pods.pop(uid, None)
            self._ended.discard(uid)
            self._seen_running.discard(uid)
            return
        pod = core_v1_pb2.Pod.FromString(value)
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        if known is None:
            self._uid_of_key[key] = uid
            self._pods[uid] = (key.removeprefix(POD_PREFIX), pod.spec.nodeName, requests.pod_requests(pod))
        phase = pod.status.phase
        if phase == "Running":
            self._seen_running.add(uid)
            self._begin(time_ns, uid, pod.spec.nodeName)
        elif phase in pod_phases.TERMINAL:
            self._end(uid)

    def _begin(self, time_ns: int, uid: str, node: str) -> None:
        pod = self._pods.get(uid)
        if pod is None or uid in self._running or uid in self._ended:
            return
        name, _, wanted = pod
        self._running[uid] = (node, wanted)
        self._admitted += 1
        used = self._used.setdefault(node, {})
        allocatable = self._allocatable.get(node)
        for resource, amount in (*wanted.items(), ("pods", 1)):
            used[resource] = used.get(resource, 0) + amount
            if allocatable is not None and amount and used[resource] > allocatable.get(resource, 0):
                self._findings.append(
                    f"{seconds(time_ns)}: {name} on {node} makes {used[resource]} of {resource} in use, "
                    f"of {allocatable.get(resource, 0)} allocatable"
                )

    def _end(self, uid: str) -> None:
        if uid in self._running:
            self._ended.add(uid)
            self._forget(uid)

    def _kubelet_started(self, actor: str) -> None:
        who, _, started = actor.partition("/")
        if who == "kubelet":
            for uid in [uid for uid, (node, _) in self._running.items() if node == started]:
                if uid not in self._seen_running:
                    self._forget(uid)

    def _forget(self, uid: str) -> None:
        node, wanted = self._running.pop(uid)
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
    """Once a pod has a node, it keeps it: no second binding changes or clears ``spec.nodeName``."""

    id: ClassVar[str] = "pod-bound-at-most-once"

    def result(self, history: History) -> Result:
        findings = []
        bound = 0
        for pod in history.pods.values():
            bindings = [fact for fact in pod.facts if fact.what == "bound"]
            bound += bool(bindings)
            allowed = 0 if pod.preset_node else 1
            if len(bindings) > allowed:
                nodes = ", then ".join(f"{fact.node or 'no node'} at {seconds(fact.time_ns)}" for fact in bindings)
                findings.append(f"{pod.key} was bound to {nodes}")
        if findings:
            return Result(self.id, False, several(findings))
        return Result(
            self.id, True if bound else None, f"{counted(bound, 'pod')} bound" if bound else "no pod was bound"
        )
