"""The actor ``controller/statefulset``: pods with names that stay, ``<set>-<ordinal>``.

A pod that has ended is deleted, and only when it is gone from the API another one gets its name: as long as nobody can
tell whether a lost node still runs it, it is not replaced. Volume claims and updates of the template are not played.
Mirrors ``pkg/controller/statefulset``.
"""

from __future__ import annotations

from typing import Any

from kemu.controllers import workloads
from kemu.objects import meta, pod_phases


class StatefulSetController(workloads.WorkloadController):
    """Factory: ``kemu.controllers.stateful_sets:StatefulSetController``."""

    resource, kind = "statefulsets", "StatefulSet"

    def place(self, pod: Any) -> str:
        """Its name."""
        return str(pod.metadata.name)

    async def sync(self, owner: Any, pods: list[Any]) -> None:
        by_name = {pod.metadata.name: pod for pod in pods}
        first = owner.spec.ordinals.start
        wanted = [f"{owner.metadata.name}-{first + n}" for n in range(owner.spec.replicas)]
        ready = sum(meta.is_ready(pod) and workloads.is_active(pod) for pod in pods)
        await self.report(owner, replicas=len(pods), readyReplicas=ready, availableReplicas=ready)
        in_turn = owner.spec.podManagementPolicy != "Parallel"
        for name in wanted:
            pod = by_name.get(name)
            if pod is None:
                await self.create_pod(owner, self.new_pod(owner, name))
            elif pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp"):
                await self.delete_pod(owner, pod)
            elif workloads.is_active(pod) and meta.is_ready(pod):
                continue
            if in_turn:
                # One after the other: the next one when this one is ready.
                return
        condemned = [pod for pod in pods if pod.metadata.name not in wanted]
        condemned.sort(key=lambda pod: _ordinal(pod.metadata.name), reverse=True)
        for pod in condemned:
            if not pod.metadata.HasField("deletionTimestamp"):
                await self.delete_pod(owner, pod)
            if in_turn:
                return


def _ordinal(name: str) -> int:
    text = name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1
