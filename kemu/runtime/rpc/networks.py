"""Peers of one process, the connections between them, and what partitions and crashes do to those.

Connections are TCP-like. What one end of a call sends arrives in order; different calls may overtake each other. A
partition holds messages back. If it heals in time they arrive late, as after retransmission; otherwise keepalive breaks
the connection at both ends, and what was held back is lost. When an actor dies, its peers learn of it behind what it
had sent, or from keepalive where a partition is in the way. Messages in flight when a partition begins still arrive.

Both runtimes use this. They differ in the :class:`Wire`, which says when a message arrives: the simulation draws
latencies (``sim.wires``), a cell delivers in the next turn of its event loop (:class:`LoopWire`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from kemu.runtime.env import Timer
from kemu.runtime.rpc.ends import Acceptor, ClientEnd, Deliver, End, Link, ServerEnd
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S, Partitions

OnLost = Callable[[str, str], None]
"""Told that a connection broke: survivor and peer."""

OnStruck = Callable[[str, str, str], None]
"""Told that a fault has hit what one actor sends to another: its id, sender and receiver."""

Held = tuple[End, Deliver, Any]
"""A message that was sent into a partition: the arguments of ``Link.send``."""


class Wire(Protocol):
    """How messages get from one end of a connection to the other."""

    def add(self, end: ClientEnd | ServerEnd) -> None:
        """An end of a call came into being."""
        ...

    def carry(self, end: End, deliver: Deliver, payload: Any) -> None:
        """Have ``deliver(payload)`` called at the other end, behind what ``end`` sent before."""
        ...

    def post_behind(self, senders: Iterable[End], callback: Callable[..., object], *args: object) -> None:
        """Call back one way later, behind everything that the senders have sent."""
        ...

    def post_round_trip(self, callback: Callable[..., object], *args: object) -> None:
        """Call back a way there and back later."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back after that time of the event loop."""
        ...


class LoopWire:
    """Within one process, on an ordinary event loop: everything arrives in the next turn of the loop."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def add(self, end: ClientEnd | ServerEnd) -> None:
        pass

    def carry(self, end: End, deliver: Deliver, payload: Any) -> None:
        self._loop.call_soon(deliver, payload)

    def post_behind(self, senders: Iterable[End], callback: Callable[..., object], *args: object) -> None:
        self._loop.call_soon(callback, *args)

    def post_round_trip(self, callback: Callable[..., object], *args: object) -> None:
        self._loop.call_soon(callback, *args)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._loop.call_later(seconds, callback)


class Peer:
    """An actor in the network, for one incarnation."""

    __slots__ = ("gone", "links", "name", "server")

    def __init__(self, name: str, server: Acceptor) -> None:
        self.name = name
        self.server = server
        self.gone = False
        """None of its code runs any more: it notices nothing."""
        self.links: dict[PartitionedLink, None] = {}
        """Of both directions, oldest first."""


class Network:
    """All peers of a process and their connections."""

    def __init__(
        self,
        wire_to: Callable[[str], Wire],
        on_lost: OnLost,
        keepalive_timeout_s: float = DEFAULT_KEEPALIVE_TIMEOUT_S,
        on_struck: OnStruck | None = None,
    ) -> None:
        """``wire_to`` makes the wire of a connection to a server, given its name."""
        self.partitions = Partitions(keepalive_timeout_s)
        self.wire_to = wire_to
        self.on_lost = on_lost
        self.on_struck = on_struck or _unheard
        self._peers: dict[str, Peer] = {}

    def join(self, peer: Peer) -> None:
        self._peers[peer.name] = peer

    def leave(self, peer: Peer) -> None:
        """The actor stopped or crashed; its peers will notice. Its name is free for a successor."""
        peer.server.close()
        if self._peers.get(peer.name) is peer:
            del self._peers[peer.name]
        for link in list(peer.links):
            link.lost_by(peer)
        peer.links.clear()

    def connect(self, client: Peer, target: str) -> PartitionedLink:
        """A connection to the server of that name, or to nobody."""
        server = self._peers.get(target)
        link = PartitionedLink(self, client, target, server)
        if client.gone:
            link.broken = True
            return link
        client.links[link] = None
        if server is not None:
            server.links[link] = None
        link.set_cut(*self._cuts(link))
        link.connected = server is not None and not link.is_cut()
        return link

    def partition(self, fault: str, a: Iterable[str], b: Iterable[str], one_way: bool) -> None:
        self.partitions.add(fault, a, b, one_way)
        self._reconsider()

    def heal(self, fault: str) -> None:
        self.partitions.remove(fault)
        self._reconsider()

    def _reconsider(self) -> None:
        for peer in list(self._peers.values()):
            for link in list(peer.links):
                link.set_cut(*self._cuts(link))

    def _cuts(self, link: PartitionedLink) -> tuple[bool, bool]:
        """Whether its requests and its responses are cut."""
        client, target = link.client.name, link.target
        return self.partitions.cut(client, target), self.partitions.cut(target, client)


class PartitionedLink(Link):
    """A connection between two peers."""

    __slots__ = ("_held_requests", "_held_responses", "_keepalive", "_lost_by", "_network", "_server_peer", "_wire",
                 "client", "target")  # fmt: skip

    def __init__(self, network: Network, client: Peer, target: str, server: Peer | None) -> None:
        self._wire = network.wire_to(target)
        super().__init__(server.server if server is not None else None, client.name, self._wire.carry)
        self._network = network
        self.client = client
        self.target = target
        self._server_peer = server
        """None: there is no actor by that name."""
        self._held_requests: list[Held] | None = None
        """What the client has sent into a partition; None while that direction is open."""
        self._held_responses: list[Held] | None = None
        self._keepalive: Timer | None = None
        """Runs while either direction is cut."""
        self._lost_by: Peer | None = None
        """The side that died, until the other one notices."""

    # Messages

    def start(self, call: ClientEnd) -> None:
        if self.broken:
            return  # the caller itself is dead
        self._wire.add(call)
        self.calls[call] = None
        if self.server is not None:
            self.send(call, self.server.accept, call)
        elif not self.is_cut():
            self._refuse()

    def attach(self, context: ServerEnd) -> None:
        self.contexts[context] = None
        self._wire.add(context)

    def _hold(self, end: End, deliver: Deliver, payload: Any) -> None:
        """``send`` while a direction is cut."""
        held = self._held_requests if end.is_client else self._held_responses
        if held is None:
            self._wire.carry(end, deliver, payload)
        else:
            held.append((end, deliver, payload))
            source, target = self.client.name, self.target
            if not end.is_client:
                source, target = target, source
            network = self._network
            network.on_struck(network.partitions.cutting(source, target), source, target)

    def _break(self) -> None:
        self.broken = True
        self.send = _discard

    # Partitions

    def is_cut(self) -> bool:
        return self._held_requests is not None or self._held_responses is not None

    def set_cut(self, requests: bool, responses: bool) -> None:
        """Close or open each direction."""
        released: list[Held] = []
        if requests != (self._held_requests is not None):
            released += self._held_requests or ()
            self._held_requests = [] if requests else None
        if responses != (self._held_responses is not None):
            released += self._held_responses or ()
            self._held_responses = [] if responses else None
        if self.is_cut():
            if self._keepalive is None:
                timeout_s = self._network.partitions.keepalive_timeout_s
                self._keepalive = self._wire.call_later(timeout_s, self._keepalive_failed)
            if not self.broken:
                self.send = self._hold
        elif self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
            if not self.broken:
                self.send = self._wire.carry
            self.connected = self.server is not None
            if self.server is None:
                self._refuse()
        for end, deliver, payload in released:
            self.send(end, deliver, payload)
        if self._lost_by is not None:
            self._announce_loss()

    def _keepalive_failed(self) -> None:
        self._keepalive = None
        self._break()
        self._client_notices("keepalive watchdog timeout" if self.connected else "connection timed out")
        self._server_notices()

    # Loss

    def lost_by(self, dead: Peer) -> None:
        """One side died. The other notices later, or never if it has died too."""
        self._break()
        self._lost_by = dead
        self._announce_loss()

    def _announce_loss(self) -> None:
        """Tell the survivor, unless a partition is in the way: then keepalive will."""
        client_died = self._lost_by is self.client
        if (self._held_requests if client_died else self._held_responses) is not None:
            return
        self._lost_by = None
        if client_died:
            self._wire.post_behind(self.calls, self._server_notices)
        else:
            senders = (call.partner for call in self.calls if call.partner is not None)
            self._wire.post_behind(senders, self._client_notices, "connection reset by peer")

    def _refuse(self) -> None:
        """Nobody listens: the client learns of it after a round trip."""
        self._break()
        self._wire.post_round_trip(self._client_notices, "connection refused")

    def _client_notices(self, what: str) -> None:
        client = self.client
        client.links.pop(self, None)
        if self.calls and not client.gone:
            if self.connected:
                self._network.on_lost(client.name, self.target)
            self.break_client(f"{self.target}: {what}")

    def _server_notices(self) -> None:
        server = self._server_peer
        if server is None:
            return
        server.links.pop(self, None)
        if self.contexts and not server.gone:
            self._network.on_lost(server.name, self.client.name)
            self.break_server()


def _unheard(fault: str, source: str, target: str) -> None:
    """``on_struck`` where nobody asks."""


def _discard(end: End, deliver: Deliver, payload: Any) -> None:
    """``send`` of a broken connection."""
