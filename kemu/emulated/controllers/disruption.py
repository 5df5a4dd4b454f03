"""The actor ``controller/disruption``: keeps the status of disruption budgets up to date, which evictions read.

A budget allows as many disruptions as there are healthy pods beyond those it wants. A pod whose eviction was allowed
does not count as healthy until it is gone, for two minutes at most. If it is still there after that, it loses its
condition DisruptionTarget. Mirrors ``pkg/controller/disruption``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, workqueues
from kemu.emulated.controllers import controllers, label_indexes
from kemu.emulated.objects import meta, resources, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

DELETION_TIMEOUT_S = 2 * 60
"""After that, an allowed disruption no longer counts (``DeletionTimeout``)."""
STALE_DISRUPTION_S = 2 * 60
"""How long a pod keeps the condition DisruptionTarget without being deleted."""

ALLOWED = "DisruptionAllowed"
OwnerKey = tuple[str, str, str]
"""Kind, namespaced name and UID."""
OWNERS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
"""Kinds of owners that say how many pods there should be."""


class _Members:
    """The pods of one budget, counted: of 20,000 pods one that changes costs as much as of 20."""

    __slots__ = ("_budget", "_by_owner", "_pods", "healthy", "owners")

    def __init__(self, budget: str, by_owner: dict[OwnerKey, dict[str, None]]) -> None:
        self._budget = budget
        self._by_owner = by_owner
        self._pods: dict[str, tuple[bool, OwnerKey | None]] = {}
        """By key: whether it is healthy, and who controls it."""
        self.healthy = 0
        self.owners: dict[OwnerKey, int] = {}
        """How many pods each of them controls."""

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def is_healthy(self, key: str) -> bool:
        return self._pods[key][0]

    def put(self, key: str, pod: core_v1_pb2.Pod) -> None:
        self.remove(key)
        healthy = meta.is_ready(pod) and not pod.metadata.HasField("deletionTimestamp")
        reference = meta.controller_of(pod)
        owner = None
        if reference is not None and reference.kind in OWNERS:
            owner = reference.kind, f"{pod.metadata.namespace}/{reference.name}", reference.uid
            if owner not in self.owners:
                self._by_owner.setdefault(owner, {})[self._budget] = None
            self.owners[owner] = self.owners.get(owner, 0) + 1
        self._pods[key] = healthy, owner
        self.healthy += healthy

    def remove(self, key: str) -> None:
        healthy, owner = self._pods.pop(key, (False, None))
        self.healthy -= healthy
        if owner is not None:
            self.owners[owner] -= 1
            if not self.owners[owner]:
                del self.owners[owner]
                budgets = self._by_owner[owner]
                del budgets[self._budget]
                if not budgets:
                    del self._by_owner[owner]


class DisruptionController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.disruption:DisruptionController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="disruption")
        self._budgets: informers.Informer[policy_v1_pb2.PodDisruptionBudget] = informers.Informer(
            self.client,
            "poddisruptionbudgets",
            handler=informers.Callbacks(
                self._budget_changed, lambda old, new: self._budget_changed(new), self._budget_deleted
            ),
        )
        self._pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(self._pod_changed, lambda old, new: self._pod_changed(new), self._pod_deleted),
        )
        self._owners = {
            kind: informers.Informer(
                self.client,
                plural,
                handler=informers.Callbacks(self._owner_added, self._owner_updated, self._owner_deleted),
            )
            for kind, plural in OWNERS.items()
        }
        self._labels = label_indexes.LabelledObjects()
        """Labels of all pods."""
        self._selectors = label_indexes.Selectors()
        """Selectors of all budgets."""
        self._members: dict[str, _Members] = {}
        """By key of the budget."""
        self._budgets_of: dict[str, tuple[str, ...]] = {}
        """By key of the pod: the budgets that it is a member of."""
        self._by_owner: dict[OwnerKey, dict[str, None]] = {}
        """The budgets that have pods of an owner."""
        self._stale: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="stale_pod_disruption")
        """Pods that may have been marked for a disruption that did not happen."""

        self._deployments: informers.Informer[apps_v1_pb2.Deployment] | None = None
        """Not watched before a ReplicaSet has one."""
        self._sets_of: dict[str, dict[OwnerKey, None]] = {}
        """The ReplicaSets of a Deployment, by its UID."""

    async def run(self) -> None:
        await self.begin(*self._owners.values(), self._pods, self._budgets)
        self.env.spawn(self.work(self._stale, self._forgive), "stale disruptions")
        await self.work(self.queue, self._reconcile)

    # --- events ------------------------------------------------------------------------------------------------------

    def _enqueue(self, budget: str) -> None:
        self.queue.add_after(budget, self.lag_s())

    def _budget_changed(self, budget: policy_v1_pb2.PodDisruptionBudget) -> None:
        key, namespace, selector = controllers.key_of(budget), budget.metadata.namespace, _selector(budget)
        if self._selectors.put(key, namespace, selector):
            self._forget_members(key)
            members = self._members[key] = _Members(key, self._by_owner)
            for pod in self._labels.matching(namespace, selector):
                members.put(pod, self._pods.store[pod])
                self._budgets_of[pod] = (*self._budgets_of.get(pod, ()), key)
        self._enqueue(key)

    def _budget_deleted(self, budget: policy_v1_pb2.PodDisruptionBudget) -> None:
        key = controllers.key_of(budget)
        self._selectors.remove(key)
        self._forget_members(key)

    def _forget_members(self, budget: str) -> None:
        members = self._members.pop(budget, None)
        if members is None:
            return
        for pod in list(members):
            members.remove(pod)
            self._join(pod, tuple(other for other in self._budgets_of[pod] if other != budget))

    def _join(self, pod: str, budgets: tuple[str, ...]) -> None:
        if budgets:
            self._budgets_of[pod] = budgets
        else:
            self._budgets_of.pop(pod, None)

    def _owner_added(self, owner: KubernetesObject) -> None:
        above = meta.controller_of(owner)
        if above is not None and above.kind == "Deployment":
            self._sets_of.setdefault(above.uid, {})[_owner_key(owner)] = None
            if self._deployments is None:
                self._deployments = informers.Informer(
                    self.client,
                    "deployments",
                    handler=informers.Callbacks(
                        self._deployment_changed, self._deployment_updated, self._deployment_changed
                    ),
                )
                self._deployments.start()
        self._owner_changed(owner)

    def _owner_deleted(self, owner: KubernetesObject) -> None:
        above = meta.controller_of(owner)
        if above is not None:
            sets = self._sets_of.get(above.uid, {})
            sets.pop(_owner_key(owner), None)
            if not sets:
                self._sets_of.pop(above.uid, None)
        self._owner_changed(owner)

    def _deployment_updated(self, old: apps_v1_pb2.Deployment, new: apps_v1_pb2.Deployment) -> None:
        if old.spec.replicas != new.spec.replicas:
            self._deployment_changed(new)

    def _deployment_changed(self, deployment: apps_v1_pb2.Deployment) -> None:
        for key in self._sets_of.get(deployment.metadata.uid, ()):
            for budget in self._by_owner.get(key, ()):
                self._enqueue(budget)

    def _owner_updated(
        self,
        old: apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet,
        new: apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet,
    ) -> None:
        if meta.controller_of(old) != meta.controller_of(new):
            self._owner_deleted(old)
            self._owner_added(new)
        if old.spec.replicas != new.spec.replicas:
            self._owner_changed(new)

    def _owner_changed(self, owner: KubernetesObject) -> None:
        """Queue the budgets that have pods of this owner."""
        for budget in self._by_owner.get(_owner_key(owner), ()):
            self._enqueue(budget)

    def _pod_changed(self, pod: core_v1_pb2.Pod) -> None:
        """Queue the budgets of a pod, and the pod itself if it is marked for a disruption."""
        key, metadata = controllers.key_of(pod), pod.metadata
        self._labels.put(key, metadata.namespace, metadata.labels)
        before, now = (
            self._budgets_of.get(key, ()),
            tuple(self._selectors.matching(metadata.namespace, metadata.labels)),
        )
        for budget in before:
            if budget not in now:
                self._members[budget].remove(key)
                self._enqueue(budget)
        for budget in now:
            self._members[budget].put(key, pod)
            self._enqueue(budget)
        self._join(key, now)
        if _told_ns(pod) is not None:
            left_s = self._left_s(pod)
            if left_s is not None:
                self._stale.add_after(key, max(0.0, left_s))

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        key = controllers.key_of(pod)
        self._labels.remove(key)
        for budget in self._budgets_of.pop(key, ()):
            self._members[budget].remove(key)
            self._enqueue(budget)

    # --- budgets -----------------------------------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> None:
        budget = self._budgets.store.get(key)
        if budget is None:
            return
        members = self._members[key]
        expected, desired = self._wanted(budget, members)
        disrupted, recheck_s = self._disrupted(budget, members)
        healthy = members.healthy - sum(members.is_healthy(f"{budget.metadata.namespace}/{name}") for name in disrupted)
        if recheck_s is not None:
            self.queue.add_after(key, recheck_s)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        changed = meta.copied(budget)
        status = changed.status
        status.observedGeneration = budget.metadata.generation
        status.currentHealthy, status.desiredHealthy, status.expectedPods = healthy, desired, expected
        status.disruptionsAllowed = allowed
        for name in [name for name in sorted(status.disruptedPods) if name not in disrupted]:
            del status.disruptedPods[name]
        reason = "SufficientPods" if allowed else "InsufficientPods"
        meta.set_condition(status.conditions, ALLOWED, str(allowed > 0), reason, "", self.unix_ns())
        if status != budget.status:
            with contextlib.suppress(errors.NotFound):
                await self._write_status(changed)

    async def _write_status(self, budget: policy_v1_pb2.PodDisruptionBudget) -> None:
        """Raises :class:`kemu.errors.ApiError`; after a conflict the budget is looked at again."""
        await self.client.update_status(budget)

    def _wanted(self, budget: policy_v1_pb2.PodDisruptionBudget, members: _Members) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        spec = budget.spec
        if spec.HasField("maxUnavailable"):
            expected = self._scale(members)
            return expected, max(0, expected - _scaled(spec.maxUnavailable, expected))
        if spec.minAvailable.type == 0:
            return len(members), int(spec.minAvailable.intVal)
        expected = self._scale(members)
        return expected, _scaled(spec.minAvailable, expected)

    def _scale(self, members: _Members) -> int:
        """What the owners of the pods want together, a Deployment for all of its ReplicaSets. Pods that nobody controls
        do not count."""
        expected = 0
        counted: dict[str, None] = {}
        for kind, key, uid in members.owners:
            owner = self._owners[kind].store.get(key)
            if owner is None or owner.metadata.uid != uid:
                continue
            above = meta.controller_of(owner)
            if above is not None and above.kind == "Deployment" and self._deployments is not None:
                deployment = self._deployments.store.get(f"{owner.metadata.namespace}/{above.name}")
                if deployment is None or deployment.metadata.uid != above.uid or above.uid in counted:
                    continue
                counted[above.uid] = None
                expected += deployment.spec.replicas
            else:
                expected += owner.spec.replicas
        return expected

    def _disrupted(
        self, budget: policy_v1_pb2.PodDisruptionBudget, members: _Members
    ) -> tuple[list[str], float | None]:
        """Names of pods whose disruption was allowed and is still to come, and when to look at them again."""
        found, recheck_s = [], None
        for name in sorted(budget.status.disruptedPods):
            key = f"{budget.metadata.namespace}/{name}"
            if key not in members or self._pods.store[key].metadata.HasField("deletionTimestamp"):
                continue
            since_ns = meta.unix_ns(budget.status.disruptedPods[name])
            left_s = DELETION_TIMEOUT_S - (self.unix_ns() - since_ns) / SECOND_NS
            if left_s > 0:
                found.append(name)
                recheck_s = left_s if recheck_s is None else min(recheck_s, left_s)
        return found, recheck_s

    # --- disruptions that did not come -------------------------------------------------------------------------------

    def _left_s(self, pod: core_v1_pb2.Pod) -> float | None:
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
        changed = meta.copied(pod)
        meta.set_condition(changed.status.conditions, controllers.DISRUPTION_TARGET, "False", "", "", self.unix_ns())
        try:
            await self.client.update_status(changed)
        except errors.NotFound:
            return


def _owner_key(owner: KubernetesObject) -> OwnerKey:
    return resources.of(owner).kind, controllers.key_of(owner), owner.metadata.uid


def _selector(budget: policy_v1_pb2.PodDisruptionBudget) -> selectors.LabelSelector:
    """No selector selects nothing; an empty one everything in the namespace (policy/v1)."""
    return selectors.compile_labels_field(budget.spec, "selector")


def _told_ns(pod: core_v1_pb2.Pod) -> int | None:
    """When the pod was told that it will be disrupted (Unix ns); None: it was not."""
    condition = meta.get_condition(pod.status.conditions, controllers.DISRUPTION_TARGET)
    if condition is None or condition.status != "True":
        return None
    return meta.unix_ns(condition.lastTransitionTime)


def _scaled(value: meta_v1_pb2.IntOrString, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    if value.type == 0:
        return int(value.intVal)
    try:
        return math.ceil(int(value.strVal.removesuffix("%")) * total / 100)
    except ValueError:
        return 0
