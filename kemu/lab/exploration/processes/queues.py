"""The queue between the planner of runs and their executors: tasks go out in order, records come back in order
or as they are known, whatever happens in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic

from kemu.lab.exploration.processes.tasks import Needs, RecordT, Task

LIMIT_S = 60.0
"""Real time for one run, unless another limit is set."""
START_LIMIT_S = 120.0
"""For a process to start."""
MOST_KEPT_BYTES = 384 << 20
"""A process for which more was set aside is not used again: it would hold that memory while it does little."""


class RunQueue(Generic[RecordT]):
    """The queue of one call of an executor."""

    def __init__(self, tasks: Iterable[Task[Any, RecordT] | None], *, in_order: bool = True) -> None:
        """None among the tasks: what comes next depends on records that are not known yet; ask again."""
        self._tasks: Iterator[Task[Any, RecordT] | None] = iter(tasks)
        self._in_order = in_order
        self._order: deque[int] = deque()
        """The numbers of the tasks that were taken and not given back as records."""
        self._records: dict[int, RecordT] = {}
        self._is_exhausted = False
        self.waiting: deque[Task[Any, RecordT]] = deque()
        """To be carried out."""

    def fill(self, most: int) -> None:
        """Have so many waiting, if there are so many."""
        while len(self.waiting) < most and not self._is_exhausted:
            try:
                task = next(self._tasks)
            except StopIteration:
                self._is_exhausted = True
                return
            if task is None:
                assert self._order, "nothing is under way, and nothing can be planned"
                return
            self._order.append(task.number)
            self.waiting.append(task)

    def put(self, record: RecordT) -> None:
        self._records[record.number] = record

    def put_back(self, tasks: Iterable[Task[Any, RecordT]]) -> None:
        """They were not carried out: they come first now."""
        self.waiting.extendleft(reversed(list(tasks)))

    def take(self) -> RecordT | None:
        """The next record, if it is known; without order any that is."""
        if self._records and not self._in_order:
            number, record = next(iter(self._records.items()))
            del self._records[number]
            self._order.remove(number)
            return record
        if self._order and self._order[0] in self._records:
            return self._records.pop(self._order.popleft())
        return None

    @property
    def is_over(self) -> bool:
        return self._is_exhausted and not self._order


def with_kin(batch: list[Task[Any, RecordT]], waiting: deque[Task[Any, RecordT]], most: int) -> None:
    """Add to a batch what follows it and is akin to it."""
    kin = batch[-1].kin
    while waiting and len(batch) < most and kin is not None and waiting[0].kin == kin:
        batch.append(waiting.popleft())


def take_batch(
    waiting: deque[Task[Any, RecordT]], needs: Needs[Any], most_s: float, most: int, claim_bytes: int
) -> list[Task[Any, RecordT]]:
    """The first that waits, and more that follow it if all of them take about that time together and none needs more
    memory than was claimed for it. One of which no time is known goes alone."""
    batch = [waiting.popleft()]
    total_s = needs.seconds(batch[0])
    while waiting and len(batch) < most and total_s:
        seconds = needs.seconds(waiting[0])
        if not seconds or total_s + seconds > most_s or needs.memory_bytes(waiting[0]) > claim_bytes:
            break
        total_s += seconds
        batch.append(waiting.popleft())
    return batch


def refuse(queue: RunQueue[Any], needs: Needs[Any], most_bytes: int) -> None:
    """Those at the head of the queue that have no room on any machine. ``most_bytes``: of the largest; 0: not known."""
    while most_bytes and queue.waiting:
        record = needs.too_large(queue.waiting[0], most_bytes)
        if record is None:
            return
        queue.waiting.popleft()
        queue.put(record)
