"""Runs that go on from one set-up are the runs that they would have been from the start."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import pytest

from kemu.lab.exploration import branches
from kemu.lab.exploration.plans import ChooserSpec, Plan
from kemu.lab.exploration.processes import forks
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.scenario.loading import loader as scenarios
from kemu.lab.sweep.cells import DONE, FAILED, SATURATED, Cell
from kemu.lab.sweep.engine.cell_tasks import CellSource, CellTask
from kemu.lab.sweep.experiments import loader
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
