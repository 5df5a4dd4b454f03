"""Bugs in kubelets."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.kubelet.admission import arrivals, predicates
from kemu.emulated.kubelet.pods import claims, workers
from kemu.emulated.kubelet.pressure import eviction, ranking
from kemu.emulated.kubelet.sync import pod_workers, starts, status_managers, terminations
from kemu.emulated.objects.pods import pod_phases
from tests.mutants.unaided.planting import mutant


@mutant("kubelet", "a-finished-pod-still-holds-its-room", "races/jobs-on-a-small-node", "jobs/nightly-cron-job")
def _(patch: pytest.MonkeyPatch) -> None:
    """The room of a pod that ended by itself is never given back."""
    release = pod_workers.PodWorkers._release

    def keep(self: Any, worker: Any) -> None:
        claim = worker.claim
        release(self, worker)
        if claim is not None and worker.phase == pod_phases.SUCCEEDED:
            self.usage.add(claim)

    patch.setattr(pod_workers.PodWorkers, "_release", keep)


@mutant(
    "kubelet",
    "a-refused-pod-holds-room",
    "pods/bound-by-hand",
    "races/two-schedulers-one-node",
    "races/burst-on-full-nodes",
)
def _(patch: pytest.MonkeyPatch) -> None:
    decided = arrivals.Arrivals._decided

    def hold(self: Any, worker: Any, decision: Any, claim: Any) -> None:
        decided(self, worker, decision, claim)
        if not decision.admitted and claim is not None:
            self._usage.add(claim)

    patch.setattr(arrivals.Arrivals, "_decided", hold)


@mutant(
    "kubelet",
    "containers-of-a-removed-pod-start",
    "pods/grace-periods",
    "races/impatient-users",
    "chaos/overload",
    "pods/slow-start",
)
def _(patch: pytest.MonkeyPatch) -> None:
    """A pod whose object goes before its containers have started is not noticed to be gone."""
    forget = pod_workers.PodWorkers.forget

    def miss(self: Any, pod: Any) -> None:
        worker = self.by_uid.get(pod.metadata.uid)
        if worker is None or worker.has_run:
            forget(self, pod)

    patch.setattr(pod_workers.PodWorkers, "forget", miss)


@mutant("kubelet", "deletion-before-the-start-is-ignored", "races/impatient-users", "pods/slow-start")
def _(patch: pytest.MonkeyPatch) -> None:
    """A pod that is deleted while it waits for its start starts all the same, and stops only when it has run."""
    give_up = starts.Starts.give_up

    def go_on(self: Any, worker: Any) -> None:
        if worker.has_run:
            give_up(self, worker)

    patch.setattr(starts.Starts, "give_up", go_on)


@mutant("kubelet", "eviction-ignores-priority", "seeds/daemonset-under-pressure", "races/nodes-under-pressure")
def _(patch: pytest.MonkeyPatch) -> None:
    key = ranking._key

    def flat(pod: Any, used: int, request: int, exceeds: bool, order: str) -> Any:
        first, _, *rest = key(pod, used, request, exceeds, order)
        return first, 0, *rest

    patch.setattr(ranking, "_key", flat)


@mutant("kubelet", "the-smallest-user-is-evicted", "seeds/hard-eviction-threshold", "races/nodes-under-pressure")
def _(patch: pytest.MonkeyPatch) -> None:
    key = ranking._key

    def inverted(pod: Any, used: int, request: int, exceeds: bool, order: str) -> Any:
        return *key(pod, used, request, exceeds, order)[:2], used - request

    patch.setattr(ranking, "_key", inverted)


@mutant("kubelet", "who-stays-within-its-request-goes-first", "seeds/hard-eviction-threshold",
        "seeds/preemption-then-eviction", "races/nodes-under-pressure")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    key = ranking._key

    def inverted(pod: Any, used: int, request: int, exceeds: bool, order: str) -> Any:
        return key(pod, used, request, not exceeds, order)

    patch.setattr(ranking, "_key", inverted)


@mutant("kubelet", "pods-are-evicted-without-need", "seeds/soft-eviction-threshold", "seeds/node-condition-oscillation")
def _(patch: pytest.MonkeyPatch) -> None:
    """A threshold counts as met while half as much again as it asks for is free."""
    is_met = eviction._is_met

    def early(threshold: Any, observations: Any, *, reclaim: bool = False) -> bool:
        if is_met(threshold, observations, reclaim=reclaim):
            return True
        observed = observations.get(threshold.signal)
        if observed is None or not threshold.active:
            return False
        return bool(threshold.value.of(observed.capacity).nano * 3 > observed.available * 10**9 * 2)

    patch.setattr(eviction, "_is_met", early)


@mutant("kubelet", "pressure-lets-best-effort-pods-in", "pods/refused-under-pressure",
        "seeds/node-condition-oscillation", "seeds/eviction-ping-pong", "seeds/hard-eviction-threshold")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eviction.Manager, "admit", lambda self, pod: "")


@mutant("kubelet", "a-condition-outlives-its-cause-for-ever", "pods/refused-under-pressure",
        "seeds/minimum-eviction-reclaim", "seeds/hard-eviction-threshold")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """Conditions of pressure come and never go."""
    observe = eviction.Manager._observe

    def sticky(self: Any, now_ns: int, configured: Any, observations: Any) -> Any:
        for condition in self.condition_observed_ns:
            self.condition_observed_ns[condition] = now_ns
        return observe(self, now_ns, configured, observations)

    patch.setattr(eviction.Manager, "_observe", sticky)


@mutant("kubelet", "a-shorter-grace-period-is-not-heard", "pods/grace-periods", "jobs/deletion-policies",
        "chaos/graceful-shutdown", "seeds/preemption-example-1")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terminations.Terminations, "hasten", lambda self, worker, grace_s: None)


@mutant("kubelet", "a-container-runs-on-after-its-grace-period", "pods/grace-periods",
        "museum/95752-victim-that-does-not-go", "races/evictions-at-once")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """The kill at the end of the grace period comes ten times too late."""
    begin = terminations.Terminations.begin

    def late(self: Any, worker: Any, grace_s: int, asked_ns: int) -> None:
        begin(self, worker, grace_s * 10 + 60, asked_ns)

    patch.setattr(terminations.Terminations, "begin", late)


@mutant("kubelet", "a-pod-is-ready-whatever-its-probe-says", "pods/flapping-blocks-drain", "pods/liveness-loop",
        "pods/slow-start", "rollouts/held-up-rollout")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    write = status_managers.statuses.write

    def optimistic(status: Any, *arguments: Any, **more: Any) -> None:
        write(status, *arguments, **more)
        for condition in status.conditions:
            if condition.type in ("Ready", "ContainersReady") and status.phase == pod_phases.RUNNING:
                condition.status = "True"
        for one in status.containerStatuses:
            one.ready = one.state.HasField("running")

    patch.setattr(status_managers.statuses, "write", optimistic)


@mutant(
    "kubelet", "adopted-pods-take-no-room", "pods/bound-by-hand", "chaos/kubelet-crash-steps", "chaos/machine-crash"
)
def _(patch: pytest.MonkeyPatch) -> None:
    """After a restart of the kubelet, what ran before takes no room."""
    adopt = pod_workers.PodWorkers._adopt

    def lightly(self: Any, worker: Any) -> None:
        adopt(self, worker)
        if worker.claim is not None and worker.state == workers.ACTIVE and self._clock.now_ns() > 0:
            self.usage.remove(worker.claim)
            worker.claim = claims.Claim({}, ())
            self.usage.add(worker.claim)

    patch.setattr(pod_workers.PodWorkers, "_adopt", lightly)


@mutant(
    "kubelet", "a-restart-kills-what-runs", "pods/bound-by-hand", "chaos/kubelet-crash-steps", "chaos/machine-crash"
)
def _(patch: pytest.MonkeyPatch) -> None:
    """A kubelet that starts again refuses the pods that run, though they fit."""
    readmit = arrivals.Arrivals.readmit

    def strict(self: Any, worker: Any, pod: Any) -> Any:
        return readmit(self, worker, pod) or predicates.Decision(False, "OutOfcpu", "Node didn't have enough resource")

    patch.setattr(arrivals.Arrivals, "readmit", strict)
