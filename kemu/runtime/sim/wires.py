"""The simulated wires: how long a message takes, drawn from the seed.

``rpc.networks`` says what a connection does; here is when its messages arrive. Neighbours: ``loops`` carries the
messages, ``simulation`` makes the network and adds actors to it.
"""

from __future__ import annotations

import functools
import heapq
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from kemu.runtime.random_streams import EarlyStream, Streams
from kemu.runtime.rpc.ends import ClientEnd, Deliver, End, P, ServerEnd
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S
from kemu.runtime.sim.agendas import LoopTimer
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.redraws import Redrawing
from kemu.runtime.sim.steering.steering import Steering, ends_of

DEFAULT_LATENCY_S = 0.001
LATENCIES = ("apiLatency", "watchLatency", "storeLatency", "otherLatency")
"""The latencies of :class:`SimWires`."""
_DRAWN_AT_ONCE = 8


class Latency:
    """One-way delay of a class of messages, on one link or on all."""

    __slots__ = ("_distribution", "_stream", "constant_ns", "drawn")

    def __init__(self, distribution: distributions.Distribution, stream: EarlyStream | None = None) -> None:
        """``stream``: from which it is drawn, unless it is constant."""
        self._distribution = distribution
        self._stream = stream
        constant = distribution.constant
        self.constant_ns = -1 if constant is None else round(constant * SECOND_NS)
        """-1: to be drawn."""
        self.drawn: list[int] = []
        """Delays of the next messages, the next one last."""

    def draw_ns(self) -> int:
        if not self.drawn:
            assert self._stream is not None
            # One number of the stream for each message, so that the n-th message of a link always gets the same.
            shares = self._stream.randoms(_DRAWN_AT_ONCE)
            shares.reverse()
            self.drawn = [max(0, round(seconds * SECOND_NS)) for seconds in self._distribution.quantiles(shares)]
        return self.drawn.pop()

    def next_ns(self) -> int:
        return self.constant_ns if self.constant_ns >= 0 else self.draw_ns()


class RedrawnLatency(Latency):
    """In a run whose future is drawn anew: a message that is on its way at that instant takes another time."""

    __slots__ = ("_again", "_draw", "_redrawing")

    def __init__(self, distribution: distributions.Distribution, stream: random.Random, again: Again) -> None:
        super().__init__(distribution)
        self._draw = stream.random
        self._redrawing, self._again = again

    def draw_ns(self) -> int:
        # One by one: the stream is soon another.
        return self._redrawing.lasting(self._quantile_ns(self._draw), self._draw_again_ns)

    def _draw_again_ns(self) -> int:
        return self._quantile_ns(self._again)

    def _quantile_ns(self, draw: Callable[[], float]) -> int:
        return max(0, round(self._distribution.quantile(draw()) * SECOND_NS))


Again = tuple[Redrawing, Callable[[], float]]
"""Who draws anew, and the numbers for it."""


class Latencies:
    """The delays of a class of messages: the same everywhere if it is constant, else each link draws its own."""

    __slots__ = ("_by_link", "_distribution", "_key", "_redrawing", "_streams", "constant", "of_losses")

    def __init__(
        self, key: str, distribution: distributions.Distribution, streams: Streams, redrawing: Redrawing | None = None
    ) -> None:
        self._key = key
        self._distribution = distribution
        self._streams = streams
        self._redrawing = redrawing
        self._by_link: dict[tuple[str, str], Latency] = {}
        self.constant = Latency(distribution) if distribution.constant is not None else None
        self.of_losses = self.constant or self._drawn("losses", key)
        """The latency of the news that a connection is broken."""

    def of(self, source: str, target: str) -> Latency:
        """The latency of what one actor sends to the other."""
        link = (source, target)
        found = self.constant or self._by_link.get(link)
        if found is None:
            found = self._by_link[link] = self._drawn("link", self._key, source, target)
        return found

    def _drawn(self, *names: str) -> Latency:
        if self._redrawing is None:
            return Latency(self._distribution, EarlyStream(functools.partial(self._streams.stream, *names)))
        again = self._redrawing, self._redrawing.stream(*names)
        return RedrawnLatency(self._distribution, self._streams.stream(*names), again)


class SimWire:
    """Connections to servers of one class."""

    __slots__ = ("_latencies", "_loop", "_watch_latencies", "carry")

    def __init__(self, loop: VirtualLoop, latencies: Latencies, watch_latencies: Latencies) -> None:
        """``watch_latencies``: of what the server sends in watches; ``latencies``: of everything else."""
        self._loop = loop
        self._latencies = latencies
        self._watch_latencies = watch_latencies
        self.carry: Callable[[End, Deliver[Any], Any], None] = self._carry
        """Once for all connections."""

    def add(self, end: ClientEnd | ServerEnd) -> None:
        is_watch = not end.is_client and end.method.endswith("/Watch")
        latencies = self._watch_latencies if is_watch else self._latencies
        end.latency = latencies.constant or latencies.of(*ends_of(end))

    def _carry(self, end: End, deliver: Deliver[P], payload: P) -> None:
        latency = end.latency
        delay_ns = latency.constant_ns
        if delay_ns < 0:
            drawn = latency.drawn
            delay_ns = drawn.pop() if drawn else latency.draw_ns()
        loop = self._loop
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

    def carry_later(self, seconds: float, end: End, deliver: Deliver[P], payload: P) -> None:
        self._post(self._loop.now_ns + end.latency.next_ns() + round(seconds * SECOND_NS), end, deliver, payload)

    def _post(self, when_ns: int, end: End, deliver: Deliver[P], payload: P) -> None:
        when_ns = end.last_ns = max(when_ns, end.last_ns)
        self._loop.post(when_ns, deliver, (payload,))

    def post_behind(self, senders: Iterable[End], callback: Callable[..., object], *args: object) -> None:
        when_ns = self._loop.now_ns + self._latencies.of_losses.next_ns()
        for sender in senders:
            when_ns = max(when_ns, sender.last_ns)
        self._loop.post(when_ns, callback, args)

    def post_round_trip(self, callback: Callable[..., object], *args: object) -> None:
        self._loop.post(self._loop.now_ns + 2 * self._latencies.of_losses.next_ns(), callback, args)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> LoopTimer:
        return self._loop.set_timer(self._loop.now_ns + round(seconds * SECOND_NS), callback, (), None)

    def now_s(self) -> float:
        return self._loop.now_ns / SECOND_NS


class SteeredWire(SimWire):
    """The same, where it is chosen when messages arrive."""

    __slots__ = ("_steering",)

    def __init__(self, loop: VirtualLoop, latencies: Latencies, watch_latencies: Latencies, steering: Steering) -> None:
        super().__init__(loop, latencies, watch_latencies)
        self._steering = steering
        self.carry = steering.carry

    def add(self, end: ClientEnd | ServerEnd) -> None:
        super().add(end)
        end.latency = self._steering.road(end, end.latency.constant_ns, end.latency.next_ns)

    def _post(self, when_ns: int, end: End, deliver: Deliver[P], payload: P) -> None:
        self._steering.carry(end, deliver, payload, when_ns)


class SimWires:
    """The wires of a run. Times in ``timing`` are seconds or distributions of seconds:

    ``apiLatency`` (client to API server and back), ``watchLatency`` (API server's watch messages to a client),
    ``storeLatency`` (API server and store), ``otherLatency`` (all other connections),
    ``keepaliveTime`` (from one keepalive ping to the next; 0: there is always one under way), ``keepaliveTimeout`` (how
    long its answer may take until the connection breaks).
    """

    def __init__(
        self,
        loop: VirtualLoop,
        streams: Streams,
        timing: Mapping[str, Any],
        steering: Steering | None = None,
        redrawing: Redrawing | None = None,
    ) -> None:
        def latencies(key: str) -> Latencies:
            return Latencies(key, distributions.parse(timing.get(key, DEFAULT_LATENCY_S)), streams, redrawing)

        def wire(ordinary: Latencies, of_watches: Latencies) -> SimWire:
            if steering is None:
                return SimWire(loop, ordinary, of_watches)
            return SteeredWire(loop, ordinary, of_watches, steering)

        self._api = wire(latencies("apiLatency"), latencies("watchLatency"))
        store, other = latencies("storeLatency"), latencies("otherLatency")
        self._store, self._other = wire(store, store), wire(other, other)
        self.keepalive_time_s = float(timing.get("keepaliveTime", 0.0))
        self.keepalive_timeout_s = float(timing.get("keepaliveTimeout", DEFAULT_KEEPALIVE_TIMEOUT_S))

    def to(self, target: str) -> SimWire:
        if target == "store":
            return self._store
        if target.startswith("apiserver/"):
            return self._api
        return self._other
