"""Reading and writing streams without a task that waits for each message, where a call is in memory.

:func:`each` hands over what arrives; a :class:`Pump` writes what there is to write. In memory both are steps of the
event loop, at the very place where a waiting task would have its own, so that the order of events is the same; over
real gRPC a task reads or writes. Neighbours: ``ends`` has the listener of an end in memory.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import grpc

from kemu.runtime.rpc.ends import EOF, WINDOW_BYTES, End, Pause, context_of, ready_of

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[Any]"]

_MANY = 1 << 30
_OVER = (grpc.aio.BaseError, grpc.aio.AioRpcError, asyncio.InvalidStateError)
"""What writing to a call raises when that is over: its reader learns why, and cleans up."""


def each(
    call: grpc.aio.StreamStreamCall,
    handle: Callable[[Any], object],
    pause: Pause | None = None,
    first: Callable[[], object] | None = None,
) -> Awaitable[object]:
    """Hand every message of a stream to ``handle``, until its end or until ``handle`` returns something true. ``call``:
    a client's call, or a server's context. To be awaited.

    ``pause`` is asked after each message: what to wait for before the next one is read. ``first`` is called when there
    is a first message, before that is handed over. Raises what reading raises, and what ``handle`` raises.
    """
    if isinstance(call, End):
        in_memory: Any = call
        return in_memory.each(handle, pause, first)  # type: ignore[no-any-return]
    return _each(call, handle, pause, first)


def reading(
    call: grpc.aio.StreamStreamCall, handle: Callable[[Any], object], first: Callable[[], object]
) -> Awaitable[object]:
    """As :func:`each` of a client's call, without a coroutine in memory: where thousands wait. When it is over,
    :func:`check` it; whoever is cancelled meanwhile cancels the call."""
    if isinstance(call, End):
        in_memory: Any = call
        return in_memory.reading(handle, None, first)  # type: ignore[no-any-return]
    return _each(call, handle, None, first)


def check(call: grpc.aio.StreamStreamCall) -> None:
    """Raises what :func:`each` would have raised at the end."""
    if isinstance(call, End):
        in_memory: Any = call
        in_memory.check()


async def _each(
    call: grpc.aio.StreamStreamCall,
    handle: Callable[[Any], object],
    pause: Pause | None,
    first: Callable[[], object] | None,
) -> None:
    """Over real gRPC."""
    read = call.read
    while True:
        message = await read()
        if message is EOF:
            return
        if first is not None:
            first()
            first = None
        if handle(message):
            return
        # While this waits for the next one, the last is not needed: there are thousands of idle streams.
        del message
        while pause is not None and (wait := pause()) is not None:
            await wait


class Pump:
    """Writes messages to a stream as they come. What comes up in one tick of the loop may go in one message."""

    __slots__ = (
        "_call",
        "_loop",
        "_stopped",
        "_take",
        "_task",
        "_waiter",
        "after",
        "context",
        "due",
        "is_writing",
        "ready",
    )

    def __init__(
        self,
        spawn: Spawn,
        call: grpc.aio.StreamStreamCall,
        take: Callable[[], Any],
        name: str,
        after: Callable[[], object] | None = None,
    ) -> None:
        """``take`` returns the next message, or None. It is called a tick after :meth:`wake`, which announces at most
        one message, and at once for what was there before. ``after`` is called when a message has been written; the
        attribute may be changed by ``take``. Over real gRPC, ``name`` is the task's."""
        self._call = call
        self._take = take
        self.after = after
        self.due = 0
        """It will look what there is: so many messages at most."""
        self._stopped = False
        self.is_writing = False
        """A message does not fit into the window of the stream: its reader is slow."""
        self._waiter: asyncio.Future[None] | None = None
        self._task: asyncio.Task[Any] | None = None
        if isinstance(call, End) and call.can_post:  # type: ignore[attr-defined]
            self._loop = call.loop
            self.ready = ready_of(call.loop)
            self.context: contextvars.Context | None = context_of(call.loop)
            self.wake_for_all()
        else:
            self.ready = self.context = None
            self._task = spawn(self._run(), name)

    def wake(self) -> None:
        """There may be one message more to write. Cheap, never blocks. Where each pod comes along it is inlined, for
        pumps that have ``ready``, the steps of the loop in virtual time."""
        if self.context is not None:
            self.due += 1
            if self.due == 1:
                if self.ready is not None:
                    self.ready.append((self.flush, (), self.context))
                else:
                    self._loop.call_soon(self.flush, context=self.context)
        else:
            waiter = self._waiter
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def wake_for_all(self) -> None:
        """There may be any number of messages more to write."""
        self.wake()
        self.due = _MANY

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def flush(self, opened: object = None) -> None:
        call, take = self._call, self._take
        if self.is_writing:
            # The window was full, and has been opened.
            call.window_waiter = None
            if self._stopped or self._is_full():
                return
            self.is_writing = False
            self.due = _MANY
            if self.after is not None:
                self.after()
        if self._stopped:
            return
        while True:
            message = take()
            if message is None:
                self.due = 0
                return
            try:
                call.post(message)
            except _OVER:
                self._stopped = True
                return
            if call.unread > WINDOW_BYTES and self._is_full():
                self.is_writing = True
                return
            if self.after is not None:
                self.after()
            if self.due == 1:  # that was the message which was announced: no need to look whether there is another
                self.due = 0
                return

    def _is_full(self) -> bool:
        assert self.context is not None
        full: bool = self._call.call_when_open(self.flush, self.context)
        return full

    async def _run(self) -> None:
        call, take = self._call, self._take
        try:
            while True:
                message = take()
                if message is None:
                    self._waiter = asyncio.get_running_loop().create_future()
                    await self._waiter
                    continue
                self.is_writing = True
                await call.write(message)
                self.is_writing = False
                del message
                if self.after is not None:
                    self.after()
        except _OVER:
            return
