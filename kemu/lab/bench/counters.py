"""Counts what a part of a run does, without a look at the clock.

``messages`` travel between actors, in either direction; ``calls`` are nearly all unary, to the store; ``parses`` and
``serialisations`` are of protobuf messages, for any purpose. ``functions`` are calls of functions that are written in
Python, steps of coroutines and generators included; ``checks``: more of these, where all checks look on.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from kemu.lab.checks.limits import Limits
from kemu.lab.checks.registry import Judge
from kemu.runtime.rpc.clients import Call
from kemu.runtime.runlog.events import PodRunning
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.wires import SimWire

_BUILT_IN = {
    "FromString": "parses",
    "ParseFromString": "parses",
    "MergeFromString": "parses",
    "SerializeToString": "serialisations",
    "SerializePartialToString": "serialisations",
}
"""By name: functions that are not written in Python."""
_WRITTEN: Mapping[CodeType, str] = {
    function.__code__: figure
    for function, figure in (
        (VirtualLoop.create_owned_task, "tasks"),
        (VirtualLoop.create_quiet_task, "tasks"),
        (SimWire._carry, "messages"),
        (Call.__init__, "calls"),
    )
}
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Names of what is a function in Python 3.11 and part of the one around it in later versions."""


class Counts:
    """A sink, and a profiler."""

    def __init__(self, pods: int) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        """Kinds of events in the run log."""
        self.stop = asyncio.Event()
        self._append: Callable[..., None] = Digester().append
        # As in a run whose schedulers know no gangs.
        self._judge: Callable[..., None] = Judge(within=Limits(gang_schedulers=())).feed
        self._is_judging = False
        self._ours = {Counts.__call__.__code__}
        """What only the benchmark calls."""
        self.left = pods

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        self._is_judging = True
        self._judge(time_ns, actor, kind, data)
        self._is_judging = False
        self.kinds[kind] += 1
        if kind == PodRunning.KIND:
            self.left -= 1
            if self.left == 0:
                self.stop.set()

    def count_futures(self, loop: VirtualLoop) -> None:
        """From now on, those that this loop makes."""
        create = loop.create_future

        def create_future() -> asyncio.Future[Any]:
            self.counts["futures"] += not self._is_judging
            return create()

        self._ours.add(create_future.__code__)
        loop.create_future = create_future  # type: ignore[method-assign]

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_name not in _INLINED and code not in self._ours:
                self.counts["checks" if self._is_judging else "functions"] += 1
            figure = _WRITTEN.get(code)
        elif event == "c_call":
            figure = _BUILT_IN.get(getattr(argument, "__name__", ""))
        else:
            return
        if figure is not None and not self._is_judging:
            self.counts[figure] += 1
