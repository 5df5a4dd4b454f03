"""The actor ``controller/statefulset``: pods with stable names, ``<set>-<ordinal>``.

A pod that has ended is deleted, and only when it has gone from the API is another created under its name: as long as
nobody can tell whether a lost node still runs it, it is not replaced. Volume claims are not simulated (a set with
``volumeClaimTemplates`` is refused), nor are updates of the template. Mirrors ``pkg/controller/statefulset``.
"""

from __future__ import annotations

import re
from typing import Any

from kemu import errors
from kemu.controllers import controllers
from kemu.controllers.workloads import availability, base, slow_start
from kemu.objects import meta, pod_phases

LARGEST_BATCH = 500
"""Of pods that are looked at together where the set is managed in parallel (``MaxBatchSize``)."""


class StatefulSetController(base.WorkloadController):
    """Factory: ``kemu.controllers.workloads.stateful_sets:StatefulSetController``."""

    resource, kind = "statefulsets", "StatefulSet"

    def place(self, pod: Any) -> str:
        """Its name."""
        return str(pod.metadata.name)

    async def sync(self, owner: Any, may_manage: bool) -> None:
        def is_member(pod: Any) -> bool:
            return _ordinal_of(owner, pod) >= 0

        pods = await self.claim(owner, list(self.owned(owner).values()), fits=is_member)
        failure = await self._manage(owner, pods) if may_manage else None
        now_ns, min_ready_s = self.unix_ns(), owner.spec.minReadySeconds
        ready = [pod for pod in pods if _runs_and_is_ready(pod)]
        available = sum(availability.is_available(pod, min_ready_s, now_ns) for pod in ready)
        await self.report(owner, replicas=len(pods), readyReplicas=len(ready), availableReplicas=available)
        if failure is not None:
            raise failure
        wait_s = availability.next_check_s(ready, min_ready_s, now_ns)
        if wait_s is not None:
            self.queue.add_after(controllers.key_of(owner), wait_s)

    async def _manage(self, owner: Any, pods: list[Any]) -> errors.ApiError | None:
        """``updateStatefulSet`` up to the updates of the template."""
        by_ordinal = {_ordinal_of(owner, pod): pod for pod in pods}
        first = owner.spec.ordinals.start
        wanted = range(first, first + owner.spec.replicas)
        if owner.spec.podManagementPolicy == "Parallel":
            return await self._manage_in_parallel(owner, by_ordinal, wanted)
        return await self._manage_in_order(owner, by_ordinal, wanted)

    async def _manage_in_order(self, owner: Any, pods: dict[int, Any], wanted: range) -> errors.ApiError | None:
        """The next pod is created when the one before is available, and deleted when all that stay are."""
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if _is_missing(pod):
                return await self._create_or_delete(owner, ordinal, pod)
            if not self._is_healthy(owner, pod):
                return None
        self.losses.forget(owner.metadata.uid)
        condemned = _condemned(pods, wanted)
        first_unhealthy = next((pod for pod in reversed(condemned) if not self._is_healthy(owner, pod)), None)
        for pod in condemned[:1]:
            if pod.metadata.HasField("deletionTimestamp"):
                return None
            if not self._is_healthy(owner, pod) and pod is not first_unhealthy:
                return None
            return await self.delete_pods(owner, [pod])
        return None

    async def _manage_in_parallel(self, owner: Any, pods: dict[int, Any], wanted: range) -> errors.ApiError | None:
        async def process(ordinal: int) -> None:
            failure = await self._create_or_delete(owner, ordinal, pods.get(ordinal))
            if failure is not None:
                raise failure

        # Found as they are needed: a set may want 2,000,000,000.
        todo = (ordinal for ordinal in wanted if _is_missing(pods.get(ordinal)))
        _, failure = await slow_start.each(self.env, todo, process, LARGEST_BATCH)
        if failure is not None:
            return failure
        # Every pod that was missing has been created, or is to come when its predecessor has gone.
        doomed = [pod for pod in _condemned(pods, wanted) if not pod.metadata.HasField("deletionTimestamp")]
        return await self.delete_pods(owner, doomed)

    async def _create_or_delete(self, owner: Any, ordinal: int, pod: Any | None) -> errors.ApiError | None:
        """Create the pod, or delete one that has ended; its successor is created when it has gone."""
        if pod is not None:
            return await self.delete_pods(owner, [pod])
        try:
            await self.create_pod(owner, self.new_pod(owner, f"{owner.metadata.name}-{ordinal}"))
        except errors.ApiError as error:
            return error
        return None

    def _is_healthy(self, owner: Any, pod: Any) -> bool:
        """Running, available and not being deleted."""
        return (
            not pod.metadata.HasField("deletionTimestamp")
            and _runs_and_is_ready(pod)
            and availability.is_available(pod, owner.spec.minReadySeconds, self.unix_ns())
        )


def _is_missing(pod: Any | None) -> bool:
    """Whether there is none, or one that has ended and has to make room for another of its name."""
    return pod is None or (pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp"))


def _condemned(pods: dict[int, Any], wanted: range) -> list[Any]:
    """Those beyond what is wanted, the highest ordinal first."""
    return [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]


def _runs_and_is_ready(pod: Any) -> bool:
    return pod.status.phase == pod_phases.RUNNING and meta.is_ready(pod)


def _ordinal_of(owner: Any, pod: Any) -> int:
    """-1: the pod cannot be a member of the set (``isMemberOf``)."""
    parent, _, ordinal = pod.metadata.name.rpartition("-")
    is_number = re.fullmatch("[0-9]+", ordinal) is not None
    return int(ordinal) if parent == owner.metadata.name and is_number else -1
