"""Partitions between the actors of a cell and all others, and the links between actors of one cell.

As in the simulated network (``networks``) a partition holds messages back. If it is healed in time they arrive late;
otherwise keepalive breaks the connection at both ends. Calls from other cells are held by the cell that serves them
(``servers``), for both directions, so the caller's cell has nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from kemu.runtime.rpc.channels import Call
from kemu.runtime.rpc.links import End, Link
from kemu.runtime.rpc.servers import Server
from kemu.runtime.sim.networks import DEFAULT_KEEPALIVE_TIMEOUT_S, Partition

Held = list[tuple[Callable[[Any], object], Any]]


class Partitions:
    """Those in force, as one process knows them."""

    def __init__(self) -> None:
        self.active = False
        """Whether there are any; most of the time this is all that is asked."""
        self.keepalive_timeout_s = DEFAULT_KEEPALIVE_TIMEOUT_S
        """Real seconds until a connection over a cut breaks."""
        self._partitions: dict[str, Partition] = {}
        self._changed = asyncio.Event()

    def add(self, fault: str, a: Iterable[str], b: Iterable[str], one_way: bool) -> None:
        self._partitions[fault] = Partition(frozenset(a), frozenset(b), one_way)
        self._announce()

    def remove(self, fault: str) -> None:
        self._partitions.pop(fault, None)
        self._announce()

    def _announce(self) -> None:
        self.active = bool(self._partitions)
        self._changed.set()
        self._changed = asyncio.Event()

    def cut(self, source: str, target: str) -> bool:
        """Whether what ``source`` sends to ``target`` is held back."""
        return self.active and any(partition.cuts(source, target) for partition in self._partitions.values())

    def between(self, one: str, other: str) -> bool:
        return self.cut(one, other) or self.cut(other, one)

    async def passage(self, source: str, target: str) -> None:
        """Wait until messages get through."""
        while self.cut(source, target):
            await self._changed.wait()


class LocalLink(Link):
    """A connection between two actors of one cell."""

    __slots__ = ("_held_requests", "_held_responses", "_keepalive", "_on_lost", "_partitions", "client", "target")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: Partitions,
        client: str,
        target: str,
        server: Server | None,
        on_lost: Callable[[str, str], None],
    ) -> None:
        """``on_lost`` is told when the connection breaks: survivor and peer."""
        super().__init__(loop, server, client)
        self.client = client
        self.target = target
        self._partitions = partitions
        self._on_lost = on_lost
        self._held_requests: Held | None = None
        self._held_responses: Held | None = None
        self._keepalive: asyncio.TimerHandle | None = None
        self.reconsider()
        self.connected = server is not None and self._keepalive is None

    def start(self, call: Call) -> None:
        self.calls[call] = None
        if self.server is not None:
            self.send(call, self.server.accept, call)
        elif self._keepalive is None:
            self._refuse()

    def send(self, end: End, deliver: Callable[[Any], object], payload: Any) -> None:
        if self.broken:
            return
        if self._keepalive is not None:
            held = self._held_requests if isinstance(end, Call) else self._held_responses
            if held is not None:
                held.append((deliver, payload))
                return
        self.loop.call_soon(deliver, payload)

    def reconsider(self) -> None:
        """A partition has come or gone."""
        released: Held = []
        if self._partitions.cut(self.client, self.target):
            if self._held_requests is None:
                self._held_requests = []
        elif self._held_requests is not None:
            released += self._held_requests
            self._held_requests = None
        if self._partitions.cut(self.target, self.client):
            if self._held_responses is None:
                self._held_responses = []
        elif self._held_responses is not None:
            released += self._held_responses
            self._held_responses = None
        if self._held_requests is not None or self._held_responses is not None:
            if self._keepalive is None:
                timeout_s = self._partitions.keepalive_timeout_s
                self._keepalive = self.loop.call_later(timeout_s, self.lose, "keepalive watchdog timeout")
        elif self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
            self.connected = self.server is not None
            if self.server is None and self.calls:
                self._refuse()
        for deliver, payload in released:
            self.loop.call_soon(deliver, payload)

    def lose(self, what: str) -> None:
        """The connection breaks, and both ends notice."""
        if self.broken:
            return
        self.broken = True
        if self._keepalive is not None:
            self._keepalive.cancel()
        if self.calls and self.connected:
            self._on_lost(self.client, self.target)
        self.break_client(f"{self.target}: {what}")
        if self.contexts:
            self._on_lost(self.target, self.client)
        self.break_server()

    def _refuse(self) -> None:
        self.broken = True
        self.loop.call_soon(self.break_client, f"{self.target}: connection refused")
