"""The model of the published experiment, in plain Python: no cluster, one event at a time.

It gives the published counts to the last digit (tests/published), and is what the runs on kemu are compared with,
transaction by transaction.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from experiments.published.omega.configurations import Configuration, dealt
from experiments.published.omega.jobs import BATCH, SERVICE, Job
from experiments.published.omega.outcomes import Outcome, Transaction
from experiments.published.omega.placements import Cell, Placer

RETRY_S = 1.0
MOST_IDLE_ATTEMPTS = 100
"""Without a single task placed; after more a job is given up."""
MOST_ATTEMPTS = 1_000


@dataclass
class Work:
    """A job and how far it has come."""

    number: int
    """Its place in the list."""
    job: Job
    left: int
    """Tasks that are not placed."""
    attempts: int = 0
    first_start_s: float = -1.0


@dataclass
class Scheduler:
    name: str
    scheduler_class: str
    placer: Placer
    t_job_s: float
    queue: deque[Work] = field(default_factory=deque)
    busy: bool = False


def run(configuration: Configuration, jobs: Sequence[Job], length_s: float) -> Outcome:
    return _Run(configuration, jobs, length_s).run()


class _Run:
    def __init__(self, configuration: Configuration, jobs: Sequence[Job], length_s: float) -> None:
        self._configuration = configuration
        self._length_s = length_s
        self._cell = Cell(configuration.machines, configuration.room)
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        """Time, order, handler and its arguments after the time."""
        self._order = itertools.count()
        seed, machines = configuration.seed, configuration.machines
        self._schedulers = {
            name: Scheduler(name, scheduler_class, Placer(seed, machines), t_job_s)
            for name, scheduler_class, t_job_s in configuration.schedulers()
        }
        self._works = [Work(number, job, job.tasks) for number, job in enumerate(jobs)]
        self._transactions: list[Transaction] = []
        self._waits: dict[str, list[float]] = {BATCH: [], SERVICE: []}
        for work, name in zip(self._works, dealt(jobs, configuration.batch_schedulers), strict=True):
            self._at(work.job.arrival_s, self._arrive, work, self._schedulers[name])
        self._taken = 0
        self._samples: list[int] = []

    def run(self) -> Outcome:
        events, samples = self._events, self._samples
        while events:
            time_s, _, handler, arguments = heapq.heappop(events)
            while len(samples) < time_s and len(samples) <= self._length_s:
                samples.append(self._taken)
            handler(time_s, *arguments)
            if time_s > self._length_s:
                break
        cell_room = self._configuration.machines * self._configuration.room
        unfinished = {BATCH: 0, SERVICE: 0}
        for work in self._works:
            if work.left:
                unfinished[work.job.scheduler_class] += 1
        return Outcome(
            self._configuration,
            self._length_s,
            self._transactions,
            self._waits,
            sum(samples) / len(samples) / cell_room,
            unfinished,
        )

    def _at(self, time_s: float, handler: Callable[..., None], *arguments: object) -> None:
        heapq.heappush(self._events, (time_s, next(self._order), handler, arguments))

    def _arrive(self, now_s: float, work: Work, scheduler: Scheduler) -> None:
        """Also after a retry."""
        scheduler.queue.append(work)
        if not scheduler.busy:
            self._begin(now_s, scheduler)

    def _begin(self, now_s: float, scheduler: Scheduler) -> None:
        work = scheduler.queue.popleft()
        scheduler.busy = True
        if work.attempts == 0:
            work.first_start_s = now_s
        work.attempts += 1
        decision_s = scheduler.t_job_s + self._configuration.t_task_s * work.left
        room, sequences = self._cell.room.copy(), self._cell.sequences.copy()
        self._at(now_s + decision_s, self._commit, scheduler, work, decision_s, room, sequences)

    def _commit(
        self,
        now_s: float,
        scheduler: Scheduler,
        work: Work,
        decision_s: float,
        room: list[int],
        sequences: list[int],
    ) -> None:
        settings = self._configuration
        claims = scheduler.placer.place(work.left, room, sequences)
        passed, conflicts = self._cell.commit(claims, coarse=settings.coarse, all_or_nothing=settings.all_or_nothing)
        self._transactions.append(
            Transaction(
                scheduler.name,
                scheduler.scheduler_class,
                work.number,
                now_s,
                decision_s,
                tuple(claim.machine for claim in claims),
                len(passed),
                conflicts,
            )
        )
        if work.attempts == 1:
            self._waits[scheduler.scheduler_class].append(work.first_start_s - work.job.arrival_s)
        if passed:
            work.left -= len(passed)
            self._taken += len(passed)
            self._at(now_s + work.job.duration_s, self._free, [claim.machine for claim in passed])
        if work.left and not _is_given_up(work):
            self._at(now_s + RETRY_S, self._arrive, work, scheduler)
        scheduler.busy = False
        if scheduler.queue:
            self._begin(now_s, scheduler)

    def _free(self, now_s: float, machines: list[int]) -> None:
        self._taken -= len(machines)
        room = self._cell.room
        for machine in machines:
            room[machine] += 1


def _is_given_up(work: Work) -> bool:
    none_placed = work.left == work.job.tasks
    return work.attempts > MOST_ATTEMPTS or (none_placed and work.attempts > MOST_IDLE_ATTEMPTS)
