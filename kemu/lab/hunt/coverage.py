"""What a hunt has covered: kinds of objects, kinds of perturbations, points; and what never came about, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.lab.hunt import planning
from kemu.lab.hunt.courses import Course
from kemu.lab.hunt.perturbations import KINDS, Perturbation, Plan, Point, shown
from kemu.lab.hunt.running.trials import Outcome


@dataclass
class Cell:
    """One kind of perturbation at the objects of one kind."""

    perturbation: str
    kind: str
    """Of objects."""
    all: int = 0
    """Points at which it could strike, without a thought."""
    worth: int = 0
    """Of those, the ones that are worth a trial."""
    tried: int = 0
    missed: int = 0
    """Trials in which the point never came."""
    found: int = 0
    """Trials in which something went wrong."""

    def data(self) -> dict[str, Any]:
        return {
            "perturbation": self.perturbation,
            "kind": self.kind,
            "tried": self.tried,
            "worth": self.worth,
            "all": self.all,
            "missed": self.missed,
            "found": self.found,
        }


@dataclass
class Coverage:
    """Filled as trials come to their end. A plan of several perturbations counts in the cell of each."""

    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    missed: list[tuple[Plan, str]] = field(default_factory=list)
    """Plans that never came about, and why, in the order of the plans."""
    lost: list[tuple[Plan, str]] = field(default_factory=list)
    """Plans that no process has come to the end of, and why."""

    def begin(self, reference: Outcome, plans: Iterable[Plan]) -> None:
        for plan in planning.every(reference):
            for one in plan:
                self._cell(one.what, one.at.kind).all += 1
        for plan in plans:
            for one in plan:
                self._cell(one.what, one.at.kind).worth += 1

    def take(self, plan: Plan, struck: bool, has_failed: bool) -> None:
        for one in plan:
            cell = self._cell(one.what, one.at.kind)
            cell.tried += 1
            cell.missed += not struck
            cell.found += has_failed

    def _cell(self, what: str, kind: str) -> Cell:
        return self.cells.setdefault((what, kind), Cell(what, kind))

    @property
    def kinds(self) -> list[str]:
        """Of objects, those with the most plans first."""
        worth: Counter[str] = Counter()
        for cell in self.cells.values():
            worth[cell.kind] += cell.worth
        return [kind for kind in sorted(worth, key=lambda kind: (-worth[kind], kind)) if worth[kind]]

    @property
    def perturbations(self) -> list[str]:
        """Kinds of them that have plans, in the usual order."""
        found = {cell.perturbation for cell in self.cells.values() if cell.worth}
        return [what for what in KINDS if what in found]

    def data(self) -> dict[str, Any]:
        """For JSON."""
        order: dict[str, int] = {what: place for place, what in enumerate(KINDS)}
        cells = sorted(self.cells.values(), key=lambda cell: (cell.kind, order.get(cell.perturbation, 99)))
        return {
            "cells": [cell.data() for cell in cells],
            "missed": [{"plan": shown(plan), "why": why} for plan, why in self.missed],
            "lost": [{"plan": shown(plan), "why": why} for plan, why in self.lost],
        }


def table(coverage: Coverage, width: int = 79) -> list[str]:
    """Lines: a row for each kind of perturbation, a column for each kind of object, ``tried/worth/all`` in each cell.
    Columns that do not fit into the width follow in a further table."""
    rows, kinds = coverage.perturbations, coverage.kinds
    heads = _heads(kinds)
    texts = {kind: [_cell(coverage.cells.get((what, kind))) for what in rows] for kind in kinds}
    first = max((len(what) for what in rows), default=0)
    sizes = {kind: max(len(heads[kind]), *map(len, texts[kind])) + 2 for kind in kinds}
    lines: list[str] = []
    while kinds:
        chosen = [kinds.pop(0)]
        while kinds and first + sum(sizes[kind] for kind in [*chosen, kinds[0]]) <= width:
            chosen.append(kinds.pop(0))
        lines += [""] * bool(lines)
        lines.append(" " * first + "".join(f"{heads[kind]:>{sizes[kind]}}" for kind in chosen))
        for place, what in enumerate(rows):
            lines.append(f"{what:<{first}}" + "".join(f"{texts[kind][place]:>{sizes[kind]}}" for kind in chosen))
    return lines


def _heads(kinds: Sequence[str]) -> dict[str, str]:
    """Kinds without their groups, where they can be told apart so."""
    plain = Counter(kind.partition(".")[0] for kind in kinds)
    return {kind: kind if plain[kind.partition(".")[0]] > 1 else kind.partition(".")[0] for kind in kinds}


def _cell(cell: Cell | None) -> str:
    if cell is None or not (cell.worth or cell.all):
        return "-"
    return f"{cell.tried}/{cell.worth}/{cell.all}"


def why_not(plan: Plan, outcome: Outcome) -> str:
    """Why a plan has not come about, as far as the course tells."""
    reasons = [f"{name} did not stand by: {why}" for name, why in outcome.absent.items()]
    reasons += [_why_not(one, outcome.course) for one in plan]
    return "; ".join(dict.fromkeys(filter(None, reasons))) or "its points came in another order"


def _why_not(one: Perturbation, course: Course) -> str:
    if one.is_about_writes:
        key = course.key(one.at.subject)
        count = sum(
            write.controller == one.controller
            and (write.key == key if one.at.name else course.named(write.key).kind == one.at.kind)
            for write in course.writes
        )
        return f"{one.controller} has made {_times(count)} to {one.at.subject}" if count < one.at.nth else ""
    points: Sequence[Point] = [one.at] if one.restart_at is None else [one.at, one.restart_at]
    for point in points:
        count = sum(course.fits(point.subject, change.key) for change in course.changes)
        if count < point.nth:
            return f"{point.subject} has changed {count} time{'s' * (count != 1)}"
    return next((f"there was no {point}" for point in points if point.when), "")


def _times(count: int) -> str:
    return f"{count} write{'s' * (count != 1)}" if count else "no write"
