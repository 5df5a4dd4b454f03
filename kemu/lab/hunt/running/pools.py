"""Trials side by side: in processes of this machine or of a Ray cluster, each with its own cluster and controllers.

    pool = Pool(project, executor, out / "trials")
    asked = pool.ask(steps, plan)
    outcome = pool.result(asked)        # meanwhile whatever else was asked goes on

Whoever waits decides what comes next, in one thread. Results are taken by name, so that what a hunt finds, and in which
order, does not depend on how many trials run at a time. A trial whose process dies or hangs is tried again.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration.processes.tasks import SLOW, Executor
from kemu.lab.hunt.perturbations import Plan, shown
from kemu.lab.hunt.projects import Project, Step
from kemu.lab.hunt.running import networks, snapshots
from kemu.lab.hunt.running.trials import Outcome
from kemu.lab.up import remotes

LIMIT_S = 600.0
"""Real time for one trial: then its process hangs."""
REFERENCES = 3
"""Runs without perturbations: what differs between them says nothing."""
_MOST_HANGS = 2
"""Of one trial, until it is given up."""
_DIED = "every process that tried it died"
_NO_ANSWER = "its cluster has not answered, as on a machine that has too much to do"


class LostTrial(KemuError):
    """No process has come to the end of it."""


class NotBegun(Exception):
    """The time was over before."""


@dataclass(frozen=True)
class TrialRecord:
    """What became of a trial."""

    number: int
    seconds: float
    outcome: Outcome | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Its folder, where that was on another machine."""
    error: str = ""
    lost: str = ""
    """Why no process has come to its end."""


@dataclass(frozen=True)
class TrialTask:
    """A task of an executor."""

    number: int
    steps: tuple[Step, ...]
    plan: Plan
    folder: Path | None
    """None: one that does not outlive it."""
    is_apart: bool = False
    """Its process has a network of its own, where it can (:mod:`networks`)."""
    kin: None = None

    def carry_out(self, source: Project) -> TrialRecord:
        try:
            return self.run(source)
        except remotes.NoAnswer:
            return TrialRecord(self.number, 0.001, lost=_NO_ANSWER)
        except KemuError as error:
            return self.refused(str(error))

    def run(self, source: Project) -> TrialRecord:
        begun = time.monotonic()
        if self.is_apart:
            networks.enter()
        if self.folder is not None:
            if self.folder.exists():
                shutil.rmtree(self.folder)  # of the process that died with it
            self.folder.mkdir(parents=True)
            outcome = snapshots.outcome(source, self.folder, self.steps, self.plan)
            return TrialRecord(self.number, time.monotonic() - begun, outcome)
        with tempfile.TemporaryDirectory(prefix="kemu-hunt-") as folder:
            outcome = snapshots.outcome(source, Path(folder), self.steps, self.plan)
            files = {
                str(file.relative_to(folder)): file.read_bytes() for file in Path(folder).rglob("*") if file.is_file()
            }
        return TrialRecord(self.number, time.monotonic() - begun, outcome, files)

    def given_up(self, why: str, seconds: float) -> TrialRecord:
        text = f"it took longer than {seconds:g} s" if why == SLOW else _DIED
        return TrialRecord(self.number, seconds, lost=text)

    def refused(self, why: str) -> TrialRecord:
        return TrialRecord(self.number, 0.001, error=why)


@dataclass(eq=False)
class Asked:
    """A trial that was asked for."""

    task: TrialTask
    then: Callable[[Outcome], Any] | None
    hangs: int = 0
    is_done: bool = False
    result: Any = None
    """The outcome, or what ``then`` made of it."""
    error: Exception | None = None


class Pool:
    """See the module."""

    def __init__(
        self,
        project: Project,
        executor: Executor,
        folder: Path,
        *,
        is_here: bool = True,
        is_apart: bool = False,
        on_lost: Callable[[str], object] = lambda text: None,
    ) -> None:
        """``folder``: trials go below it; those of the latest are kept. ``is_here``: the processes have the files of
        this machine. ``is_apart``: they have no other work, and may have a network of their own. ``on_lost``: told in
        words that a process has died or hangs."""
        self._executor = executor
        self._folder = folder
        self._is_here = is_here
        self._is_apart = is_apart
        self._on_lost = on_lost
        self._first: deque[Asked] = deque()
        self._later: deque[Asked] = deque()
        self._under_way: dict[int, Asked] = {}
        self._number = 0
        self._old: tuple[deque[Path], deque[Path]] = deque(), deque()
        """Folders of trials of which the outcome was asked for, and of others."""
        self._may_begin: Callable[[], bool] = lambda: True
        self._project = project
        self._records = self._run()

    def _run(self) -> Iterator[TrialRecord]:
        return self._executor.run(self._project, self._tasks(), in_order=False)

    @property
    def slots(self) -> int:
        """How many trials run at a time."""
        return self._executor.slots

    def ask(
        self,
        steps: Sequence[Step],
        plan: Plan,
        *,
        later: bool = False,
        then: Callable[[Outcome], Any] | None = None,
    ) -> Asked:
        """``later``: after all that is asked without it. ``then``: what is kept of the outcome."""
        asked = Asked(self._task(tuple(steps), plan), then)
        (self._later if later else self._first).append(asked)
        return asked

    def result(self, asked: Asked) -> Any:  # noqa: ANN401  # what then made of it
        """Waits for it: the outcome, or what ``then`` made of it. Raises what the trial raised, :class:`LostTrial`, and
        :class:`NotBegun`."""
        while not asked.is_done:
            if asked in self._later and not self._may_begin() and not self._under_way:
                raise NotBegun
            record = next(self._records, None)
            if record is None:  # for a moment there was nothing to do
                self._records = self._run()
            else:
                self._take(record)
        if asked.error is not None:
            raise asked.error
        return asked.result

    def trial(self, steps: Sequence[Step], plan: Plan) -> Outcome:
        return self.outcome(self.ask(steps, plan))

    def outcome(self, asked: Asked) -> Outcome:
        """Of what was asked for without ``then``."""
        found = self.result(asked)
        assert isinstance(found, Outcome)
        return found

    def trials(self, steps: Sequence[Step], plan: Plan, times: int) -> Iterator[Outcome]:
        """So many of the same, without those that are lost. Who has seen enough may stop asking."""
        waiting: deque[Asked] = deque()
        try:
            while times or waiting:
                while times and len(waiting) < self.slots:
                    waiting.append(self.ask(steps, plan))
                    times -= 1
                try:
                    outcome = self.outcome(waiting[0])
                except LostTrial:
                    continue
                finally:
                    waiting.popleft()
                yield outcome
        finally:
            for asked in waiting:
                self.cancel(asked)

    def cancel(self, asked: Asked) -> None:
        """Nobody wants it any more."""
        for queue in (self._first, self._later):
            if asked in queue:
                queue.remove(asked)
        asked.then = lambda outcome: None

    def limit(self, may_begin: Callable[[], bool]) -> None:
        """No trial that was asked for later begins when that says so."""
        self._may_begin = may_begin

    def _task(self, steps: tuple[Step, ...], plan: Plan) -> TrialTask:
        self._number += 1
        folder = self._folder.absolute() / f"{self._number}" if self._is_here else None
        return TrialTask(self._number, steps, plan, folder, self._is_apart)

    def _tasks(self) -> Iterator[TrialTask | None]:
        while True:
            asked = self._next() if len(self._under_way) < self.slots else None
            if asked is None:
                if not self._under_way:
                    return
                yield None
                continue
            self._under_way[asked.task.number] = asked
            yield asked.task

    def _next(self) -> Asked | None:
        if self._first:
            return self._first.popleft()
        return self._later.popleft() if self._later and self._may_begin() else None

    def _take(self, record: TrialRecord) -> None:
        asked = self._under_way.pop(record.number)
        plan = shown(asked.task.plan) or "without perturbations"
        if record.lost:
            asked.hangs += 1
            if asked.hangs < _MOST_HANGS and record.lost != _DIED:
                self._on_lost(f"{plan}: {record.lost}; it is tried again")
                asked.task = self._task(asked.task.steps, asked.task.plan)
                self._first.appendleft(asked)
                return
            self._on_lost(f"{plan}: {record.lost}")
            asked.error = LostTrial(f"{plan}: {record.lost}")
        elif record.error:
            asked.error = KemuError(record.error)
        else:
            assert record.outcome is not None
            outcome = self._brought(record, asked)
            asked.result = outcome if asked.then is None else asked.then(outcome)
            self._forget(outcome.folder, asked.then is None)
        asked.is_done = True

    def _brought(self, record: TrialRecord, asked: Asked) -> Outcome:
        """With its folder on this machine."""
        assert record.outcome is not None
        if not record.files or asked.then is not None:
            return record.outcome
        folder = self._folder / f"{record.number}"
        for name, data in record.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return replace(record.outcome, folder=folder)

    def _forget(self, folder: Path, is_wanted: bool) -> None:
        """Folders of trials are not kept, but those of the latest, for who wants to see them."""
        old = self._old[not is_wanted]
        old.append(folder)
        while len(old) > (2 * self.slots + REFERENCES if is_wanted else 2):
            shutil.rmtree(old.popleft(), ignore_errors=True)

    def close(self) -> None:
        """Ends what is under way."""
        self._records.close()  # type: ignore[attr-defined]
        self._executor.close()
        snapshots.close()  # where trials were made in this process
