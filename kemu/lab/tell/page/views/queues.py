"""How many pods were in which part of a scheduler's queue, over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.tell.page.tables import Tables, micros
from kemu.lab.tell.page.views.view import Handler, Told
from kemu.runtime.runlog.events import PodAttempted, PodQueued, handlers

MOST_POINTS = 800
"""Most points of one curve."""
WAITING = "unschedulable"
"""Where a pod is at the end whose last attempt found no node."""


class Queues:
    name = "queues"

    def __init__(self, tables: Tables) -> None:
        self._changes: dict[tuple[str, str], dict[int, int]] = {}
        """By scheduler and part: by how much the number of pods in it changed at each time."""
        self._unplaced: dict[str, tuple[int, str]] = {}
        """By UID: when the last attempt found no node, and the scheduler."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return handlers.of(self)

    def _on_queued(self, place: int, time_ns: int, actor: str, event: PodQueued) -> None:
        self._count(actor, event.queue, event.start, time_ns)
        self._unplaced.pop(event.uid, None)

    def _on_attempt(self, place: int, time_ns: int, actor: str, event: PodAttempted) -> None:
        if event.result == "unschedulable":
            self._unplaced[event.uid] = time_ns, actor
        else:
            self._unplaced.pop(event.uid, None)

    def _count(self, actor: str, queue: str, begin_ns: int, end_ns: int) -> None:
        changes = self._changes.setdefault((actor, queue), {})
        changes[begin_ns] = changes.get(begin_ns, 0) + 1
        changes[end_ns] = changes.get(end_ns, 0) - 1

    def data(self, told: Told) -> list[dict[str, Any]]:
        changes = {key: dict(found) for key, found in self._changes.items()}
        for uid, (time_ns, actor) in self._unplaced.items():
            pod = told.history.pods.get(uid)
            if pod is not None and pod.bound_ns is None and pod.gone_ns is None:
                own = changes.setdefault((actor, WAITING), {})
                own[time_ns] = own.get(time_ns, 0) + 1
        return [
            {"scheduler": actor.removeprefix("scheduler/"), "queue": queue, **_curve(found, told.history.now_ns)}
            for (actor, queue), found in changes.items()
        ]


def _curve(changes: Mapping[int, int], end_ns: int) -> dict[str, list[int]]:
    """A step for each change; of many, the largest number in each of equal stretches of time."""
    times, counts = [0], [0]
    for time_ns in sorted(changes):
        if changes[time_ns]:
            times.append(micros(time_ns))
            counts.append(counts[-1] + changes[time_ns])
    times.append(micros(end_ns))
    counts.append(counts[-1])
    if len(times) <= MOST_POINTS:
        return {"time": times, "count": counts}
    stretch = max(times[-1] // MOST_POINTS, 1)
    most: dict[int, int] = {}
    for time, count in zip(times, counts, strict=True):
        most[time // stretch] = max(most.get(time // stretch, 0), count)
    return {"time": [number * stretch for number in most], "count": list(most.values())}
