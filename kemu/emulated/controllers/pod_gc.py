"""The actor ``controller/pod-gc``: removes pods that no other component will ever remove.

These are pods of nodes that are gone, pods that terminate without a node or on a node that is out of service, and, when
too many pods have ended, the oldest of those. Further config: ``settings`` (:class:`Settings`). It runs every 20 s, if
there is anything to do. Mirrors ``pkg/controller/podgc``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, retries
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.settings.declared import restored, setting
from kemu.emulated.settings.shapes import Whole
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import OrphanedPodDeleted

PERIOD_NS = 20 * SECOND_NS
QUARANTINE_NS = 40 * SECOND_NS
"""A node must be missing for so long."""

REASON = "DeletionByPodGC"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The field of a KubeControllerManagerConfiguration's ``podGCController``."""

    terminated_pod_threshold: int = setting(
        Whole(0), "So many ended pods may stay; {default} by default, 0: all.", 12500
    )


class PodGarbageCollector(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.pod_gc:PodGarbageCollector``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._threshold = restored(Settings, config.get("settings", {})).terminated_pod_threshold
        self._nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(
            self.client,
            "nodes",
            handler=informers.Callbacks(self._node_changed, lambda old, new: self._node_changed(new), self._node_gone),
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(self._pod_changed, lambda old, new: self._pod_changed(new), self._pod_gone),
        )
        self._by_node: dict[str, dict[str, None]] = {}
        self._ended: dict[str, None] = {}
        self._stuck: dict[str, None] = {}
        """Terminating, and bound to no node."""
        self._lost: dict[str, None] = {}
        """Nodes that pods name and that are not there."""
        self._out: dict[str, None] = {}
        """Nodes that are declared out of service."""
        self._missing_ns: dict[str, int] = {}
        """Nodes that pods name and that are not there, and since when that is known."""
        self._timer: Timer | None = None
        self._turn = asyncio.Event()
        self._started = False

    async def run(self) -> None:
        await self.begin(self._nodes, self._pods)
        self._started = True
        while True:
            self._arm()
            await self._turn.wait()
            self._turn.clear()
            await self._collect()

    # --- events ------------------------------------------------------------------------------------------------------

    def _pod_changed(self, pod: core_v1_pb2.Pod) -> None:
        key, node = controllers.key_of(pod), pod.spec.nodeName
        if node:
            self._by_node.setdefault(node, {})[key] = None
            if node not in self._nodes.store:
                self._lost[node] = None
        if pod_phases.is_terminal(pod):
            self._ended[key] = None
        if not node and pod.metadata.HasField("deletionTimestamp"):
            self._stuck[key] = None
        self._arm()

    def _pod_gone(self, pod: core_v1_pb2.Pod) -> None:
        key, node = controllers.key_of(pod), pod.spec.nodeName
        self._ended.pop(key, None)
        self._stuck.pop(key, None)
        pods = self._by_node.get(node)
        if pods is not None:
            pods.pop(key, None)
            if not pods:
                del self._by_node[node]
                self._lost.pop(node, None)

    def _node_changed(self, node: core_v1_pb2.Node) -> None:
        name = node.metadata.name
        self._lost.pop(name, None)
        if any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
            self._out[name] = None
            self._arm()
        else:
            self._out.pop(name, None)

    def _node_gone(self, node: core_v1_pb2.Node) -> None:
        name = node.metadata.name
        self._out.pop(name, None)
        if name in self._by_node:
            self._lost[name] = None
        self._arm()

    # --- when --------------------------------------------------------------------------------------------------------

    def _has_work(self) -> bool:
        return bool(self._stuck or self._missing() or self._surplus() or self._out_of_service())

    def _arm(self) -> None:
        """Look at the next turn, if there is anything to look at. Turns come every 20 s from the start."""
        if self._timer is None and self._started and not self._turn.is_set() and self._has_work():
            turn = self.clock.now_ns() // PERIOD_NS + 1
            self._timer = self.clock.call_at_ns(turn * PERIOD_NS, self._turn_is_due)

    def _turn_is_due(self) -> None:
        self._timer = None
        self._turn.set()

    # --- what --------------------------------------------------------------------------------------------------------

    def _missing(self) -> list[str]:
        return [node for node in self._by_node if node in self._lost] if self._lost else []

    def _surplus(self) -> list[Any]:
        """The ended pods beyond the threshold: evicted ones first, then the oldest."""
        too_many = len(self._ended) - self._threshold
        if self._threshold <= 0 or too_many <= 0:
            return []
        pods = [self._pods.store[key] for key in self._ended]
        pods.sort(
            key=lambda pod: (
                pod.status.reason != "Evicted",
                pod.metadata.creationTimestamp.seconds,
                pod.metadata.name,
            )
        )
        return pods[:too_many]

    def _out_of_service(self) -> list[core_v1_pb2.Pod]:
        """Pods that terminate on nodes that their operators have declared out of service and that are not ready."""
        return [
            pod
            for name in self._out
            if not meta.is_ready(self._nodes.store[name])
            for pod in (self._pods.store[key] for key in self._by_node.get(name, ()))
            if pod.metadata.HasField("deletionTimestamp")
        ]

    async def _collect(self) -> None:
        """One turn, in the order of the real one."""
        now_ns = self.clock.now_ns()
        await self._delete(self._surplus(), "too many pods have ended", "")
        await self._delete(self._out_of_service(), "its node is out of service", "PodGC: node out-of-service")
        missing = self._missing()
        gone = [node for node in missing if now_ns - self._missing_ns.get(node, now_ns) >= QUARANTINE_NS]
        self._missing_ns = {node: self._missing_ns.get(node, now_ns) for node in missing if node not in gone}
        for node in gone:
            if not await self._exists(node):
                pods = [self._pods.store[key] for key in self._by_node.get(node, ())]
                await self._delete(pods, "its node is gone", "PodGC: node no longer exists")
        stuck = [self._pods.store[key] for key in self._stuck]
        await self._delete(stuck, "it terminates and was never bound", "")

    async def _exists(self, node: str) -> bool:
        """The cache may be old: ask."""
        try:
            await retries.patiently(self.env, lambda: self.client.get("nodes", node))
        except errors.NotFound:
            return False
        return True

    async def _delete(self, pods: list[core_v1_pb2.Pod], why: str, disruption: str) -> None:
        """At once, without grace: no kubelet is there to end them. ``disruption``: message of DisruptionTarget, if
        any."""
        await self.all([self._delete_one(pod, why, disruption) for pod in pods], "collect pods")

    async def _delete_one(self, pod: core_v1_pb2.Pod, why: str, disruption: str) -> None:
        started_ns, metadata = self.clock.now_ns(), pod.metadata
        if lag_s := self.lag_s():
            await self.clock.sleep(lag_s)
        patch = None
        if not pod_phases.is_terminal(pod):
            if disruption:
                patch = controllers.disruption_patch(pod, REASON, disruption, self.unix_ns())
            patch = patch or {"status": {}}
            patch["status"]["phase"] = pod_phases.FAILED
        ok = await self.remove(pod, patch, 0)
        self.env.log(
            OrphanedPodDeleted(
                pod=controllers.key_of(pod),
                uid=metadata.uid,
                node=pod.spec.nodeName,
                start=started_ns,
                ok=ok,
                why=why,
            ),
        )
