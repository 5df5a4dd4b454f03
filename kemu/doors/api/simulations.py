"""Virtual time for a program: its coroutine runs on the simulation's loop, and clusters in it are simulated.

    async def main() -> float:
        async with kemu.cluster(nodes=3) as cluster:
            await cluster.create(kemu.pod("a"))
            await cluster.eventually(lambda: cluster.pod("a").running, within=10)
            return cluster.now_s

    kemu.simulate(main, seed=7)

Role: below :mod:`live_clusters`, which asks :func:`current` for seed, chooser and holds. The pytest plugin runs tests
so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from kemu.emulated.client.message_labels import Reader
from kemu.errors import SimulationError
from kemu.runtime.env import SECOND_NS
from kemu.runtime.holds import Hold
from kemu.runtime.sim import guards
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.steering.choosers import Chooser
from kemu.runtime.sim.steering.steering import Steering

T = TypeVar("T")


class TooLong(SimulationError):
    """A program has gone on for longer than it may."""


class Simulation:
    """One run of a program: what it is given from outside, and what came of it."""

    def __init__(
        self, seed: int = 0, chooser: Chooser | None = None, holds: Sequence[Hold] = (), limit_s: float = 0.0
    ) -> None:
        """``chooser`` and ``holds`` steer the first cluster of the program; further ones run as usual. ``limit_s``: of
        virtual time; 0: none."""
        self.seed = seed
        self._limit_s = limit_s
        self._chooser = chooser
        self._holds = tuple(holds)
        self.loop = VirtualLoop()  # type: ignore[abstract]  # what it refuses is added by name
        self.steering: Steering | None = None
        """Steering of the first cluster, if anybody steers it."""
        self.clusters = 0
        """How many there were."""

    def steer(self) -> Steering | None:
        """For the next cluster."""
        self.clusters += 1
        if self.clusters > 1 or (self._chooser is None and not self._holds):
            return None
        self.steering = Steering(Reader, self._chooser, self._holds)
        return self.steering

    @property
    def holds(self) -> tuple[Hold, ...]:
        """Under which the program runs the same without the chooser."""
        chosen = self.steering.deviations() if self.steering is not None and self._chooser is not None else ()
        return (*self._holds, *chosen)

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Once. Raises TooLong where the program is not over within its limit."""
        global _current
        if _current is not None:
            raise RuntimeError("a simulation cannot run inside another one")
        guards.install()
        _current = self
        if self._limit_s:
            error = TooLong(f"the program is not over after {self._limit_s:g} virtual seconds")
            self.loop.set_timer(round(self._limit_s * SECOND_NS), self.loop.fail, (error,), None, background=True)
        try:
            return self.loop.run(main())
        finally:
            _current = None


_current: Simulation | None = None


def current() -> Simulation | None:
    """The simulation whose program is running; None: there is none, or this is another event loop."""
    if _current is None or asyncio.get_running_loop() is not _current.loop:
        return None
    return _current


def simulate(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 0) -> T:
    """Run ``main()`` in virtual time and return its result.

    Time passes only while everybody waits, so ``asyncio.sleep(3600)`` takes no time at all; threads, sockets and
    subprocesses do not exist. ``seed`` is that of its clusters, unless they say otherwise. Raises what ``main`` raises;
    UserCodeFailed or ActorFailed where an actor ended with an exception; Deadlock where nothing can happen any more.
    What is raised says how to have it again.
    """
    try:
        return Simulation(seed).run(main)
    except Exception as error:
        error.add_note(f"again: kemu.simulate({getattr(main, '__name__', 'main')}, seed={seed})")
        raise
