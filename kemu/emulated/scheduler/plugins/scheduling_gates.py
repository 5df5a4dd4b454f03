"""SchedulingGates: a pod with gates does not enter the queue."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.events import Event, Hint, of_the_pod_itself
from kemu.emulated.scheduler.framework.interfaces import PreEnqueuePlugin
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable


class SchedulingGates(PreEnqueuePlugin):
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.template.gates
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gates)}]") if gates else None

    def events(self) -> Iterable[tuple[Event, Hint | None]]:
        return [(Event.POD_GATES, of_the_pod_itself)]
