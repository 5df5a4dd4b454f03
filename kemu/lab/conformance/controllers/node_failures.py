"""Recorded node failures, repeated with the actors ``controller/node-lifecycle`` and ``controller/taint-eviction``.

Kubelets are what the case says of them: they renew their leases, unless a node is silent, and post conditions. Each
second, at a fixed moment, the state of all nodes and pods is noted, as the recorder did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kemu.emulated.client import clients
from kemu.emulated.controllers import node_health, node_lifecycle
from kemu.emulated.objects import meta
from kemu.emulated.settings.declared import plain
from kemu.lab.conformance import readings
from kemu.lab.conformance.control_planes import ControlPlane, Deletions
from kemu.lab.conformance.controllers import taint_evictions
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env

Json = dict[str, Any]
M = TypeVar("M", bound=KubernetesObject)
FACTORY = "kemu.lab.conformance.controllers.node_failures:Lifecycle"

WRITE_S = 0.001
"""How long it takes to write the status of a node. Only that it takes any time decides something: the period between
two looks counts from the end of a look. Everything else took no time in the record."""
_MS_NS = 1_000_000
_RENEW_MS = 10_000
_SAMPLE_MS = 600
"""Into each second, when the state is noted."""
_EARLY_NS = 100_000
"""News are written so much before the time that they bear, so that a look at that very time sees them."""


class Lifecycle(node_lifecycle.NodeLifecycleController):
    """The actor, with an API server that takes its time for statuses."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.client = _Client(env)


class _Client(clients.Client):
    __slots__ = ()

    async def update_status(self, obj: M) -> M:
        await self.env.clock.sleep(WRITE_S)
        return await super().update_status(obj)


def answer(case: Json) -> Json:
    plane = ControlPlane()
    kubelets = {data["node"]["metadata"]["name"]: _Kubelet(plane, data) for data in case["nodes"]}
    news: list[tuple[int, int, Callable[[int], Any]]] = []
    horizon_ms = int(case["horizonSeconds"] * 1000)
    for index, kubelet in enumerate(kubelets.values()):
        news += [(at_ms, index, kubelet.renew) for at_ms in range(kubelet.phase_ms, horizon_ms, _RENEW_MS)]
    for index, event in enumerate(case.get("events") or ()):
        news.append((event["atMs"], index, kubelets[event["node"]].poster(event["condition"])))
    news.sort(key=lambda one: one[:2])
    samples = _Samples(plane)

    async def play() -> Json:
        deletions = Deletions(plane)
        await plane.put(*(kubelet.node for kubelet in kubelets.values()), *readings.pods(case.get("pods")))
        samples.nodes = await plane.watch("nodes", _Truncations(plane))
        samples.pods = await plane.watch("pods", deletions)
        settings = node_health.Settings(
            node_monitor_period_ns=round(case["nodeMonitorPeriodSeconds"] * SECOND_NS),
            node_monitor_grace_period_ns=round(case["nodeMonitorGracePeriodSeconds"] * SECOND_NS),
            node_startup_grace_period_ns=round(case["nodeStartupGracePeriodSeconds"] * SECOND_NS),
            node_eviction_rate=case["nodeEvictionRate"],
            secondary_node_eviction_rate=case["secondaryNodeEvictionRate"],
            large_cluster_size_threshold=case["largeClusterSizeThreshold"],
            unhealthy_zone_threshold=case["unhealthyZoneThreshold"],
        )
        await plane.launch("controller/taint-eviction", taint_evictions.FACTORY)
        await plane.launch("controller/node-lifecycle", FACTORY, {"settings": plain(settings)})
        samples.begin()
        await plane.runtime.begin()
        position = 0
        for second in range(horizon_ms // 1000):
            sample_ms = second * 1000 + _SAMPLE_MS
            while position < len(news) and news[position][0] <= sample_ms:
                at_ms, _, tell = news[position]
                position += 1
                if at_ms * _MS_NS > _EARLY_NS:
                    await plane.clock.sleep_until_ns(at_ms * _MS_NS - _EARLY_NS)
                await tell(at_ms)
            await plane.clock.sleep_until_ns(sample_ms * _MS_NS)
            samples.take(second)
        gone = [{"pod": name, "atSeconds": at_ns // SECOND_NS} for at_ns, name in deletions.found]
        return {"nodeChanges": samples.changes, "deletions": gone, "podsMarkedNotReady": samples.marked}

    return {"outcomes": [plane.run(play)]}


class _Kubelet:
    """What is heard of a node."""

    def __init__(self, plane: ControlPlane, data: Json) -> None:
        self.node = readings.node(data["node"])
        self.phase_ms = int(data["leasePhaseMs"])
        self._plane = plane
        self._silent = data.get("silentMs") or ()
        self._lease = coordination_v1_pb2.Lease()
        self._lease.metadata.namespace, self._lease.metadata.name = (
            node_lifecycle.LEASE_NAMESPACE,
            self.node.metadata.name,
        )
        self._has_lease = False
        for condition in self.node.status.conditions:
            self._beat(condition, 0)

    async def renew(self, at_ms: int) -> None:
        """The lease; and a node that finds itself given up says that it is well."""
        if self._is_silent(at_ms):
            return

        def set_time(lease: coordination_v1_pb2.Lease) -> None:
            meta.set_time(lease.spec.renewTime, self._unix_ns(at_ms))

        if self._has_lease:
            await self._plane.change(self._lease, set_time)
        else:
            self._has_lease = True
            set_time(self._lease)
            await self._plane.put(self._lease)
        await self._plane.change(self.node, lambda node: self._recover(node, at_ms))

    def poster(self, wanted: Json) -> Callable[[int], Any]:
        """Posts a condition, with a heartbeat."""

        def set_condition(node: core_v1_pb2.Node, at_ms: int) -> None:
            found = meta.get_condition(node.status.conditions, wanted["type"])
            if found is None:
                found = node.status.conditions.add(type=wanted["type"])
            found.status = wanted["status"]
            for condition in node.status.conditions:
                self._beat(condition, at_ms)

        async def post(at_ms: int) -> None:
            if not self._is_silent(at_ms):
                await self._plane.change(self.node, lambda node: set_condition(node, at_ms))

        return post

    def _recover(self, node: core_v1_pb2.Node, at_ms: int) -> None:
        if any(condition.status == node_health.UNKNOWN for condition in node.status.conditions):
            for condition in node.status.conditions:
                if condition.status == node_health.UNKNOWN:
                    is_ready = condition.type == node_health.READY
                    condition.status = node_health.TRUE if is_ready else node_health.FALSE
                self._beat(condition, at_ms)

    def _beat(self, condition: core_v1_pb2.NodeCondition, at_ms: int) -> None:
        """The recorded kubelets stated times in full; those of Kubernetes state whole seconds."""
        time = condition.lastHeartbeatTime
        time.seconds, time.nanos = divmod(self._unix_ns(at_ms), SECOND_NS)

    def _is_silent(self, at_ms: int) -> bool:
        return any(start <= at_ms < end for start, end in self._silent)

    def _unix_ns(self, at_ms: int) -> int:
        return self._plane.clock.epoch_unix_s * SECOND_NS + at_ms * _MS_NS


class _Truncations:
    """Kubernetes patches objects as JSON, whose times are whole seconds: a patch of the taints cuts the heartbeats.

    In kemu no object has other times, but for those of the recorded kubelets.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def on_add(self, obj: KubernetesObject) -> None:
        pass

    def on_update(self, old: Any, new: Any) -> None:
        if list(old.spec.taints) != list(new.spec.taints):
            self._plane.env.spawn(self._plane.change(new, self._truncate), f"times of {new.metadata.name}")

    def on_delete(self, old: KubernetesObject) -> None:
        pass

    def _truncate(self, node: core_v1_pb2.Node) -> None:
        for condition in node.status.conditions:
            condition.lastHeartbeatTime.ClearField("nanos")


class _Samples:
    """The state of nodes and pods as it changes from one second to the next."""

    def __init__(self, plane: ControlPlane) -> None:
        self.nodes: dict[str, core_v1_pb2.Node] = {}
        self.pods: dict[str, core_v1_pb2.Pod] = {}
        self.changes: list[Json] = []
        self.marked: list[Json] = []
        self._states: dict[str, Json] = {}
        self._ready: dict[str, bool] = {}

    def begin(self) -> None:
        self._ready = {key: _is_ready(pod) for key, pod in self.pods.items()}

    def take(self, at_s: int) -> None:
        for name, node in self.nodes.items():
            ready = meta.get_condition(node.status.conditions, node_health.READY)
            state = {
                "node": name,
                "ready": "" if ready is None else ready.status,
                "taints": sorted(f"{taint.key}:{taint.effect}" for taint in node.spec.taints),
            }
            if state != self._states.get(name):
                self._states[name] = state
                self.changes.append({"atSeconds": at_s, **state})
        for key, pod in self.pods.items():
            if self._ready[key] and not _is_ready(pod):
                self._ready[key] = False
                self.marked.append({"pod": pod.metadata.name, "atSeconds": at_s})


def _is_ready(pod: core_v1_pb2.Pod) -> bool:
    return meta.has_condition(pod.status.conditions, node_health.READY)
