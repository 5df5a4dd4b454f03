"""Pods that wait for their permit: reserved a node, not yet allowed to bind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kemu.runtime.env import SECOND_NS, Clock, Timer
from kemu.scheduler.pods import PodInfo
from kemu.scheduler.statuses import Status, unschedulable


class WaitingPod:
    """One pod; every plugin that made it wait must allow it, any of them (or a time limit) may reject it."""

    def __init__(self, pod: PodInfo, node: str, limits_s: Mapping[str, float], clock: Clock) -> None:
        self.pod = pod
        self.node = node
        self._decided: asyncio.Future[Status | None] = asyncio.get_running_loop().create_future()
        self._timers: dict[str, Timer] = {
            plugin: clock.call_at_ns(
                clock.now_ns() + round(limit_s * SECOND_NS),
                self.reject,
                plugin,
                f"timed out after waiting {limit_s:g}s at {plugin}",
            )
            for plugin, limit_s in limits_s.items()
        }

    @property
    def pending_plugins(self) -> list[str]:
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._decide(None)

    def reject(self, plugin: str, reason: str) -> None:
        self._decide(
            unschedulable(f'pod "{self.pod.name}" rejected while waiting on permit: {reason}')._replace(plugin=plugin)
        )

    def _decide(self, status: Status | None) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if not self._decided.done():
            self._decided.set_result(status)

    async def decision(self) -> Status | None:
        """None: allowed."""
        return await self._decided
