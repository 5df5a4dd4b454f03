"""The actor ``controller/replicaset``: so many pods of a template. Mirrors ``pkg/controller/replicaset``."""

from __future__ import annotations

from typing import Any

from kemu.controllers import workloads

BURST = 500
"""Pods that are created or deleted at one look."""


class ReplicaSetController(workloads.WorkloadController):
    """Factory: ``kemu.controllers.replica_sets:ReplicaSetController``."""

    resource, kind = "replicasets", "ReplicaSet"

    async def sync(self, owner: Any, pods: list[Any]) -> None:
        active = [pod for pod in pods if workloads.is_active(pod)]
        missing = min(owner.spec.replicas - len(active), BURST)
        if missing > 0:
            await self.all([self.create_pod(owner, self.new_pod(owner)) for _ in range(missing)], "create pods")
        elif missing < 0:
            surplus = sorted(active, key=_worth)[: min(-missing, BURST)]
            await self.all([self.delete_pod(owner, pod) for pod in surplus], "delete pods")
        ready = sum(map(workloads.is_ready, active))
        await self.report(owner, replicas=len(active), readyReplicas=ready, availableReplicas=ready)


def _worth(pod: Any) -> tuple[bool, int, bool, int, int]:
    """Who is deleted first (``ActivePods``): not bound, not running, not ready, restarted often, the youngest."""
    phase = {"Pending": 0, "": 0, "Unknown": 1}.get(pod.status.phase, 2)
    restarts = max((status.restartCount for status in pod.status.containerStatuses), default=0)
    created = pod.metadata.creationTimestamp.seconds
    return bool(pod.spec.nodeName), phase, workloads.is_ready(pod), -restarts, -created
