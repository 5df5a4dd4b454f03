"""The faults that are in force in the simulation, and what begins each kind of them.

Those of the network are in ``rpc.network_faults``. A new kind takes a method here that begins it and returns what ends
it, and a line in ``Faults.__init__``. Crashes are not among them: ``simulation`` carries them out at once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from kemu.runtime.faults.handlers import Handlers
from kemu.runtime.faults.kinds import KINDS, Kind, carriers
from kemu.runtime.rpc import network_faults
from kemu.runtime.rpc.network_faults import Begin, End, StreamOf
from kemu.runtime.rpc.networks import Network


class Faults:
    """Those in force, by their ids."""

    def __init__(self, network: Network, handlers: Handlers, stream_of: StreamOf) -> None:
        self._handlers = handlers
        self._ends: dict[str, End] = {}
        self._begin: dict[str, Begin] = {
            **network_faults.beginnings(network, stream_of),
            **{kind.name: functools.partial(self._by_actors, kind) for kind in KINDS.values() if kind.carried_out_by},
        }
        """By the name of the kind."""

    def add(self, begins: Mapping[str, Begin]) -> None:
        """More kinds, by their names."""
        self._begin.update(begins)

    def begin(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """Raises ValueError for an id that is in force, and for a kind that is not carried out."""
        if fault in self._ends:
            raise ValueError(f"a fault {fault!r} is in force already")
        if what not in self._begin:
            raise ValueError(f"the simulation cannot do {what}")
        if carriers(what, parameters) and not KINDS[what].carried_out_by:
            end = self._by_actors(KINDS[what], fault, parameters)
        else:
            end = self._begin[what](fault, parameters)
        if end is not None:
            self._ends[fault] = end

    def end(self, fault: str) -> None:
        """Raises ValueError for one that is not in force."""
        if fault not in self._ends:
            raise ValueError(f"no fault {fault!r} is in force")
        self._ends.pop(fault)()

    def _by_actors(self, kind: Kind, fault: str, parameters: Mapping[str, Any]) -> End | None:
        self._handlers.begin(fault, kind.name, parameters)
        return functools.partial(self._handlers.end, fault) if kind.lasts else None
