"""Peers of one process, the connections between them, and what faults do to those.

Connections are TCP-like. What one end of a call sends arrives in order; different calls may overtake each other. A
partition holds messages back. If it heals in time they arrive late, as after retransmission; otherwise keepalive breaks
the connection at both ends, and what was held back is lost. When an actor dies, its peers learn of it behind what it
had sent, or from keepalive where a partition is in the way. A half-open connection is silent for good: only keepalive
tells. Messages in flight when a fault begins still arrive. ``impairments`` makes messages late.

All runtimes use this. They differ in the :class:`Wire`, which says when a message arrives: the simulation draws
latencies (``sim.wires``), a cell delivers in the next turn of its event loop (:class:`LoopWire`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from kemu.runtime.env import SECOND_NS, Timer
from kemu.runtime.rpc.ends import Acceptor, ClientEnd, Deliver, End, Link, P, ServerEnd, Status
from kemu.runtime.rpc.impairments import Impairment, Impairments, Lane
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S, Partitions
from kemu.runtime.rpc.repeats import RepeatedCall

OnLost = Callable[[str, str], None]
"""Told that a connection broke: survivor and peer."""

OnStruck = Callable[[str, str, str], None]
"""Told that a fault has hit what one actor sends to another: its id, sender and receiver."""

Held = tuple[End, Deliver[Any], Any]
"""A message that was sent into a partition: the arguments of ``Link.send``."""

BATCHES = "/Session"
"""Ending of the streaming methods whose every message is a batch of requests, answered by id."""
HEADER_BYTES = 100
"""About what a message takes on the wire beside its content."""


class Wire(Protocol):
    """How messages get from one end of a connection to the other."""

    def add(self, end: ClientEnd | ServerEnd) -> None:
        """An end of a call came into being."""
        ...

    def carry(self, end: End, deliver: Deliver[P], payload: P) -> None:
        """Have ``deliver(payload)`` called at the other end, behind what ``end`` sent before."""
        ...

    def carry_later(self, seconds: float, end: End, deliver: Deliver[P], payload: P) -> None:
        """The same for a message that sets out so much later."""
        ...

    def post_behind(self, senders: Iterable[End], callback: Callable[..., object], *args: object) -> None:
        """Call back one way later, behind everything that the senders have sent."""
        ...

    def post_round_trip(self, callback: Callable[..., object], *args: object) -> None:
        """Call back a way there and back later."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back after that time."""
        ...

    def now_s(self) -> float:
        """The time, from some moment on."""
        ...


class LoopWire:
    """Within one process, on an ordinary event loop: everything arrives in the next turn of the loop."""

    __slots__ = ("_loop", "_speed")

    def __init__(self, loop: asyncio.AbstractEventLoop, speed: Callable[[], float] = lambda: 1.0) -> None:
        """``speed``: how many of the seconds that callers mean pass in one of the loop."""
        self._loop = loop
        self._speed = speed

    def add(self, end: ClientEnd | ServerEnd) -> None:
        pass

    def carry(self, end: End, deliver: Deliver[P], payload: P) -> None:
        if end.last_ns:
            # An impairment is over, but a message that it made late is still under way. Its time may have come: the
            # loop looks at timers when it is through with what is due at once.
            self.carry_later(0.0, end, deliver, payload)
        else:
            self._loop.call_soon(deliver, payload)

    def carry_later(self, seconds: float, end: End, deliver: Deliver[P], payload: P) -> None:
        # Timers of the same instant may fire in any order: a microsecond apart they cannot.
        end.last_ns = max(end.last_ns + 1000, round((self._loop.time() + seconds / self._speed()) * SECOND_NS))
        self._loop.call_at(end.last_ns / SECOND_NS, self._arrive, end, end.last_ns, deliver, payload)

    def _arrive(self, end: End, due_ns: int, deliver: Deliver[P], payload: P) -> None:
        if end.last_ns == due_ns:
            end.last_ns = 0
        deliver(payload)

    def post_behind(self, senders: Iterable[End], callback: Callable[..., object], *args: object) -> None:
        last_s = max((sender.last_ns for sender in senders), default=0) / SECOND_NS
        if last_s:
            self._loop.call_at(last_s, self._loop.call_soon, callback, *args)
        else:
            self._loop.call_soon(callback, *args)

    def post_round_trip(self, callback: Callable[..., object], *args: object) -> None:
        self._loop.call_soon(callback, *args)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._loop.call_later(seconds / self._speed(), callback)

    def now_s(self) -> float:
        return self._loop.time() * self._speed()


class Peer:
    """An actor in the network, for one incarnation."""

    __slots__ = ("gone", "has_left", "links", "missed", "name", "paused", "server")

    def __init__(self, name: str, server: Acceptor) -> None:
        self.name = name
        self.server = server
        self.gone = False
        """None of its code runs any more: it notices nothing."""
        self.has_left = False
        """It has no connections any more; its code may still clean up."""
        self.paused = False
        """Its code stands still. The kernel goes on acknowledging what arrives, but pings are not answered."""
        self.missed: tuple[Callable[[], object], ...] = ()
        """What it notices when it goes on."""
        self.links: dict[PartitionedLink, None] = {}
        """Links of both directions, oldest first."""


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
        self.impairments = Impairments()
        self.wire_to = wire_to
        self.on_lost = on_lost
        self.on_struck = on_struck or _unheard
        self._peers: dict[str, Peer] = {}

    def join(self, peer: Peer) -> None:
        self._peers[peer.name] = peer

    def leave(self, peer: Peer) -> None:
        """The actor stopped or crashed; its peers will notice. Its name is free for a successor."""
        peer.server.close()
        peer.has_left = True
        if self._peers.get(peer.name) is peer:
            del self._peers[peer.name]
        for link in list(peer.links):
            link.lost_by(peer)
        peer.links.clear()

    def connect(self, client: Peer, target: str) -> PartitionedLink:
        """A connection to the server of that name, or to none."""
        # One that has left may still be at its clean-up, but it is not heard.
        server = None if client.has_left else self._peers.get(target)
        link = PartitionedLink(self, client, target, server)
        if client.gone:
            link.broken = True
            return link
        client.links[link] = None
        if server is not None:
            server.links[link] = None
        link.set_cut(*self._cuts(link))
        if self.impairments:
            link.set_lanes(self.impairments)
        link.connected = server is not None and not link.is_unanswered()
        return link

    # Faults

    def pause(self, peer: Peer) -> None:
        peer.paused = True
        self._settle_all(peer)

    def resume(self, peer: Peer) -> None:
        peer.paused = False
        missed, peer.missed = peer.missed, ()
        for notice in missed:
            notice()
        self._settle_all(peer)

    def _settle_all(self, peer: Peer) -> None:
        for link in list(peer.links):
            link.settle()

    def partition(self, fault: str, a: Iterable[str], b: Iterable[str], one_way: bool) -> None:
        self.partitions.add(fault, a, b, one_way)
        self._reconsider()

    def impair(self, impairment: Impairment) -> None:
        self.impairments.add(impairment)
        self._reconsider()

    def heal(self, fault: str) -> None:
        """End a partition or an impairment."""
        self.partitions.remove(fault)
        self.impairments.remove(fault)
        self._reconsider()

    def reset(self, fault: str, a: Iterable[str], b: Iterable[str]) -> None:
        """Reset the connections between the two groups."""
        for link in self._between(fault, a, b):
            link.reset()

    def mute(self, fault: str, a: Iterable[str], b: Iterable[str]) -> None:
        """Have the connections between the two groups go silent."""
        for link in self._between(fault, a, b):
            link.mute()

    def _between(self, fault: str, a: Iterable[str], b: Iterable[str]) -> list[PartitionedLink]:
        one, other = frozenset(a), frozenset(b)
        found = [
            link
            for link in self._links()
            if not link.broken
            and (
                (link.client.name in one and link.target in other) or (link.client.name in other and link.target in one)
            )
        ]
        for link in found:
            self.on_struck(fault, link.client.name, link.target)
        return found

    def _links(self) -> list[PartitionedLink]:
        """Each once, in the order in which their clients joined."""
        return [link for peer in self._peers.values() for link in peer.links if link.client is peer]

    def _reconsider(self) -> None:
        for peer in list(self._peers.values()):
            for link in list(peer.links):
                link.set_cut(*self._cuts(link))
                link.set_lanes(self.impairments)

    def _cuts(self, link: PartitionedLink) -> tuple[bool, bool]:
        """Whether its requests and its responses are cut."""
        client, target = link.client.name, link.target
        return self.partitions.cut(client, target), self.partitions.cut(target, client)


class Way:
    """One direction of a connection, and what is in the way there."""

    __slots__ = ("held", "lane", "muted")

    def __init__(self) -> None:
        self.held: list[Held] | None = None
        """What was sent into a partition; None while there is none."""
        self.lane: Lane | None = None
        """None while nothing is impaired."""
        self.muted = False
        """What is sent goes into the void."""


class PartitionedLink(Link):
    """A connection between two peers."""

    __slots__ = ("_answers", "_client_to_be_told", "_keepalive", "_latency", "_network", "_opened_s", "_requests",
                 "_responses", "_server_peer", "_server_to_be_told", "_wire", "client", "target")  # fmt: skip

    def __init__(self, network: Network, client: Peer, target: str, server: Peer | None) -> None:
        self._wire = network.wire_to(target)
        super().__init__(server.server if server is not None else None, client.name, self._wire.carry)
        self._network = network
        self.client = client
        self.target = target
        self._server_peer = server
        """None: there is no actor by that name."""
        self._requests = Way()
        self._responses = Way()
        self._latency: Any = None
        """For the wire: of all that the client sends."""
        self._answers: Any = None
        """Of what the server sends, but for watches."""
        self._opened_s = self._wire.now_s()
        self._keepalive: Timer | None = None
        """Runs while a direction is cut or muted."""
        self._client_to_be_told = ""
        """What broke the connection, until the client hears of it."""
        self._server_to_be_told = False

    # Messages

    def start(self, call: ClientEnd) -> None:
        if self.broken:
            return  # the caller itself is dead
        if self._latency is None:
            self._wire.add(call)
            self._latency = call.latency
        else:
            call.latency = self._latency
        self.calls[call] = None
        if self.server is not None:
            self.send(call, self.server.accept, call)
        elif not self.is_blocked():
            self._refuse()

    def attach(self, context: ServerEnd) -> None:
        self.contexts[context] = None
        if context.method.endswith("/Watch"):
            self._wire.add(context)
        elif self._answers is None:
            self._wire.add(context)
            self._answers = context.latency
        else:
            context.latency = self._answers

    def _steer(self, end: End, deliver: Deliver[P], payload: P) -> None:
        """``send`` while anything is in the way of either direction."""
        way = self._requests if end.is_client else self._responses
        if way.muted:
            return
        if way.held is not None:
            way.held.append((end, deliver, payload))
            source, target = self._ends_of(way)
            self._network.on_struck(self._network.partitions.cutting(source, target), source, target)
        elif way.lane is not None:
            self._pass(way, way.lane, end, deliver, payload)
        else:
            self._wire.carry(end, deliver, payload)

    def _pass(self, way: Way, lane: Lane, end: End, deliver: Deliver[P], payload: P) -> None:
        """Send along an impaired direction."""
        source, target = self._ends_of(way)

        def struck(fault: str) -> None:
            self._network.on_struck(fault, source, target)

        patience_s = self._network.partitions.keepalive_timeout_s
        wait_s = lane.wait_s(self._wire.now_s(), _size(payload), patience_s, struck)
        if wait_s < 0:
            way.muted = True
            self.settle()
            return
        self._wire.carry_later(wait_s, end, deliver, payload)
        if not isinstance(end, ClientEnd):
            return
        if isinstance(payload, ClientEnd) and end is payload and payload.is_repeatable:
            for again_s in lane.repeats(struck):
                again: Deliver[Any] = deliver
                self._wire.carry_later(wait_s + again_s, end, again, RepeatedCall(end))
        elif isinstance(payload, bytes) and end.method.endswith(BATCHES):
            for again_s in lane.repeats(struck):
                end.unread += len(payload)
                self._wire.carry_later(wait_s + again_s, end, deliver, payload)

    def _ends_of(self, way: Way) -> tuple[str, str]:
        """Who sends there, and who receives."""
        client, server = self.client.name, self.target
        return (client, server) if way is self._requests else (server, client)

    def _break(self) -> None:
        self.broken = True
        self.send = _discard

    # What is in the way

    def is_unanswered(self) -> bool:
        """Whether a ping gets no answer."""
        server = self._server_peer
        return self.is_blocked() or self.client.paused or (server is not None and server.paused)

    def is_blocked(self) -> bool:
        """Whether messages do not get through in one direction at least."""
        one, other = self._requests, self._responses
        return one.held is not None or other.held is not None or one.muted or other.muted

    def set_cut(self, requests: bool, responses: bool) -> None:
        """Close or open each direction."""
        released: list[Held] = []
        for way, cut in ((self._requests, requests), (self._responses, responses)):
            if cut != (way.held is not None):
                released += way.held or ()
                way.held = [] if cut else None
        self.settle()
        for end, deliver, payload in released:
            self.send(end, deliver, payload)
        self._announce_loss()

    def set_lanes(self, impairments: Impairments) -> None:
        for way in (self._requests, self._responses):
            way.lane = impairments.lane(*self._ends_of(way), way.lane)
        self.settle()

    def mute(self) -> None:
        """Both directions go silent: nothing is heard, and neither side is told."""
        if self.broken:
            return
        self._requests.muted = self._responses.muted = True
        self.settle()

    def settle(self) -> None:
        """Choose how to send, and whether keepalive has a reason to give up."""
        blocked = self.is_blocked()
        if not self.broken:
            clear = not blocked and self._requests.lane is None and self._responses.lane is None
            self.send = self._wire.carry if clear else self._steer
        if self.is_unanswered():
            if self._keepalive is None:
                self._keepalive = self._wire.call_later(self._keepalive_s(), self._keepalive_failed)
        elif self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
            self.connected = self.server is not None
            if self.server is None:
                self._refuse()

    def _keepalive_s(self) -> float:
        """From now until keepalive gives up: the time to the next ping, and the patience with it."""
        partitions = self._network.partitions
        every_s = partitions.keepalive_time_s
        to_ping_s = every_s - (self._wire.now_s() - self._opened_s) % every_s if every_s else 0.0
        return to_ping_s + partitions.keepalive_timeout_s

    def _keepalive_failed(self) -> None:
        self._keepalive = None
        self._break()
        self._client_notices("keepalive watchdog timeout" if self.connected else "connection timed out")
        self._server_notices()

    # Loss

    def lost_by(self, dead: Peer) -> None:
        """One side died. The other notices later, or never if it has died too."""
        self._break()
        if dead is self.client:
            self._server_to_be_told = True
        else:
            self._client_to_be_told = "connection reset by peer"
        self._announce_loss()

    def reset(self) -> None:
        """Something between the two has reset the connection: both notice."""
        self._break()
        self._server_to_be_told = True
        self._client_to_be_told = "connection reset by peer"
        self._announce_loss()

    def _announce_loss(self) -> None:
        """Tell who is left, unless something is in the way: then keepalive will."""
        if self._server_to_be_told and _is_open(self._requests):
            self._server_to_be_told = False
            self._wire.post_behind(self.calls, self._server_notices)
        if self._client_to_be_told and _is_open(self._responses):
            what, self._client_to_be_told = self._client_to_be_told, ""
            senders = (call.partner for call in self.calls if call.partner is not None)
            self._wire.post_behind(senders, self._client_notices, what)

    def _refuse(self) -> None:
        """No server listens: the client learns of it after a round trip."""
        self._break()
        self._wire.post_round_trip(self._client_notices, "connection refused")

    def _client_notices(self, what: str) -> None:
        client = self.client
        if client.paused:
            client.missed += (lambda: self._client_notices("connection reset by peer"),)
            return
        client.links.pop(self, None)
        if self.calls and not client.gone:
            if self.connected:
                self._network.on_lost(client.name, self.target)
            self.break_client(f"{self.target}: {what}")

    def _server_notices(self) -> None:
        server = self._server_peer
        if server is None:
            return
        if server.paused:
            server.missed += (self._server_notices,)
            return
        server.links.pop(self, None)
        if self.contexts and not server.gone:
            self._network.on_lost(server.name, self.client.name)
            self.break_server()


def _is_open(way: Way) -> bool:
    return way.held is None and not way.muted


def _size(payload: object) -> int:
    """About how many bytes a message takes."""
    if isinstance(payload, bytes):
        return HEADER_BYTES + len(payload)
    if isinstance(payload, ClientEnd):
        return HEADER_BYTES + len(payload.request)
    if isinstance(payload, Status):
        response = payload.message.SerializeToString() if payload.message is not None else payload.response or b""
        return HEADER_BYTES + len(response)
    return HEADER_BYTES


def _discard(end: End, deliver: Deliver[P], payload: P) -> None:
    """``send`` of a broken connection."""


def _unheard(fault: str, source: str, target: str) -> None:
    """``on_struck`` where it is not asked for."""
