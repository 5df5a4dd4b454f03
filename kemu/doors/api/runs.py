"""Run a scenario, and ask the run questions.

    run = kemu.run("races/two-schedulers-one-node", seed=7)
    assert run.holds, run.story()
    print(run.pods["blue-pod"].rejected)

Role: what ``kemu run`` does, for programs. In virtual time nothing touches a disk unless ``out`` asks for a run folder.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kemu.doors.api import reports, views
from kemu.errors import KemuError
from kemu.lab.checks.history import History
from kemu.lab.exploration import executions
from kemu.lab.scenario import forms
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import runtimes
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader


def run(
    scenario: forms.Source,
    *,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    runtime: str | None = None,
    settings: Mapping[str, Any] | None = None,
    speed: float | None = None,
    data: str | os.PathLike[str] | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
) -> Run:
    """Run a scenario and judge it.

    ``scenario``: a path, the name of a shipped scenario, YAML text, or a dictionary (a whole document, or only its
    ``spec``). ``seed``: of every random draw; None: as the scenario says. ``out``: a run folder to leave, as ``kemu run
    --out`` does; None: nothing is written. ``runtime``: ``sim`` (virtual time), ``wall``, ``ray`` or ``real``; None:
    as the scenario says. ``settings``: values by paths below spec, as ``--set`` takes them:
    ``{"schedulers[0].replicas": 2}``.
    ``speed``: virtual seconds for each real one (``wall``, ``ray``). ``data``: the folder of a trace's files.
    ``kubeconfig``: of a cluster in which the run is a guest (``real``); None: a control plane is started.

    Raises ScenarioError with all mistakes of the scenario, UserCodeFailed where the user's own code raised, and other
    SimulationErrors where the run itself broke. A run that fails is a result, not an error: see :attr:`Run.holds`.
    """
    loaded = forms.load(scenario, {**(settings or {}), **({} if seed is None else {"seed": seed})}, data=data)
    name = runtime or loaded.runtime
    if name not in runtimes.NAMES:
        raise ValueError(f"runtime must be sim, wall, ray or real, not {name!r}")
    if kubeconfig is not None and name != "real":
        raise ValueError(f"a kubeconfig needs the runtime real, not {name}")
    again = _again(scenario, loaded, seed, settings or {}, name, speed, data, kubeconfig)
    cluster = None if kubeconfig is None else Path(kubeconfig)
    options = runner.Options(out=Path(out or ""), runtime=name, speed=speed or 0.0, kubeconfig=cluster)
    if out is not None:
        return dataclasses.replace(_in_folder(loaded, options), again=again)
    if name in runtimes.REAL:
        with tempfile.TemporaryDirectory(prefix="kemu-run-") as folder:
            made = _in_folder(loaded, dataclasses.replace(options, out=Path(folder)))
            for each in (made, *made.variants):
                if not each.variants:
                    each.events  # noqa: B018  (read while the folder is there)
                each.folder = None
            return dataclasses.replace(made, again=again)
    return dataclasses.replace(in_memory(loaded), again=again)


def _again(
    source: forms.Source,
    loaded: Scenario,
    seed: int | None,
    settings: Mapping[str, Any],
    runtime: str,
    speed: float | None,
    data: str | os.PathLike[str] | None,
    kubeconfig: str | os.PathLike[str] | None,
) -> str:
    """The command that runs this again; of a scenario that stands in no file, the call."""
    if not isinstance(source, str | os.PathLike) or "\n" in str(source):
        return f"kemu.run(…, seed={loaded.seed}{f', settings={dict(settings)!r}' if settings else ''})"
    words = (
        ["kemu", "run", str(source), "--seed", str(loaded.seed)] if seed is not None else ["kemu", "run", str(source)]
    )
    for path, value in settings.items():
        words += ["--set", f"{path}={json.dumps(value) if not isinstance(value, str) else value}"]
    words += ["--runtime", runtime] if runtime != loaded.runtime else []
    words += ["--speed", f"{speed:g}"] if speed else []
    words += ["--data", str(data)] if data is not None else []
    words += ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
    return shlex.join(words)


@dataclass
class Run:
    """A run that is over. Of a scenario with a matrix, all of its variants: look at :attr:`variants`."""

    scenario: Scenario
    data: Mapping[str, Any]
    """What ``kemu run --json`` prints."""
    folder: Path | None = None
    """The run folder, if there is one."""
    variant: Mapping[str, Any] = field(default_factory=dict)
    """Variant of a run of a matrix: its values, by path."""
    variants: tuple[Run, ...] = ()
    """Variants of a matrix: its runs."""
    again: str = ""
    """How to have it again: a command of the shell, or a call."""
    _history: History | None = field(default=None, repr=False)
    _events: Sequence[Entry] | None = field(default=None, repr=False)

    @property
    def verdict(self) -> str:
        """``holds``, ``fails`` or ``unknown`` (something could not be judged, because it never happened)."""
        return str(self.data["verdict"])

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    @property
    def seed(self) -> int:
        return int(self.data["seed"])

    @property
    def digest(self) -> str:
        """SHA-256 of the run log. In virtual time the same scenario and seed give the same digest."""
        return str(self.data["digest"])

    @property
    def counts(self) -> Mapping[str, int]:
        """Counters over the whole run: ``pods_bound``, ``preemptions``, ``bind_conflicts``, … (docs/verdict.md)."""
        counts: Mapping[str, int] = self.data["counts"]
        return counts

    @property
    def virtual_s(self) -> float:
        """How long it took, in virtual seconds."""
        return float(self.data["virtual_s"])

    @cached_property
    def checks(self) -> Mapping[str, views.Finding]:
        """By id."""
        self._single("checks")
        return {
            found["id"]: views.Finding(found["id"], found["holds"], found["detail"], counts=found["asked"])
            for found in self.data["checks"]
        }

    @cached_property
    def expectations(self) -> Mapping[str, views.Finding]:
        """By id, in the order of the scenario; comparisons of a matrix, too."""
        return {
            found["id"]: views.Finding(found["id"], found["holds"], found["detail"], found["text"], says=found["says"])
            for found in self.data["expectations"]
            if "variant" not in found
        }

    @property
    def failures(self) -> list[views.Finding]:
        """The checks and expectations that make the verdict ``fails``; of a matrix those of all variants."""
        own = [finding for finding in self.expectations.values() if finding.holds is False]
        if self.variants:
            return [*own, *(finding for variant in self.variants for finding in variant.failures)]
        subjects = [each.subject for each in self.scenario.expectations]
        expected = {subject.check for subject in subjects if isinstance(subject, CheckIs)}
        checks = [
            finding
            for finding in self.checks.values()
            if finding.holds is False and finding.counts and finding.id not in expected
        ]
        return [*checks, *own]

    @cached_property
    def pods(self) -> Mapping[str, views.Pod]:
        """Every pod by name, ``web-0`` or ``namespace/web-0``, as it was at the end; of several that had one name one
        after the other, the last."""
        return views.all_of(self.history)

    @cached_property
    def waits(self) -> list[views.Wait]:
        """How long each pod waited for a node, in seconds, in the order of their creation."""
        return views.waits(self.history)

    @property
    def events(self) -> Sequence[Entry]:
        """The run log: ``(time_ns, actor, kind, data)``, in order (docs/runs.md)."""
        self._single("events")
        if self._events is None:
            assert self.folder is not None
            with Reader(self.folder / FILE_NAME) as reader:
                self._events = list(reader)
        return self._events

    @property
    def history(self) -> History:
        """What the run log folds into, for what the properties above do not answer; not a stable interface."""
        self._single("history")
        assert self._history is not None
        return self._history

    def story(self, limit: int = reports.MOST_LINES) -> str:
        """What happened, a line each: time, who, what, why; if that is more than ``limit`` lines, the most telling."""
        return "\n".join(reports.story(self.history, limit))

    def check(self) -> None:
        """Raises :class:`kemu.RunFailed` if a check or an expectation does not hold, or an expectation could not be
        judged; the text says which, and the story."""
        wrong = self.failures
        for part in self.variants or (self,):
            wrong += [finding for finding in part.expectations.values() if finding.holds is None]
        if wrong or self.data.get("incomplete"):
            name, runtime = self.data["scenario"], self.data["runtime"]
            headline = f"{name} {self.verdict} ({runtime}, seed {self.seed}, {self.virtual_s:g} s)"
            history = None if self.variants else self.history
            raise reports.RunFailed(reports.told(headline, wrong, history, again=self.again))

    def explain(self, failure: str = "", width: int = 100) -> str:
        """Why it fails: the chain of causes in at most six sentences, and a picture of who told whom what and when,
        beside a run that passes. ``failure``: a check or expectation; by default the first. Raises KemuError where
        nothing failed, or the run was on Ray."""
        from kemu.lab.tell.explaining import explanations
        from kemu.lab.tell.explaining.drawings import texts

        if self.data["runtime"] != "sim":
            raise KemuError("only runs in virtual time can be run again, to be explained")
        self._single("explanation")
        return texts.told(explanations.explain(self.scenario, failure), width)

    def __str__(self) -> str:
        """What ``kemu run`` prints of it."""
        from rich.console import Console

        from kemu.lab.tell import matrices, terminal

        console = Console(file=io.StringIO(), width=120)
        description = self.scenario.description
        shown = {"wall_s": 0.0, **self.data}
        if self.variants:
            matrices.show(console, shown, [each.history for each in self.variants], description)
        else:
            terminal.show_run(console, shown, self.history, description)
        assert isinstance(console.file, io.StringIO)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())

    def __repr__(self) -> str:
        return f"<kemu.Run {self.data['scenario']} seed {self.seed}: {self.verdict}>"

    def _single(self, what: str) -> None:
        if self.variants:
            raise ValueError(f"the scenario has a matrix: each of run.variants has its own {what}")


def in_memory(scenario: Scenario) -> Run:
    """Run every variant in virtual time, nothing on disk."""
    made = loader.variants(scenario)
    if len(made) == 1 and not made[0][0]:
        return of_execution(executions.execute(scenario, keep_log=True))
    begun = time.perf_counter()
    parts = [of_execution(executions.execute(each, keep_log=True), variant) for variant, each in made]
    wall_s = {"wall_s": round((time.perf_counter() - begun) / len(parts), 3)}
    results = [
        runner.RunResult(each.scenario, each.variant, Path(), {**each.data, **wall_s}, each.history) for each in parts
    ]
    return Run(scenario, _without_folder(runner.combine(scenario, results, Path())), variants=tuple(parts))


def of_execution(execution: executions.Execution, variant: Mapping[str, Any] | None = None) -> Run:
    """The run that an execution made, with its log if that was kept. Raises the error with which it broke."""
    if execution.error is not None:
        raise execution.error
    data = {"variant": dict(variant), **execution.verdict} if variant else execution.verdict
    return Run(
        execution.scenario,
        data,
        variant=variant or {},
        _history=execution.history,
        _events=execution.events if execution.keeps_log else None,
    )


def _in_folder(scenario: Scenario, options: runner.Options) -> Run:
    verdict, results = runner.run_all(scenario, options)
    parts = tuple(
        Run(each.scenario, each.verdict, each.folder, each.variant, _history=each.history) for each in results
    )
    return Run(scenario, verdict, options.out, variants=parts) if "variants" in verdict else parts[0]


def _without_folder(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in verdict.items() if key != "run"}
