"""In which order the pods of a run come, and how ties between nodes are settled: drawn from the seed of the run.

The artifact shuffles the pods, adds copies of some until they ask for 1.3 times all GPUs (or takes some away where they
ask for more), and gives every node a random rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.published.fgd.go_random import GoRandom

LOAD = 1.3
"""What all pods ask for, in GPUs of the cluster."""
COPY = "-tuned-"
"""Separates the name of a pod from the number of its copy."""
_WATCHES = 10
"""Kubernetes' client draws a number for each watch that it starts, between the pods and the ranks."""


@dataclass(frozen=True, slots=True)
class Orders:
    pods: Sequence[str]
    """As they come; copies too."""
    nodes: Sequence[str]
    """By rank: the first one wins a tie."""


def of(seed: int, requests: Mapping[str, int], parts: Mapping[str, int], capacity: int, nodes: Sequence[str]) -> Orders:
    """``requests``: milli GPU of each pod on all its cards; ``parts``: on each of them; ``capacity``: of all nodes."""
    random = GoRandom(seed)
    random.int63()
    names = sorted(requests)
    order = list(names)
    random.shuffle(order)
    total, wanted = sum(requests.values()), LOAD * capacity
    if total > wanted:
        while total > wanted:
            total -= requests[order.pop(random.intn(len(order)))]
    elif total < wanted:
        copies = 0
        # The artifact compares with one card of the pod that it drew, and adds all of them.
        while total + parts[drawn := names[random.intn(len(names))]] <= wanted:
            total += requests[drawn]
            order.append(f"{drawn}{COPY}{copies}")
            copies += 1
    for _ in range(_WATCHES):
        random.float64()
    ranks = random.perm(len(nodes))
    by_rank = dict(zip(ranks, sorted(nodes), strict=True))
    return Orders(order, [by_rank[rank] for rank in range(len(nodes))])
