"""Runs of single actors in sim, and a sink that keeps the log: ``from kemu.testing import Recorder, sim``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from kemu.runtime.env import ActorSpec, LogSink
from kemu.runtime.sim.simulation import SimRuntime

T = TypeVar("T")


class Recorder:
    """A log sink that keeps the events, as (ns, actor, kind, data)."""

    def __init__(self) -> None:
        self.events: list[tuple[int, str, str, Mapping[str, Any]]] = []

    def __call__(self, now_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self.events.append((now_ns, actor, kind, data))

    def of(self, kind: str, actor: str | None = None) -> list[Mapping[str, Any]]:
        """The data of all events of a kind, of one actor or of all."""
        return [data for _, name, what, data in self.events if what == kind and actor in (None, name)]


def sim(
    main: Callable[[SimRuntime], Coroutine[Any, Any, T]],
    seed: int = 0,
    actors: Sequence[ActorSpec] = (),
    *,
    timing: Mapping[str, Any] | None = None,
    sink: LogSink | None = None,
    begin: bool = True,
) -> T:
    """Run ``main(runtime)`` in virtual time and return its result.

    The actors are launched, one after the other, and (with ``begin``) the clock runs before ``main`` starts.

        async def main(runtime: SimRuntime) -> int:
            await runtime.clock.sleep(5)
            return runtime.clock.now_ns()

        assert sim(main) == 5_000_000_000
    """
    runtime = SimRuntime(seed, sink or Recorder(), timing or {})

    async def drive() -> T:
        for spec in actors:
            await runtime.launch([spec])
        if begin:
            await runtime.begin()
        return await main(runtime)

    return runtime.run(drive())
