"""The table of strategies. A campaign takes several in turn, so it needs at most as many times the runs of the best one
as it has strategies, whichever is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kemu.errors import KemuError
from kemu.lab.exploration.plans import Strategy
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import crash, feedback, observe_late, pct, pos, seeds, stale, uniform, walk
from kemu.lab.exploration.strategies.subjects import Subject


@dataclass(frozen=True)
class Kind:
    """A strategy by name."""

    name: str
    doc: str
    make: Callable[[Subject, int], Strategy]
    """For a subject and the seed of a campaign."""
    is_usual: bool = True
    """A campaign takes it without being asked."""


STRATEGIES: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "observe-late",
            "News comes after a decision that it preceded in an ordinary run: one hold, then two.",
            observe_late.ObserveLate,
        ),
        Kind("uniform", "Each message is late by a random time, up to a width.", uniform.Uniform),
        Kind("pct", "Links have priorities, which change at random messages: depths 1 to 3.", pct.Pct),
        Kind("pos", "Each message has a random priority, drawn again when its receiver hears another one.", pos.Pos),
        Kind("walk", "Only messages that decide something are late: bindings, nominations, news, statuses.", walk.Walk),
        Kind("crash", "Actors crash at named steps of their work, or are cut off around them.", crash.Crash),
        Kind("feedback", "Holds of runs that went a new way are added, removed and combined.", feedback.Mutations),
        Kind("seeds", "Another seed for each run, and nothing else.", lambda subject, seed: seeds.Seeds(seed)),
        Kind(
            "stale",
            "API servers answer from the past, to actors that restart or lose the others. Only when asked for.",
            stale.Stale,
            is_usual=False,
        ),
    )
}
"""In the order in which a campaign takes them."""

USUAL = tuple(name for name, kind in STRATEGIES.items() if kind.is_usual)


def make(names: Sequence[str], source: Source, seed: int) -> list[Strategy]:
    """These strategies, or the usual ones, for a campaign of that seed. Raises KemuError for an unknown name."""
    for name in names:
        if name not in STRATEGIES:
            dashed = name.replace("_", "-")
            hint = f"did you mean {dashed}?" if dashed in STRATEGIES else f"there are {', '.join(STRATEGIES)}"
            raise KemuError(f"no strategy is called {name}; {hint}")
    subject = Subject(source)
    return [STRATEGIES[name].make(subject, seed) for name in dict.fromkeys(names or USUAL)]
