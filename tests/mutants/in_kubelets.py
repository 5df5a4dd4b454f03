"""Bugs in kubelets: admission, lives of pods, eviction, heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.node import leases, node_statuses
from kemu.emulated.kubelet.pods.workers import ENDED
from kemu.emulated.kubelet.pressure import eviction, oom_kills, ranking
from kemu.emulated.kubelet.sync import pod_workers, status_managers, terminations
from tests.mutants.planting import Decides, mutant

RACE = "races/two-replicas-same-pods timing=realistic"
ONE_NODE = "races/two-schedulers-one-node timing=realistic"


@mutant(
    "kubelet",
    "everything-is-admitted",
    ONE_NODE,
    RACE,
    # Scheduler blue draws a node that red has drawn, too, and cannot know it yet.
    decides=Decides("two-schedulers", "no-node-overcommitted", "scheduled", pod="blue-pod", actor="scheduler/blue/0"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(predicates, "failures", lambda node, usage, pod, claim: ())


@mutant("kubelet", "terminating-pods-are-not-counted", "races/terminating-pod-holds-its-room")
def _(patch: pytest.MonkeyPatch) -> None:
    take_down = pod_workers.PodWorkers._take_down

    def early(self: pod_workers.PodWorkers, worker: Any, grace_s: int, asked_ns: int) -> None:
        claim, worker.claim = worker.claim, None
        if claim is not None:
            self.usage.remove(claim)
        take_down(self, worker, grace_s, asked_ns)

    patch.setattr(pod_workers.PodWorkers, "_take_down", early)


@mutant(
    "kubelet",
    "the-object-goes-before-the-containers",
    "seeds/preemption-example-1",
    RACE,
    # The draw between both nodes.
    decides=Decides("a-terminating-pod", "on-its-node", "scheduled", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    take_down = pod_workers.PodWorkers._take_down

    def hasty(self: pod_workers.PodWorkers, worker: Any, grace_s: int, asked_ns: int) -> None:
        take_down(self, worker, grace_s, asked_ns)
        if worker.state != ENDED and worker.pod.metadata.HasField("deletionTimestamp"):
            self.reports.delete(worker)

    patch.setattr(pod_workers.PodWorkers, "_take_down", hasty)


@mutant("kubelet", "the-grace-period-is-ignored", "seeds/preemption-example-1", "seeds/toleration-seconds")
def _(patch: pytest.MonkeyPatch) -> None:
    begin = terminations.Terminations.begin

    def at_once(self: Any, worker: Any, grace_s: int, asked_ns: int) -> None:
        begin(self, worker, 1, asked_ns)

    patch.setattr(terminations.Terminations, "begin", at_once)
    patch.setattr(terminations, "LEAST_WINDOW_S", 0)


@mutant("kubelet", "a-status-is-told-once", RACE, "seeds/preemption-example-1")
def _(patch: pytest.MonkeyPatch) -> None:
    report = status_managers.StatusManager.report

    def once(self: Any, worker: Any) -> None:
        if not worker.status:
            report(self, worker)

    patch.setattr(status_managers.StatusManager, "report", once)


@mutant("kubelet", "pressure-never-evicts", "seeds/hard-eviction-threshold")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eviction.Manager, "_reclaim", lambda self, *arguments: None)


@mutant("kubelet", "the-wrong-pod-is-evicted-first", "seeds/hard-eviction-threshold", "seeds/daemonset-under-pressure")
def _(patch: pytest.MonkeyPatch) -> None:
    rank = ranking.rank
    patch.setattr(ranking, "rank", lambda *arguments: list(reversed(rank(*arguments))))


@mutant("kubelet", "the-kernel-never-kills", "seeds/out-of-memory-limit", "seeds/out-of-memory-order")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(oom_kills.OomKiller, "plan", lambda self, *arguments, **named: None)


@mutant("kubelet", "the-lease-is-not-renewed", "seeds/starvation heartbeats=exact duration=2m", "chaos/machine-crash")
def _(patch: pytest.MonkeyPatch) -> None:
    async def never(self: leases.OwnLease) -> None:
        return None

    patch.setattr(leases.OwnLease, "renew", never)


@mutant("kubelet", "pressure-is-not-reported", "seeds/node-condition-oscillation", "seeds/soft-eviction-threshold")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_statuses.OwnNode, "set_pressures", lambda self, conditions: None)


@mutant("kubelet", "what-has-ended-keeps-its-room", "races/terminating-pod-holds-its-room", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(predicates.NodeClaims, "remove", lambda self, claim: None)
