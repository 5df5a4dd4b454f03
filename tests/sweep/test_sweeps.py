"""Sweeps: the same results however the cells were run, and every cell once, whatever happens to cells and sweep."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.errors import KemuError
from kemu.lab.exploration.workers import Executor, Inline, Workers
from kemu.lab.sweep.cells import DONE, FAILED, SATURATED, CellRecord
from kemu.lab.sweep.engine import summaries
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.lab.sweep.experiments import loader
from kemu.lab.sweep.experiments.experiments import Experiment
from kemu.lab.sweep.results import journals, tables
from kemu.runtime.runlog import folders

TEXT = """\
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: small}
spec:
  scenario:
    duration: 20s
    nodes: [{name: n, allocatable: {cpu: "4", memory: 1Gi, pods: "9"}}]
    workloads:
      - name: w
        arrivals: {poisson: {rate: 1/s}, count: 6}
        pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: {exponential: {mean: 3}}}
  vary: {"workloads[0].arrivals.poisson.rate": [0.5/s, 2/s]}
  seeds: 3
"""
PLUGIN = """
import os
from kemu.emulated.scheduler.framework import NodeFilterPlugin

class Moody(NodeFilterPlugin):
    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.does = args.get("does")

    def filter(self, pod, node):
        if self.does == "raises":
            raise RuntimeError("a bad day")
        if self.does == "dies":
            os.kill(os.getpid(), 9)
"""


SCHEDULERS = """\
    schedulers:
      - name: default-scheduler
        config:
          apiVersion: kubescheduler.config.k8s.io/v1
          kind: KubeSchedulerConfiguration
          profiles:
            - schedulerName: default-scheduler
              plugins: {multiPoint: {enabled: [{name: "moody:Moody"}]}}
              pluginConfig: [{name: "moody:Moody", args: {does: nothing}}]
"""
"""The plugin in use."""
MOODY = (
    TEXT.partition("  vary:")[0].replace("    workloads:\n", f"{SCHEDULERS}    workloads:\n")
    + '  vary: {"schedulers[0].config.profiles[0].pluginConfig[0].args.does": [nothing, raises, dies]}\n  seeds: 2\n'
)
"""With a plugin of the user's, which works, raises, or ends its process."""


def experiment(text: str = TEXT, name: str = "small.yaml") -> Experiment:
    return loader.loads(text, name)


def run(folder: Path, executor: Executor | None = None, text: str = TEXT) -> tuple[list[CellRecord], bytes]:
    """What was run now, and the results."""
    with Sweep(experiment(text), folder) as sweep:
        new = list(sweep.go(executor or Inline()))
        assert sweep.is_over
        return new, sweep.write().read_bytes()


def keys(folder: Path) -> list[tuple[int, int]]:
    return sorted(journals.keys_in(folder))


ALL = [(index, seed) for index in (0, 1) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A sweep that nothing happened to: its folder and its results."""
    folder = tmp_path_factory.mktemp("whole")
    new, results = run(folder)
    assert len(new) == 6
    assert all(record.status == DONE and not record.detail for record in new)
    return folder, results


def test_common_random_numbers(whole: tuple[Path, bytes]) -> None:
    """The pods of a seed live equally long in all variants; and only those of a seed."""
    with Sweep(experiment(), whole[0]) as sweep:
        assert not list(sweep.go(Inline()))  # everything is there
        runs = {key: record.rows.run for key, record in sweep.records.items() if record.rows is not None}
    assert len({runs[0, seed]["digest"] for seed in (1, 2, 3)}) == 3
    assert runs[0, 1]["pods_created"] == runs[1, 1]["pods_created"] == 6


def test_processes_change_nothing(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    with Workers(2) as workers:
        new, results = run(tmp_path, workers)
    assert len(new) == 6
    assert results == whole[1]


def test_a_sweep_that_was_killed_goes_on(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    file, out = tmp_path / "small.yaml", tmp_path / "out"
    file.write_text(TEXT)
    command = [sys.executable, "-m", "kemu.doors.cli.main", "sweep", str(file), "--out", str(out), "--jobs", "1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONHASHSEED": "7"}) as process:
        deadline_s = time.monotonic() + 60
        journal = out / folders.CELLS_FILE
        while not journal.exists() or journal.stat().st_size < 3000:
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.005)
        process.kill()
    before = keys(out)
    assert 0 < len(before) < 6
    new, results = run(out)
    assert sorted([*before, *((record.cell.index, record.cell.seed) for record in new)]) == ALL
    assert results == whole[1]


def test_the_torn_end_of_a_journal_is_one_cell_that_runs_again(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    data = (whole[0] / folders.CELLS_FILE).read_bytes()
    (tmp_path / folders.CELLS_FILE).write_bytes(data[:-7])
    new, results = run(tmp_path)
    assert [(record.cell.index, record.cell.seed) for record in new] == [(1, 3)]
    assert results == whole[1]
    assert keys(tmp_path) == ALL


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("0.5/s, 2/s", "0.5/s, 3/s", "its vary"),
        ("duration: 20s", "duration: 21s", "its scenario differs"),
        ("seeds: 3", "seeds: 3\n  limits: {events: 99}", "its limits"),
    ],
)
def test_another_experiment_is_refused_and_nothing_lost(
    whole: tuple[Path, bytes], old: str, new: str, told: str
) -> None:
    before = (whole[0] / folders.CELLS_FILE).read_bytes()
    with pytest.raises(KemuError, match=f"holds another sweep: {told}.*; nothing of it was changed"):
        Sweep(experiment(TEXT.replace(old, new)), whole[0])
    assert (whole[0] / folders.CELLS_FILE).read_bytes() == before


def test_rows_of_another_version_are_refused(whole: tuple[Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "RUN", (*tables.RUN, tables.Column("new", tables.TEXT, "")))
    with pytest.raises(KemuError, match="its rows were kept by another version of kemu"):
        Sweep(experiment(), whole[0])


def test_more_seeds_run_only_the_new_cells(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    (tmp_path / folders.CELLS_FILE).write_bytes((whole[0] / folders.CELLS_FILE).read_bytes())
    new, _ = run(tmp_path, text=TEXT.replace("seeds: 3", "seeds: [5, 1, 2, 3]"))
    assert [(record.cell.index, record.cell.seed) for record in new] == [(0, 5), (1, 5)]
    # Fewer again: the others stay in the journal, and out of the results.
    new, results = run(tmp_path)
    assert not new
    assert results == whole[1]


def test_two_sweeps_do_not_write_one_folder(whole: tuple[Path, bytes]) -> None:
    with Sweep(experiment(), whole[0]), pytest.raises(KemuError, match="another kemu sweep is at work there"):
        Sweep(experiment(), whole[0])


@pytest.mark.thorough
def test_a_cell_that_fails_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(PLUGIN)
    with Workers(2) as workers, Sweep(experiment(MOODY, str(tmp_path / "e.yaml")), tmp_path / "out") as sweep:
        list(sweep.go(workers))
        records = sweep.ordered()
        sweep.write()
    assert [record.status for record in records] == [DONE, DONE, FAILED, FAILED, FAILED, FAILED]
    assert "RuntimeError: a bad day" in records[2].detail
    assert records[4].detail == "ended the process that ran it, each time"


def figures(limits: str, tmp_path: Path, more: str = "") -> list[CellRecord]:
    text = TEXT.replace("2/s]", "50/s]").replace("count: 6", "count: 60").replace("mean: 3", "mean: 30")
    with Sweep(experiment(text.replace("    duration", f"{more}    duration") + limits), tmp_path) as sweep:
        list(sweep.go(Inline()))
        return sweep.ordered()


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("  limits: {waiting: 8}\n", "ended at its limit: more than 8 waiting pods at "),
        ("  limits: {events: 1500}\n", "ended at its limit: 1,500 events at "),
        ("  limits: {cpu: 1ms}\n", "ended at its limit: 0.001 s of CPU time"),
    ],
)
def test_a_point_that_reaches_a_limit_is_saturated_and_not_waited_for(limits: str, told: str, tmp_path: Path) -> None:
    first, *_, last = figures(limits, tmp_path)
    assert first.status == (SATURATED if "cpu" in limits else DONE)
    assert last.status == SATURATED
    assert last.detail.startswith(told)
    if "cpu" in limits:
        assert last.rows is None  # another machine would come further
    else:
        assert last.rows is not None
        assert last.rows.run["virtual_s"] < 20


def test_until_that_never_comes_is_a_saturated_point(tmp_path: Path) -> None:
    record, *_ = figures("", tmp_path, "    until: {counter: pods_succeeded, atLeast: 59}\n")
    assert record.status == SATURATED
    assert record.detail.startswith("until never came true: {counter: pods_succeeded")


def test_a_queue_that_grows_as_long_as_pods_come_is_told_and_counts(tmp_path: Path) -> None:
    text = TEXT.replace("count: 6", "count: 60").replace("0.5/s, 2/s", "4/s").replace("mean: 3", "mean: 2")
    with Sweep(experiment(text), tmp_path) as sweep:
        (record, *_) = sweep.go(Inline())
    assert record.status == DONE
    assert record.detail.startswith("the queue grows as long as pods come: ")


class _Stops(Inline):
    """Is interrupted after two cells."""

    def run(self, source, tasks, *, in_order=True, needs=None) -> Iterator[object]:  # type: ignore[no-untyped-def, override]
        for number, result in enumerate(super().run(source, tasks)):
            if number == 2:
                raise KeyboardInterrupt
            yield result


def test_ctrl_c_keeps_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kemu.doors.cli import main

    monkeypatch.setattr("kemu.lab.exploration.workers.Workers", lambda *_args, **_more: _Stops())
    file, out = tmp_path / "small.yaml", tmp_path / "out"
    file.write_text(TEXT)
    assert main.main(["sweep", str(file), "--out", str(out)]) == 130
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == "kemu: interrupted: 2 of 6 cells are done and kept; the same command goes on with the others"
    assert len(keys(out)) == 2
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.thorough
def test_loads_and_nodes_vary_and_figures_are_of_the_window(tmp_path: Path) -> None:
    text = """\
apiVersion: kemu.dev/v1
kind: Experiment
spec:
  scenario:
    duration: 60s
    measure: {from: 20s, until: 50s}
    nodes: [{namePrefix: n-, count: 1, allocatable: {cpu: "4", memory: 1Gi, pods: "9"}}]
    workloads:
      - name: w
        arrivals: {poisson: {load: 1}}
        pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: 2}
  vary: {"workloads[0].arrivals.poisson.load": [0.2, 0.8], "nodes[0].count": [1, 3]}
  seeds: 2
  metrics: [utilisation.cpu, pods_created]
  claims: [{id: fuller, says: "utilisation.cpu(load=0.8, count=3) > 2 * utilisation.cpu(load=0.2, count=3)"}]
"""
    with Sweep(experiment(text), tmp_path) as sweep:
        assert len(list(sweep.go(Inline()))) == 8
        found = summaries.of(sweep, tmp_path)
    assert found["measured"] == {"from_s": 20.0, "until_s": 50.0}
    means = {each["name"]: {name: one["mean"] for name, one in each["metrics"].items()} for each in found["variants"]}
    for load, count in ((0.2, 1), (0.2, 3), (0.8, 1), (0.8, 3)):
        figures = means[f"load={load} count={count}"]
        # So many arrive in 30 s, and each of them runs for 2 s of these.
        assert figures["pods_created"] == pytest.approx(load * 2 * count * 30, rel=0.4)
        assert figures["utilisation.cpu"] == pytest.approx(load, rel=0.4)
    assert found["claims"][0]["id"] == "fuller"


@pytest.mark.thorough
@pytest.mark.parametrize("measure", ["", "    measure: {until: 10s}\n"])
def test_means_over_times_of_different_lengths_are_told(
    measure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is over with its last pod."""
    from kemu.doors.cli import main

    file = tmp_path / "uneven.yaml"
    file.write_text(f"""\
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {{name: uneven}}
spec:
  scenario:
    duration: 60s
{measure}    nodes: [{{namePrefix: n-, count: 1, allocatable: {{cpu: "4", memory: 1Gi, pods: "9"}}}}]
    workloads:
      - &w
        name: w
        arrivals: {{count: 3}}
        pods: {{spec: {{containers: [{{name: main, resources: {{requests: {{cpu: "1"}}}}}}]}}}}
        life: {{runSeconds: 15}}
      - {{<<: *w, name: large, arrivals: {{count: 1}}}}
  vary: {{"workloads[1].life.runSeconds": [15, 45]}}
  seeds: 2
  metrics: [utilisation.cpu, pods_bound]
""")
    assert main.main(["sweep", str(file), "--out", str(tmp_path / "out"), "--no-plots"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert ("utilisation.cpu: a mean over the time of each run" in told) == (not measure), told
    assert main.main(["sweep", str(file), "--out", str(tmp_path / "out"), "--json"]) == 0
    uneven = json.loads(capsys.readouterr().out)["uneven"]
    assert (uneven is None) == bool(measure)
    if uneven is not None:
        assert uneven["metrics"] == ["utilisation.cpu"]
        assert 15 < uneven["shortest_s"] < 20 < 45 < uneven["longest_s"] < 50
