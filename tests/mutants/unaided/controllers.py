"""Bugs in controllers."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.controllers import disruption, node_health, pod_gc, quotas, taint_eviction, taint_timers
from kemu.emulated.controllers.garbage import collector
from kemu.emulated.controllers.jobs import backoffs, completion_indexes, cron_jobs, job_syncs
from kemu.emulated.controllers.workloads import base, replica_sets
from kemu.emulated.controllers.workloads.daemon import daemon_sets
from kemu.emulated.controllers.workloads.deployments import deployments, rollouts
from kemu.emulated.controllers.workloads.stateful import stateful_sets
from tests.mutants.unaided.planting import mutant

LOST = ("seeds/lost-node-replacements", "chaos/kubelet-partition", "chaos/machine-crash", "chaos/power-off")


@mutant("controllers", "a-node-that-is-well-again-stays-tainted", "chaos/kubelet-partition", "chaos/zone-outage",
        "chaos/power-off")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    mark = node_health.NodeLifecycle._mark_reachable

    def keep(self: Any, node: Any, changes: list[Any]) -> None:
        mark(self, node, [])

    patch.setattr(node_health.NodeLifecycle, "_mark_reachable", keep)


@mutant("controllers", "nodes-are-given-up-too-early", "seeds/toleration-seconds", *LOST)
def _(patch: pytest.MonkeyPatch) -> None:
    """A silent node is lost after a quarter of the grace period."""
    check = node_health.NodeLifecycle._check

    def hasty(self: Any, node: Any, now_ns: int) -> tuple[str, ...]:
        found = check(self, node, now_ns)
        health = self._health[node.name]
        if not found and node.conditions.get("Ready") == "True" and now_ns - health.probe_ns > 12_000_000_000:
            return tuple(one for one in node_health.MONITORED if node.conditions.get(one) != "Unknown")
        return found

    patch.setattr(node_health.NodeLifecycle, "_check", hasty)


@mutant("controllers", "nodes-are-given-up-too-late", *LOST)
def _(patch: pytest.MonkeyPatch) -> None:
    check = node_health.NodeLifecycle._check

    def slow(self: Any, node: Any, now_ns: int) -> tuple[str, ...]:
        found = check(self, node, now_ns)
        health = self._health[node.name]
        return found if now_ns - health.probe_ns > 100_000_000_000 else ()

    patch.setattr(node_health.NodeLifecycle, "_check", slow)


@mutant("controllers", "pods-leave-at-half-of-their-toleration", "seeds/toleration-seconds", "seeds/no-execute-taint")
def _(patch: pytest.MonkeyPatch) -> None:
    tolerated = taint_timers.tolerated_s

    def half(tolerations: Any, taints: Any) -> int:
        found = tolerated(tolerations, taints)
        return found // 2 if found > 0 else found

    patch.setattr(taint_timers, "tolerated_s", half)


@mutant("controllers", "pods-stay-for-twice-their-toleration", "seeds/toleration-seconds", "seeds/no-execute-taint")
def _(patch: pytest.MonkeyPatch) -> None:
    tolerated = taint_timers.tolerated_s

    def double(tolerations: Any, taints: Any) -> int:
        found = tolerated(tolerations, taints)
        return found * 2 if found > 0 else found

    patch.setattr(taint_timers, "tolerated_s", double)


@mutant("controllers", "pods-leave-though-the-taint-has-gone", "chaos/kubelet-partition", "seeds/toleration-seconds",
        "chaos/zone-outage", "seeds/no-execute-taint")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """The timers of pods go on when their node loses its taint."""
    set_node = taint_timers.TaintEviction.set_node

    def forgetful(self: Any, name: str, taints: Any, now_ns: int) -> None:
        due = dict(self._due)
        set_node(self, name, taints, now_ns)
        for key, entry in due.items():
            self._due.setdefault(key, entry)

    patch.setattr(taint_timers.TaintEviction, "set_node", forgetful)


@mutant("controllers", "an-eviction-that-failed-is-forgotten", "chaos/lossy-link", "chaos/apiserver-crash",
        "chaos/overload", "seeds/no-execute-taint")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """The taint eviction controller tells that it has deleted a pod, and has not, every second time."""
    delete = taint_eviction.TaintEvictionController._delete
    turns = iter(range(10**9))

    async def sometimes(self: Any, pod: Any, due_ns: int) -> None:
        if next(turns) % 2 == 0:
            await delete(self, pod, due_ns)

    patch.setattr(taint_eviction.TaintEvictionController, "_delete", sometimes)


@mutant("controllers", "a-budget-counts-pods-that-are-not-ready", "seeds/drain-with-a-budget",
        "pods/flapping-blocks-drain", "chaos/drain-under-budget", "races/evictions-at-once")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    put = disruption._Members.put

    def generous(self: Any, key: str, pod: Any) -> None:
        put(self, key, pod)
        healthy, owner = self._pods[key]
        if not healthy:
            self._pods[key] = True, owner
            self.healthy += 1

    patch.setattr(disruption._Members, "put", generous)


@mutant("controllers", "a-budget-misses-the-end-of-a-pod", "pods/bound-by-hand",
        "seeds/drain-with-a-budget", "chaos/drain-under-budget", "races/evictions-at-once",
        "seeds/disruption-budgets")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """The disruption controller hears of deleted pods, and does not look at their budgets again."""
    deleted = disruption.DisruptionController._pod_deleted

    def deaf(self: Any, pod: Any) -> None:
        enqueue, self._enqueue = self._enqueue, lambda budget: None
        deleted(self, pod)
        self._enqueue = enqueue

    patch.setattr(disruption.DisruptionController, "_pod_deleted", deaf)


@mutant("controllers", "quota-is-never-given-back", "rollouts/changes-in-order", "quotas/quota-race",
        "quotas/malicious-user", "quotas/overhead-in-quota")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quotas.ResourceQuotaController, "replenish", lambda self, evaluator, namespace: None)
    monkey = quotas.recount

    def only_more(obj: Any, *rest: Any) -> Any:
        return monkey(obj, *rest) if not obj.status.used else None

    patch.setattr(quotas, "recount", only_more)


@mutant("controllers", "a-rollout-surges-too-far", "rollouts/changes-in-order", "rollouts/held-up-rollout")
def _(patch: pytest.MonkeyPatch) -> None:
    new_size = rollouts.new_size

    def more(deployment: Any, sets: Any, new_replicas: int) -> int:
        return max(new_size(deployment, sets, new_replicas), int(deployment.spec.replicas))

    patch.setattr(rollouts, "new_size", more)


@mutant(
    "controllers",
    "a-rollout-takes-too-many-away",
    survives="equivalent: how many old pods go is bounded again by those that are available",
)
def _(patch: pytest.MonkeyPatch) -> None:
    """Old pods go although the new ones are not available."""
    removable = rollouts.removable

    def all_of_them(deployment: Any, sets: Any, new: Any) -> int:
        found = removable(deployment, sets, new)
        return found + int(new.spec.replicas - new.status.availableReplicas) + 1

    patch.setattr(rollouts, "removable", all_of_them)
    assert deployments.rollouts is rollouts


@mutant("controllers", "a-stateful-set-does-not-wait-for-the-pod-before", "rollouts/changes-in-order",
        "chaos/machine-crash", "volumes/zones", "museum/59848-one-name-runs-twice",
        "seeds/redis-and-web-servers", "volumes/node-dies")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """Pods are created in order, but none waits until the one before is ready."""
    process = stateful_sets._Sync._process

    async def hasty(self: Any, ordinal: int, monotonic: bool) -> bool:
        await process(self, ordinal, monotonic)
        return False

    patch.setattr(stateful_sets._Sync, "_process", hasty)


@mutant("controllers", "a-job-runs-more-pods-at-once-than-it-may", "jobs/waits-after-failures",
        "pods/job-with-sidecar", "jobs/disruptions-and-failure-policies")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    wanted = job_syncs.JobSync._wanted
    patch.setattr(job_syncs.JobSync, "_wanted", lambda self: wanted(self) + 1 if wanted(self) else 0)


@mutant("controllers", "an-index-of-a-job-runs-twice", "jobs/indexes-once")
def _(patch: pytest.MonkeyPatch) -> None:
    """Pods for indexes whose pods run."""
    pending = completion_indexes.first_pending

    def again(count: int, completions: int, busy: Any, succeeded: Any, failed: Any) -> Any:
        return pending(count, completions, busy[1:], succeeded, failed)

    patch.setattr(completion_indexes, "first_pending", again)


@mutant("controllers", "a-stateful-set-shrinks-from-its-beginning", "rollouts/changes-in-order",
        "volumes/attach-limits")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    init = stateful_sets._Sync.__init__

    def backwards(self: Any, *arguments: Any, **more: Any) -> None:
        init(self, *arguments, **more)
        self._condemned.reverse()

    patch.setattr(stateful_sets._Sync, "__init__", backwards)


@mutant("controllers", "a-job-does-not-wait-after-failures", "jobs/waits-after-failures",
        "jobs/disruptions-and-failure-policies", "races/jobs-on-a-small-node")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(backoffs, "remaining_ns", lambda failures, last_failure_ns, now_ns: 0)


@mutant("controllers", "a-cron-job-starts-beside-the-last-run", "jobs/cron-policies")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cron_jobs, "FORBID", "Never")


@mutant("controllers", "the-loss-of-a-pod-wakes-nobody", "seeds/lost-node-replacements", "seeds/eviction-ping-pong",
        "races/scale-down")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """A workload is not looked at when one of its pods is deleted: a lost wake-up."""
    drop = base.WorkloadController._drop

    def silent(self: Any, reference: Any, pod: Any) -> None:
        wake, self.wake = self.wake, lambda key, delay_s=0: None
        drop(self, reference, pod)
        self.wake = wake

    patch.setattr(base.WorkloadController, "_drop", silent)
    changed = base.WorkloadController._owned_changed

    def blind(self: Any, reference: Any, old: Any, pod: Any) -> None:
        if old is not None and base.is_active(old) and not base.is_active(pod):
            wake, self.wake = self.wake, lambda key, delay_s=0: None
            changed(self, reference, old, pod)
            self.wake = wake
        else:
            changed(self, reference, old, pod)

    patch.setattr(base.WorkloadController, "_owned_changed", blind)


@mutant("controllers", "a-scale-down-goes-one-too-far", "rollouts/changes-in-order", "races/scale-down",
        "museum/125491-scale-down-during-a-binding")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """When a ReplicaSet shrinks it deletes one pod more than it should, and makes it up later."""
    manage = replica_sets.ReplicaSetController._manage

    async def greedy(self: Any, owner: Any, active: list[Any]) -> Any:
        if owner.spec.replicas < len(active) and owner.spec.replicas > 0:
            owner = type(owner).FromString(owner.SerializeToString())
            owner.spec.replicas -= 1
        return await manage(self, owner, active)

    patch.setattr(replica_sets.ReplicaSetController, "_manage", greedy)


@mutant("controllers", "a-daemon-set-does-not-see-new-nodes", "rollouts/changes-in-order",
        "races/nodes-join", "seeds/daemonset-under-pressure", "museum/65240-daemon-set-hot-loop",
        "autoscaler/scale-down")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(daemon_sets.DaemonSetController, "_node_changed", lambda self, node: None)


@mutant("controllers", "dependents-of-a-living-owner-are-collected", "jobs/two-owners",
        "jobs/deletion-policies", "seeds/lost-node-replacements")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """An owner that is being deleted counts as gone, though its finalizers keep it."""
    find = collector.GarbageCollector._find_owner

    async def hasty(self: Any, node: Any, reference: Any) -> Any:
        owner = await find(self, node, reference)
        return None if owner is not None and owner.metadata.HasField("deletionTimestamp") else owner

    patch.setattr(collector.GarbageCollector, "_find_owner", hasty)


@mutant("controllers", "pods-of-lost-nodes-are-collected-at-once", "seeds/toleration-seconds",
        "autoscaler/scale-down", "chaos/machine-crash")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """Pods of nodes that are only not ready are removed by force."""
    missing = pod_gc.PodGarbageCollector._missing
    patch.setattr(pod_gc, "QUARANTINE_NS", 0)

    def many(self: Any) -> list[str]:
        unwell = [
            name
            for name in self._by_node
            if name in self._nodes.store
            and any(one.effect == "NoExecute" for one in self._nodes.store[name].spec.taints)
        ]
        return [*missing(self), *unwell]

    async def gone(self: Any, node: str) -> bool:
        return False

    patch.setattr(pod_gc.PodGarbageCollector, "_missing", many)
    patch.setattr(pod_gc.PodGarbageCollector, "_exists", gone)


def _taints(node: Any | None) -> Any:
    return () if node is None else node.spec.taints
