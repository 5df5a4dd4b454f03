"""Which runs of a program to try.

Strategies of :mod:`kemu.lab.exploration.strategies` know the scenario. It is not known beforehand what a program
will do, so only those apply that steer whatever messages there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from kemu.emulated.client.message_labels import labelled
from kemu.errors import KemuError
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.strategies import pct, pos, uniform, walk
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.holds import Hold, MessagePattern
from kemu.runtime.sim.steering.messages import Counts, Message

WIDTHS_NS = (300 * MILLISECOND_NS, 20 * MILLISECOND_NS, 3000 * MILLISECOND_NS)
"""How late one message is."""
_TELLING = frozenset(word for words in walk.SELECTED.values() for word in words)


class NoDelay:
    """A chooser that delays nothing: a run with it has its messages recorded."""

    def delay_ns(self, message: Message) -> int:
        return 0


class Ordinary:
    """What a run in which nothing is late consists of."""

    def __init__(self, sent: Sequence[Message] = ()) -> None:
        self.loads: dict[tuple[str, str], int] = {}
        """How many messages each link carried while time passed."""
        self.telling: list[MessagePattern] = []
        """The messages of these that decide something, each by its first label."""
        counts = Counts()
        for message, labels in labelled(sent):
            counts.add(message.source, message.target, labels)
            if message.sent_ns <= 0:
                continue
            link = message.source, message.target
            self.loads[link] = self.loads.get(link, 0) + 1
            label = next((label for label in labels if label.what in _TELLING), None)
            if label is not None:
                self.telling.append(MessagePattern(*link, label, counts.of(*link, label)))


Make = Callable[[random.Random, int, Ordinary], Plan]
"""From a stream, the number of the strategy's run, and the ordinary run."""


def _late(stream: random.Random, number: int, ordinary: Ordinary) -> Plan:
    """One message that decides something is late; later on, two are. The seed stays, so the rest goes as usual."""
    telling = ordinary.telling
    first = stream.randrange(len(telling))
    chosen = [first] if number < len(telling) else sorted({first, stream.randrange(len(telling))})
    holds = [Hold(telling[index], None, WIDTHS_NS[stream.randrange(len(WIDTHS_NS))]) for index in chosen]
    return Plan(holds=tuple(holds))


def _uniform(stream: random.Random, number: int, ordinary: Ordinary) -> Plan:
    return _steered(stream, uniform.drawn_widths(stream, stream.choice(uniform.LINKS)))


def _pct(stream: random.Random, number: int, ordinary: Ordinary) -> Plan:
    links = sorted(ordinary.loads)
    threads = sorted(stream.sample(links, min(pct.MOST_LINKS, len(links))))
    parameters = {
        "links": [[*link, ordinary.loads[link]] for link in threads],
        "depth": pct.DEPTHS[number % len(pct.DEPTHS)],
        "step_ns": stream.choice(pct.STEPS_NS),
        "seed": stream.getrandbits(32),
    }
    return _steered(stream, ChooserSpec(f"{pct.__name__}:ranks", parameters))


def _pos(stream: random.Random, number: int, ordinary: Ordinary) -> Plan:
    parameters = {"width_ns": stream.choice(pos.WIDTHS_NS), "seed": stream.getrandbits(32)}
    return _steered(stream, ChooserSpec(f"{pos.__name__}:Orders", parameters))


def _walk(stream: random.Random, number: int, ordinary: Ordinary) -> Plan:
    groups = [name for name in walk.SELECTED if stream.random() < 0.5] or list(walk.SELECTED)
    parameters = {
        "events": groups,
        "share": stream.choice(walk.SHARES),
        "limit_ns": stream.choice(walk.LIMITS_NS),
        "seed": stream.getrandbits(32),
    }
    return _steered(stream, ChooserSpec(f"{walk.__name__}:Selected", parameters))


def _seeds(stream: random.Random, number: int, ordinary: Ordinary) -> Plan:
    return Plan(seed=stream.getrandbits(31))


def _steered(stream: random.Random, chooser: ChooserSpec) -> Plan:
    return Plan(seed=stream.getrandbits(31), chooser=chooser)


OF_PROGRAMS: Mapping[str, Make] = {
    "late": _late,
    "uniform": _uniform,
    "pct": _pct,
    "pos": _pos,
    "walk": _walk,
    "seeds": _seeds,
}
"""In the order in which they take turns."""


class Portfolio:
    """Strategies in turn."""

    def __init__(self, names: Sequence[str], seed: int, ordinary: Ordinary) -> None:
        """Raises KemuError for a name that no strategy of programs has."""
        for name in names:
            if name not in OF_PROGRAMS:
                raise KemuError(f"no strategy of programs is called {name}; there are {', '.join(OF_PROGRAMS)}")
        self._names = tuple(dict.fromkeys(names)) or tuple(OF_PROGRAMS)
        self._seed = seed
        self._ordinary = ordinary

    def plan(self, number: int) -> tuple[str, Plan]:
        """Plan of a run, from 0, and the name of its strategy."""
        turn, place = divmod(number, len(self._names))
        name = self._names[place]
        stream = random_streams.random_stream(self._seed, "program", name, turn)
        # A program without a cluster in which anything happens leaves nothing to steer.
        make = OF_PROGRAMS[name] if self._ordinary.telling else _seeds
        return name, make(stream, turn, self._ordinary)
