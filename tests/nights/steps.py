"""The steps of a night, as ``steps.yaml`` states them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

import yaml

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("steps.yaml")
GRACE_S = 10
"""For a step to end by itself when its night is ended."""
KEYS = {"name", "title", "needs", "parts", "figure", "run"}


@dataclass(frozen=True)
class Step:
    name: str
    """With parts, that of the step and the number of the part: ``soak-3``."""

    title: str
    run: str
    """A bash script; it knows ``$seed`` and ``$part``."""

    part: int = 1
    needs: str | None = None
    figure: str | None = None

    def told(self, seed: int) -> str:
        return Template(self.title).safe_substitute(seed=seed)

    def lacks(self) -> str | None:
        """What it needs and is not here, or None."""
        if self.needs is None:
            return None
        if self.needs == "go":
            return None if shutil.which("go") or Path("/usr/local/go/bin/go").exists() else "go"
        if self.needs.startswith("."):
            return None if (ROOT / self.needs).exists() else self.needs
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kemu-tools"
        there = (cache / self.needs).exists() or any(cache.glob(f"{self.needs}-v*"))
        return None if there else self.needs

    def figure_in(self, output: str) -> str:
        """The line that says how it went."""
        lines = [line.strip(" =") for line in output.splitlines() if line.strip(" =")]
        if self.figure is not None:
            lines = [found.group() for line in lines if (found := re.search(self.figure, line))]
        return lines[-1][:200] if lines else ""


def read(text: str) -> tuple[Step, ...]:
    """All steps, parts apart. Raises ValueError that names the step with a mistake."""
    found = tuple(_parts(yaml.safe_load(text)))
    names = [step.name for step in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"steps.yaml: {', '.join(sorted(twice))} is there twice")
    return found


def _parts(listed: list[dict[str, object]]) -> Iterator[Step]:
    for entry in listed:
        name = str(entry.get("name"))
        if wrong := entry.keys() - KEYS or {"name", "title", "run"} - entry.keys():
            raise ValueError(f"steps.yaml: {name}: {', '.join(sorted(wrong))} is unknown or missing")
        parts = int(str(entry.get("parts", 1)))
        for part in range(1, parts + 1):
            yield Step(
                f"{name}-{part}" if parts > 1 else name,
                str(entry["title"]),
                str(entry["run"]),
                part,
                needs=_text(entry, "needs"),
                figure=_text(entry, "figure"),
            )


def _text(entry: dict[str, object], key: str) -> str | None:
    return str(entry[key]) if key in entry else None
