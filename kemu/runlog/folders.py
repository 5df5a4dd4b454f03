"""Run folders: what stands in them, and which are of one matrix. docs/runs.md describes them."""

from __future__ import annotations

import re
from pathlib import Path

from kemu.runlog.frames import FILE_NAME

SCENARIO_FILE = "scenario.yaml"
INDEX_FILE = f"{FILE_NAME}.index"
VERDICT_FILE = "verdict.json"
CELLS = "cells"
EXPLANATIONS = ("explanation.txt", "explanation.svg", "explanation.json")
"""What ``kemu explain`` leaves beside them; it is about the run that is replaced."""
_VARIANT = re.compile(r"variant-([0-9]+)", re.ASCII)


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, or those of its variants where it is one of a matrix."""
    variants = variants_in(folder)
    return variants if variants and not (folder / FILE_NAME).exists() else [folder]


def variants_in(folder: Path) -> list[Path]:
    """Those of the variants of a matrix that was run in this folder, in their order."""
    numbered = [(_VARIANT.fullmatch(path.name), path) for path in folder.glob("variant-*")]
    found = sorted((int(match[1]), path) for match, path in numbered if match and (path / FILE_NAME).is_file())
    return [path for _, path in found]
