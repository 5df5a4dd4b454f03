"""The cores of the machine that the control plane runs on (``timing.cores``), shared in virtual time.

    cores = Cores(loop, 2)
    await cores.work(env, 0.001)        done after 1 ms, or later where more than two jobs want a core

Processor sharing: of ``k`` jobs each gets a core for itself, or, where there are more jobs than cores, the same part of
all cores, as Linux shares them among threads in the long run (slices of a few milliseconds, which it hands out in
turn, are taken for infinitely short). One job never has more than one core.
"""

from __future__ import annotations

import asyncio
import heapq

from kemu.runtime import tasks
from kemu.runtime.env import SECOND_NS
from kemu.runtime.sim.agendas import LoopTimer
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.owners import Condition, Owner


class _Job:
    """``goal_ns``: what each job will have attained when this one is done. While its owner is paused, what is left."""

    __slots__ = ("goal_ns", "is_held", "owner", "waiter")

    def __init__(self, owner: Owner, waiter: asyncio.Future[None], left_ns: int) -> None:
        self.owner = owner
        self.waiter = waiter
        self.goal_ns = left_ns
        self.is_held = True


class Cores:
    """Times are in ns. Each arrival and departure rounds once, so a job may end some ns late, in every run alike."""

    def __init__(self, loop: VirtualLoop, count: int) -> None:
        self._loop = loop
        self._count = count
        self._queue: list[tuple[int, int, _Job]] = []
        """A heap by goal; also of jobs that are held or gone, whose goal is another one now."""
        self._by_owner: dict[Owner, dict[_Job, None]] = {}
        self._running = 0
        self._attained_ns = 0
        """What a job would have got that was there from the beginning."""
        self._at_ns = 0
        self._number = 0
        self._timer: LoopTimer | None = None

    async def work(self, owner: Owner, seconds: float) -> None:
        """Take so much of a core. Cancelled, or when its owner dies, the job leaves at once."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        job = _Job(owner, waiter, round(seconds * SECOND_NS))
        jobs = self._by_owner.setdefault(owner, {})
        jobs[job] = None
        self._catch_up()
        if owner.condition is not Condition.PAUSED:
            self._begin(job)
            self._set_timer()
        try:
            await waiter
        finally:
            if job in jobs:  # it was cancelled
                self._catch_up()
                self._end(job)
                del jobs[job]
                self._set_timer()

    def hold(self, owner: Owner) -> None:
        """The owner is paused: its jobs get nothing."""
        self._catch_up()
        for job in self._by_owner.get(owner, ()):
            self._end(job)
        self._set_timer()

    def release(self, owner: Owner) -> None:
        """It goes on, and so do its jobs."""
        self._catch_up()
        for job in self._by_owner.get(owner, ()):
            self._begin(job)
        self._set_timer()

    def drop(self, owner: Owner) -> None:
        """It is gone."""
        jobs = self._by_owner.pop(owner, {})
        self._catch_up()
        for job in jobs:
            self._end(job)
        jobs.clear()
        self._set_timer()

    def _begin(self, job: _Job) -> None:
        if job.is_held:
            job.is_held = False
            job.goal_ns += self._attained_ns
            self._running += 1
            self._number += 1
            heapq.heappush(self._queue, (job.goal_ns, self._number, job))

    def _end(self, job: _Job) -> None:
        if not job.is_held:
            job.is_held = True
            job.goal_ns -= self._attained_ns
            self._running -= 1

    def _catch_up(self) -> None:
        """What jobs got since the last change."""
        now_ns = self._loop.now_ns
        passed_ns, self._at_ns = now_ns - self._at_ns, now_ns
        running, count = self._running, self._count
        self._attained_ns += passed_ns if running <= count else passed_ns * count // running

    def _set_timer(self) -> None:
        """For the job that is done next, if nothing changes until then."""
        queue = self._queue
        while queue and (queue[0][2].is_held or queue[0][2].goal_ns != queue[0][0]):
            heapq.heappop(queue)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if queue:
            left_ns = queue[0][0] - self._attained_ns
            running, count = self._running, self._count
            wait_ns = left_ns if running <= count else -(-left_ns * running // count)
            self._timer = self._loop.set_timer(self._at_ns + wait_ns, self._finish, (), None)

    def _finish(self) -> None:
        self._timer = None
        self._catch_up()
        queue = self._queue
        while queue and queue[0][0] <= self._attained_ns:
            goal_ns, _, job = heapq.heappop(queue)
            if not job.is_held and job.goal_ns == goal_ns:
                self._end(job)
                del self._by_owner[job.owner][job]
                tasks.wake(job.waiter)
        self._set_timer()
