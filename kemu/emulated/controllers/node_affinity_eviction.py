"""The actor ``controller/node-affinity-eviction``: deletes pods whose node has ceased to match their node affinity.

Kubernetes has no such controller. Its documentation planned ``requiredDuringSchedulingRequiredDuringExecution``,
"identical to requiredDuringSchedulingIgnoredDuringExecution except that it will evict pods from nodes that cease to
satisfy the pods' node affinity requirements". The API of v1.36 has no such field either. So a pod states its rules in
the field that there is, and asks for them to count during execution by an annotation (:data:`ANNOTATION`).

Pods go as for a NoExecute taint (:mod:`kemu.emulated.controllers.taint_eviction`): a condition says why, then they are
deleted with their own grace period, whatever their disruption budget says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kemu.emulated.client import informers
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.pods.planned_fields import REQUIRED_DURING_EXECUTION as ANNOTATION
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import AffinityEviction

REASON = "DeletionByNodeAffinity"


class NodeAffinityEviction(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.node_affinity_eviction:NodeAffinityEviction``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._by_node: dict[str, dict[str, selectors.NodeSelector]] = {}
        """The rules of the pods that ask for this, by node and key."""
        self._going: dict[str, None] = {}
        """UIDs of pods that are being deleted."""
        self._nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(
            self.client,
            "nodes",
            handler=informers.Callbacks(
                self._look_at_node, lambda old, new: self._look_at_node(new), lambda node: None
            ),
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(self._set_pod, lambda old, new: self._set_pod(new), self._forget_pod),
            field_selector=pod_phases.NOT_TERMINAL,
        )
        self._started = False

    async def run(self) -> None:
        await self.begin(self._nodes, self._pods)
        self._started = True
        for node in list(self._nodes.store.values()):
            self._look_at_node(node)
        await asyncio.get_running_loop().create_future()

    def _set_pod(self, pod: core_v1_pb2.Pod) -> None:
        node = pod.spec.nodeName
        affinity = pod.spec.affinity.nodeAffinity
        if (
            not node
            or pod.metadata.annotations.get(ANNOTATION) != "true"
            or not affinity.HasField("requiredDuringSchedulingIgnoredDuringExecution")
        ):
            return
        rules = selectors.NodeSelector(affinity.requiredDuringSchedulingIgnoredDuringExecution)
        self._by_node.setdefault(node, {})[controllers.key_of(pod)] = rules
        self._look_at(pod)

    def _forget_pod(self, pod: core_v1_pb2.Pod) -> None:
        self._going.pop(pod.metadata.uid, None)
        pods = self._by_node.get(pod.spec.nodeName, {})
        pods.pop(controllers.key_of(pod), None)
        if not pods:
            self._by_node.pop(pod.spec.nodeName, None)

    def _look_at_node(self, node: core_v1_pb2.Node) -> None:
        for key in self._by_node.get(node.metadata.name, ()):
            pod = self._pods.store.get(key)
            if pod is not None:
                self._look_at(pod)

    def _look_at(self, pod: core_v1_pb2.Pod) -> None:
        if self._started and pod.metadata.uid not in self._going and self._has_to_go(pod):
            self._going[pod.metadata.uid] = None
            self.env.spawn(self._delete(pod), f"delete {controllers.key_of(pod)}")

    def _has_to_go(self, pod: core_v1_pb2.Pod) -> bool:
        """Whether the pod stays on a node that its rules rule out. A node that is gone is no matter of affinity."""
        node = self._nodes.store.get(pod.spec.nodeName)
        rules = self._by_node.get(pod.spec.nodeName, {}).get(controllers.key_of(pod))
        if node is None or rules is None or pod.metadata.HasField("deletionTimestamp"):
            return False
        return not rules.matches(node.metadata.labels, node.metadata.name)

    async def _delete(self, pod: core_v1_pb2.Pod) -> None:
        due_ns = self.clock.now_ns()
        if lag_s := self.lag_s():
            await self.clock.sleep_until_ns(due_ns + int(lag_s * SECOND_NS))
            latest = self._pods.store.get(controllers.key_of(pod))
            if latest is None or latest.metadata.uid != pod.metadata.uid or not self._has_to_go(latest):
                self._going.pop(pod.metadata.uid, None)
                return
            pod = latest
        why = f"{pod.spec.nodeName} no longer matches its required node affinity"
        patch = controllers.disruption_patch(pod, REASON, f"Node affinity: {why}", self.unix_ns())
        done = await self.remove(pod, patch, by_name=True)
        metadata = pod.metadata
        self.env.log(
            AffinityEviction(
                pod=f"{metadata.namespace}/{metadata.name}",
                uid=metadata.uid,
                node=pod.spec.nodeName,
                start=due_ns,
                ok=done,
                why=why,
            ),
        )
