"""Which actor lives in which cell.

A plan is a list of :class:`CellPlan`; an actor goes to the first one with a pattern that its name matches. Names and
patterns, not objects, so that a plan can be made before the actors of the run are known. :func:`of` makes one from what
a scenario says under ``runtime: {ray: {cells: …}}``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

DRIVER_CELL = "driver"
"""The cell of this name is the driver's own process: no Ray actor, and no server, so its actors cannot be called."""


@dataclass(frozen=True)
class CellPlan:
    """A cell, or with ``size`` as many as are needed: ``name``, ``name-1``, ``name-2`` …"""

    name: str
    actors: tuple[str, ...]
    """Patterns as in a shell: ``scheduler/*``."""
    size: int = 0
    """Most actors in one process; 0: all of them."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """Ray resources that the cell takes, to place it on nodes that offer them: ``{"node-a": 1}``. Empty: a little of
    ``kemu-<name>``, if a node of the cluster offers that."""
    eager: bool = True
    """Start the process together with the first actors of the run, even if none of them lives in it."""


OWN = "own"
"""Each actor of the kind has a cell to itself."""

Share = str | int
"""Who shares a cell: ``own``, the most actors of the kind in one, or the name of a cell that takes all of them, as it
does those of other kinds that name it."""

PATTERNS: Mapping[str, tuple[str, ...]] = {
    "store": ("store",),
    "apiServers": ("apiserver/*",),
    "schedulers": ("scheduler/*",),
    "extenders": ("extender/*",),
    "controllers": ("controller/*", "cloud"),
    "kubelets": ("kubelet/*",),
}
"""The kinds of actors that can be placed, and their names."""

DEFAULT_CELLS: Mapping[str, Share] = {
    "store": OWN,
    "apiServers": OWN,
    "schedulers": OWN,
    "controllers": "controllers",
    "kubelets": 500,
}
"""The store, each API server and each scheduler have processes of their own: a crash is the end of one by SIGKILL, and
whatever goes from one to another goes over a socket. Extenders are placed as the controllers are."""

_ON_DEMAND = ("extenders", "controllers")
"""Kinds that many runs have none of: their cells start when the first of them does."""


def of(cells: Mapping[str, Share]) -> tuple[CellPlan, ...]:
    """The plan in which these kinds share cells as said, and the others as in :data:`DEFAULT_CELLS`.

    Raises ValueError where :func:`complaints` has something to say.
    """
    for kind, complaint in complaints(cells):
        raise ValueError(f"{kind}: {complaint}")
    actors: dict[str, tuple[str, ...]] = {}
    sizes: dict[str, int] = {}
    eager: dict[str, bool] = {}
    for kind, share in _shares(cells).items():
        name = kind.lower() if _is_alone(share) else str(share)
        actors[name] = (*actors.get(name, ()), *PATTERNS[kind])
        sizes[name] = 1 if share == OWN else share if isinstance(share, int) else 0
        eager[name] = eager.get(name, False) or kind not in _ON_DEMAND
    made = [CellPlan(name, actors[name], sizes[name], eager=eager[name]) for name in actors]
    return (*made, CellPlan(DRIVER_CELL, ("*",)))


def complaints(cells: Mapping[str, Share]) -> Iterator[tuple[str, str]]:
    """What is wrong with it: the kind, and a text."""
    for kind, share in cells.items():
        if kind not in PATTERNS:
            yield kind, f"is no kind of actors that can be placed; there are {', '.join(PATTERNS)}"
        elif isinstance(share, int) and share < 1:
            yield kind, f"a cell takes at least one of them, not {share}"
        elif isinstance(share, str) and re.fullmatch(NAME_PATTERN, share) is None:
            yield kind, f"{share!r} is neither own nor the name of a cell, of lower-case letters and -"
        elif share in RESERVED:
            yield kind, f"no actors can be placed in {share}: choose another name"
    shares = _shares(cells)
    for kind, share in shares.items():
        if not _is_alone(share):
            continue
        guests = [other for other in shares if shares[other] == kind.lower()]
        if guests:
            text = f"the cells of {kind} have the name {kind.lower()} and take nobody else"
            yield guests[0], f"{text}: choose another name, or write {kind}: {kind.lower()}"


def _shares(cells: Mapping[str, Share]) -> dict[str, Share]:
    """Shares of all kinds, in the order of :data:`PATTERNS`."""
    given = {**DEFAULT_CELLS, **cells}
    return {kind: given.get(kind, given["controllers"]) for kind in PATTERNS}


def _is_alone(share: Share) -> bool:
    """Whether the kind shares its cells with no other kind."""
    return isinstance(share, int) or share == OWN


NAME_PATTERN = r"[a-z]+(-[a-z]+)*"
"""Name pattern of a cell. A number at its end counts the cells of one plan."""

RESERVED = (DRIVER_CELL, "paused")

DEFAULT_PLAN = of({})

COMPACT_CELLS: Mapping[str, Share] = {
    "store": "control",
    "apiServers": "control",
    "schedulers": "schedulers",
    "controllers": "schedulers",
}
COMPACT_PLAN = of(COMPACT_CELLS)
"""Three processes and the driver: they start in less time, and compete less for the cores of a small machine."""


class Placement:
    """A plan, and the cells of the actors that were placed by it so far."""

    def __init__(self, plans: Sequence[CellPlan] = DEFAULT_PLAN) -> None:
        names = [plan.name for plan in plans]
        if len(set(names)) != len(names):
            raise ValueError(f"cells of the same name: {', '.join(names)}")
        self.plans = tuple(plans)
        self._cell_of: dict[str, str] = {}
        self._last: dict[str, int] = {}
        """For a plan, the number of the cell that takes the next actor."""
        self._sizes: dict[str, int] = {}

    def place(self, actor: str) -> tuple[str, CellPlan]:
        """The cell of an actor, and its plan; always the same one for the same name. Raises ValueError."""
        plan = next((plan for plan in self.plans if any(fnmatch.fnmatchcase(actor, p) for p in plan.actors)), None)
        if plan is None:
            raise ValueError(f"no cell of the plan takes {actor}")
        cell = self._cell_of.get(actor)
        if cell is None:
            number = self._last.get(plan.name, 0)
            cell = _numbered(plan.name, number)
            if plan.size and self._sizes.get(cell, 0) >= plan.size:
                number = self._last[plan.name] = number + 1
                cell = _numbered(plan.name, number)
            self._cell_of[actor] = cell
            self._sizes[cell] = self._sizes.get(cell, 0) + 1
        return cell, plan

    def cell_of(self, actor: str) -> str:
        """Raises KeyError for an actor that was never placed."""
        return self._cell_of[actor]

    def eager(self) -> list[CellPlan]:
        return [plan for plan in self.plans if plan.eager and plan.name != DRIVER_CELL]


def _numbered(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name
