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
`scripts/nightly --record FOLDER` writes its tables to this page. A failed step has its resolution; **open** means that
there is none yet.
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
    """Of a failure: what became of it. Written by hand."""


@dataclass
class Night:
    name: str
    seed: int
    machine: str
    ended: dict[str, Ended] = field(default_factory=dict)
    """By step, in the order of steps.yaml as far as it ran."""

    @classmethod
    def read(cls, file: Path) -> Self:
        found = json.loads(file.read_text())
        ended = {one["step"]: Ended(**one) for one in found.pop("ended")}
        return cls(**found, ended=ended)

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
    commits = ", ".join(f"`{one}`" for one in dict.fromkeys(one.commit for one in ended if one.commit))
    wall, cpu = sum(one.wall_s for one in ended), sum(one.cpu_s for one in ended)
    outcomes = f"{count['passed']} steps passed, {count['failed']} failed, {count['skipped']} were skipped"
    about = f"Seed {night.seed}; commit {commits}; {night.machine}. {outcomes}; {_time(wall)}, {_time(cpu)} of CPU."
    lines = [f"## {night.name}", "", about, "", "| step | | time | CPU | figure |", "|---|---|---|---|---|"]
    for one in ended:
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
