"""From folded runs to the HTML file: one run, or the variants of a matrix as far as there is room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.lab.tell.page import folds, shells, summaries, troubles
from kemu.runtime.runlog.frames import Entry

MOST_BYTES = 3_000_000
"""Most bytes of a page: of a matrix, variants that do not fit are only summarised."""


@dataclass(frozen=True)
class Part:
    """A run that the page tells of: the only one, or a variant."""

    folder: Path
    verdict: Mapping[str, Any]
    explanation: Mapping[str, Any] | None = None
    """As in explanation.json."""
    name: str = ""
    """Name of the variant."""
    commands: Sequence[tuple[str, str]] = ()
    """With what they do."""
    made: tuple[Mapping[str, Any], Sequence[Entry]] | None = None
    """The header and the events of a run that was made in memory; None: its log is in the folder."""
    causes: Mapping[str, Any] | None = None
    """Why it went wrong, as :meth:`kemu.lab.tell.causes.roots.Causes.to_json` has it; None: not known."""
    observed: Sequence[Mapping[str, Any]] = ()
    """What a real cluster said at these times: ``observed`` of the scenario."""


def write(file: Path, parts: Sequence[Part], verdict: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> int:
    """As :func:`make`. Returns the size in bytes. Raises RunLogError."""
    html = make(parts, verdict, more or {}).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(html)
    return len(html)


def make(parts: Sequence[Part], verdict: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    """The page. ``verdict``: that of the whole. ``more``: what further views show of it, such as ``search``."""
    runs: list[dict[str, Any]] = []
    room = MOST_BYTES
    for part in parts:
        fold = folds.of_events(*part.made) if part.made is not None else folds.of_folder(part.folder)
        data = fold.data(part.verdict, summaries.events_of(part.explanation))
        data["name"] = part.name
        data["summary"] = summaries.of(fold, part.verdict, part.explanation, part.commands, data["classes"])
        data["summary"] |= troubles.of(fold, data, part.verdict, part.causes, part.observed)
        size = len(shells.packed(data))
        if runs and size > room:
            short = {"short": data["story"]["short"]}
            data = {"name": part.name, "summary": data["summary"], "story": short, "strings": [], "left_out": True}
        else:
            room -= size
        runs.append(data)
    title = str(verdict.get("scenario", "")) or parts[0].folder.name
    page = {"title": title, "headline": verdict.get("headline", ""), "runs": runs, "matrix": matrix(verdict), **more}
    return shells.render(page)


def matrix(verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """The comparison of the variants; None: there is only one run."""
    if "variants" not in verdict:
        return None
    return {
        "verdict": verdict["verdict"],
        "headline": verdict["headline"],
        "comparisons": [
            {name: one.get(name) for name in ("id", "says", "holds", "detail")}
            for one in verdict.get("comparisons", ())
        ],
    }
