"""Running the experiments and storing what they come to; a run that was stopped goes on."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kemu
from experiments.findings import catalogue
from experiments.findings.catalogue import LARGE_NODES, load, stored
from kemu.emulated.objects import facts
from kemu.errors import KemuError
from kemu.lab.exploration.workers import Workers
from kemu.lab.sweep.cells import CellRecord, CellRows
from kemu.lab.sweep.engine import cell_tasks, summaries
from kemu.lab.sweep.engine.sweeps import Sweep, limit_s
from kemu.lab.sweep.experiments.experiments import Experiment
from kemu.lab.sweep.results import files
from kemu.lab.sweep.statistics import samples

PICTURES = catalogue.ROOT / "docs" / "pictures" / "findings"
PLOTS: dict[str, tuple[str, ...]] = {
    "two-pass-filtering": ("waiting",),
    "grace-periods": ("starvation", "--x", "grace", "--metric", "waiting.p50_s", "--priority", "1000"),
}
"""What ``kemu plot`` draws of some of them."""
REAL_SEEDS = 3
NOT_REPEATED = {
    "soft-thresholds": "it is about kubelets, which are kemu's own on a real control plane, too",
    "transition-period": "it is about kubelets, which are kemu's own on a real control plane, too",
    "greedy-tenant": "a run takes an hour, in real time",
}
"""Why those that a real control plane could carry out are not repeated there."""
DIGITS = 6
"""Significant ones that are stored: other machines may differ in the last bits of a mean."""


def results_of(experiment: Experiment, folder: Path, jobs: int, raw: Path | None = None) -> dict[str, Any]:
    """``raw``: where the table of all cells goes."""
    file = folder / files.FILE_NAME
    with Sweep(experiment, folder) as sweep:
        fresh = not sweep.is_over
        executor = Workers(jobs, limit_s=limit_s(experiment))
        try:
            for _ in sweep.go(executor):
                pass
        finally:
            executor.close()
        if experiment.name in PLOTS and (fresh or not file.exists()):
            sweep.write()
        summary = summaries.of(sweep, file)
        if raw is not None:
            write_raw(sweep.ordered(), experiment, raw)
        first = [
            {metric.text: least(samples.figure(record, metric)) for metric in experiment.metrics}
            for record in sweep.ordered()
            if record.cell.seed == experiment.seeds[0]
        ]
    found: dict[str, Any] = rounded(
        {
            "experiment": experiment.name,
            "kemu": kemu.__version__,
            "digest": catalogue.digest(experiment),
            "seeds": len(experiment.seeds),
            "cells": summary["cells"],
            "variants": [{key: each[key] for key in ("name", "variant", "metrics")} for each in summary["variants"]],
            "claims": summary["claims"],
            "first seed": {"seed": experiment.seeds[0], "figures": first},
        }
    )
    return found


def write_raw(records: Sequence[CellRecord], experiment: Experiment, path: Path) -> None:
    """A row for each cell, with all metrics and those of each priority, without the tables of pods and attempts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    slim = [
        record if record.rows is None else dataclasses.replace(record, rows=CellRows(record.rows.run))
        for record in records
    ]
    files.write_to(
        path, slim, experiment.varied, {"experiment": experiment.name, "digest": catalogue.digest(experiment)}
    )


def least(figure: samples.Figure | None) -> float | None:
    return None if figure is None else figure.least


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def run(wanted: Sequence[str], jobs: int, runs: Path) -> int:
    """Small ones and those at scale, by name; by default all small ones."""
    for name in wanted or catalogue.ORDER:
        experiment, _ = load(name)
        if name in catalogue.at_scale():
            found = results_of(experiment, runs / f"scale-{name}", jobs, catalogue.raw(name))
            found["nodes"] = len(experiment.scenario.nodes)
        else:
            found = results_of(experiment, runs / name, jobs)
        found |= repeats_kept(name, found["digest"])
        catalogue.write(name, found)
        draw(name, runs / name)
        print(f"{name}: {told(found)}", flush=True)
    return 0


def repeats_kept(name: str, digest: str) -> dict[str, Any]:
    """What was stored of its repeats and still belongs to it; more seeds do not change a repeat on many nodes."""
    before = stored(name) if catalogue.results(name).exists() else {}
    kept = {key: before[key] for key in catalogue.REPEATS if key in before}
    if kept and before["digest"] != digest:
        kept.pop("real", None)
        if "large" in kept and kept["large"]["digest"] != catalogue.digest(catalogue.large(name)):
            kept.pop("large")
    return kept


def told(found: Mapping[str, Any]) -> str:
    outcomes = ", ".join(f"{claim['id']} {claim['outcome']}" for claim in found["claims"])
    return f"{found['cells']['total']} cells; {outcomes}"


def repeat_large(wanted: Sequence[str], jobs: int, runs: Path) -> int:
    for name in wanted or catalogue.ORDER:
        if name not in catalogue.ORDER:
            raise SystemExit(f"{name} is at scale already: scripts/findings run {name}")
        found = results_of(catalogue.large(name), runs / f"{name}-{LARGE_NODES}", jobs, catalogue.raw(name))
        kept = {key: found[key] for key in ("digest", "seeds", "cells", "variants", "claims")}
        catalogue.write(name, {**stored(name), "large": {"nodes": LARGE_NODES, **kept}})
        print(f"{name} on {LARGE_NODES} nodes: {told(found)}", flush=True)
    return 0


def repeat(wanted: Sequence[str], runs: Path) -> int:
    """On real control planes, one cell after the other."""
    for name in wanted or [name for name in catalogue.ORDER if why_not_real(name) is None]:
        if (why := why_not_real(name)) is not None:
            raise SystemExit(f"{name} cannot be repeated: {why}")
        experiment, _ = load(name)
        some = dataclasses.replace(cell_tasks.on_real(experiment), seeds=experiment.seeds[:REAL_SEEDS])
        found = results_of(some, runs / f"{name}-real", 1)
        real = {key: found[key] for key in ("seeds", "variants", "claims")}
        real |= {"kubernetes": facts.KUBERNETES, "date": dt.datetime.now(tz=dt.UTC).date().isoformat()}
        catalogue.write(name, {**stored(name), "real": real})
        print(f"{name}: {found['cells']}", flush=True)
    return 0


def why_not_real(name: str) -> str | None:
    """None: a real control plane can carry it out."""
    if name in NOT_REPEATED:
        return NOT_REPEATED[name]
    try:
        cell_tasks.on_real(load(name)[0], find=False)
    except KemuError as error:
        first = str(error).partition("\n")[2].partition("\n")[0].strip()
        what, is_switch, _ = first.partition(": is of kemu's own")
        return f"`{what.rpartition(': ')[2]}` is a switch that only kemu has" if is_switch else first
    return None


def draw(name: str, folder: Path) -> None:
    if name in PLOTS:
        kind, *options = PLOTS[name]
        command = [sys.executable, "-m", "kemu.doors.cli.main", "plot", str(folder), kind, *options]
        subprocess.run([*command, "--out", str(folder / "plots")], check=True, stdout=subprocess.DEVNULL)
        PICTURES.mkdir(exist_ok=True)
        shutil.copy(folder / "plots" / f"{kind}.svg", PICTURES / f"{name}.svg")
