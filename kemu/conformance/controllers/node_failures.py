"""Recorded decisions on taints and lost nodes."""

from __future__ import annotations

from typing import Any

from kemu.conformance import readings
from kemu.controllers import node_health as lifecycles
from kemu.controllers import taint_timers as taint_evictions
from kemu.k8s import core_v1_pb2
from kemu.objects import meta
from kemu.objects.conversion import convert

Json = dict[str, Any]
_MS_NS = 1_000_000


def taint_eviction(case: Json) -> Json:
    world = _TaintedNodes()
    for node in (readings.node(data) for data in case.get("nodes") or ()):
        world.set_taints(node.metadata.name, node.spec.taints, 0)
    initial = readings.pods(case.get("pods"))
    for pod in initial:
        world.add(pod, 0)
    world.evict(0)
    for event in case.get("events") or ():
        at_ns = event["atMs"] * _MS_NS
        world.evict(at_ns)
        world.happen(event, at_ns)
    world.evict(case["horizonMs"] * _MS_NS)
    return {
        "deletions": [{"pod": name, "atMs": at_ns // _MS_NS} for at_ns, name in sorted(world.deletions)],
        "remaining": sorted(world.pods),
        "minTolerationSeconds": {
            pod.metadata.name: taint_evictions.shortest_toleration_s(pod.spec.tolerations) for pod in initial
        },
    }


class _TaintedNodes:
    """Nodes and pods, and the controller that watches them."""

    def __init__(self) -> None:
        self.controller = taint_evictions.TaintEviction()
        self.nodes: dict[str, None] = {}
        self.pods: dict[str, Any] = {}
        self.deletions: list[tuple[int, str]] = []

    def set_taints(self, name: str, taints: Any, now_ns: int) -> None:
        self.nodes[name] = None
        self.controller.set_node(name, taints, now_ns)

    def add(self, pod: Any, now_ns: int) -> None:
        self.pods[pod.metadata.name] = pod
        self.controller.set_pod(pod.metadata.name, pod, now_ns)

    def evict(self, now_ns: int) -> None:
        for at_ns, name in self.controller.due(now_ns):
            self.deletions.append((at_ns, name))
            del self.pods[name]
            self.controller.forget_pod(name)

    def happen(self, event: Json, now_ns: int) -> None:
        """Events on objects that are gone have no effect."""
        what = event["do"]
        if what == "addPod":
            self.add(readings.pod(event["newPod"]), now_ns)
        elif what in ("setTaints", "deleteNode"):
            name = event["node"]
            if name not in self.nodes:
                return
            if what == "setTaints":
                taints = [convert.from_json(core_v1_pb2.Taint, taint) for taint in event.get("taints") or ()]
                self.set_taints(name, taints, now_ns)
            else:
                del self.nodes[name]
                self.controller.forget_node(name)
        elif event["pod"] in self.pods:
            name = event["pod"]
            if what == "deletePod":
                del self.pods[name]
                self.controller.forget_pod(name)
            else:
                pod = core_v1_pb2.Pod()
                pod.CopyFrom(self.pods[name])
                del pod.spec.tolerations[:]
                pod.spec.tolerations.extend(
                    convert.from_json(core_v1_pb2.Toleration, one) for one in event.get("tolerations") or ()
                )
                self.add(pod, now_ns)
        self.evict(now_ns)


# Nodes that fall silent -----------------------------------------------------------------------------------------------

_RENEW_MS = 10_000
_SAMPLE_MS = 600
"""Into each second, when the state is written down."""
_TOLERANCE_S = 1
_WRITE_NS = 1_000_000
"""What the controller takes to write that nodes are lost. Only that it is more than nothing decides anything."""
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


def differences(recorded: Json, answered: Json) -> list[str]:
    """Between two courses of events: times may be off by a second."""
    found: list[str] = []
    for what, name in (("nodeChanges", "node"), ("deletions", "pod"), ("podsMarkedNotReady", "pod")):
        here, there = (_by_name(course.get(what) or (), name) for course in (recorded, answered))
        for key in sorted({*here, *there}):
            ours, theirs = there.get(key, []), here.get(key, [])
            same = len(ours) == len(theirs) and all(
                abs(one[0] - other[0]) <= _TOLERANCE_S and one[1] == other[1]
                for one, other in zip(ours, theirs, strict=True)
            )
            if not same:
                found.append(f"{what} of {key}: recorded {theirs}, kemu {ours}")
    return found


def _by_name(entries: Any, name: str) -> dict[str, list[tuple[float, Json]]]:
    found: dict[str, list[tuple[float, Json]]] = {}
    for entry in entries:
        rest = {key: entry[key] or None for key in sorted(entry) if key not in (name, "atSeconds")}
        found.setdefault(entry[name], []).append((entry["atSeconds"], rest))
    return found


def node_failure(case: Json) -> Json:
    cluster = _Cluster(case)
    period_ms = int(case["nodeMonitorPeriodSeconds"] * 1000)
    pass_ms = lifecycles.TAINT_PASS_NS // _MS_NS
    horizon_ms = int(case["horizonSeconds"] * 1000)
    happenings: list[tuple[int, int, str, Json]] = []
    for index, data in enumerate(case["nodes"]):
        silent = data.get("silentMs") or ()
        name = data["node"]["metadata"]["name"]
        renewals = range(int(data["leasePhaseMs"]), horizon_ms, _RENEW_MS)
        happenings += [(at_ms, index, name, {}) for at_ms in renewals if not _is_silent(silent, at_ms)]
    silent_of = {data["node"]["metadata"]["name"]: data.get("silentMs") or () for data in case["nodes"]}
    for index, event in enumerate(case.get("events") or ()):
        if not _is_silent(silent_of[event["node"]], event["atMs"]):
            happenings.append((event["atMs"], index, event["node"], event["condition"]))
    happenings.sort(key=lambda one: one[:2])
    position = 0
    monitor_ns = 0
    for tick_ms in range(0, horizon_ms, pass_ms):
        while position < len(happenings) and happenings[position][0] <= tick_ms:
            at_ms, _, name, condition = happenings[position]
            cluster.hear(name, condition, at_ms * _MS_NS)
            position += 1
        now_ns = tick_ms * _MS_NS
        # A node found by a pass is tainted in the next look at the queue.
        if cluster.lifecycle.is_waiting:
            views = {view.name: view for view in cluster.views()}
            cluster.apply(cluster.lifecycle.taint_next(now_ns, views.get), now_ns)
        if now_ns >= monitor_ns // readings.SECOND_NS * readings.SECOND_NS:
            changes = cluster.lifecycle.monitor(monitor_ns, cluster.views())
            cluster.apply(changes, now_ns)
            # The period counts from the end of a pass, and to write the status of a node takes a moment.
            wrote = any(change.unknown for change in changes)
            monitor_ns += period_ms * _MS_NS + (_WRITE_NS if wrote else 0)
        cluster.evict(now_ns)
        if tick_ms % 1000 == _SAMPLE_MS:
            cluster.sample(tick_ms // 1000)
    course = {"nodeChanges": cluster.changes, "deletions": cluster.deletions, "podsMarkedNotReady": cluster.marked}
    return {"outcomes": [course]}


def _is_silent(spans: Any, at_ms: int) -> bool:
    return any(start <= at_ms < end for start, end in spans)


class _Node:
    """The object as it stands."""

    def __init__(self, node: Any) -> None:
        labels = node.metadata.labels
        region, zone = (labels.get(key, "") for key in (_REGION, _ZONE))
        self.name: str = node.metadata.name
        self.zone = f"{region}:{zone}" if region or zone else ""
        self.conditions = {condition.type: condition.status for condition in node.status.conditions}
        self.heartbeat_ns = 0
        self.lease_ns: int | None = None
        self.taints: set[lifecycles.Taint] = {(taint.key, taint.effect) for taint in node.spec.taints}
        self.written: Json = {}

    def taint(self, taints: set[lifecycles.Taint]) -> None:
        """Taints are written as a patch, by which the times in the object lose what is less than a second.

        So the heartbeat becomes another one, which the controller takes for news. Posted conditions keep their times.
        """
        if taints != self.taints:
            self.taints = taints
            self.heartbeat_ns -= self.heartbeat_ns % readings.SECOND_NS


class _Cluster:
    """Nodes, pods, and the two controllers."""

    def __init__(self, case: Json) -> None:
        self.lifecycle = lifecycles.NodeLifecycle(
            lifecycles.Settings(
                grace_ns=int(case["nodeMonitorGracePeriodSeconds"] * readings.SECOND_NS),
                startup_grace_ns=int(case["nodeStartupGracePeriodSeconds"] * readings.SECOND_NS),
                eviction_rate=case["nodeEvictionRate"],
                secondary_eviction_rate=case["secondaryNodeEvictionRate"],
                large_cluster_size=case["largeClusterSizeThreshold"],
                unhealthy_zone_share=case["unhealthyZoneThreshold"],
            )
        )
        self.changes: list[Json] = []
        self.deletions: list[Json] = []
        self.marked: list[Json] = []
        self._evictions = taint_evictions.TaintEviction()
        self._nodes = {node.name: node for node in (_Node(readings.node(data["node"])) for data in case["nodes"])}
        self._pods = {pod.metadata.name: pod for pod in readings.pods(case.get("pods"))}
        self._marked: dict[str, bool] = {}
        """Pods that are no longer ready, and whether that has been written down."""
        for node in self._nodes.values():
            self._retaint(node, 0)
        for name, pod in self._pods.items():
            self._evictions.set_pod(name, pod, 0)

    def views(self) -> list[lifecycles.NodeView]:
        return [
            lifecycles.NodeView(
                node.name,
                node.zone,
                dict(node.conditions),
                node.heartbeat_ns,
                node.lease_ns,
                tuple(sorted(node.taints)),
            )
            for node in self._nodes.values()
        ]

    def hear(self, name: str, condition: Json, now_ns: int) -> None:
        """The kubelet renews its lease, or posts a condition."""
        node = self._nodes[name]
        if condition:
            node.conditions[condition["type"]] = condition["status"]
            node.heartbeat_ns = now_ns
        else:
            node.lease_ns = now_ns
            if lifecycles.UNKNOWN in node.conditions.values():
                for kind, status in node.conditions.items():
                    if status == lifecycles.UNKNOWN:
                        node.conditions[kind] = lifecycles.TRUE if kind == lifecycles.READY else lifecycles.FALSE
                node.heartbeat_ns = now_ns
        self._retaint(node, now_ns)

    def apply(self, changes: list[lifecycles.Change], now_ns: int) -> None:
        for change in changes:
            node = self._nodes[change.name]
            node.conditions.update(dict.fromkeys(change.unknown, lifecycles.UNKNOWN))
            node.taint(node.taints.difference(change.remove).union(change.add))
            self._retaint(node, now_ns)
            if change.pods_not_ready:
                for name, pod in self._pods.items():
                    if pod.spec.nodeName == node.name and meta.has_condition(pod.status.conditions, "Ready"):
                        self._marked.setdefault(name, False)

    def _retaint(self, node: _Node, now_ns: int) -> None:
        """The NoSchedule taints follow the conditions at once; then the pods hear of the taints."""
        kept = {
            taint for taint in node.taints if taint[1] != lifecycles.NO_SCHEDULE or taint[0] not in _CONDITION_TAINTS
        }
        node.taint(kept.union(lifecycles.condition_taints(node.conditions)))
        taints = [core_v1_pb2.Taint(key=key, effect=effect) for key, effect in sorted(node.taints)]
        self._evictions.set_node(node.name, taints, now_ns)

    def evict(self, now_ns: int) -> None:
        for at_ns, name in self._evictions.due(now_ns):
            self.deletions.append({"pod": name, "atSeconds": at_ns // readings.SECOND_NS})
            del self._pods[name]
            self._evictions.forget_pod(name)

    def sample(self, at_s: int) -> None:
        for node in self._nodes.values():
            state = {
                "node": node.name,
                "ready": node.conditions.get(lifecycles.READY, ""),
                "taints": sorted(f"{key}:{effect}" for key, effect in node.taints),
            }
            if state != node.written:
                node.written = state
                self.changes.append({"atSeconds": at_s, **state})
        for name, is_written in list(self._marked.items()):
            if not is_written and name in self._pods:
                self._marked[name] = True
                self.marked.append({"pod": name, "atSeconds": at_s})


_CONDITION_TAINTS = tuple(lifecycles.TAINT_OF.values())
