"""Writes to one object take turns, in the order in which they arrived.

This keeps the order in which a client sent two writes although requests are served concurrently, and prevents writers
of one API server from failing each other's compare-and-swap. Against other API servers, the store's own check protects.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """
    turn = turns.take(key)
    if turn is not None:
        await turns.wait(key, turn)
    try:
        …
    finally:
        turns.leave(key)
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[bytes, deque[asyncio.Future[None]]] = {}
        """By key of a turn that is taken."""

    def take(self, key: bytes) -> asyncio.Future[None] | None:
        """None when the turn is ours at once, else what to :meth:`wait` for. In two steps, as the first nearly always
        suffices."""
        waiting = self.waiting.get(key)
        if waiting is None:
            self.waiting[key] = deque()
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        return turn

    async def wait(self, key: bytes, turn: asyncio.Future[None]) -> None:
        """Until the turn is ours. Cancelled, it is not."""
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave(key)  # It was given to us in the moment in which we gave up.
            raise

    def leave(self, key: bytes) -> None:
        """Give the turn to the next one."""
        waiting = self.waiting[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self.waiting[key]
