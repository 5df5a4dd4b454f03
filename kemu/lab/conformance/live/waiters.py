"""Waiting for what is seen to make something true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Waiters:
    """Who sees something calls :meth:`wake`."""

    def __init__(self) -> None:
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    async def until(self, true: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until something that is seen makes this true; returns whether it is."""
        if true():
            return True
        waiter = asyncio.get_running_loop().create_future()
        entry = (true, waiter)
        self._waiters.append(entry)
        try:
            await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            return true()
        finally:
            if entry in self._waiters:
                self._waiters.remove(entry)
        return True

    def wake(self) -> None:
        for true, waiter in list(self._waiters):
            if not waiter.done() and true():
                waiter.set_result(None)
