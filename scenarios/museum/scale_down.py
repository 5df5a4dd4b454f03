"""An autoscaler that only scales down, for 125491.yaml: a node that stays empty for a while is deleted.

A node is empty while no pod is bound or nominated to it, as for the cluster autoscaler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers
from kemu.emulated.objects.pods import pod_phases
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import own

LOOK_S = 2.0
"""From one look at the cluster to the next."""


class ScaleDown:
    """``config``: ``idleSeconds`` after which an empty node goes."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.idle_ns = int(config["config"].get("idleSeconds", 10) * SECOND_NS)
        self.client = clients.Client(env, config["apiserver"])
        self.nodes = informers.Informer(self.client, "nodes")
        self.pods = informers.Informer(self.client, "pods")
        self.empty_since_ns: dict[str, int] = {}

    async def run(self) -> None:
        await self.nodes.synced()
        await self.pods.synced()
        self.env.ready()
        await self.env.clock.started()
        while True:
            await self.env.clock.sleep(LOOK_S)
            for name in sorted(self.nodes.store):
                if self.is_idle(name):
                    await self.remove(name)

    def is_idle(self, node: str) -> bool:
        """It has been empty for long enough."""
        used = any(
            node in (pod.spec.nodeName, pod.status.nominatedNodeName) and not pod_phases.is_terminal(pod)
            for pod in self.pods.store.values()
        )
        if used:
            self.empty_since_ns.pop(node, None)
            return False
        now_ns = self.env.clock.now_ns()
        return now_ns - self.empty_since_ns.setdefault(node, now_ns) >= self.idle_ns

    async def remove(self, node: str) -> None:
        self.env.log(own("scale-down.removed", {"node": node}))
        try:
            await self.client.delete("nodes", node)
        except errors.NotFound:
            return
