"""The actor ``controller/disruption``: keeps the status of disruption budgets, so that evictions can ask it.

A budget allows as many disruptions as there are healthy pods beyond those it wants. Pods whose eviction was allowed and
that have not gone yet do not count as healthy, for two minutes at the most; a pod that was told so and is still there
after that loses its condition DisruptionTarget. Mirrors ``pkg/controller/disruption``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.client import informers, workqueues
from kemu.controllers import controllers
from kemu.objects import meta, pod_phases, selectors
from kemu.runtime.env import SECOND_NS, Env

DELETION_TIMEOUT_S = 2 * 60
"""How long a disruption that was allowed is waited for (``DeletionTimeout``)."""
STALE_DISRUPTION_S = 2 * 60
"""How long a pod keeps the condition DisruptionTarget without being deleted."""

ALLOWED = "DisruptionAllowed"
OWNERS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
"""Kinds of owners that say how many pods there should be."""


class DisruptionController(controllers.Controller):
    """Factory: ``kemu.controllers.disruption:DisruptionController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        self._budgets = informers.Informer(self.client, "poddisruptionbudgets", handler=_Budgets(self))
        self._pods = informers.Informer(self.client, "pods", handler=self)
        self._owners = {
            kind: informers.Informer(self.client, plural, handler=_Owners(self)) for kind, plural in OWNERS.items()
        }
        self._stale: workqueues.WorkQueue[str] = workqueues.WorkQueue(env)
        """Pods that may have been told of a disruption that did not come."""

    async def run(self) -> None:
        await self.begin(*self._owners.values(), self._pods, self._budgets)
        self.env.spawn(self.work(self._stale, self._forgive), "stale disruptions")
        await self.work(self.queue, self._reconcile)

    # --- news --------------------------------------------------------------------------------------------------------

    def enqueue(self, budget: Any) -> None:
        self.queue.add_after(controllers.key_of(budget), self.lag_s())

    def enqueue_all(self, namespace: str) -> None:
        for budget in self._budgets.store.values():
            if budget.metadata.namespace == namespace:
                self.enqueue(budget)

    def on_add(self, obj: Any) -> None:
        self._wake(obj)

    def on_update(self, old: Any, new: Any) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._wake(old)
        self._wake(new)

    def on_delete(self, old: Any) -> None:
        self._wake(old)

    def _wake(self, pod: Any) -> None:
        """The budgets of a pod look again; so does somebody at the pod itself if it waits to be disrupted."""
        metadata = pod.metadata
        for budget in self._budgets.store.values():
            if budget.metadata.namespace == metadata.namespace and _selector(budget).matches(metadata.labels):
                self.enqueue(budget)
        if _told_ns(pod) is not None:
            left_s = self._left_s(pod)
            if left_s is not None:
                self._stale.add_after(controllers.key_of(pod), max(0.0, left_s))

    # --- budgets -----------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> None:
        budget = self._budgets.store.get(key)
        if budget is None:
            return
        selector = _selector(budget)
        pods = [
            pod
            for pod in self._pods.store.values()
            if pod.metadata.namespace == budget.metadata.namespace and selector.matches(pod.metadata.labels)
        ]
        expected, desired = self._wanted(budget, pods)
        disrupted, recheck_s = self._disrupted(budget, pods)
        healthy = sum(
            meta.is_ready(pod) and not pod.metadata.HasField("deletionTimestamp")
            for pod in pods
            if pod.metadata.name not in disrupted
        )
        if recheck_s is not None:
            self.queue.add_after(key, recheck_s)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        changed = type(budget)()
        changed.CopyFrom(budget)
        status = changed.status
        status.observedGeneration = budget.metadata.generation
        status.currentHealthy, status.desiredHealthy, status.expectedPods = healthy, desired, expected
        status.disruptionsAllowed = allowed
        for name in [name for name in sorted(status.disruptedPods) if name not in disrupted]:
            del status.disruptedPods[name]
        reason = "SufficientPods" if allowed else "InsufficientPods"
        meta.set_condition(status.conditions, ALLOWED, str(allowed > 0), reason, "", self.unix_ns())
        if status != budget.status:
            try:
                await self.client.update_status(changed)
            except errors.NotFound:
                return

    def _wanted(self, budget: Any, pods: list[Any]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        spec = budget.spec
        if spec.HasField("maxUnavailable"):
            expected = self._scale(pods)
            return expected, max(0, expected - _scaled(spec.maxUnavailable, expected))
        if spec.minAvailable.type == 0:
            return len(pods), int(spec.minAvailable.intVal)
        expected = self._scale(pods)
        return expected, _scaled(spec.minAvailable, expected)

    def _scale(self, pods: list[Any]) -> int:
        """What the owners of the pods want together. Pods that nobody controls do not count."""
        found: dict[str, int] = {}
        for pod in pods:
            reference = meta.controller_of(pod)
            if reference is None or reference.uid in found or reference.kind not in self._owners:
                continue
            owner = self._owners[reference.kind].store.get(f"{pod.metadata.namespace}/{reference.name}")
            if owner is not None and owner.metadata.uid == reference.uid:
                found[reference.uid] = owner.spec.replicas
        return sum(found.values())

    def _disrupted(self, budget: Any, pods: list[Any]) -> tuple[set[str], float | None]:
        """Names of pods whose disruption was allowed and is still to come, and when to look at them again."""
        there = {pod.metadata.name: pod for pod in pods}
        found, recheck_s = set(), None
        for name in sorted(budget.status.disruptedPods):
            pod = there.get(name)
            if pod is None or pod.metadata.HasField("deletionTimestamp"):
                continue
            since_ns = meta.unix_ns(budget.status.disruptedPods[name])
            left_s = DELETION_TIMEOUT_S - (self.unix_ns() - since_ns) / SECOND_NS
            if left_s > 0:
                found.add(name)
                recheck_s = left_s if recheck_s is None else min(recheck_s, left_s)
        return found, recheck_s

    # --- disruptions that did not come -------------------------------------------------------------------------------

    def _left_s(self, pod: Any) -> float | None:
        """Until the condition is stale; None: it is not going to be."""
        told_ns = _told_ns(pod)
        if told_ns is None or pod.metadata.HasField("deletionTimestamp") or pod_phases.is_terminal(pod):
            return None
        return STALE_DISRUPTION_S - (self.unix_ns() - told_ns) / SECOND_NS

    async def _forgive(self, key: str) -> None:
        pod = self._pods.store.get(key)
        left_s = None if pod is None else self._left_s(pod)
        if pod is None or left_s is None:
            return
        if left_s > 0:
            self._stale.add_after(key, left_s)
            return
        changed = type(pod)()
        changed.CopyFrom(pod)
        meta.set_condition(changed.status.conditions, controllers.DISRUPTION_TARGET, "False", "", "", self.unix_ns())
        try:
            await self.client.update_status(changed)
        except errors.NotFound:
            return


def _selector(budget: Any) -> selectors.LabelSelector:
    """No selector selects nothing; an empty one everything in the namespace (policy/v1)."""
    return selectors.compile_labels_field(budget.spec, "selector")


def _told_ns(pod: Any) -> int | None:
    """When the pod was told that it will be disrupted (Unix ns); None: it was not."""
    condition = meta.get_condition(pod.status.conditions, controllers.DISRUPTION_TARGET)
    if condition is None or condition.status != "True":
        return None
    return meta.unix_ns(condition.lastTransitionTime)


def _scaled(value: Any, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    if value.type == 0:
        return int(value.intVal)
    try:
        return math.ceil(int(value.strVal.removesuffix("%")) * total / 100)
    except ValueError:
        return 0


class _Budgets:
    """News of budgets."""

    def __init__(self, controller: DisruptionController) -> None:
        self._controller = controller

    def on_add(self, obj: Any) -> None:
        self._controller.enqueue(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._controller.enqueue(new)

    def on_delete(self, old: Any) -> None: ...


class _Owners:
    """News of those who want pods."""

    def __init__(self, controller: DisruptionController) -> None:
        self._controller = controller

    def on_add(self, obj: Any) -> None:
        self._controller.enqueue_all(obj.metadata.namespace)

    def on_update(self, old: Any, new: Any) -> None:
        if old.spec.replicas != new.spec.replicas:
            self.on_add(new)

    def on_delete(self, old: Any) -> None:
        self.on_add(old)
