"""The actor ``controller/node-lifecycle``: marks nodes that fall silent, and taints nodes by their conditions.

What it decides is in :mod:`kemu.emulated.controllers.node_health`; here it looks every ``nodeMonitorPeriod`` and
writes. Further config: ``settings`` (:class:`kemu.emulated.controllers.node_health.Settings`); ``settles_ns``: until
then the cluster may be disturbed, so the run must not end because it is idle; and ``watch_ns``: how long an event takes
in a watch. Healthy nodes that state their heartbeats are left out of its looks
(:mod:`kemu.emulated.controllers.steady_nodes`).

Mirrors ``pkg/controller/nodelifecycle`` (``Controller.Run``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

from kemu import errors
from kemu.emulated import variants
from kemu.emulated.client import informers, retries, workqueues
from kemu.emulated.controllers import controllers, node_health, steady_nodes, taint_queues
from kemu.emulated.controllers.node_health import Change, NodeView, Taint
from kemu.emulated.controllers.steady_nodes import Known
from kemu.emulated.objects import heartbeats, meta
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import NodeTainted, NodeUnknown

LEASE_NAMESPACE = "kube-node-lease"
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_CONDITION_TAINTS = (*dict.fromkeys(node_health.TAINT_OF.values()), UNSCHEDULABLE)
"""Keys of the NoSchedule taints that are this controller's."""


class NodeLifecycleController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.node_lifecycle:NodeLifecycleController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        settings = restored(node_health.Settings, config.get("settings", {}))
        self._period_s = settings.node_monitor_period_ns / SECOND_NS
        self._settles_ns = int(config.get("settles_ns", 0))
        self._health = node_health.NodeLifecycle(
            settings, variants.choose(taint_queues.TaintQueue, variants.active(config))
        )
        self._steady = steady_nodes.SteadyNodes(self._health, settings.node_monitor_grace_period_ns)
        self._leases: informers.Informer[coordination_v1_pb2.Lease] = informers.Informer(
            self.client,
            "leases",
            namespace=LEASE_NAMESPACE,
            handler=informers.Callbacks(self._wake, lambda old, new: self._wake(new), self._wake),
        )
        self._nodes: informers.Informer[core_v1_pb2.Node] = informers.Informer(
            self.client,
            "nodes",
            handler=informers.Callbacks(self._node_changed, lambda old, new: self._node_changed(new), self._wake),
        )
        self._watch_ns = int(config.get("watch_ns", 0))
        self._known: dict[str, Known] = {}
        """By name."""
        self._queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="node_lifecycle_controller")
        """Nodes whose NoSchedule taints are to be looked at."""
        self._somebody_waits = asyncio.Event()

    async def run(self) -> None:
        await self.begin(self._leases, self._nodes)
        by_condition = self.work(self._queue, self._follow_conditions, node_health.UPDATE_WORKERS)
        self.env.spawn(by_condition, "taints by condition")
        self.env.spawn(self._taint_lost_nodes(), "taints of lost nodes")
        while True:
            now_ns = self.clock.now_ns()
            await self._carry_out(self._look(now_ns), now_ns)
            if self._health.is_waiting:
                self._somebody_waits.set()
            await self.clock.sleep(self._period_s, background=not self._is_awake())

    def _is_awake(self) -> bool:
        """Whether something may still come of what has been heard, or not heard, of the nodes."""
        return self.clock.now_ns() < self._settles_ns or self._health.is_waiting

    # --- what it sees ------------------------------------------------------------------------------------------------

    def _look(self, now_ns: int) -> list[Change]:
        known, nodes, steady = self._known, self._nodes.store, self._steady
        if len(known) > len(nodes):
            for gone in [name for name in known if name not in nodes]:
                del known[gone]
        steady.begin(now_ns)
        # All are steady, as a rule; of the others, the order in which they came counts.
        some = nodes.items() if len(steady) < len(nodes) else ()
        views = [self._view(name, node) for name, node in some if name not in steady]
        changes = self._health.monitor(now_ns, views, steady.by_zone)
        for view in views:
            steady.settle(view, known[view.name])
        return changes

    def _find(self, name: str) -> NodeView | None:
        node = self._nodes.store.get(name)
        return None if node is None else self._view(name, node)

    def _view(self, name: str, node: core_v1_pb2.Node) -> NodeView:
        return self._know(name, node).seen(self.clock.now_ns())

    def _know(self, name: str, node: core_v1_pb2.Node) -> Known:
        lease = self._leases.store.get(f"{LEASE_NAMESPACE}/{name}")
        known = self._known.get(name)
        if known is not None and known.node is node and known.lease is lease:
            return known
        epoch_ns = self.clock.epoch_unix_s * SECOND_NS
        # Go compares this with its wall clock, and everything else with the monotonic one.
        created_ns = meta.unix_ns(node.metadata.creationTimestamp) - self.clock.unix_offset_ns
        labels = node.metadata.labels
        region, zone = labels.get(_REGION, ""), labels.get(_ZONE, "")
        ready = meta.get_condition(node.status.conditions, node_health.READY)
        view = NodeView(
            name,
            f"{region}:{zone}" if region or zone else "",
            {condition.type: condition.status for condition in node.status.conditions},
            meta.unix_ns(ready.lastHeartbeatTime) if ready is not None else 0,
            meta.unix_ns(lease.spec.renewTime) if lease is not None and lease.spec.HasField("renewTime") else None,
            tuple((taint.key, taint.effect) for taint in node.spec.taints),
            created_ns,
            node_health.EXCLUDE_DISRUPTION in labels,
        )
        known = self._known[name] = Known(node, lease, view, epoch_ns, self._watch_ns)
        return known

    def _wake(self, obj: KubernetesObject) -> None:
        """A Node or its Lease has changed: the next look includes the node."""
        self._steady.wake(obj.metadata.name)

    def _node_changed(self, node: core_v1_pb2.Node) -> None:
        self._wake(node)
        if _changes_for_conditions(node) is not None:
            self._queue.add_after(node.metadata.name, self.lag_s())

    # --- what it does ------------------------------------------------------------------------------------------------

    async def _taint_lost_nodes(self) -> None:
        """While nodes wait to be tainted, look at their queues."""
        clock = self.clock
        while True:
            await self._somebody_waits.wait()
            await clock.sleep_until_ns((clock.now_ns() // node_health.TAINT_PASS_NS + 1) * node_health.TAINT_PASS_NS)
            now_ns = clock.now_ns()
            await self._carry_out(self._health.taint_next(now_ns, self._find), now_ns)
            if not self._health.is_waiting:
                self._somebody_waits.clear()

    async def _carry_out(self, changes: list[Change], decided_ns: int) -> None:
        """Those of one node one after the other, a few nodes at the same time."""
        if not changes:
            return
        by_node: dict[str, list[Change]] = {}
        for change in changes:
            by_node.setdefault(change.name, []).append(change)
        if lag_s := self.lag_s():
            await self.clock.sleep(lag_s)
        waiting = iter(by_node.values())

        async def work() -> None:
            for some in waiting:
                await self._change(some, decided_ns)

        await self.all([work() for _ in range(min(node_health.UPDATE_WORKERS, len(by_node)))], "node changes")

    async def _change(self, changes: list[Change], decided_ns: int) -> None:
        for change in changes:
            if change.unknown and not await self._set_unknown(change.name, change.unknown):
                return
            if change.add or change.remove:
                await self._set_taints(change.name, change.add, change.remove, decided_ns)
            if change.pods_not_ready:
                await self._mark_pods(change.name)

    async def _set_unknown(self, name: str, conditions: tuple[str, ...]) -> bool:
        """Nothing was heard of the node for too long. False: something has come meanwhile, or the node has gone.

        Its turn may come long after the look where many nodes are lost at once, as requests are limited: each is judged
        when its turn comes (``tryUpdateNodeHealth``)."""
        node: core_v1_pb2.Node | None = None
        while True:
            view = self._find(name)
            if view is None or self._health.has_news(view):
                return False
            if node is None:
                node = meta.copied(self._known[name].node)
                if view is not self._known[name].written:  # it states its heartbeats
                    heartbeats.report(node, view.heartbeat_ns)
            else:
                node = await self._get(name)
                if node is None:
                    return False
                ready = meta.get_condition(node.status.conditions, node_health.READY)
                if ready is not None and meta.unix_ns(ready.lastHeartbeatTime) != view.heartbeat_ns:
                    return False
            for condition_type in conditions:
                is_new = meta.get_condition(node.status.conditions, condition_type) is None
                reason = "NodeStatusNeverUpdated" if is_new else "NodeStatusUnknown"
                message = "Kubelet never posted node status." if is_new else "Kubelet stopped posting node status."
                meta.set_condition(
                    node.status.conditions, condition_type, node_health.UNKNOWN, reason, message, self.unix_ns()
                )
                if is_new:
                    condition = meta.get_condition(node.status.conditions, condition_type)
                    assert condition is not None
                    condition.lastHeartbeatTime.CopyFrom(node.metadata.creationTimestamp)
            try:
                await retries.patiently(self.env, partial(self.client.update_status, node))
            except errors.NotFound:
                return False
            except errors.Conflict:
                continue
            self.env.log(NodeUnknown(node=name, conditions=list(conditions)))
            return True

    async def _set_taints(self, name: str, add: tuple[Taint, ...], remove: tuple[Taint, ...], decided_ns: int) -> None:
        while True:
            node = await self._get(name)
            if node is None:
                return
            kept = [taint for taint in node.spec.taints if (taint.key, taint.effect) not in (*remove, *add)]
            there = [(taint.key, taint.effect) for taint in node.spec.taints]
            if all(taint in there for taint in add) and not any(taint in there for taint in remove):
                return
            wanted = [core_v1_pb2.Taint(key=key, effect=effect) for key, effect in add]
            for taint in wanted:
                if taint.effect == node_health.NO_EXECUTE:
                    meta.set_time(taint.timeAdded, self.unix_ns())
            if await self._written(partial(self._patch_taints, node, [*kept, *wanted])):
                added, removed = [[f"{key}:{effect}" for key, effect in taints] for taints in (add, remove)]
                self.env.log(
                    NodeTainted(
                        node=name,
                        start=decided_ns,
                        add=added,
                        remove=removed,
                    )
                )
                return

    def _patch_taints(self, node: core_v1_pb2.Node, taints: list[core_v1_pb2.Taint]) -> Awaitable[Any]:
        """``PatchNodeTaints``: lists of taints do not merge, so no other write may come in between (Conflict)."""
        patch, removed = core_v1_pb2.Node(), b""
        patch.metadata.resourceVersion = node.metadata.resourceVersion
        patch.spec.taints.extend(taints)
        if not taints:
            removed = core_v1_pb2.Node(spec=core_v1_pb2.NodeSpec(taints=[core_v1_pb2.Taint()])).SerializeToString()
        data = patch.SerializeToString(deterministic=True)
        return self.client.patch_message(core_v1_pb2.Node, node.metadata.name, "", data, removed=removed)

    async def _follow_conditions(self, name: str) -> None:
        """The NoSchedule taints of a node that go with its conditions."""
        node = self._nodes.store.get(name)
        changes = None if node is None else _changes_for_conditions(node)
        if changes is not None:
            await self._set_taints(name, *changes, self.clock.now_ns())

    async def _mark_pods(self, node: str) -> None:
        """The node is not ready: neither are its pods."""
        listed = await retries.patiently(
            self.env,
            lambda: self.client.list("pods", field_selector=f"spec.nodeName={node}", resource_version="0"),
        )
        pods = [
            pod
            for pod in cast(list[core_v1_pb2.Pod], listed.items)
            if meta.has_condition(pod.status.conditions, node_health.READY)
        ]
        await self.all([self._mark_pod(pod) for pod in pods], "mark pods not ready")

    async def _mark_pod(self, listed: core_v1_pb2.Pod) -> None:
        pod = meta.copied(listed)
        metadata = pod.metadata
        while meta.set_condition(
            pod.status.conditions, node_health.READY, node_health.FALSE, "", "", self.unix_ns()
        ) and not await self._written(partial(self.client.update_status, pod)):
            try:
                pod = await retries.patiently(
                    self.env, lambda: self.client.get("pods", metadata.name, metadata.namespace)
                )
            except errors.NotFound:
                return
            if pod.metadata.uid != metadata.uid:
                return

    async def _get(self, name: str) -> core_v1_pb2.Node | None:
        try:
            return await retries.patiently(self.env, lambda: self.client.get("nodes", name))
        except errors.NotFound:
            return None

    async def _written(self, request: Callable[[], Awaitable[Any]]) -> bool:
        """False: look again, then try again."""
        try:
            await retries.patiently(self.env, request)
        except errors.NotFound:
            return True
        except errors.Conflict:
            return False
        return True


def _changes_for_conditions(node: core_v1_pb2.Node) -> tuple[tuple[Taint, ...], tuple[Taint, ...]] | None:
    """The NoSchedule taints to add and to remove; None: all is well."""
    conditions = {condition.type: condition.status for condition in node.status.conditions}
    wanted = list(node_health.condition_taints(conditions))
    if node.spec.unschedulable:
        wanted.append((UNSCHEDULABLE, node_health.NO_SCHEDULE))
    there = [
        (taint.key, taint.effect)
        for taint in node.spec.taints
        if taint.effect == node_health.NO_SCHEDULE and taint.key in _CONDITION_TAINTS
    ]
    add = tuple(taint for taint in wanted if taint not in there)
    remove = tuple(taint for taint in there if taint not in wanted)
    return (add, remove) if add or remove else None
