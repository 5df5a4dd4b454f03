"""One cell of a sweep, carried out in whichever process: a task of :mod:`kemu.lab.exploration.processes`.

Whatever goes wrong with a cell is a record that says so: no cell ends the sweep.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
import traceback
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError, SimulationError
from kemu.lab.exploration import branches, executions
from kemu.lab.exploration.branches import Begun
from kemu.lab.exploration.executions import Execution, Request
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.processes.tasks import DIED, LOST, SLOW
from kemu.lab.exploration.sources import Source
from kemu.lab.scenario.playing import control_planes, runner
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.sweep.cells import DONE, FAILED, SATURATED, Cell, CellRecord
from kemu.lab.sweep.engine import saturation
from kemu.lab.sweep.engine.saturation import TooMuch
from kemu.lab.sweep.experiments.experiments import SIM, Experiment, Limits
from kemu.lab.sweep.results import rows
from kemu.runtime import memory, user_code
from kemu.runtime.runlog import crash_reports
from kemu.runtime.runlog.events import PodAttempted
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader

MOST_DETAIL = 500
"""Characters."""
BUG = "kemu failed: "
"""So begins the detail of a cell that failed by a bug of kemu's."""
_GIVEN_UP = {
    SLOW: "gave no sign of life for too long",
    DIED: "ended the process that ran it, each time",
    LOST: "was lost with its machine, each time",
}


@dataclass(frozen=True)
class CellSource:
    """What all cells of a sweep have in common."""

    source: Source
    overrides: tuple[Mapping[str, Any], ...]
    """By index of the variant."""
    limits: Limits
    runtime: str = SIM
    kubeconfig: Path | None = None
    context: str = ""

    @classmethod
    def of(cls, experiment: Experiment) -> CellSource:
        scenario = experiment.scenario
        source = Source(scenario.to_yaml(), scenario.file, experiment.data_dir)
        place = experiment.runtime, experiment.kubeconfig, experiment.context
        return cls(source, experiment.overrides, experiment.limits, *place)

    def scenario(self, cell: Cell) -> Scenario:
        return self.source.scenario(Plan(self.overrides[cell.index], cell.seed))


def on_real(
    experiment: Experiment, kubeconfig: Path | None = None, context: str = "", *, find: bool = True
) -> Experiment:
    """The experiment on real control planes, or in a cluster that stands. Raises KemuError for what they cannot do,
    before the first cell. ``find``: and for programs that are missing."""
    found = experiment.on("real", kubeconfig, context)
    source = CellSource.of(found)
    for cell in found.cells():
        if cell.seed == found.seeds[0]:
            control_planes.refuse(source.scenario(cell), 0.0, find=find, is_guest=kubeconfig is not None)
    return found


@dataclass(frozen=True)
class CellResult:
    """A record, as executors pass it on."""

    number: int
    record: CellRecord
    is_over: bool = True
    """False: there was no machine for it, and there may be one the next time."""

    @property
    def seconds(self) -> float:
        return self.record.seconds


@dataclass(frozen=True)
class CellTask:
    """A cell that is to be carried out."""

    number: int
    cell: Cell
    kin: int | None = None
    """The seed, where clusters are large and there are several variants."""

    is_searched = False

    def carry_out(self, source: CellSource) -> CellResult:
        result: CellResult | None = branches.carried_out(source, self) if len(source.overrides) > 1 else None
        return result or branches.by_itself(self, source)

    def scenario(self, source: CellSource) -> Scenario | None:
        """None: it takes place on real components, or is wrong."""
        try:
            return source.scenario(self.cell) if source.runtime == SIM else None
        except KemuError:
            return None

    def steps(self, source: CellSource, begun: Begun) -> Generator[Request, Execution, CellResult]:
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        memory.begin_peak()
        try:
            if source.runtime == SIM:
                record = yield from _run(source, self.cell, begun)
            else:
                record = _run_for_real(source, self.cell)
        except MemoryError:
            raise  # of this process, which ends with it
        except KemuError as error:
            record = self._failed(str(error))
        except Exception as error:
            told = f"{type(error).__name__}: {error} ({_where(error)})"
            record = self._failed(told if user_code.place_of(error) is not None else f"{BUG}{told}")
        record = dataclasses.replace(
            record,
            seconds=time.perf_counter() - begun_s,
            cpu_s=time.process_time() - begun_cpu_s,
            peak_bytes=memory.peak_bytes(),
        )
        return CellResult(self.number, record)

    def given_up(self, why: str, seconds: float) -> CellResult:
        record = dataclasses.replace(self._failed(_GIVEN_UP[why]), seconds=seconds)
        return CellResult(self.number, record, is_over=why != LOST)

    def without_room(self, why: str) -> CellResult:
        """It needs more memory than there is."""
        return CellResult(self.number, self._failed(why), is_over=False)

    def refused(self, why: str) -> CellResult:
        return CellResult(self.number, self._failed(why))

    def _failed(self, why: str) -> CellRecord:
        return CellRecord(self.cell, FAILED, _short(why))


def _run(source: CellSource, cell: Cell, begun: Begun) -> Generator[Request, Execution, CellRecord]:
    scenario = source.scenario(cell)
    judge = begun.judge(scenario)
    attempts = rows.Attempts()
    stop = executions.Stop()
    watch = saturation.Watch(source.limits, judge.history, stop, begun.cpu_s)

    def take(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        watch.take(time_ns, actor, kind, data)
        if kind == PodAttempted.KIND:
            attempts.take(time_ns, actor, kind, data)

    try:
        execution: Execution | None = yield Request(scenario, judge, take, stop)
    except TooMuch:
        execution = None
    if execution is None or watch.is_broken:
        return CellRecord(cell, SATURATED, f"ended at its limit: {watch.reached}")
    if execution.error is not None:
        if isinstance(execution.error.__cause__, MemoryError):
            raise execution.error.__cause__
        return CellRecord(cell, FAILED, _short(_told(execution.error)))
    if execution.history.gaps:
        return CellRecord(cell, FAILED, _short(f"the log is incomplete: {execution.history.gaps[0]}"))
    status, detail = DONE, saturation.growth(execution.history)
    if watch.reached:
        status, detail = SATURATED, f"ended at its limit: {watch.reached}"
    elif scenario.until is not None and execution.judged.end.reason == "deadline":
        status, detail = SATURATED, f"until never came true: {scenario.until.text}"
    return CellRecord(cell, status, _short(detail), rows.of_run(execution.verdict, execution.history, attempts))


def _run_for_real(source: CellSource, cell: Cell) -> CellRecord:
    """On programs of this machine; their logs go with the cell."""
    scenario = source.scenario(cell)
    with tempfile.TemporaryDirectory(prefix="kemu-cell-") as scratch:
        options = runner.Options(
            out=Path(scratch) / "run", runtime=source.runtime, kubeconfig=source.kubeconfig, context=source.context
        )
        result = runner.run(scenario, options)
        attempts = rows.Attempts()
        with Reader(result.folder / FILE_NAME) as reader:
            for time_ns, actor, kind, data in reader:
                if kind == PodAttempted.KIND:
                    attempts.take(time_ns, actor, kind, data)
        return CellRecord(cell, DONE, "", rows.of_run(result.verdict, result.history, attempts))


def report_crash(source: CellSource, cell: Cell, file: Path) -> Path | None:
    """Carry out once more a cell that failed; where it was by a bug of kemu's, write the report of it."""
    if source.runtime != SIM:
        return None
    scenario = source.scenario(cell)
    about = {"scenario": scenario.name, "variant": source.overrides[cell.index], "seed": cell.seed, "runtime": "sim"}
    try:
        branches.finished(_run(source, cell, Begun()))
        execution = executions.execute(scenario, keep_log=True)
    except Exception as found:
        error: BaseException | None = found
        events: list[Entry] = []
    else:
        error, events = execution.error, execution.events
    if error is None or not crash_reports.is_bug(error):
        return None
    return crash_reports.write(file, error, about, scenario.to_yaml(), events)


def _told(error: SimulationError) -> str:
    if crash_reports.is_bug(error):
        return f"{BUG}{error}"
    return f"the run broke: {type(error).__name__}: {error}"


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.name}, line {frame.lineno}"


def _short(text: str) -> str:
    """In one line."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_DETAIL else f"{line[: MOST_DETAIL - 1]}…"
