"""Checks of what must hold on every node: no overcommitment, no needless rejection, and no pod is bound twice."""

from __future__ import annotations

from typing import ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Fact
from kemu.lab.checks.nodes.occupancies import Occupancy
from kemu.lab.checks.results import Check, Fold, Result, seconds, several
from kemu.runtime.words import counted


class NoNodeOvercommitted(Check):
    """What a kubelet admits fits into the allocatable of its node, beside everything that runs there.

    A pod counts from the moment when its kubelet admits it (or it is seen Running) until that kubelet says that its
    containers have ended, or its machine is off, whatever became of the object. A pod that is merely bound does not
    count: binding more than fits is Kubernetes' own race, and the kubelet's to settle. A resize must fit, too,
    once the kubelet has allocated it.

    An allocatable that shrinks ends nothing and breaks nothing; what is admitted after the kubelet has heard of it must
    fit. A kubelet that starts anew admits anew what had not started. It may refuse what runs, which then no longer
    counts (``HandlePodAdditions``, ``filterOutInactivePods``), and does not know the containers of pods that are over.
    """

    id: ClassVar[str] = "no-node-overcommitted"
    folds: ClassVar[tuple[type[Fold], ...]] = (Occupancy,)

    def given(self, *folds: Occupancy) -> None:
        (self._nodes,) = folds

    def result(self, history: History) -> Result:
        if self._nodes.overcommitted:
            return Result(self.id, False, several(self._nodes.overcommitted))
        if not self._nodes.admitted:
            return Result(self.id, None, "no pod ran")
        ran, where = counted(self._nodes.admitted, "pod"), counted(self._nodes.in_use, "node")
        return Result(self.id, True, f"{ran} ran on {where}")


class RejectedPodsDoNotFit(Check):
    """A kubelet rejects a pod for lack of a resource only if the pod does not fit beside what runs on the node.

    What has ended takes no room, whether its object is there or not (``filterOutInactivePods`` in pkg/kubelet). The
    allocatable is the lowest that the kubelet may know.
    """

    id: ClassVar[str] = "rejected-pods-do-not-fit"
    folds: ClassVar[tuple[type[Fold], ...]] = (Occupancy,)

    def given(self, *folds: Occupancy) -> None:
        (self._nodes,) = folds

    def result(self, history: History) -> Result:
        good = f"{counted(self._nodes.rejected, 'pod')} rejected"
        return self.concluded(
            self._nodes.needlessly_rejected,
            self._nodes.rejected,
            "no kubelet rejected a pod for lack of a resource",
            good,
        )


class PodBoundAtMostOnce(Check):
    """Once a pod has a node, it keeps it: no second binding changes or clears ``spec.nodeName``.

    A binding that the store lost in a crash is none: whether it may lose it is for other checks.
    """

    id: ClassVar[str] = "pod-bound-at-most-once"

    def result(self, history: History) -> Result:
        findings = []
        bound = 0
        for pod in history.pods.values():
            bindings: list[Fact] = []
            wrong: list[Fact] = []
            allowed = 0 if pod.preset_node else 1
            for fact in pod.facts:
                if fact.what == "bound":
                    bindings.append(fact)
                    if len(bindings) > allowed:
                        wrong = [*bindings]
                elif fact.what == "unbound" and bindings:
                    bindings.pop()
            bound += bool(bindings)
            if wrong:
                nodes = ", then ".join(f"{fact.node or 'no node'} at {seconds(fact.time_ns)}" for fact in wrong)
                findings.append(f"{pod.key} was bound to {nodes}")
        if findings:
            return Result(self.id, False, several(findings))
        return Result(
            self.id, True if bound else None, f"{counted(bound, 'pod')} bound" if bound else "no pod was bound"
        )
