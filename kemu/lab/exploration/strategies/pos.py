"""Every message has a random priority, and gets another one when its receiver has heard something else.

Partial order sampling (Yuan, Yang and Gu, CAV 2018): only the order of messages to one receiver matters, so a message
that has lost against another one of the same receiver draws again. That makes orders that are as far apart as possible
about equally likely.
"""

from __future__ import annotations

import random

from kemu.lab.exploration.plans import ChooserSpec, Feedback, Plan
from kemu.lab.exploration.strategies import swarms
from kemu.lab.exploration.strategies.subjects import Subject
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.sim.steering.choosers import Flight
from kemu.runtime.sim.steering.messages import Message

WIDTHS_NS = (5 * MILLISECOND_NS, 50 * MILLISECOND_NS, 500 * MILLISECOND_NS)
MOST_DRAWS = 8
"""Most draws of one message: a receiver that hears much must hear everything some time."""


class Pos:
    """Partial order sampling."""

    name = "pos"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._swarm = swarms.Swarm(subject, seed, "pos")

    def plan(self, number: int, feedback: Feedback) -> Plan:
        drawn = self._swarm.draw(number)
        parameters = {"width_ns": drawn.span_ns(WIDTHS_NS), "seed": drawn.stream.getrandbits(32)}
        return drawn.plan(chooser=ChooserSpec(f"{__name__}:Orders", parameters))


class Orders:
    """Draws when each message arrives, and again when another one of the same receiver has."""

    def __init__(self, width_ns: int, seed: int) -> None:
        self._width_ns = width_ns
        self._seed = seed
        self._streams: dict[str, random.Random] = {}
        self._pending: dict[str, dict[Message, int]] = {}
        """By receiver: how often each has been drawn."""

    def begin(self, flight: Flight) -> None:
        self._flight = flight

    def delay_ns(self, message: Message) -> int:
        self._pending.setdefault(message.target, {})[message] = 1
        return self._draw_ns(message.target)

    def delivered(self, message: Message) -> None:
        pending = self._pending[message.target]
        del pending[message]
        now_ns = self._flight.now_ns()
        for other, draws in pending.items():
            if draws < MOST_DRAWS and (other.source, other.target) != (message.source, message.target):
                pending[other] = draws + 1
                self._flight.move(other, now_ns - other.sent_ns + self._draw_ns(other.target))

    def _draw_ns(self, receiver: str) -> int:
        stream = self._streams.get(receiver)
        if stream is None:
            stream = self._streams[receiver] = random_streams.random_stream(self._seed, receiver)
        return int(stream.random() * self._width_ns)
