"""One cell of a sweep, a variant with a seed, and what is kept of its run: plain data that crosses processes.

Neighbours: :mod:`kemu.lab.sweep.engine` runs cells and journals their rows; the rows of all cells make the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any
"""``None``, a bool, a number, a text, or lists and mappings of these."""
Row = Mapping[str, Json]

DONE, SATURATED, FAILED = "done", "saturated", "failed"
"""How a cell ended: with its figures; at a limit, as its cluster cannot keep up with its load; without figures."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run, by the name that ``metric`` and ``compare`` of expectations have."""

    name: str
    priority: int | None = None
    """Only pods of this priority count; None: all."""

    @property
    def text(self) -> str:
        """``waiting.p99_s``, ``waiting.p99_s(priority=1000)``: also the name of its column."""
        return self.name if self.priority is None else f"{self.name}(priority={self.priority})"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a sweep: what is to be done."""

    variant: Mapping[str, Json]
    """Its values, by path below ``spec`` as the experiment has it in ``vary``."""
    index: int
    """Index of the variant, from 0, in the order of the experiment."""
    seed: int


@dataclass(frozen=True, slots=True)
class CellRows:
    """What is kept of a run; made by :mod:`kemu.lab.sweep.results.rows`. Equal runs have equal rows."""

    run: Row
    """Its row of the table ``runs``, with the figures of each priority."""
    tables: bytes = b""
    """The rows of the other tables, packed: a run may have thousands of attempts."""


@dataclass(frozen=True, slots=True)
class CellRecord:
    """A cell that is over."""

    cell: Cell
    status: str
    """:data:`DONE`, :data:`SATURATED` or :data:`FAILED`."""
    detail: str = ""
    """Why it is not done; which limit was reached."""
    rows: CellRows | None = None
    """None where there are no figures."""
    seconds: float = field(default=0.0, compare=False)
    """Real time; equal sweeps differ in it, and in what follows."""
    cpu_s: float = field(default=0.0, compare=False)
    peak_bytes: int = field(default=0, compare=False)
    """The most memory that its process had meanwhile; 0: not known."""
