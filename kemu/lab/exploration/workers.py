"""Workers: processes that stay, and carry out runs.

    with Workers(jobs=4) as workers:
        for record in workers.run(source, tasks):
            print(record.number, record.verdict)

Records come in the order of the tasks, so the number of workers does not show; or, if
that is asked for, as they end. A worker
that dies is replaced, and what it had not finished is run again; a run with which a worker died twice is recorded as
``died``. A run that takes longer than its limit of real time is ended with its worker and recorded as ``slow``.
Where it is known what runs need, no more of them are at work at a time than fit into the memory that is free.

Neighbours: :mod:`processes.worker` is the process; :mod:`processes.rays` does the same on a Ray cluster.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import IO, Any, Self

from kemu.errors import KemuError
from kemu.lab.exploration.processes import forks, pipes, worker
from kemu.lab.exploration.processes.queues import (
    LIMIT_S,
    MOST_KEPT_BYTES,
    START_LIMIT_S,
    RunQueue,
    refuse,
    take_batch,
    with_kin,
)
from kemu.lab.exploration.processes.tasks import DIED, SLOW, Executor, Needs, RecordT, SourceT, Task
from kemu.runtime import memory, threads

BATCH_S = 0.25
MOST_IN_A_BATCH = 64
MOST_DEATHS = 2
"""With one run, until it is given up."""
_DYING_S = 1.0
"""Between the end of a worker's output and its own."""
RESERVE = 0.05
"""Share of the memory of the machine that runs leave free."""


class Inline:
    """In this very process: for a few runs, and for code that other processes could not import."""

    running = slots = 1

    def run(
        self,
        source: SourceT,
        tasks: Iterable[Task[SourceT, RecordT] | None],
        *,
        in_order: bool = True,
        needs: Needs[Any] | None = None,
    ) -> Iterator[RecordT]:
        for task in tasks:
            assert task is not None, "every record before it is known"
            yield task.carry_out(source)

    def close(self) -> None:
        """Nothing to do."""


def _started() -> subprocess.Popen[bytes]:
    # What is importable here must be so there; an empty entry is the current directory.
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "kemu.lab.exploration.processes.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**threads.ONE, **os.environ, "PYTHONPATH": path},
    )


class _Forked:
    """A worker that begins as a copy of this process: it need not import anything. Offers what is asked of a Popen."""

    def __init__(self) -> None:
        self.pid, self.stdin, self.stdout = worker.fork()
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        until_s = math.inf if timeout is None else time.monotonic() + timeout
        while self._code is None:
            pid, status = os.waitpid(self.pid, 0 if timeout is None else os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= until_s:
                raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
            else:
                time.sleep(0.01)
        return self._code

    def kill(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)


class _Process:
    """One worker, as its owner sees it."""

    def __init__(self, number: int, forked: bool) -> None:
        self.number = number
        self._process = _Forked() if forked else _started()
        self.pid = self._process.pid
        self.out: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        self._in: IO[bytes] = self._process.stdin  # type: ignore[assignment]
        os.set_blocking(self.out.fileno(), False)
        self._buffer = bytearray()
        self._known: set[int] = set()
        self.batch = 0
        self.left: deque[Task[Any, Any]] = deque()
        """What is left of its batch, the first of which it is carrying out."""
        self.claim_bytes = 0
        """What was set aside for the batch."""
        self.is_out_of_memory = False
        self._kills = 0
        """Of the kernel, when the batch began."""
        self.is_ready = False
        self.deadline_s = time.monotonic() + START_LIMIT_S

    def give(
        self, batch: int, key: int, source: object, tasks: list[Task[Any, Any]], limit_s: float, claim_bytes: int
    ) -> None:
        """``key``: of the source."""
        self.batch, self.left, self.claim_bytes = batch, deque(tasks), claim_bytes
        self._kills = memory.Machine().kills()
        self.deadline_s = time.monotonic() + limit_s
        message = (batch, key, None if key in self._known else source, tasks)
        self._known.add(key)
        with contextlib.suppress(BrokenPipeError):  # that it has died is seen when it is read from
            pipes.send(self._in, message)  # type: ignore[arg-type]

    def messages(self) -> tuple[list[Any], bool]:
        """What has come, and whether it has died."""
        try:
            while data := os.read(self.out.fileno(), 1 << 20):
                self._buffer += data
            died = True
        except BlockingIOError:
            died = False
        found = []
        size = pipes.LENGTH.size
        while len(self._buffer) >= size:
            end = size + pipes.LENGTH.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                break
            found.append(pickle.loads(memoryview(self._buffer)[size:end]))
            del self._buffer[:end]
        return found, died

    def died_of_memory(self) -> bool:
        """It said so, or the kernel has killed it, and says that it killed for memory meanwhile."""
        if self.is_out_of_memory:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_DYING_S) == -signal.SIGKILL and memory.Machine().kills() > self._kills
        return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._in, self.out):
            with contextlib.suppress(OSError):
                pipe.close()


class Workers:
    """So many processes."""

    def __init__(
        self, jobs: int, *, limit_s: float = LIMIT_S, machine: memory.Machine | None = None, copies: bool = False
    ) -> None:
        """``copies``: they may begin as copies of this process, with all that it has imported, where that is safe."""
        self._jobs = jobs
        self._copies = copies
        self._limit_s = limit_s
        self._machine = machine or memory.Machine()
        self._total_bytes = self._machine.total_bytes()
        self._selector = selectors.DefaultSelector()
        self._processes: list[_Process] = []
        self._batches = 0
        self._started = 0
        self._seconds = 0.0
        """Real time of one run, a moving mean; 0: not known yet."""
        self._sources: list[object] = []
        """All that were ever used; a worker is sent each of them once."""

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    @property
    def slots(self) -> int:
        return self._jobs

    @property
    def running(self) -> int:
        return sum(bool(process.left) for process in list(self._processes))

    def run(
        self,
        source: SourceT,
        tasks: Iterable[Task[SourceT, RecordT] | None],
        *,
        in_order: bool = True,
        needs: Needs[Any] | None = None,
    ) -> Iterator[RecordT]:
        key = self._key(source)
        queue = RunQueue(tasks, in_order=in_order)
        # A worker may still be at work for a caller that has stopped asking.
        first_batch = self._batches
        deaths: Counter[int] = Counter()
        while True:
            queue.fill(self._jobs * MOST_IN_A_BATCH)
            record = queue.take()
            if record is not None:
                yield record
            elif queue.is_over:
                return
            else:
                while len(self._processes) < min(self._jobs, max(1, len(queue.waiting))):
                    if not self._may_start(queue.waiting, needs):
                        break
                    self._start()
                self._hand_out(key, queue, needs)
                for process, message in self._listen():
                    if process in self._processes:
                        self._take(process, message, queue, deaths, first_batch, needs)

    def _key(self, source: object) -> int:
        for key, known in enumerate(self._sources):
            if known is source:
                return key
        self._sources.append(source)
        return len(self._sources) - 1

    def _hand_out(self, key: int, queue: RunQueue[Any], needs: Needs[Any] | None) -> None:
        waiting = queue.waiting
        for process in self._processes:
            if not process.is_ready or process.left:
                continue
            claim_bytes = 0
            if needs is not None:
                refuse(queue, needs, self._total_bytes)
                if waiting:
                    claim_bytes = needs.memory_bytes(waiting[0])
                    if not self._has_room(claim_bytes, process):
                        return  # the first one waits: others that pass it could keep it waiting
            if waiting:
                batch = self._batch(waiting, needs, claim_bytes)
                self._batches += 1
                process.give(self._batches, key, self._sources[key], batch, self._limit_s, claim_bytes)

    def _batch(
        self, waiting: deque[Task[Any, Any]], needs: Needs[Any] | None, claim_bytes: int
    ) -> list[Task[Any, Any]]:
        share = min(MOST_IN_A_BATCH, math.ceil(len(waiting) / (2 * self._jobs)))
        if needs is not None:
            batch = take_batch(waiting, needs, BATCH_S, share, claim_bytes)
            with_kin(batch, waiting, share)
            return batch
        wanted = int(BATCH_S / self._seconds) if self._seconds else 1
        return [waiting.popleft() for _ in range(min(max(1, min(share, wanted)), len(waiting)))]

    def _has_room(self, claim_bytes: int, given: _Process) -> bool:
        """Beside what the other workers have yet to take of their claims. One alone always has."""
        if not any(process.left for process in self._processes):
            return True
        return claim_bytes - memory.resident_bytes(given.pid) <= self._room_bytes()

    def _may_start(self, waiting: deque[Task[Any, Any]], needs: Needs[Any] | None) -> bool:
        """Whether one more process would find something to do, beside those that have nothing yet."""
        if needs is None or not self._processes or not waiting:
            return True
        idle = sum(not process.left for process in self._processes)
        return needs.memory_bytes(waiting[0]) * (idle + 1) <= self._room_bytes()

    def _room_bytes(self) -> float:
        if not self._total_bytes:
            return math.inf
        busy = [process for process in self._processes if process.left]
        owed = sum(max(0, process.claim_bytes - memory.resident_bytes(process.pid)) for process in busy)
        return self._machine.free_bytes() - RESERVE * self._total_bytes - owed

    def _listen(self) -> list[tuple[_Process, Any]]:
        """Messages; None for a worker that has died, and ``slow`` for one that was ended."""
        busy = [process.deadline_s for process in self._processes if process.left or not process.is_ready]
        timeout_s = max(0.0, min(busy, default=0.0) - time.monotonic())
        found: list[tuple[_Process, Any]] = []
        for key, _ in self._selector.select(timeout_s):
            process: _Process = key.data
            messages, died = process.messages()
            found += [(process, message) for message in messages]
            if died:
                found.append((process, None))
        now_s = time.monotonic()
        heard = {id(process) for process, _ in found}
        for process in self._processes:
            late = (process.left or not process.is_ready) and now_s >= process.deadline_s
            if late and id(process) not in heard:
                found.append((process, SLOW))
        return found

    def _take(
        self,
        process: _Process,
        message: Any,
        queue: RunQueue[Any],
        deaths: Counter[int],
        first_batch: int,
        needs: Needs[Any] | None,
    ) -> None:
        if message == "ready":
            process.is_ready = True
            return
        is_ours = process.batch > first_batch
        if message is not None and message != SLOW:
            _, _, record = message
            if record == worker.OUT_OF_MEMORY:
                process.is_out_of_memory = True
                return  # it ends
            task = process.left.popleft()
            process.deadline_s = time.monotonic() + self._limit_s
            if not is_ours:
                return
            if isinstance(record, str):
                record = task.refused(record)
            self._seconds = record.seconds if not self._seconds else 0.9 * self._seconds + 0.1 * record.seconds
            queue.put(record)
            if not process.left and process.claim_bytes > MOST_KEPT_BYTES:
                self._end(process)
            return
        left, was_ready = process.left, process.is_ready
        of_memory = message != SLOW and needs is not None and bool(left) and process.died_of_memory()
        self._end(process)
        if not was_ready:
            raise KemuError("a worker process does not start" if message == SLOW else "a worker process died at start")
        if is_ours and left:
            task = left[0]
            deaths[task.number] += not of_memory
            if of_memory:
                assert needs is not None
                record = needs.out_of_memory(task, process.claim_bytes, self._total_bytes)
                if record is not None:
                    left.popleft()
                    queue.put(record)
            elif message == SLOW or deaths[task.number] >= MOST_DEATHS:
                left.popleft()
                queue.put(task.given_up(SLOW if message == SLOW else DIED, self._limit_s))
            queue.put_back(left)
        self._start()

    def _start(self) -> None:
        self._started += 1
        process = _Process(self._started, self._copies and forks.is_alone())
        self._processes.append(process)
        self._selector.register(process.out, selectors.EVENT_READ, process)

    def _end(self, process: _Process) -> None:
        self._selector.unregister(process.out)
        self._processes.remove(process)
        process.kill()

    def close(self) -> None:
        for process in list(self._processes):
            self._end(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["Executor", "Inline", "Workers"]
