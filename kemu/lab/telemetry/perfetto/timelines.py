"""What a trace consists of, before it has a format: processes with tracks, tracks with slices, instants or samples.

Slices of one track may overlap (ten pods run on one node); those of one lane nest. :meth:`Track.lanes` lays them side
by side, in as few lanes as it takes. Perfetto shows lanes of the same name as one track.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kemu.lab.telemetry.spans import AttributeValue

Args = Mapping[str, AttributeValue]
_NO_ARGS: Args = {}

Unit = Literal["", "bytes", "ns"]


@dataclass(slots=True)
class Slice:
    """Something that took time. Its children lie within it, one after the other (:meth:`settle`)."""

    name: str
    start_ns: int
    end_ns: int
    category: str = ""
    args: Args = field(default_factory=dict)
    children: list[Slice] = field(default_factory=list)
    flows: tuple[int, ...] = ()
    """Arrows that begin here or pass through."""

    def settle(self) -> None:
        """Fit the children in, as slices of a lane must nest. What begins too early begins later."""
        now_ns = self.start_ns
        for child in self.children:
            child.start_ns = min(max(child.start_ns, now_ns), self.end_ns)
            child.end_ns = min(max(child.end_ns, child.start_ns), self.end_ns)
            now_ns = child.end_ns
            child.settle()


@dataclass(slots=True)
class Instant:
    """Something that happened."""

    name: str
    time_ns: int
    category: str = ""
    args: Args = field(default_factory=dict)
    flows: tuple[int, ...] = ()
    """Arrows that begin here."""
    ends: tuple[int, ...] = ()
    """Arrows that end here."""

    @property
    def rank(self) -> int:
        """Among the marks of one instant: where an arrow begins comes before where it ends."""
        return 1 if self.ends else -1 if self.flows else 0


class Mark(NamedTuple):
    """The beginning or the end of a slice, or an instant."""

    time_ns: int
    what: Literal["begin", "end", "instant"]
    of: Slice | Instant


@dataclass(slots=True)
class Track:
    """One line of the picture: slices and instants, or the samples of a counter."""

    name: str
    rank: int
    slices: list[Slice] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    samples: list[tuple[int, float]] = field(default_factory=list)
    """Samples of a counter: its value from then on."""
    unit: Unit = ""
    is_counter: bool = False

    def lanes(self) -> Iterator[list[Mark]]:
        """The marks of each lane, in order. Instants are in the first one."""
        lanes: list[list[Mark]] = []
        if self.instants:
            lanes.append([])
        busy: list[tuple[int, int]] = []
        free: list[int] = list(range(len(lanes)))
        for one in sorted(self.slices, key=lambda each: (each.start_ns, -each.end_ns)):
            while busy and busy[0][0] <= one.start_ns:
                heapq.heappush(free, heapq.heappop(busy)[1])
            if free:
                lane = heapq.heappop(free)
            else:
                lane = len(lanes)
                lanes.append([])
            _mark(one, lanes[lane])
            heapq.heappush(busy, (one.end_ns, lane))
        if self.instants:
            instants = [Mark(each.time_ns, "instant", each) for each in self.instants]
            lanes[0] = sorted([*lanes[0], *instants], key=lambda mark: mark.time_ns)
        yield from lanes


def _mark(one: Slice, marks: list[Mark]) -> None:
    marks.append(Mark(one.start_ns, "begin", one))
    for child in one.children:
        _mark(child, marks)
    marks.append(Mark(one.end_ns, "end", one))


@dataclass(slots=True)
class Process:
    """A group of tracks: an actor, a node, or all pods."""

    name: str
    rank: int
    tracks: dict[str, Track] = field(default_factory=dict)
    labels: Sequence[str] = ()

    def track(self, name: str, rank: int = 0) -> Track:
        found = self.tracks.get(name)
        if found is None:
            found = self.tracks[name] = Track(name, rank)
        return found

    def counter(self, name: str, rank: int = 0, unit: Unit = "") -> Track:
        found = self.track(name, rank)
        found.is_counter, found.unit = True, unit
        return found


PODS = "pods"
FAULTS = "faults"

_RANKS = ("faults", "pods", "user", "scheduler", "rescheduler", "apiserver", "store", "controller", "node")


class Timeline:
    """All processes of a trace, by name."""

    def __init__(self) -> None:
        self.processes: dict[str, Process] = {}
        self.end_ns = 0
        """When the run ended."""

    def process(self, name: str) -> Process:
        found = self.processes.get(name)
        if found is None:
            family = name.partition("/")[0].partition(" ")[0]
            rank = _RANKS.index(family) if family in _RANKS else len(_RANKS)
            found = self.processes[name] = Process(name, rank)
        return found

    def of_actor(self, actor: str) -> Process:
        """That of its node, if it is a kubelet."""
        family, _, rest = actor.partition("/")
        return self.node(rest) if family == "kubelet" else self.process(actor)

    def node(self, name: str) -> Process:
        return self.process(f"node {name}")

    def ordered(self) -> list[Process]:
        return sorted(self.processes.values(), key=lambda each: (each.rank, _natural(each.name)))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """For sorting: ``node-10`` comes after ``node-9``."""
    parts: list[tuple[int, int, str]] = []
    text = ""
    digits = ""
    for letter in [*name, ""]:
        if letter.isdecimal():
            digits += letter
            continue
        if digits:
            parts += [(1, 0, text), (0, int(digits), digits)]
            text = digits = ""
        text += letter
    return [*parts, (1, 0, text)]
