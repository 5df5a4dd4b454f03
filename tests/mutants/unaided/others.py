"""Bugs in the autoscaler, the runtime and the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.autoscaler import actuators, scale_downs, scale_ups
from kemu.emulated.autoscaler.simulator import drainability
from kemu.emulated.client import clients
from kemu.emulated.objects import meta
from kemu.runtime.rpc import networks
from kemu.runtime.sim import loops
from tests.mutants.unaided.planting import mutant

SCALES = ("autoscaler/scale-down", "autoscaler/overprovisioning", "autoscaler/cut-off", "autoscaler/nominated-pods",
          "autoscaler/least-and-greatest")  # fmt: skip


@mutant("autoscaler", "a-node-goes-whose-pods-fit-nowhere-else", *SCALES)
def _(patch: pytest.MonkeyPatch) -> None:
    """Neither use nor lack of another place keeps a node."""
    unused = scale_downs.Utilization(0.0, "cpu", {"cpu": 0.0})
    patch.setattr(scale_downs, "utilization", lambda node, pods, unix_ns, *, ignore_daemons: unused)

    def simulate(self: Any, snapshot: Any, node: Any, destinations: Any, budgets: Any, unix_ns: int) -> Any:
        moves = self.rules.moves(snapshot.pods_on(node.metadata.name), budgets, unix_ns)
        if moves.blocking is not None:
            return "BlockedByPod"
        return scale_downs.Removable(node, moves.pods, moves.waits_for, False)

    patch.setattr(scale_downs.Planner, "_simulate", simulate)


@mutant("autoscaler", "a-group-shrinks-below-its-least-size", *SCALES)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scale_downs.Planner, "_too_small", staticmethod(lambda group, sizes, deleting: ""))


@mutant("autoscaler", "a-node-is-emptied-without-asking-budgets", *SCALES)
def _(patch: pytest.MonkeyPatch) -> None:
    """Pods are deleted where they should be evicted."""
    patch.setattr(drainability.Budgets, "blocks", lambda self, pod: False)

    async def evict(self: Any, pod: Any, *, needed: bool) -> str:
        await self._client.delete("pods", pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)
        return ""

    patch.setattr(actuators.Actuator, "_evict", evict)


@mutant("autoscaler", "pods-that-wait-get-no-node", *SCALES)
def _(patch: pytest.MonkeyPatch) -> None:
    """A group counts as full when it has one node less than it may."""
    unfit = scale_ups._unfit

    def full(group: Any, state: Any, now_ns: int) -> str:
        return unfit(group, state, now_ns) or (scale_ups.MAX_SIZE if group.target_size + 1 >= group.max_size else "")

    patch.setattr(scale_ups, "_unfit", full)


@mutant("runtime", "held-messages-arrive-in-another-order", "chaos/short-partition", "chaos/kubelet-partition",
        "chaos/zone-partition", "chaos/apiserver-failover", "chaos/half-open")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """What a partition held back comes out last in, first out."""
    set_cut = networks.PartitionedLink.set_cut

    def backwards(self: Any, requests: bool, responses: bool) -> None:
        for way in (self._requests, self._responses):
            if way.held:
                way.held.reverse()
        set_cut(self, requests, responses)

    patch.setattr(networks.PartitionedLink, "set_cut", backwards)


@mutant("runtime", "what-a-pause-held-back-is-done-in-another-order", "chaos/short-pause", "chaos/apiserver-pause",
        "chaos/scheduler-pause", "chaos/kubelet-pause", "elections/double-leader")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    resume = loops.VirtualLoop.resume

    def backwards(self: Any, owner: Any) -> None:
        owner.withheld.reverse()
        resume(self, owner)

    patch.setattr(loops.VirtualLoop, "resume", backwards)


@mutant("runtime", "a-pause-loses-what-came-in", "chaos/apiserver-pause", "chaos/scheduler-pause",
        "chaos/kubelet-pause", "elections/double-leader")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """Every third message or timer that came during a pause is lost."""
    resume = loops.VirtualLoop.resume

    def lossy(self: Any, owner: Any) -> None:
        owner.withheld[:] = [one for place, one in enumerate(owner.withheld) if place % 3 != 2]
        resume(self, owner)

    patch.setattr(loops.VirtualLoop, "resume", lossy)


@mutant("runtime", "a-partition-ends-without-what-it-held", "chaos/short-partition", "chaos/kubelet-partition",
        "chaos/zone-partition")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """Messages that were sent into a partition are lost though the connection lives on."""
    set_cut = networks.PartitionedLink.set_cut

    def forgetful(self: Any, requests: bool, responses: bool) -> None:
        for way in (self._requests, self._responses):
            if way.held:
                way.held.clear()
        set_cut(self, requests, responses)

    patch.setattr(networks.PartitionedLink, "set_cut", forgetful)


@mutant("client", "a-status-is-written-over-whatever-came-meanwhile", "quotas/quota-under-churn",
        "museum/82149-controller-overwrites-an-eviction", "races/evictions-at-once", "chaos/drain-under-budget",
        "quotas/quota-race")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    """Controllers update statuses without saying which version they have computed them from."""
    update = clients.Client.update_status

    async def blindly(self: Any, obj: Any, *arguments: Any, **more: Any) -> Any:
        changed = meta.copied(obj)
        changed.metadata.resourceVersion = ""
        return await update(self, changed, *arguments, **more)

    patch.setattr(clients.Client, "update_status", blindly)
