"""How long things took in a run on a real control plane, from its run log.

    found = of_run(folder)
    found.watches        samples in ns

Only clocks of one machine are compared, and only what programs tell themselves: audit logs and schedulers' logs. When
kemu's own process saw something says how busy that process was.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kemu.errors import KemuError
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.events import ApiRequest, PodAttempted, PodBound, ProcessUsed
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader

USER, CONTROLLER = "user", "controller/"


@dataclass
class Measured:
    """Samples in ns, of pods that were created after the clock started."""

    bindings: list[int] = field(default_factory=list)
    """From when an API server got one until it had answered."""
    calls: list[int] = field(default_factory=list)
    """From a scheduler's decision until an API server has its binding."""
    watches: list[int] = field(default_factory=list)
    """From the answer to the creation of a pod until a scheduler begins an attempt: of pods for which it had nothing
    else to do."""
    cycles: list[tuple[int, int]] = field(default_factory=list)
    """Nodes that an attempt evaluated, and how long it took."""
    cpu: dict[str, int] = field(default_factory=dict)
    """By actor: what its process used of cores."""
    pods: int = 0
    """How many were created."""
    stopped: int = 0
    """When the first process was stopped."""
    reactions: list[int] = field(default_factory=list)
    """From the answer to the deletion of a pod by the user until an API server had its controller's first request."""

    @property
    def lags(self) -> list[int]:
        """Of reactions, what a controller took itself: without a usual watch and a usual call."""
        if not self.watches or not self.calls:
            return []
        way_ns = round(statistics.median(self.watches) + max(0, statistics.median(self.calls)))
        return [max(0, one - way_ns) for one in self.reactions]


def of_run(folder: Path) -> Measured:
    """Raises KemuError for a folder without a run on a real control plane."""
    file = folder / FILE_NAME
    if not file.is_file():
        raise KemuError(folders.not_a_run(folder, FILE_NAME))
    with Reader(file) as reader:
        if reader.header.get("runtime") != "real":
            raise KemuError(f"{folder} is a run of --runtime {reader.header.get('runtime')}: only real ones measure")
        return of_events(reader)


def of_events(events: Iterable[Entry]) -> Measured:
    measuring = _Measuring()
    for time_ns, actor, kind, event in events:
        if (take := measuring.takes.get(kind)) is not None:
            take(time_ns, actor, event)
    return measuring.found


class _Early(NamedTuple):
    started_ns: int
    free_ns: int
    """When the scheduler was done with the attempt before."""


class _Measuring:
    def __init__(self) -> None:
        self.found = Measured()
        self._created: dict[str, int] = {}
        """By uid: when the creation was answered."""
        self._early: dict[str, _Early] = {}
        """By uid: first attempts that were over before the creation was answered, as kemu's process had it."""
        self._free: dict[str, int] = {}
        """By scheduler: when it was last done with an attempt."""
        self._decided: dict[tuple[str, str], int] = {}
        """By scheduler and uid."""
        self._deleted: int | None = None
        """When the user's last deletion of a pod was answered, if nothing has come of it yet."""
        self.takes: dict[str, Callable[[int, str, Any], None]] = {
            ApiRequest.KIND: self._request,
            PodAttempted.KIND: self._attempt,
            PodBound.KIND: self._bind,
            ProcessUsed.KIND: self._used,
        }

    def _request(self, time_ns: int, actor: str, event: ApiRequest) -> None:
        if event.start <= 0:
            return
        if event.verb == "bind":
            self.found.bindings.append(time_ns - event.start)
        elif event.verb == "delete" and event.by == USER:
            self._deleted = time_ns
        elif event.verb == "create" and event.resource == "pods":
            self.found.pods += 1
            if event.by.startswith(CONTROLLER) and self._deleted is not None:
                self.found.reactions.append(max(0, event.start - self._deleted))
                self._deleted = None
            self._created[event.uid] = time_ns
            if (early := self._early.pop(event.uid, None)) is not None and early.free_ns < time_ns:
                self.found.watches.append(max(0, early.started_ns - time_ns))

    def _attempt(self, time_ns: int, actor: str, event: PodAttempted) -> None:
        uid, started_ns = event.uid, event.start
        self._decided[actor, uid] = time_ns
        if event.evaluated:
            self.found.cycles.append((event.evaluated, time_ns - started_ns))
        created_ns = self._created.get(uid)
        free_ns = self._free.get(actor, 0)
        if event.n == 1 and created_ns is None:
            self._early[uid] = _Early(started_ns, free_ns)
        # One that came while another pod was being scheduled waited for that, not for the watch.
        elif event.n == 1 and created_ns is not None and free_ns < created_ns:
            self.found.watches.append(max(0, started_ns - created_ns))
        self._free[actor] = time_ns

    def _bind(self, time_ns: int, actor: str, event: PodBound) -> None:
        decided_ns = self._decided.pop((actor, event.uid), None)
        # An attempt is told no earlier than its pod was seen: where that was late, it says nothing of the call.
        if decided_ns is not None and event.start >= decided_ns:
            self.found.calls.append(event.start - decided_ns)

    def _used(self, time_ns: int, actor: str, event: ProcessUsed) -> None:
        self.found.stopped = self.found.stopped or time_ns
        self.found.cpu[actor] = self.found.cpu.get(actor, 0) + event.cpu
