"""Which runs of a program to try.

Strategies of :mod:`kemu.exploration.strategies` know the scenario. Of a program nobody knows beforehand what it will
do, so only those apply that steer whatever messages there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from kemu.errors import KemuError
from kemu.exploration.plans import ChooserSpec, Plan
from kemu.exploration.strategies import pct, pos, uniform, walk
from kemu.runtime import random_streams
from kemu.runtime.sim.steering.messages import Message

Loads = Mapping[tuple[str, str], int]
"""How many messages each link carried in an ordinary run."""


class Counting:
    """A chooser that delays nothing, and counts what each link carries."""

    def __init__(self) -> None:
        self.loads: dict[tuple[str, str], int] = {}

    def delay_ns(self, message: Message) -> int:
        link = message.source, message.target
        self.loads[link] = self.loads.get(link, 0) + 1
        return 0


def _uniform(stream: random.Random, number: int, loads: Loads) -> ChooserSpec:
    return uniform.drawn_widths(stream, stream.choice(uniform.LINKS))


def _pct(stream: random.Random, number: int, loads: Loads) -> ChooserSpec:
    links = sorted(loads)
    threads = sorted(stream.sample(links, min(pct.MOST_LINKS, len(links))))
    parameters = {
        "links": [[*link, loads[link]] for link in threads],
        "depth": pct.DEPTHS[number % len(pct.DEPTHS)],
        "step_ns": stream.choice(pct.STEPS_NS),
        "seed": stream.getrandbits(32),
    }
    return ChooserSpec(f"{pct.__name__}:ranks", parameters)


def _pos(stream: random.Random, number: int, loads: Loads) -> ChooserSpec:
    parameters = {"width_ns": stream.choice(pos.WIDTHS_NS), "seed": stream.getrandbits(32)}
    return ChooserSpec(f"{pos.__name__}:Orders", parameters)


def _walk(stream: random.Random, number: int, loads: Loads) -> ChooserSpec:
    groups = [name for name in walk.SELECTED if stream.random() < 0.5] or list(walk.SELECTED)
    parameters = {
        "events": groups,
        "share": stream.choice(walk.SHARES),
        "limit_ns": stream.choice(walk.LIMITS_NS),
        "seed": stream.getrandbits(32),
    }
    return ChooserSpec(f"{walk.__name__}:Selected", parameters)


OF_PROGRAMS: Mapping[str, Callable[[random.Random, int, Loads], ChooserSpec] | None] = {
    "uniform": _uniform,
    "pct": _pct,
    "pos": _pos,
    "walk": _walk,
    "seeds": None,
}
"""In the order in which they take turns."""


class Portfolio:
    """Strategies in turn; each run has a seed of its own."""

    def __init__(self, names: Sequence[str], seed: int, loads: Loads) -> None:
        """Raises KemuError for a name that no strategy of programs has."""
        for name in names:
            if name not in OF_PROGRAMS:
                raise KemuError(f"no strategy of programs is called {name}; there are {', '.join(OF_PROGRAMS)}")
        self._names = tuple(dict.fromkeys(names)) or tuple(OF_PROGRAMS)
        self._seed = seed
        self._loads = loads

    def plan(self, number: int) -> tuple[str, Plan]:
        """Of a run, from 0, and the name of its strategy."""
        turn, place = divmod(number, len(self._names))
        name = self._names[place]
        stream = random_streams.random_stream(self._seed, "program", name, turn)
        seed, make = stream.getrandbits(31), OF_PROGRAMS[name]
        chooser = None if make is None or not self._loads else make(stream, turn, self._loads)
        return name, Plan(seed=seed, chooser=chooser)
