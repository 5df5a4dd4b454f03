"""Runs that go on from one set-up are the runs that they would have been from the start."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kemu.lab.bench.explorations import Uniform
from kemu.lab.exploration import branches, executions
from kemu.lab.exploration.executions import Execution
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.processes import forks
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.scenario.loading import loader as scenarios
from kemu.lab.sweep.cells import DONE, FAILED, SATURATED, Cell
from kemu.lab.sweep.engine.cell_tasks import CellSource, CellTask
from kemu.lab.sweep.experiments import loader
from kemu.runtime.holds import Hold, MessagePattern
from kemu.runtime.sim.steering.steering import Steering
from tests.exploration.scenarios import RACE
from tests.sweep.test_sweeps import PLUGIN, SCHEDULERS

SPEC = """\
    duration: 20s
    nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: "2", memory: 4Gi, pods: "9"}}]
    timing: {apiLatency: {uniform: {min: 500us, max: 2ms}}}
    schedulers: [{name: default-scheduler}]
    manifests:
      - apiVersion: v1
        kind: Pod
        metadata: {name: early}
        spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
    workloads:
      - name: w
        arrivals: {poisson: {rate: 2/s}, count: 12}
        pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: {exponential: {mean: 3}}}
"""


def sweep(vary: str, spec: str = SPEC, limits: str = "") -> CellSource:
    text = f"apiVersion: kemu.dev/v1\nkind: Experiment\nmetadata: {{name: x}}\nspec:\n  scenario:\n{spec}"
    return CellSource.of(loader.loads(f"{text}  vary: {vary}\n  seeds: 2\n{limits}", "x.yaml"))


def cells(source: CellSource) -> list[CellTask]:
    keys = [(index, seed) for seed in (1, 2) for index in range(len(source.overrides))]
    return [CellTask(number, Cell({}, index, seed)) for number, (index, seed) in enumerate(keys)]


@pytest.fixture(autouse=True)
def _may_fork(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(branches, "LEAST_NODES", 1)
    monkeypatch.setattr(branches, "LEAST_NODES_OF_A_SEARCH", 1)
    monkeypatch.setattr(branches, "_process", branches._Process())
    monkeypatch.setattr(forks, "_allowed", [()])
    yield
    branches.close()


def template() -> int:
    """Process id of the template."""
    assert branches._process.template is not None
    return branches._process.template.pid


VARIED = {
    "schedulers, of which the judge knows, and loads": (
        '{"schedulers[0].policy.queue": [priority, fifo], "workloads[0].arrivals.poisson.rate": [1/s, 4/s]}',
        SPEC,
    ),
    "faults, and what the run waits for": (
        '{"chaos[0].for": [2s, 5s], "until.pod": ["w-1", "w-11"]}',
        SPEC
        + """\
    chaos: [{when: {pod: w-2, bound: {}}, for: 2s, crash: {actor: scheduler/default-scheduler/0}}]
    until: {pod: w-1, running: {}}
""",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("what", VARIED)
def test_cells_are_the_same(what: str) -> None:
    source = sweep(*VARIED[what])
    tasks = cells(source)
    templates = []
    for task in tasks:
        found = branches.carried_out(source, task)
        templates.append(template())
        assert found is not None
        alone = branches.by_itself(task, source)
        assert found.record == alone.record
        assert found.record.status in (DONE, SATURATED)
        assert found.record.rows is not None
    assert len({task.cell.seed for task in tasks}) == len(set(templates)) == 2


def test_cells_that_begin_differently_share_nothing() -> None:
    source = sweep('{"nodes[0].count": [2, 3]}')
    for task in cells(source)[:2]:
        before = branches._process.template
        found = branches.carried_out(source, task)
        assert found.record == branches.by_itself(task, source).record
        assert branches._process.template is not before


def test_runs_of_a_search_are_the_same() -> None:
    source = Source.of(scenarios.loads(RACE))
    pids = set()
    for number in range(3):
        chooser = ChooserSpec("kemu.lab.bench.explorations:Uniform", {"seed": number})
        task = Task(number, Plan(chooser=chooser))
        found, alone = branches.carried_out(source, task), branches.by_itself(task, source)
        assert dataclasses.replace(found, seconds=0.0) == dataclasses.replace(alone, seconds=0.0)
        assert found.orders
        pids.add(template())
    assert len(pids) == 1
    assert branches.carried_out(source, Task(3, Plan(seed=5))) is None


def held(source: Source, *holds: Hold) -> Task:
    return Task(0, Plan(holds=(*source.scenario(Plan()).holds, *holds)))


def same(found: RunRecord, alone: RunRecord) -> bool:
    return dataclasses.replace(found, seconds=0.0) == dataclasses.replace(alone, seconds=0.0)


def late(source: Source) -> Execution:
    """A run whose messages are all late."""
    return executions.execute(source.scenario(Plan()), chooser=Uniform(1))


def test_holds_count_what_was_sent_during_the_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.of(scenarios.loads(RACE))
    task = held(source, *late(source).deviations[::3])
    alone = branches.by_itself(task, source)
    found = branches.carried_out(source, task)
    assert found is not None
    assert same(found, alone)
    assert found.digest != branches.by_itself(Task(0, Plan()), source).digest
    branches.close()
    monkeypatch.setattr(Steering, "_count", lambda steering, sent: False)  # the planted bug
    found = branches.carried_out(source, task)
    assert found is not None
    assert not same(found, alone)


def test_what_holds_a_message_of_the_set_up_is_run_from_the_start() -> None:
    source = Source.of(scenarios.loads(RACE))
    message, labels = next(one for one in late(source).messages if one[0].target.startswith("scheduler/red"))
    assert message.sent_ns == 0
    task = held(source, Hold(MessagePattern(message.source, message.target, labels[0], 1), None, 5_000_000))
    assert branches.carried_out(source, task) is None
    assert branches.carried_out(source, Task(0, Plan())) is not None, "the template lives on"


SEARCHED = """
import hashlib, json, sys
from pathlib import Path
from kemu.lab.exploration import branches
from kemu.lab.exploration.campaigns import Campaign, Settings
from kemu.lab.exploration.processes import forks
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.scenario.loading import loader

name, runs, shares = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "shared"
shared = 0

class Executor:
    slots = running = 1

    def run(self, source, tasks, **_):
        global shared
        for task in tasks:
            found = branches.carried_out(source, task) if shares else None
            shared += found is not None
            yield found or branches.by_itself(task, source)

forks.allow()
branches.LEAST_NODES_OF_A_SEARCH = 1
scenario = loader.load(Path(name))
strategies = registry.make(("observe-late", "uniform", "pct", "pos", "walk", "feedback"), Source.of(scenario), 1)
campaign = Campaign(scenario, strategies, Settings(seed=1, runs=runs, generation=2, canary=False), Executor())
told = [repr((one.plan, one.verdict, one.digest, one.failures, one.holds, one.new)) for one in campaign.go()]
branches.close()
print(json.dumps([shared, told]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "races/two-schedulers-one-device",
        "chaos/short-partition",
        "races/recreated-pod",
        pytest.param("quotas/quota-race", marks=pytest.mark.nightly("seven seconds, as for the others")),
    ],
)
def test_a_search_is_the_same_in_other_processes(name: str) -> None:
    """From templates or from the start, and whatever PYTHONHASHSEED is."""
    answers = []
    for how, hash_seed in (("shared", "1"), ("alone", "2")):
        command = [sys.executable, "-c", SEARCHED, f"scenarios/{name}.yaml", "24", how]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    (shared, found), (_, alone) = answers
    assert found == alone
    assert len(found) == 24
    assert shared >= 8


def test_a_cell_that_fails_is_a_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "moody.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = SPEC.replace("    schedulers: [{name: default-scheduler}]\n", SCHEDULERS)
    vary = '{"schedulers[0].config.profiles[0].pluginConfig[0].args.does": [raises, dies, nothing]}'
    source = sweep(vary, spec)
    raises, dies, nothing = cells(source)[:3]
    found = branches.carried_out(source, raises)
    assert found.record == branches.by_itself(raises, source).record
    assert found.record.status == FAILED
    assert "a bad day" in found.record.detail
    assert branches.carried_out(source, dies) is None, "its process is dead; that of the worker will be"
    found = branches.carried_out(source, nothing)
    assert found is None or found.record.status == DONE
    assert branches.by_itself(nothing, source).record.status == DONE


def test_a_template_that_is_dead_is_not_asked() -> None:
    source = sweep('{"workloads[0].arrivals.poisson.rate": [1/s, 4/s]}')
    first, second = cells(source)[:2]
    assert branches.carried_out(source, first) is not None
    os.kill(template(), 9)
    assert branches.carried_out(source, second) is None
    assert branches._process.template is None


def test_a_process_that_is_idle_keeps_no_template() -> None:
    source = sweep('{"workloads[0].arrivals.poisson.rate": [1/s, 4/s]}')
    assert branches.carried_out(source, cells(source)[0]) is not None
    pid = template()
    forks.idle()
    assert branches._process.template is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
