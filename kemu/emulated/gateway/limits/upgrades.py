"""A connection after its client has upgraded it: bytes in both directions, within bounds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

UNREAD_BYTES = 256 << 10
"""Unread bytes of the client from which on nothing more is read."""


class Upgraded:
    """Made by the connection, which feeds it."""

    def __init__(self, transport: asyncio.Transport, drained: Callable[[], Awaitable[None]]) -> None:
        """``drained``: waits until the client has read enough of what it was sent."""
        self._transport = transport
        self._drained = drained
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_held = False
        self._has_ended = False
        self._news = asyncio.Event()

    def feed(self, data: bytes) -> None:
        if data and not self._has_ended:
            self._pieces.append(data)
            self._size += len(data)
            self._news.set()
            if self._size > UNREAD_BYTES and not self._is_held:
                self._is_held = True
                self._transport.pause_reading()

    def end(self) -> None:
        """The client has gone."""
        self._has_ended = True
        self._news.set()

    @property
    def has_ended(self) -> bool:
        return self._has_ended

    async def read(self) -> bytes:
        """What has come; empty: the client has gone."""
        while not self._pieces and not self._has_ended:
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if self._is_held and not self._has_ended:
            self._is_held = False
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Waits while the client does not read. Raises ConnectionResetError where it has gone."""
        if self._has_ended or self._transport.is_closing():
            raise ConnectionResetError("the client has gone")
        if data:
            self._transport.write(data)
        await self._drained()

    def close(self) -> None:
        """What was written is still sent."""
        if not self._transport.is_closing():
            self._transport.close()
