"""The simulated wires: how long a message takes, drawn from the seed.

``rpc.networks`` says what a connection does; here is when its messages arrive. Neighbours: ``loops`` carries the
messages, ``simulation`` makes the network and adds actors to it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.runtime import distributions, random_streams
from kemu.runtime.env import SECOND_NS
from kemu.runtime.rpc.ends import ClientEnd, Deliver, End, ServerEnd
from kemu.runtime.rpc.partitions import DEFAULT_KEEPALIVE_TIMEOUT_S
from kemu.runtime.sim.agendas import LoopTimer
from kemu.runtime.sim.loops import VirtualLoop

DEFAULT_LATENCY_S = 0.001


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

    def next_ns(self) -> int:
        return self.constant_ns if self.constant_ns >= 0 else self.draw_ns()


class SimWire:
    """Connections to servers of one class."""

    __slots__ = ("_latency", "_loop", "_watch_latency")

    def __init__(self, loop: VirtualLoop, latency: Latency, watch_latency: Latency) -> None:
        """``watch_latency``: of what the server sends in watches; ``latency``: of everything else."""
        self._loop = loop
        self._latency = latency
        self._watch_latency = watch_latency

    def add(self, end: ClientEnd | ServerEnd) -> None:
        is_watch = not end.is_client and end.method.endswith("/Watch")
        end.latency = self._watch_latency if is_watch else self._latency

    def carry(self, end: End, deliver: Deliver, payload: Any) -> None:
        latency = end.latency
        delay_ns = latency.constant_ns
        if delay_ns < 0:
            delay_ns = latency.draw_ns()
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

    def carry_later(self, seconds: float, end: End, deliver: Deliver, payload: Any) -> None:
        when_ns = self._loop.now_ns + end.latency.next_ns() + round(seconds * SECOND_NS)
        when_ns = end.last_ns = max(when_ns, end.last_ns)
        self._loop.post(when_ns, deliver, (payload,))

    def post_behind(self, senders: Iterable[End], callback: Callable[..., object], *args: object) -> None:
        when_ns = self._loop.now_ns + self._latency.next_ns()
        for sender in senders:
            when_ns = max(when_ns, sender.last_ns)
        self._loop.post(when_ns, callback, args)

    def post_round_trip(self, callback: Callable[..., object], *args: object) -> None:
        self._loop.post(self._loop.now_ns + 2 * self._latency.next_ns(), callback, args)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> LoopTimer:
        return self._loop.set_timer(self._loop.now_ns + round(seconds * SECOND_NS), callback, (), None)

    def now_s(self) -> float:
        return self._loop.now_ns / SECOND_NS


class SimWires:
    """The wires of a run. Times in ``timing`` are seconds or distributions of seconds:

    ``apiLatency`` (client to API server and back), ``watchLatency`` (API server's watch messages to a client),
    ``storeLatency`` (API server and store), ``otherLatency`` (all other connections),
    ``keepaliveTime`` (from one keepalive ping to the next; 0: there is always one under way), ``keepaliveTimeout`` (how
    long its answer may take until the connection breaks).
    """

    def __init__(self, loop: VirtualLoop, seed: int, timing: Mapping[str, Any]) -> None:
        stream = random_streams.random_stream(seed, "network")

        def latency(key: str) -> Latency:
            return Latency(distributions.parse(timing.get(key, DEFAULT_LATENCY_S)), stream)

        self._api = SimWire(loop, latency("apiLatency"), latency("watchLatency"))
        store = latency("storeLatency")
        self._store = SimWire(loop, store, store)
        other = latency("otherLatency")
        self._other = SimWire(loop, other, other)
        self.keepalive_time_s = float(timing.get("keepaliveTime", 0.0))
        self.keepalive_timeout_s = float(timing.get("keepaliveTimeout", DEFAULT_KEEPALIVE_TIMEOUT_S))

    def to(self, target: str) -> SimWire:
        if target == "store":
            return self._store
        if target.startswith("apiserver/"):
            return self._api
        return self._other
