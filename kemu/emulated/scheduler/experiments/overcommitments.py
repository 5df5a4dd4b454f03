"""``preemptor: kubelet``: nodes on which a pod would fit if the pods of lower priority were not there.

The alternative of the pod preemption design in which the scheduler binds a pod to a node without preempting any, and
the kubelet of the node makes room (:mod:`kemu.emulated.kubelet.admission.preemption`). The scheduler only checks
whether the pod would fit without the lower pods of a node, and prefers nodes by their scores. The kubelet chooses the
victims, by QoS class and size; it knows nothing of disruption budgets, affinity and the order of priorities.
"""

from __future__ import annotations

import numpy as np

from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.preemption.candidates import Preemptor


class Overcommitter:
    """For the pods of one profile."""

    def __init__(self, decider: Decider, preemptor: Preemptor) -> None:
        """``preemptor``: one that looks at all nodes."""
        self._decider = decider
        self._preemptor = preemptor

    def choose(self, decision: ScheduleResult) -> None:
        """Where no node was found, choose one on which the pod would fit without its lower pods, if there is any."""
        filtering = decision.filtering
        if filtering is None or filtering.rejection is not None or filtering.cycle.template.never_preempts:
            return
        potential = self._preemptor.potential_rows(filtering)
        candidates, _ = self._preemptor.dry_runs(filtering, potential, 0, len(potential) + 1)
        if not candidates:
            return
        nodes = self._decider.cluster.nodes
        rows = np.array(sorted(nodes[candidate.node].row for candidate in candidates), dtype=np.int64)
        totals = self._decider.totals(filtering, rows)
        best = rows[totals == totals.max()]
        choice = best[self._decider.random.randrange(len(best))] if len(best) > 1 else best[0]
        decision.node = self._decider.cluster.rows[int(choice)].name
