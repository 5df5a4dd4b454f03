"""Run folders as commands are given them: which variant is meant, and what the run has left there."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """Raises KemuError for a folder without a run, and for a variant that is not there."""
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
    """What verdict.json holds; nothing where there is none, or where it is damaged."""
    from kemu.runtime.runlog import folders

    try:
        return folders.verdict_of(folder)
    except KemuError:
        return {}


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
