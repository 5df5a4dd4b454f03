"""What a search finds in a crowd of pods becomes small: fewer pods need other delays, and expect other numbers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from kemu.doors.cli import exits, main
from kemu.lab.exploration import campaigns, executions, searches
from kemu.lab.exploration.shrinking import anew, documents, shrinker
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.holds import Hold, Label, MessagePattern
from kemu.runtime.runlog.events import typed
from kemu.runtime.runlog.frames import Entry
from tests.exploration.shrinking_table import Uniform

CROWD = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {{name: crowd}}
spec:
  seed: 1
  duration: 2m
  nodes: [{{namePrefix: node-, count: 3, allocatable: {{cpu: "4", memory: 16Gi, pods: "110"}}}}]
  schedulers: [{{name: red}}, {{name: blue}}]
  priorityClasses: {{high: 1000, middle: 100, low: 10}}
  workloads:
    - name: filler
      start: 1s
      arrivals: {{every: 100ms, count: 6}}
      pods:
        metadata: {{annotations: {{kemu.dev/shutdown-seconds: "3"}}}}
        spec:
          schedulerName: red
          priorityClassName: low
          terminationGracePeriodSeconds: 10
          containers: [{{name: main, resources: {{requests: {{cpu: "2"}}}}}}]
    - name: preemptor
      start: 20s
      arrivals: {{{preemptors}}}
      pods:
        spec:
          schedulerName: red
          priorityClassName: high
          containers: [{{name: main, resources: {{requests: {{cpu: "{cpu}"}}}}}}]
    - name: rival
      start: {rivals_at}
      arrivals: {{{preemptors}}}
      pods:
        spec:
          schedulerName: blue
          priorityClassName: middle
          containers: [{{name: main, resources: {{requests: {{cpu: "2"}}}}}}]
  expect: [{expect}]
"""
"""Ten pods or more on three nodes. Preemptors of one scheduler make room, and the pods of the other one, which does not
see their nominations in time, take it."""
COUNTED = CROWD.format(
    preemptors="every: 5s, count: 3",
    cpu="2",
    rivals_at="20.05s",
    expect="{id: six-victims, counter: preemptions, equals: 6}",
)
LATE = CROWD.format(
    preemptors="every: 4s, count: 2",
    cpu="4",
    rivals_at="21s",
    expect="{id: in-time, pods: {workload: preemptor}, all: {bound: {before: 40s}}}",
)


def failing(text: str, most_ms: int, check: str) -> tuple[Scenario, executions.Failure]:
    """The first of a few runs with random delays that fails so, as a scenario with a hold for each delay."""
    scenario = loader.loads(text)
    assert not executions.execute(scenario).failures
    for seed in range(1, 9):
        execution = executions.execute(scenario, chooser=Uniform(seed, most_ms))
        for failure in execution.failures:
            if failure.id == check:
                return dataclasses.replace(scenario, holds=execution.deviations), failure
    raise AssertionError("no run fails")


@pytest.mark.parametrize(
    ("text", "most_ms", "check", "pods"),
    [
        # By day ``kemu shrink`` makes the first as small, in two goes.
        pytest.param(COUNTED, 400, "six-victims", 3, marks=pytest.mark.nightly("a quarter of a minute")),
        pytest.param(LATE, 2000, "in-time", 4, marks=pytest.mark.nightly("ten seconds, as for the other")),
    ],
)
def test_a_crowd_becomes_small(text: str, most_ms: int, check: str, pods: int) -> None:
    """Where it keeps more than three pods, nothing of them can go."""
    scenario, failure = failing(text, most_ms, check)
    assert len(scenario.holds) > 250
    shrunk = shrinker.shrink(scenario, failure, most_s=800)
    assert (shrunk.minimal, shrunk.why_not) == (True, "")
    assert shrunk.pods <= pods
    assert shrunk.nodes <= 2
    assert shrunk.holds <= 3
    assert failure.id in [found.id for found in executions.execute(shrunk.scenario).failures]


def test_an_exact_number_is_that_of_the_run_that_goes_well() -> None:
    data = loader.loads(COUNTED).resolved
    assert documents.expected_number(data) == 6
    assert documents.expected_number(loader.loads(LATE).resolved) is None
    assert documents.counted("preemptions = 5") == 5
    assert documents.counted("0 of 2 pods") is None
    assert documents.expected_number(documents.with_expected_number(data, 2)) == 2


def test_one_hold_stands_for_all_of_a_link() -> None:
    """It begins with the first, and ends when the last of them would have."""

    def hold(target: str, count: int, for_ns: int) -> Hold:
        return Hold(MessagePattern("apiserver/0", target, Label("event"), count), None, for_ns)

    holds = [hold("a", 1, 50), hold("b", 1, 70), hold("a", 2, 60)]
    events = [
        Entry(time_ns, "sim", "hold.kept", typed("hold.kept", {"hold": index, "for_ns": holds[index].for_ns}))
        for index, time_ns in enumerate((100, 110, 180))
    ]
    assert anew.links(holds) == [(holds[0], holds[2]), (holds[1],)]
    assert anew.merged(holds, [(holds[0], holds[2])], events) == [hold("a", 1, 140), holds[1]]


def test_delays_of_searching_anew_are_always_the_same() -> None:
    assert anew.choosers(120_000_000_000) == anew.choosers(120_000_000_000)
    assert len({json.dumps(dict(one.parameters), sort_keys=True) for one in anew.choosers(120_000_000_000)}) == 6


def test_searching_and_shrinking_share_the_time(tmp_path: Path) -> None:
    options = searches.Options(tmp_path / "out", runs=1, seconds=100)
    with searches.Search(loader.loads(LATE), options) as search:
        settings = search.campaign.settings
        assert (settings.seconds, settings.seconds_if_found) == (100, 50)
        search.campaign.seconds = 50
        assert search._share_s() == 50
        search._shrinking_s = 48
        assert search._share_s() == searches.LEAST_S
    without = searches.Options(tmp_path / "other", runs=1)
    with searches.Search(loader.loads(LATE), without) as search:
        assert search._share_s() == searches.EXECUTIONS_S


def test_a_campaign_that_has_found_something_ends_earlier() -> None:
    settings = campaigns.Settings(seconds=10, seconds_if_found=5)
    campaign = campaigns.Campaign.__new__(campaigns.Campaign)
    campaign.settings, campaign.records, campaign.seconds = settings, [], 7.0
    campaign.clusters = []  # type: ignore[assignment]
    assert not campaign._is_over()
    campaign.clusters = [None]  # type: ignore[assignment]
    assert campaign._is_over()


class TestKemuShrink:
    @pytest.mark.slow
    def test_goes_on_until_nothing_can_go(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        scenario, failure = failing(COUNTED, 400, "six-victims")
        folder = tmp_path / f"{failure.id}-1"
        folder.mkdir()
        file = folder / searches.SCENARIO_FILE
        file.write_text(searches.text_of(scenario, scenario.holds))
        before = len(scenario.holds)

        def shrink(*options: str) -> tuple[int, dict[str, object]]:
            code = main.main(["shrink", str(folder), "--jobs", "1", "--json", *options])
            return code, json.loads(capsys.readouterr().out)

        code, found = shrink("--runs", "40")
        assert code == exits.UNKNOWN
        assert not found["minimal"]
        assert "executions ended" in str(found["why_larger"])
        assert str(found["continue"]).endswith(f"shrink {folder}")
        fewer = len(loader.load(file).holds)
        assert fewer < before
        code, found = shrink()
        assert code == exits.HOLDS
        assert found["minimal"]
        assert found["continue"] == ""
        assert len(loader.load(file).holds) <= 3
        assert (folder / "explanation.txt").is_file()

    def test_says_what_it_cannot_shrink(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = tmp_path / "fine.yaml"
        file.write_text(LATE)
        assert main.main(["shrink", str(file)]) == exits.INPUT
        assert "does not fail" in capsys.readouterr().err
        assert main.main(["shrink", str(tmp_path)]) == exits.INPUT
        assert "has no scenario.yaml" in capsys.readouterr().err
