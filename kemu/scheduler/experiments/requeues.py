"""``requeue: all``: the queue of the preemption design, from before the hints of plugins.

"When any pod is terminated, a node is added/removed, or when pods or nodes updated, remove all the pods from the
unschedulable pods list and add them to the scheduling queue. (Scheduler should keep its existing rate limiting.)" The
backoff stays. When a pod is added to a node, only the pods that it may help are requeued, as the document says further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.scheduler.cache.pods import PodInfo
from kemu.scheduler.experiments.switches import Policy
from kemu.scheduler.framework.events import Event
from kemu.scheduler.queue.queues import QueuedPod, SchedulingQueue

FOR_ALL_PODS = frozenset(
    event for event in Event if event.value.startswith(("AssignedPod/", "Node/")) and event != Event.ASSIGNED_POD_ADD
)


class _RequeuesAll(SchedulingQueue):
    def move(self, event: Event, old: Any, new: Any, only: Callable[[PodInfo], bool] | None = None) -> None:
        if event not in FOR_ALL_PODS:
            super().move(event, old, new, only)
            return
        held = list(self._held.values())
        self._requeue_all(event, only)
        self._move_held(held, event, old, new, only)
        self._remember(event, old, new)

    def _was_worth(self, pod: QueuedPod, event: Event, old: Any, new: Any) -> int:
        if event in FOR_ALL_PODS:
            # As for a retry of whatever pod.
            return super()._was_worth(pod, Event.ACTIVATE, None, None)
        return super()._was_worth(pod, event, old, new)


def queue(kind: type[SchedulingQueue], policy: Policy) -> type[SchedulingQueue]:
    """``kind``, or the queue that the policy asks for on top of it."""
    return kind if policy.requeue == "hints" else type("RequeuesAll", (_RequeuesAll, kind), {})
