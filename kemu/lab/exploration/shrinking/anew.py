"""Searching anew: a smaller scenario fails in the same way, but with other delays.

Holds name messages by their numbers, and a scenario with fewer pods or nodes has other messages. So what the failure
needs is often only found by a few runs of the small scenario with delays of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kemu.lab.exploration.plans import ChooserSpec
from kemu.lab.exploration.shrinking import documents, readable_holds
from kemu.lab.exploration.shrinking.candidates import Candidate, Data
from kemu.lab.exploration.shrinking.steps import Steps
from kemu.lab.exploration.strategies import uniform
from kemu.runtime import random_streams
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.holds import Hold
from kemu.runtime.runlog.frames import Entry

DRAWS = 6
"""Runs of each smaller scenario."""
SMALL = {"pods": 3, "nodes": 2, "holds": 3}
"""What is no larger is not searched anew."""
MANY = 12
"""More holds are looked at link by link first."""
_SHAPES = ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (1, 0), (2, 0))
"""Nodes, and for how many pods they have room; 0: as they are."""
_PART = 20
"""No message is late by more than this part of the duration."""


class Anew:
    """Looks for smaller scenarios from where shrinking is."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def search(self) -> None:
        """Fewer nodes, less room, fewer pods, each with delays of its own."""
        self._take(shapes(self._steps.best.data))
        self._pods()
        self._take(shapes(self._steps.best.data))
        self.by_links()
        self._steps.hold_list()

    def _pods(self) -> None:
        """Takes away halves of what brings pods, quarters, …, in the end single ones."""

        def free() -> list[documents.Item]:
            fixed = documents.happenings(self._steps.best.data) if self._steps.keeps_plot else []
            return [item for item in documents.in_time(self._steps.best.data) if item not in fixed]

        size = max(1, len(free()) // 2)
        while len(found := free()) > 1:
            everything = documents.items(self._steps.best.data, *documents.PODS)
            parts = [found[at : at + size] for at in range(0, len(found), size)]
            fewer = [[item for item in everything if item not in part] for part in parts]
            kept = [documents.keeping(self._steps.best.data, each, *documents.PODS) for each in fewer if each]
            if self._take(kept) is None:
                if size == 1:
                    return
                size = max(1, size // 2)
            size = min(size, max(1, len(free()) // 2))

    def _take(self, changed: Iterable[Data]) -> int | None:
        """Go on with the first that fails in the same way, with the holds or with other delays."""
        for index, data in enumerate(changed):
            candidate = self._steps.loading.candidate(data, self._steps.best.holds)
            if candidate is None:
                continue
            if self._steps.take([candidate]) is not None:
                return index
            if self._steps.keeps_plot:
                continue
            found = self._steps.trials.again(candidate.with_holds(()), choosers(candidate.scenario.duration_ns))
            if found is not None:
                self._steps.best = found
                self.by_links()
                return index
        return None

    def by_links(self) -> None:
        """Keep the holds of the links that are needed; then one for all of a link."""
        if len(self._steps.best.holds) <= MANY:
            return
        best = self._steps.best
        self._steps.minimise(links(best.holds), lambda kept: best.with_holds([hold for link in kept for hold in link]))
        several = [link for link in links(self._steps.best.holds) if len(link) > 1]
        if self._steps.take([self._merged(several)]) is None:
            for link in several:
                self._steps.take([self._merged([link])])

    def _merged(self, which: Sequence[Sequence[Hold]]) -> Candidate:
        return self._steps.best.with_holds(merged(self._steps.best.holds, which, self._steps.events()))


def choosers(duration_ns: int, draws: int = DRAWS) -> list[ChooserSpec]:
    """The delays of so many runs; the same for the same duration."""
    widths = [width_ns for width_ns in uniform.WIDTHS_NS if width_ns * _PART <= duration_ns] or [MILLISECOND_NS]
    found = []
    for number in range(draws):
        stream = random_streams.random_stream(number, "shrink anew")
        links = uniform.LINKS[number % len(uniform.LINKS)]
        found.append(uniform.drawn_widths(stream, links, widths[-1 - number // 2 % len(widths)]))
    return found


def shapes(data: Data) -> Iterator[Data]:
    """With fewer nodes, with less room on them, and both; the smallest first."""
    known = [data]
    for nodes, room in _SHAPES:
        made = documents.with_fewer_nodes(data, nodes) or data
        made = (documents.with_room_for(made, room) if room else None) or made
        if made not in known:
            known.append(made)
            yield made


def links(holds: Sequence[Hold]) -> list[tuple[Hold, ...]]:
    """The holds by the links of their messages, in the order of the first of each."""
    found: dict[tuple[str, str], list[Hold]] = {}
    for hold in holds:
        found.setdefault((hold.message.source, hold.message.target), []).append(hold)
    return [tuple(each) for each in found.values()]


def merged(holds: Sequence[Hold], which: Sequence[Sequence[Hold]], events: Sequence[Entry]) -> list[Hold]:
    """One hold for all of each of these links: its first message is kept as long as the last of them was.

    What a stream carries behind a message waits for it.
    """
    spans = {hold: readable_holds.kept_ns(events, index) for index, hold in enumerate(holds)}
    gone: set[Hold] = set()
    instead: dict[Hold, Hold] = {}
    for each in which:
        kept = [(*span, hold) for hold in each if (span := spans[hold]) is not None]
        if kept:
            first_ns, _, first = min(kept, key=lambda one: one[0])
            instead[first] = Hold(first.message, None, max(end_ns for _, end_ns, _ in kept) - first_ns)
        gone.update(hold for hold in each if hold not in instead)
    return [instead.get(hold, hold) for hold in holds if hold not in gone]
