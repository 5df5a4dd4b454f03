"""The actor ``controller/replicaset``: a number of pods of one template. Mirrors ``pkg/controller/replicaset``.

At most 500 pods are created or deleted in one sync, and the next sync waits until the watch has shown them. So a
ReplicaSet of any size, 2,000,000,000 replicas included, grows step by step and never holds up the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Any, NamedTuple

from kemu import errors
from kemu.controllers import controllers
from kemu.controllers.workloads import availability, base, slow_start
from kemu.objects import meta, pod_phases, times
from kemu.runtime.env import SECOND_NS

BURST = 500
"""Pods that are created or deleted in one sync (``BurstReplicas``)."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
FAILURE = "ReplicaFailure"
"""The condition of a ReplicaSet whose last creations or deletions failed."""


class ReplicaSetController(base.WorkloadController):
    """Factory: ``kemu.controllers.workloads.replica_sets:ReplicaSetController``."""

    resource, kind = "replicasets", "ReplicaSet"

    async def sync(self, owner: Any, may_manage: bool) -> None:
        """``syncReplicaSet``. The status is written even while expectations are not met, and after a failure."""
        owned = self.owned(owner).values()
        active = await self.claim(owner, [pod for pod in owned if base.is_active(pod)], considers=base.is_active)
        failure = await self._manage(owner, active) if may_manage else None
        now_ns, min_ready_s = self.unix_ns(), owner.spec.minReadySeconds
        ready = sum(map(meta.is_ready, active))
        available = sum(availability.is_available(pod, min_ready_s, now_ns) for pod in active)
        labels = owner.spec.template.metadata.labels
        await self.report(
            owner,
            self._conditions(owner, len(active), failure),
            replicas=len(active),
            fullyLabeledReplicas=sum(_has_labels(pod, labels) for pod in active),
            readyReplicas=ready,
            availableReplicas=available,
            terminatingReplicas=sum(
                pod.metadata.HasField("deletionTimestamp") and not pod_phases.is_terminal(pod) for pod in owned
            ),
        )
        if failure is not None:
            raise failure
        if ready != available:
            wait_s = availability.next_check_s(active, min_ready_s, now_ns)
            self.queue.add_after(controllers.key_of(owner), min_ready_s if wait_s is None else wait_s)

    async def _manage(self, owner: Any, active: list[Any]) -> errors.ApiError | None:
        """``manageReplicas``. Returns the first failure."""
        missing = owner.spec.replicas - len(active)
        if missing <= 0:
            self.losses.forget(owner.metadata.uid)
        if missing > 0:
            _, failure = await slow_start.each(
                self.env, range(min(missing, BURST)), lambda _: self.create_pod(owner, self.new_pod(owner))
            )
            return failure
        if missing == 0:
            return None
        surplus = min(-missing, BURST)
        ordered = in_order_of_deletion(active, self.unix_ns()) if surplus < len(active) else active
        return await self.delete_pods(owner, ordered[:surplus])

    def _conditions(self, owner: Any, active: int, failure: errors.ApiError | None) -> list[dict[str, str]] | None:
        """What the conditions become when ReplicaFailure comes or goes (``calculateStatus``); None: they stay."""
        has_failed = meta.get_condition(owner.status.conditions, FAILURE) is not None
        if (failure is not None) == has_failed:
            return None
        if failure is None:
            return []
        reason = "FailedCreate" if active < owner.spec.replicas else "FailedDelete"
        time = times.format_time(self.unix_ns() // SECOND_NS)
        return [
            {
                "type": FAILURE,
                "status": "True",
                "reason": reason,
                "message": failure.message,
                "lastTransitionTime": time,
            }
        ]


def _has_labels(pod: Any, labels: Mapping[str, str]) -> bool:
    have = pod.metadata.labels
    return all(have.get(key) == labels[key] for key in labels)


def in_order_of_deletion(pods: Sequence[Any], now_unix_ns: int) -> list[Any]:
    """Which pods go first when there are too many (``ActivePodsWithRanks``): those that are not bound, not running, not
    ready, have a lower deletion cost, share their node with more pods of the set, have been ready for a shorter time
    (in powers of two), have restarted more often, are younger. Pods that are equal in all this keep their order."""
    beside = Counter(pod.spec.nodeName for pod in pods)

    def compare(one: _Ranked, other: _Ranked) -> int:
        if one.worth != other.worth:
            return -1 if one.worth < other.worth else 1
        if one.ready_ns is not None and other.ready_ns is not None and one.ready_ns != other.ready_ns:
            ages = _magnitude(now_unix_ns - one.ready_ns), _magnitude(now_unix_ns - other.ready_ns)
            if ages[0] != ages[1]:
                return ages[0] - ages[1]
            return -1 if one.uid < other.uid else 1
        return (one.youth > other.youth) - (one.youth < other.youth)

    ranked = (
        _Ranked(pod, pod.metadata.uid, _worth(pod, beside), _ready_ns(pod) if meta.is_ready(pod) else None, _youth(pod))
        for pod in pods
    )
    return [each.pod for each in sorted(ranked, key=cmp_to_key(compare))]


class _Ranked(NamedTuple):
    """A pod with what it is compared by, read once."""

    pod: Any
    uid: str
    worth: tuple[bool, int, bool, int, int]
    ready_ns: int | None
    """None: it is not ready. Pods of equal worth are both ready or both not."""
    youth: tuple[int, int]


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
