"""How many findings of hunts in controllers that are meant to be right are false alarms: of real ones by reading each
(``hunts/real/readings.toml``), of the mended twins of planted bugs all.

python -m tests.hunt.readings
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from kemu.lab.sweep.statistics import intervals
from tests.hunt import planted

REAL = planted.ROOT / "hunts/real"
VERDICTS = ("bug", "design", "false", "open")


@dataclass(frozen=True)
class Row:
    """Of one hunt, or of all mended twins."""

    name: str
    trials: int
    verdicts: Counter[str]

    @property
    def findings(self) -> int:
        return self.verdicts.total()


def rows() -> list[Row]:
    read = readings()
    found = [
        Row(file.stem, results["done"], Counter(read[file.stem, one["id"]]["verdict"] for one in results["findings"]))
        for file in sorted((REAL / "results").glob("*.json"))
        for results in (json.loads(file.read_text()),)
    ]
    twins = [one for (_, careful), one in planted.last_results().items() if careful]
    told = sum(len(one.found) for one in twins)
    return [*found, Row("mended twins", sum(one.done for one in twins), Counter(false=told))]


def readings() -> dict[tuple[str, str], dict[str, str]]:
    """By hunt and finding."""
    stated: dict[str, dict[str, dict[str, str]]] = tomllib.loads((REAL / "readings.toml").read_text())
    return {(hunt, name): one for hunt, own in stated.items() for name, one in own.items()}


def findings() -> set[tuple[str, str]]:
    """Those that are to be read."""
    files: list[tuple[str, Any]] = [
        (file.stem, json.loads(file.read_text())) for file in (REAL / "results").glob("*.json")
    ]
    return {(hunt, one["id"]) for hunt, results in files for one in results["findings"]}


def table() -> str:
    """In Markdown, with the figure below."""
    found = rows()
    lines = [
        "| hunt | trials | findings | bugs | design | false alarms | open |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        counts = [one.verdicts[verdict] for verdict in VERDICTS]
        name = one.name if " " in one.name else f"`hunts/real/{one.name}.yaml`"
        lines.append(f"| {' | '.join(map(str, (name, one.trials, one.findings, *counts)))} |")
    return "\n".join([*lines, "", figure(found)])


def figure(found: list[Row]) -> str:
    verdicts = sum((one.verdicts for one in found), Counter[str]())
    trials, read = sum(one.trials for one in found), verdicts.total() - verdicts["open"]
    false = verdicts["false"]
    share = intervals.of_share(false, read)
    alarms = intervals.of_share(false, trials)
    return (
        f"{false} of the {read} findings that were read are false alarms (95 %: at most {share.high:.0%}), in {trials}"
        f" trials (at most one in {1 / alarms.high:.0f}); {verdicts['open']} are open."
    )


if __name__ == "__main__":
    print(table())
