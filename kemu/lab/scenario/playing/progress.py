"""How far a run is. The run writes it; a display reads it, also from another thread.

Role: :mod:`runner` and :mod:`plays` write; the command line draws it and, when a person interrupts the run, closes the
log that is being written.
"""

from __future__ import annotations

from collections.abc import Mapping

from kemu.runtime.loads import Load
from kemu.runtime.runlog.events import (
    ActorStarted,
    ListAnswered,
    PodCreated,
    Transaction,
    UserPodCreated,
    WatchListed,
    WritesAcknowledged,
    kinds,
)
from kemu.runtime.runlog.frames import Writer

LOADING, STARTING, RUNNING, JUDGING = "loading", "starting", "running", "judging"


_OF_SET_UP = kinds(ActorStarted, Transaction, WritesAcknowledged, ListAnswered, WatchListed)
_STEPS = 8
"""So many of these events has a kubelet, of which a large cluster has the most: it starts, registers its node, lists
the node's pods, watches them and the node, takes a lease."""


class Progress:
    """Progress of one run, or of the variants of a matrix one after the other."""

    def __init__(self) -> None:
        self.phase = LOADING
        self.variant = 0
        """From 1 on."""
        self.variants = 0
        """0: there is no matrix."""
        self.actors = 0
        """That are to start, of those stages that have begun."""
        self.duration_ns = 0
        self.now_ns = 0
        self.bound = 0
        """Pods."""
        self.pods_meant = 0
        """By the workloads, replacements apart."""
        self.read_bytes = 0
        """How much of the log has been read, while it is judged."""
        self.log_bytes = 0
        self.writer: Writer | None = None
        """Writer of the log that is being written."""
        self.kinds: Mapping[str, int] = {}
        """How many events of each kind were logged."""
        self.loads: Mapping[str, Load] = {}
        """How busy the cells are, by name, on Ray."""

    def begin(self, duration_ns: int, pods_meant: int, writer: Writer) -> None:
        """The next run starts its actors."""
        self.phase = STARTING
        self.duration_ns, self.pods_meant, self.writer = duration_ns, pods_meant, writer
        self.actors = self.now_ns = self.bound = 0
        self.kinds = {}
        self.loads = {}

    def judge(self, log_bytes: int) -> None:
        """The log is written, and read."""
        self.writer = None
        self.phase = JUDGING
        self.read_bytes, self.log_bytes = 0, log_bytes

    @property
    def set_up(self) -> float:
        """The share of the set-up that is done, as far as events tell."""
        done = sum(self.kinds.get(kind, 0) for kind in _OF_SET_UP)
        return min(done / (_STEPS * self.actors), 1.0) if self.actors else 0.0

    @property
    def pods(self) -> int:
        """That are to be bound, as far as is known: replacements come as they come."""
        return max(
            self.pods_meant, self.kinds.get(UserPodCreated.KIND, 0) + self.kinds.get(PodCreated.KIND, 0), self.bound
        )
