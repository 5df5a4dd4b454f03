"""What controllers may be made of instead: the classes of their variants (:mod:`kemu.emulated.variants`).

TaintQueue             how fast lost nodes are tainted
Expectations           whether a controller waits for what its watch has still to show
DaemonSetController    when a failed pod is replaced
DisruptionController   what follows a conflict
Writes                 whether a controller reads what it has written
"""

from __future__ import annotations

from kemu import errors
from kemu.emulated.controllers.disruption import DisruptionController
from kemu.emulated.controllers.jobs import contexts
from kemu.emulated.controllers.taint_queues import TaintQueue
from kemu.emulated.controllers.workloads import expectations
from kemu.emulated.controllers.workloads.daemon.daemon_sets import DaemonSetController
from kemu.emulated.variants import replaces
from kemu.messages.k8s import apps_v1_pb2, policy_v1_pb2


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


@replaces(expectations.Writes, "controller-expectations")
class _ReadsWhatThereIs(expectations.Writes):
    """For workloads: nor does a controller wait until it reads what it wrote."""

    def check(self, owner: str) -> None:
        pass


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


@replaces(expectations.Writes, "k8s-129795")
class _TrustsItsExpectations(expectations.Writes):
    """For workloads: a sync begins whatever the informers show."""

    def check(self, owner: str) -> None:
        pass
