"""Calls to actors of other cells, as their callers hold them.

Ordinarily each is a thin shell around a call of gRPC. When a fault of the network begins between the two actors, the
calls under way are moved to the in-memory connection on which faults act (``relays``), and new calls begin there.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Generator
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import Message

from kemu.runtime.host.calls.relays import Relay
from kemu.runtime.rpc import clients
from kemu.runtime.rpc.ends import EOF


class Caller(Protocol):
    """What a route needs of the actor that calls."""

    @property
    def name(self) -> str: ...

    def nearby(self, peer: str) -> clients.MemoryChannel: ...

    def relay(self, peer: str) -> Relay:
        """The relay to which the actor's in-memory connections to that peer go."""
        ...

    def needs_detour(self, route: Route) -> bool:
        """Whether calls to that peer still have to take the detour."""
        ...

    def forget_stream(self, call: grpc.aio.Call) -> None:
        """``call`` was moved: its end over gRPC says nothing to the actor any more."""
        ...


class Route:
    """The way from one actor to another in a different cell."""

    __slots__ = ("caller", "is_detour", "open", "peer")

    def __init__(self, caller: Caller, peer: str) -> None:
        self.caller = caller
        self.peer = peer
        self.is_detour = False
        """New calls begin on the in-memory connection."""
        self.open: dict[Any, FarCall] = {}
        """By gRPC's call."""

    def add(self, far: grpc.aio.Call, call: FarCall) -> None:
        self.open[far] = call
        far.add_done_callback(call.over)

    def takes_detour(self) -> bool:
        """Whether a new call does."""
        if self.is_detour:
            self.is_detour = self.caller.needs_detour(self)
        return self.is_detour

    def move(self) -> None:
        """A fault begins between the two: take the detour, also with the calls that are under way."""
        self.is_detour = True
        # Faults act on connections that are there.
        self.caller.nearby(self.peer).link()
        moving, self.open = self.open, {}
        for far, call in moving.items():
            self.caller.forget_stream(far)
            call.move()


class FarCall(abc.ABC):
    """A call over gRPC, until it is moved."""

    __slots__ = ("_far", "_method", "_near", "_route")

    def __init__(self, route: Route, method: Method, far: grpc.aio.Call) -> None:
        self._route = route
        self._method = method
        self._far = far
        self._near: Any = None
        """The in-memory call in its place."""
        route.add(far, self)

    def over(self, far: grpc.aio.Call) -> None:
        """gRPC's call is over."""
        self._route.open.pop(far, None)

    def move(self) -> None:
        route = self._route
        self._near = self._method.near(route.caller.nearby(route.peer))
        route.caller.relay(route.peer).move(self._near, self._far, self._following)

    @abc.abstractmethod
    async def _following(self) -> Any:
        """For the relay."""

    def cancel(self) -> bool:
        cancelled: bool = (self._near or self._far).cancel()
        return cancelled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._near or self._far, name)


class Method(Protocol):
    """What a call needs of the method that it calls."""

    def near(self, channel: clients.MemoryChannel) -> Any:
        """An in-memory call of the method, without a request."""
        ...


class FarUnary(FarCall):
    """With one response: it is awaited."""

    __slots__ = ("_is_answered", "_waiter")

    def __init__(self, route: Route, method: Method, far: grpc.aio.Call) -> None:
        self._waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_answered = False
        super().__init__(route, method, far)

    def over(self, far: grpc.aio.Call) -> None:
        super().over(far)
        if not self._waiter.done():
            self._waiter.set_result(None)

    def __await__(self) -> Generator[Any, None, Any]:
        # gRPC's call would be cancelled with its waiter, which a partition may have to hold back.
        if not self._waiter.done():
            try:
                yield from self._waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
        return (yield from (self._near or self._far).__await__())

    def move(self) -> None:
        super().move()
        if not self._waiter.done():
            self._waiter.set_result(None)

    async def _following(self) -> Any:
        if self._is_answered:
            return EOF
        response = await self._far
        self._is_answered = True
        return response.SerializeToString()


class FarStream(FarCall):
    """With a stream of responses."""

    __slots__ = ("_handed", "_is_released", "_reader")

    def __init__(self, route: Route, method: Method, far: grpc.aio.Call) -> None:
        super().__init__(route, method, far)
        self._reader: asyncio.Task[Any] | None = None
        """Is reading from gRPC."""
        self._is_released = False
        """That reader was told that the call in the other one's place is over."""
        self._handed: asyncio.Future[Any] | None = None
        """What the caller was reading when the call was moved."""

    async def read(self) -> Any:
        if self._near is not None:
            return await self._near.read()
        task = self._reader = asyncio.current_task()
        try:
            message = await self._far.read()
        except asyncio.CancelledError:
            if self._near is None:
                raise
            assert task is not None
            if self._is_released and task.uncancel() == 0:
                return await self._near.read()
            self._near.cancel()
            raise
        except grpc.aio.AioRpcError as error:
            if self._near is None:
                raise
            message = error
        finally:
            self._reader = None
        if self._near is None:
            return message
        # It arrived when the call had been moved already.
        assert self._handed is not None
        if isinstance(message, grpc.aio.AioRpcError):
            self._handed.set_exception(message)
        else:
            self._handed.set_result(message)
        return await self._near.read()

    def __aiter__(self) -> FarStream:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is EOF:
            raise StopAsyncIteration
        return message

    def move(self) -> None:
        super().move()
        if self._reader is not None:
            self._handed = asyncio.get_running_loop().create_future()
            self._near.add_done_callback(self._release)
        # A reader or writer that is cancelled has gRPC cancel the call; the in-memory one hears of it first.
        self._far.cancel = _hold

    def _release(self, near: object) -> None:
        """The caller reads from gRPC still, but its call is over: what gRPC has to say is of no interest any more."""
        if self._reader is not None:
            self._is_released = True
            self._reader.cancel()

    async def _following(self) -> Any:
        if self._handed is None:
            message = await self._far.read()
        else:
            message = await self._handed
            self._handed = None
        return EOF if message is EOF else message.SerializeToString()

    async def write(self, message: Message | bytes | None) -> None:
        if self._near is not None:
            await self._near.write(message)
            return
        try:
            await self._far.write(message)
        except asyncio.CancelledError:
            if self._near is not None:
                self._near.cancel()
            raise

    async def done_writing(self) -> None:
        await (self._near or self._far).done_writing()


def _hold() -> bool:
    return False
