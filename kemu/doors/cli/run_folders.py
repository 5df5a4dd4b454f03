"""Run folders as arguments of commands: the selected variant, and the files of the run."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.doors.cli import programs
from kemu.errors import KemuError


@dataclass(frozen=True)
class Chosen:
    """The folder of a run; of a matrix, that of one variant."""

    folder: Path
    heading: str
    """Which variant it is, for who did not choose one; empty where there is only one run."""


def add_variant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--variant",
        metavar="N|TEXT",
        help="of a matrix: its number, or words such as nomination=off; the first one by default",
    )


def choose(run: Path, variant: str | None) -> Chosen:
    """Raises KemuError for a folder without a run, and for a variant that does not exist."""
    found = all_of(run)
    folder = found[0] if variant is None else _variant(found, variant)
    if folder == run:
        return Chosen(folder, "")
    heading = f"variant {_number(folder)}: {name(folder)}"
    others = len(found) - 1
    if variant is None and others:
        heading += f"  [dim](--variant chooses another of {others + 1})[/]"
    return Chosen(folder, heading)


def all_of(run: Path) -> list[Path]:
    """The folder, or those of all variants. Raises KemuError where there is no run."""
    from kemu.runtime.runlog import folders
    from kemu.runtime.runlog.frames import FILE_NAME

    found = folders.runs_in(run)
    if not (found[0] / FILE_NAME).is_file():
        raise KemuError(folders.not_a_run(run, FILE_NAME))
    return found


def verdict(folder: Path) -> dict[str, Any]:
    """The contents of verdict.json; empty if it is missing or damaged."""
    from kemu.runtime.runlog import folders

    try:
        return folders.verdict_of(folder)
    except KemuError:
        return {}


def observed(folder: Path) -> list[dict[str, Any]]:
    """The events of a real cluster, as the scenario of the run has them."""
    import yaml

    from kemu.runtime.runlog import folders as run_files

    for place in (folder, folder.parent):  # a variant stands in the folder of its matrix
        file = place / run_files.SCENARIO_FILE
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            if "\n  observed:" not in text:
                return []
            spec = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)).get("spec") or {}
            return list(spec.get("observed") or ())
    return []


def tell_unfinished(folder: Path) -> None:
    """For a run without a verdict, print on standard error what exists of it, and the possible next steps."""
    from kemu.lab.scenario.playing.checkpoints import waking
    from kemu.runtime import runtimes
    from kemu.runtime.runlog import folders
    from kemu.runtime.runlog.frames import FILE_NAME, Reader

    if any((folder / name).exists() for name in (folders.VERDICT_FILE, folders.CRASH_FILE)):
        return
    whole = folder if (folder / folders.CHECKPOINT_FILE).exists() else folder.parent
    top = whole if (whole / folders.CHECKPOINT_FILE).exists() else folder  # a matrix has one for all of its variants
    found = waking.ask(top)
    with Reader(folder / FILE_NAME) as reader:
        is_real = reader.header.get("runtime") in runtimes.REAL
    resume = f"{programs.name()} run --resume {shlex.quote(str(top))}"
    if found is not None and found.is_running:
        text = f"the run goes on, in process {found.run_pid}"
    elif found is not None:
        text = f"its process was killed, or interrupted; {resume} goes on at {found}, from a checkpoint"
    elif is_real or (folder / folders.INPUTS_FILE).exists():
        text = (
            f"its process was killed, interrupted, or works still; {programs.name()} recover {folder} judges it so far"
        )
    else:
        text = f"its process was killed, interrupted, or works still; {resume} makes it again"
    print(f"kemu: {folder}: unfinished, the log goes as far as the run had come: {text}", file=sys.stderr)


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix("variant-"))


def name(folder: Path) -> str:
    """``queue=fifo nomination=off``, from the verdict that the run left."""
    from kemu.lab.scenario.playing import runner

    return runner.variant_name(verdict(folder).get("variant", {}))


def _variant(found: list[Path], wanted: str) -> Path:
    """The folder of a variant, by its number or by words of its name. Raises KemuError."""
    variants = {folder: name(folder) for folder in found if folder.name.startswith("variant-")}
    if not variants:
        raise KemuError(f"--variant {wanted}: this is no run of a matrix")
    chosen = [folder for folder in variants if str(_number(folder)) == wanted]
    words = wanted.split()
    chosen = chosen or [folder for folder, name in variants.items() if words and set(words) <= set(name.split())]
    if len(chosen) == 1:
        return chosen[0]
    listed = "".join(f"\n  {_number(folder)}  {name}" for folder, name in variants.items())
    raise KemuError(f"--variant {wanted}: {'no' if not chosen else 'more than one'} variant is so; there are{listed}")
