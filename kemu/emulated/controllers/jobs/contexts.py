"""What the syncs of the Job controller share: its client and queue, and what it remembers between syncs.

All of it is lost in a crash; nothing in it is needed to count a pod once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.client import clients, informers, recorders, workqueues
from kemu.emulated.controllers.jobs import backoffs, tracking
from kemu.emulated.controllers.workloads import expectations, losses
from kemu.runtime.env import SECOND_NS, Clock, Env

EXPECTATIONS_NS = 5 * 60 * SECOND_NS
"""After that, what has not been observed is no longer waited for (``ExpectationsTimeout``)."""


class Expectations:
    """How many creations and deletions of pods the watch has still to show, by key of the Job
    (``ControllerExpectations`` of ``pkg/controller``): a new expectation replaces the last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[int, int, int]] = {}
        """Creations, deletions, and since when."""

    def expect(self, job: str, creations: int = 0, deletions: int = 0) -> None:
        self._counts[job] = creations, deletions, self._clock.now_ns()

    def observe_creation(self, job: str, count: int = 1) -> None:
        if job in self._counts:
            creations, deletions, since_ns = self._counts[job]
            self._counts[job] = creations - count, deletions, since_ns

    def observe_deletion(self, job: str) -> None:
        if job in self._counts:
            creations, deletions, since_ns = self._counts[job]
            self._counts[job] = creations, deletions - 1, since_ns

    def are_met(self, job: str) -> bool:
        creations, deletions, since_ns = self._counts.get(job, (0, 0, 0))
        return (creations <= 0 and deletions <= 0) or self._clock.now_ns() - since_ns > EXPECTATIONS_NS

    def forget(self, job: str) -> None:
        self._counts.pop(job, None)


class Context:
    """One for each Job controller."""

    def __init__(self, env: Env, client: clients.Client, config: Mapping[str, Any]) -> None:
        self.env = env
        self.client = client
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, 1.0, 60.0, name="job")
        """Queue of keys of Jobs (``DefaultJobApiBackOff``, ``MaxJobApiBackOff``)."""
        self.expectations = variants.choose(Expectations, variants.active(config))(env.clock)
        self.removals = tracking.ExpectedRemovals()
        self.backoffs: dict[str, backoffs.Record] = {}
        """By key of the Job."""
        self.finished: dict[str, None] = {}
        """UIDs of Jobs that have ended, although the watch does not show it yet (``finishedJobExpectations``)."""
        self.read: dict[str, informers.Informer[Any]] = {}
        """What syncs read, by resource."""
        self.writes = expectations.Writes(self.read)
        self.losses = losses.Losses()
        self.recorder = recorders.Recorder(
            env, client, "job-controller", env.name.rpartition("/")[2], str(config.get("events", recorders.NOTABLE))
        )

    def unix_ns(self) -> int:
        return self.env.clock.unix_ns()

    def wake_with_delay(self, job: str, delay_ns: int) -> None:
        """``enqueueSyncJobWithDelay``."""
        self.queue.add_after_ns(job, max(delay_ns, SECOND_NS))
