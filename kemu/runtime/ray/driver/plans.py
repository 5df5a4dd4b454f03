"""Which actor lives in which cell.

A plan is a list of :class:`CellPlan`; an actor goes to the first one with a pattern that its name matches. Names and
patterns, not objects, so that a plan can be made before the actors of the run are known.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DRIVER_CELL = "driver"
"""The cell of this name is the driver's own process: no Ray actor, and no server, so nobody can call its actors."""


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


DEFAULT_PLAN: tuple[CellPlan, ...] = (
    CellPlan("store", ("store",)),
    CellPlan("apiservers", ("apiserver/*",), size=1),
    CellPlan("schedulers", ("scheduler/*",), size=1),
    CellPlan("controllers", ("extender/*", "controller/*"), eager=False),
    CellPlan("kubelets", ("kubelet/*",), size=500),
    CellPlan(DRIVER_CELL, ("*",)),
)
"""The store, each API server and each scheduler have processes of their own: a crash is the end of one by SIGKILL, and
whatever goes from one to another goes over a socket."""

COMPACT_PLAN: tuple[CellPlan, ...] = (
    CellPlan("control", ("store", "apiserver/*")),
    CellPlan("schedulers", ("scheduler/*", "extender/*", "controller/*")),
    CellPlan("kubelets", ("kubelet/*",), size=500),
    CellPlan(DRIVER_CELL, ("*",)),
)
"""Three processes and the driver: they start in less time, and compete less for the cores of a small machine."""


class Placement:
    """A plan, and the cells of the actors that were placed by it so far."""

    def __init__(self, plans: Sequence[CellPlan] = DEFAULT_PLAN) -> None:
        names = [plan.name for plan in plans]
        if len(set(names)) != len(names):
            raise ValueError(f"cells of the same name: {', '.join(names)}")
        self.plans = tuple(plans)
        self._cell_of: dict[str, str] = {}
        self._sizes: dict[str, int] = {}

    def place(self, actor: str) -> tuple[str, CellPlan]:
        """The cell of an actor, and its plan; always the same one for the same name. Raises ValueError."""
        plan = next((plan for plan in self.plans if any(fnmatch.fnmatchcase(actor, p) for p in plan.actors)), None)
        if plan is None:
            raise ValueError(f"no cell of the plan takes {actor}")
        cell = self._cell_of.get(actor)
        if cell is None:
            number = 0
            cell = plan.name
            while plan.size and self._sizes.get(cell, 0) >= plan.size:
                number += 1
                cell = f"{plan.name}-{number}"
            self._cell_of[actor] = cell
            self._sizes[cell] = self._sizes.get(cell, 0) + 1
        return cell, plan

    def cell_of(self, actor: str) -> str:
        """Raises KeyError for an actor that was never placed."""
        return self._cell_of[actor]

    def eager(self) -> list[CellPlan]:
        return [plan for plan in self.plans if plan.eager and plan.name != DRIVER_CELL]
