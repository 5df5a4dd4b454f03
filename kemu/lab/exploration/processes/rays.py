"""Runs on a Ray cluster: the same as :mod:`workers`, with the processes of Ray on one machine or many.

A task of Ray carries out a batch of runs that takes about a second, so that the way there and back counts for little.
What was lost with a process or a machine is run again, run by run, until it is known with which run processes die.
"""

from __future__ import annotations

import math
import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self

from kemu.lab.exploration.processes import forks, worker
from kemu.lab.exploration.processes.queues import LIMIT_S, START_LIMIT_S, RunQueue, with_kin
from kemu.lab.exploration.processes.tasks import DIED, RecordT, SourceT, Task
from kemu.runtime.ray.tasks import RayTasks, TaskLost

BATCH_S = 1.2
FIRST_BATCH = 8
"""Runs, until it is known how long one takes."""
MOST_IN_A_BATCH = 256
AHEAD = 2
"""Batches for each slot: one that runs and one that waits there."""
MOST_DEATHS = 3
"""With one run alone, until it is given up."""


@dataclass(slots=True)
class _Batch(Generic[RecordT]):
    tasks: list[Task[Any, RecordT]]
    deadline_s: float


class RayWorkers:
    """Implements :class:`~kemu.lab.exploration.processes.tasks.Executor`."""

    def __init__(self, address: str | None = None, *, jobs: int = 2, limit_s: float = LIMIT_S) -> None:
        """``address``: see :class:`RayTasks`; ``jobs``: of a cluster that is started here."""
        self._tasks = RayTasks(address, workers=jobs)
        self._limit_s = limit_s
        self._seconds = 0.0
        """Real time of one run, a moving mean; 0: not known yet."""

    def run(
        self, source: SourceT, tasks: Iterable[Task[SourceT, RecordT] | None], *, in_order: bool = True
    ) -> Iterator[RecordT]:
        queue = RunQueue(tasks, in_order=in_order)
        packed = pickle.dumps(source)
        under_way: dict[Any, _Batch[RecordT]] = {}
        alone: set[int] = set()
        """Runs of batches that were lost: each goes by itself."""
        deaths: Counter[int] = Counter()
        try:
            while True:
                slots = self._tasks.slots()
                size = self._batch_size()
                queue.fill(AHEAD * slots * size)
                record = queue.take()
                if record is not None:
                    yield record
                elif queue.is_over:
                    return
                else:
                    while queue.waiting and len(under_way) < AHEAD * slots:
                        share = math.ceil(len(queue.waiting) / slots)
                        batch = _next_batch(queue, max(1, min(size, share)), alone)
                        if not alone:
                            with_kin(batch, queue.waiting, share)
                        under_way[self._submit(packed, batch)] = _Batch(batch, self._deadline(len(batch)))
                    self._listen(queue, under_way, alone, deaths)
        finally:
            for handle in under_way:
                self._tasks.cancel(handle)

    def _batch_size(self) -> int:
        return FIRST_BATCH if not self._seconds else max(1, min(MOST_IN_A_BATCH, math.ceil(BATCH_S / self._seconds)))

    def _deadline(self, runs: int) -> float:
        # One batch may have to wait for another, and for a process to start.
        return time.monotonic() + START_LIMIT_S + AHEAD * runs * self._limit_s

    def _submit(self, source: bytes, batch: list[Task[Any, RecordT]]) -> Any:
        return self._tasks.submit(
            "kemu.lab.exploration.processes.rays:carry_out", pickle.dumps((source, batch, self._limit_s))
        )

    def _listen(
        self, queue: RunQueue[RecordT], under_way: dict[Any, _Batch[RecordT]], alone: set[int], deaths: Counter[int]
    ) -> None:
        first = min(batch.deadline_s for batch in under_way.values())
        for handle in self._tasks.wait(list(under_way), first - time.monotonic()):
            batch = under_way.pop(handle)
            try:
                answers = pickle.loads(self._tasks.result(handle))
            except TaskLost:
                self._lost(queue, batch.tasks, alone, deaths)
                continue
            for task, answer in zip(batch.tasks, answers, strict=True):
                record: RecordT = task.refused(answer) if isinstance(answer, str) else answer
                if 0 < record.seconds < self._limit_s:
                    mean = self._seconds or record.seconds
                    self._seconds = 0.95 * mean + 0.05 * record.seconds
                queue.put(record)
        now_s = time.monotonic()
        for handle in [handle for handle, batch in under_way.items() if batch.deadline_s <= now_s]:
            batch = under_way.pop(handle)
            self._tasks.cancel(handle)
            self._lost(queue, batch.tasks, alone, deaths)

    def _lost(
        self, queue: RunQueue[RecordT], tasks: list[Task[Any, RecordT]], alone: set[int], deaths: Counter[int]
    ) -> None:
        if len(tasks) > 1:
            alone.update(task.number for task in tasks)
        else:
            (task,) = tasks
            deaths[task.number] += 1
            if deaths[task.number] >= MOST_DEATHS:
                queue.put(task.given_up(DIED, 0.0))
                return
        queue.put_back(tasks)

    def close(self) -> None:
        self._tasks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _next_batch(queue: RunQueue[RecordT], size: int, alone: set[int]) -> list[Task[Any, RecordT]]:
    batch = [queue.waiting.popleft()]
    while queue.waiting and len(batch) < size and not alone & {batch[0].number, queue.waiting[0].number}:
        batch.append(queue.waiting.popleft())
    return batch


# In a process of Ray ------------------------------------------------------------------------------------------------

_sources: dict[bytes, Any] = {}
"""By what they are when packed."""
_collector: list[worker.Collector] = []


def carry_out(argument: bytes) -> bytes:
    """A batch: the record of each task, or why there is none."""
    given, batch, limit_s = pickle.loads(argument)
    source = _sources.get(given)
    if source is None:
        source = _sources[given] = pickle.loads(given)
    if not _collector:
        _collector.append(worker.Collector())
        forks.allow()
    answers = []
    for task in batch:
        answers.append(worker.one_within(limit_s, source, task))
        _collector[0].after_a_run()
    forks.idle()
    return pickle.dumps(answers, pickle.HIGHEST_PROTOCOL)
