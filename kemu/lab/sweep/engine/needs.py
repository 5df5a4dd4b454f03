"""What cells need of a machine: memory and time, learned from the cells that are over.

Cells of one variant need about the same, whatever their seed. Of a variant that has not run yet the memory is estimated
from its nodes and pods. Executors ask (:class:`~kemu.lab.exploration.processes.tasks.Needs`), and place cells by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kemu.lab.scenario.playing import judging
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.sweep.cells import FAILED, Cell, CellRecord
from kemu.lab.sweep.engine.cell_tasks import CellResult, CellTask
from kemu.runtime import memory

PROCESS_KIB, NODE_KIB, POD_KIB = 95 << 10, 80, 70
"""What a process has without a cluster, and what it has for each node and pod of one: measured with 10 to 3,000 nodes
and 60 to 2,000 pods. A large cluster needs less (docs/performance.md): 46 KiB for a node, 48 for a pod."""
MARGIN = 1.2
"""Beyond the largest cell of the variant so far, or beyond the estimate."""
ERROR = 2.0
"""How far an estimate may be off: up to so many times the largest machine a cell has a try, alone on it."""
MORE = 2.0
"""How much more a cell gets that died of memory."""
MOST_RETRIES = 2
SPREAD = 0.5
"""Standard deviation of the durations of a variant, as a share of its mean, until two are known."""
LEAST_ERROR = 0.1
"""Of the time that is left: the machine is not always equally fast."""


@dataclass(slots=True)
class Seen:
    """Cells of one variant that are over."""

    count: int = 0
    mean_s: float = 0.0
    squares: float = 0.0
    """Sum of squared deviations from the mean."""
    peak_bytes: int = 0

    def take(self, seconds: float, peak_bytes: int) -> None:
        self.count += 1
        before = seconds - self.mean_s
        self.mean_s += before / self.count
        self.squares += before * (seconds - self.mean_s)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)

    @property
    def variance(self) -> float:
        return self.squares / (self.count - 1) if self.count > 1 else (SPREAD * self.mean_s) ** 2


class CellNeeds:
    """Implements :class:`~kemu.lab.exploration.processes.tasks.Needs` for the cells of one sweep."""

    def __init__(self, scenario: Callable[[Cell], Scenario]) -> None:
        """``scenario``: of a cell; asked once for each variant at most."""
        self.scenario = scenario
        self.seen: dict[int, Seen] = {}
        """By index of the variant."""
        self._estimates: dict[int, int] = {}
        self._larger: dict[int, int] = {}
        """By number of the task: what it gets after it died."""
        self._deaths: dict[int, int] = {}

    def learn(self, record: CellRecord) -> None:
        """A cell is over."""
        if record.status != FAILED:
            self.seen.setdefault(record.cell.index, Seen()).take(record.seconds, record.peak_bytes)

    # Memory

    def memory_bytes(self, task: CellTask) -> int:
        seen = self.seen.get(task.cell.index)
        least = self._larger.get(task.number, 0)
        if seen is not None and seen.peak_bytes:
            return max(least, int(MARGIN * seen.peak_bytes))
        return max(least, int(MARGIN * self._estimate(task.cell)))

    def _estimate(self, cell: Cell) -> int:
        if cell.index not in self._estimates:
            self._estimates[cell.index] = estimate_bytes(self.scenario(cell))
        return self._estimates[cell.index]

    def too_large(self, task: CellTask, most_bytes: int) -> CellResult | None:
        needed = self.memory_bytes(task)
        if needed <= most_bytes:
            return None
        seen = self.seen.get(task.cell.index)
        if seen is not None and seen.peak_bytes:
            if seen.peak_bytes <= most_bytes:
                return None
            how = "as other cells of its variant did"
        else:
            if needed <= ERROR * most_bytes:
                return None
            how = "estimated from its nodes and pods"
        return task.without_room(
            f"needs {memory.told(needed)} of memory, {how}, and no machine has more than {memory.told(most_bytes)}"
        )

    def out_of_memory(self, task: CellTask, claim_bytes: int, most_bytes: int) -> CellResult | None:
        deaths = self._deaths[task.number] = self._deaths.get(task.number, 0) + 1
        if most_bytes and claim_bytes >= most_bytes:
            return task.without_room(f"ran out of memory with {memory.told(most_bytes)}: no machine has more")
        if deaths > MOST_RETRIES:
            return task.without_room(f"ran out of memory {deaths} times, the last time with {memory.told(claim_bytes)}")
        wanted = int(MORE * max(claim_bytes, self.memory_bytes(task)))
        self._larger[task.number] = min(wanted, most_bytes) if most_bytes else wanted
        return None

    # Time

    def seconds(self, task: CellTask) -> float:
        seen = self.seen.get(task.cell.index)
        return seen.mean_s if seen is not None else 0.0

    def left_s(self, left: Mapping[int, int], running: int) -> tuple[float, float] | None:
        """How long so many cells of each variant, by its index, will take where so many run at a time: at least, and
        at most. None: nothing is known yet.

        Of a variant of which no cell is over, cells take as long as those of the fastest at least, and as those of the
        slowest at most. Those that run may just have begun, or be about to end.
        """
        seen = self.seen
        if not seen:
            return None
        means = [each.mean_s for each in list(seen.values())]  # another thread may learn
        low = high = variance = longest = 0.0
        for index, count in left.items():
            known = seen.get(index)
            if known is None:
                low, high, longest = low + count * min(means), high + count * max(means), max(means)
                continue
            low, high = low + count * known.mean_s, high + count * known.mean_s
            longest = max(longest, known.mean_s)
            # Of the cells themselves, and of the mean that is known of them.
            variance += count * known.variance + count * count * known.variance / known.count
        error = 2 * math.sqrt(variance)
        at_once = max(1, min(running, sum(left.values())))
        shortest_s = ((low - error) * (1 - LEAST_ERROR) - at_once * longest) / at_once
        return max(0.0, shortest_s), max((high + error) * (1 + LEAST_ERROR) / at_once, longest)


def estimate_bytes(scenario: Scenario) -> int:
    """Memory of a process that runs it in virtual time and judges it."""
    nodes = len(scenario.nodes)
    pods = sum(judging.meant(scenario, scenario.duration_ns).values())
    return (PROCESS_KIB + NODE_KIB * nodes + POD_KIB * pods) << 10


def learned(scenario: Callable[[Cell], Scenario], records: Iterable[CellRecord]) -> CellNeeds:
    """What cells need of which some are over."""
    needs = CellNeeds(scenario)
    for record in records:
        needs.learn(record)
    return needs
