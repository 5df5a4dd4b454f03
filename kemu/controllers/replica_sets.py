"""The actor ``controller/replicaset``: so many pods of a template. Mirrors ``pkg/controller/replicaset``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

from kemu.controllers import workloads
from kemu.objects import meta

BURST = 500
"""Pods that are created or deleted at one look."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSetController(workloads.WorkloadController):
    """Factory: ``kemu.controllers.replica_sets:ReplicaSetController``."""

    resource, kind = "replicasets", "ReplicaSet"

    async def sync(self, owner: Any, pods: list[Any]) -> None:
        active = [pod for pod in pods if workloads.is_active(pod)]
        missing = min(owner.spec.replicas - len(active), BURST)
        if missing > 0:
            await self.all([self.create_pod(owner, self.new_pod(owner)) for _ in range(missing)], "create pods")
        else:
            self.complete(owner)
        if missing < 0:
            surplus = in_order_of_deletion(active, self.unix_ns())[: min(-missing, BURST)]
            await self.all([self.delete_pod(owner, pod) for pod in surplus], "delete pods")
        ready = sum(map(meta.is_ready, active))
        await self.report(owner, replicas=len(active), readyReplicas=ready, availableReplicas=ready)


def in_order_of_deletion(pods: Sequence[Any], now_unix_ns: int) -> list[Any]:
    """Who goes first when there are too many (``ActivePodsWithRanks``): not bound, not running, not ready, of lower
    deletion cost, beside more others of the set, ready for a shorter time (in powers of two), restarted more often, the
    youngest. Pods of which none of this tells any apart stay in their order."""
    beside = Counter(pod.spec.nodeName for pod in pods)

    def compare(one: Any, other: Any) -> int:
        a, b = _worth(one, beside), _worth(other, beside)
        if a != b:
            return -1 if a < b else 1
        if meta.is_ready(one):
            since, other_since = _ready_ns(one), _ready_ns(other)
            if since != other_since:
                ages = _magnitude(now_unix_ns - since), _magnitude(now_unix_ns - other_since)
                if ages[0] != ages[1]:
                    return ages[0] - ages[1]
                return -1 if one.metadata.uid < other.metadata.uid else 1
        young, other_young = _youth(one), _youth(other)
        return (young > other_young) - (young < other_young)

    return sorted(pods, key=cmp_to_key(compare))


def _worth(pod: Any, beside: Counter[str]) -> tuple[bool, int, bool, int, int]:
    phase = {"Pending": 0, "": 0, "Unknown": 1}.get(pod.status.phase, 2)
    node = pod.spec.nodeName
    return bool(node), phase, meta.is_ready(pod), _deletion_cost(pod), -beside[node]


def _deletion_cost(pod: Any) -> int:
    """A number that cannot be read counts as none."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    cost = int(text) if re.fullmatch("0|-?[1-9][0-9]{0,9}", text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _youth(pod: Any) -> tuple[int, int]:
    restarts = max((status.restartCount for status in pod.status.containerStatuses), default=0)
    return -restarts, -pod.metadata.creationTimestamp.seconds


def _ready_ns(pod: Any) -> int:
    condition = meta.get_condition(pod.status.conditions, "Ready")
    return meta.unix_ns(condition.lastTransitionTime) if condition is not None else 0


def _magnitude(age_ns: int) -> int:
    """The logarithm of an age to the base 2."""
    return age_ns.bit_length() - 1 if age_ns > 0 else -1
