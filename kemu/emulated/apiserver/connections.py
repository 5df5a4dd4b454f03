"""The connection from an API server to its store, where it is down: calls wait for it, as in etcd's client.

kube-apiserver calls etcd with ``WaitForReady``: a call that is made while the connection is down is not sent, and waits
until there is one or its request's time is over. Connections are tried by gRPC's backoff, and all calls go at once, in
their order, when one has been made. A call under way when the connection breaks ends: a read is sent again
(``retry_interceptor.go``), of a write nobody knows whether it was carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

import grpc

from kemu.emulated.apiserver import errors
from kemu.errors import Compacted, OutcomeUnknown
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import SECOND_NS, Channel, Env

REQUEST: ContextVar[tuple[str | None, int]] = ContextVar("request")
"""Verb and start of the request that is served in this context. None is: the API server asks for itself."""

WRITE_NS = 34 * SECOND_NS
"""How long a request that writes may take (``requestTimeoutUpperBound``)."""
READ_NS = 60 * SECOND_NS
"""How long any other may take (``--request-timeout``)."""
_READS = ("get", "list")

BASE_S, FACTOR, JITTER, LONGEST_S = 1.0, 1.6, 0.2, 120.0
"""gRPC's backoff between two attempts to connect."""
CONNECT_S = 20.0
"""How long an attempt may take (``minConnectTimeout``)."""
FIRST_S = 0.25
"""Between two attempts of an API server that has just been started: kube-apiserver would exit, and be started again."""
AGAIN_S = 0.025
"""Between two tries of a read, as in etcd's client."""
_NOT_SENT = ("connection refused", "failed to connect")
"""Words of errors after which a call has certainly not left."""


class Connection:
    """The connection of one API server, for all its calls."""

    __slots__ = ("_channel", "_env", "_jitter", "_waiting", "is_down", "is_new")

    def __init__(self, env: Env, channel: Channel) -> None:
        self._env = env
        self._channel = channel
        self._jitter: Callable[[], float] | None = None
        self._waiting: dict[asyncio.Future[None], None] = {}
        """Calls, oldest first."""
        self.is_down = False
        """Then calls wait: :meth:`ready` comes first."""
        self.is_new = True
        """There has been none yet, as far as is known."""

    async def ready(self) -> None:
        """Wait until the connection is there. Raises ServerTimeout when the time of the request is over."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        deadline_ns, timer = _deadline_ns(), None
        if deadline_ns is not None:
            timer = self._env.clock.call_at_ns(deadline_ns, _give_up, waiter, _is_read(), background=True)
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)
            if timer is not None:
                timer.cancel()

    async def read_failed(self, error: grpc.aio.AioRpcError | OutcomeUnknown, revision: int = 0) -> None:
        """Returns when it is to be sent again, and raises what the client is told if it is not: Compacted where the
        store does not have ``revision``."""
        if isinstance(error, grpc.aio.AioRpcError):
            if error.code() is grpc.StatusCode.OUT_OF_RANGE:
                raise Compacted(revision) from None
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise errors.of_store(error) from None
            self.lost(error)
        deadline_ns = _deadline_ns()
        if deadline_ns is not None and self._env.clock.now_ns() >= deadline_ns:
            raise errors.timed_out(is_read=_is_read())
        await self._env.clock.pause(AGAIN_S)

    def write_failed(self, error: grpc.aio.AioRpcError) -> None:
        """The same of a write: it is sent again only if it has not left."""
        if error.code() is grpc.StatusCode.OUT_OF_RANGE:
            raise Compacted(0) from None
        self.lost(error)
        if error.code() is not grpc.StatusCode.UNAVAILABLE or not was_not_sent(error):
            raise errors.of_store(error) from None

    def lost(self, error: grpc.aio.AioRpcError) -> None:
        """With this error a call has failed, or the watch has ended: perhaps the connection has broken."""
        if error.code() is grpc.StatusCode.UNAVAILABLE and not self.is_down:
            self.is_down = True
            self._env.spawn(self._connect(), "connection to the store")

    async def _connect(self) -> None:
        kv = rpc_pb2_grpc.KVStub(self._channel)  # type: ignore[no-untyped-call]
        greeting = rpc_pb2.RangeRequest(key=b"\0", count_only=True, serializable=True)
        attempt = 0
        while True:
            try:
                await kv.Range(greeting, timeout=CONNECT_S)
                break
            except grpc.aio.AioRpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                    break  # it refuses, so it is there
            await self._env.clock.pause(FIRST_S if self.is_new else self._backoff_s(attempt))
            attempt += 1
        self.is_down = False
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _backoff_s(self, attempt: int) -> float:
        """How long to wait after this attempt, from 0. The first time is not random, as in gRPC."""
        if not attempt:
            return BASE_S
        if self._jitter is None:
            self._jitter = self._env.stream("connection to the store", self._env.name).random
        return min(BASE_S * FACTOR**attempt, LONGEST_S) * (1 + JITTER * (2 * self._jitter() - 1))


def _is_read() -> bool:
    return REQUEST.get((None, 0))[0] in _READS


def _deadline_ns() -> int | None:
    """When the time of the request is over; None: there is none."""
    request = REQUEST.get(None)
    return None if request is None else request[1] + (READ_NS if request[0] in _READS else WRITE_NS)


def was_not_sent(error: grpc.aio.AioRpcError) -> bool:
    details = (error.details() or "").lower()
    return any(words in details for words in _NOT_SENT)


def _give_up(waiter: asyncio.Future[None], is_read: bool) -> None:
    if not waiter.done():
        waiter.set_exception(errors.timed_out(is_read=is_read))
