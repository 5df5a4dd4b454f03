"""Deadlines of calls to the store: one timer for all of them, since all have the same time.

A call that is cut off leaves it open whether the store carries it out: the caller gets ``OutcomeUnknown``, as when the
connection breaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from kemu import errors
from kemu.runtime.env import SECOND_NS, Env, Timer

TIMEOUT_NS = 7 * SECOND_NS
"""After so long etcd itself gives up: ``ServerConfig.ReqTimeout``, 5 s and two election timeouts."""


R = TypeVar("R")


class Deadlines:
    """Deadlines of the calls of one API server."""

    __slots__ = ("_expired", "clock", "pending", "timer")

    def __init__(self, env: Env) -> None:
        self.clock = env.clock
        self.pending: dict[Any, int] = {}
        """Calls that have no answer yet, oldest first, and when their time is over. Who ends a call takes it out."""
        self._expired: dict[Any, None] = {}
        """Calls that were cut off, until their callers know."""
        self.timer: Timer | None = None
        """Set as long as a call may be pending."""

    async def answer(self, call: Awaitable[R]) -> R:
        """What a call to the store answers. Raises what it raises, or OutcomeUnknown when its time is over."""
        self.begin(call)
        try:
            return await call
        except asyncio.CancelledError:
            self.check(call)
            raise
        finally:
            if self.pending.pop(call, None) is None:
                self.forget(call)

    # The parts of answer, for the path that does without one coroutine more: `Storage.swap`

    def begin(self, call: Awaitable[Any]) -> None:
        """It is under way."""
        deadline_ns = self.pending[call] = self.clock.now_ns() + TIMEOUT_NS
        if self.timer is None:
            self.timer = self.clock.call_at_ns(deadline_ns, self._expire, background=True)

    def check(self, call: Awaitable[Any]) -> None:
        """It was cancelled: raises OutcomeUnknown if that was because its time is over."""
        if call in self._expired:
            raise errors.OutcomeUnknown(errors.OutcomeUnknown.TIMED_OUT) from None

    def forget(self, call: Awaitable[Any]) -> None:
        """It is over, and had been cut off."""
        self._expired.pop(call, None)

    def _expire(self) -> None:
        """Cut off what is due, and come again for the next."""
        self.timer = None
        pending, now_ns = self.pending, self.clock.now_ns()
        for call in [call for call, deadline_ns in pending.items() if deadline_ns <= now_ns]:
            del pending[call]
            self._expired[call] = None
            call.cancel()
        if pending:
            self.timer = self.clock.call_at_ns(next(iter(pending.values())), self._expire, background=True)
