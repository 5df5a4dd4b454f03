"""Calls to actors of other cells while a fault of the network concerns them.

Without a fault, a call from one cell to another is gRPC's and nothing else. While a fault is in force between two
actors, the calls of the one to the other take a detour within the caller's cell: over an in-memory connection
(``rpc.networks``), which treats them as it treats calls within a cell and in the simulation, to a :class:`Relay`, which
takes them on over gRPC. ``far_calls`` moves the calls that are under way when a fault begins.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import grpc
import grpc.aio

from kemu.runtime.host.tokens import CALLER, TOKEN
from kemu.runtime.rpc.ends import EOF, WINDOW_BYTES, ClientEnd, ServerEnd, Status

TO = "kemu-to"
"""Metadata of a call: which actor it is for."""

Following = Callable[[], Awaitable[Any]]
"""The next message of a gRPC call, as bytes; EOF at its end. Raises AioRpcError."""

OnLost = Callable[[str, str], None]
"""Told that a connection broke: survivor and peer."""

_NEVER_REACHED = ("failed to connect", "does not run here", "refused")
"""gRPC has one code for both, but a peer that could not be reached at all was not lost."""


def tells_loss(code: grpc.StatusCode, details: str) -> bool:
    """Whether a call ended because its connection broke."""
    return code is grpc.StatusCode.UNAVAILABLE and not any(text in details for text in _NEVER_REACHED)


class Relay:
    """Stands in this cell for an actor of another one: the server of the in-memory connections to it."""

    def __init__(
        self,
        name: str,
        channel: Callable[[], grpc.aio.Channel | None],
        on_lost: OnLost,
        token: Callable[[str], str],
    ) -> None:
        """``channel``: the connection to the cell in which the actor lives now; None: it does not run. ``token``: of an
        actor of this cell."""
        self.name = name
        self.on_lost = on_lost
        self._channel = channel
        self._token = token
        self._moved: dict[ClientEnd, RelayedCall] = {}
        """Calls that gRPC carries already, until they arrive here over the in-memory connection, too."""

    def move(self, call: ClientEnd, far: grpc.aio.Call, following: Following) -> None:
        """``call``, which has just been made, goes on with ``far``, whose next messages are those of ``following``."""
        self._moved[call] = RelayedCall(self, call, far, following)

    def accept(self, call: ClientEnd) -> None:
        """See ``ends.Acceptor``."""
        moved = self._moved.pop(call, None)
        if moved is not None:
            moved.go_on()
            return
        if call.status is not None:
            return
        channel = self._channel()
        if channel is None:
            RelayedCall(self, call, None, None).refuse(f"{self.name}: connection refused")
            return
        metadata = [(key, value) for key, value in call.metadata]
        caller = next((str(value) for key, value in metadata if key == CALLER), "")
        metadata += [(TO, self.name), (TOKEN, self._token(caller))]
        timeout = None if call.deadline is None else max(0.0, call.deadline - call.loop.time())
        # Whatever the method is: on the wire every call is two streams of messages.
        far: Any = channel.stream_stream(call.method)(metadata=metadata, timeout=timeout)  # type: ignore[arg-type]
        RelayedCall(self, call, far, far.read).begin()

    def close(self) -> None:
        """See ``ends.Acceptor``."""


class RelayedCall(ServerEnd):
    """The server's end of an in-memory call, and the client's end of the gRPC call that carries it on."""

    __slots__ = ("_call", "_far", "_following", "_is_over", "_relay", "_tasks")

    def __init__(self, relay: Relay, call: ClientEnd, far: grpc.aio.Call, following: Following | None) -> None:
        super().__init__(call.link, call.loop)
        self.partner = call
        self.method = call.method
        self._call = call
        self._far = far
        self._following = following
        self._relay = relay
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def _streams_in(self) -> bool:
        return hasattr(self._call, "write")

    @property
    def _streams_out(self) -> bool:
        return hasattr(self._call, "read")

    # Its begin

    def begin(self) -> None:
        """A new call."""
        self._meet()
        self._spawn(self._request(), "requests")
        self._spawn(self._responses(), "responses")

    def go_on(self) -> None:
        """A call that was under way over gRPC before."""
        self._meet()
        # If its caller has given it up meanwhile, that is on its way.
        if self._call.status is None:
            if self._streams_in:
                self._spawn(self._requests(), "requests")
            self._spawn(self._responses(), "responses")

    def refuse(self, why: str) -> None:
        self._meet()
        self._finish(Status(grpc.StatusCode.UNAVAILABLE, why))

    def _meet(self) -> None:
        self._call.partner = self
        self.link.attach(self)
        self._call.started()

    def _spawn(self, coroutine: Coroutine[Any, Any, None], what: str) -> None:
        self._tasks.append(self.loop.create_task(coroutine, name=f"{what} of {self.method}"))

    # Messages

    async def _request(self) -> None:
        if self._streams_in:
            await self._requests()
            return
        with contextlib.suppress(*_IS_OVER):
            await self._far.write(self._call.request)
            await self._far.done_writing()

    async def _requests(self) -> None:
        with contextlib.suppress(*_IS_OVER):
            while (data := await self.take()) is not EOF:
                await self._far.write(data)
            await self._far.done_writing()

    async def _responses(self) -> None:
        call = self._call
        streams_out = self._streams_out
        response: bytes | None = None
        assert self._following is not None
        try:
            while (data := await self._following()) is not EOF:
                if streams_out:
                    self.unread += len(data)
                    self.link.send(self, call.receive, data)
                    if self.unread > WINDOW_BYTES:
                        await self.wait_for_window()
                else:
                    response = data
            trailing = tuple(await self._far.trailing_metadata() or ())
            self._finish(Status(grpc.StatusCode.OK, await self._far.details() or "", trailing, response))
        except grpc.aio.AioRpcError as error:
            trailing = tuple(error.trailing_metadata() or ())
            self._finish(Status(error.code(), error.details() or "", trailing))

    # Its end

    def _finish(self, status: Status) -> None:
        """Tell the caller how the call ended."""
        if self._is_over:
            return
        deliver = self._deliver_loss if tells_loss(status.code, status.details) else self._call.receive_status
        self.link.send(self, deliver, status)
        self._end()

    def _deliver_loss(self, status: Status) -> None:
        if self._call.status is None:
            self._relay.on_lost(self.link.client_name, self._relay.name)
        self._call.receive_status(status)

    def client_gone(self, _: object = None) -> None:
        """The caller has cancelled the call, or its connection broke: the actor in the other cell notices that now."""
        if not self._is_over:
            self._end()
            if self._far is not None:
                # Its own ``cancel`` may be that of a caller who does not get through.
                type(self._far).cancel(self._far)

    def _end(self) -> None:
        self._is_over = True
        self.link.contexts.pop(self, None)
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()


_IS_OVER = (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError)
"""Raised by writing to a call that is over: its status says why."""
