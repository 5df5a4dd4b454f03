"""A Permit plugin that lets a pod wait as long as it says, for 120413.yaml: somebody has to approve of it."""

from __future__ import annotations

from kemu.scheduler.framework import WAIT, Cycle, PermitPlugin, Status

SECONDS = "example.com/approved-after-seconds"


class Approval(PermitPlugin):
    """The annotation says how long; without it the pod does not wait."""

    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        text = cycle.message.metadata.annotations.get(SECONDS, "")
        clock = self.handle.clock
        if not text or clock is None:
            return None, 0.0
        clock.call_at_ns(clock.now_ns() + int(float(text) * 1e9), self._approve, cycle.pod.uid)
        return Status(WAIT), 60.0

    def _approve(self, uid: str) -> None:
        waiting = self.handle.waiting.get(uid)
        if waiting is not None:
            waiting.allow(self.name)
