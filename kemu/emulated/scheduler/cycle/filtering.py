"""The results of PreFilter and Filter on all nodes for one pod: the framework's ``Diagnosis``, and what dry runs need.

A :class:`Filtering` reads columns that live until the next decision of the same decider: read it before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cycle import diagnoses, verdicts
from kemu.emulated.scheduler.cycle.evaluations import Evaluation
from kemu.emulated.scheduler.cycle.line_ups import LineUp
from kemu.emulated.scheduler.cycle.verdicts import Active
from kemu.emulated.scheduler.framework.interfaces import Cycle
from kemu.emulated.scheduler.framework.statuses import ERROR, PENDING, Status, unresolvable

LEFT_OUT = 1 << 60
"""Combined verdict of nodes outside of what PreFilter narrowed the search to; those above are of refusals."""


class Filtering:
    """The results of the filters on all nodes."""

    __slots__ = (
        "_active",
        "_local",
        "cycle",
        "evaluation",
        "hint",
        "left_out",
        "line_up",
        "narrowed",
        "nodes",
        "placement",
        "refusals",
        "rejection",
        "states",
        "tally",
        "unasked",
        "verdicts",
    )

    def __init__(self, line_up: LineUp, cycle: Cycle, evaluation: Evaluation) -> None:
        self.line_up = line_up
        self.cycle = cycle
        self.evaluation = evaluation
        self.nodes = len(cycle.cluster.rows)  # which have been settled
        self.placement: IntArray | None = None
        """The rows of the nodes that count, where a group is tried in one part of the cluster; None: all."""
        self.states: dict[int, Any] = {}
        """States of the CLUSTER filters that were not skipped, by place."""
        self.rejection: Status | None = evaluation.filters.rejection
        """PreFilter rejected the pod as a whole."""
        self.verdicts: IntArray = evaluation.verdicts
        """Combined verdicts by row. Shared with the evaluation where nothing had to be added."""
        self.tally: Mapping[int, int] = evaluation.tally
        self.narrowed: IntArray | None = None
        """The rows that PreFilter narrowed the search to; None: all."""
        self.left_out = ""
        """Names of the plugins that narrowed the search, for the reason of the nodes left out."""
        self.hint = ""
        """The node that a batch hints at."""
        self.refusals: list[Status] = []
        """Statuses that came from extenders; see :meth:`refuse`."""
        self.unasked: int | None = None
        """The place of the filter that was asked only until enough nodes had passed; None: all were asked."""
        self._active: Active | None = None
        self._local: list[bool] | None = None

    def is_local(self, node: NodeInfo) -> bool:
        """Whether the node, its pods and its nominations alone decide: no CLUSTER filter could make a difference."""
        return not self.states or self.local_rows()[node.row]

    def local_rows(self) -> list[bool]:
        """:meth:`is_local` by row, where there are CLUSTER filters at all."""
        local = self._local
        if local is None:
            local = self._local = self._passing_anyway()
        return local

    def look_again(self) -> None:
        """Discard what depends on nominations: they are live and may have changed."""
        self._local = None

    def _passing_anyway(self) -> list[bool]:
        filters, cluster = self.line_up.filters, self.cycle.cluster
        local = np.ones(self.nodes, dtype=np.bool_)
        for place, state in self.states.items():
            local &= filters[place].passing_anyway(state, cluster)
        if not cluster.filters_again:
            # What a node lacks, only a pod nominated to it may have.
            local[[node.row for node in cluster.nominated_nodes()]] = False
        rows: list[bool] = local.tolist()
        return rows

    def explain(self, verdict: int) -> Status:
        """The status behind a combined verdict, with the plugin's name."""
        if verdict > LEFT_OUT:
            return self.refusals[verdict - LEFT_OUT - 1]
        if verdict == LEFT_OUT:
            return unresolvable(f"node(s) didn't satisfy plugin(s) [{self.left_out}]")
        place, own = verdicts.split(verdict)
        plugin = self.line_up.filters[place]
        state = self.states[place] if place in self.states else self.evaluation.filters.states[place]
        return plugin.explain(state, own)._replace(plugin=plugin.name)

    @property
    def counted(self) -> int:
        """How many nodes count."""
        return self.nodes if self.placement is None else len(self.placement)

    def restrict(self, rows: IntArray) -> None:
        """Only these nodes count."""
        self.placement = rows
        if self.rejection is not None:
            return
        column = np.full_like(self.verdicts, LEFT_OUT)
        column[rows] = self.verdicts[rows]
        self.tally = verdicts.tally_of(column[rows])
        self.verdicts = column
        self.narrowed = rows if self.narrowed is None else np.intersect1d(self.narrowed, rows)

    def refuse(self, refused: Mapping[int, Status]) -> None:
        """Extenders reject nodes, by row."""
        column = self.verdicts.copy()
        for row, status in refused.items():
            if status not in self.refusals:
                self.refusals.append(status)
            column[row] = LEFT_OUT + 1 + self.refusals.index(status)
        self.verdicts = column
        self.tally = verdicts.tally_of(column[: self.nodes] if self.placement is None else column[self.placement])

    def error(self) -> Status | None:
        """A filter failed on some node, which ends the attempt (``RunFilterPlugins``)."""
        for verdict in self.tally:
            status = self.explain(verdict) if verdict else None
            if status is not None and not status.rejected:
                return Status(ERROR, (f'running "{status.plugin}" filter plugin: {status.message}',), status.plugin)
        return None

    def status(self, row: int) -> Status | None:
        """Why a node was rejected; None if it passed."""
        if self.rejection is not None:
            return self.rejection
        verdict = int(self.verdicts[row])
        return self.explain(verdict) if verdict else None

    def message(self) -> str:
        """The failure as a text, before PostFilter."""
        if self.rejection is not None:
            return diagnoses.prefilter_message(self.counted, self.rejection)
        tally = ((self.explain(verdict), count) for verdict, count in self.tally.items() if verdict)
        return diagnoses.failure_message(self.counted, tally)

    def rejected_by_plugin(self) -> dict[str, int]:
        """How many nodes each plugin rejected."""
        if self.rejection is not None:
            return {self.rejection.plugin: self.nodes}
        tally = self.tally
        if len(tally) == 1 and 0 in tally:
            return {}
        return diagnoses.counts_by_plugin(tally, self.explain)

    def rejectors(self) -> tuple[str, ...]:
        """The plugins whose events may help: those that rejected some node or narrowed the search."""
        names = [name for name in self.rejected_by_plugin() if name]
        if self.left_out:
            names += [name for name in self.left_out.split() if name not in names]
        return tuple(sorted(names))

    def pending(self) -> tuple[str, ...]:
        """Those of the rejectors that answered Pending: they wait for something that is under way."""
        given = [self.rejection] if self.rejection is not None else [self.explain(one) for one in self.tally if one]
        return tuple(sorted(dict.fromkeys(status.plugin for status in given if status.code == PENDING)))

    def filters(self) -> Active:
        """All filters that depend on pods, with their states, in order. Call it when the states are complete."""
        active = self._active
        if active is None:
            of_cluster = [(place, self.line_up.filters[place], state) for place, state in self.states.items()]
            active = self._active = sorted((*self.evaluation.filters.on_node, *of_cluster), key=lambda one: one[0])
        return active
