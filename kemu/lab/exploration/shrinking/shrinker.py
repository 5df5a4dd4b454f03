"""Shrinks a failing run to a scenario that fits on one screen.

    shrunk = shrink(scenario, failure)
    print(shrunk.yaml)

Order: faults, pods, nodes, schedulers and settings, holds, round after round until nothing goes any more; then holds
are made readable; and in the end every single part is taken away once, so that what is left is known to be needed.
Every step keeps the failure: the same check with the same cause.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kemu.emulated.settings.values import duration_text
from kemu.errors import KemuError
from kemu.lab.exploration import executions, workers
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.shrinking import (
    anew,
    documents,
    freezing,
    readable_holds,
    steps,
    subsets,
    texts,
    trials,
    twins,
)
from kemu.lab.exploration.shrinking.candidates import Candidate, Data, Loading, copied
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS

T = TypeVar("T")

MOST_EXECUTIONS = 600
MOST_S = 60.0
_DEEPEST = 4
"""So deep within a setting its parts are tried."""
_FEW = 6
"""The number of parts up to which pairs are tried."""


class NotReproducedError(KemuError):
    """The scenario does not fail in the way that is to be shrunk."""


@dataclass(frozen=True)
class Shrunk:
    """A small scenario that fails as the large one did."""

    scenario: Scenario
    """Stands alone: with its holds and its seed."""
    failure: Failure
    """With its detail in the small scenario."""
    yaml: str
    """The scenario's file; ``kemu run`` fails in the same way."""
    pods: int
    nodes: int
    schedulers: int
    """Replicas count."""
    faults: int
    holds: int
    events: int
    """Without those that create pods."""
    executions: int
    wall_s: float
    minimal: bool
    """Taking any single fault, event, pod, node, scheduler, setting or hold away makes the run pass, or fail otherwise;
    or the run that has to go well beside it (``twins``) does not go well any more."""
    why_not: str
    """Why that is not known; empty if it is."""

    def demonstration(self) -> str:
        """The scenario's file with the expectation that the check is broken, so that the run holds. Raises ValueError
        where what fails is an expectation."""
        if not twins.is_absolute(self.failure) or self.failure.id == executions.BROKEN:
            raise ValueError(f"{self.failure.id} is no check of its own")
        data = copied(self.scenario.resolved)
        data["spec"]["expect"] = [{"check": self.failure.id, "holds": False}]
        return texts.text(data)

    def counts(self) -> dict[str, int]:
        """As ``kemu explore --json`` tells them."""
        names = ("pods", "nodes", "schedulers", "faults", "holds", "events", "executions")
        return {name: getattr(self, name) for name in names}


def shrink(
    scenario: Scenario,
    failure: Failure,
    *,
    execute: trials.Execute = executions.execute,
    executor: workers.Executor | None = None,
    jobs: int = 1,
    data_dir: str = "",
    most_executions: int = MOST_EXECUTIONS,
    most_s: float = MOST_S,
) -> Shrunk:
    """Shrink a run that fails in this way.

    With ``jobs`` candidates run at the same time, by the executor of a campaign or by workers of its own; the result is
    that of one job, unless the time ends first. Raises NotReproducedError.
    """
    with trials.runner(execute, jobs, executor, scenario, data_dir) as runner:
        return _shrink(scenario, failure, execute, runner, most_executions, most_s, data_dir)


def _shrink(
    scenario: Scenario,
    failure: Failure,
    execute: trials.Execute,
    runner: trials.Runner,
    most_executions: int,
    most_s: float,
    data_dir: str,
) -> Shrunk:
    loading = Loading(scenario.file, data_dir)
    data = copied(scenario.resolved)
    data["spec"].pop("holds", None)
    data["spec"].pop("matrix", None)
    data["spec"]["seed"] = scenario.seed
    begin = loading.candidate(data, scenario.holds)
    if begin is None:
        raise NotReproducedError("the scenario cannot be loaded by itself")
    asked = trials.Trials(failure, execute, runner, most_executions, most_s)
    if not asked.fails(begin):
        raise NotReproducedError(f"the run does not fail as {failure.id} says")
    shrinker = _Shrinker(asked, loading, begin)
    why_not = ""
    try:
        shrinker.shrink()
    except trials.BudgetSpentError:
        # That it ended while a minimal scenario was searched anew takes nothing away.
        if shrinker.best.key != shrinker.minimal_key:
            why_not = _spent(asked)
    return _shrunk(shrinker.best, asked, scenario, data_dir, why_not)


def _spent(asked: trials.Trials) -> str:
    spent = "executions" if asked.executions >= asked.most_executions else "time"
    return f"the {spent} ended after {asked.executions} executions and {asked.spent_s:.0f} s"


class _Shrinker(steps.Steps):
    """The order of the steps."""

    def __init__(self, asked: trials.Trials, loading: Loading, begin: Candidate) -> None:
        super().__init__(asked, loading, begin)
        self.minimal_key: object = None
        """The key of the best, once nothing of it can go."""
        self._anew = anew.Anew(self)
        self._readable = readable_holds.Readable(self)
        self._counts_too_many = False
        """Where the number of a counter is expected: the run that fails has more."""

    def shrink(self) -> None:
        self._expectations()
        self.trials.twin = twins.twin(self.best, self.trials, self.loading)
        expected, found = documents.expected_number(self.best.data), documents.counted(self.trials.failure.detail)
        if expected is not None and found is not None:
            self._counts_too_many = found > expected
            self.trials.counted_anew = self._counted_anew
        self.keeps_plot = self.trials.twin is None and not twins.is_absolute(self.trials.failure)
        self._quickly()
        self._round(is_coarse=True)
        if self._is_large():
            self._anew.search()
        if len(documents.items(self.best.data, *documents.PODS)) > _FEW or len(self.best.holds) > _FEW:
            self._round(is_coarse=False)
        self.take_data(documents.with_single_nodes(self.best.data))
        self.take_data(*(documents.with_round_times(self.best.data, unit_ns) for unit_ns in _UNITS_NS))
        self._until_nothing_goes()
        if self._is_large():
            self._anew.search()
            self._until_nothing_goes()

    def _until_nothing_goes(self) -> None:
        while self.best.key != self.minimal_key:
            before = self.best.key
            self._sweep()
            self._pods_and_room()
            self._readable.improve()
            if self.best.key == before:
                self.minimal_key = before

    def _round(self, *, is_coarse: bool) -> None:
        self._faults()
        self._pods(is_coarse=is_coarse)
        self._nodes()
        self._sizes()
        self._pods_and_room()
        self._schedulers()
        self._settings()
        self.hold_list()
        self._readable.improve()

    def _sweep(self) -> None:
        """Takes single parts away until none can go any more."""
        start, is_clean = 0, False
        while not is_clean:
            is_clean = start == 0
            while (found := self.take(list(self._removals())[start:])) is not None:
                start, is_clean = start + found, False
            start = 0

    def _is_large(self) -> bool:
        best = self.best
        found = {"pods": _pods(best), "nodes": len(best.scenario.nodes), "holds": len(best.holds)}
        return any(found[name] > most for name, most in anew.SMALL.items())

    # Before the rounds

    def _expectations(self) -> None:
        """Only what fails is expected. An expectation that a check holds is that check, which counts by itself."""
        data, failure = self.best.data, self.trials.failure
        expected = [item for item in data["spec"].get("expect") or () if "compare" not in item]
        if not expected or len(expected) != len(self.best.scenario.expectations):
            return
        changed = copied(data)
        changed["spec"].pop("expect")
        failing = [index for index, one in enumerate(self.best.scenario.expectations) if one.id == failure.id]
        if failing:
            expectation = self.best.scenario.expectations[failing[0]]
            subject = expectation.subject
            if isinstance(subject, CheckIs) and subject.holds and self._becomes_check(changed, subject.check):
                return
            changed["spec"]["expect"] = [{"id": expectation.id, **copied(expected[failing[0]])}]
        self.take_data(changed)

    def _counted_anew(self, candidate: Candidate, failing: Failure, passing: Failure) -> Candidate | None:
        """As many as the run that goes well has; too many stay too many, too few too few."""
        expected, found = documents.expected_number(candidate.data), documents.counted(failing.detail)
        usual = documents.counted(passing.detail)
        if expected is None or found is None or usual is None or found == usual:
            return None
        if (found > usual) is not self._counts_too_many:
            return None
        return self.loading.candidate(documents.with_expected_number(candidate.data, usual), candidate.holds)

    def _becomes_check(self, changed: Data, check: str) -> bool:
        candidate = self.loading.candidate(changed, self.best.holds)
        if candidate is None:
            return False
        found = self.trials.failure_of(candidate, check)
        if found is None or not twins.is_absolute(found):
            return False
        self.trials.failure = found
        self.best = candidate
        return True

    def _quickly(self) -> None:
        """What often goes, and makes what comes after it faster: time, most nodes, room, chance, holds."""
        self._tiny()
        self._duration()
        if self.best.holds:
            self.take([self.best.with_holds(())])
        self._coarsely()
        if self.best.holds:
            self.hold_list(most_bisected=4, finest=len(self.best.holds))
            if len(self.best.holds) > anew.MANY:
                self._anew.by_links()
                self.hold_list(most_bisected=4)
            self._coarsely()

    def _coarsely(self) -> None:
        for section in ("timing",) if self.keeps_plot else ("chaos", "timing"):
            if section in self.best.spec:
                self.take_data(documents.without(self.best.data, [("spec", section)]))
        self.take_data(*(documents.with_fewer_nodes(self.best.data, count) for count in (1, 2)))
        self._sizes()
        self._numbers()

    def _tiny(self) -> None:
        """Few pods on few nodes with little room: what no part of a large scenario comes to by itself."""
        best = self.best
        if sum(documents.planned(best.scenario).values()) <= _FEW and len(best.scenario.nodes) <= _FEW:
            return
        for pods, nodes, room in ((1, 1, 1), (2, 1, 1), (3, 1, 1), (3, 1, 2), (3, 2, 1)):
            data = documents.with_fewer_nodes(best.data, nodes) or best.data
            data = documents.with_room_for(data, room) or data
            for index in range(len(data["spec"].get("workloads") or ())):
                data = documents.with_count(data, index, pods)
            tiny = self.loading.candidate(data, best.holds)
            if tiny is not None and self.take([tiny.with_holds(()), tiny]) is not None:
                return

    def _sizes(self) -> None:
        """All pods as large as the smallest; then little room, which may be enough before."""
        best = self.best
        equal = documents.with_equal_pods(best.data)
        rooms = (1, 2, 3)
        changed = [] if equal is None else [documents.with_room_for(equal, room) for room in rooms]
        changed += [equal, *(documents.with_room_for(best.data, room) for room in rooms)]
        self.take_data(*changed)

    def _numbers(self) -> None:
        """Fewer replicas, and what else an object states as a number."""
        for way, count in documents.numbers(self.best.data):
            fewer = [number for number in sorted({1, 2, 3, count // 2}) if 0 < number < count]
            self.take_data(*(documents.with_number(self.best.data, way, number) for number in fewer))

    def _duration(self) -> None:
        if self.keeps_plot:
            return
        times = [time_ns for time_ns in _DURATIONS_NS if time_ns < self.best.scenario.duration_ns]

        def with_duration(time_ns: int) -> Candidate | None:
            way = ("spec", "duration")
            return self.loading.candidate(
                documents.changed_at(self.best.data, way, duration_text(time_ns)), self.best.holds
            )

        if times:
            subsets.least(len(times), lambda asked: self.take(with_duration(times[index]) for index in asked))

    def _pods_and_room(self) -> None:
        """One pod less where there is room for fewer: neither may go alone."""
        data, best = self.best.data, self.best
        found = documents.items(data, *documents.PODS)
        if not 2 < len(found) <= _FEW:
            return
        smaller = []
        for item in found:
            rest = documents.keeping(data, [other for other in found if other != item], *documents.PODS)
            for count in (1, 2):
                less = documents.with_room_for(rest, count)
                smaller.append(None if less is None else self.loading.candidate(less, best.holds))
        self.take(smaller)

    # In each round

    def _faults(self) -> None:
        data = self.best.data
        found = documents.items(data, "chaos")
        if found and not self.keeps_plot:
            self.minimise(found, lambda kept: self.with_items(data, kept, "chaos"))

    def _pods(self, *, is_coarse: bool) -> None:
        for index, name in enumerate(item["name"] for item in self.best.spec.get("workloads") or ()):
            self._count(index, name)
        expect = self.best.spec.get("expect") or [None]
        self.take_data(documents.with_single_pods(self.best.data, self.best.scenario, expect[0]))
        data = self.best.data
        found = documents.in_time(data)
        fixed = documents.happenings(data) if self.keeps_plot else []
        free = [item for item in found if item not in fixed]

        def made(kept: Sequence[documents.Item]) -> Candidate | None:
            everything = [*fixed, *kept]
            return self.with_items(data, everything, *documents.PODS) if everything or not self.keeps_plot else None

        if free:
            self.minimise(free, made, finest=max(1, len(free) // 8) if is_coarse else 1)
        self._numbers()

    def _count(self, index: int, name: str) -> None:
        """Fewer pods of a workload: by halves, for what remains is tried one by one."""
        count = documents.planned(self.best.scenario).get(name, 0)
        written = self.best.spec["workloads"][index]
        if "trace" in written:
            return
        while count > 8 or (count > 1 and written.get("replaceFinished")):
            count //= 2
            if not self.take_data(documents.with_count(self.best.data, index, count)):
                return

    def _nodes(self) -> None:
        single = documents.with_single_nodes(self.best.data)
        if single is None:
            self._node_groups()
        data = single or self.best.data
        found = documents.items(data, "nodes")
        if len(found) > 1:
            self.minimise(found, lambda kept: self.with_items(data, kept, "nodes") if kept else None)

    def _node_groups(self) -> None:
        for index, node in enumerate(self.best.spec.get("nodes") or ()):
            count = node.get("count", 1)
            while count > 1:
                count //= 2
                way = ("spec", "nodes", index, "count")
                if not self.take_data(documents.changed_at(self.best.data, way, count)):
                    break

    def _schedulers(self) -> None:
        data = self.best.data
        found = documents.items(data, "schedulers")
        if len(found) > 1:
            self.minimise(found, lambda kept: self.with_items(data, kept, "schedulers") if kept else None)
        spec = self.best.spec
        if spec.get("schedulers"):
            self.take_data(documents.without(self.best.data, [("spec", "schedulers")]))

    def _settings(self) -> None:
        single = documents.with_single_times(self.best.data)
        if single is not None:
            self.take_data(single)
        self._freeze()
        self.take_data(documents.without_chance(self.best.data))
        ways = documents.settings(self.best.data)
        for _ in range(_DEEPEST):
            ways = [part for way in self._leave_out(ways) for part in documents.inside(self.best.data, way)]
        for way in documents.distributions(self.best.data):
            value = documents.at(self.best.data, way)
            self.take_data(*(documents.changed_at(self.best.data, way, one) for one in documents.constants(value)))
        self._duration()

    def _freeze(self) -> None:
        """Latencies left to chance become holds, if the failure needs any of them."""
        ways = freezing.drawn(self.best.data)
        if not ways:
            return
        plain = self.best.data
        for way in ways:
            plain = documents.changed_at(plain, way, documents.constants(documents.at(plain, way))[0])
        if self.take_data(plain):
            return
        messages = self.trials.messages(self.best, freezing.Still())
        data, holds = freezing.frozen(self.best.data, ways, messages)
        self.take([self.loading.candidate(data, [*self.best.holds, *holds])])

    def _leave_out(self, ways: list[documents.Way]) -> list[documents.Way]:
        """All of them, or one kind after the other; returns what stays."""
        if not ways or self.take_data(documents.without(self.best.data, ways)):
            return []
        kinds: dict[documents.Way, list[documents.Way]] = {}
        for way in ways:
            kinds.setdefault(tuple(step for step in way if isinstance(step, str)), []).append(way)
        # Within a kind, what goes changes no index of another.
        left = list(kinds.values()) if len(kinds) > 1 else []
        kept = [] if left else ways
        while left:
            found = self.take(
                self.loading.candidate(documents.without(self.best.data, each), self.best.holds) for each in left
            )
            gone = len(left) if found is None else found
            kept += [way for each in left[:gone] for way in each]
            left = left[gone + 1 :]
        return kept

    def _removals(self) -> Iterator[Candidate | None]:
        """The scenario without each of its parts."""
        best = self.best
        data, holds = best.data, best.holds

        def made(changed: Data) -> Candidate | None:
            return self.loading.candidate(changed, holds)

        fixed = [*documents.items(data, "chaos"), *documents.happenings(data)] if self.keeps_plot else []
        for sections in (("chaos",), documents.PODS, ("nodes",), ("schedulers",)):
            found = documents.items(data, *sections)
            least = sections in (("nodes",), ("schedulers",)) or (sections == documents.PODS and self.keeps_plot)
            for item in found:
                others = [other for other in found if other != item]
                if item not in fixed and len(others) >= least:
                    yield made(documents.keeping(data, others, *sections))
        counts = documents.planned(best.scenario)
        for index, workload in enumerate(best.spec.get("workloads") or ()):
            if "trace" not in workload and counts[workload["name"]] > 1:
                yield made(documents.with_count(data, index, counts[workload["name"]] - 1))
        for index, node in enumerate(best.spec.get("nodes") or ()):
            if node.get("count", 1) > 1:
                yield made(documents.changed_at(data, ("spec", "nodes", index, "count"), node["count"] - 1))
        for way, count in documents.numbers(data):
            yield made(documents.with_number(data, way, count - 1))
        for way in documents.settings(data):
            yield made(documents.without(data, [way]))
            for part in documents.inside(data, way):
                yield made(documents.without(data, [part]))
        for index in range(len(holds)):
            yield best.with_holds([hold for at, hold in enumerate(holds) if at != index])


_UNITS_NS = (SECOND_NS, 100 * MILLISECOND_NS, 10 * MILLISECOND_NS, MILLISECOND_NS)
"""Units of the times of events; the first counts that keeps the failure."""
_DURATIONS_NS = tuple(
    seconds * SECOND_NS for seconds in (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600)
)


def _shrunk(best: Candidate, asked: trials.Trials, original: Scenario, data_dir: str, why_not: str) -> Shrunk:
    detail = asked.detail(best)
    failure = dataclasses.replace(asked.failure, detail=detail)
    data = best.whole_data()
    # The failure of a plugin has several lines.
    about = f"{failure.id}: {' '.join(detail.split())}. Shrunk from {original.name}."
    data["metadata"] = {"name": original.name, "description": about}
    return Shrunk(
        scenario=loader.of_data(data, original.file, data_dir or None),
        failure=failure,
        yaml=texts.text(data),
        pods=_pods(best),
        nodes=len(best.scenario.nodes) + sum(len(event.nodes) for event in best.scenario.events),
        schedulers=sum(one.replicas for one in best.scenario.schedulers),
        faults=len(best.scenario.chaos),
        holds=len(best.holds),
        events=len(documents.happenings(data)),
        executions=asked.executions,
        wall_s=asked.spent_s,
        minimal=not why_not,
        why_not=why_not,
    )


def _pods(best: Candidate) -> int:
    """Those that the document brings, without replacements."""
    spec = best.spec
    created = [event.get("create") for event in spec.get("events") or ()]
    count = sum(1 for item in (*(spec.get("manifests") or ()), *created) if documents.is_pod(item))
    count += sum(documents.planned(best.scenario).values())
    count += sum(len(node.static_pods) for node in best.scenario.nodes)
    for item in (*(spec.get("manifests") or ()), *created):
        if isinstance(item, Mapping) and item.get("kind") in documents.REPLICATED:
            count += int((item.get("spec") or {}).get("replicas", 1))
        elif isinstance(item, Mapping) and item.get("kind") == "DaemonSet":
            count += len(best.scenario.nodes)
    return count
