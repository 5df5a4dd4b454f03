"""How many findings of hunts are false alarms: in real controllers by reading each (``hunts/real/readings.toml``), also
in operators with bugs that Sieve found; in the mended twins of planted bugs all. Where the first plan of a search shows
a bug of Sieve's (``hunts/sieve/results.toml``), the first finding is that bug, read by its maintainers.

python -m tests.hunt.readings
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.lab.sweep.statistics import intervals
from tests.hunt import planted

REAL = planted.ROOT / "hunts/real"
SIEVE = planted.ROOT / "hunts/sieve"
_RESULTS = REAL / "results", SIEVE / "results"
"""Files by hunts; those of Sieve have the operator and the hunt in their names."""
VERDICTS = ("bug", "design", "false", "open")


@dataclass(frozen=True)
class Row:
    """Of one hunt, of the first plans of Sieve's searches, or of all mended twins."""

    name: str
    trials: int
    verdicts: Counter[str]

    @property
    def findings(self) -> int:
        return self.verdicts.total()


def rows() -> list[Row]:
    read = readings()
    found = [
        Row(_hunt(file), results["done"], Counter(read[file.stem, one["id"]]["verdict"] for one in results["findings"]))
        for file, results in _results()
    ]
    twins = [one for (_, careful), one in planted.last_results().items() if careful]
    told = sum(len(one.found) for one in twins)
    first = len(_first_plans())
    return [
        *found,
        Row("Sieve's operators, first plans", first, Counter(bug=first)),
        Row("mended twins", sum(one.done for one in twins), Counter(false=told)),
    ]


def _first_plans() -> list[str]:
    """Sieve's bugs that the first plan of a search shows, except in hunts whose findings are read one by one."""
    read = {file.stem.replace("-", "/", 1) for file, _ in _results() if file.parent == _RESULTS[1]}
    bugs = tomllib.loads((SIEVE / "results.toml").read_text())["bug"]
    return [one["report"] for one in bugs if one.get("search", {}).get("plan") == 1 and one["hunt"] not in read]


def readings() -> dict[tuple[str, str], dict[str, str]]:
    """By hunt and finding."""
    stated: dict[str, dict[str, dict[str, str]]] = tomllib.loads((REAL / "readings.toml").read_text())
    return {(hunt, name): one for hunt, own in stated.items() for name, one in own.items()}


def findings() -> set[tuple[str, str]]:
    """Those that are to be read."""
    return {(file.stem, one["id"]) for file, results in _results() for one in results["findings"]}


def _results() -> list[tuple[Path, Any]]:
    return [(file, json.loads(file.read_text())) for folder in _RESULTS for file in sorted(folder.glob("*.json"))]


def _hunt(file: Path) -> str:
    name = file.stem if file.parent == _RESULTS[0] else file.stem.replace("-", "/", 1)
    return f"`{(file.parent.parent / name).relative_to(planted.ROOT)}.yaml`"


def table() -> str:
    """In Markdown, with the figure below."""
    found = rows()
    lines = [
        "| hunt | trials | findings | bugs | design | false alarms | open |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        counts = [one.verdicts[verdict] for verdict in VERDICTS]
        lines.append(f"| {' | '.join(map(str, (one.name, one.trials, one.findings, *counts)))} |")
    return "\n".join([*lines, "", figure(found)])


def figure(found: list[Row]) -> str:
    verdicts = sum((one.verdicts for one in found), Counter[str]())
    trials, read = sum(one.trials for one in found), verdicts.total() - verdicts["open"]
    false = verdicts["false"]
    share = intervals.of_share(false, read)
    alarms = intervals.of_share(false, trials)
    return (
        f"False alarms: {false} of the {read} findings that were read (95 %: at most {share.high:.0%}), in {trials}"
        f" trials (at most one in {1 / alarms.high:.0f}); {verdicts['open']} are open."
    )


if __name__ == "__main__":
    print(table())
