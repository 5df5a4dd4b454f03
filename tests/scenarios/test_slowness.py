"""What a repetition at a slower speed may excuse: nothing that a correct cluster never does."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.scenario.expectations import Expectation
from kemu.lab.scenario.loading import loader
from tests.scenarios import slowness

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: slow}
spec:
  nodes: [{name: node-1, allocatable: {cpu: "1", memory: 1Gi, pods: "9"}}]
  schedulers: [{name: default-scheduler}]
  workloads:
    - {name: w, arrivals: {count: 1}, pods: {spec: {containers: [{name: main}]}}}
  expect: [%s]
"""


def expectations(text: str) -> tuple[Expectation, ...]:
    return tuple(loader.loads(SCENARIO % text).expectations)


def verdict(
    *,
    check: bool | None = True,
    expectation: bool | None = True,
    of: Expectation,
    ended: str = "idle",
    refused: str = "bind pods: Conflict",
) -> dict[str, Any]:
    return {
        "ended": ended,
        "refused": {refused: 4},
        "checks": [
            {"id": "no-node-overcommitted", "holds": check, "detail": "node-1", "asked": True},
            {"id": "no-pod-starves", "holds": False, "detail": "a detector that nobody asked", "asked": False},
        ],
        "expectations": [{"id": of.id, "text": of.text, "holds": expectation, "detail": "so"}],
    }


def test_a_check_that_fails_is_a_fault() -> None:
    found = expectations("{pod: w-0, bound: {before: 1s}}")
    assert [*slowness.faults(verdict(check=False, of=found[0]), found)] == ["no-node-overcommitted: node-1"]


def test_a_check_that_the_scenario_requires_to_hold_is_a_fault_too() -> None:
    found = expectations("{check: no-node-overcommitted, holds: true}")
    assert len([*slowness.faults(verdict(check=False, expectation=False, of=found[0]), found)]) == 2


def test_a_check_that_the_scenario_shows_failing_is_none() -> None:
    found = expectations("{check: no-node-overcommitted, holds: false}")
    assert [*slowness.faults(verdict(check=False, of=found[0]), found)] == []
    # That it did not fail is one, at any speed.
    assert len([*slowness.faults(verdict(expectation=False, of=found[0]), found)]) == 1


@pytest.mark.parametrize(
    ("text", "excused"),
    [
        ("{pod: w-0, bound: {before: 1s}}", True),
        ("{pod: w-0, waited: {atMost: 1s}}", True),
        ("{pod: w-0, neverBound: true}", True),
        ("{counter: preemptions, equals: 2}", True),
        ("{pods: {workload: w}, count: {is: {rejected: {}}, atLeast: 1}}", True),
        ("{pods: {workload: w}, none: {rejected: {}}}", False),
        ("{pod: w-0, bound: {}}", False),
        ("{pod: w-0, bound: {node: node-1}}", True),
        ("{pods: {workload: w}, all: {running: {}}}", False),
        ("{pod: w-0, phase: Running}", False),
    ],
)
def test_an_expectation_is_excused_only_if_it_depends_on_speed(text: str, excused: bool) -> None:
    found = expectations(text)
    assert bool([*slowness.faults(verdict(expectation=False, of=found[0]), found)]) != excused


def test_a_pod_may_fail_once_a_request_ended_in_the_unknown() -> None:
    found = expectations("{pods: {workload: w}, all: {finished: {phase: Succeeded}}}")
    assert [*slowness.faults(verdict(expectation=False, of=found[0]), found)]
    lost = "bind pods: Unknown"
    assert not [*slowness.faults(verdict(expectation=False, of=found[0], refused=lost), found)]
    assert [*slowness.faults(verdict(check=False, expectation=False, of=found[0], refused=lost), found)]


def test_what_is_not_done_at_the_deadline_is_excused_but_for_checks() -> None:
    found = expectations("{pods: {workload: w}, all: {running: {}}}")
    assert [*slowness.faults(verdict(expectation=False, of=found[0], ended="deadline"), found)] == []
    assert len([*slowness.faults(verdict(check=False, of=found[0], ended="deadline"), found)]) == 1


def test_what_could_not_be_judged_is_excused() -> None:
    found = expectations("{pod: w-0, bound: {}}")
    assert [*slowness.faults(verdict(expectation=None, of=found[0]), found)] == []
