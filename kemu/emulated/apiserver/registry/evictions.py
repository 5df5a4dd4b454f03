"""The Eviction subresource: a delete that asks the pod's disruption budget first (``core/pod/storage/eviction.go``)."""

from __future__ import annotations

from typing import cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.registry import entries, strategies
from kemu.emulated.apiserver.registry.deletions import Deletion
from kemu.emulated.apiserver.registry.registry import PODS, Registry
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.selections import NAMESPACE
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.objects import meta, resources, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from kemu.messages.v1 import api_pb2

MAX_DISRUPTED_PODS = 2_000
"""Evictions that the disruption controller has not confirmed yet."""
WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."

BUDGETS = resources.BY_PLURAL["poddisruptionbudgets"]


class Evictor:
    def __init__(self, pods: Registry) -> None:
        self._registry = pods

    async def evict(self, request: api_pb2.EvictRequest) -> tuple[Entry, bool]:
        """The pod as it is now, or its last state; and whether it is gone.

        Raises :class:`kemu.errors.TooManyRequests` when the budget does not allow it.
        """
        writes = self._registry
        name = request.name
        namespace = entries.addressed(PODS, request.namespace, name)
        key = resources.key(PODS, namespace, name)
        turn = writes.turns.take(key)
        if turn is not None:
            await writes.turns.wait(key, turn)
        try:
            while True:
                entry = await writes.storage.read(key)
                if entry is None:
                    raise errors.not_found(PODS, name)
                pod = cast(core_v1_pb2.Pod, entries.parse(PODS, entry))
                wanted = request.preconditions
                grace_s = request.grace_period_seconds if request.HasField("grace_period_seconds") else None
                deletion = Deletion(grace_s, wanted.uid, wanted.resource_version, by_eviction=True)
                writes.check_deletion(PODS, entry, pod.metadata, deletion)
                budget = "" if _needs_no_budget(pod) else await self._spend(pod)
                # It must not become ready, and count, between our look and its deletion.
                unchanged = not deletion.resource_version and not _is_over(pod) and not meta.is_ready(pod)
                if unchanged:
                    deletion.resource_version = str(entry.revision)
                try:
                    return await writes.rewrite(strategies.STRATEGIES["pods"], key, name, writes.deleted, deletion)
                except kemu_errors.Conflict:
                    if not unchanged:
                        raise
                    if budget:
                        raise _still_processed(budget) from None
        finally:
            writes.turns.leave(key)

    async def _spend(self, pod: core_v1_pb2.Pod) -> str:
        """Take one disruption from the pod's budget, unless it costs nothing. Returns the name of the budget, or ""."""
        found = self._budgets_of(pod)
        if not found:
            return ""
        if len(found) > 1:
            raise kemu_errors.InternalError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        budget = found[0]
        name: str = budget.metadata.name
        status = budget.status
        if not meta.is_ready(pod):
            # A pod that is not ready causes no disruption as long as there are enough others, or if the budget says so.
            enough = status.currentHealthy >= status.desiredHealthy > 0
            if enough or budget.spec.unhealthyPodEvictionPolicy == "AlwaysAllow":
                return name
        strategy = strategies.STRATEGIES["poddisruptionbudgets"]
        key = resources.key(BUDGETS, budget.metadata.namespace, name)
        turns = self._registry.turns
        turn = turns.take(key)
        if turn is not None:
            await turns.wait(key, turn)
        try:
            await self._registry.rewrite(strategy, key, name, self._decremented, pod.metadata.name)
        finally:
            turns.leave(key)
        return name

    def _budgets_of(self, pod: core_v1_pb2.Pod) -> list[policy_v1_pb2.PodDisruptionBudget]:
        """The budgets that select a pod, by name. One without a selector, or with an empty one, selects nothing."""
        metadata = pod.metadata
        found = []
        collection = self._registry.cache.collections["poddisruptionbudgets"]
        for entry in collection.in_index(NAMESPACE, metadata.namespace):
            budget = cast(policy_v1_pb2.PodDisruptionBudget, entries.parse(BUDGETS, entry))
            selector = selectors.compile_labels_field(budget.spec, "selector")
            if not selector.everything and selector.matches(metadata.labels):
                found.append(budget)
        return found

    def _decremented(self, strategy: Strategy, entry: Entry, pod_name: str) -> bytes:
        """``checkAndDecrement``."""
        budget = cast(policy_v1_pb2.PodDisruptionBudget, entries.parse(BUDGETS, entry))
        name, status = budget.metadata.name, budget.status
        if status.observedGeneration < budget.metadata.generation:
            raise _still_processed(name)
        if status.disruptionsAllowed < 0:
            raise errors.forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
        if len(status.disruptedPods) > MAX_DISRUPTED_PODS:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise errors.forbidden(BUDGETS, name, why)
        if status.disruptionsAllowed == 0:
            what = (
                f"The disruption budget {name} needs {status.desiredHealthy} healthy pods "
                f"and has {status.currentHealthy} currently"
            )
            raise kemu_errors.TooManyRequests(WOULD_VIOLATE, causes=[Cause("", "DisruptionBudget", what)])
        self._account(budget, pod_name)
        value: bytes = budget.SerializeToString(deterministic=True)
        return value

    def _account(self, budget: policy_v1_pb2.PodDisruptionBudget, pod_name: str) -> None:
        """The disruption counts from now on; the disruption controller takes it over when it sees the pod go."""
        status, now_ns = budget.status, self._registry.unix_now_ns()
        status.disruptionsAllowed -= 1
        if status.disruptionsAllowed == 0:
            meta.set_condition(status.conditions, "DisruptionAllowed", "False", "InsufficientPods", "", now_ns)
        meta.set_time(status.disruptedPods[pod_name], now_ns)


def _is_over(pod: core_v1_pb2.Pod) -> bool:
    """The pod has ended, or is being deleted."""
    return pod_phases.is_terminal(pod) or pod.metadata.HasField("deletionTimestamp")


def _needs_no_budget(pod: core_v1_pb2.Pod) -> bool:
    return _is_over(pod) or pod.status.phase == "Pending"


def _still_processed(budget: str) -> kemu_errors.TooManyRequests:
    cause = Cause("", "DisruptionBudget", f"The disruption budget {budget} is still being processed by the server.")
    return kemu_errors.TooManyRequests(WOULD_VIOLATE, causes=[cause])
