"""Pods that wait for their permit: they have a reserved node and may not bind yet.

Mirrors ``pkg/scheduler/framework/runtime`` (waiting_pods_map.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.statuses import ERROR, Status, unschedulable
from kemu.runtime.env import SECOND_NS, Clock, Timer

LONGEST_WAIT_S = 15 * 60
"""The limit for every plugin's timeout (``maxTimeout`` in ``pkg/scheduler/framework/runtime``)."""


class WaitingPod:
    """One pod; every plugin that made it wait must allow it, any of them (or a time limit) may reject it."""

    def __init__(self, pod: PodInfo, node: str, limits_s: Mapping[str, float], clock: Clock) -> None:
        self.pod = pod
        self.node = node
        self._decided: asyncio.Future[Status | None] = asyncio.get_running_loop().create_future()
        self._timers: dict[str, Timer] = {}
        for plugin, wanted_s in limits_s.items():
            limit_s = min(wanted_s, LONGEST_WAIT_S)
            why = f"rejected due to timeout after waiting {limit_s:g}s at plugin {plugin}"
            when_ns = clock.now_ns() + round(limit_s * SECOND_NS)
            self._timers[plugin] = clock.call_at_ns(when_ns, self.reject, plugin, why)

    @property
    def pending_plugins(self) -> list[str]:
        """Those that have not allowed it yet; for plugins, in ``handle.waiting`` (``GetPendingPlugins``)."""
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._decide(None)

    def reject(self, plugin: str, reason: str) -> bool:
        """``plugin``: the one whose events may requeue the pod. False: it was decided before."""
        return self._decide(unschedulable(reason)._replace(plugin=plugin))

    def preempt(self, plugin: str, reason: str) -> bool:
        """Turn the pod away for a preemptor: it is retried after its backoff. False: it was decided before."""
        return self._decide(Status(ERROR, (f"waiting on permit for pod: {reason}",), plugin))

    def end(self) -> None:
        """Stop the timers: the decision is no longer awaited."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _decide(self, status: Status | None) -> bool:
        self.end()
        if self._decided.done():
            return False
        self._decided.set_result(status)
        return True

    async def decision(self) -> Status | None:
        """None: allowed."""
        return await self._decided
