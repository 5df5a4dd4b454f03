"""Deadlines of calls to the store: one timer for all of them, since all have the same time.

A call that is cut off leaves it open whether the store carries it out: the caller gets ``OutcomeUnknown``, as when the
connection breaks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import TypeVar

import grpc

from kemu import errors
from kemu.runtime.env import SECOND_NS, Env, Timer

TIMEOUT_NS = 7 * SECOND_NS
"""After so long etcd itself gives up: ``ServerConfig.ReqTimeout``, 5 s and two election timeouts."""


R = TypeVar("R")


class _Pending:
    """A call that has no answer yet."""

    __slots__ = ("call", "deadline_ns", "expired")

    def __init__(self, call: grpc.aio.Call, deadline_ns: int) -> None:
        self.call = call
        """None when it is over."""
        self.deadline_ns = deadline_ns
        self.expired = False


class Deadlines:
    """Deadlines of the calls of one API server."""

    __slots__ = ("_clock", "_pending", "_timer")

    def __init__(self, env: Env) -> None:
        self._clock = env.clock
        self._pending: deque[_Pending] = deque()
        """Oldest first; those that are over are dropped when they come to the front."""
        self._timer: Timer | None = None

    async def answer(self, call: Awaitable[R]) -> R:
        """What a call to the store answers. Raises what it raises, or OutcomeUnknown when its time is over."""
        queue = self._pending
        while queue and queue[0].call is None:
            queue.popleft()
        pending = _Pending(call, self._clock.now_ns() + TIMEOUT_NS)
        queue.append(pending)
        if self._timer is None:
            self._timer = self._clock.call_at_ns(pending.deadline_ns, self._expire, background=True)
        try:
            return await call
        except asyncio.CancelledError:
            if not pending.expired:
                raise
            raise errors.OutcomeUnknown(errors.OutcomeUnknown.TIMED_OUT) from None
        finally:
            pending.call = None

    def _expire(self) -> None:
        """Cut off what is due, and come again for the next."""
        self._timer = None
        queue, now_ns = self._pending, self._clock.now_ns()
        while queue and (queue[0].call is None or queue[0].deadline_ns <= now_ns):
            pending = queue.popleft()
            if pending.call is not None:
                pending.expired = True
                pending.call.cancel()
        if queue:
            self._timer = self._clock.call_at_ns(queue[0].deadline_ns, self._expire, background=True)
