"""Every message takes longer by a time of its own."""

from __future__ import annotations

import random

from kemu.lab.exploration.plans import ChooserSpec, Feedback, Plan
from kemu.lab.exploration.strategies import swarms
from kemu.lab.exploration.strategies.subjects import Link, Subject
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.sim.steering.messages import Message

WIDTHS_NS = (2 * MILLISECOND_NS, 20 * MILLISECOND_NS, 200 * MILLISECOND_NS, 2000 * MILLISECOND_NS)
SHARES = (0.03, 0.3, 1.0)
"""How many of the messages of a link are late."""
LINKS = (0.3, 1.0)
"""How many links have late messages."""


class Uniform:
    """Draws delays from one stream for each link: one more message shifts nothing on other links."""

    name = "uniform"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._swarm = swarms.Swarm(subject, seed, "uniform")

    def plan(self, number: int, feedback: Feedback) -> Plan:
        drawn = self._swarm.draw(number)
        stream = drawn.stream
        return drawn.plan(chooser=drawn_widths(stream, stream.choice(LINKS), drawn.span_ns(WIDTHS_NS)))


def drawn_widths(stream: random.Random, links: float, width_ns: int = 0) -> ChooserSpec:
    """A chooser for a random share of messages; without a width, of a random one."""
    width_ns, share = width_ns or stream.choice(WIDTHS_NS), stream.choice(SHARES)
    seed = stream.getrandbits(32)
    return ChooserSpec(f"{__name__}:Widths", {"width_ns": width_ns, "share": share, "links": links, "seed": seed})


class Widths:
    """Delays up to a width for a share of the messages of a part of the links."""

    def __init__(self, width_ns: int, share: float, links: float, seed: int) -> None:
        self._width_ns = width_ns
        self._share = share
        self._links = links
        self._seed = seed
        self._streams: dict[Link, random.Random | None] = {}

    def delay_ns(self, message: Message) -> int:
        link = message.source, message.target
        stream = self._streams.get(link)
        if stream is None:
            if link in self._streams:
                return 0
            stream = random_streams.random_stream(self._seed, *link)
            if stream.random() >= self._links:
                self._streams[link] = None
                return 0
            self._streams[link] = stream
        # Two draws whatever comes of the first: the n-th message of a link has the n-th pair.
        is_late, part = stream.random() < self._share, stream.random()
        return int(part * self._width_ns) if is_late else 0
