"""The API servers behind the gateway.

A connection of a client sticks to one of them, as behind a load balancer: what it reads there may be older than what
it wrote elsewhere. Connections are dealt out in turns; a path that begins with ``/servers/1``, as the server's URL in a
kubeconfig may, names one. When an API server is away, its connections move on to the next one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message
from google.rpc import status_pb2

from kemu.emulated.gateway.authentication.impersonations import Mode, Right
from kemu.emulated.objects import identities, statuses
from kemu.emulated.objects.identities import User
from kemu.errors import ApiError, Forbidden, NotFound, ServerTimeout, ServiceUnavailable
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import Channel

PATIENCE_S = 60.0
"""How long a request may take that says nothing (``RequestTimeout`` of kube-apiserver), and at most."""

_AS_KEY, _AS_GROUP_KEY, _AS_BESIDE_KEY = "kemu-as", "kemu-as-group", "kemu-as-beside"
_DETAILS_KEY = "grpc-status-details-bin"
_WARNING_KEY = "kemu-warning-bin"
_REMEMBERED = 10_000
"""Connections whose API server is known."""


class Refused(Exception):
    """An API server has refused a request."""

    def __init__(self, status: meta_v1_pb2.Status, warnings: Sequence[str] = ()) -> None:
        super().__init__(status.message)
        self.status = status
        self.warnings = warnings


class Backend:
    """One API server."""

    __slots__ = ("last_modes", "name", "stub")

    def __init__(self, name: str, channel: Channel) -> None:
        self.name = name
        self.stub: Any = api_pb2_grpc.ApiStub(channel)  # type: ignore[no-untyped-call]
        self.last_modes: dict[str, Mode] = {}
        """How users have last acted as others there."""

    async def call(self, method: str, request: Message, user: User, timeout_s: float = PATIENCE_S) -> Any:
        """A unary call. Raises :class:`Refused`, and ServerTimeout after ``timeout_s``, in real time."""
        call = getattr(self.stub, method)(request, metadata=metadata_of(user))
        loop = asyncio.get_running_loop()
        late: list[None] = []

        def give_up() -> None:
            late.append(None)
            call.cancel()

        timer = loop.call_later(timeout_s, give_up)
        try:
            return await call
        except asyncio.CancelledError:
            if not late:
                raise
            raise ServerTimeout(
                "Timeout: request did not complete within requested timeout - context deadline exceeded"
            ) from None
        except grpc.aio.AioRpcError as error:
            raise Refused(status_of(error, self.name), warnings_of(error)) from None
        finally:
            timer.cancel()

    async def check(self, user: User, right: Right) -> Forbidden | None:
        """Why a user may not do something; None: the user may. Raises :class:`Refused`."""
        request = api_pb2.ReviewRequest(user=user.name, groups=user.groups)
        if right.path:
            request.non_resource.verb, request.non_resource.path = right.verb, right.path
        else:
            asked = request.resource
            asked.verb, asked.group, asked.resource = right.verb, right.group, right.resource
            asked.subresource, asked.namespace, asked.name = right.subresource, right.namespace, right.name
        found = await self.call("Review", request, identities.ADMINISTRATOR)
        return None if found.allowed else right.forbidden(user, found.reason)

    async def require(self, user: User, right: Right) -> None:
        """Raises Forbidden, or :class:`Refused`."""
        if refused := await self.check(user, right):
            raise refused

    async def failure(self) -> str:
        """Why it does not answer; empty: it does."""
        request = api_pb2.ReviewRequest()
        request.non_resource.verb, request.non_resource.path = "get", "/readyz"
        try:
            await self.call("Review", request, identities.ADMINISTRATOR)
        except Refused as refused:
            return refused.status.message
        return ""


class Backends:
    def __init__(self, dial: Callable[[str], Channel], names: Sequence[str]) -> None:
        self._backends = [Backend(name, dial(name)) for name in names]
        self._chosen: dict[Any, int] = {}
        """By connection."""
        self._next = 0

    def __iter__(self) -> Any:
        return iter(self._backends)

    def number(self, server: str | None) -> int | None:
        """Number of the API server that a URL chooses; None: of none. Raises :class:`kemu.errors.NotFound`."""
        if server is not None and not (server.isdigit() and len(server) < 10 and int(server) < len(self._backends)):
            raise NotFound(f"there is no API server {server}; there are {len(self._backends)}")
        return None if server is None else int(server)

    def of(self, peer: tuple[Any, ...] | None, number: int | None) -> Backend:
        """The one that a connection sticks to, or the one with that number."""
        if number is not None:
            return self._backends[number]
        if len(self._backends) == 1 or peer is None:
            return self._backends[0]
        chosen = self._chosen.get(peer)
        if chosen is None:
            if len(self._chosen) >= _REMEMBERED:
                del self._chosen[next(iter(self._chosen))]
            chosen = self._chosen[peer] = self._next
            self._next = (self._next + 1) % len(self._backends)
        return self._backends[chosen]

    def lost(self, peer: tuple[Any, ...] | None, backend: Backend) -> None:
        """That API server does not answer: the connection moves on."""
        chosen = self._chosen.get(peer)
        if chosen is not None and self._backends[chosen] is backend:
            self._chosen[peer] = (chosen + 1) % len(self._backends)


@lru_cache(1024)
def metadata_of(user: User) -> tuple[tuple[str, str], ...] | None:
    """Metadata of a call, for whom it is made."""
    stated: tuple[tuple[str, str], ...] = ()
    if user[:2] != identities.ADMINISTRATOR[:2]:
        stated = ((_AS_KEY, user.name), *((_AS_GROUP_KEY, group) for group in user.groups))
    if user.uid or user.extra:
        stated = (*stated, (_AS_BESIDE_KEY, json.dumps(user[2:])))
    return stated or None


def warnings_of(error: grpc.aio.AioRpcError) -> list[str]:
    """What an API server tells beside its refusal."""
    return [value.decode() for key, value in error.trailing_metadata() or () if key == _WARNING_KEY]


def status_of(error: grpc.aio.AioRpcError, server: str) -> meta_v1_pb2.Status:
    """What an API server has refused with; if it did not answer, that."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            status = meta_v1_pb2.Status()
            for detail in status_pb2.Status.FromString(value).details:
                if detail.Unpack(status):
                    return status
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return statuses.of_error(ServiceUnavailable(f"{server} is not reachable: {error.details()}"))
    return statuses.of_error(ApiError(f"{error.code().name}: {error.details()}"))
