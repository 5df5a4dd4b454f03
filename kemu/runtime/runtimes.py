"""What drives a run: the runtime that starts actors, moves time and injects faults.

``sim``, ``wall``, ``ray`` and ``real`` implement :class:`Runtime`; the scenario's runner uses nothing else of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from kemu.runtime import user_code
from kemu.runtime.env import Actor, ActorSpec, Clock, Env
from kemu.runtime.runlog.events import StoreCompacted, Transaction, WatchDelivered

T = TypeVar("T")

STOP_TIMEOUT_S = 60.0
"""Virtual time that an actor has for its clean-up when it is stopped."""

SUPERVISOR_DELAY_S = 1.0
"""Virtual time after which an actor that has ended itself is started again."""

HOUSEKEEPING = (Transaction.KIND, StoreCompacted.KIND, WatchDelivered.KIND, "client.")
"""Events, by how their kinds begin, that housekeeping causes too: they do not show that a run is busy."""

NAMES = ("sim", "wall", "ray", "real")
"""Names of the runtimes: virtual time; the wall clock, in one process; the wall clock, in cells on Ray; real components
of Kubernetes in the place of emulated ones."""

REAL = ("wall", "ray", "real")
"""Those whose time is real: their events have dates, a run cannot be made again, and speed is what one asks for."""

Ending = Literal["deadline", "stopped", "idle"]
"""Why ``run_until`` returned: the deadline has come, it was told to stop, or the run is idle."""


def resolve(factory: str) -> Callable[[Env, Mapping[str, Any]], Actor]:
    """``module:callable``. Raises ValueError, ImportError or AttributeError."""
    if ":" not in factory:
        raise ValueError(f"not module:callable: {factory!r}")
    found: Callable[[Env, Mapping[str, Any]], Actor] = user_code.load(factory)
    return found


class Runtime(Protocol):
    """Actors are known by name. Methods raise KeyError for a name that was never launched."""

    @property
    def clock(self) -> Clock: ...

    @property
    def idle_is_still(self) -> bool:
        """Whether no message is on its way in an idle run; otherwise housekeeping may still be."""
        ...

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run the driver's coroutine to its end and return its result. Once for each runtime.

        Raises ``ActorFailed`` when an actor ended with an exception, and in ``sim`` ``Deadlock`` or ``Livelock``.
        """
        ...

    def env(self, name: str) -> Env:
        """An Env for code of the driver itself."""
        ...

    async def launch(self, specs: Sequence[ActorSpec]) -> None:
        """Start actors, in this order, and wait until all of them have said that they are ready."""
        ...

    async def begin(self) -> None:
        """Set-up is over: the clock starts to run at 0."""
        ...

    async def run_until(
        self, deadline_ns: int, *, stop: asyncio.Event | None = None, until_idle: bool = False
    ) -> Ending:
        """Let time pass until the deadline, until ``stop`` is set or, with ``until_idle``, until the run is idle.

        Idle: no message is in flight, no actor has work to do, and only background timers are set.
        """
        ...

    async def stop(self, name: str) -> None:
        """Cancel the actor and wait, for a limited time, until it has cleaned up."""
        ...

    async def crash(self, name: str, step: str | None = None) -> None:
        """End the actor as by SIGKILL: none of its code runs any more, and what it did not fsync may be lost.

        With ``step``: when the actor next comes to that step (``Env.step``), in whichever incarnation; returns when
        that has happened. Cancelled before, it does not happen.
        """
        ...

    async def restart(self, name: str, spec: ActorSpec | None = None) -> None:
        """Start a stopped or crashed actor again: same disk, a new incarnation, and the same spec unless there is
        another one. Does not wait for ready."""
        ...

    async def pause(self, name: str) -> None:
        """The actor stands still; messages to it pile up."""
        ...

    async def resume(self, name: str) -> None: ...

    def processes(self, pattern: str = "*") -> Sequence[str]:
        """Those of such names that the faults ``kill`` and ``stop`` can reach; in virtual time there are none.

        Raises SimulationError where there should be some: it says why there are not.
        """
        ...

    async def inject(self, fault: str, what: str, parameters: Mapping[str, Any]) -> None:
        """Begin a fault of a kind in ``kemu.runtime.faults.kinds``; ``fault`` is its id, and actors stand by their
        names.

        Raises ValueError for an id that is in force, and for a kind that the runtime cannot do.
        """
        ...

    async def partition(self, fault: str, a: Sequence[str], b: Sequence[str], one_way: bool = False) -> None:
        """``inject`` in short: cut the traffic between two groups of actors, or only from ``a`` to ``b``."""
        ...

    async def heal(self, fault: str) -> int | None:
        """End a fault. Returns how often it has struck; None: the runtime does not know.

        Raises ValueError for one that is not in force.
        """
        ...

    async def shutdown(self) -> None:
        """Stop all actors, last launched first."""
        ...
