"""What controllers may be made of instead: the classes of their variants (:mod:`kemu.emulated.variants`).

TaintQueue             how fast lost nodes are tainted
Expectations           whether a controller waits for what its watch has still to show
DaemonSetController    when a failed pod is replaced
DisruptionController   what follows a conflict
ReplicaSetController   whether it reads what it has written
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.controllers import controllers
from kemu.emulated.controllers.disruption import DisruptionController
from kemu.emulated.controllers.jobs import contexts
from kemu.emulated.controllers.taint_queues import TaintQueue
from kemu.emulated.controllers.workloads import expectations
from kemu.emulated.controllers.workloads.daemon.daemon_sets import DaemonSetController
from kemu.emulated.controllers.workloads.replica_sets import ReplicaSetController
from kemu.emulated.variants import replaces
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env


@replaces(TaintQueue, "node-eviction-rate")
class _Unlimited(TaintQueue):
    """There is always a token."""

    def _spend(self, now_ns: int) -> bool:
        return True


@replaces(expectations.Expectations, "controller-expectations")
class _ExpectsNothing(expectations.Expectations):
    """For workloads."""

    def are_met(self, owner: str) -> bool:
        return True


@replaces(contexts.Expectations, "controller-expectations")
class _ExpectsNothingOfJobs(contexts.Expectations):
    """For Jobs."""

    def are_met(self, job: str) -> bool:
        return True


@replaces(DaemonSetController, "k8s-65240")
class _ReplacesAtOnce(DaemonSetController):
    """A failed pod is replaced without a back-off."""

    def _must_wait(self, owner: apps_v1_pb2.DaemonSet, node: str) -> bool:
        return False


@replaces(DisruptionController, "k8s-82149")
class _Insists(DisruptionController):
    """A status that met a conflict is written again, over all that was written meanwhile."""

    async def _write_status(self, budget: policy_v1_pb2.PodDisruptionBudget) -> None:
        try:
            await super()._write_status(budget)
        except errors.Conflict:
            latest = await self.client.get("poddisruptionbudgets", budget.metadata.name, budget.metadata.namespace)
            latest.status.CopyFrom(budget.status)
            await self.client.update_status(latest)


@replaces(ReplicaSetController, "k8s-129795")
class _ReadsItsWrites(ReplicaSetController):
    """No sync begins before the informers show what the last one has written, however long that takes."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._writes = expectations.Writes()

    async def reconcile(self, key: str) -> None:
        self._writes.check(key, {"pods": self.pods.revision, self.resource: self.owners.revision})
        await super().reconcile(key)

    def created(self, owner: apps_v1_pb2.ReplicaSet, pod: core_v1_pb2.Pod) -> None:
        self._writes.wrote(controllers.key_of(owner), "pods", pod)
        super().created(owner, pod)

    async def report(self, owner: apps_v1_pb2.ReplicaSet, *status: Any, **more: Any) -> KubernetesObject | None:
        written = await super().report(owner, *status, **more)
        if written is not None:
            self._writes.wrote(controllers.key_of(owner), self.resource, written)
        return written

    def forget(self, owner: apps_v1_pb2.ReplicaSet) -> None:
        self._writes.forget(controllers.key_of(owner))
        super().forget(owner)
