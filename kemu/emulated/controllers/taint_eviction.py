"""The actor ``controller/taint-eviction``: deletes the pods that do not tolerate the NoExecute taints of their node.

Which pods, and when, is decided in :mod:`kemu.emulated.controllers.taint_timers`. Mirrors
``pkg/controller/tainteviction``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kemu.emulated.client import informers
from kemu.emulated.controllers import controllers, taint_timers
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import TaintEviction

REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"


class TaintEvictionController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.taint_eviction:TaintEvictionController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._timers = taint_timers.TaintEviction()
        self._nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(
            self.client,
            "nodes",
            handler=informers.Callbacks(self._set_node, lambda old, new: self._set_node(new), self._forget_node),
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(self._set_pod, lambda old, new: self._set_pod(new), self._forget_pod),
        )
        self._timer: Timer | None = None
        self._wakes_ns: int | None = None
        self._started = False

    async def run(self) -> None:
        await self.begin(self._nodes, self._pods)
        self._started = True
        self._arm()
        await asyncio.get_running_loop().create_future()

    # --- events ------------------------------------------------------------------------------------------------------

    def _set_pod(self, pod: core_v1_pb2.Pod) -> None:
        self._timers.set_pod(controllers.key_of(pod), pod, self.clock.now_ns())
        self._arm()

    def _forget_pod(self, pod: core_v1_pb2.Pod) -> None:
        self._timers.forget_pod(controllers.key_of(pod))

    def _set_node(self, node: core_v1_pb2.Node) -> None:
        self._timers.set_node(node.metadata.name, node.spec.taints, self.clock.now_ns())
        self._arm()

    def _forget_node(self, node: core_v1_pb2.Node) -> None:
        self._timers.forget_node(node.metadata.name)

    # --- deletions ---------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Wake up when the next pod has to go."""
        due_ns = self._timers.next_ns()
        if due_ns is None or not self._started or (self._wakes_ns is not None and self._wakes_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_ns = due_ns
        self._timer = self.clock.call_at_ns(max(due_ns, self.clock.now_ns()), self._go)

    def _go(self) -> None:
        self._timer, self._wakes_ns = None, None
        for due_ns, key in self._timers.due(self.clock.now_ns()):
            pod = self._pods.store.get(key)
            if pod is not None:
                self.env.spawn(self._delete(pod, due_ns), f"delete {key}")
        self._arm()

    async def _delete(self, pod: core_v1_pb2.Pod, due_ns: int) -> None:
        if lag_s := self.lag_s():
            await self.clock.sleep_until_ns(self.clock.now_ns() + int(lag_s * SECOND_NS))
        patch = controllers.disruption_patch(pod, REASON, MESSAGE, self.unix_ns())
        done = await self.remove(pod, patch, by_name=True)
        metadata = pod.metadata
        self.env.log(
            TaintEviction(
                pod=f"{metadata.namespace}/{metadata.name}",
                uid=metadata.uid,
                node=pod.spec.nodeName,
                start=due_ns,
                ok=done,
            ),
        )
