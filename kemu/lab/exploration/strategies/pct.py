"""Links have priorities: what a link of low priority carries comes after everything of the links above it.

See :mod:`priorities`. A delay is the rank of the link times a step: what is sent at one time arrives in the order of
the ranks if the step is longer than the others take to react. So steps are drawn, from a message's own time to that of
a pod's start.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from kemu.lab.exploration.plans import ChooserSpec, Feedback, Plan
from kemu.lab.exploration.strategies import swarms
from kemu.lab.exploration.strategies.priorities import Priorities
from kemu.lab.exploration.strategies.subjects import Link, Subject
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.sim.steering.messages import Message

STEPS_NS = (3 * MILLISECOND_NS, 30 * MILLISECOND_NS, 300 * MILLISECOND_NS, 1000 * MILLISECOND_NS)
DEPTHS = (1, 2, 3)
MOST_LINKS = 8
"""That have priorities of their own in one run; the others carry everything at once."""
LOWEST_RANK = MOST_LINKS - 1 + DEPTHS[-1] - 1
"""Lowest rank of a link that has fallen at every change."""


class Pct:
    """Probabilistic concurrency testing of the links, with depths 1 to 3 in turn."""

    name = "pct"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._subject = subject
        self._swarm = swarms.Swarm(subject, seed, "pct")

    def plan(self, number: int, feedback: Feedback) -> Plan:
        drawn = self._swarm.draw(number)
        stream = drawn.stream
        step_ns = drawn.span_ns([LOWEST_RANK * step_ns for step_ns in STEPS_NS]) // LOWEST_RANK
        loads = self._subject.baseline().loads
        links = sorted(loads)
        threads = sorted(stream.sample(links, min(MOST_LINKS, len(links))))
        parameters = {
            "links": [[*link, loads[link]] for link in threads],
            "depth": DEPTHS[number % len(DEPTHS)],
            "step_ns": step_ns,
            "seed": stream.getrandbits(32),
        }
        return drawn.plan(chooser=ChooserSpec(f"{__name__}:ranks", parameters))


def ranks(links: Sequence[tuple[str, str, int]], depth: int, step_ns: int, seed: int) -> Ranks:
    """``links``: source, target, and how many messages it carries, about."""
    loads = {(source, target): load for source, target, load in links}
    return Ranks(loads, depth, step_ns, random_streams.random_stream(seed, "pct"))


class Ranks:
    """Each message is later by the rank of its link, times a step."""

    def __init__(self, loads: Mapping[Link, int], depth: int, step_ns: int, stream: random.Random) -> None:
        """``loads``: how many messages each link carries, about."""
        self._priorities = Priorities(list(loads), sum(loads.values()), depth, stream)
        self._step_ns = step_ns

    def delay_ns(self, message: Message) -> int:
        link = message.source, message.target
        return self._priorities.rank(link) * self._step_ns if link in self._priorities else 0
