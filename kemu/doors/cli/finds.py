"""The findings of a search, for its report: each failure as a run that is repeated in memory."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration.clusters import Cluster, Clusters
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.page import pages
from kemu.runtime.runlog import folders

MOST = 6
"""Failures that are shown as runs; the table has all."""


def named(folder: Path) -> Path:
    """How the commands of a page call a folder: by its path from where kemu was called, or by its last part alone. So
    the page of a run is the same on every machine, and tells nothing of its folders."""
    found = Path(folders.shown(folder))
    return Path(found.name) if found.is_absolute() else found


def of(folder: Path, data: Path | None) -> tuple[list[pages.Part], dict[str, Any], dict[str, Any]]:
    """The runs to show, the verdict of the whole, and the figures of the search.

    Raises KemuError where the folder cannot be read.
    """
    from kemu.lab.exploration import results, searches

    header, records = _campaign(folder / folders.CAMPAIGN_FILE)
    clusters = Clusters()
    tried: dict[str, list[int]] = {}
    for one in records:
        record = results.from_data(one)
        tried.setdefault(record.strategy, [0, 0])[0] += 1
        if record.is_found:
            tried[record.strategy][1] += 1
            clusters.add(record)
    rows: list[dict[str, Any]] = []
    parts: list[pages.Part] = []
    for cluster in clusters:
        file = folder / searches.FAILURES / cluster.id / searches.SCENARIO_FILE
        is_shown = file.is_file() and len(parts) < MOST
        rows.append(row(cluster, file, len(parts) if is_shown else -1))
        if is_shown:
            parts.append(_part(file, folder, cluster.id, data))
    if not parts:
        parts.append(_part(folder / folders.SCENARIO_FILE, folder, "", data))
    ways = f"{len(rows)} way{'' if len(rows) == 1 else 's'} to fail" if rows else "no way to fail found"
    headline = f"{ways} in {len(records)} runs"
    verdict = {"scenario": header.get("scenario", ""), "verdict": "fails" if rows else "holds", "headline": headline}
    strategies = [{"name": name, "runs": runs, "failed": failed} for name, (runs, failed) in tried.items()]
    return parts, verdict, {"headline": headline, "finds": rows, "strategies": strategies}


def row(cluster: Cluster, file: Path, run: int) -> dict[str, Any]:
    """A kind of failure, with its scenario, if there is one. ``run``: its run in the page; -1: none."""
    return {
        "id": cluster.id,
        "detail": cluster.failure.detail,
        "runs": len(cluster.runs),
        "first": cluster.first.number,
        "strategies": cluster.strategies,
        "scenario": file.read_text() if file.is_file() else "",
        "run": run,
    }


def _campaign(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first line, and the records of the runs, without a truncated last line."""
    try:
        header, *lines = file.read_text().splitlines()
        found = []
        for line in lines:
            try:
                one = json.loads(line)
            except ValueError:
                break
            if "strategy" in one:
                found.append(one)
        return json.loads(header), found
    except (OSError, ValueError):
        raise KemuError(f"{file}: not the record of a search") from None


def _part(file: Path, above: Path, name: str, data: Path | None) -> pages.Part:
    from kemu.lab.scenario.loading import loader

    quoted = shlex.quote(str(named(above) / file.relative_to(above)))
    commands = [
        (f"kemu run {quoted}", "makes it again"),
        (f"kemu explain {quoted} --probability", "when was it decided?"),
    ]
    return made(loader.variants(loader.load(file, data))[0][1], name, commands, file.parent)


def made(scenario: Scenario, name: str, commands: list[tuple[str, str]], folder: Path) -> pages.Part:
    """A run in memory, with its explanation. ``folder``: where ``kemu explain`` may have written one."""
    from kemu.lab.tell.explaining import losses, reports

    recordings = losses.Recordings()
    recording = recordings.of(scenario)
    told = reports.read(folder, recording.execution.digest)
    if told is None:
        explanation = losses.explain(scenario, (), recordings)
        told = reports.data(explanation) if explanation is not None else None
    header = {"scenario": scenario.name, "seed": scenario.seed, "runtime": "sim"}
    return pages.Part(folder, recording.execution.verdict, told, name, commands, (header, recording.events))
