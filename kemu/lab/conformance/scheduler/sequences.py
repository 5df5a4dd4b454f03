"""Recorded sequences: pods that one scheduler decides on in turn, made again by its deciders.

A pod that finds a node is assumed there. Where a search begins, and so which nodes it finds, depends on all the
attempts before it; with ``parallelism: 1`` nothing is left to chance, and every decision must equal the recorded one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Handle
from kemu.emulated.scheduler.plugins import in_tree
from kemu.lab.conformance.scheduler import decisions
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime import random_streams

Json = dict[str, Any]


def answer(case: Mapping[str, Any]) -> Json:
    """What each attempt comes to. Raises ConfigurationError or ConversionError for a case that makes no sense."""
    cluster = decisions.cluster_of(case)
    configuration = configurations.configuration_of(case.get("configuration", {}))
    rng = random_streams.random_stream(0, "case")
    handle = Handle(cluster, rng)
    handle.latest = lambda pod: pod.pod
    handle.draws_lots = configuration.parallelism > 1
    percentage = configuration.percentage_of_nodes_to_score
    deciders = {
        one.scheduler_name: Decider(Profile(one, handle, in_tree.REGISTRY), cluster, rng, percentage)
        for one in configuration.profiles
    }
    waiting = [cluster.pending(convert.from_json(core_v1_pb2.Pod, pod)) for pod in case["pending"]]
    for pod in waiting:
        if pod.pod.status.nominatedNodeName:
            cluster.nominator.nominate(pod, pod.pod.status.nominatedNodeName)
    turns = []
    for pod in waiting:
        # Only a pod that comes from the queue begins a scheduling cycle, without which no results are reused.
        handle.scheduling_cycle += bool(case.get("popped"))
        decision = deciders[pod.pod.spec.schedulerName].decide(pod)
        assert decision.filtering is not None, "a case without nodes"
        turn: Json = {"pod": pod.name, "node": decision.node}
        if decision.node:
            turn |= {"evaluated": decision.evaluated, "feasible": decision.feasible}
            cluster.assume(pod, decision.node)
            cluster.nominator.remove(pod.uid)
        else:
            turn["message"] = decision.filtering.message()
        turns.append(turn)
    return {"id": case.get("id", ""), "decisions": turns}


def agrees(expect: Json, answered: Json) -> list[str]:
    """The attempts that differ. A failed one is recorded without the number of nodes that it looked at."""
    found = []
    pairs: Iterable[tuple[Json, Json]] = itertools.zip_longest(expect["decisions"], answered["decisions"], fillvalue={})
    for number, (recorded, ours) in enumerate(pairs):
        if _filled(recorded) != _filled(ours):
            found.append(f"decisions[{number}]: recorded {recorded}, kemu {ours}")
    return found


def _filled(turn: Json) -> Json:
    return {key: value for key, value in turn.items() if value}
