"""Tasks and futures from outside: who waits where, and how to drop a task without letting it run."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable, Iterable
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

_MAX_LINES = 40
_MAX_CLOSES = 100


def drop(task: asyncio.Task[Any], context: contextvars.Context) -> None:
    """Unwind the task's coroutine here and now, in its context, without a step of its loop.

    ``finally`` blocks do run, so the caller must have cut off everything by which they could reach the world. What
    they await or raise is ignored.
    """
    if task.done():
        return
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    awaited = task._fut_waiter  # type: ignore[attr-defined]
    if awaited is not None:
        # It may have failed at this instant: no task is left to retrieve the exception.
        awaited._log_traceback = False
    coroutine: Any = task.get_coro()
    for _ in range(_MAX_CLOSES):
        try:
            context.run(coroutine.close)
        except RuntimeError:
            continue  # it awaited something while it unwound: throw at that point again
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            return
        return


def retrieve(future: asyncio.Future[Any]) -> None:
    """As a callback: mark its exception as retrieved, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()


def wake(waiter: asyncio.Future[None]) -> None:
    """As a callback: end the wait, unless it has been given up."""
    if not waiter.done():
        waiter.set_result(None)


def describe(tasks: Iterable[asyncio.Task[Any]]) -> str:
    """A line for each task: its name, and the place where it waits. Equal places are counted."""
    places: dict[str, list[str]] = {}
    for task in tasks:
        if not task.done():
            places.setdefault(_place(task), []).append(task.get_name())
    lines = []
    for place, names in places.items():
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lines.append(f"  {some}: {place}")
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = [f"  … and {len(lines) - _MAX_LINES} more places"]
    return "\n".join(lines)


def describe_callback(callback: Callable[..., object], args: tuple[Any, ...]) -> str:
    """Whose step a callback is: the task's name, or the function's."""
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"{task.get_name()}: {_place(task)}"
    if args and hasattr(args[0], "callback") and args[0].callback is not None:
        return describe_callback(args[0].callback, ())
    return getattr(callback, "__qualname__", repr(type(callback)))


def _place(task: asyncio.Task[Any]) -> str:
    """The chain of awaits, outermost first, as ``function (file:line)``."""
    frames: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame: FrameType | None
        if isinstance(awaited, CoroutineType):
            frame, awaited = awaited.cr_frame, awaited.cr_await
        elif isinstance(awaited, GeneratorType):
            frame, awaited = awaited.gi_frame, awaited.gi_yieldfrom
        elif isinstance(awaited, AsyncGeneratorType):
            frame, awaited = awaited.ag_frame, awaited.ag_await
        else:
            break
        if frame is not None:
            file = "/".join(frame.f_code.co_filename.split(os.sep)[-2:])
            frames.append(f"{frame.f_code.co_qualname} ({file}:{frame.f_lineno})")
    return " → ".join(frames[:1] + (["…"] if len(frames) > 4 else []) + frames[1:][-3:])
