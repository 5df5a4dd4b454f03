"""What a kubelet may be made of instead: the classes of its variants (:mod:`kemu.emulated.variants`).

Arrivals     which pods are admitted
PodWorkers   when a pod that ends is reported, deleted, and no longer counted
Kubelet      by which Node pods are admitted after a start
"""

from __future__ import annotations

from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.admission.arrivals import Arrivals
from kemu.emulated.kubelet.kubelet import Kubelet
from kemu.emulated.kubelet.pods import claims
from kemu.emulated.kubelet.pods.workers import ENDED, Worker
from kemu.emulated.kubelet.sync.pod_workers import PodWorkers
from kemu.emulated.variants import replaces
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS


@replaces(Arrivals, "kubelet-admission")
class _AdmitsEverything(Arrivals):
    """Every pod that arrives is admitted, also under pressure; only a machine that is about to go off takes nothing."""

    def _examine(self, worker: Worker) -> None:
        self._decided(worker, predicates.ADMITTED, claims.claim_of(worker.pod))

    def readmit(self, worker: Worker, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        return None


@replaces(PodWorkers, "containers-end-before-deletion")
class _DeletesEarly(PodWorkers):
    """The object goes when its containers begin to stop."""

    def _take_down(self, worker: Worker, grace_s: int, asked_ns: int) -> None:
        super()._take_down(worker, grace_s, asked_ns)
        if worker.state != ENDED and worker.pod.metadata.HasField("deletionTimestamp"):
            self.reports.delete(worker)


@replaces(PodWorkers, "k8s-106884")
class _ReportsTooSoon(PodWorkers):
    """A pod is reported as finished while the kubelet still counts it."""

    RELEASED_AFTER_S = 1
    """For how long. The fix made short-lived pods report that about a second later."""

    def _finished(self, worker: Worker) -> None:
        worker.state = ENDED
        self._clock.call_at_ns(self._clock.now_ns() + self.RELEASED_AFTER_S * SECOND_NS, self._release, worker)


@replaces(Kubelet, "k8s-95822")
class _AdmitsBeforeRegistration(Kubelet):
    """Pods are admitted before the Node is known."""

    async def _before_registration(self) -> None:
        await self._watch.synced()

    async def _fresh_node(self) -> core_v1_pb2.Node:
        """The Node without asking for it: as it would be registered, until the kubelet knows better."""
        return self.node.get() if self._knows_node else self.node.wanted()
