"""The actor ``controller/daemonset``: one pod on every node that can take it.

A daemon's pod is made for one node, by a node affinity to its name, and goes through the scheduler like any other. It
tolerates what goes wrong with nodes (:data:`TOLERATIONS`). Where it has failed (evicted, say) it is deleted, and made
anew after a back-off that grows. Updates of the template are not rolled out. Mirrors ``pkg/controller/daemon``.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from kemu.client import informers
from kemu.controllers import controllers, workloads
from kemu.k8s import core_v1_pb2
from kemu.objects import meta, pod_phases, selectors
from kemu.runtime.env import SECOND_NS, Env

TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Added to every daemon's pod (``AddOrUpdateDaemonPodTolerations``)."""
HOST_NETWORK_TOLERATION = ("node.kubernetes.io/network-unavailable", "NoSchedule")

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1, 15 * 60
"""Before a failed pod of a node is replaced; doubles. Forgotten after twice the longest."""


class DaemonSetController(workloads.WorkloadController):
    """Factory: ``kemu.controllers.daemon_sets:DaemonSetController``."""

    resource, kind = "daemonsets", "DaemonSet"

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.nodes = informers.Informer(self.client, "nodes", handler=_Nodes(self))
        self._backoff: dict[tuple[str, str], tuple[int, int]] = {}
        """By UID of the owner and node: the length of the last back-off in seconds, and when it began in ns."""

    async def run(self) -> None:
        await self.nodes.synced()
        await super().run()

    def place(self, pod: Any) -> str:
        """Its node."""
        return _target(pod)

    async def sync(self, owner: Any, pods: list[Any]) -> None:
        by_node: dict[str, list[Any]] = {}
        for pod in pods:
            if not pod_phases.is_terminal(pod) or not pod.metadata.HasField("deletionTimestamp"):
                by_node.setdefault(_target(pod), []).append(pod)
        work: list[Coroutine[Any, Any, Any]] = []
        desired = current = 0
        for name, node in self.nodes.store.items():
            pod = self._pod_for(owner, name)
            should_run, may_stay = _fits(pod, node)
            there = by_node.pop(name, [])
            desired += should_run
            current += should_run and bool(there)
            if should_run and not there:
                work.append(self.create_pod(owner, pod))
            else:
                gone = self._surplus(owner, name, there) if may_stay else there
                work += [self.delete_pod(owner, one) for one in gone if not one.metadata.HasField("deletionTimestamp")]
        # What is left belongs to nodes that are gone; the garbage collector of pods sees to those that were bound.
        for lost in by_node.values():
            work += [
                self.delete_pod(owner, pod)
                for pod in lost
                if not pod.spec.nodeName and not pod.metadata.HasField("deletionTimestamp")
            ]
        await self.all(work, "daemon pods")
        ready = sum(workloads.is_active(pod) and meta.is_ready(pod) for pod in pods)
        await self.report(
            owner,
            desiredNumberScheduled=desired,
            currentNumberScheduled=current,
            updatedNumberScheduled=current,
            numberReady=ready,
            numberAvailable=ready,
            numberUnavailable=max(0, desired - ready),
        )

    def _surplus(self, owner: Any, node: str, pods: list[Any]) -> list[Any]:
        """Of the pods on a node: those that ended (failed ones when their back-off is over), and all but the oldest."""
        gone, running = [], []
        for pod in pods:
            if pod.metadata.HasField("deletionTimestamp"):
                continue
            if pod.status.phase == pod_phases.FAILED:
                if not self._must_wait(owner, node):
                    gone.append(pod)
            elif pod.status.phase == pod_phases.SUCCEEDED:
                gone.append(pod)
            else:
                running.append(pod)
        running.sort(key=lambda pod: pod.metadata.creationTimestamp.seconds)
        return gone + running[1:]

    def _must_wait(self, owner: Any, node: str) -> bool:
        """Whether a failed pod may not be replaced yet; then the owner is looked at again in time."""
        key, now_ns = (owner.metadata.uid, node), self.clock.now_ns()
        length_s, since_ns = self._backoff.get(key, (0, 0))
        ends_ns = since_ns + length_s * SECOND_NS
        if now_ns < ends_ns:
            # The whole of it from now on, as in Kubernetes, whatever of it is over.
            self.queue.add_after(controllers.key_of(owner), length_s)
            return True
        if length_s and now_ns - since_ns > 2 * LONGEST_BACKOFF_S * SECOND_NS:
            length_s = 0
        self._backoff[key] = (min(2 * length_s, LONGEST_BACKOFF_S) or FIRST_BACKOFF_S, now_ns)
        return False

    def _pod_for(self, owner: Any, node: str) -> core_v1_pb2.Pod:
        pod = self.new_pod(owner)
        tolerations = TOLERATIONS + ((HOST_NETWORK_TOLERATION,) if pod.spec.hostNetwork else ())
        for key, effect in tolerations:
            wanted = core_v1_pb2.Toleration(key=key, operator="Exists", effect=effect)
            if wanted not in list(pod.spec.tolerations):
                pod.spec.tolerations.append(wanted)
        required = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
        terms = required.nodeSelectorTerms
        if not terms:
            terms.add()
        for term in terms:
            del term.matchFields[:]
            term.matchFields.add(key="metadata.name", operator="In", values=[node])
        return pod


def _target(pod: Any) -> str:
    """The node that a daemon's pod is for."""
    if pod.spec.nodeName:
        return str(pod.spec.nodeName)
    terms = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
    for term in terms:
        for requirement in term.matchFields:
            if requirement.key == "metadata.name" and requirement.operator == "In" and len(requirement.values) == 1:
                return str(requirement.values[0])
    return ""


def _fits(pod: core_v1_pb2.Pod, node: Any) -> tuple[bool, bool]:
    """Whether a pod should be there, and whether one that is may stay (``NodeShouldRunDaemonPod``)."""
    wanted = pod.spec.nodeName
    if wanted and wanted != node.metadata.name:
        return False, False
    if not selectors.RequiredNodeAffinity(pod.spec).matches(node.metadata.labels, node.metadata.name):
        return False, False
    taints, tolerations = node.spec.taints, pod.spec.tolerations
    if selectors.untolerated_taint(taints, tolerations, ("NoSchedule", "NoExecute")) is None:
        return True, True
    return False, selectors.untolerated_taint(taints, tolerations, ("NoExecute",)) is None


class _Nodes:
    """News of nodes: all daemons look again."""

    def __init__(self, controller: DaemonSetController) -> None:
        self._controller = controller

    def on_add(self, obj: Any) -> None:
        for owner in self._controller.owners.store.values():
            self._controller.enqueue(owner)

    def on_update(self, old: Any, new: Any) -> None:
        if old.metadata.labels != new.metadata.labels or list(old.spec.taints) != list(new.spec.taints):
            self.on_add(new)

    def on_delete(self, old: Any) -> None:
        self.on_add(old)
