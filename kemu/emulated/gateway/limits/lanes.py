"""Lists of many objects go a few at a time, so that short requests get their turn between them.

After API Priority and Fairness (``apiserver/pkg/util/flowcontrol``), which gives a list more seats the more objects it
is expected to return. Here a list that had many objects the last time needs one of few seats; users get them in turns.
Who has waited too long, or comes when too many wait, is refused with 429 and ``Retry-After``: the server has no more
time to give, and would only make everybody wait.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Hashable
from typing import NamedTuple

from kemu.errors import TooManyRequests

SEATS = 2
LONGEST_WAIT_S = 1.0
MOST_WAITING = 1_000
LONGEST_HOLD_S = 0.5
"""After that a seat is free again: its holder waits for a client that reads slowly."""
MANY = 250
"""A list of no more objects needs no seat."""
LONGEST_RETRY_AFTER_S = 32
MESSAGE = "too many requests, please try again later"

_REMEMBERED = 1_000
_WEIGHT = 0.3
"""The weight of the last time among those before it."""


class _Waiting(NamedTuple):
    turn: asyncio.Future[None]
    timer: asyncio.TimerHandle


class Seat:
    """Seat of one request; it may be left more than once."""

    __slots__ = ("_begun", "_lane", "_timer")

    def __init__(self, lane: Lane) -> None:
        self._lane: Lane | None = lane
        self._begun = lane.loop.time()
        self._timer = lane.loop.call_later(LONGEST_HOLD_S, self.leave)

    def leave(self) -> None:
        lane, self._lane = self._lane, None
        self._timer.cancel()
        if lane is not None:
            lane.leave(lane.loop.time() - self._begun)


class Lane:
    def __init__(
        self, seats: int = SEATS, longest_wait_s: float = LONGEST_WAIT_S, most_waiting: int = MOST_WAITING
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._free = seats
        self._seats = seats
        self._longest_wait_s = longest_wait_s
        self._most_waiting = most_waiting
        self._queues: dict[str, deque[_Waiting]] = {}
        """By user; none is empty."""
        self._turns: deque[str] = deque()
        self._count = 0
        self._sizes: dict[Hashable, int] = {}
        """Objects in the last list of each kind."""
        self._mean_s = 0.0
        """How long seats are held, about."""

    async def enter(self, user: str, key: Hashable) -> Seat | None:
        """``key``: lists with the same one have about as many objects. None: no seat is needed. Raises
        TooManyRequests."""
        if self._sizes.get(key, 0) <= MANY:
            return None
        if not self._free or self._count:
            await self._wait(user)
        else:
            self._free -= 1
        return Seat(self)

    async def _wait(self, user: str) -> None:
        if self._count >= self._most_waiting:
            raise self._refusal()
        turn: asyncio.Future[None] = self.loop.create_future()
        one = _Waiting(turn, self.loop.call_later(self._longest_wait_s, self._expire, turn))
        queue = self._queues.get(user)
        if queue is None:
            queue = self._queues[user] = deque()
            self._turns.append(user)
        queue.append(one)
        self._count += 1
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.done() or turn.cancelled():
                self._count -= 1
            elif turn.exception() is None:
                self.leave()  # the seat came with the cancellation
            turn.cancel()
            raise
        finally:
            one.timer.cancel()

    def _expire(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            turn.set_exception(self._refusal())
            self._count -= 1

    def leave(self, held_s: float = 0.0) -> None:
        """A seat goes to the next user."""
        if held_s:
            self._mean_s += _WEIGHT * (held_s - self._mean_s)
        self._free += 1
        while self._free and self._turns:
            user = self._turns.popleft()
            queue = self._queues[user]
            one = queue.popleft()
            if queue:
                self._turns.append(user)
            else:
                del self._queues[user]
            if not one.turn.done():
                self._free -= 1
                self._count -= 1
                one.turn.set_result(None)

    def note(self, key: Hashable, size: int) -> None:
        """A list had so many objects."""
        self._sizes.pop(key, None)
        if size > MANY:
            if len(self._sizes) >= _REMEMBERED:
                del self._sizes[next(iter(self._sizes))]
            self._sizes[key] = size

    def _refusal(self) -> TooManyRequests:
        wait_s = math.ceil(self._count * self._mean_s / self._seats)
        return TooManyRequests(MESSAGE, retry_after_s=max(1, min(wait_s, LONGEST_RETRY_AFTER_S)))
