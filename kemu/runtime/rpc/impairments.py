"""Impairments: what makes messages late between actors, or has them come twice.

An impairment is a fault that lasts: a delay, a limited bandwidth, lost packets, repeated requests. ``networks`` asks a
connection's :class:`Lane`, one for each direction, how long a message has to wait. Where nothing is impaired there are
no lanes, and none are asked for.

Connections are TCP-like, and so is their loss: a lost packet is sent again after a timeout that doubles each time, and
what was sent behind it waits. A packet that has not come through when keepalive would give up ends the connection
(gRPC sets TCP_USER_TIMEOUT to its keepalive timeout).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.runtime import distributions

RETRANSMISSION_S = 0.2
"""The first timeout: Linux' TCP_RTO_MIN, which connections within a data centre have."""
MOST_RETRANSMISSION_S = 120.0
"""Linux' TCP_RTO_MAX."""

Streams = Callable[[str, str], random.Random]
"""The random stream of a fault for what one actor sends to another."""


@dataclass
class Impairment:
    """A fault that concerns what some actors send to some others."""

    fault: str
    """Its id."""
    sources: frozenset[str]
    targets: frozenset[str]
    streams: Streams
    delay: distributions.Distribution | None = None
    bytes_per_s: float = 0.0
    """0: no limit."""
    loss: float = 0.0
    """The probability with which a packet is lost."""
    repeats: float = 0.0
    """The probability with which a request is sent again."""
    repeat_after: distributions.Distribution | None = None
    _drawing: dict[tuple[str, str], random.Random] = field(default_factory=dict)

    def stream(self, source: str, target: str) -> random.Random:
        """Stream of all connections between the two, one after the other."""
        key = (source, target)
        if key not in self._drawing:
            self._drawing[key] = self.streams(source, target)
        return self._drawing[key]


def impairment(fault: str, what: str, parameters: Mapping[str, Any], streams: Streams) -> Impairment:
    """Impairment of a fault whose kind is ``delay``, ``bandwidth``, ``drop`` or ``duplicate``."""
    made = Impairment(fault, frozenset(parameters["from"]), frozenset(parameters["to"]), streams)
    if what == "delay":
        made.delay = distributions.parse(parameters["by"])
    elif what == "bandwidth":
        made.bytes_per_s = parameters["bytesPerSecond"]
    elif what == "drop":
        made.loss = parameters["probability"]
    else:
        made.repeats = parameters["probability"]
        made.repeat_after = distributions.parse(parameters["after"])
    return made


KINDS = ("delay", "bandwidth", "drop", "duplicate")
"""The kinds of faults that are impairments."""


class Lane:
    """One direction of a connection, as impairments leave it."""

    __slots__ = ("_free_s", "_impairments", "_streams")

    def __init__(self, impairments: Iterable[Impairment], source: str, target: str, before: Lane | None) -> None:
        """``before``: the lane that this one replaces, when a fault more or less is in force."""
        self._impairments = tuple(impairments)
        self._streams = [one.stream(source, target) for one in self._impairments]
        self._free_s: float = before._free_s if before is not None else 0.0
        """Until then the connection is busy with what was sent before."""

    def wait_s(self, now_s: float, size: int, patience_s: float, struck: Callable[[str], None]) -> float:
        """How much later a message of that size sets out; negative: never, and nothing behind it either."""
        leaves_s = max(now_s, self._free_s)
        delay_s = 0.0
        for one, stream in zip(self._impairments, self._streams, strict=True):
            if one.bytes_per_s:
                leaves_s += size / one.bytes_per_s
                self._free_s = leaves_s
                struck(one.fault)
            if one.loss:
                stall_s, timeout_s = 0.0, RETRANSMISSION_S
                while stream.random() < one.loss:
                    struck(one.fault)
                    stall_s += timeout_s
                    timeout_s = min(2 * timeout_s, MOST_RETRANSMISSION_S)
                    if stall_s > patience_s:
                        return -1.0
                leaves_s += stall_s
                self._free_s = max(self._free_s, leaves_s)
            if one.delay is not None:
                drawn_s = max(0.0, one.delay.draw(stream))
                delay_s += drawn_s
                if drawn_s:
                    struck(one.fault)
        return leaves_s - now_s + delay_s

    def repeats(self, struck: Callable[[str], None]) -> list[float]:
        """How much later a request that was sent now is sent again, for each time that it is."""
        again = []
        for one, stream in zip(self._impairments, self._streams, strict=True):
            if one.repeats and stream.random() < one.repeats:
                struck(one.fault)
                assert one.repeat_after is not None
                again.append(max(0.0, one.repeat_after.draw(stream)))
        return again


class Impairments:
    """Those in force."""

    def __init__(self) -> None:
        self._all: dict[str, Impairment] = {}

    def add(self, impairment: Impairment) -> None:
        self._all[impairment.fault] = impairment

    def remove(self, fault: str) -> None:
        self._all.pop(fault, None)

    def lane(self, source: str, target: str, before: Lane | None) -> Lane | None:
        """From one actor to the other; None: nothing is impaired."""
        if not self._all:
            return None
        found = [one for one in self._all.values() if source in one.sources and target in one.targets]
        return Lane(found, source, target, before) if found else None

    def __bool__(self) -> bool:
        return bool(self._all)
