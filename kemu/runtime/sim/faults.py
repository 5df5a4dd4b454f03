"""The faults that are in force in the simulation, and what begins each kind of them.

A new kind takes a method here that begins it and returns what ends it, and a line in ``Faults.__init__``. Crashes are
not among them: ``simulation`` carries them out at once.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from typing import Any

from kemu.faults.handlers import Handlers
from kemu.faults.kinds import KINDS, Kind
from kemu.runtime import random_streams
from kemu.runtime.rpc import impairments
from kemu.runtime.rpc.networks import Network

End = Callable[[], object]
"""Ends a fault."""
Begin = Callable[[str, Mapping[str, Any]], End | None]
"""Begins the fault of that id, with its parameters; None: it is over in an instant."""


class Faults:
    """Those in force, by their ids."""

    def __init__(self, network: Network, handlers: Handlers, seed: int) -> None:
        self._network = network
        self._handlers = handlers
        self._seed = seed
        self._ends: dict[str, End] = {}
        self._begin: dict[str, Begin] = {
            "partition": self._partition,
            "reset": self._reset,
            "halfOpen": self._half_open,
            **{what: self._impairment(what) for what in impairments.KINDS},
            **{kind.name: functools.partial(self._by_actors, kind) for kind in KINDS.values() if kind.carried_out_by},
        }
        """By the name of the kind."""

    def add(self, begins: Mapping[str, Begin]) -> None:
        """More kinds, by their names."""
        self._begin.update(begins)

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

    def _impairment(self, what: str) -> Begin:
        def begin(fault: str, parameters: Mapping[str, Any]) -> End:
            def stream(source: str, target: str) -> random.Random:
                return random_streams.random_stream(self._seed, "fault", fault, source, target)

            self._network.impair(impairments.impairment(fault, what, parameters, stream))
            return lambda: self._network.heal(fault)

        return begin

    def _reset(self, fault: str, parameters: Mapping[str, Any]) -> None:
        self._network.reset(fault, *parameters["between"])

    def _half_open(self, fault: str, parameters: Mapping[str, Any]) -> None:
        self._network.mute(fault, *parameters["between"])

    def _by_actors(self, kind: Kind, fault: str, parameters: Mapping[str, Any]) -> End | None:
        self._handlers.begin(fault, kind.name, parameters)
        return functools.partial(self._handlers.end, fault) if kind.lasts else None
