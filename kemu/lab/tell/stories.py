"""The story of a run: what happened, in order, in as few lines as there is room for.

    for line in told(find(history, Selection(workload="web")), 24).lines:
        print(line.what)

What is alike and close in time is told in one line: ``18 web and 37 batch pods are evicted from 3 nodes``. How close
depends on the room. What is telling (preemptions, evictions, faults, conflicts, waiting pods) is never left out for the
sake of what every pod goes through. Neighbours: :mod:`happenings` finds what happened, :mod:`selections` filters it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.tell import happenings, people
from kemu.lab.tell.happenings import TELLING, Happening
from kemu.lab.tell.selections import Selection
from kemu.runtime.runlog.events import (
    GetAnswered,
    ListAnswered,
    WatchClosed,
    WatchDelivered,
    WatchListed,
    WritesAcknowledged,
    kinds,
)
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from kemu.runtime.words import listed, short

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened, or several that are alike."""

    time_ns: int
    who: str
    """The actor, or how many: ``3 kubelets``."""
    what: str
    """A phrase about pods or nodes: ``red-0 is bound to node-1``."""
    why: str
    tone: str
    """``good bad plain``."""
    told: tuple[Happening, ...] = ()
    """In their order; none where a real cluster said it."""
    end_ns: int = 0
    """Of what was observed."""

    @property
    def kind(self) -> str:
        """One of :data:`kemu.lab.tell.happenings.KINDS`, or ``observed``."""
        return self.told[0].kind if self.told else OBSERVED

    @property
    def until_ns(self) -> int:
        """When the last of them happened."""
        return self.told[-1].time_ns if self.told else max(self.end_ns, self.time_ns)

    def when(self) -> str:
        """``60.035 s``; from when to when, with fewer digits where it takes longer than a second."""
        digits = 3 if self.until_ns - self.time_ns < SECOND_NS else 1
        begin, end = f"{self.time_ns / 1e9:.{digits}f}", f"{self.until_ns / 1e9:.{digits}f}"
        return f"{begin} s" if begin == end else f"{begin}-{end} s"

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "from_s": self.time_ns / 1e9,
            "to_s": self.until_ns / 1e9,
            "kind": self.kind,
            "who": self.who,
            "what": self.what,
            "why": self.why,
            "count": len(self.told),
            "pods": list(dict.fromkeys(one.pod.key for one in self.told if one.pod is not None)),
            "nodes": list(dict.fromkeys(node for one in self.told for node in (one.node, *one.whom) if node)),
        }


OBSERVED = "observed"


def observed(lines: Sequence[Mapping[str, Any]]) -> list[Line]:
    """``observed`` of a scenario: what a real cluster said at these times, to be told beside the run. Of what is no
    warning nothing, if there are warnings."""
    said = [one for one in lines if one.get("warning")] or lines
    found = []
    for one in said:
        times = f", {one['times']} times" if one.get("times", 1) > 1 else ""
        begin_ns, end_ns = (round(float(at) * SECOND_NS) for at in (one["at"], one.get("to", one["at"])))
        what = f"the cluster said {one['reason']}{times}: {listed(one['of'], 2)}"
        tone = "bad" if one.get("warning") else "plain"
        found.append(Line(begin_ns, "cluster", what, people.message(one.get("says", "")), tone, end_ns=end_ns))
    return found


def beside(story: Story, lines: Sequence[Line]) -> Story:
    """The story with them, in the order of time."""
    return Story(sorted([*story.lines, *lines], key=lambda line: line.time_ns), story.left_out)


class Story(NamedTuple):
    lines: list[Line]
    left_out: Mapping[str, int]
    """How many happenings of each kind no line tells of."""


def tell(history: History, limit: int = 0) -> Story:
    """At most ``limit`` lines (0: one for each happening); one for each happening too where that is no more."""
    return told(find(history), limit)


_OF_CHECKS = kinds(WatchDelivered, WatchListed, WatchClosed, WritesAcknowledged, GetAnswered, ListAnswered)
"""Kinds of events that only checks need: most of a long log."""


def history_of(folder: Path) -> History:
    """History of the run in a folder. Raises RunLogError."""
    history = History()
    with Reader(folder / FILE_NAME) as reader:
        for event in reader.but(*_OF_CHECKS):
            history.feed(*event)
    return history


def find(
    history: History, selection: Selection | None = None, verdict: Mapping[str, Any] | None = None
) -> list[Happening]:
    """What is to be told. ``verdict``: of verdict.json; what fails is told at the end.

    Raises KemuError where the selection names what the run does not have.
    """
    found = happenings.all_of(history, verdict)
    if selection is None:
        return found
    selection.check(history)
    if selection.resource:
        name = selection.object.partition("/")[2]
        found = sorted((*found, *happenings.of_object(history, selection.resource, name)), key=lambda one: one.time_ns)
    return [one for one in found if selection.takes(one)]


def told(found: Sequence[Happening], limit: int) -> Story:
    """As :func:`tell`, of what was found."""
    if limit == 0 or len(found) <= limit:
        return Story([_line([one]) for one in found], {})
    return _fitted(found, limit)


# --- grouping ---------------------------------------------------------------------------------------------------------

_GAPS_NS = (0, SECOND_NS // 10, SECOND_NS, 5 * SECOND_NS, 15 * SECOND_NS, 60 * SECOND_NS, 300 * SECOND_NS, 1 << 62)
"""How far apart alike happenings may be that one line tells of, tried in this order."""
_GAPS_OF_USUAL_NS = tuple(gap_ns for gap_ns in _GAPS_NS if gap_ns >= 15 * SECOND_NS)
"""The same for what is not telling."""

_GIVEN_UP = (
    "running", "finished", "deleted", "collected", "volume", "device", "nominated", "bound", "unschedulable", "resized",
    "created", "object",
)  # fmt: skip
"""Kinds that a story goes without where there is no room, in this order; always without the first, unless nothing else
is told: that a pod runs where it was bound says little."""

MOST_EPISODES = 3
"""Lines about one sort of thing that is not telling."""

_Key = tuple[str, ...]


def _fitted(found: Sequence[Happening], limit: int) -> Story:
    """The finest grouping that fits, with as many kinds as fit."""
    preemptors = {happenings.family(one.by) for one in found if one.by is not None}
    key = _key_with_preemptor if len(preemptors) <= MOST_FAMILIES else _key
    telling = _Alike([one for one in found if one.weight >= TELLING], key)
    kinds = Counter(one.kind for one in found)
    given_up = [kind for kind in _GIVEN_UP if kind in kinds]
    most = len(given_up) - (len(given_up) == len(kinds))  # one kind is told in any case
    for number in range(min("running" in kinds, most), most + 1):
        silent = given_up[:number]
        usual = [one for one in found if one.weight < TELLING and one.kind not in silent]
        by_family = _Alike(usual, _key_with_family, MOST_EPISODES)
        left_out = {kind: kinds[kind] for kind in silent}
        for gap_ns in _GAPS_NS:
            room = limit - telling.lines(gap_ns)
            for usual_ns in _GAPS_OF_USUAL_NS if room >= 0 else ():
                if by_family.lines(usual_ns) <= room:
                    return Story(_in_order([*telling.groups(gap_ns), *by_family.groups(usual_ns)]), left_out)
    # Too many sorts of things: what weighs most, and of that what happened most often.
    groups = [*telling.groups(_GAPS_NS[-1]), *_Alike(usual, _key).groups(_GAPS_NS[-1])]
    ranked = sorted(groups, key=lambda group: (-group[0].weight, -len(group)))
    for group in ranked[limit:]:
        left_out[group[0].kind] = left_out.get(group[0].kind, 0) + len(group)
    return Story(_in_order(ranked[:limit]), left_out)


class _Alike:
    """Happenings by what makes them alike, each kind of them in order. ``most``: lines of one kind of them."""

    def __init__(self, found: Sequence[Happening], key: Callable[[Happening], _Key], most: int = 1 << 62) -> None:
        self._alike: dict[_Key, list[Happening]] = {}
        for one in found:
            self._alike.setdefault(key(one), []).append(one)
        self._gaps = {
            key: sorted(after.time_ns - before.time_ns for before, after in itertools.pairwise(alike))
            for key, alike in self._alike.items()
        }
        self._least = {
            key: next(gap_ns for gap_ns in _GAPS_NS if _episodes(gaps, gap_ns) <= most)
            for key, gaps in self._gaps.items()
        }

    def lines(self, gap_ns: int) -> int:
        """How many there are when only a longer gap separates."""
        return sum(_episodes(gaps, max(gap_ns, self._least[key])) for key, gaps in self._gaps.items())

    def groups(self, gap_ns: int) -> list[list[Happening]]:
        groups: list[list[Happening]] = []
        for key, alike in self._alike.items():
            longest_ns = max(gap_ns, self._least[key])
            groups.append([alike[0]])
            for before, one in itertools.pairwise(alike):
                if one.time_ns - before.time_ns > longest_ns:
                    groups.append([])
                groups[-1].append(one)
        return groups


def _episodes(gaps: Sequence[int], gap_ns: int) -> int:
    return 1 + len(gaps) - bisect_right(gaps, gap_ns)


def _key(one: Happening) -> _Key:
    return one.kind, _sort_of(one.who), one.says[1]


def _key_with_preemptor(one: Happening) -> _Key:
    """Victims that make room for other sorts of pods are told apart."""
    return (*_key(one), "" if one.by is None else happenings.family(one.by))


def _key_with_family(one: Happening) -> _Key:
    return (*_key(one), "" if one.pod is None else happenings.family(one.pod))


def _sort_of(who: str) -> str:
    """All kubelets, and the kernels of all nodes, are of one sort."""
    return who.partition(" ")[0] if who.startswith(("kubelet ", "kernel ")) else who


def _in_order(groups: Sequence[Sequence[Happening]]) -> list[Line]:
    lines = [_line(group) for group in groups]
    return sorted(lines, key=lambda line: (line.time_ns, line.until_ns))


# --- words ------------------------------------------------------------------------------------------------------------

MOST_FAMILIES = 3
_REPEATED = ("conflict", "killed", "rejected", "bound", "preempted")
"""Kinds whose number is told where it is not that of the pods; of others, repetitions are not all told."""


def _line(group: Sequence[Happening]) -> Line:
    first = group[0]
    who, what, why = first.who, first.phrase(), first.reason()
    if len(group) > 1:
        names = dict.fromkeys(one.who for one in group)
        who = f"{len(names)} {_sort_of(first.who)}s" if len(names) > 1 else first.who
        what, why = _phrase(group), _why(group)
    finished = sum(map(happenings.had_finished, group))
    if finished:
        what += f", of which {finished} had finished already" if len(group) > 1 else ", finished already"
    return Line(first.time_ns, who, what + _beyond_budgets(group), why, first.tone, tuple(group))


def _beyond_budgets(group: Sequence[Happening]) -> str:
    """What is said of pods that their disruption budgets could not spare."""
    found = [disruption for one in group for disruption in one.beyond]
    if not found:
        return ""
    many = sum(bool(one.beyond) for one in group)
    number = "" if len(group) == 1 else "all of them " if many == len(group) else f"{many} of them "
    budgets = list(dict.fromkeys(short(one.budget) for one in found))
    worst = min(found, key=lambda one: one.left - one.wanted)
    keeps = f", which keeps {worst.left} of {worst.wanted} pods" if len(budgets) == 1 else ""
    return f", {number}beyond the budget{'s' * (len(budgets) > 1)} {_joined(budgets)}{keeps}"


def _phrase(group: Sequence[Happening]) -> str:
    first = group[0]
    pods = list({one.pod.uid: one.pod for one in group if one.pod is not None}.values())
    nodes = list(dict.fromkeys(one.node for one in group if one.node))
    if pods:
        text = f"{counted(pods)} {first.says[len(pods) > 1].replace('{nodes}', _nodes(nodes))}"
        return text + (f", {len(group)} times" if len(group) > len(pods) and first.kind in _REPEATED else "")
    if nodes and not first.what:
        text = f"{_nodes(nodes)} {first.says[len(nodes) > 1]}"
        return text + (f", {len(group)} times" if len(group) > len(nodes) else "")
    last = group[-1]
    if first.sizes is not None and last.sizes is not None:
        return f"{first.says[1]} from {first.sizes[0]} to {last.sizes[1]} in {len(group)} steps"
    if all(one.what == first.what for one in group):
        return f"{first.what}, {len(group)} times"
    return f"{first.what}, and {len(group) - 1} more like that"


def counted(pods: Sequence[PodHistory]) -> str:
    """``18 web and 37 batch pods``; a few by their names."""
    if len(pods) <= happenings.NAMED:
        return _joined([short(pod.key) for pod in pods])
    families = Counter(map(happenings.family, pods))
    # More than there is room for: the largest, in the order in which they came.
    shown = dict(families.most_common(MOST_FAMILIES)) if len(families) > MOST_FAMILIES + 1 else families
    parts = [f"{count} {name}" for name, count in families.items() if name in shown]
    rest = len(pods) - sum(shown.values())
    return f"{_joined([*parts, f'{rest} other'] if rest else parts)} pods"


def _nodes(nodes: Sequence[str]) -> str:
    return _joined(nodes) if len(nodes) <= happenings.NAMED else f"{len(nodes)} nodes"


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0] if parts else "no node"


def _why(group: Sequence[Happening]) -> str:
    kind = group[0].kind
    pods = list({one.pod.uid: one.pod for one in group if one.pod is not None}.values())
    if kind == "bound":
        return f"waited {_range([one.time_ns - one.pod.created_ns for one in group if one.pod is not None])}"
    if kind == "waiting":
        waited = f"for {_range([one.time_ns - one.pod.created_ns for one in group if one.pod is not None])}"
        reason = _usual([_in_short(happenings.last_reason(pod)) for pod in pods])
        return f"{waited}; {reason}" if reason else waited
    if kind == "preempted":
        by = list({one.by.uid: one.by for one in group if one.by is not None}.values())
        if not by:
            return ""
        outranks = happenings.outranks(by, pods)
        return f"{'make' if len(group) > 1 else 'makes'} room for {counted(by)} ({outranks})"
    if group[0].why is None:
        wants = dict.fromkeys(one.reason() for one in group)
        return next(iter(wants)) if len(wants) == 1 else ""
    return _usual([_in_short(one.reason()) for one in group])


def _usual(reasons: Sequence[str]) -> str:
    """The most frequent; of several such the first."""
    found = Counter(reasons)
    if not found:
        return ""
    reason, _ = found.most_common(1)[0]
    return f"most often: {reason}" if reason and len(found) > 1 else reason


def _in_short(reason: str) -> str:
    """Without what a scheduler adds on why preemption does not help."""
    return reason.partition(". preemption: ")[0].removesuffix(".")


def _range(times_ns: Sequence[int]) -> str:
    low, high = happenings.seconds(min(times_ns)), happenings.seconds(max(times_ns))
    return low if low == high else f"{low.removesuffix(' s')} to {high}"
