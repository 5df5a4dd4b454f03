"""The parts of a kubelet without single safeguards (:mod:`kemu.emulated.safeguards`), for
:mod:`kemu.emulated.kubelet.kubelet`."""

from __future__ import annotations

from collections.abc import Collection

from kemu.emulated import safeguards
from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.admission.arrivals import Arrivals
from kemu.emulated.kubelet.pods import claims
from kemu.emulated.kubelet.pods.workers import ENDED, Worker
from kemu.emulated.kubelet.sync.pod_workers import PodWorkers
from kemu.messages.k8s import core_v1_pb2


class _AdmitsEverything(Arrivals):
    """Whatever arrives is admitted, also under pressure; only a machine that is about to go off takes nothing."""

    def _examine(self, worker: Worker) -> None:
        self._decided(worker, predicates.ADMITTED, claims.claim_of(worker.pod))

    def readmit(self, worker: Worker, pod: core_v1_pb2.Pod) -> predicates.Decision | None:
        return None


class _DeletesEarly(PodWorkers):
    """The object goes when its containers begin to stop."""

    def _take_down(self, worker: Worker, grace_s: int, asked_ns: int) -> None:
        super()._take_down(worker, grace_s, asked_ns)
        if worker.state != ENDED and worker.pod.metadata.HasField("deletionTimestamp"):
            self.reports.delete(worker)


def arrivals(ablated: Collection[str]) -> type[Arrivals]:
    return safeguards.without(Arrivals, {"kubelet-admission": _AdmitsEverything}, ablated)


def pod_workers(ablated: Collection[str]) -> type[PodWorkers]:
    return safeguards.without(PodWorkers, {"containers-end-before-deletion": _DeletesEarly}, ablated)
