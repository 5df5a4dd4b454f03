"""Writes to one object take turns, in the order in which they arrived.

So the order that a client gave two writes is kept although requests are worked on concurrently, and writers of one API
server do not make each other's compare-and-swap fail. Against other API servers only the store protects.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[asyncio.Future[None]]] = {}

    def take(self, key: bytes) -> asyncio.Future[None] | None:
        """Take the turn: None when it is ours at once, else a future to await."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = deque()
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        return turn

    def leave(self, key: bytes) -> None:
        """Give the turn to the next one."""
        waiting = self._waiting[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[key]
