"""Makes the HTML report of a run folder, and gathers what explains each run: only layers above ``report`` know that."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.doors.cli import finds, run_folders
from kemu.errors import KemuError
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.page import pages, remedies
from kemu.runtime import runtimes
from kemu.runtime.runlog.frames import Entry

MOST_EXPLAINED_BYTES = 12_000_000
"""Most explained bytes of the run log: a longer run is not made again to explain it, unless ``kemu explain`` has done
so."""
MOST_EXPLAINED = 6
"""Variants of a matrix."""


def write(run: Path, out: Path | None, data: Path | None, comparison: Path | None = None) -> tuple[Path, int]:
    """The file, and its size in bytes. ``comparison``: what ``kemu compare --json`` printed, or the folder that it left
    (``--out``). Raises KemuError where there is no run."""
    from kemu.runtime.runlog import folders as run_files

    file = out or run / run_files.REPORT_FILE
    held = run_files.held_in(run)
    if held is not None and held.kind == "search":
        found, verdict, search = finds.of(run, data)
        return file, pages.write(file, found, verdict, {"search": search})
    more = {} if comparison is None else {"remedies": remedies.of(_comparison(comparison))}
    return file, pages.write(file, parts(run, data), run_folders.verdict(run), more)


def _comparison(given: Path) -> dict[str, Any]:
    from kemu.lab.sweep.remedies import comparing

    file = given / comparing.FILE if given.is_dir() else given
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict) and {"variants", "seeds", "goal"} <= set(found):
            return found
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is not JSON"
        raise KemuError(
            f"{file}: {why}; --compare takes what kemu compare --json prints, or its --out folder"
        ) from None
    raise KemuError(f"{file}: is no comparison; --compare takes what kemu compare --json prints, or its --out folder")


def made(scenario: Scenario, name: str, commands: list[tuple[str, str]], folder: Path) -> pages.Part:
    """A run that is made in memory, with what explains it and why it went wrong."""
    part = finds.made(scenario, name, commands, folder)
    observed = (scenario.resolved.get("spec") or {}).get("observed") or ()
    assert part.made is not None
    return dataclasses.replace(part, causes=_causes_of(scenario, part.made[1]), observed=list(observed))


def write_comparison(file: Path, found: list[pages.Part], comparison: Mapping[str, Any]) -> int:
    """Write the page of remedies side by side, after the unchanged run. Returns its size in bytes."""
    best, reached = comparison["best"], comparison["reached"]
    goal = comparison["goal"]
    called = remedies.names(comparison)
    found = [dataclasses.replace(part, name=called.get(part.name, part.name)) for part in found]
    headline = f"best remedy: {called[best]}, {comparison['why']}" if best else "no remedy helps"
    verdict = {
        "scenario": comparison["scenario"],
        "verdict": "holds" if reached or (goal is None and best) else "fails",
        "headline": headline,
    }
    return pages.write(file, found, verdict, {"remedies": remedies.of(comparison)})


def parts(run: Path, data: Path | None) -> list[pages.Part]:
    """The run, or each variant of a matrix, with its explanation."""

    folders = run_folders.all_of(run)
    explained = _explanations(run, folders, data)
    found = []
    for folder in folders:
        run_folders.tell_unfinished(folder)
        verdict = run_folders.verdict(folder)
        name = run_folders.name(folder) if folder != run else ""
        commands = _commands(run, folder, verdict)
        part = pages.Part(folder, verdict, explained.get(folder), name, commands)
        found.append(
            dataclasses.replace(part, causes=_causes(run, folder, data), observed=run_folders.observed(folder))
        )
    return found


MOST_CHECKED_BYTES = 4_000_000
"""Of the run log: a longer run is not made again without its first root."""
_CHECK_S = 600.0


def _causes(run: Path, folder: Path, data: Path | None) -> dict[str, Any] | None:
    """Why the run went wrong, and what a run without the first root says where that is soon made; None where its log
    is too long to look for that."""
    from kemu.lab.tell.causes import checking, finding

    size = _events_bytes(folder)
    if size > MOST_EXPLAINED_BYTES or not _runtime(folder):  # an unfinished run has no end to explain
        return None
    causes = finding.causes_of(folder)
    if causes.roots and size <= MOST_CHECKED_BYTES and folder == run and _runtime(run) == "sim":
        scenario = _scenario(run, data)
        if scenario is not None:
            causes = checking.check(scenario, causes, _CHECK_S, 1)
    return causes.to_json()


def _runtime(folder: Path) -> str:
    return str(run_folders.verdict(folder).get("runtime", ""))


def _scenario(run: Path, data: Path | None) -> Scenario | None:
    """The scenario as it was run; None if it cannot be loaded, for example because a trace's files are elsewhere."""
    from kemu.doors.cli import inputs
    from kemu.runtime.runlog import folders as run_files

    try:
        return inputs.load(str(run / run_files.SCENARIO_FILE), data, {}, quiet=True)
    except KemuError:
        return None


def _causes_of(scenario: Scenario, events: Sequence[Entry]) -> dict[str, Any]:
    from kemu.lab.tell.causes import finding
    from kemu.lab.tell.causes.evidence import Evidence

    evidence = Evidence()
    for event in events:
        evidence.feed(*event)
    evidence.over()
    evidence.document = scenario.resolved.get("spec") or {}
    return finding.causes(evidence).to_json()


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
    """Explanations of runs in virtual time that can be repeated."""
    from kemu.lab.scenario.loading import loader
    from kemu.lab.tell.explaining import losses, reports

    scenario = _scenario(run, data) if _runtime(run) == "sim" else None
    if scenario is None:
        return {}
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
