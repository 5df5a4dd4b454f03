"""The record of a night: one JSON file in ``docs/nights``, and the page that is made of all of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from tests.nights.steps import ROOT

FOLDER = ROOT / "docs" / "nights"
PAGE = ROOT / "docs" / "nights.md"

HEAD = """# Nights

`scripts/nightly` runs the tests that take too long for every change, with the steps of `tests/nights/steps.yaml`.
`scripts/nightly --night FOLDER` resumes an interrupted run; `scripts/nightly STEP` runs one step.
`scripts/nightly --record FOLDER` writes its tables to this page. A failed step keeps its row when it runs again,
and has its resolution; **open** means that there is none yet.
"""


@dataclass
class Ended:
    """How a step went."""

    step: str
    title: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``."""

    figure: str
    """A line of its output, or what it lacked."""

    commit: str = ""
    began: str = ""
    """ISO 8601, UTC, to the second."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    became: str = ""
    """Of a failure: what became of it, as ``scripts/nightly --night FOLDER --became STEP TEXT`` says."""


@dataclass
class Night:
    name: str
    seed: int
    machine: str
    ended: dict[str, Ended] = field(default_factory=dict)
    """By step: how it went last."""

    failures: list[Ended] = field(default_factory=list)
    """Of steps that ran again since, oldest first."""

    @classmethod
    def read(cls, file: Path) -> Self:
        found = json.loads(file.read_text())
        ended = {one["step"]: Ended(**one) for one in found.pop("ended")}
        failures = [Ended(**one) for one in found.pop("failures", [])]
        return cls(**found, ended=ended, failures=failures)

    def take(self, one: Ended) -> None:
        """How a step went this time."""
        if (before := self.ended.get(one.step)) and before.outcome == "failed":
            self.failures.append(before)
        self.ended[one.step] = one

    def merge(self, other: Night) -> None:
        """Of each step the later run counts, and every failure is kept. The folders began as copies of one night."""
        runs = [*self.failures, *self.ended.values(), *other.failures, *other.ended.values()]
        once = {(one.step, one.began): one for one in sorted(runs, key=lambda one: bool(one.became))}
        self.ended, self.failures = {}, []
        for one in sorted(once.values(), key=lambda one: one.began):
            self.take(one)

    def resolve(self, step: str, became: str) -> None:
        """Raises KeyError: no failure of the step is open."""
        runs = [*self.failures, *self.ended.values()]
        failed = [one for one in runs if one.step == step and one.outcome == "failed" and not one.became]
        if not failed:
            raise KeyError(step)
        for one in failed:
            one.became = became

    def write(self, file: Path) -> None:
        """All or nothing: an interruption loses no step that has ended."""
        document = {**asdict(self), "ended": [asdict(one) for one in self.ended.values()]}
        new = file.with_suffix(".new")
        new.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        new.replace(file)


def page(nights: list[Night]) -> str:
    """``docs/nights.md``, newest night first."""
    return "\n".join([HEAD, *(_section(night) for night in sorted(nights, key=lambda one: one.name, reverse=True))])


def _section(night: Night) -> str:
    ended = night.ended.values()
    count = {outcome: sum(one.outcome == outcome for one in ended) for outcome in ("passed", "failed", "skipped")}
    runs = sorted([*night.failures, *ended], key=lambda one: (list(night.ended).index(one.step), one.began))
    commits = ", ".join(f"`{one}`" for one in dict.fromkeys(one.commit for one in runs if one.commit))
    wall, cpu = sum(one.wall_s for one in runs), sum(one.cpu_s for one in runs)
    outcomes = f"{count['passed']} steps passed, {count['failed']} failed, {count['skipped']} were skipped"
    if night.failures:
        outcomes += f"; {len(night.failures)} failures before"
    about = f"Seed {night.seed}; commit {commits}; {night.machine}. {outcomes}; {_time(wall)}, {_time(cpu)} of CPU."
    lines = [f"## {night.name}", "", about, "", "| step | | time | CPU | figure |", "|---|---|---|---|---|"]
    for one in runs:
        outcome = one.outcome
        if outcome == "failed":
            outcome += f": {one.became}" if one.became else ": **open**"
        lines.append(f"| {one.step} | {outcome} | {_time(one.wall_s)} | {_time(one.cpu_s)} | {_cell(one.figure)} |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`" if text else ""


def _time(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 100 else f"{seconds:.0f} s"
