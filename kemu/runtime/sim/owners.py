"""Whose a piece of code is: each task and callback of an actor runs in a context that names its owner.

``loops`` runs nothing of an owner that is paused or dead, ``guards`` asks who reaches out of the simulation, ``sim``
makes an owner of each incarnation of an actor.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
from typing import Any

_PRUNE_AT_LEAST = 256


class Condition(enum.IntEnum):
    """Of an owner."""

    RUNNING = 0
    PAUSED = 1
    DEAD = 2


class Owner:
    """Of tasks and callbacks."""

    __slots__ = ("_prune_at", "condition", "name", "tasks", "withheld")

    def __init__(self, name: str) -> None:
        self.name = name
        self.condition = Condition.RUNNING
        self.tasks: dict[asyncio.Task[Any], contextvars.Context] = {}
        """With the context that each runs in, oldest first; some of them may be done."""
        self.withheld: list[Any] = []
        """What the loop shall run when the owner is resumed."""
        self._prune_at = _PRUNE_AT_LEAST

    def add_task(self, task: asyncio.Task[Any], context: contextvars.Context) -> None:
        self.tasks[task] = context
        if len(self.tasks) >= self._prune_at:
            self.tasks = {task: context for task, context in self.tasks.items() if not task.done()}
            self._prune_at = max(_PRUNE_AT_LEAST, 2 * len(self.tasks))

    def forget_task(self, task: asyncio.Task[Any]) -> None:
        """It is done."""
        self.tasks.pop(task, None)
        if self.condition is Condition.DEAD:
            # Nobody is left who could retrieve its exception: asyncio shall not complain of that.
            task._log_traceback = False  # type: ignore[attr-defined]

    def live_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self.tasks if not task.done()]


OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("kemu_owner", default=None)
"""None in the driver's own code."""
