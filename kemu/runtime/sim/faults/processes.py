"""The faults of processes and of their clocks in the simulation: what begins and ends each kind.

Neighbours: ``faults`` keeps those in force, ``loops`` holds back what a paused actor would do, ``rpc.networks`` says
what its peers notice, ``skews`` what a wrong clock shows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from kemu.runtime.faults.hits import Hits
from kemu.runtime.rpc.network_faults import Begin, End
from kemu.runtime.sim.clocks import MasterClock
from kemu.runtime.skews import JUMP, SKEW, Skew, Skews


class Processes(Protocol):
    """The runtime, as these faults need it."""

    master: MasterClock
    hits: Hits

    def pause_now(self, name: str) -> bool:
        """False: the actor does not run, or stands still already."""
        ...

    def resume_now(self, name: str) -> None: ...

    def skew_now(self, name: str, skew: Skew, to_ns: Callable[[int], int]) -> None:
        """The actor's clock is wrong from now on, as this says. ``to_ns``: to where its timers move."""
        ...


class ProcessFaults:
    def __init__(self, processes: Processes, skews: Skews) -> None:
        self._processes = processes
        self._skews = skews
        self.begins: dict[str, Begin] = {
            "pause": self._pause,
            SKEW: lambda fault, parameters: self._skew(fault, SKEW, parameters),
            JUMP: lambda fault, parameters: self._skew(fault, JUMP, parameters),
        }
        """By the name of the kind."""

    def _pause(self, fault: str, parameters: Mapping[str, Any]) -> End:
        processes = self._processes
        paused = [name for name in parameters["actor"] if processes.pause_now(name)]
        for name in paused:
            processes.hits.strike(fault, name)

        def end() -> None:
            for name in paused:
                processes.resume_now(name)

        return end

    def _skew(self, fault: str, what: str, parameters: Mapping[str, Any]) -> End | None:
        names = parameters["actor"]
        self._change(names, lambda now_ns: self._skews.begin(fault, what, parameters, now_ns))
        for name in names:
            self._processes.hits.strike(fault, name)
        if what == JUMP:
            return None
        return lambda: self._change(names, lambda now_ns: self._skews.end(fault, now_ns))

    def _change(self, names: Iterable[str], change: Callable[[int], object]) -> None:
        before = {name: copy.deepcopy(self._skews.by_actor.get(name)) or Skew() for name in names}
        change(self._processes.master.now_ns())
        for name, skew_before in before.items():
            skew = self._skews.by_actor[name]
            self._processes.skew_now(name, skew, _between(skew_before, skew))


def _between(before: Skew, after: Skew) -> Callable[[int], int]:
    """Timers are for times of the actor's own clock: where that changes its pace, they come at other times."""
    return lambda true_ns: after.true_ns(before.own_ns(true_ns))
