"""A bidirectional gRPC stream that is opened when it is needed and opened again after it broke.

Its owner decides what travels on it (:mod:`kemu.emulated.client.sessions`: requests;
:mod:`kemu.emulated.client.watches`: watches); this module decides when to open, read, write and wait;
:mod:`kemu.emulated.client.endpoints` decides to which API server.
"""

from __future__ import annotations

import asyncio
from sys import intern
from typing import Any, Protocol

import grpc

from kemu.emulated.client import endpoints
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.rpc import pumps

BACKOFF_INITIAL_S = 0.8
BACKOFF_MAX_S = 30.0
"""As client-go's reflector waits between attempts (``NewReflector``: 800 ms, 30 s, factor 2, jitter 1)."""


class Backoff:
    """Waiting times that grow from ``initial_s`` to ``max_s``, doubling; each is stretched at random by up to once its
    length, as client-go's ``wait.Jitter`` does with factor 1."""

    __slots__ = ("_env", "_initial_s", "_max_s", "_next_s")

    def __init__(self, env: Env, initial_s: float = BACKOFF_INITIAL_S, max_s: float = BACKOFF_MAX_S) -> None:
        self._env = env
        self._initial_s = initial_s
        self._max_s = max_s
        self._next_s = initial_s

    def next_s(self) -> float:
        """How long to wait now, in seconds."""
        delay_s = self._next_s
        self._next_s = min(delay_s * 2, self._max_s)
        return delay_s * (1 + self._env.random.random())

    def reset(self) -> None:
        """After a success: begin from the smallest wait again."""
        self._next_s = self._initial_s


class Owner(Protocol):
    """What a stream asks of its owner. All synchronous."""

    def is_wanted(self) -> bool:
        """Whether there is a reason to be connected."""
        ...

    def on_open(self) -> None:
        """A stream has been opened; nothing has been written yet."""
        ...

    def take(self) -> Any:
        """The next message to write, or None.

        Called after the tick in which :meth:`Stream.wake` was, so what came up in one tick may be folded into one.
        """
        ...

    def on_message(self, message: Any) -> None: ...

    def on_lost(self, peer: str, why: str) -> None:
        """The stream to ``peer`` has ended, from either side."""
        ...


class Stream:
    """One stream at a time of one method of the API."""

    __slots__ = ("_backoff", "_backs_off", "_endpoints", "_env", "_method", "_name", "_owner", "_task", "_unheard",
                 "_waiter", "pump")  # fmt: skip

    def __init__(
        self, env: Env, servers: endpoints.Endpoints, method: str, owner: Owner, *, backs_off: bool = True
    ) -> None:
        """``backs_off``: it waits before it connects again, longer each time. Otherwise the first message to write
        connects at once: whoever writes it waits as long as is right."""
        self._env = env
        self._backs_off = backs_off
        self._endpoints = servers
        self._method = method
        self._name = intern(f"{method.lower()} {servers.current}")
        self._owner = owner
        self._backoff: Backoff | None = None
        """Once it was lost."""
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        """While it is not open and not wanted."""
        self._unheard = ""
        """The API server that has not sent anything yet."""
        self.pump: pumps.Pump | None = None
        """While it is open."""

    def wake(self) -> None:
        """There may be something to write; connects when the stream is not open. Cheap, never blocks."""
        pump = self.pump
        if pump is not None:
            pump.wake()
            return
        waiter = self._waiter
        if waiter is not None:
            if not waiter.done():
                waiter.set_result(None)
        elif self._task is None:
            self._task = self._env.spawn(self._run(), self._name)

    async def _run(self) -> None:
        env, clock, owner, servers = self._env, self._env.clock, self._owner, self._endpoints
        not_before_ns = 0
        while True:
            if not owner.is_wanted():
                waiter = self._waiter = asyncio.get_running_loop().create_future()
                await waiter
                self._waiter = None
                continue
            if clock.now_ns() < not_before_ns:
                await clock.pause((not_before_ns - clock.now_ns()) / SECOND_NS)
            peer = servers.current
            call = servers.open(self._method)
            owner.on_open()
            pump = self.pump = pumps.Pump(env.spawn, call, owner.take, intern(f"{self._name} writer"))
            self._unheard = peer
            try:
                await pumps.reading(call, owner.on_message, self._answered)
                pumps.check(call)
                why, is_broken = "the stream was closed by the other side", False
            except grpc.aio.AioRpcError as error:
                why = str(error.details() or error.code().name)
                is_broken = error.code() is grpc.StatusCode.UNAVAILABLE
            except asyncio.CancelledError:
                call.cancel()
                raise
            finally:
                pump.stop()
                self.pump = None
            owner.on_lost(peer, why)
            if not (is_broken and servers.lost(peer)) and self._backs_off:
                # In set-up too: see Clock.pause.
                not_before_ns = clock.now_ns() + int(self._next_backoff_s() * SECOND_NS)

    def _next_backoff_s(self) -> float:
        if self._backoff is None:
            self._backoff = Backoff(self._env)
        return self._backoff.next_s()

    def _answered(self) -> None:
        """The API server has sent its first message."""
        peer, self._unheard = self._unheard, ""
        self._backoff = None
        self._endpoints.answered(peer)
