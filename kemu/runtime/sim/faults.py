"""The faults that are in force in the simulation, and what begins each kind of them.

A new kind takes a method here that begins it and returns what ends it, and a line in ``Faults.__init__``. Crashes are
not among them: ``simulation`` carries them out at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.runtime.rpc.networks import Network

End = Callable[[], object]
"""Ends a fault."""
Begin = Callable[[str, Mapping[str, Any]], End | None]
"""Begins the fault of that id, with its parameters; None: it is over in an instant."""


class Faults:
    """Those in force, by their ids."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._ends: dict[str, End] = {}
        self._begin: dict[str, Begin] = {
            "partition": self._partition,
        }
        """By the name of the kind."""

    def begin(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """Raises ValueError for an id that is in force, and for a kind that nobody carries out."""
        if fault in self._ends:
            raise ValueError(f"a fault {fault!r} is in force already")
        if what not in self._begin:
            raise ValueError(f"the simulation cannot do {what}")
        end = self._begin[what](fault, parameters)
        if end is not None:
            self._ends[fault] = end

    def end(self, fault: str) -> None:
        """Raises ValueError for one that is not in force."""
        if fault not in self._ends:
            raise ValueError(f"no fault {fault!r} is in force")
        self._ends.pop(fault)()

    def _partition(self, fault: str, parameters: Mapping[str, Any]) -> End:
        a, b = parameters["between"]
        self._network.partition(fault, a, b, parameters["oneWay"])
        return lambda: self._network.heal(fault)
