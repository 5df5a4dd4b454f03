"""Run folders: what stands in them, and which are of one matrix. docs/runs.md describes them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError, RunLogError
from kemu.runtime import words
from kemu.runtime.runlog.frames import FILE_NAME, Reader, is_log

SCENARIO_FILE = "scenario.yaml"
INDEX_FILE = f"{FILE_NAME}.index"
VERDICT_FILE = "verdict.json"
INPUTS_FILE = "inputs.kemu"
"""Inputs file of kemu up --virtual: what came from outside."""
CHAOS_FILE = "chaos.yaml"
"""Chaos file of kemu up: the script of what has struck."""
CRASH_FILE = "crash.txt"
"""Where kemu itself failed: the report of it."""
CHECKPOINT_FILE = f"{FILE_NAME}.checkpoint"
"""The socket on which the checkpoint of a run waits."""
BEFORE_FILE = f"{FILE_NAME}.before"
"""What is left of the log of a run that is made again, until all of it has come again."""
RESULTS = (
    SCENARIO_FILE, FILE_NAME, INDEX_FILE, VERDICT_FILE, INPUTS_FILE, CHAOS_FILE, CRASH_FILE, CHECKPOINT_FILE,
    BEFORE_FILE,
)  # fmt: skip
CELLS = "cells"
SEGMENTS = "logs"
"""In CELLS: the events of each process of a run on Ray."""
CAMPAIGN_FILE = "campaign.jsonl"
"""Campaign file of kemu explore."""
CELLS_FILE, EXPERIMENT_FILE, TABLES_FILE = "cells.kemu", "experiment.yaml", "results.parquet"
"""The files of kemu sweep: its journal, the experiment, the results."""
EXPLANATIONS = ("explanation.txt", "explanation.svg", "explanation.json")
"""What ``kemu explain`` leaves beside them; it is about the run that is replaced."""
REPORT_FILE = "report.html"
"""What ``kemu report`` leaves beside them."""
_VARIANT = re.compile(r"variant-([0-9]+)", re.ASCII)


@dataclass(frozen=True)
class Held:
    """The result that a folder holds."""

    kind: str
    """``run``, ``variants`` of a matrix, ``search`` of kemu explore, or ``sweep``."""
    scenario: str
    """Its name; empty where it is not known."""
    count: int = 1
    """The number of variants."""

    def __str__(self) -> str:
        what = f"{self.count} variants" if self.kind == "variants" else f"a {self.kind}"
        return f"{what} of {self.scenario}" if self.scenario else what


def held_in(folder: Path) -> Held | None:
    variants = variants_in(folder)
    if (folder / CAMPAIGN_FILE).is_file():
        return Held("search", _name(folder))
    if (folder / CELLS_FILE).is_file():
        return Held("sweep", "")
    if variants:
        return Held("variants", _name(folder), len(variants))
    return Held("run", _name(folder)) if is_log(folder / FILE_NAME) else None


def shown(path: Path) -> str:
    """As the user may type it: from the folder in which kemu was called, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def not_a_run(folder: Path, lacks: str) -> str:
    """The complaint about what should be the folder of a run."""
    if folder.is_file():
        return f"{folder}: a file, not a run folder; kemu run {folder} makes one"
    if folder.is_dir():
        return f"{folder}: not a run folder: it has no {lacks}"
    near = [each for each in _nearest(folder) if held_in(each) is not None]
    hint = f"; did you mean {' or '.join(map(str, near))}?" if near else ""
    return f"{folder}: no such folder{hint}"


def _nearest(folder: Path) -> list[Path]:
    """Folders beside it of a similar name, at most two."""
    beside = {each.name: each for each in folder.parent.glob("*/")}
    return [beside[name] for name in words.nearest(folder.name, sorted(beside), 2, words.ALIKE)]


def check_replaced(folder: Path, by: Held, *, force: bool) -> None:
    """Raises KemuError where the folder holds a result of another kind, or variants that the new one has not."""
    held = held_in(folder)
    if held is None or force:
        return
    fewer = held.kind == "variants" and (held.scenario != by.scenario or held.count > by.count)
    if held.kind != by.kind or fewer:
        raise KemuError(f"{folder} holds {held}: choose another folder with --out, or replace them with --force")


def clear(folder: Path) -> None:
    """Remove what runs, searches and sweeps have left there, and nothing else. Findings of searches stay."""
    variants, held = variants_in(folder), held_in(folder)
    for each in (*variants, folder):
        names = [*RESULTS, *((*EXPLANATIONS, REPORT_FILE) if held is not None else ()), CAMPAIGN_FILE]
        if held is not None and held.kind == "sweep":
            names += [CELLS_FILE, EXPERIMENT_FILE, TABLES_FILE]
        for name in names:
            (each / name).unlink(missing_ok=True)
        shutil.rmtree(each / CELLS, ignore_errors=True)
        if each in variants:
            with contextlib.suppress(OSError):  # it holds a file that is not kemu's
                each.rmdir()


def verdict_of(folder: Path) -> dict[str, Any]:
    """What verdict.json holds. Raises KemuError where the run was interrupted before it was judged."""
    file = folder / VERDICT_FILE
    try:
        found = json.loads(file.read_text())
    except OSError:
        raise KemuError(f"{folder}: has no {VERDICT_FILE}: the run was interrupted") from None
    except ValueError:
        raise KemuError(f"{file}: is damaged") from None
    if not isinstance(found, dict):
        raise KemuError(f"{file}: is damaged")
    return found


def write_verdict(folder: Path, verdict: Mapping[str, Any]) -> None:
    """Leave verdict.json whole, or not at all. On a full disk OSError names the file."""
    file = folder / VERDICT_FILE
    written = folder / f".{VERDICT_FILE}.new"
    try:
        with written.open("w") as opened:
            opened.write(json.dumps(verdict, indent=2) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        written.replace(file)
    except OSError as error:
        written.unlink(missing_ok=True)
        error.filename = str(file)
        raise


def drop_segments(folder: Path) -> None:
    """Remove what cells have kept of their events. Only when the run has its log and its verdict: until then they are
    what ``kemu recover`` makes the log from."""
    shutil.rmtree(folder / CELLS / SEGMENTS, ignore_errors=True)


def _name(folder: Path) -> str:
    """Name of the scenario that was run there."""
    try:
        with Reader(runs_in(folder)[0] / FILE_NAME) as reader:
            return str(reader.header.get("scenario", ""))
    except RunLogError:
        return ""


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, or those of its variants where it is one of a matrix."""
    variants = variants_in(folder)
    return variants if variants and not (folder / FILE_NAME).exists() else [folder]


def variants_in(folder: Path) -> list[Path]:
    """Those of the variants of a matrix that was run in this folder, in their order."""
    numbered = [(_VARIANT.fullmatch(path.name), path) for path in folder.glob("variant-*")]
    found = sorted((int(match[1]), path) for match, path in numbered if match and (path / FILE_NAME).is_file())
    return [path for _, path in found]
