"""The actor ``controller/replicaset``: a number of pods of one template. Mirrors ``pkg/controller/replicaset``.

At most 500 pods are created or deleted in one sync, and the next sync waits until the watch has shown them. So a
ReplicaSet of any size, 2,000,000,000 replicas included, grows step by step and never holds up the others.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from typing import Any, ClassVar, NamedTuple

from kemu import errors
from kemu.emulated.controllers import controllers, label_indexes
from kemu.emulated.controllers.workloads import availability, base, slow_start
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

BURST = 500
"""Pods that are created or deleted in one sync (``BurstReplicas``)."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
FAILURE = "ReplicaFailure"
"""The condition of a ReplicaSet whose last creations or deletions failed."""


class ReplicaSetController(base.WorkloadController[apps_v1_pb2.ReplicaSet]):
    """Factory: ``kemu.emulated.controllers.workloads.replica_sets:ReplicaSetController``."""

    resource, kind = "replicasets", "ReplicaSet"
    counts_terminating: ClassVar[bool] = True
    """Whether the status says how many pods are terminating."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._siblings: dict[str, dict[str, None]] = {}
        """Keys of the owners that one Deployment controls, by its UID."""
        self._labelled = label_indexes.LabelledObjects()
        """All pods, with any owner."""

    def owner_changed(self, old: apps_v1_pb2.ReplicaSet | None, new: apps_v1_pb2.ReplicaSet | None) -> None:
        before = None if old is None else meta.controller_of(old)
        now = None if new is None else meta.controller_of(new)
        if old is not None and before is not None:
            keys = self._siblings.get(before.uid, {})
            keys.pop(controllers.key_of(old), None)
            if not keys:
                self._siblings.pop(before.uid, None)
        if new is not None and now is not None:
            self._siblings.setdefault(now.uid, {})[controllers.key_of(new)] = None

    def _pod_changed(self, old: core_v1_pb2.Pod | None, pod: core_v1_pb2.Pod) -> None:
        super()._pod_changed(old, pod)
        if old is None or not meta.same_labels(old.metadata.labels, pod.metadata.labels):
            self._labelled.put(controllers.key_of(pod), pod.metadata.namespace, pod.metadata.labels)

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        super()._pod_deleted(pod)
        self._labelled.remove(controllers.key_of(pod))

    async def sync(self, owner: apps_v1_pb2.ReplicaSet, may_manage: bool) -> None:
        """``syncReplicaSet``. The status is written even while expectations are not met, and after a failure."""
        owned = list(self.owned(owner).values())
        active = await self.claim(owner, [pod for pod in owned if base.is_active(pod)], considers=base.is_active)
        failure = await self._manage(owner, active) if may_manage else None
        now_ns, min_ready_s = self.unix_ns(), owner.spec.minReadySeconds
        ready = sum(map(meta.is_ready, active))
        available = sum(availability.is_available(pod, min_ready_s, now_ns) for pod in active)
        labels = owner.spec.template.metadata.labels
        counts = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(_has_labels(pod, labels) for pod in active),
            "readyReplicas": ready,
            "availableReplicas": available,
        }
        if self.counts_terminating:
            selector = base.selector_of(owner)
            counts["terminatingReplicas"] = sum(
                pod.metadata.HasField("deletionTimestamp")
                and not pod_phases.is_terminal(pod)
                and selector.matches(pod.metadata.labels)
                for pod in owned
            )
        await self.report(owner, counts, self._conditions(owner, len(active), failure))
        if failure is not None:
            raise failure
        if min_ready_s > 0 and ready != available:
            wait_s = availability.next_check_s(active, min_ready_s, now_ns)
            self.queue.add_after(controllers.key_of(owner), min_ready_s if wait_s is None else wait_s)

    async def _manage(self, owner: apps_v1_pb2.ReplicaSet, active: list[core_v1_pb2.Pod]) -> errors.ApiError | None:
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
        doomed = active
        if surplus < len(active):
            beside = Counter(pod.spec.nodeName for pod in self._related(owner) if base.is_active(pod))
            doomed = in_order_of_deletion(active, beside, self.unix_ns())
        return await self.delete_pods(owner, doomed[:surplus])

    def _related(self, owner: apps_v1_pb2.ReplicaSet) -> list[core_v1_pb2.Pod]:
        """The pods that any ReplicaSet of its Deployment selects, with any owner; none where it has no Deployment
        (``getIndirectlyRelatedPods``)."""
        keys: dict[str, None] = {}
        above = meta.controller_of(owner)
        for key in self._siblings.get(above.uid, ()) if above is not None else ():
            sibling = self.owners.store.get(key)
            if sibling is not None:
                found = self._labelled.matching(sibling.metadata.namespace, base.selector_of(sibling))
                keys.update(dict.fromkeys(found))
        return [self.pods.store[key] for key in keys]

    def _conditions(
        self, owner: apps_v1_pb2.ReplicaSet, active: int, failure: errors.ApiError | None
    ) -> list[dict[str, str]] | None:
        """What the conditions become when ReplicaFailure comes or goes (``calculateStatus``); None: they stay."""
        known = meta.get_condition(owner.status.conditions, FAILURE)
        if (failure is not None) == (known is not None):
            return None
        kept = [convert.to_json(one) for one in owner.status.conditions if one is not known]
        if failure is None:
            return kept
        reason = "FailedCreate" if active < owner.spec.replicas else "FailedDelete"
        time = times.format_time(self.unix_ns() // SECOND_NS)
        return [
            *kept,
            {
                "type": FAILURE,
                "status": "True",
                "reason": reason,
                "message": failure.message,
                "lastTransitionTime": time,
            },
        ]


def _has_labels(pod: core_v1_pb2.Pod, labels: Mapping[str, str]) -> bool:
    have = pod.metadata.labels
    return all(have.get(key) == labels[key] for key in labels)


def in_order_of_deletion(
    pods: Sequence[core_v1_pb2.Pod], beside: Mapping[str, int], now_unix_ns: int
) -> list[core_v1_pb2.Pod]:
    """Which pods go first when there are too many (``ActivePodsWithRanks``): those that are not bound, not running, not
    ready, have a lower deletion cost, share their node with more pods of the Deployment, have been ready for a shorter
    time, have restarted more often, are younger. Times count in powers of two, and the UID decides between equal ones.
    Pods that are equal in all this keep their order.

    ``beside``: pods of the Deployment by node."""

    def compare(one: _Ranked, other: _Ranked) -> int:
        if one.worth != other.worth:
            return -1 if one.worth < other.worth else 1
        if one.ready_ns is not None and one.ready_ns != other.ready_ns:
            return _by_age(one, other, one.ready_ns, other.ready_ns or 0, now_unix_ns)
        if one.restarts != other.restarts:
            return -1 if one.restarts > other.restarts else 1
        if one.created_ns != other.created_ns:
            return _by_age(one, other, one.created_ns, other.created_ns, now_unix_ns)
        return 0

    return [each.pod for each in sorted((_ranked(pod, beside) for pod in pods), key=cmp_to_key(compare))]


class _Ranked(NamedTuple):
    """A pod with what it is compared by, read once."""

    pod: core_v1_pb2.Pod
    uid: str
    worth: tuple[bool, int, bool, int, int]
    ready_ns: int | None
    """None: it is not ready. Pods of equal worth are both ready or both not."""
    restarts: tuple[int, int]
    """Restarts of containers and of sidecars, the most."""
    created_ns: int


def _ranked(pod: core_v1_pb2.Pod, beside: Mapping[str, int]) -> _Ranked:
    phase = {"Pending": 0, "": 0, "Unknown": 1}.get(pod.status.phase, 2)
    ready = meta.get_condition(pod.status.conditions, "Ready")
    is_ready = ready is not None and ready.status == "True"
    node = pod.spec.nodeName
    worth = bool(node), phase, is_ready, _deletion_cost(pod), -beside.get(node, 0)
    metadata = pod.metadata
    return _Ranked(
        pod,
        metadata.uid,
        worth,
        meta.unix_ns(ready.lastTransitionTime) if ready is not None and is_ready else None,
        _restarts(pod),
        meta.unix_ns(metadata.creationTimestamp),
    )


def _by_age(one: _Ranked, other: _Ranked, one_ns: int, other_ns: int, now_ns: int) -> int:
    """The younger first; a time that is not set counts as youngest (``afterOrZero``)."""
    if not one_ns or not other_ns:
        return -1 if not one_ns else 1
    difference = _magnitude(now_ns - one_ns) - _magnitude(now_ns - other_ns)
    if difference:
        return difference
    return -1 if one.uid < other.uid else 1


def _deletion_cost(pod: core_v1_pb2.Pod) -> int:
    """A number that cannot be read counts as none."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    cost = int(text) if re.fullmatch("0|-?[1-9][0-9]{0,9}", text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _restarts(pod: core_v1_pb2.Pod) -> tuple[int, int]:
    """``maxContainerRestarts``."""
    sidecars = [container.name for container in pod.spec.initContainers if container.restartPolicy == "Always"]
    status = pod.status
    of_sidecars = (one.restartCount for one in status.initContainerStatuses if one.name in sidecars)
    return max((one.restartCount for one in status.containerStatuses), default=0), max(of_sidecars, default=0)


def _magnitude(age_ns: int) -> int:
    """The logarithm of an age to the base 2, rounded as Go's ``math.Log2`` rounds."""
    if age_ns <= 0:
        return -1
    fraction, exponent = math.frexp(age_ns)
    return exponent - 1 if fraction == 0.5 else int(math.log(fraction) * (1 / math.log(2)) + exponent)
