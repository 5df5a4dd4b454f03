"""Channels of the gateway into a world in virtual time: gRPC in memory (:mod:`kemu.runtime.rpc`) over a link that turns
what calls send into inputs of the world.

    response = await api_pb2_grpc.ApiStub(channel(driver, "apiserver/0")).Get(api_pb2.GetRequest(…), timeout=5)

Calls are awaited on the event loop outside. What they hear is told them within a slice, and wakes them when the loop
outside has its turn. Timeouts are in virtual time: the world ends the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from kemu.lab.up.callers import CALLER
from kemu.lab.up.virtual.drivers import Driver, Ended
from kemu.lab.up.virtual.worlds import Answer
from kemu.runtime.rpc.clients import Call, MemoryChannel, StreamStreamCall, UnaryUnaryCall
from kemu.runtime.rpc.ends import ClientEnd, Deliver, End, Link, P, ServerEnd, Status

UNREAD_BYTES = 64 << 20
"""Bytes of one stream that its client does not read: beyond that it is ended."""


def channel(driver: Driver, target: str) -> MemoryChannel:
    """To one actor, for calls on the loop that runs now."""
    return MemoryChannel(lambda: _WorldLink(driver, target), asyncio.get_running_loop())


def _deliver(end: End, deliver: Deliver[P], payload: P) -> None:
    """What a call sends is an input at once."""
    deliver(payload)


class _WorldLink(Link):
    """A world is always there; what becomes of a call in it shows later."""

    __slots__ = ("_driver", "_target")

    def __init__(self, driver: Driver, target: str) -> None:
        super().__init__(None, "", _deliver)
        self.connected = True
        self._driver = driver
        self._target = target

    def start(self, call: ClientEnd) -> None:
        self.calls[call] = None
        assert isinstance(call, Call)
        call.started()
        call.partner = _WorldEnd(self._driver, call)
        call.partner.begin(self._target)

    def limit(self, call: ClientEnd, timeout_s: float, over: Callable[[], object]) -> None:
        call.deadline = timeout_s

    def attach(self, context: ServerEnd) -> None:
        raise NotImplementedError("servers are inside")

    def is_blocked(self) -> bool:
        return False


class _WorldEnd:
    """The other end of one call: what it receives, the world takes; what the world says, it hears."""

    def __init__(self, driver: Driver, call: Call) -> None:
        self._driver = driver
        self._call = call
        self._number = driver.next_number()
        self._is_unary = isinstance(call, UnaryUnaryCall)
        self._unread = 0
        self._caller = CALLER.get()
        """Who asks; of a stream, who began it: it carries watches of others, too."""

    def _put(self, what: str, *more: Any) -> None:
        try:
            self._driver.put([what, self._number, *more], self, CALLER.get())
        except Ended as error:
            self._end(Status(grpc.StatusCode.UNAVAILABLE, str(error)))

    # From the client

    def begin(self, target: str) -> None:
        call = self._call
        given = [target, call.method, [list(each) for each in call.metadata], call.deadline]
        if self._is_unary:
            self._driver.ask(self._number, call.method)
            self._put("call", *given, call.request)
        elif isinstance(call, StreamStreamCall):
            self._put("stream", *given)
        else:
            raise grpc.aio.UsageError(f"{call.method}: the API has no such calls")

    def receive(self, data: bytes) -> None:
        self._call.receive_window_update(len(data))
        self._driver.stir()
        self._put("write", data)

    def receive_eof(self) -> None:
        self._put("close")

    def receive_window_update(self, taken: int) -> None:
        self._unread -= taken

    def client_gone(self) -> None:
        if self._is_unary:
            self._driver.answered(self._number, self._caller)
        self._put("cancel")

    # From the world, within a slice: the loop outside is not the running one, and is only given something to do.

    def hear(self, data: bytes) -> None:
        call = self._call
        self._driver.told()
        if call.status is None:
            self._unread += len(data)
            call.receive(data)
            if self._unread > UNREAD_BYTES:
                call.loop.call_soon(call.cancel)

    def end(self, answer: Answer) -> None:
        if not self._is_unary:
            self._driver.told()
        self._end(Status(answer.code, answer.details, answer.trailing, answer.data))

    def _end(self, status: Status) -> None:
        if self._call.status is None:
            if self._is_unary:
                self._driver.answered(self._number, self._caller)
            self._call.receive_status(status)
