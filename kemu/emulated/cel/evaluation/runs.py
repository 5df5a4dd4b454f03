"""One evaluation: its limit, its cost so far, the values of names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kemu.emulated.cel.bounds import Exceeded
from kemu.emulated.cel.values import Value

#: The value of a slot that was not computed yet.
UNSET: Final = object()


class Run:
    """One evaluation: what it cost so far, at most may cost, and the values of names."""

    __slots__ = ("cost", "limit", "slots", "variables")

    def __init__(self, variables: dict[str, Value], limit: int, slots: int) -> None:
        self.cost = 0
        self.limit = limit
        self.variables = variables
        self.slots: list[Value] = [UNSET] * slots

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise Exceeded


#: Evaluates one node: a value, or an `Error`.
Step: TypeAlias = Callable[[Run], Value]
