"""``clearLowerNominations: if-unfit``: which nominated pods no longer fit on their node beside a new preemptor.

"When a pod NominatedNodeName is set, scheduler reevaluates whether lower priority pods whose NominatedNodeNames are the
same still fit on the node. If they no longer fit, scheduler clears their NominatedNodeNames" (pod preemption design).
kube-scheduler asks no filter: it clears all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.simulations import Simulation
from kemu.emulated.scheduler.framework.results import Candidate


def beside(preemptor: PodInfo, candidate: Candidate, cluster: Cluster, deciders: Mapping[str, Decider]) -> list[str]:
    """UIDs, as all filters say of the node without the victims and without pods that terminate.

    The nominations of pods that another scheduler serves are cleared in any case: its filters are not known here.
    """
    node = cluster.nodes.get(candidate.node)
    if node is None or node.row < 0:
        return []
    leaving = [pod for pod in node.pods.values() if pod.terminating or pod in candidate.victims]
    lower = [pod for pod in cluster.nominator.on(candidate.node) if pod.priority < preemptor.priority]
    unfit: list[str] = []
    # The more important ones stay where there is room for some of them.
    for pod in sorted(lower, key=lambda one: -one.priority):
        decider = deciders.get(pod.pod.spec.schedulerName)
        if decider is not None:
            simulation = Simulation(decider.filter(pod), node)
            simulation.disregard(unfit)
            for other in leaving:
                simulation.remove(other)
            simulation.add(preemptor)
            if not simulation.verdict():
                continue
        unfit.append(pod.uid)
    return unfit
