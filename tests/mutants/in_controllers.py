"""Bugs in controllers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kemu.emulated.controllers import (
    disruption,
    node_health,
    quotas,
    steady_nodes,
    taint_eviction,
    taint_queues,
    taint_timers,
)
from kemu.emulated.controllers.jobs import tracking
from kemu.emulated.controllers.volumes import attachments
from kemu.emulated.controllers.workloads import expectations, replica_sets
from kemu.emulated.controllers.workloads.daemon import daemon_pods
from kemu.emulated.controllers.workloads.deployments import rollouts
from kemu.emulated.objects import meta
from tests.mutants.planting import Decides, mutant

LOST = ("seeds/lost-node-replacements",)


@mutant("controllers", "a-lost-node-is-never-noticed", *LOST)
def _(patch: pytest.MonkeyPatch) -> None:
    check = node_health.NodeLifecycle._check

    def lost(self: Any, node: Any, now_ns: int) -> tuple[str, ...]:
        check(self, node, now_ns)
        return ()

    patch.setattr(node_health.NodeLifecycle, "_check", lost)


@mutant("controllers", "nodes-are-tainted-without-a-limit", "chaos/zone-outage", "chaos/zone-partition")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taint_queues.TaintQueue, "_spend", lambda self, now_ns: True)


@mutant(
    "controllers",
    "toleration-seconds-are-ignored",
    "seeds/toleration-seconds",
    "seeds/no-execute-taint",
    # The draw between the node that will be tainted and the other one.
    decides=Decides("a-node-that-is-tainted", "nobody-is-evicted", "scheduled", pod="web"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taint_timers, "tolerated_s", lambda tolerations, taints: 0)


@mutant("controllers", "pods-outlive-no-execute", "seeds/no-execute-taint", "seeds/toleration-seconds")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taint_timers, "tolerated_s", lambda tolerations, taints: taint_timers.FOREVER)


@mutant("controllers", "a-replica-set-does-not-wait-for-its-pods", "races/replica-set-expectations")
def _(patch: pytest.MonkeyPatch) -> None:
    # Neither for their news nor for its own writes.
    patch.setattr(expectations.Expectations, "are_met", lambda self, owner: True)
    patch.setattr(expectations.Writes, "check", lambda self, owner: None)


@mutant("controllers", "a-replica-set-replaces-nobody", "seeds/lost-node-replacements", "seeds/eviction-ping-pong")
def _(patch: pytest.MonkeyPatch) -> None:
    manage = replica_sets.ReplicaSetController._manage

    async def once(self: Any, owner: Any, active: list[Any]) -> Any:
        return None if self.env.clock.now_ns() else await manage(self, owner, active)

    patch.setattr(replica_sets.ReplicaSetController, "_manage", once)


@mutant("controllers", "a-pod-on-a-lost-node-is-deleted-by-force", "seeds/lost-node-replacements")
def _(patch: pytest.MonkeyPatch) -> None:
    delete = taint_eviction.TaintEvictionController._delete

    async def by_force(self: Any, pod: Any, due_ns: int) -> None:
        await delete(self, pod, due_ns)
        metadata = pod.metadata
        await self.client.delete("pods", metadata.name, metadata.namespace, grace_period_seconds=0)

    patch.setattr(taint_eviction.TaintEvictionController, "_delete", by_force)


@mutant("controllers", "a-budget-is-never-recomputed", "chaos/drain-under-budget")
def _(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Any, *arguments: Any) -> None:
        return None

    name = next(name for name in ("_reconcile", "_sync", "sync") if hasattr(disruption.DisruptionController, name))
    patch.setattr(disruption.DisruptionController, name, nothing)


@mutant("controllers", "a-dead-node-still-has-heartbeats", "chaos/power-off", "seeds/lost-node-replacements")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steady_nodes.Known, "renewed_ns", lambda self, now_ns: now_ns + self.epoch_ns)


@mutant("controllers", "a-volume-is-attached-to-a-second-node", "volumes/node-dies")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attachments, "allows_many", lambda volume: True)


@mutant("controllers", "a-volume-is-detached-while-it-is-in-use", "volumes/node-dies")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attachments, "FORCE_AFTER_NS", 0)


@mutant("controllers", "a-job-counts-a-pod-at-each-sync", "jobs/disruptions-and-failure-policies")
def _(patch: pytest.MonkeyPatch) -> None:
    count = tracking.count_finalized

    def keep(status: Any, with_finalizer: Any) -> bool:
        """The counters grow, and the list stays."""
        listed = meta.copied(status.uncountedTerminatedPods)
        changed = count(status, with_finalizer)
        status.uncountedTerminatedPods.CopyFrom(listed)
        return changed

    patch.setattr(tracking, "count_finalized", keep)


@mutant("controllers", "taints-stay-when-a-node-is-well", "chaos/zone-outage timing=realistic", "chaos/zone-partition")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_health.NodeLifecycle, "_mark_reachable", lambda self, node, changes: None)


@mutant("controllers", "a-node-that-is-well-is-declared-lost", "chaos/machine-crash heartbeats=exact")
def _(patch: pytest.MonkeyPatch) -> None:
    check = node_health.NodeLifecycle._check

    def hasty(self: Any, node: Any, now_ns: int) -> tuple[str, ...]:
        self._settings = dataclasses.replace(self._settings, node_monitor_grace_period_ns=3_000_000_000)
        return check(self, node, now_ns)

    patch.setattr(node_health.NodeLifecycle, "_check", hasty)


@mutant("controllers", "a-toleration-ends-early", "seeds/toleration-seconds", "seeds/no-execute-taint")
def _(patch: pytest.MonkeyPatch) -> None:
    tolerated_s = taint_timers.tolerated_s

    def half(tolerations: Any, taints: Any) -> int:
        found = tolerated_s(tolerations, taints)
        return found if found == taint_timers.FOREVER else found // 2

    patch.setattr(taint_timers, "tolerated_s", half)


@mutant("controllers", "a-rollout-ignores-max-surge", "rollouts/held-up-rollout")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollouts, "new_size", lambda deployment, sets, new_replicas: deployment.spec.replicas)


@mutant("controllers", "a-rollout-ignores-max-unavailable", "rollouts/held-up-rollout")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollouts, "max_unavailable", lambda deployment: 1_000)


@mutant("controllers", "a-quota-is-never-counted-again", "quotas/quota-race", "quotas/malicious-user")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quotas.ResourceQuotaController, "replenish", lambda self, evaluator, namespace: None)


@mutant("controllers", "a-daemon-set-overlooks-a-node", "seeds/drain-with-a-budget")
def _(patch: pytest.MonkeyPatch) -> None:
    fits = daemon_pods.Wish.fits

    def overlooks(self: daemon_pods.Wish, node: Any) -> tuple[bool, bool]:
        return (False, True) if node.metadata.name.endswith("1") else fits(self, node)

    patch.setattr(daemon_pods.Wish, "fits", overlooks)
