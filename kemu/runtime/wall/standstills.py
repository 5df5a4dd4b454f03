"""Paused actors: what their code would do is held back until they go on.

Actors share one event loop, so one of them cannot be stopped as a process is. Instead the loop sets aside the steps of
its tasks and its handlers of calls, its clock keeps the timers that fall due, and the network treats it as a machine
that acknowledges what arrives, but answers no ping. What the actor does after ``resume`` comes in the order in which it
would have come. The rest of the process, and so the loop, is as fast as ever while no actor is paused.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kemu.runtime.host.hosts import RESIDENT, Host, Resident
from kemu.runtime.rpc import servers

_Step = tuple[Callable[..., object], tuple[Any, ...], contextvars.Context]


class Standstills:
    """Standstills of the actors of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._loop: Any = host.loop
        self._call_soon = host.loop.call_soon
        self._held: dict[Resident, deque[_Step]] = {}
        """By paused actor, what it would do next."""

    def begin(self, resident: Resident) -> bool:
        """False: it stands still already."""
        if resident in self._held:
            return False
        if not self._held:
            self._loop.call_soon = self._call_soon_unless_held
        self._held[resident] = deque()
        resident.clock.hold()
        self._host.network.pause(resident.peer)
        # Steps that the loop has lined up already are due after this one, and those of others must not wait.
        ready: deque[asyncio.Handle] = self._loop._ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled() or not self._holds(handle._callback, handle._args, handle._context):  # type: ignore[attr-defined]
                ready.append(handle)
        return True

    def end(self, resident: Resident) -> None:
        """The actor goes on; of one that has crashed meanwhile, the tasks unwind."""
        held = self._held.pop(resident, None)
        if held is None:
            return
        if not self._held:
            del self._loop.call_soon
        for callback, args, context in held:
            self._loop.call_soon(callback, *args, context=context)
        resident.clock.release()
        self._host.network.resume(resident.peer)

    def _call_soon_unless_held(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if context is not None and self._holds(callback, args, context):
            return asyncio.Handle(callback, args, self._loop, context)
        return self._call_soon(callback, *args, context=context)

    def _holds(self, callback: Callable[..., object], args: Sequence[Any], context: contextvars.Context) -> bool:
        """Whether this is a step of a paused actor: of one of its tasks, or of its handlers. It is kept, then."""
        if not isinstance(getattr(callback, "__self__", None), asyncio.Task | servers.Server):
            return False
        resident = context.get(RESIDENT)
        if resident is None or resident not in self._held:
            return False
        self._held[resident].append((callback, tuple(args), context))
        return True
