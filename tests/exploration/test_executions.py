"""A run in memory is the run of ``kemu run``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.exploration import causes, executions
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from kemu.runtime.sim.steering.messages import Message

RACE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: race}
spec:
  seed: 3
  duration: 1m
  nodes:
    - {name: alpha, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
  schedulers: [{name: red}, {name: blue}]
  timing: {schedulingCycle: 500ms, apiLatency: {uniform: {min: 1ms, max: 20ms}}}
  events:
    - {at: 5s, create: &pod {apiVersion: v1, kind: Pod, metadata: {name: red-pod},
       spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: blue-pod},
       spec: {schedulerName: blue, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
  expect:
    - {id: both-run, pods: {names: [red-pod, blue-pod]}, all: {running: {before: 30s}}}
"""
SHIPPED = (
    "races/recreated-pod",
    "chaos/torn-write",
    "chaos/apiserver-crash-steps",
    "chaos/clock-jump",
    "seeds/hard-eviction-threshold",
    "extenders/gpu-share",
)
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def variants(name: str) -> list[Any]:
    return [each for _, each in loader.variants(loader.load(SCENARIOS / f"{name}.yaml"))]


@pytest.mark.parametrize("name", SHIPPED)
def test_digest_and_verdict_are_those_of_a_run_folder(name: str, tmp_path: Path) -> None:
    for scenario in variants(name):
        expected = runner.run(scenario, runner.Options(out=tmp_path, runtime="sim")).verdict
        execution = executions.execute(scenario)
        assert execution.digest == expected["digest"]
        for place in ("run", "wall_s"):
            del expected[place]
        assert json.loads(json.dumps(execution.verdict)) == json.loads(json.dumps(expected))


def test_the_log_that_is_kept_is_that_of_the_run_folder(tmp_path: Path) -> None:
    scenario = loader.loads(RACE)
    runner.run(scenario, runner.Options(out=tmp_path, runtime="sim"))
    with Reader(tmp_path / FILE_NAME) as reader:
        assert executions.execute(scenario, keep_log=True).events == list(reader)
    with pytest.raises(ValueError, match="keep_log"):
        _ = executions.execute(scenario).events


def test_until_ends_the_run_at_the_same_event(tmp_path: Path) -> None:
    text = RACE.replace("  expect:", "  until: {pod: red-pod, bound: {}}\n  expect:")
    scenario = loader.loads(text)
    expected = runner.run(scenario, runner.Options(out=tmp_path, runtime="sim")).verdict
    execution = executions.execute(scenario)
    assert (execution.digest, execution.verdict["ended"]) == (expected["digest"], "stopped")


def test_a_failure_names_its_cause_without_the_particulars() -> None:
    (failure,) = executions.execute(loader.loads(RACE)).failures
    assert failure.id == "both-run"
    assert "red-pod" in failure.detail or "blue-pod" in failure.detail

    renamed = RACE.replace("red", "green").replace("alpha", "omega").replace("at: 5s", "at: 7s")
    (other,) = executions.execute(loader.loads(renamed, overrides={"seed": 8})).failures
    assert other.detail != failure.detail
    assert other.cause == failure.cause
    assert not any(character.isdigit() for character in failure.cause)


@pytest.mark.parametrize(
    ("detail", "cause"),
    [
        ("instead: bound to alpha by red/0 at 15.505 s", "instead: bound to <node> by <scheduler> at #"),
        ("scheduler/blue/0 at 3.000 s holds another alpha", "<scheduler> at # holds another <node>"),
        ("default/red-pod and default/blue-pod, 2 of 3 times", "<pod>, # of # times"),
        ("4000 of cpu in use on alpha, of 3500m", "# of cpu in use on <node>, of #"),
        ("red-pod-7 is no pod of this run", "red-pod-# is no pod of this run"),
    ],
)
def test_names_numbers_and_times_are_taken_out(detail: str, cause: str) -> None:
    execution = executions.execute(loader.loads(RACE))
    assert causes.Names(execution.scenario.resolved, execution.history).taken_out(detail) == cause


def test_a_run_that_holds_has_no_failures() -> None:
    execution = executions.execute(loader.loads(RACE, overrides={"nodes[0].allocatable.cpu": "8"}))
    assert (execution.outcome, execution.failures) == ("holds", ())


def test_a_run_that_breaks_is_an_execution_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from kemu.emulated.kubelet.node import node_statuses

    async def fails(*_: Any) -> None:
        raise RuntimeError("no such machine")

    monkeypatch.setattr(node_statuses.OwnNode, "register", fails)
    execution = executions.execute(loader.loads(RACE))
    assert execution.outcome == "fails" == execution.verdict["verdict"]
    (failure,) = [each for each in execution.failures if each.id == executions.BROKEN]
    assert "no such machine" in failure.detail


class Late:
    """Every third message comes 3 ms later."""

    def __init__(self) -> None:
        self.count = 0

    def delay_ns(self, message: Message) -> int:
        self.count += 1
        return 3_000_000 if self.count % 3 == 0 else 0


def test_what_a_chooser_did_stands_alone_as_holds() -> None:
    scenario = loader.loads(RACE)
    chosen = executions.execute(scenario, chooser=Late(), keep_log=True)
    assert chosen.digest != executions.execute(scenario).digest
    again = executions.execute(dataclasses.replace(scenario, holds=chosen.deviations), keep_log=True)
    events = [event for event in again.events if not event.kind.startswith("hold.")]
    assert events == chosen.events
