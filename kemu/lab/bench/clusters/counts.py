"""What one pod costs on its way to Running, counted and not timed: the same figures on every machine.

Pods of one burst share messages, pods that come one by one do not: a setting for each. ``steps`` are callbacks of the
event loop; ``messages`` travel between actors, in either direction; ``calls`` are nearly all unary, to the store;
``parses`` and ``serialisations`` are of protobuf messages, for any purpose; ``frames`` are those of the run log.
``functions`` are calls of functions that are written in Python, steps of coroutines and generators included;
``checks``: more of these, where all checks look on. All are counted from the moment in which the clock starts until the
last pod runs.
"""

from __future__ import annotations

import asyncio
import collections
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from kemu.lab.bench.clusters.throughput import scenario_text
from kemu.lab.checks.registry import Judge
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.rpc.clients import Call
from kemu.runtime.runlog.events import PodRunning, Transaction
from kemu.runtime.runlog.frames import Digester
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.simulation import SimRuntime
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
        (VirtualLoop.create_future, "futures"),
        (VirtualLoop.create_owned_task, "tasks"),
        (VirtualLoop.create_quiet_task, "tasks"),
        (SimWire.carry, "messages"),
        (Call.__init__, "calls"),
    )
}
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Names of what is a function in Python 3.11 and part of the one around it in later versions."""
FIGURES = (
    "functions",
    "checks",
    "parses",
    "serialisations",
    "futures",
    "tasks",
    "steps",
    "messages",
    "calls",
    "transactions",
    "frames",
)


class _Counts:
    """A sink, and a profiler: see :func:`work`."""

    def __init__(self, pods: int) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        """Kinds of events in the run log."""
        self.stop = asyncio.Event()
        self._append: Callable[..., None] = Digester().append
        self._judge: Callable[..., None] = Judge().feed
        self._is_judging = False
        self._left = pods

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        self._is_judging = True
        self._judge(time_ns, actor, kind, data)
        self._is_judging = False
        self.kinds[kind] += 1
        if kind == PodRunning.KIND:
            self._left -= 1
            if self._left == 0:
                self.stop.set()

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_name not in _INLINED and code is not _SINK:
                self.counts["checks" if self._is_judging else "functions"] += 1
            figure = _WRITTEN.get(code)
        elif event == "c_call":
            figure = _BUILT_IN.get(argument.__name__)
        else:
            return
        if figure is not None and not self._is_judging:
            self.counts[figure] += 1


_SINK = _Counts.__call__.__code__
"""What only the benchmark calls."""


async def _drive(runtime: SimRuntime, text: str, counts: _Counts) -> None:
    scenario = loader.loads(text)
    await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
    steps = runtime.loop.steps
    counts.kinds.clear()
    before = sys.getprofile()
    sys.setprofile(counts.profile)
    try:
        await runtime.begin()
        await runtime.run_until(3600 * SECOND_NS, stop=counts.stop)
    finally:
        sys.setprofile(before)
    counts.counts["steps"] = runtime.loop.steps - steps
    counts.counts["transactions"] = counts.kinds[Transaction.KIND]
    counts.counts["frames"] = counts.kinds.total()
    await runtime.shutdown()


def work(arrivals: str, nodes: int, pods: int) -> dict[str, Any]:
    """For each pod. ``arrivals``: ``burst``, all pods at once; ``apart``, one every 100 ms."""
    counts = _Counts(pods)
    runtime = SimRuntime(1, counts)
    every = "100ms" if arrivals == "apart" else ""
    runtime.run(_drive(runtime, scenario_text(nodes, pods, every=every), counts))
    return {figure: round(counts.counts[figure] / pods, 2) for figure in FIGURES}
