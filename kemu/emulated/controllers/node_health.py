"""What happens to nodes that fall silent or are not ready: the decisions of
:mod:`kemu.emulated.controllers.node_lifecycle`.

Mirrors ``pkg/controller/nodelifecycle``: a node whose lease is not renewed becomes ``Unknown``; its conditions become
NoSchedule taints at once, and a NoExecute taint through a queue for each zone, at a rate that falls when much of a zone
is lost. A state machine with explicit time: :meth:`NodeLifecycle.monitor` and :meth:`NodeLifecycle.taint_next` are told
the nodes as they are and return what to write. Times are in ns since any origin.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kemu.emulated.controllers import taint_queues
from kemu.emulated.objects.amounts import floats
from kemu.emulated.settings.declared import setting
from kemu.emulated.settings.shapes import DURATION, PERIOD, Number, Whole

READY = "Ready"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MONITORED = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that become Unknown when a node falls silent."""

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
TAINT_OF = {
    (READY, FALSE): NOT_READY,
    (READY, UNKNOWN): UNREACHABLE,
    ("MemoryPressure", TRUE): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", TRUE): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", TRUE): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", TRUE): "node.kubernetes.io/pid-pressure",
}
"""Which taint a condition with a status calls for."""

EXCLUDE_DISRUPTION = "node.kubernetes.io/exclude-disruption"
"""A label, whatever its value."""

TAINT_PASS_NS = 100_000_000
"""How often the queues of nodes to be tainted are looked at (``NodeEvictionPeriod``)."""
TAINT_RETRY_NS = 50_000_001
"""Until a node without a Ready condition is tried again."""
UPDATE_WORKERS = 8
"""Nodes that one look handles at the same time (``UpdateWorkerSize``)."""

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
_INITIAL, _NORMAL, _PARTIAL, _FULL = "initial", "normal", "partially disrupted", "fully disrupted"
_PARTIAL_MORE_THAN = 2
"""So many nodes may be lost before a zone counts as disrupted."""

Taint = tuple[str, str]
"""Key and effect."""
_NOBODY: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The fields of a KubeControllerManagerConfiguration's ``nodeLifecycleController``; rates in nodes per second."""

    node_monitor_period_ns: int = setting(PERIOD, "How often it looks at all nodes; {default} by default.", "5s")
    node_monitor_grace_period_ns: int = setting(
        DURATION, "How long nothing may be heard of a node; {default} by default.", "40s"
    )
    node_startup_grace_period_ns: int = setting(
        DURATION, "The same of a node that has just come; {default} by default.", "60s"
    )
    node_eviction_rate: float = setting(
        Number(0), "Lost nodes that are tainted NoExecute, per second and zone; {default} by default.", 0.1
    )
    secondary_node_eviction_rate: float = setting(
        Number(0), "The same where much of a large zone is lost; {default} by default.", 0.01
    )
    large_cluster_size_threshold: int = setting(
        Whole(0), "From more nodes on a zone counts as large; {default} by default.", 50
    )
    unhealthy_zone_threshold: float = setting(
        Number(0), "The share of lost nodes from which much of a zone is lost; {default} by default.", 0.55
    )


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the controller sees it."""

    name: str
    zone: str
    """Region and zone together."""
    conditions: Mapping[str, str]
    heartbeat_ns: int
    """Heartbeat of the condition Ready, by the kubelet's clock: it is only compared with earlier ones."""
    lease_ns: int | None
    """When the lease was renewed, likewise."""
    taints: tuple[Taint, ...]
    created_ns: int = 0
    excluded: bool = False
    """It does not count when it is judged how much of its zone is lost (:data:`EXCLUDE_DISRUPTION`)."""


@dataclass(slots=True)
class Change:
    """What to write about one node. Changes are made in the order in which they are returned."""

    name: str
    unknown: tuple[str, ...] = ()
    """Conditions that become Unknown."""
    add: tuple[Taint, ...] = ()
    remove: tuple[Taint, ...] = ()
    pods_not_ready: bool = False
    """The Ready condition of its pods becomes False."""


@dataclass(slots=True)
class Health:
    """What is remembered of a node."""

    heartbeat_ns: int | None
    lease_ns: int | None
    probe_ns: int
    """When news of it was last seen, by the controller's own clock."""


@dataclass(slots=True)
class _Zone:
    queue: taint_queues.TaintQueue
    state: str = _INITIAL
    ready: list[bool] = field(default_factory=list)
    """Whether each node that counts is ready, as seen in this pass."""
    steady: int = 0
    """So many more count, and are ready."""

    @property
    def size(self) -> int:
        return len(self.ready) + self.steady


def condition_taints(conditions: Mapping[str, str]) -> tuple[Taint, ...]:
    """The NoSchedule taints that go with the conditions of a node, at any time."""
    return tuple(
        (TAINT_OF[condition, conditions[condition]], NO_SCHEDULE)
        for condition in sorted(conditions)
        if (condition, conditions[condition]) in TAINT_OF
    )


class NodeLifecycle:
    """See the module."""

    def __init__(
        self, settings: Settings, queue_of: Callable[[float, int], taint_queues.TaintQueue] = taint_queues.TaintQueue
    ) -> None:
        """``queue_of`` makes the queue of a zone."""
        self._settings = settings
        self._queue_of = queue_of
        self._health: dict[str, Health] = {}
        self._zones: dict[str, _Zone] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a node is to be tainted, so that :meth:`taint_next` has something to do."""
        return any(len(zone.queue) for zone in self._zones.values())

    def monitor(self, now_ns: int, nodes: Sequence[NodeView], steady: Mapping[str, int] = _NOBODY) -> list[Change]:
        """One look at all nodes but those that were released; ``steady``: how many of those count in each zone."""
        changes: list[Change] = []
        for name, zone in self._zones.items():
            zone.ready.clear()
            zone.steady = steady.get(name, 0)
        seen = {node.name for node in nodes}
        for gone in [name for name in self._health if name not in seen]:
            del self._health[gone]
            for zone in self._zones.values():
                zone.queue.forget(gone)
        for node in nodes:
            if node.zone not in self._zones:
                self._zones[node.zone] = _Zone(self._queue_of(self._settings.node_eviction_rate, now_ns))
        for node in nodes:
            if node.name not in self._health:
                self._mark_reachable(node, changes)
        for step_ns, node, unknown in self._in_order_of_work(now_ns, nodes):
            if unknown:
                changes.append(Change(node.name, unknown=unknown))
            status = UNKNOWN if READY in unknown else node.conditions.get(READY, "")
            if not node.excluded:
                self._zones[node.zone].ready.append(status == TRUE)
            if not status:
                continue
            self._process(node, status, now_ns + step_ns, changes)
            if status != TRUE and node.conditions.get(READY, UNKNOWN) == TRUE:
                changes.append(Change(node.name, pods_not_ready=True))
        self._judge_zones(now_ns, nodes, changes)
        self._forget_zones(nodes)
        return changes

    def _in_order_of_work(self, now_ns: int, nodes: Sequence[NodeView]) -> list[tuple[int, NodeView, tuple[str, ...]]]:
        """When (in steps) each node gets to its taints, and the conditions of it that become Unknown.

        A few workers go through the nodes (``workqueue.ParallelizeUntil``), and writing the status of a node takes one
        a moment. So of the nodes of one look, those that were found lost just now queue up for their taint behind those
        that have been waiting, wherever they stand in the list.
        """
        free = [0] * min(UPDATE_WORKERS, len(nodes))
        found = []
        for index, node in enumerate(nodes):
            step = heapq.heappop(free)
            unknown = self._check(node, now_ns)
            step += bool(unknown)
            found.append((step, index, unknown))
            heapq.heappush(free, step)
        found.sort(key=lambda one: one[:2])
        return [(step, nodes[index], unknown) for step, index, unknown in found]

    def _forget_zones(self, nodes: Sequence[NodeView]) -> None:
        """Forget zones without nodes; when a node comes its queue is a new one."""
        if empty := [name for name, zone in self._zones.items() if not zone.size and not len(zone.queue)]:
            inhabited = {node.zone for node in nodes}
            for name in empty:
                if name not in inhabited:
                    del self._zones[name]

    def taint_next(self, now_ns: int, find: Callable[[str], NodeView | None]) -> list[Change]:
        """One look at the queues of nodes to be tainted (``doNoExecuteTaintingPass``). ``find``: the node as it is."""
        changes: list[Change] = []
        for zone in self._zones.values():
            while (name := zone.queue.take(now_ns)) is not None:
                node = find(name)
                if node is None:
                    zone.queue.forget(name)
                    continue
                status = node.conditions.get(READY)
                if status is None:
                    zone.queue.put_back(name, now_ns + TAINT_RETRY_NS)
                elif status in (FALSE, UNKNOWN):
                    _swap(node, status, changes)
        return changes

    def has_news(self, node: NodeView) -> bool:
        """Whether something was heard of a node since the last look at it."""
        health = self._health.get(node.name)
        heartbeat_ns = node.heartbeat_ns if READY in node.conditions else None
        return health is None or (health.heartbeat_ns, health.lease_ns) != (heartbeat_ns, node.lease_ns)

    def release(self, name: str) -> Health:
        """Forget a node that is ready and stays so: the caller sees to it that news of it keep coming."""
        return self._health.pop(name)

    def resume(self, name: str, health: Health, looks: Iterable[tuple[int, NodeView]]) -> None:
        """A node that was released is looked at again. ``looks``: times, and how it looked, since ``health`` held."""
        self._health[name] = health
        for when_ns, node in looks:
            self._check(node, when_ns)

    def _check(self, node: NodeView, now_ns: int) -> tuple[str, ...]:
        """The conditions that become Unknown because nothing was heard of the node for too long."""
        is_new_to_cluster = READY not in node.conditions
        grace_ns = (
            self._settings.node_startup_grace_period_ns
            if is_new_to_cluster
            else self._settings.node_monitor_grace_period_ns
        )
        heartbeat_ns = None if is_new_to_cluster else node.heartbeat_ns
        health = self._health.get(node.name)
        if health is None:
            probe_ns = node.created_ns if is_new_to_cluster else now_ns
            health = self._health[node.name] = Health(heartbeat_ns, None, probe_ns)
        known_lease_ns = health.lease_ns
        if heartbeat_ns is not None and health.heartbeat_ns != heartbeat_ns:
            # With a heartbeat the real controller forgets the lease that it knew, so the same lease is news once more.
            health.heartbeat_ns, health.probe_ns, health.lease_ns = heartbeat_ns, now_ns, None
        if node.lease_ns is not None and (known_lease_ns is None or node.lease_ns > known_lease_ns):
            health.lease_ns, health.probe_ns = node.lease_ns, now_ns
        if now_ns - health.probe_ns <= grace_ns:
            return ()
        if node.conditions.get(READY) == UNKNOWN:
            return ()  # It is known to be lost: nothing is written, whatever its other conditions say.
        health.lease_ns = node.lease_ns
        return tuple(condition for condition in MONITORED if node.conditions.get(condition) != UNKNOWN)

    def _process(self, node: NodeView, status: str, now_ns: int, changes: list[Change]) -> None:
        """The NoExecute taint of a node: at once where it only changes its kind, else through the queue."""
        if status == TRUE:
            self._mark_reachable(node, changes)
            return
        wanted, opposite = (NOT_READY, UNREACHABLE) if status == FALSE else (UNREACHABLE, NOT_READY)
        if (opposite, NO_EXECUTE) in node.taints:
            _swap(node, status, changes)
            return
        queue = self._zones[node.zone].queue
        if (wanted, NO_EXECUTE) not in node.taints:
            queue.remove(node.name)
        queue.add(node.name, now_ns)

    def _mark_reachable(self, node: NodeView, changes: list[Change]) -> None:
        taints = tuple((key, NO_EXECUTE) for key in (UNREACHABLE, NOT_READY) if (key, NO_EXECUTE) in node.taints)
        if taints:
            changes.append(Change(node.name, remove=taints))
        self._zones[node.zone].queue.remove(node.name)

    def _judge_zones(self, now_ns: int, nodes: Sequence[NodeView], changes: list[Change]) -> None:
        zones = {name: zone for name, zone in self._zones.items() if zone.size}
        states = {name: self._state(zone) for name, zone in zones.items()}
        all_are_lost = all(state == _FULL for state in states.values())
        all_were_lost = all(zone.state == _FULL for zone in zones.values())
        for zone in self._zones.values():
            # Of a zone without a node that counts nothing is remembered.
            if not zone.size:
                zone.queue.set_rate(self._settings.node_eviction_rate, now_ns)
                zone.state = _INITIAL
        if all_are_lost and all_were_lost:
            return
        if all_are_lost:
            # More likely the controller is cut off than that every node has died: no pod is driven away.
            for node in nodes:
                self._mark_reachable(node, changes)
            for zone in zones.values():
                zone.queue.set_rate(0, now_ns)
                zone.state = _FULL
            return
        if all_were_lost:
            for health in self._health.values():
                health.probe_ns = now_ns
        for name, zone in zones.items():
            if all_were_lost or zone.state != states[name]:
                zone.queue.set_rate(self._rate(states[name], zone.size), now_ns)
                zone.state = states[name]

    def _state(self, zone: _Zone) -> str:
        lost = zone.ready.count(False)
        if lost == zone.size:
            return _FULL
        if lost > _PARTIAL_MORE_THAN and floats.to_32_bits(lost / zone.size) >= floats.to_32_bits(
            self._settings.unhealthy_zone_threshold
        ):
            return _PARTIAL
        return _NORMAL

    def _rate(self, state: str, size: int) -> float:
        if state != _PARTIAL:
            return self._settings.node_eviction_rate
        return self._settings.secondary_node_eviction_rate if size > self._settings.large_cluster_size_threshold else 0


def _swap(node: NodeView, status: str, changes: list[Change]) -> None:
    wanted, opposite = (NOT_READY, UNREACHABLE) if status == FALSE else (UNREACHABLE, NOT_READY)
    remove = ((opposite, NO_EXECUTE),) if (opposite, NO_EXECUTE) in node.taints else ()
    changes.append(Change(node.name, add=((wanted, NO_EXECUTE),), remove=remove))
