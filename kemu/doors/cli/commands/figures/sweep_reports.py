"""The final output of ``kemu sweep``: the variants, the claims, and the next commands."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history import windows
from kemu.lab.scenario.playing import runner
from kemu.lab.sweep.cells import DONE, FAILED, SATURATED, Cell, Metric
from kemu.lab.sweep.engine import summaries
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.lab.sweep.statistics import judging, samples
from kemu.lab.tell import layouts, terminal
from kemu.runtime.words import counted

if TYPE_CHECKING:
    from kemu.lab.sweep.experiments.experiments import Experiment

MOST_TOLD = 3
"""Cells that failed for one reason each."""
_MARKS = {"holds": ("✓", "green"), "fails": ("✗", "red"), "undecided": ("?", "yellow")}


def size_text(experiment: Experiment) -> str:
    variants, seeds = counted(len(experiment.variants), "variant"), counted(len(experiment.seeds), "seed")
    return f"{variants} with {seeds} each: {counted(experiment.size, 'cell')}"


def default_folder(experiment: Experiment) -> Path:
    return Path("runs") / f"{experiment.name}-sweep"


# What it came to ----------------------------------------------------------------------------------------------------


def show(sweep: Sweep, found: Mapping[str, Any], commands: Sequence[tuple[str, str]]) -> None:
    console = Console(soft_wrap=False)
    experiment, width = sweep.experiment, console.width
    title = Text.assemble((experiment.name, "bold"), f"  {size_text(experiment)}")
    layouts.show(console, layouts.flowing(title, width, 2))
    if experiment.description:
        layouts.show(console, layouts.flowing(Text(" ".join(experiment.description.split()), "dim"), width, 0))
    console.print()
    if window := windows.text(found):
        layouts.show(console, [Text(window, "bold")])
    layouts.show(console, _table(experiment.metrics, found["variants"], width))
    layouts.show(console, _legend(found, width))
    console.print()
    if found["failed"]:
        layouts.show(console, _failures(found["failed"], width))
        console.print()
    terminal.show_next(console, commands)
    for claim in found["claims"]:
        layouts.show(console, _claim(claim, width))
    layouts.show(console, layouts.flowing(_headline(found), width, 2))


def _table(metrics: Sequence[Metric], variants: Sequence[Mapping[str, Any]], width: int) -> list[Text]:
    statuses = [status for status in (SATURATED, FAILED) if any(each[status] for each in variants)]
    rows: list[list[str | Text]] = []
    for each in variants:
        counts = [Text(f"{each[status]:,}", "yellow" if each[status] else "dim") for status in statuses]
        figures = [_interval(each["metrics"][metric.text]) for metric in metrics]
        rows.append([f"{each['name'] or 'as it is'}{' ↗' if each['growing'] else ''}", *figures, *counts])
    return layouts.table(["variant", *(metric.text for metric in metrics), *statuses], rows, width)


def _interval(mean: Mapping[str, Any] | None) -> Text:
    if mean is None:
        return Text("-", "dim")
    figure = (f"{'≥ ' * mean['at_least']}{judging.number(mean['mean'])}", "bold")
    if mean["low"] is None:
        return Text.assemble(figure, " [one seed]")
    high = "" if mean["high"] is None else f" {judging.number(mean['high'])}"
    return Text.assemble(figure, f" [{judging.number(mean['low'])} …{high}]")


def _legend(found: Mapping[str, Any], width: int) -> Iterator[Text]:
    variants, uneven = found["variants"], found["uneven"]
    lines = [f"means over the seeds, with their {summaries.CONFIDENCE:.0%} intervals"]
    means = [mean for each in variants for mean in each["metrics"].values() if mean is not None]
    if any(mean["at_least"] for mean in means):
        lines.append("≥ at least: pods still waited, or the run was ended at a limit, so the true mean is higher")
    growing = [each for each in variants if each["growing"]]
    if growing:
        share = f"{sum(each['growing'] for each in growing):,} cells"
        lines.append(
            f"↗ the queue grows as long as pods come ({share}): waiting times of all pods tell how long a run lasts"
        )
    if any(each[SATURATED] for each in variants):
        lines.append("saturated: cells that were ended at a limit, or in which until never came true")
    if uneven is not None:
        spans = f"{judging.number(uneven['shortest_s'])} to {judging.number(uneven['longest_s'])} s"
        lines.append(
            f"{' and '.join(uneven['metrics'])}: a mean over the time of each run, and that is {spans};"
            " measure: {until: …} in the scenario compares the same time of all"
        )
    for line in lines:
        yield from layouts.flowing(Text(line, "dim"), width, 2)


def _failures(failed: Sequence[Mapping[str, Any]], width: int) -> Iterator[Text]:
    """For each reason, the first cell."""
    by_reason: dict[str, list[Mapping[str, Any]]] = {}
    for each in failed:
        by_reason.setdefault(each["detail"], []).append(each)
    yield Text(f"{counted(len(failed), 'cell')} failed, and no figures of them count", "yellow")
    for reason, cells in list(by_reason.items())[:MOST_TOLD]:
        where = f"{runner.variant_name(cells[0]['variant'])} seed={cells[0]['seed']}".strip()
        more = f", and {len(cells) - 1} more" if len(cells) > 1 else ""
        yield from layouts.hanging(Text("  "), Text(f"{where}{more}: {reason}"), width)
    if len(by_reason) > MOST_TOLD:
        yield Text(f"  and {counted(len(by_reason) - MOST_TOLD, 'other reason')}", "dim")


def _claim(claim: Mapping[str, Any], width: int) -> Iterator[Text]:
    mark, style = _MARKS[claim["outcome"]]
    outcome = claim["outcome"]
    if claim["more_seeds"]:
        outcome += f" (needs about {counted(claim['more_seeds'], 'more seed')})"
    lead = Text.assemble((f"{mark} ", style))
    yield from layouts.hanging(lead, Text.assemble((claim["id"], "bold"), f"  {outcome}: ", claim["says"]), width)
    yield from layouts.hanging(Text("    "), Text(claim["detail"]), width)


def _headline(found: Mapping[str, Any]) -> Text:
    claims, cells = found["claims"], found["cells"]
    if not cells[DONE] and not cells[SATURATED]:
        return Text("unknown: no cell has figures", "bold yellow")
    if not claims:
        return Text("done: the experiment claims nothing", "bold")
    counts = {outcome: [each["id"] for each in claims if each["outcome"] == outcome] for outcome in _MARKS}
    if counts["fails"]:
        return Text(f"fails: {', '.join(counts['fails'])}", "bold red")
    if counts["undecided"]:
        return Text(f"undecided: {', '.join(counts['undecided'])}", "bold yellow")
    return Text(f"holds: {counted(len(claims), 'claim')}", "bold green")


# What to type next --------------------------------------------------------------------------------------------------


def cell_command(sweep: Sweep, cell: Cell, kemu: str) -> str:
    """The command that repeats one cell with a run folder."""
    experiment = sweep.experiment
    settings = {**experiment.settings, **experiment.overrides[cell.index]}
    words = [kemu, "run", experiment.source or str(sweep.folder / "scenario.yaml")]
    for path, value in settings.items():
        words += ["--set", f"{path}={_yaml(value)}"]
    words += ["--seed", str(cell.seed)]
    if experiment.data_dir:
        words += ["--data", experiment.data_dir]
    return shlex.join(words)


def next_commands(sweep: Sweep, found: Mapping[str, Any], kemu: str) -> list[tuple[str, str]]:
    telling = _telling_cell(sweep)
    folder = shlex.quote(str(sweep.folder))
    commands = []
    if telling is not None:
        cell, why = telling
        commands.append((cell_command(sweep, cell, kemu), f"one cell with its run folder: {why}"))
    undecided = [claim["more_seeds"] for claim in found["claims"] if claim["more_seeds"]]
    if undecided:
        seeds = math.ceil((len(sweep.experiment.seeds) + max(undecided)) / 10) * 10
        again = f"{kemu} sweep {shlex.quote(sweep.experiment.file)}"
        if sweep.folder != default_folder(sweep.experiment):
            again += f" --out {folder}"
        commands.append((again, f"after seeds: {seeds} in the file, only the new cells run"))
    commands.append((f"{kemu} results {folder}", "the tables of all runs; --sql asks them"))
    commands.append((f"{kemu} report {folder}", "figures, claims and some of the runs, on one page for a browser"))
    return commands


def _telling_cell(sweep: Sweep) -> tuple[Cell, str] | None:
    """The first cell that failed, else the one with the highest first metric."""
    records = sweep.ordered()
    failed = next((record for record in records if record.status == FAILED), None)
    if failed is not None:
        return failed.cell, "the first that failed"
    metric = sweep.experiment.metrics[0] if sweep.experiment.metrics else Metric("waiting.max_s")
    known = [(figure.least, record) for record in records if (figure := samples.figure(record, metric)) is not None]
    if not known:
        return None
    _, highest = max(known, key=lambda pair: (pair[0], -pair[1].cell.index, -pair[1].cell.seed))
    return highest.cell, f"the highest {metric.text}"


def _yaml(value: Json) -> str:
    """The value for ``--set``: a word unchanged, anything else as JSON, which is YAML."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value, ensure_ascii=False)


_WORD = re.compile(r"(?!(on|off|yes|no|true|false|null)$)[a-zA-Z][\w-]*|[0-9.]+(/s|/m|/h|ms|s|m|h|[KMGT]i)")
