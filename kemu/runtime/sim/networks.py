"""The simulated network: latency drawn from the seed, partitions, and connections that break.

Links are TCP-like. What one end of a call sends arrives in order, after a latency that is drawn for each message;
different calls overtake each other. A partition holds messages back. If it is healed in time they arrive late, as after
retransmission; otherwise keepalive breaks the connection at both ends, and what was held back is lost. When an
actor dies its peers learn after one latency, behind what it had sent. Messages under way when a partition
begins still arrive.

Neighbours: ``links`` says what a link is, ``loops`` carries the messages, ``sim`` tells who lives and dies.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.runtime import distributions, streams
from kemu.runtime.env import SECOND_NS
from kemu.runtime.rpc.channels import Call
from kemu.runtime.rpc.links import End, Link
from kemu.runtime.rpc.servers import Context, Server
from kemu.runtime.sim.agendas import Timer
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.owners import Condition, Owner

DEFAULT_LATENCY_S = 0.001
DEFAULT_KEEPALIVE_TIMEOUT_S = 5.0

Event = Callable[[str, str, Mapping[str, Any]], None]
"""Logs an event: actor, kind, data."""

Held = tuple[End, Callable[[Any], object], Any]
"""A message that was sent into a partition: the arguments of ``Link.send``."""


class Latency:
    """One-way delay of a class of messages."""

    __slots__ = ("_distribution", "_stream", "constant_ns")

    def __init__(self, distribution: distributions.Distribution, stream: Any) -> None:
        self._distribution = distribution
        self._stream = stream
        constant = distribution.constant
        self.constant_ns = -1 if constant is None else round(constant * SECOND_NS)
        """-1: to be drawn."""

    def draw_ns(self) -> int:
        return max(0, round(self._distribution.draw(self._stream) * SECOND_NS))


class Host:
    """An actor's place in the network, for one incarnation."""

    __slots__ = ("links", "name", "owner", "server")

    def __init__(self, owner: Owner, server: Server) -> None:
        self.name = owner.name
        self.owner = owner
        self.server = server
        self.links: dict[SimLink, None] = {}
        """Of both directions, oldest first."""


@dataclass(frozen=True)
class Partition:
    a: frozenset[str]
    b: frozenset[str]
    one_way: bool
    """Only what ``a`` sends to ``b`` is cut."""

    def cuts(self, source: str, target: str) -> bool:
        return (source in self.a and target in self.b) or (not self.one_way and source in self.b and target in self.a)


class Network:
    """All hosts and links. Times in ``timing`` are seconds or distributions of seconds:

    ``apiLatency`` (client to API server and back), ``watchLatency`` (API server's watch messages to a client),
    ``storeLatency`` (API server and store), ``keepaliveTimeout`` (when a cut connection breaks).
    """

    def __init__(self, loop: VirtualLoop, seed: int, timing: Mapping[str, Any], log: Event) -> None:
        self.loop = loop
        self._log = log
        stream = streams.random_stream(seed, "network")

        def latency(key: str) -> Latency:
            return Latency(distributions.parse(timing.get(key, DEFAULT_LATENCY_S)), stream)

        self._api = latency("apiLatency")
        self._watch = latency("watchLatency")
        self._store = latency("storeLatency")
        self._other = Latency(distributions.Constant(DEFAULT_LATENCY_S), stream)
        self.keepalive_timeout_ns = round(
            float(timing.get("keepaliveTimeout", DEFAULT_KEEPALIVE_TIMEOUT_S)) * SECOND_NS
        )
        self._hosts: dict[str, Host] = {}
        self._partitions: dict[str, Partition] = {}

    # Hosts

    def join(self, host: Host) -> None:
        self._hosts[host.name] = host

    def leave(self, host: Host) -> None:
        """The actor is gone, with or without a word; its peers will notice. Its name is free for a successor."""
        host.server.close()
        if self._hosts.get(host.name) is host:
            del self._hosts[host.name]
        for link in list(host.links):
            link.lost_by(host)
        host.links.clear()

    def connect(self, client: Host, target: str) -> SimLink:
        server = self._hosts.get(target)
        link = SimLink(self, client, target, server)
        if client.owner.condition is Condition.DEAD:
            link.broken = True
            return link
        client.links[link] = None
        if server is not None:
            server.links[link] = None
        self._apply_partitions(link)
        link.connected = server is not None and not link.is_cut()
        return link

    def latencies(self, target: str) -> tuple[Latency, Latency]:
        """Of messages to and from a server, and of those from it in watches."""
        if target == "store":
            return self._store, self._store
        if target.startswith("apiserver/"):
            return self._api, self._watch
        return self._other, self._other

    # Partitions

    def partition(self, fault: str, a: Sequence[str], b: Sequence[str], one_way: bool) -> None:
        if fault in self._partitions:
            raise ValueError(f"partition {fault!r} is there already")
        self._partitions[fault] = Partition(frozenset(a), frozenset(b), one_way)
        self._reconsider()

    def heal(self, fault: str) -> None:
        if fault not in self._partitions:
            raise ValueError(f"there is no partition {fault!r}")
        del self._partitions[fault]
        self._reconsider()

    def _reconsider(self) -> None:
        for host in list(self._hosts.values()):
            for link in list(host.links):
                self._apply_partitions(link)

    def _apply_partitions(self, link: SimLink) -> None:
        requests = responses = False
        for partition in self._partitions.values():
            requests = requests or partition.cuts(link.client.name, link.target)
            responses = responses or partition.cuts(link.target, link.client.name)
        link.set_cut(requests, responses)

    def lost(self, survivor: str, peer: str) -> None:
        self._log(survivor, "net.connection_lost", {"peer": peer})


class SimLink(Link):
    """A connection between two hosts."""

    __slots__ = ("_held_requests", "_held_responses", "_keepalive", "_latency", "_lost_by", "_network",
                 "_watch_latency", "client", "host", "target")  # fmt: skip

    loop: VirtualLoop

    def __init__(self, network: Network, client: Host, target: str, host: Host | None) -> None:
        super().__init__(network.loop, host.server if host is not None else None, client.name)
        self._network = network
        self._latency, self._watch_latency = network.latencies(target)
        self.client = client
        self.host = host
        """Of the server; None when there is none by that name."""
        self.target = target
        self._held_requests: list[Held] | None = None
        """What the client has sent into a partition; None while that direction is open."""
        self._held_responses: list[Held] | None = None
        self._keepalive: Timer | None = None
        """Runs while either direction is cut."""
        self._lost_by: Host | None = None
        """The side that died, until the other one notices."""

    # Messages

    def start(self, call: Call) -> None:
        if self.broken:
            return  # the caller itself is dead
        call.latency = self._latency
        self.calls[call] = None
        if self.server is not None:
            self.send(call, self.server.accept, call)
        elif not self.is_cut():
            self._refuse()

    def attach(self, context: Context) -> None:
        self.contexts[context] = None
        context.latency = self._watch_latency if context.partner.method.endswith("/Watch") else self._latency

    def send(self, end: End, deliver: Callable[[Any], object], payload: Any) -> None:
        if self.broken:
            return
        if self._keepalive is not None:
            held = self._held_requests if isinstance(end, Call) else self._held_responses
            if held is not None:
                held.append((end, deliver, payload))
                return
        latency = end.latency
        delay_ns = latency.constant_ns
        if delay_ns < 0:
            delay_ns = latency.draw_ns()
        loop = self.loop
        when_ns = loop.now_ns + delay_ns
        if when_ns < end.last_ns:
            when_ns = end.last_ns
        else:
            end.last_ns = when_ns
        if when_ns == loop.now_ns:
            loop.ready.append((deliver, (payload,), None))
            return
        # Agenda.push, inlined: every message goes this way.
        agenda = loop.foreground
        bucket = agenda.buckets.get(when_ns)
        if bucket is None:
            agenda.buckets[when_ns] = [(deliver, (payload,), None)]
            heapq.heappush(agenda.times, when_ns)
        else:
            bucket.append((deliver, (payload,), None))

    def _latency_ns(self) -> int:
        latency = self._latency
        return latency.constant_ns if latency.constant_ns >= 0 else latency.draw_ns()

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
                self._keepalive = self.loop.set_timer(
                    self.loop.now_ns + self._network.keepalive_timeout_ns, self._keepalive_failed, (), None
                )
        elif self._keepalive is not None:
            self._keepalive.cancel()
            self._keepalive = None
            self.connected = self.server is not None
            if self.server is None:
                self._refuse()
        for end, deliver, payload in released:
            self.send(end, deliver, payload)
        if self._lost_by is not None:
            self._announce_loss()

    def _keepalive_failed(self) -> None:
        self._keepalive = None
        self.broken = True
        what = "keepalive watchdog timeout" if self.connected else "connection timed out"
        self._client_notices(what)
        self._server_notices()

    # Loss

    def lost_by(self, dead: Host) -> None:
        """One side has died. The other notices later, or never if it has died too."""
        self.broken = True
        self._lost_by = dead
        self._announce_loss()

    def _announce_loss(self) -> None:
        """Unless a partition is in the way: then keepalive will tell."""
        client_died = self._lost_by is self.client
        if (self._held_requests if client_died else self._held_responses) is not None:
            return
        self._lost_by = None
        when_ns = self.loop.now_ns + self._latency_ns()
        for call in self.calls:
            sender: End | None = call if client_died else call.partner
            if sender is not None and sender.last_ns > when_ns:
                when_ns = sender.last_ns
        if client_died:
            self.loop.post(when_ns, self._server_notices, ())
        else:
            self.loop.post(when_ns, self._client_notices, ("connection reset by peer",))

    def _refuse(self) -> None:
        """Nobody listens: the client learns after a round trip."""
        self.broken = True
        when_ns = self.loop.now_ns + 2 * self._latency_ns()
        self.loop.post(when_ns, self._client_notices, ("connection refused",))

    def _client_notices(self, what: str) -> None:
        client = self.client
        client.links.pop(self, None)
        if self.calls and client.owner.condition is not Condition.DEAD:
            if self.connected:
                self._network.lost(client.name, self.target)
            self.break_client(f"{self.target}: {what}")

    def _server_notices(self) -> None:
        host = self.host
        if host is None:
            return
        host.links.pop(self, None)
        if self.contexts and host.owner.condition is not Condition.DEAD:
            self._network.lost(host.name, self.client.name)
            self.break_server()
