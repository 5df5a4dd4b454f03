"""What executors carry out: tasks over one source, each of which becomes a record.

:mod:`kemu.lab.exploration.runs` has the tasks of a search; those of a sweep are cells (:mod:`kemu.lab.sweep.engine`).
Tasks, sources and records cross processes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

SLOW, DIED, LOST = "slow", "died", "lost"
"""Why a task was given up: it took too long; every process that carried it out died; every machine was lost."""


class Record(Protocol):
    """What became of a task."""

    @property
    def number(self) -> int:
        """Number of the task."""
        ...

    @property
    def seconds(self) -> float:
        """The real time that it took."""
        ...


SourceT = TypeVar("SourceT")
SourceT_contra = TypeVar("SourceT_contra", contravariant=True)
TaskT_contra = TypeVar("TaskT_contra", contravariant=True)
RecordT = TypeVar("RecordT", bound=Record)
RecordT_co = TypeVar("RecordT_co", bound=Record, covariant=True)


class Task(Protocol[SourceT_contra, RecordT_co]):
    """Something that is to be carried out."""

    @property
    def number(self) -> int:
        """Number of its own in one call of an executor."""
        ...

    @property
    def kin(self) -> Hashable:
        """Tasks that are equal in it share much of their work if one process has them together; None: with none."""
        ...

    def carry_out(self, source: SourceT_contra) -> RecordT_co:
        """In whichever process. What it raises is passed to :meth:`refused`."""
        ...

    def given_up(self, why: str, seconds: float) -> RecordT_co:
        """``why``: :data:`SLOW`, :data:`DIED` or :data:`LOST`."""
        ...

    def refused(self, why: str) -> RecordT_co:
        """It cannot be carried out: a record that says so, or KemuError, which ends everything."""
        ...


class Needs(Protocol[TaskT_contra]):
    """What tasks need of the machine that carries them out: where an executor places them, and when. It says nothing
    of how they are carried out."""

    def memory_bytes(self, task: TaskT_contra) -> int:
        """What its process will hold at most, as far as it is known now."""
        ...

    def seconds(self, task: TaskT_contra) -> float:
        """Real time that it will take; 0: not known."""
        ...

    def too_large(self, task: TaskT_contra, most_bytes: int) -> Record | None:
        """None, or the record that says so: no machine has more than ``most_bytes``."""
        ...

    def out_of_memory(self, task: TaskT_contra, claim_bytes: int, most_bytes: int) -> Any:
        """Its process died of memory, or may have done so, where ``claim_bytes`` were set aside for it.

        None: it is tried again, and needs more from now on. Else the record that it failed.
        """
        ...


class Executor(Protocol):
    """Carries out tasks."""

    @property
    def slots(self) -> int:
        """How many tasks it carries out at a time, as far as it is known."""
        ...

    @property
    def running(self) -> int:
        """How many tasks are being carried out; another thread may ask."""
        ...

    def run(
        self,
        source: SourceT,
        tasks: Iterable[Task[SourceT, RecordT] | None],
        *,
        in_order: bool = True,
        needs: Needs[Any] | None = None,
    ) -> Iterator[RecordT]:
        """In the order of the tasks, or else as they end. A caller that has seen enough may stop asking.

        None among the tasks: what comes next depends on records that are not known yet. With ``needs`` no more of
        them run at a time than have room; without, as many as there are processes.

        Raises KemuError for a task that cannot be carried out and says so.
        """
        ...

    def close(self) -> None: ...
