"""Shrinking keeps the failure, and leaves nothing that could go."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.settings import documents
from kemu.lab.exploration import executions
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.shrinking import shrinker, subsets, texts
from kemu.lab.exploration.shrinking.candidates import Loading
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.scenario.scenarios import Scenario
from tests.exploration.shrinking_table import Uniform, scenario_of
from tests.mutants import all_parts

RACE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: race}
spec:
  seed: 3
  duration: 1m
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  schedulers: [{name: red}, {name: blue}]
  workloads:
    - name: red
      start: 5s
      arrivals: {every: 200ms, count: 3}
      pods: {spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
    - name: blue
      start: 5.1s
      arrivals: {every: 200ms, count: 3}
      pods: {spec: {schedulerName: blue, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
  chaos:
    - {id: in-vain, at: 4s, for: 100ms, crash: {actor: kubelet/node-1}}
  expect:
    - {id: nobody-is-rejected, counter: admissions_rejected, equals: 0}
    - {id: all-are-bound, pods: {workload: red}, all: {created: {}}}
"""
"""Six pods for four places; each scheduler learns in time what the other has done, unless news are late."""


def failing(scenario: Scenario, seed: int, most_ms: int) -> tuple[Scenario, Failure]:
    execution = executions.execute(scenario, chooser=Uniform(seed, most_ms))
    return dataclasses.replace(scenario, holds=execution.deviations), execution.failures[0]


@functools.cache
def race(seed: int) -> tuple[Scenario, Failure, shrinker.Shrunk]:
    scenario, failure = failing(loader.loads(RACE), seed, 400)
    return scenario, failure, shrinker.shrink(scenario, failure)


@pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.nightly("another failure of the same race"))])
class TestARace:
    def test_fits_on_one_screen(self, seed: int) -> None:
        scenario, failure, shrunk = race(seed)
        assert executions.execute(loader.loads(RACE)).outcome == executions.HOLDS
        assert failure.id == "nobody-is-rejected"
        assert len(scenario.holds) > 50
        assert (shrunk.pods, shrunk.nodes, shrunk.schedulers, shrunk.faults) == (2, 1, 2, 0)
        assert 1 <= shrunk.holds <= 3
        assert shrunk.executions <= 200
        assert shrunk.minimal
        assert len(shrunk.yaml.splitlines()) <= 50

    def test_fails_as_a_file_and_is_replayed(self, seed: int, tmp_path: Path) -> None:
        _, failure, shrunk = race(seed)
        file = tmp_path / "shrunk.yaml"
        file.write_text(shrunk.yaml)
        result = runner.run(loader.load(file), runner.Options(out=tmp_path / "run", runtime="sim"))
        assert [one["id"] for one in result.verdict["expectations"] if not one["holds"]] == [failure.id]
        assert [one.difference for one in replays.replay(result.folder)] == [None]

    def test_holds_without_any_of_its_holds(self, seed: int) -> None:
        _, failure, shrunk = race(seed)
        holds = shrunk.scenario.holds
        for left_out in range(len(holds)):
            fewer = [hold for index, hold in enumerate(holds) if index != left_out]
            execution = executions.execute(dataclasses.replace(shrunk.scenario, holds=tuple(fewer)))
            assert failure not in execution.failures
            assert execution.outcome == executions.HOLDS

    def test_holds_without_any_of_its_pods_and_schedulers(self, seed: int) -> None:
        _, failure, shrunk = race(seed)
        for section in ("events", "schedulers"):
            for index in range(len(shrunk.scenario.resolved["spec"][section])):
                data = documents.copy(shrunk.scenario.resolved)
                del data["spec"][section][index]
                candidate = Loading("race.yaml").candidate(
                    {**data, "spec": _without_holds(data)}, shrunk.scenario.holds
                )
                assert candidate is not None
                assert failure.id not in [found.id for found in executions.execute(candidate.scenario).failures]


def _without_holds(data: Any) -> dict[str, Any]:
    return {key: value for key, value in data["spec"].items() if key != "holds"}


@pytest.mark.thorough
def test_many_jobs_come_to_the_same_end_with_as_many_executions() -> None:
    scenario, failure, alone = race(1)
    together = shrinker.shrink(scenario, failure, jobs=2)
    assert together.yaml == alone.yaml
    assert together.counts() == alone.counts()


def test_a_budget_that_ends_is_said() -> None:
    scenario, failure, _ = race(1)
    shrunk = shrinker.shrink(scenario, failure, most_executions=10)
    assert shrunk.executions == 10
    assert not shrunk.minimal
    assert "executions ended" in shrunk.why_not
    assert failure.id in [found.id for found in executions.execute(shrunk.scenario).failures]


def test_what_does_not_fail_is_refused() -> None:
    scenario, failure, _ = race(1)
    with pytest.raises(shrinker.NotReproducedError):
        shrinker.shrink(dataclasses.replace(scenario, holds=()), failure)
    with pytest.raises(shrinker.NotReproducedError):
        shrinker.shrink(scenario, dataclasses.replace(failure, cause="another"))


@functools.cache
def planted() -> tuple[shrinker.Shrunk, executions.Execution]:
    """A bug that a check finds in any run, and the run that demonstrates it."""
    with pytest.MonkeyPatch.context() as patch:
        all_parts.MUTANTS["an-informer-ignores-deletions"].plant(patch)
        scenario, failure = failing(scenario_of("races/two-replicas-same-pods", 1), 1, 20)
        assert failure.id == "cache-agrees-with-store"
        assert len(scenario.holds) > 500
        found = shrinker.shrink(scenario, failure)
        return found, executions.execute(loader.loads(found.demonstration()))


class TestAPlantedBug:
    def test_needs_one_pod_on_one_node(self) -> None:
        found, _ = planted()
        assert (found.pods, found.nodes, found.schedulers, found.holds) == (1, 1, 1, 0)
        assert found.minimal
        assert found.executions <= 60

    def test_is_shown_by_a_scenario_that_holds(self) -> None:
        found, demonstrated = planted()
        assert demonstrated.outcome == executions.HOLDS
        mended = executions.execute(loader.loads(found.demonstration()))
        assert mended.outcome == executions.FAILS


class TestAMinimalPart:
    def questions(self, things: int, needed: set[int]) -> tuple[list[int], int]:
        asked = 0

        def first(lists: list[list[int]]) -> int | None:
            nonlocal asked
            for index, each in enumerate(lists):
                asked += 1
                if needed <= set(each):
                    return index
            return None

        return subsets.minimal(range(things), first), asked

    @pytest.mark.parametrize(
        ("needed", "most"), [(set(), 1), ({0}, 12), ({599}, 12), ({3, 300}, 24), ({3, 4, 599}, 36)]
    )
    def test_of_hundreds_is_found_with_few_questions(self, needed: set[int], most: int) -> None:
        found, asked = self.questions(600, needed)
        assert found == sorted(needed)
        assert asked <= most

    @pytest.mark.parametrize("count", [7, 20, 64])
    def test_may_be_large(self, count: int) -> None:
        needed = set(range(0, 3 * count, 3))
        found, _ = self.questions(3 * count + 5, needed)
        assert found == sorted(needed)

    def test_is_all_where_all_are_needed(self) -> None:
        assert self.questions(9, set(range(9)))[0] == list(range(9))

    @pytest.mark.parametrize("enough", range(8))
    def test_the_least_number(self, enough: int) -> None:
        assert subsets.least(7, lambda asked: 0 if asked[0] >= enough else None) == enough


def test_the_text_says_what_the_data_does() -> None:
    for scenario in (race(1)[0], scenario_of("seeds/preemption-example-1", 1), scenario_of("chaos/zone-outage", 1)):
        (found,) = documents.parse(texts.text(scenario.resolved), "text.yaml")
        assert json.dumps(found.data, sort_keys=True) == json.dumps(scenario.resolved, sort_keys=True)
    words = {
        "metadata": {"name": "x", "description": "a: b # c"},
        "spec": {"images": {"on": "4", "1e3": "no", "~": "0x1"}},
    }
    (found,) = documents.parse(texts.text(words), "text.yaml")
    assert found.data == words


BY_CHANCE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: by-chance}
spec:
  duration: 30s
  timing: realistic
  nodes: [{name: node-1, allocatable: {cpu: "1", memory: 16Gi, pods: "110"}}]
  schedulers: [{name: red}, {name: blue}]
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: red-pod},
       spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
    - {at: 5.010s, create: {apiVersion: v1, kind: Pod, metadata: {name: blue-pod},
       spec: {schedulerName: blue, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  expect:
    - {id: nobody-is-rejected, counter: admissions_rejected, equals: 0}
"""


@pytest.mark.thorough
def test_latencies_left_to_chance_become_holds() -> None:
    plain = loader.loads(BY_CHANCE)
    seeds = (dataclasses.replace(plain, seed=seed) for seed in range(40))
    scenario = next(each for each in seeds if executions.execute(each).failures)
    (failure,) = executions.execute(scenario).failures
    shrunk = shrinker.shrink(scenario, failure)
    assert "timing" not in shrunk.scenario.resolved["spec"]
    assert 1 <= shrunk.holds <= 3
    assert shrunk.pods == 2
    assert executions.execute(dataclasses.replace(shrunk.scenario, holds=())).outcome == executions.HOLDS
