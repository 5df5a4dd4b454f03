"""Bugs in schedulers: cache, queue, filters, preemption, binding."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kemu.emulated.scheduler import binding_cycles, feeds
from kemu.emulated.scheduler.cache import cluster
from kemu.emulated.scheduler.cycle import verdicts
from kemu.emulated.scheduler.plugins import taint_toleration
from kemu.emulated.scheduler.preemption import candidates, victim_orders
from kemu.emulated.scheduler.queue import queues
from tests.mutants.planting import Decides, mutant

RACE = "races/two-replicas-same-pods timing=realistic"


@mutant(
    "scheduler",
    "an-assumed-pod-is-not-counted",
    "races/burst-on-full-nodes",
    # The second draw falls on the node of the first.
    decides=Decides("two-pods", "nobody-is-rejected", "scheduled", pod="two"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def forgetful(self: cluster.Cluster, pod: Any, node_name: str) -> None:
        self.assumed[pod.uid] = pod
        pod.node_name = node_name

    patch.setattr(cluster.Cluster, "assume", forgetful)


@mutant(
    "scheduler",
    "a-failed-binding-is-never-given-back",
    "races/recreated-pod",
    # The deletion, while the scheduler has not heard of the pod: its binding will come too late.
    decides=Decides("a-brief-pod", "cache-agrees-with-store", "user.event", actor="user", count=2),
)
def _(patch: pytest.MonkeyPatch) -> None:
    def keep(self: cluster.Cluster, uid: str) -> bool:
        return self.assumed.pop(uid, None) is not None

    patch.setattr(cluster.Cluster, "forget", keep)


@mutant("scheduler", "the-cache-keeps-pods-that-are-gone", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    remove = cluster.Cluster.remove_pod
    count = itertools.count()

    def hoard(self: cluster.Cluster, uid: str) -> Any:
        return None if next(count) % 10 == 9 else remove(self, uid)

    patch.setattr(cluster.Cluster, "remove_pod", hoard)


@mutant(
    "scheduler",
    "a-deleted-pod-wakes-nobody",
    "seeds/preemption-example-1",
    "seeds/starvation",
    # The pod comes before the one on the node has ended, so it waits for that end.
    decides=Decides("full-node-next", "gets-its-node", "stored", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    move = queues.SchedulingQueue.move

    def deaf(self: queues.SchedulingQueue, event: Any, old: Any, new: Any, only: Any = None) -> None:
        if event is not queues.events.Event.ASSIGNED_POD_DELETE:
            move(self, event, old, new, only)

    patch.setattr(queues.SchedulingQueue, "move", deaf)


@mutant(
    "scheduler",
    "events-during-a-flight-are-lost",
    "races/event-during-an-attempt",
    # The pod comes before the one on the node has ended: that end falls into the attempt, which takes 30 ms.
    decides=Decides("full-node-next", "gets-its-node", "stored", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    land = queues.SchedulingQueue._land

    def blank(self: queues.SchedulingQueue, uid: str) -> list[Any]:
        land(self, uid)
        return []

    patch.setattr(queues.SchedulingQueue, "_land", blank)


@mutant("scheduler", "the-queue-is-first-in-first-out", "starvation/low-priority-under-a-stream-of-high")
def _(patch: pytest.MonkeyPatch) -> None:
    init = queues.SchedulingQueue.__init__

    def fifo(self: queues.SchedulingQueue, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        self._sort_key = lambda info, timestamp_ns: (timestamp_ns,)

    patch.setattr(queues.SchedulingQueue, "__init__", fifo)


@mutant("scheduler", "nominated-pods-are-not-counted", "seeds/preemption-example-1", "seeds/preemption-example-2")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdicts, "nominated_above", lambda node, priority, pod: [])


@mutant(
    "scheduler",
    "equals-are-preempted",
    "seeds/preemption-example-2",
    "seeds/starvation duration=30s",
    # The pod comes before the one on the node has ended.
    decides=Decides("full-node-next", "nobody-is-preempted", "stored", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        candidates.Preemptor,
        "lower_pods",
        lambda self, node, pod: [other for other in node.pods.values() if other.priority <= pod.priority],
    )
    patch.setattr(candidates.Preemptor, "_lower_pods_exist", lambda self, pod: True)
    patch.setattr(victim_orders.ByPriority, "is_lower", lambda self, other, pod: other.priority <= pod.priority)


@mutant("scheduler", "all-lower-pods-of-a-node-are-victims", "seeds/victim-choice", "seeds/preemption-example-2")
def _(patch: pytest.MonkeyPatch) -> None:
    spare = candidates.Preemptor.spare
    patch.setattr(
        candidates.Preemptor, "spare", lambda self, node, lower, reprieve: spare(self, node, lower, lambda pod: False)
    )
    patch.setattr(candidates, "_resource_dry_run", lambda preemptor, filtering: None)


@mutant(
    "scheduler",
    "a-never-preempting-pod-preempts",
    "seeds/non-preempting-priority",
    # The pod comes before the one on the node has ended.
    decides=Decides("full-node-polite", "nobody-is-preempted", "stored", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    not_eligible = candidates.Preemptor.not_eligible

    def eligible(self: candidates.Preemptor, *arguments: Any) -> str:
        why = not_eligible(self, *arguments)
        return "" if why == candidates.NEVER else why

    patch.setattr(candidates.Preemptor, "not_eligible", eligible)


@mutant(
    "scheduler",
    "preemption-ignores-budgets",
    "seeds/disruption-budgets",
    "seeds/victim-choice",
    # The draw between both victims.
    decides=Decides("a-protected-pod", "the-protected-one-stays", "preempting", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(candidates.Preemptor, "violations", lambda self, victims: 0)
    patch.setattr(candidates.Preemptor, "_split_by_budget", lambda self, lower: ([], lower))


@mutant(
    "scheduler",
    "taints-are-ignored",
    "seeds/taints-and-tolerations",
    # The draw between both nodes.
    decides=Decides("a-tainted-node", "on-its-node", "scheduled", pod="web"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taint_toleration, "_is_forbidden", lambda tolerations, taints: 0)


@mutant("scheduler", "a-binding-goes-to-another-node", "seeds/node-selector", RACE)
def _(patch: pytest.MonkeyPatch) -> None:
    bind = binding_cycles.BindingCycles._bind
    count = itertools.count()

    async def astray(self: Any, profile: Any, cycle: Any, node: str) -> Any:
        if next(count) % 2:
            node = "node-2" if node == "node-1" else "node-1"
        return await bind(self, profile, cycle, node)

    patch.setattr(binding_cycles.BindingCycles, "_bind", astray)


@mutant(
    "scheduler",
    "a-terminating-pod-frees-its-room-at-once",
    "seeds/preemption-example-1",
    RACE,
    # The draw between both nodes.
    decides=Decides("a-terminating-pod", "on-its-node", "scheduled", pod="next"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    on_update = feeds.PodFeed.on_update

    def early(self: feeds.PodFeed, old: Any, new: Any) -> None:
        on_update(self, old, new)
        if new.spec.nodeName and new.metadata.HasField("deletionTimestamp"):
            self._cluster.change(self._cluster.remove_pod, new.metadata.uid)
            self._queue.move(queues.events.Event.ASSIGNED_POD_DELETE, new, None)

    patch.setattr(feeds.PodFeed, "on_update", early)


@mutant(
    "scheduler",
    "labels-of-nodes-are-read-once",
    "seeds/node-affinity",
    "seeds/node-selector",
    # The draw between both nodes.
    decides=Decides("a-lost-label", "on-its-node", "scheduled", pod="web"),
)
def _(patch: pytest.MonkeyPatch) -> None:
    set_node = cluster.Cluster.set_node

    def once(self: cluster.Cluster, node: Any) -> None:
        if node.metadata.name in self.nodes and self.nodes[node.metadata.name].row >= 0:
            return
        set_node(self, node)

    patch.setattr(cluster.Cluster, "set_node", once)


@mutant("scheduler", "a-node-that-changes-wakes-nobody", "autoscaler/cut-off", "races/nodes-join")
def _(patch: pytest.MonkeyPatch) -> None:
    move = queues.SchedulingQueue.move

    def deaf(self: queues.SchedulingQueue, event: Any, old: Any, new: Any, only: Any = None) -> None:
        if not event.value.startswith("Node/"):
            move(self, event, old, new, only)

    patch.setattr(queues.SchedulingQueue, "move", deaf)
