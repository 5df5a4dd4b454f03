"""The scenario that a command is given: a file, the name of a shipped one, or ``-`` for standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from kemu.emulated.objects.conversion import user_files
from kemu.errors import Problem, ScenarioError
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario

STANDARD_INPUT = "-"
STDIN = "stdin"
"""What places in standard input are called."""


def load(
    name: str,
    data: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    more_manifests: Sequence[str | Path] = (),
    quiet: bool = False,
) -> Scenario:
    """Warnings go to standard error, unless ``quiet``. Raises ScenarioError with every mistake."""
    if name == STANDARD_INPUT:
        if sys.stdin.isatty():
            print("kemu: reads a scenario from standard input; Ctrl-D ends it", file=sys.stderr)
        scenario = loader.loads(_standard_input(), STDIN, data, overrides)
    else:
        scenario = loader.load(catalog.find(name), data, overrides, more_manifests)
    if not quiet:
        warn(scenario.warnings)
    return scenario


def _standard_input() -> str:
    try:
        return user_files.text(user_files.bounded(_bytes_of_stdin()))
    except user_files.FileProblem as error:
        raise ScenarioError([Problem(STDIN, 1, 1, "", str(error))]) from None


def warn(warnings: Iterable[Problem]) -> None:
    for warning in warnings:
        print(warning.as_warning(), file=sys.stderr)


def _bytes_of_stdin() -> BinaryIO:
    """Its bytes. Who calls :func:`kemu.doors.cli.main.main` may have put a text in its place."""
    found: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    return io.BytesIO(sys.stdin.read().encode()) if found is None else found
