"""Which actor a piece of code belongs to: its tasks and callbacks run in contexts that name it as their owner.

``loops`` runs nothing of an owner that is paused or dead, ``guards`` asks who reaches out of the simulation, and in
``simulation`` each incarnation of an actor is an owner.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
from collections.abc import Callable
from typing import Any

_PRUNE_AT_LEAST = 256


class Condition(enum.IntEnum):
    """Whether an owner's code runs."""

    RUNNING = 0
    PAUSED = 1
    DEAD = 2


class Held:
    """What one pause holds back, and what is done of it when that is over."""

    __slots__ = ("cut", "done", "since_ns")

    def __init__(self) -> None:
        self.since_ns: list[int] = []
        """When each came, or was due, in the order in which that was."""
        self.done: list[int] = []
        """Their places in that order, in the order in which they were done."""
        self.cut = False
        """The next pause came before all of it was done."""

    def do(self, place: int, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        """The step that was held back at this place."""
        self.done.append(place)
        callback(*args)


_NO_PAUSE = Held()
_NOTHING: list[Any] = []


class Owner:
    """An actor, as the owner of tasks and callbacks."""

    __slots__ = ("condition", "held", "name", "prune_at", "tasks", "withheld")

    def __init__(self, name: str) -> None:
        self.name = name
        self.condition = Condition.RUNNING
        self.tasks: dict[asyncio.Task[Any], contextvars.Context] = {}
        """Tasks and the context that each runs in, oldest first; some may be done."""
        self.withheld = _NOTHING
        """What the loop will run when the owner is resumed; a list of its own from its first pause on."""
        self.held = _NO_PAUSE
        """By its last pause."""
        self.prune_at = _PRUNE_AT_LEAST
        """How many tasks it may have until it is to :meth:`prune`; who adds one sees to that."""

    def prune(self) -> None:
        """Forget tasks that are done."""
        self.tasks = {task: context for task, context in self.tasks.items() if not task.done()}
        self.prune_at = max(_PRUNE_AT_LEAST, 2 * len(self.tasks))

    def forget_task(self, task: asyncio.Task[Any]) -> None:
        """A task is done."""
        self.tasks.pop(task, None)
        if self.condition is Condition.DEAD:
            # No task is left to retrieve its exception, and asyncio must not complain of that.
            task._log_traceback = False  # type: ignore[attr-defined]

    def live_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self.tasks if not task.done()]


OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("kemu_owner", default=None)
"""None in the driver's own code."""
