"""What a space-time picture shows: the actors of a story as columns, their decisions and messages in the order of time.

``texts`` and ``svgs`` draw it. The API servers' talk with the store is left out unless a hold or a crash is about it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kemu.lab.tell.explaining.chains import Chain
from kemu.lab.tell.explaining.recordings import Flight
from kemu.lab.tell.explaining.steps import Step
from kemu.lab.tell.explaining.tellings import Telling, pod_key
from kemu.runtime.runlog.events.words import OUTCOME
from kemu.runtime.words import short

MOST_ACTORS = 5
MOST_MARKS = 26
FOLD_ABOVE = 3
_BAD = ("rejected", "bind refused", "crashed", "attempt unschedulable")
_SHOWN_REQUESTS = ("bind", "create", "delete", "evict")


@dataclass(eq=False)
class Mark:
    """Something in one column: what an actor did."""

    time_ns: int
    order: float
    column: int
    text: str
    is_bad: bool
    event: int
    sign: tuple[str, ...]
    differs: bool = False
    """The first one that the other picture does not have in its place."""


@dataclass(eq=False)
class Arrow:
    """A message from one column to another."""

    time_ns: int
    """When it was sent."""
    order: float
    arrived_ns: int
    """-1: never."""
    column: int
    target: int
    text: str
    late_ns: int
    """How long a hold kept it; 0: no hold did."""
    is_news: bool
    sign: tuple[str, ...]
    differs: bool = False
    is_bad: bool = False
    never: str = "lost"
    """What is said of it where it never arrived."""


@dataclass
class Diagram:
    actors: tuple[str, ...]
    titles: tuple[str, ...]
    marks: list[Mark] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)


@dataclass(frozen=True)
class _Wanted:
    """What both pictures show."""

    actors: tuple[str, ...]
    pods: frozenset[str]
    names: frozenset[str]
    """Names of the objects whose messages are shown, as labels have them."""
    until_ns: int


def of(chain: Chain, telling: Telling, other: Telling | None) -> tuple[Diagram, Diagram | None]:
    """The failing run, and the passing one in the same columns."""
    wanted = _wanted(chain, telling)
    failing = _draw(chain, telling, wanted, is_failing=True)
    if other is None:
        return failing, None
    passing = _draw(chain, other, wanted, is_failing=False)
    _mark_difference(failing, passing)
    return failing, passing


def _wanted(chain: Chain, telling: Telling) -> _Wanted:
    weights: Counter[str] = Counter()
    for flight in telling.held.values():
        weights[flight.source] += 10
        weights[flight.target] += 10
    for step in chain.steps:
        if step.actor not in ("store", "", "chaos") or step.what in ("crashed", "started again"):
            weights[step.actor] += 5 if step.actor != "user" else 2
    servers = [actor for actor in _actors(telling) if actor.startswith("apiserver/")]
    if servers and not any(server in weights for server in servers):
        weights[servers[0]] += 4
    for server in servers:
        if server in weights:
            weights[server] += 20
    heaviest = sorted(weights, key=lambda actor: (-weights[actor], actor))[:MOST_ACTORS]
    pods = {key for step in chain.steps for key in (step.pod, *step.others) if key}
    pods |= {pod_key(flight.label.name) for flight in telling.held.values() if flight.label.kind == "Pod"}
    names = {short(key) for key in pods}
    names |= {flight.label.name for flight in telling.held.values()}
    end_ns = max((step.at.time_ns for step in chain.steps), default=1 << 62)
    return _Wanted(_in_order(heaviest, telling), frozenset(pods), frozenset(names), end_ns)


def _actors(telling: Telling) -> list[str]:
    return list(dict.fromkeys(event[1] for event in telling.events))


def _in_order(actors: Sequence[str], telling: Telling) -> tuple[str, ...]:
    """The API server stands between its clients, the store at the right."""
    rank = {"user": 0, "scheduler": 1, "controller": 2, "kubelet": 3}
    first = {actor: index for index, actor in enumerate(_actors(telling))}
    servers = [actor for actor in actors if actor.startswith("apiserver/")]
    clients = sorted(
        (actor for actor in actors if actor not in servers and actor != "store"),
        key=lambda actor: (rank.get(actor.partition("/")[0], 4), first[actor]),
    )
    middle = len(clients) // 2 if len(clients) > 3 else min(1, len(clients))
    ordered = [*clients[:middle], *servers, *clients[middle:]]
    return (*ordered, "store") if "store" in actors else tuple(ordered)


def _draw(chain: Chain, telling: Telling, wanted: _Wanted, *, is_failing: bool) -> Diagram:
    column = {actor: index for index, actor in enumerate(wanted.actors)}
    diagram = Diagram(wanted.actors, tuple(telling.names.column(actor) for actor in wanted.actors))
    told = set(chain.steps)
    last_of = _last(telling, wanted, is_failing)
    server = next((index for actor, index in column.items() if actor.startswith("apiserver/")), None)
    for step in telling.steps:
        where = column.get(step.actor)
        if step.change is not None:
            where = server if step in told else None
        if where is None or step.at.time_ns > last_of or not _is_shown(step, told, wanted):
            continue
        bad = step.what in _BAD or (step.change is not None and step.what.endswith("again"))
        mark = Mark(step.at.time_ns, step.at.place, where, step.short, bad, step.at.place, step.sign)
        diagram.marks.append(mark)
    _fold(diagram)
    revisions = _revisions(telling, wanted)
    kept = {id(flight): index for index, flight in telling.held.items()}
    for flight in telling.recording.flights:
        is_kept = id(flight) in kept
        if flight.source not in column or flight.target not in column or flight.sent_ns > last_of:
            continue
        if not is_kept and not _is_shown_flight(flight, wanted, revisions, telling):
            continue
        late_ns = flight.arrived_ns - flight.due_ns if is_kept and flight.arrived_ns >= 0 else 0
        source, target = column[flight.source], column[flight.target]
        sign = ("message", flight.source, flight.target, str(flight.label))
        text = _text(flight)
        diagram.arrows.append(
            Arrow(
                flight.sent_ns,
                len(diagram.arrows),
                flight.arrived_ns,
                source,
                target,
                text,
                late_ns,
                flight.is_news,
                sign,
            )
        )
    _drop_what_nobody_uses(diagram)
    thin(diagram)
    return diagram


def _last(telling: Telling, wanted: _Wanted, is_failing: bool) -> int:
    """The end of the picture: that of the story; in the passing run, when the same pods have done all they do."""
    if is_failing:
        return wanted.until_ns
    first: dict[tuple[str, ...], int] = {}
    for step in telling.steps:
        if step.pod in wanted.pods and step.actor in wanted.actors and step.weight >= OUTCOME:
            first.setdefault(step.sign, step.at.time_ns)
    return max([*first.values(), wanted.until_ns if wanted.until_ns < 1 << 62 else 0])


def _is_shown(step: Step, told: set[Step], wanted: _Wanted) -> bool:
    if step in told:
        return True
    if step.pod not in wanted.pods and not any(pod in wanted.pods for pod in step.others):
        return False
    if step.what.startswith(("delete by", "evict by")) and not step.actor.startswith("user"):
        return False  # Its own event tells it.
    return step.is_decision or step.what in ("running", "nominated", "terminated", "finished")


def _revisions(telling: Telling, wanted: _Wanted) -> set[int]:
    """The writes whose news are shown: what changed a pod's node, its deletion, its end."""
    words = ("bound", "removed", "deleted", "ended", "nominat", "created on", "taint")
    found = set()
    for step in telling.steps:
        is_of_pod = step.pod in wanted.pods and any(word in step.what for word in words)
        if step.change is not None and (is_of_pod or (not step.pod and "taint" in step.what)):
            found.add(step.change.revision)
    return found


def _is_shown_flight(flight: Flight, wanted: _Wanted, revisions: set[int], telling: Telling) -> bool:
    if "store" in (flight.source, flight.target):
        return False
    if flight.is_news:
        # To whom it is no news, because it asked for it, nothing is told.
        return flight.revision in revisions and telling.known.writer(flight.revision) != flight.target
    if flight.label.name not in wanted.names:
        return False
    return flight.label.what in _SHOWN_REQUESTS or flight.label.what.endswith("-refused")


def _text(flight: Flight) -> str:
    label = flight.label
    thing = label.name or label.kind
    if flight.is_news:
        return f"{thing} {'gone' if label.what == 'deleted' else label.what}"
    if flight.label.what.endswith(("-answered", "-refused")):
        verb, _, how = label.what.rpartition("-")
        return f"{'no' if how == 'refused' else 'ok'}: {verb} {thing}"
    return f"{label.what} {thing}"


def _fold(diagram: Diagram) -> None:
    """What an actor does again and again, with nothing else between: the first time, how often more, the last time."""
    folded: list[Mark] = []
    for _, group in itertools.groupby(diagram.marks, key=lambda mark: mark.sign):
        marks = list(group)
        if len(marks) > FOLD_ABOVE:
            marks[1].text = f"… {len(marks) - 2} more times"
            marks = [marks[0], marks[1], marks[-1]]
        folded += marks
    diagram.marks = folded


def _drop_what_nobody_uses(diagram: Diagram) -> None:
    """News after which its receiver does nothing in this picture."""
    last: dict[int, int] = {}
    for mark in diagram.marks:
        last[mark.column] = max(last.get(mark.column, -1), mark.time_ns)
    diagram.arrows = [
        arrow
        for arrow in diagram.arrows
        if arrow.late_ns or not arrow.is_news or last.get(arrow.target, -1) >= arrow.arrived_ns
    ]


def thin(diagram: Diagram) -> None:
    """Keep the picture on a screen: usual messages go first, then late ones beyond half of it, the least late first,
    and at last the oldest marks."""
    while len(diagram.marks) + len(diagram.arrows) > MOST_MARKS:
        usual = [arrow for arrow in diagram.arrows if not arrow.late_ns and not arrow.text.startswith(("bind", "no:"))]
        if usual:
            diagram.arrows.remove(usual[0])
        elif any(not arrow.late_ns for arrow in diagram.arrows):
            diagram.arrows.remove(next(arrow for arrow in diagram.arrows if not arrow.late_ns))
        elif not diagram.marks or len(diagram.arrows) > MOST_MARKS // 2:
            diagram.arrows.remove(min(diagram.arrows, key=lambda arrow: arrow.late_ns))
        else:
            diagram.marks.pop(0)


def _mark_difference(failing: Diagram, passing: Diagram) -> None:
    """Where the runs part: in what the actors did and in messages that were late; else in any message.

    If all of that is the same, it is the first thing that is late.
    """
    late = {arrow.sign: arrow for arrow in failing.arrows if departs(arrow)}
    ours, theirs = _happenings(failing), _happenings(passing)
    for any_message in (False, True):
        mine = [one for one in ours if any_message or isinstance(one, Mark) or one.sign in late]
        other = [one for one in theirs if any_message or isinstance(one, Mark) or one.sign in late]
        for index in range(max(len(mine), len(other))):
            if index >= len(mine) or index >= len(other):
                (mine if len(mine) > len(other) else other)[index].differs = True
                return
            if mine[index].sign != other[index].sign or departs(mine[index]):
                # A message that came there, and here is late, differs from when it should have come.
                late.get(other[index].sign, mine[index]).differs = other[index].differs = True
                return
    for one, their in zip(ours, theirs, strict=True):
        if departs(one) or _when(one) != _when(their):
            one.differs = their.differs = True
            return


@dataclass(frozen=True)
class Row:
    """One line: a mark, an arrow, or the departure of an arrow that arrives in a later line."""

    time_ns: int
    rank: int
    order: float
    item: Mark | Arrow
    is_departure: bool = False


def rows(diagram: Diagram) -> list[Row]:
    """The picture line by line, in the order of time; at one instant arrivals come first."""
    found = [Row(mark.time_ns, 1, mark.order, mark) for mark in diagram.marks]
    for arrow in diagram.arrows:
        if departs(arrow):
            found.append(Row(arrow.time_ns, 2, arrow.order, arrow, is_departure=True))
        if arrow.arrived_ns >= 0:
            # What a hold let go came behind what happened at that moment.
            found.append(Row(arrow.arrived_ns, 3 if arrow.late_ns else 0, arrow.order, arrow))
    return sorted(found, key=lambda row: (row.time_ns, row.rank, row.order))


def departs(item: Mark | Arrow) -> bool:
    """Whether a message gets a line of its own for its departure."""
    return isinstance(item, Arrow) and (item.late_ns > 0 or item.arrived_ns < 0)


def _when(item: Mark | Arrow) -> int:
    return item.time_ns if isinstance(item, Mark) else item.arrived_ns


def _happenings(diagram: Diagram) -> list[Mark | Arrow]:
    """Marks and arrivals in the order of time."""
    return [row.item for row in rows(diagram) if not row.is_departure]
