"""DefaultBinder: writes the binding through the API server."""

from __future__ import annotations

from kemu.emulated.scheduler.framework.interfaces import BindPlugin, Cycle, Skip
from kemu.emulated.scheduler.framework.statuses import Status


class DefaultBinder(BindPlugin):
    async def bind(self, cycle: Cycle, node: str) -> Status | Skip | None:
        pod, api = cycle.pod, self.handle.api
        assert api is not None, "nothing can be bound without an API"
        await api.bind(pod.namespace, pod.name, pod.uid, node)
        return None
