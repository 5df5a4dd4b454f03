"""Only messages that decide something are late: bindings, nominations, what watches tell, statuses."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from kemu.lab.exploration.plans import ChooserSpec, Feedback, Plan
from kemu.lab.exploration.strategies import swarms
from kemu.lab.exploration.strategies.subjects import Subject
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.holds import Label
from kemu.runtime.sim.steering.choosers import Flight
from kemu.runtime.sim.steering.messages import Message

SELECTED: dict[str, tuple[str, ...]] = {
    "bindings": ("bind", "bind-answered", "bind-refused", "bound"),
    "nominations": ("nominated", "nomination-cleared"),
    "arrivals": ("added", "create", "create-answered"),
    "endings": (
        "deleted",
        "terminating",
        "succeeded",
        "failed",
        "delete",
        "delete-answered",
        "evict",
        "evict-answered",
    ),
    "statuses": ("patch-status", "patch-status-answered", "update-status", "modified", "running", "conditioned"),
    "taints": ("tainted", "patch", "patch-answered"),
}
"""What a message is about, by groups of which each run takes some."""
SHARES = (0.05, 0.2, 0.6)
LIMITS_NS = (50 * MILLISECOND_NS, 500 * MILLISECOND_NS, 3000 * MILLISECOND_NS)


class Walk:
    """A random walk over selected events."""

    name = "walk"

    def __init__(self, subject: Subject, seed: int) -> None:
        self._swarm = swarms.Swarm(subject, seed, "walk")

    def plan(self, number: int, feedback: Feedback) -> Plan:
        drawn = self._swarm.draw(number)
        stream = drawn.stream
        groups = [name for name in SELECTED if stream.random() < 0.5] or list(SELECTED)
        parameters = {
            "events": groups,
            "share": stream.choice(SHARES),
            "limit_ns": drawn.span_ns(LIMITS_NS),
            "seed": stream.getrandbits(32),
        }
        return drawn.plan(chooser=ChooserSpec(f"{__name__}:Selected", parameters))


class Selected:
    """Delays some of the messages about these events, for short times as often as for long ones."""

    def __init__(self, events: Sequence[str], share: float, limit_ns: int, seed: int) -> None:
        """``events``: keys of :data:`SELECTED`."""
        self._words = frozenset(word for name in events for word in SELECTED[name])
        self._share = share
        self._logarithm = math.log(limit_ns / MILLISECOND_NS)
        self._seed = seed
        self._streams: dict[tuple[str, str, Label], random.Random] = {}

    def begin(self, flight: Flight) -> None:
        self._labels = flight.newest_labels

    def delivered(self, message: Message) -> None:
        pass

    def delay_ns(self, message: Message) -> int:
        label = next((label for label in self._labels() if label.what in self._words), None)
        if label is None:
            return 0
        key = message.source, message.target, label
        stream = self._streams.get(key)
        if stream is None:
            names = (message.source, message.target, label.kind, label.name, label.what)
            stream = self._streams[key] = random_streams.random_stream(self._seed, *names)
        is_late, part = stream.random() < self._share, stream.random()
        return int(MILLISECOND_NS * math.exp(part * self._logarithm)) if is_late else 0
