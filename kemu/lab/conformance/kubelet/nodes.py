"""One node for recorded cases: the kubelet's pod workers, arrivals and status manager, on a control plane.

What becomes of a pod is read from the API server, where the status manager has written it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.kubelet.admission import arrivals, predicates
from kemu.emulated.kubelet.pods import claims, statuses
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.sync import pod_workers
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import core_v1_pb2

Json = dict[str, Any]
_SETTLES_S = 60.0


class Arrivals(arrivals.Arrivals):
    """Notes each decision, with all the reasons that were found."""

    decision: predicates.Decision | None = None
    """The latest."""
    found: tuple[predicates.Failure, ...] | None = None
    """Instead of what the checks find."""

    def _decided(self, worker: Worker, decision: predicates.Decision, claim: claims.Claim | None) -> None:
        self.decision = decision
        super()._decided(worker, decision, claim)

    def _recover(self, worker: Worker, claim: claims.Claim, found: tuple[predicates.Failure, ...]) -> None:
        super()._recover(worker, claim, found if self.found is None else self.found)


class PodWorkers(pod_workers.PodWorkers):
    """Notes each kill and its grace period, where that is not the pod's own."""

    arrivals: Arrivals

    def __init__(self, plane: ControlPlane, name: str, fresh_node: core_v1_pb2.Node | None = None) -> None:
        async def read_again() -> core_v1_pb2.Node | None:
            return fresh_node

        super().__init__(
            plane.env,
            plane.client,
            kubelet_configurations.read({}, {}),
            name,
            lambda usage, host: Arrivals(plane.env, name, usage, host, read_again),
        )
        # The pods of a case state what they were allocated, which the real kubelet reads from its checkpoint.
        self.allocations.adopt = lambda worker: worker.pod  # type: ignore[method-assign]
        self.killed: list[tuple[Worker, int | None]] = []
        self._plane = plane

    def kill(
        self,
        worker: Worker,
        failure: statuses.Failure,
        gone: Callable[[], None] | None = None,
        grace_s: int | None = None,
    ) -> None:
        self.killed.append((worker, grace_s))
        super().kill(worker, failure, gone, grace_s)

    async def arrive(self, *pods: core_v1_pb2.Pod, running: bool = False) -> list[Worker]:
        """``running``: they have been admitted before."""
        for pod in pods:
            there = meta.copied(pod)
            if running:
                there.status.phase = pod_phases.RUNNING
            await self._plane.put(there)
        for pod in pods:
            self.observe(await self._plane.get(pod))
        return [self.by_uid[pod.metadata.uid] for pod in pods]

    async def settle(self) -> None:
        """Until all that was decided has been carried out and written."""
        await self._plane.clock.sleep(_SETTLES_S)

    async def kills(self) -> list[Json]:
        """The pods that were killed, in order, as the API server has them."""
        return [self._kill(worker, grace_s, await self._plane.get(worker.pod)) for worker, grace_s in self.killed]

    def _kill(self, worker: Worker, grace_s: int | None, written: core_v1_pb2.Pod) -> Json:
        status = written.status
        found: Json = {
            "pod": written.metadata.name,
            "isEvicted": worker.failure is not None and worker.failure.makes_room,
            "gracePeriodOverride": grace_s,
            "phase": status.phase,
            "reason": status.reason,
            "message": status.message,
        }
        condition = meta.get_condition(status.conditions, "DisruptionTarget")
        if condition is not None:
            fields = ("type", "status", "reason", "message", "observedGeneration")
            found["condition"] = {field: getattr(condition, field) for field in fields}
        return found


def offered(
    plane: ControlPlane,
    node: core_v1_pb2.Node,
    pod: core_v1_pb2.Pod,
    refuses: Callable[[core_v1_pb2.Pod], predicates.Decision | None],
) -> predicates.Decision:
    """The decision on a pod that arrives at an empty node; nothing comes of it."""

    async def read_again() -> core_v1_pb2.Node:
        return node

    arrivals = Arrivals(plane.env, node.metadata.name, predicates.NodeClaims(), _Nobody(), read_again, refuses=refuses)
    arrivals.node = predicates.NodeView(node)
    arrivals.add(Worker(pod, 0))
    assert arrivals.decision is not None
    return arrivals.decision


class _Nobody:
    """A host that carries nothing out."""

    def admitted(self, worker: Worker, claim: claims.Claim) -> None:
        pass

    def refused(self, worker: Worker, decision: predicates.Decision) -> None:
        pass

    def active(self) -> tuple[Worker, ...]:
        return ()

    def kill(self, worker: Worker, failure: statuses.Failure, gone: Callable[[], None]) -> None:
        gone()
