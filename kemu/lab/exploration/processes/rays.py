"""Runs on a Ray cluster: the same as :mod:`workers`, with the processes of Ray on one machine or many.

A task of Ray carries out a batch of runs that takes about a second, so that the way there and back counts for little.
Ray places it where a CPU is free, and the memory that its runs need. What was lost with a machine is run again
elsewhere; what was lost with a process, run by run, until it is known with which run processes die.
"""

from __future__ import annotations

import math
import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self

from kemu.errors import InfrastructureError, KemuError
from kemu.lab.exploration.processes import forks, queues, worker
from kemu.lab.exploration.processes.queues import LIMIT_S, MOST_KEPT_BYTES, START_LIMIT_S, RunQueue, with_kin
from kemu.lab.exploration.processes.tasks import DIED, LOST, Needs, RecordT, SourceT, Task
from kemu.runtime.ray.tasks import ClusterLost, NodeLost, OutOfMemory, RayTasks, TaskLost

BATCH_S = 1.2
FIRST_BATCH = 8
"""Runs, until it is known how long one takes."""
MOST_IN_A_BATCH = 256
AHEAD = 2
"""Batches for each slot: one that runs and one that waits there."""
MOST_DEATHS = 3
"""With one run alone, until it is given up."""
MOST_LOSSES = 5
"""Machines that are lost while they carry out a run, until it is given up."""
NODES_S = 1.0
"""How long it is taken for granted which nodes there are."""
REJOIN_S = 60.0
"""How long a cluster that was lost is looked for."""
MOST_REJOINS = 3
"""In a row, without a run between them that came to its end."""
_REJOIN_EVERY_S = 1.0
_STEP_BYTES = 64 << 20
"""Claims are rounded up to it: Ray keeps a queue, and processes, for each size."""


@dataclass(slots=True)
class _Batch(Generic[RecordT]):
    tasks: list[Task[Any, RecordT]]
    claim_bytes: int
    begun_s: float
    allowed_s: float


class Room:
    """Which batches run, and which wait: as Ray places them, first come, first served where there is room."""

    def __init__(self) -> None:
        self._resources: list[dict[str, float]] = []
        self._free: list[list[float]] = []
        """CPUs and bytes of each node."""
        self._placed: dict[object, int] = {}
        """By handle: the node."""
        self._claims: dict[object, int] = {}
        """Bytes, of all batches."""
        self.waiting: dict[object, None] = {}
        self.slots = 1
        self.most_bytes = 0
        """Memory of the largest node; 0: it is not known."""

    def renew(self, resources: Sequence[Mapping[str, float]]) -> None:
        """Nodes may have come and gone."""
        found = [{name: each.get(name, 0.0) for name in ("CPU", "memory")} for each in resources]
        if found == self._resources:
            return
        self._resources = found
        self.slots = max(1, int(sum(each["CPU"] for each in found)))
        self.most_bytes = int(max((each["memory"] for each in found if each["CPU"] >= 1), default=0))
        self._free = [[each["CPU"], each["memory"]] for each in found]
        self._placed, self.waiting = {}, {}
        for handle in self._claims:
            self._place(handle)

    @property
    def running(self) -> int:
        return len(self._placed)

    def add(self, handle: object, claim_bytes: int) -> None:
        self._claims[handle] = claim_bytes
        self._place(handle)

    def remove(self, handle: object) -> None:
        claim_bytes = self._claims.pop(handle)
        self.waiting.pop(handle, None)
        node = self._placed.pop(handle, None)
        if node is None:
            return
        self._free[node][0] += 1
        self._free[node][1] += claim_bytes
        for other in list(self.waiting):
            if self._free[node][0] < 1:
                return
            if self._take(other, node):
                del self.waiting[other]

    def clear(self) -> None:
        for handle in list(self._claims):
            self.remove(handle)

    def _place(self, handle: object) -> None:
        if not any(self._take(handle, node) for node in range(len(self._free))):
            self.waiting[handle] = None

    def _take(self, handle: object, node: int) -> bool:
        free, claim_bytes = self._free[node], self._claims[handle]
        if free[0] < 1 or free[1] < claim_bytes:
            return False
        free[0] -= 1
        free[1] -= claim_bytes
        self._placed[handle] = node
        return True


@dataclass(slots=True)
class _Call(Generic[RecordT]):
    """What one call of the executor has under way."""

    queue: RunQueue[RecordT]
    packed: bytes
    """Its source."""
    needs: Needs[Any] | None
    under_way: dict[Any, _Batch[RecordT]] = field(default_factory=dict)
    alone: set[int] = field(default_factory=set)
    """Runs of batches that were lost: each goes by itself."""
    deaths: Counter[int] = field(default_factory=Counter)
    losses: Counter[int] = field(default_factory=Counter)


class RayWorkers:
    """Implements :class:`~kemu.lab.exploration.processes.tasks.Executor`."""

    def __init__(self, address: str | None = None, *, jobs: int = 2, limit_s: float = LIMIT_S) -> None:
        """``address``: see :class:`RayTasks`; ``jobs``: of a cluster that is started here."""
        self._address, self._jobs = address, jobs
        self._tasks = RayTasks(address, workers=jobs)
        self._limit_s = limit_s
        self._room = Room()
        self._renewed_s = -math.inf
        self._heard_s = 0.0
        """When a batch came to its end."""
        self._rejoins = 0
        self._seconds = 0.0
        """Real time of one run, a moving mean; 0: not known yet."""

    @property
    def slots(self) -> int:
        return self._room.slots

    @property
    def running(self) -> int:
        return self._room.running

    @property
    def broker(self) -> int:
        """Pid of the process that speaks with Ray; 0: it is not of this process's own."""
        return self._tasks.broker()

    def run(
        self,
        source: SourceT,
        tasks: Iterable[Task[SourceT, RecordT] | None],
        *,
        in_order: bool = True,
        needs: Needs[Any] | None = None,
    ) -> Iterator[RecordT]:
        """Raises InfrastructureError when the cluster is lost, and does not come back."""
        call: _Call[RecordT] = _Call(RunQueue(tasks, in_order=in_order), pickle.dumps(source), needs)
        queue = call.queue
        try:
            while True:
                size = self._batch_size()
                queue.fill(AHEAD * self._room.slots * size)
                record = queue.take()
                if record is not None:
                    yield record
                elif queue.is_over:
                    return
                else:
                    try:
                        self._renew()
                        self._hand_out(call, size)
                        if call.under_way:
                            self._listen(call)
                    except ClusterLost as error:
                        self._rejoin(call, str(error))
        finally:
            for handle in call.under_way:
                self._tasks.cancel(handle)
            self._room.clear()

    def _renew(self) -> None:
        now_s = time.monotonic()
        if now_s - self._renewed_s >= NODES_S:
            self._room.renew(self._tasks.resources())
            self._renewed_s = now_s

    def _batch_size(self) -> int:
        return FIRST_BATCH if not self._seconds else max(1, min(MOST_IN_A_BATCH, math.ceil(BATCH_S / self._seconds)))

    def _hand_out(self, call: _Call[RecordT], size: int) -> None:
        queue, needs, room = call.queue, call.needs, self._room
        while queue.waiting and len(room.waiting) < room.slots * (AHEAD - 1):
            claim_bytes = 0
            if needs is not None:
                queues.refuse(queue, needs, room.most_bytes)
                if not queue.waiting:
                    return
                claim_bytes = needs.memory_bytes(queue.waiting[0])
            share = max(1, math.ceil(len(queue.waiting) / room.slots))
            batch = _next_batch(call, min(size, share), claim_bytes, share)
            claim_bytes = min(-(-claim_bytes // _STEP_BYTES) * _STEP_BYTES, room.most_bytes)
            handle = self._tasks.submit(
                "kemu.lab.exploration.processes.rays:carry_out",
                pickle.dumps((call.packed, batch, self._limit_s)),
                memory_bytes=claim_bytes,
                alone=claim_bytes > MOST_KEPT_BYTES,
            )
            # One batch may have to wait for another, and for a process to start.
            allowed_s = START_LIMIT_S + AHEAD * len(batch) * self._limit_s
            call.under_way[handle] = _Batch(batch, claim_bytes, time.monotonic(), allowed_s)
            room.add(handle, claim_bytes)

    def _listen(self, call: _Call[RecordT]) -> None:
        def deadline_s(batch: _Batch[RecordT]) -> float:
            # Where memory is short it waits for others, however many: time counts since one of them ended.
            return max(batch.begun_s, self._heard_s) + batch.allowed_s

        first = min(deadline_s(batch) for batch in call.under_way.values())
        for handle in self._tasks.wait(min(first - time.monotonic(), NODES_S)):
            batch = call.under_way.get(handle)
            if batch is None:
                continue
            try:
                answers = pickle.loads(self._tasks.result(handle))
            except TaskLost as error:
                self._over(call, handle)
                self._lost(call, batch, error)
                continue
            self._over(call, handle)
            self._take(call, batch, answers)
        now_s = time.monotonic()
        for handle in [handle for handle, batch in call.under_way.items() if deadline_s(batch) <= now_s]:
            batch = call.under_way[handle]
            self._tasks.cancel(handle)
            self._over(call, handle)
            self._lost(call, batch, TaskLost("it took too long"))

    def _over(self, call: _Call[RecordT], handle: object) -> None:
        del call.under_way[handle]
        self._room.remove(handle)
        self._heard_s = time.monotonic()

    def _take(self, call: _Call[RecordT], batch: _Batch[RecordT], answers: list[Any]) -> None:
        self._rejoins = 0
        if answers[-1] == worker.OUT_OF_MEMORY:
            left = batch.tasks[len(answers) - 1 :]
            call.queue.put_back(left[1:])
            self._lost(call, _Batch(left[:1], batch.claim_bytes, 0.0, 0.0), OutOfMemory())
            answers.pop()
        for task, answer in zip(batch.tasks, answers, strict=False):
            record: RecordT = task.refused(answer) if isinstance(answer, str) else answer
            if 0 < record.seconds < self._limit_s:
                mean = self._seconds or record.seconds
                self._seconds = 0.95 * mean + 0.05 * record.seconds
            call.queue.put(record)

    def _lost(self, call: _Call[RecordT], batch: _Batch[RecordT], error: TaskLost) -> None:
        tasks, needs = batch.tasks, call.needs
        if isinstance(error, NodeLost):
            call.losses.update(task.number for task in tasks)
            for task in tasks:
                if call.losses[task.number] >= MOST_LOSSES:
                    call.queue.put(task.given_up(LOST, 0.0))
            tasks = [task for task in tasks if call.losses[task.number] < MOST_LOSSES]
        elif len(tasks) > 1:
            call.alone.update(task.number for task in tasks)
        else:
            (task,) = tasks
            # The kernel kills without a word to Ray: a process that died of nothing else may have died of memory.
            refusal = None if needs is None else needs.out_of_memory(task, batch.claim_bytes, self._room.most_bytes)
            if needs is None or not isinstance(error, OutOfMemory):
                call.deaths[task.number] += 1
                refusal = task.given_up(DIED, 0.0) if call.deaths[task.number] >= MOST_DEATHS else None
            if refusal is not None:
                call.queue.put(refusal)
                return
        call.queue.put_back(tasks)

    def _rejoin(self, call: _Call[RecordT], why: str) -> None:
        """What was under way runs again. Raises InfrastructureError."""
        for batch in reversed(call.under_way.values()):
            call.queue.put_back(batch.tasks)
        call.under_way.clear()
        self._room.clear()
        self._tasks.close()
        until_s = time.monotonic() + REJOIN_S
        self._rejoins += 1
        while self._rejoins <= MOST_REJOINS:
            try:
                self._tasks = RayTasks(self._address, workers=self._jobs)
            except KemuError as error:
                if time.monotonic() >= until_s:
                    raise InfrastructureError(f"the Ray cluster is lost: {why}; {error}") from error
                time.sleep(_REJOIN_EVERY_S)
            else:
                self._renewed_s = -math.inf
                return
        raise InfrastructureError(f"the Ray cluster was lost {self._rejoins} times in a row, the last time so: {why}")

    def close(self) -> None:
        self._tasks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _next_batch(call: _Call[RecordT], size: int, claim_bytes: int, share: int) -> list[Task[Any, RecordT]]:
    waiting, alone = call.queue.waiting, call.alone
    if call.needs is not None and waiting[0].number not in alone:
        batch = queues.take_batch(waiting, call.needs, BATCH_S, min(share, MOST_IN_A_BATCH), claim_bytes)
        with_kin(batch, waiting, share)
        return batch
    batch = [waiting.popleft()]
    while waiting and len(batch) < size and not alone & {batch[0].number, waiting[0].number}:
        batch.append(waiting.popleft())
    return batch


# In a process of Ray ------------------------------------------------------------------------------------------------

_sources: dict[bytes, Any] = {}
"""By what they are when packed."""
_collector: list[worker.Collector] = []


def carry_out(argument: bytes) -> bytes:
    """A batch: the record of each task, or why there is none; no more after one that was out of memory."""
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
        if answers[-1] == worker.OUT_OF_MEMORY:
            break
    forks.idle()
    return pickle.dumps(answers, pickle.HIGHEST_PROTOCOL)
