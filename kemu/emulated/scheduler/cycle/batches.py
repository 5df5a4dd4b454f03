"""Opportunistic batching: a pod like the one before it is tried on the next best node of that one's search.

``OpportunisticBatch`` in ``pkg/scheduler/framework/runtime``, batch.go (feature gate OpportunisticBatching). The nodes
of a search are kept, by score, without the chosen one. They serve the pod of the next scheduling cycle if it has the
same profile and the same signature, comes within half a second, and does not fit the node that was chosen last: where
it does, that node would have to be scored anew. Such a pod gets the best node that is left as a *hint*: it is tried
first, like a nominated node, and if it is feasible nothing else is looked at.
"""

from __future__ import annotations

import numpy as np

from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cycle import ties, verdicts
from kemu.emulated.scheduler.cycle.filtering import Filtering
from kemu.emulated.scheduler.cycle.signatures import Signature, Signer
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.runtime.env import Random

MAX_AGE_NS = 500_000_000
"""``maxBatchAge``."""

_TAKEN = np.iinfo(np.int64).min


class SortedNodes:
    """The nodes of a search by falling score (``sortedNodeScores``), without the chosen one."""

    def __init__(
        self, nodes: list[NodeInfo], rows: IntArray, totals: IntArray, chosen: int, lots: Random | None
    ) -> None:
        """``nodes``: of ``rows``; ``chosen``: a row. ``lots`` decide between equal scores, or else the order."""
        self._nodes = nodes
        self._totals = totals.copy()
        self._chosen = int((rows == chosen).argmax())
        self._lots = lots
        self._heap: ties.Heap | None = None
        self._left = len(rows) - 1
        if lots is not None:
            self._totals[self._chosen] = _TAKEN

    def __len__(self) -> int:
        return self._left

    def pop(self) -> str:
        """The name of the best node that is left."""
        self._left -= 1
        if self._lots is None:
            place = self._next_of_heap()
        else:
            best = (self._totals == self._totals.max()).nonzero()[0]
            place = int(best[0] if len(best) == 1 else best[self._lots.randrange(len(best))])
            self._totals[place] = _TAKEN
        return self._nodes[place].name

    def _next_of_heap(self) -> int:
        if self._heap is None:
            self._heap = ties.Heap(self._totals.tolist())
            first = self._heap.pop()
            assert first == self._chosen, "the search chose another node than the heap"
        return self._heap.pop()


class Batches:
    """Batches of one profile in one scheduler. Each attempt asks for a hint once, and tells the node if it finds
    one."""

    def __init__(self, signer: Signer, handle: Handle) -> None:
        self._signer = signer
        self._handle = handle
        self._signature: Signature | None = None
        """Signature of the pod of this attempt."""
        self._kept_for: Signature | None = None
        self._kept: SortedNodes | None = None
        self._since_ns = 0
        self._is_new = False
        self._last_cycle = -1
        """The last scheduling cycle in which this profile found a node, and which it was."""
        self._last_node = ""

    def hint(self, filtering: Filtering) -> str:
        """The name of the node to try first, or "" (``GetNodeHint``)."""
        self._signature = self._signer.of(filtering.cycle.pod)
        if not self._is_usable(filtering):
            return ""
        assert self._kept is not None
        return self._kept.pop()

    def _is_usable(self, filtering: Filtering) -> bool:
        """``batchStateCompatible``. The cycles are counted over all profiles, failed attempts included."""
        handle = self._handle
        if not self._kept or handle.scheduling_cycle != self._last_cycle + 1:
            return False
        if self._signature is None or self._signature != self._kept_for:
            return False
        if self._now_ns() > self._since_ns + MAX_AGE_NS:
            return False
        node = handle.cluster.nodes.get(self._last_node)
        if node is None or node.row < 0:
            return False
        # Without the pods nominated to the node, unlike in the search.
        return bool(
            verdicts.first(filtering.evaluation.filters.on_object, node) or verdicts.first(filtering.filters(), node)
        )

    def found(self, hint: str, chosen: str, rows: IntArray | None = None, totals: IntArray | None = None) -> None:
        """The attempt chose a node (``StoreScheduleResults``), of several if ``rows`` and ``totals`` say which."""
        handle = self._handle
        self._last_cycle, self._last_node = handle.scheduling_cycle, chosen
        if hint == chosen:
            return
        self._kept, self._kept_for = None, self._signature
        if self._signature is not None and rows is not None and totals is not None:
            cluster = handle.cluster
            lots = handle.random if handle.draws_lots else None
            # Not all rows: a search may end after a hundredth of them.
            nodes = [cluster.rows[row] for row in rows.tolist()]
            self._kept = SortedNodes(nodes, rows, totals, cluster.nodes[chosen].row, lots)
            self._since_ns = self._now_ns()
            self._is_new = True

    def attempt_over(self) -> None:
        """The attempt has taken its time: what it found is as old as its end."""
        if self._is_new:
            self._is_new = False
            self._since_ns = self._now_ns()

    def _now_ns(self) -> int:
        clock = self._handle.clock
        return clock.now_ns() if clock is not None else 0
