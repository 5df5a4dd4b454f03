"""Dialling out of a cell: the channel that an actor gets for a peer by name.

Where the peer lives is looked up at each call, so a channel survives restarts of its peer, also on other ports. Actors
of the same cell are called in memory (``rpc.clients``); all calls from one cell to another share one gRPC connection
(``far_calls``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import Message

from kemu.runtime.env import Codec
from kemu.runtime.host.calls import far_calls
from kemu.runtime.host.calls.relays import TO
from kemu.runtime.host.tokens import CALLER, TOKEN
from kemu.runtime.rpc import clients, ends

_KEEPALIVE_TIME_MS, _KEEPALIVE_TIMEOUT_MS = 10_000, 5_000

CHANNEL_OPTIONS = (
    # A list of a whole cluster is larger than gRPC's default of 4 MiB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A peer that is away comes back within seconds.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    # Cells on other machines can vanish without a word.
    ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
    ("grpc.http2.max_pings_without_data", 0),
    # Cells are called directly, whatever the environment says of proxies.
    ("grpc.enable_http_proxy", 0),
    # Only one driver or cell uses a connection, even where several live in one process (tests).
    ("grpc.use_local_subchannel_pool", 1),
)

MAX_PENDING_CALLS = 50_000
"""Calls, streams too, that may wait until the event loop takes them: thousands of kubelets open theirs at once."""

MAX_UNREQUESTED_S = 600

SERVER_OPTIONS = (
    # By default gRPC refuses calls at random beyond 1,000, and all beyond 3,000.
    ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
    # Nor does it end those that wait for longer than 30 s, as they do on a machine that is busy with other things.
    ("grpc.server_max_unrequested_time_in_server", MAX_UNREQUESTED_S),
    ("grpc.max_receive_message_length", ends.MAX_REQUEST_BYTES),
    ("grpc.max_send_message_length", -1),
    # No cell compresses, and a small message must not become a large one.
    ("grpc.per_message_decompression", 0),
    # A client that is none: it neither greets nor, once it has, makes any call.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.max_allowed_incoming_connections", 5_000),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

SECURE = "grpcs://"
"""Prefix of an outside address that is reached by TLS."""

_CLOSE_AFTER_S = 2 * (_KEEPALIVE_TIME_MS + _KEEPALIVE_TIMEOUT_MS) / 1000
"""By then every call on a connection has ended, even if its peer vanished."""


class Connections:
    """The gRPC connections of a process, one for each target."""

    def __init__(self) -> None:
        self.certificates: Mapping[str, bytes] = {}
        """By target: what a server there must show, in PEM. Those that are not in it are called without TLS."""
        self._channels: dict[tuple[str, bytes], grpc.aio.Channel] = {}
        """By target and certificate."""
        self._closing: dict[asyncio.Task[None], grpc.aio.Channel] = {}

    def to(self, target: str) -> grpc.aio.Channel:
        """``target`` is ``host:port``, or ``grpcs://host:port`` for TLS with the roots that gRPC knows."""
        certificate = self.certificates.get(target, b"")
        channel = self._channels.get((target, certificate))
        if channel is None:
            if target.startswith(SECURE):
                credentials = grpc.ssl_channel_credentials()
                channel = grpc.aio.secure_channel(target.removeprefix(SECURE), credentials, options=CHANNEL_OPTIONS)
            elif certificate:
                credentials = grpc.ssl_channel_credentials(root_certificates=certificate)
                channel = grpc.aio.secure_channel(target, credentials, options=CHANNEL_OPTIONS)
            else:
                channel = grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)
            self._channels[target, certificate] = channel
        return channel

    def retain(self, targets: set[str]) -> None:
        """Close connections to all other targets, in a while: no actor lives there any more."""
        kept = {(target, self.certificates.get(target, b"")) for target in targets}
        for target in sorted(self._channels.keys() - kept):
            # Calls on it must find out by themselves that their peer is gone: closed at once, they would end as if
            # their caller had cancelled them.
            channel = self._channels.pop(target)
            task = asyncio.get_running_loop().create_task(_close_later(channel))
            self._closing[task] = channel
            task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.pop(task, None)

    async def close(self) -> None:
        remaining = [*self._closing.values(), *self._channels.values()]
        for task in list(self._closing):
            task.cancel()
        self._channels = {}
        for channel in remaining:
            await channel.close(None)


async def _close_later(channel: grpc.aio.Channel) -> None:
    await asyncio.sleep(_CLOSE_AFTER_S)
    await channel.close(None)


class Dialler(Protocol):
    """What a channel needs of the actor that dials, and of its cell."""

    @property
    def name(self) -> str: ...

    def token(self, peer: str) -> str:
        """What to show to the peer; empty: it is no actor of this run, and must not see any token."""
        ...

    def remote(self, peer: str) -> grpc.aio.Channel | None:
        """The connection to the peer's cell; None: it lives in this one, or its place is not known."""
        ...

    def nearby(self, peer: str) -> clients.MemoryChannel:
        """For peers in this cell, and to be refused by those that are nowhere."""
        ...

    def route(self, peer: str) -> far_calls.Route:
        """The way to a peer in another cell."""
        ...

    def opened(self, call: grpc.aio.Call, peer: str) -> None:
        """A stream over the network has begun."""
        ...

    def real_seconds(self, seconds: float) -> float: ...


class ActorChannel:
    """The :class:`kemu.runtime.env.Channel` from one actor to another, wherever that lives."""

    __slots__ = ("dialler", "metadata", "peer")

    takes_standins = True
    """As :class:`clients.MemoryChannel`, of which it is one where the peer lives in the same process."""

    def __init__(self, dialler: Dialler, peer: str) -> None:
        self.dialler = dialler
        self.peer = peer
        self.metadata: tuple[tuple[str, str], ...] = ((CALLER, dialler.name), (TO, peer))
        token = dialler.token(peer)
        if token:
            self.metadata += ((TOKEN, token),)

    def unary_unary(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> PeerMethod:
        return PeerMethod(self, "unary_unary", method, args, kwargs)

    def unary_stream(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> PeerMethod:
        return PeerMethod(self, "unary_stream", method, args, kwargs)

    def stream_unary(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> PeerMethod:
        return PeerMethod(self, "stream_unary", method, args, kwargs)

    def stream_stream(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> PeerMethod:
        return PeerMethod(self, "stream_stream", method, args, kwargs)


class PeerMethod:
    """One method of a peer. Keeps the multicallable of the channel below as long as the peer stays where it is."""

    __slots__ = ("_args", "_channel", "_is_stream", "_kind", "_kwargs", "_method", "_plain", "_route", "_shell", "_way")

    def __init__(
        self, channel: ActorChannel, kind: str, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._channel = channel
        self._kind = kind
        self._is_stream = kind != "unary_unary"
        self._shell = far_calls.FarStream if kind.endswith("stream") else far_calls.FarUnary
        self._method = method
        self._args = args
        self._kwargs = kwargs
        self._way: Any = None
        self._plain: Any = None
        self._route: far_calls.Route | None = None

    def __call__(
        self,
        request: Message | bytes | ends.Standin | None = None,
        *,
        timeout: float | None = None,
        metadata: Sequence[tuple[str, str | bytes]] | None = None,
        **others: Any,
    ) -> Any:
        """``timeout`` in virtual seconds."""
        channel = self._channel
        dialler = channel.dialler
        if timeout is not None:
            others["timeout"] = dialler.real_seconds(timeout)
        way: Any = dialler.remote(channel.peer)
        route = None
        if way is not None:
            route = self._route
            if route is None:
                route = self._route = dialler.route(channel.peer)
            if route.is_detour and route.takes_detour():
                route = None
        if route is None:
            way = dialler.nearby(channel.peer)
        if way is not self._way:
            self._plain = getattr(way, self._kind)(self._method, *self._args, **self._taken(way))
            self._way = way
        if route is None:
            return self._plain(request, metadata=metadata, **others)
        metadata = channel.metadata if metadata is None else (*channel.metadata, *metadata)
        if isinstance(request, ends.Standin):
            request = request.message()
        call = self._plain(request, metadata=metadata, **others)
        if self._is_stream:
            dialler.opened(call, channel.peer)
        return self._shell(route, self, call)

    def near(self, channel: clients.MemoryChannel) -> Any:
        """See ``far_calls.Method``."""
        if self._kind.startswith("stream"):
            return getattr(channel, self._kind)(self._method, *self._args, **self._kwargs)()
        kwargs = {**self._kwargs, "request_serializer": None}
        return getattr(channel, self._kind)(self._method, *self._args, **kwargs)(b"")

    def _taken(self, way: object) -> dict[str, Any]:
        """Arguments for the channel below. A relay writes requests that are bytes already."""
        serialize = self._kwargs.get("request_serializer")
        if isinstance(way, clients.MemoryChannel) or serialize is None or not self._kind.startswith("stream"):
            return self._kwargs
        return {
            **self._kwargs,
            "request_serializer": lambda request: request if type(request) is bytes else serialize(request),
        }
