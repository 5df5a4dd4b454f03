"""Search for bugs in a controller that is a program of its own.

    hunt = kemu.hunt("hunts/workers/careless.yaml", time=120, jobs=4)
    for finding in hunt.findings:
        print(finding.symptom, finding.perturbation, finding.shown, finding.again)

Role: ``kemu hunt`` for programs, on :mod:`kemu.lab.hunt.searches`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kemu.doors.api import reports
from kemu.lab.hunt import findings, perturbations, projects
from kemu.lab.hunt.judging.oracles import Unsettled
from kemu.lab.hunt.searches import Hunt, Progress
from kemu.lab.hunt.telling import reports as finding_reports
from kemu.lab.hunt.telling import summaries


def hunt(
    project: str | os.PathLike[str],
    *,
    time: float | None = None,
    jobs: int = 1,
    repeat: int = findings.REPETITIONS,
    retries: int = 0,
    pairs: bool = False,
    mutations: bool = False,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> HuntResult:
    """Do the steps of a hunt without harm, and then again and again, each time with one perturbation of a controller.

    ``project``: the file of the hunt (docs/hunting.md). ``time``: no trial of a plan begins after so many real seconds;
    None: all are tried. ``jobs``: trials at a time, each in a process of its own; with 1 all happens in this one.
    ``repeat``: how often a finding is repeated. ``retries``: trials in which what has gone wrong once has to go wrong
    once more; 0: 2 to 4, by perturbation. ``pairs``: then two perturbations at once;
    ``mutations``: and wrong values of fields. ``out``: a folder
    for findings and ``hunt.md``; None: one for temporary files, which stays. ``progress`` is called with the number of
    plans done, and of all plans.

    Raises ScenarioError with all mistakes of the file, :class:`kemu.HuntUnsettled` where the steps do not come to an
    end without perturbations either, and KemuError where a controller cannot be started.
    """
    loaded = projects.load(Path(project))
    folder = Path(tempfile.mkdtemp(prefix=f"kemu-hunt-{loaded.name}-")) if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)

    def tell(found: Progress) -> None:
        if progress is not None:
            progress(found.done, found.plans)

    limit_s = float("inf") if time is None else time
    with Hunt(
        loaded,
        folder,
        repetitions=repeat,
        retries=retries,
        pairs=pairs,
        mutations=mutations,
        real_s=limit_s,
        jobs=jobs,
        on_progress=tell,
    ) as search:
        for _ in search.run():
            pass
        for finding in search.findings:
            finding_reports.write(loaded, finding)
        summaries.write(loaded, search, folder)
    return HuntResult(loaded, search, folder)


class FindingOfHunt:
    """A perturbation after which something goes wrong that goes right without it."""

    def __init__(self, finding: findings.Finding) -> None:
        self.id: str = finding.id
        self.symptom: str = finding.symptoms[0].text
        """What goes wrong, in words; of several things the weightiest one."""
        self.symptoms: tuple[str, ...] = tuple(each.text for each in finding.symptoms)
        self.perturbation: str = perturbations.shown(finding.plan)
        """What is done to the controller, in words."""
        self.plan: Any = finding_reports.data_of_plan(finding.plan)
        """The same, as a plan has it below ``perturb``."""
        self.steps: tuple[str, ...] = tuple(map(str, finding.steps))
        """Those that it takes."""
        self.shown: tuple[int, int] = finding.shown, finding.tried
        """In how many repetitions it has shown, of how many."""
        self.share: tuple[float, float] = finding.interval
        """The share of trials in which it shows, with a confidence of 95 %."""
        self.folder: Path = finding.folder.parent
        """With ``finding.md``, ``plan.yaml``, a test, and the run folder ``run``."""

    @property
    def text(self) -> str:
        """The report, in Markdown."""
        return (self.folder / finding_reports.TEXT).read_text()

    @property
    def again(self) -> str:
        """The command that tries it again, with a controller that was repaired perhaps."""
        return f"kemu hunt --again {self.folder}"

    def __repr__(self) -> str:
        return f"<{self.id}: {self.symptom} ({self.perturbation}, {self.shown[0]} of {self.shown[1]} times)>"


class HuntResult:
    """A hunt that is over."""

    def __init__(self, project: projects.Project, search: Hunt, folder: Path) -> None:
        self.name: str = project.name
        self.folder = folder
        """With a folder for each finding, and ``hunt.md``."""
        self.findings: tuple[FindingOfHunt, ...] = tuple(map(FindingOfHunt, search.findings))
        self.plans: int = search.progress.plans
        """Those that are worth a trial."""
        self.done: int = search.progress.done
        """Those that were tried."""
        self.coverage: Mapping[str, Any] = search.coverage.data()
        """As ``kemu hunt --json`` has it: ``cells`` by kind of object and perturbation, what was ``missed``, and
        why."""
        self._headline = summaries.headline(project, search)

    @property
    def holds(self) -> bool:
        """Nothing was found."""
        return not self.findings

    def check(self) -> None:
        """Raises :class:`kemu.RunFailed` with the text of the first finding, and the command that tries it again."""
        if self.findings:
            first, more = self.findings[0], len(self.findings) - 1
            also = f"\nand {more} more, in {self.folder / summaries.FILE}" if more else ""
            raise reports.RunFailed(f"{self._headline}\n\n{first.text}\nAgain: {first.again}{also}")

    def __repr__(self) -> str:
        return f"<kemu.HuntResult: {self._headline}>"


HuntUnsettled = Unsettled

__all__ = ["FindingOfHunt", "HuntResult", "HuntUnsettled", "hunt"]
