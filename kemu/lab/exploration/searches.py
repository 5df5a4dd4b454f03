"""A search from beginning to end: the ordinary run, a campaign, and each way of failing as a scenario of its own.

    with Search(scenario, Options(runs=1000)) as search:
        for record in search.go():
            ...
        for finding in search.findings():
            print(finding.cluster.failure.detail, finding.file)
        print(search.verdict())

What ``kemu explore`` does, without its words. :mod:`campaigns` runs what :mod:`strategies` plan; :mod:`shrinking` makes
what they find small, ``kemu.lab.tell.explaining`` says why it fails.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kemu.errors import KemuError
from kemu.lab.checks import registry as checks
from kemu.lab.exploration import campaigns, executions, files, results
from kemu.lab.exploration.campaigns import Campaign
from kemu.lab.exploration.clusters import Cluster, Clusters
from kemu.lab.exploration.executions import BROKEN, Execution, Failure, execute
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.shrinking import shrinker, texts
from kemu.lab.exploration.shrinking.shrinker import Shrunk
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.strategies import registry
from kemu.lab.exploration.workers import Executor, Workers
from kemu.lab.scenario.loading import holds, loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.runlog import crash_reports, folders
from kemu.runtime.runlog.folders import EXPLANATIONS

FAILURES = "failures"
"""The folder of what was found, below that of the campaign: a folder for each cluster."""
SCENARIO_FILE = "scenario.yaml"
"""As small as it became."""
WHOLE_FILE = "whole.yaml"
"""As it was found."""

SEARCHING = 0.5
"""The share of the time in which new ways to fail are searched, once one is known; the rest makes them small."""
MOST_SHRUNK = 5
"""So many ways to fail share the rest."""
LEAST_S = 5.0
"""Shrinking one of them may take so long, whatever is left."""
EXECUTIONS_S = 300.0
"""Shrinking one of them may take so long where no time is given: the number of executions ends it, not the machine."""

ORDINARY = "ordinary"
"""In place of a strategy: the run of the scenario as it is."""


@dataclass(frozen=True)
class Options:
    """What to search for, how, and how far."""

    out: Path
    """The folder for the campaign and what it finds."""
    seed: int = 0
    runs: int = 0
    seconds: float = 0.0
    """For the runs and for shrinking; explanations come on top."""
    failures: int = 0
    """Stop when so many clusters are known. 0: no limit, as for the two above."""
    jobs: int = 1
    strategies: tuple[str, ...] = ()
    """By name; none: all."""
    checks: tuple[str, ...] = ()
    """Only these checks and expectations count; none: all."""
    shrinks: bool = True
    resumes: bool = False
    """Go on with the campaign in the folder, instead of beginning anew."""
    force: bool = False
    """Replace a run in the folder, too."""


Explain = Callable[[Scenario, Callable[[Failure], bool], Path], tuple[str, ...]]
"""Explains how a scenario fails, by a failure that the second argument accepts; leaves its files in the folder and
returns the sentences. Raises KemuError if the scenario does not fail so."""


@dataclass(frozen=True)
class Finding:
    """A way of failing, as a scenario that stands alone."""

    cluster: Cluster
    file: Path
    """``kemu run`` fails with it in the same way."""
    is_verified: bool
    """False: it does not; the file holds what was planned, for a reader."""
    shrunk: Shrunk | None
    because: tuple[str, ...] | None
    """Why it fails, in sentences. None: it was not explained."""


class Search:
    """One search. Its workers end with it."""

    def __init__(
        self,
        scenario: Scenario,
        options: Options,
        *,
        data_dir: str | Path | None = None,
        executor: Executor | None = None,
        explain: Explain | None = None,
    ) -> None:
        """``executor``: in place of ``options.jobs`` processes. ``explain``: what explains findings; None: they are not
        explained. Raises KemuError for names that nothing has."""
        self._explain = explain
        self.scenario = scenario
        self.options = options
        self._data_dir = data_dir
        self._source = Source.of(scenario, data_dir)
        _check_ids(scenario, options.checks)
        strategies = registry.make(options.strategies, self._source, options.seed)
        if not options.resumes:
            folders.check_replaced(options.out, folders.Held("search", scenario.name), force=options.force)
            _clear(options.out)
        self._executor = executor or Workers(options.jobs, copies=True)
        settings = campaigns.Settings(
            options.seed,
            options.runs,
            options.seconds,
            SEARCHING * options.seconds if options.shrinks else 0.0,
            failures=options.failures,
            checks=options.checks,
            out=options.out,
        )
        self.campaign = Campaign(scenario, strategies, settings, self._executor, _path(data_dir))
        self.ordinary: Execution | None = None
        """The run of the scenario as it is, once it has been made."""
        self._findings: dict[str, Finding] = {}
        self._shrinking_s = 0.0
        """Spent so far."""

    def go(self) -> Iterator[results.RunRecord]:
        """Carry out the runs of the campaign; none if the ordinary run fails already (:attr:`fails_anyway`)."""
        self.ordinary = execute(self._source.scenario(Plan()))
        if not self.fails_anyway():
            yield from self.campaign.go()

    def fails_anyway(self) -> list[Failure]:
        """How the scenario fails without any search."""
        found = self.ordinary.failures if self.ordinary is not None else ()
        return [failure for failure in found if campaigns.counts(failure, self.options.checks)]

    def clusters(self) -> Sequence[Cluster]:
        anyway = self.fails_anyway()
        if not anyway:
            return list(self.campaign.clusters)
        found = Clusters()
        found.add(results.RunRecord(0, ORDINARY, Plan(), executions.FAILS, failures=tuple(anyway)))
        return list(found)

    def findings(self) -> Iterator[Finding]:
        """Every cluster, in the order in which they were found, as soon as it is small and explained."""
        for cluster in self.clusters():
            if cluster.id not in self._findings:
                self._findings[cluster.id] = self._found(cluster)
            yield self._findings[cluster.id]

    def crash(self) -> Path | None:
        """The report of a bug of kemu's that the findings so far have come upon."""
        files = [self.options.out / FAILURES / name / folders.CRASH_FILE for name in self._findings]
        return next((file for file in files if file.is_file()), None)

    def verdict(self) -> str:
        return executions.FAILS if self.fails_anyway() else self.campaign.verdict()

    def data(self, kemu: str = "kemu") -> dict[str, Any]:
        """The result as ``kemu explore --json`` prints it, with the findings so far."""
        found = self.campaign.data(lambda cluster: "")
        if self.fails_anyway():
            found |= {"runs": 1, "failures": [_anyway(cluster) for cluster in self.clusters()]}
        for failure in found["failures"]:
            finding = self._findings.get(failure["cluster"])
            failure["command"] = f"{kemu} run {shlex.quote(str(finding.file))}" if finding is not None else ""
            failure["verified"] = finding is not None and finding.is_verified
            shrunk = None if finding is None else finding.shrunk
            failure["shrunk"] = None if shrunk is None else {"scenario": str(finding.file), **told(shrunk)}  # type: ignore[union-attr]
            is_done = finding is None or shrunk is None or shrunk.minimal
            failure["continue"] = "" if is_done else f"{kemu} shrink {shlex.quote(str(finding.file.parent))}"  # type: ignore[union-attr]
            failure["because"] = [] if finding is None else list(finding.because or ())
        return {**found, "verdict": self.verdict()}

    def _found(self, cluster: Cluster) -> Finding:
        folder = self.options.out / FAILURES / cluster.id
        folder.mkdir(parents=True, exist_ok=True)
        record = cluster.first
        planned = self._source.scenario(record.plan)
        whole = text_of(planned, record.holds)
        (folder / WHOLE_FILE).write_text(whole)
        fails = _fails(folder / WHOLE_FILE, cluster, self._data_dir)
        if fails and cluster.check == BROKEN:
            _report_crash(folder, self._data_dir)
        if not fails:
            return Finding(cluster, folder / WHOLE_FILE, False, None, None)
        shrunk, text = None, whole
        if self.options.shrinks:
            shrunk = shrinker.shrink(
                loader.load(folder / WHOLE_FILE, self._data_dir),
                cluster.failure,
                executor=self._executor,
                jobs=self.options.jobs,
                data_dir=str(self._data_dir or ""),
                most_s=self._share_s(),
            )
            self._shrinking_s += shrunk.wall_s
            text = shrunk.yaml
        file = folder / SCENARIO_FILE
        file.write_text(text)
        if shrunk is not None and not _fails(file, cluster, self._data_dir):
            shrunk = None
            file.write_text(whole)
        return Finding(cluster, file, True, shrunk, self._explained(cluster, file))

    def _share_s(self) -> float:
        """How long the next way to fail may be shrunk: those that are left share the time that is left."""
        if not self.options.seconds:
            return EXECUTIONS_S
        left = max(1, min(len(self.clusters()), MOST_SHRUNK) - len(self._findings))
        return max(LEAST_S, (self.options.seconds - self.campaign.seconds - self._shrinking_s) / left)

    def _explained(self, cluster: Cluster, file: Path) -> tuple[str, ...] | None:
        if self._explain is not None:
            with contextlib.suppress(KemuError):
                scenario = loader.load(file, self._data_dir)
                return self._explain(scenario, lambda failure: _is(failure, cluster), file.parent)
        return None

    def close(self) -> None:
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def told(shrunk: Shrunk) -> dict[str, Any]:
    """How small it became, and why no smaller, as ``--json`` tells it."""
    return {**shrunk.counts(), "minimal": shrunk.minimal, "why_larger": shrunk.why_not}


def text_of(scenario: Scenario, kept_back: Sequence[Any]) -> str:
    """A file of the scenario with its seed and these holds."""
    data = {**scenario.resolved, "spec": dict(scenario.resolved["spec"])}
    spec = data["spec"]
    spec["seed"] = scenario.seed
    spec.pop("holds", None)
    if kept_back:
        spec["holds"] = [holds.as_data(hold) for hold in kept_back]
    return texts.text(data)


def _is(failure: Failure, cluster: Cluster) -> bool:
    return (failure.id, failure.cause) == (cluster.check, cluster.cause)


def _fails(file: Path, cluster: Cluster, data_dir: str | Path | None) -> bool:
    """Whether the file, read as ``kemu run`` reads it, fails in the same way."""
    return any(_is(failure, cluster) for failure in execute(loader.load(file, data_dir)).failures)


def _report_crash(folder: Path, data_dir: str | Path | None) -> None:
    """Where the run broke by a bug of kemu's."""
    file = folder / WHOLE_FILE
    execution = execute(loader.load(file, data_dir), keep_log=True)
    if execution.error is not None and crash_reports.is_bug(execution.error):
        about = {"scenario": execution.scenario.name, "seed": execution.scenario.seed, "runtime": "sim"}
        report = folder / folders.CRASH_FILE
        crash_reports.write(report, execution.error, about, file.read_text(), execution.events)


def _anyway(cluster: Cluster) -> dict[str, Any]:
    return {
        "id": cluster.check,
        "cluster": cluster.id,
        "detail": cluster.failure.detail,
        "cause": cluster.cause,
        "runs": 1,
        "strategy": ORDINARY,
    }


def _check_ids(scenario: Scenario, ids: Sequence[str]) -> None:
    known = [check.id for check in checks.ALL] + [one.id for one in scenario.expectations] + [BROKEN]
    for name in ids:
        if name not in known:
            own = ", ".join(one.id for one in scenario.expectations)
            raise KemuError(f"no check or expectation is called {name}; {scenario.name} expects {own or 'nothing'}")


def _clear(folder: Path) -> None:
    """Remove what an earlier search has left there, and nothing else."""
    held = folders.held_in(folder)
    if held is None:
        return
    if held.kind != "search":
        folders.clear(folder)
        return
    for name in (files.CAMPAIGN_FILE, files.SCENARIO_FILE):
        (folder / name).unlink(missing_ok=True)
    for each in sorted((folder / FAILURES).glob("*")):
        for name in (SCENARIO_FILE, WHOLE_FILE, folders.CRASH_FILE, *EXPLANATIONS):
            (each / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            each.rmdir()


def _path(folder: str | Path | None) -> Path | None:
    return None if folder is None else Path(folder)
