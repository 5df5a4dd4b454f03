"""Scheduling queues as Kubernetes had them, each with a bug (:mod:`kemu.emulated.bugs`) that it has fixed since."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue


class _LastInFirstOut(SchedulingQueue):
    """k8s-71486. Of equal priority, the pod that came or failed last is tried first; none backs off; whatever happens,
    a heartbeat of a node too, requeues all. (The real order was that of a heap without a second key: mostly this one.)
    """

    heeds_heartbeats: ClassVar[bool] = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sort_key = lambda pod, timestamp_ns: (-pod.priority,)

    def _restamp(self, pod: QueuedPod) -> None:
        super()._restamp(pod)
        pod.stamp = -pod.stamp

    def move(self, event: Event, old: Any, new: Any, only: Callable[[PodInfo], bool] | None = None) -> None:
        self._requeue_all(event, only)
        self._remember(event, old, new)

    def _was_worth(self, pod: QueuedPod, event: Event, old: Any, new: Any) -> int:
        return super()._was_worth(pod, Event.ACTIVATE, None, None)

    def _backoff_end_ns(self, pod: QueuedPod) -> int | None:
        return None


class _LosesEvents(SchedulingQueue):
    """k8s-120413. A pod in flight knows the last event before its flight, and asks the list what came after it. Once no
    pod in flight needs that event it is taken out of the list, and nothing comes after it any more."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._anchors: dict[str, int] = {}
        """UID → number of the last event before the flight, of pods whose flight began with one in the list."""

    def take(self) -> QueuedPod | None:
        has_anchor = bool(self._events)
        pod = super().take()
        if pod is not None and has_anchor:
            self._anchors[pod.info.uid] = self._in_flight[pod.info.uid] - 1
        return pod

    def _land(self, uid: str) -> list[tuple[Event, Any, Any]]:
        is_lost = self._anchors.pop(uid, self._forgotten) < self._forgotten
        met = super()._land(uid)
        return [] if is_lost else met


_OLD: dict[str, type[SchedulingQueue]] = {"k8s-71486": _LastInFirstOut, "k8s-120413": _LosesEvents}


def queue(kind: type[SchedulingQueue], bugs: Collection[str]) -> type[SchedulingQueue]:
    """``kind`` with these bugs."""
    bases = tuple(old for bug, old in _OLD.items() if bug in bugs)
    return type(kind.__name__, (*bases, kind), {}) if bases else kind
