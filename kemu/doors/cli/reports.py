"""Makes the HTML report of a run folder, and gathers what explains each run: only layers above ``report`` know that."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.doors.cli import finds, run_folders
from kemu.errors import KemuError
from kemu.lab.tell.page import pages
from kemu.runtime import runtimes

MOST_EXPLAINED_BYTES = 12_000_000
"""Most explained bytes of the run log: a longer run is not made again to explain it, unless ``kemu explain`` has done
so."""
MOST_EXPLAINED = 6
"""Variants of a matrix."""


def write(run: Path, out: Path | None, data: Path | None) -> tuple[Path, int]:
    """The file, and its size in bytes. Raises KemuError where there is no run."""
    from kemu.runtime.runlog import folders as run_files

    file = out or run / run_files.REPORT_FILE
    held = run_files.held_in(run)
    if held is not None and held.kind == "search":
        found, verdict, search = finds.of(run, data)
        return file, pages.write(file, found, verdict, {"search": search})
    return file, pages.write(file, parts(run, data), run_folders.verdict(run))


def parts(run: Path, data: Path | None) -> list[pages.Part]:
    """The run, or each variant of a matrix, with what explains it."""

    folders = run_folders.all_of(run)
    explained = _explanations(run, folders, data)
    found = []
    for folder in folders:
        run_folders.tell_unfinished(folder)
        verdict = run_folders.verdict(folder)
        name = run_folders.name(folder) if folder != run else ""
        found.append(pages.Part(folder, verdict, explained.get(folder), name, _commands(run, folder, verdict)))
    return found


def _commands(run: Path, folder: Path, verdict: Mapping[str, Any]) -> list[tuple[str, str]]:
    if verdict.get("runtime") in runtimes.REAL:
        why = "what happened; a run in real time cannot be made again"
        return [(shlex.join(["kemu", "story", str(finds.named(run))]), why)]
    found = [(shlex.join(["kemu", "replay", str(finds.named(run))]), "makes it again, and compares every event")]
    if verdict.get("verdict") == "fails":
        # A variant stands in the folder of its matrix.
        below = finds.named(run) / folder.relative_to(run)
        found.append((shlex.join(["kemu", "explain", str(below)]), "why it fails, in the terminal"))
    return found


def _explanations(run: Path, folders: list[Path], data: Path | None) -> dict[Path, dict[str, Any]]:
    """By folder: why the run fails, or why one side lost; where ``kemu explain`` has told it, as it did."""
    from kemu.lab.tell.explaining import reports

    found = {folder: told for folder in folders if (told := reports.read(folder, _digest(folder))) is not None}
    rest = [folder for folder in folders if folder not in found]
    if all(_events_bytes(folder) <= MOST_EXPLAINED_BYTES for folder in rest):
        found |= _made(run, folders, rest[:MOST_EXPLAINED], data)
    return found


def _events_bytes(folder: Path) -> int:
    from kemu.runtime.runlog.frames import FILE_NAME, Reader

    with Reader(folder / FILE_NAME) as reader:
        return reader.unpacked_bytes


def _made(run: Path, folders: list[Path], wanted: list[Path], data: Path | None) -> dict[Path, dict[str, Any]]:
    """Explanations of runs in virtual time that can be made again."""
    from kemu.doors.cli import inputs
    from kemu.lab.scenario.loading import loader
    from kemu.lab.tell.explaining import losses, reports
    from kemu.runtime.runlog import folders as run_files

    if run_folders.verdict(run).get("runtime") != "sim":
        return {}
    try:
        scenario = inputs.load(str(run / run_files.SCENARIO_FILE), data, {}, quiet=True)
    except KemuError:
        return {}  # such as a trace whose files are not here
    variants = [variant for _, variant in loader.variants(scenario)]
    if len(variants) != len(folders):
        return {}
    names = {folder: run_folders.name(folder) for folder in folders}
    made = losses.Recordings()
    found = {}
    for folder, variant in zip(folders, variants, strict=True):
        others = [(names[other], one) for other, one in zip(folders, variants, strict=True) if other != folder]
        explanation = losses.explain(variant, others, made) if folder in wanted else None
        if explanation is not None and explanation.telling.recording.execution.digest == _digest(folder):
            found[folder] = reports.data(explanation)
    return found


def _digest(folder: Path) -> str:
    return str(run_folders.verdict(folder).get("digest", ""))
