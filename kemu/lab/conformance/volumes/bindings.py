"""Recorded cases of the plugin VolumeBinding, made again by
:mod:`kemu.emulated.scheduler.plugins.volumes.volume_binding`.

Each pod of a case passes through PreFilter, Filter on every node, Reserve and PreBind, while others change claims,
volumes, nodes and pods. Calls and watch events take no time.
"""

from __future__ import annotations

from typing import Any

from kemu import errors
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, Handle
from kemu.emulated.scheduler.framework.statuses import Status
from kemu.emulated.scheduler.plugins.volumes.volume_binding import VolumeBinding
from kemu.lab.conformance.volumes import storage_worlds
from kemu.lab.conformance.volumes.storage_worlds import Objects
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]


def answer(case: Json) -> Json:
    runtime = SimRuntime(0, lambda now_ns, actor, kind, data: None)
    env = runtime.env("scheduler")
    world = _World(case, env)

    async def main() -> None:
        await runtime.begin()
        for number, one in enumerate(case["pending"]):
            at_ns = round(one["atS"] * SECOND_NS)
            env.clock.call_at_ns(at_ns, lambda one, place: env.spawn(world.place(one, place), "pod"), one, number)
        for event in case.get("events", ()):
            env.clock.call_at_ns(round(event["atS"] * SECOND_NS), world.happen, event)
        await env.clock.sleep(case["horizonS"])

    runtime.run(main())
    return world.outcome()


class _Queue:
    """No pod waits in a queue here."""

    def move(self, *anything: Any) -> None:
        pass


class _World:
    """Cluster and API of one plugin."""

    def __init__(self, case: Json, env: Env) -> None:
        self.clock = env.clock
        self.objects = Objects()
        self.cluster = Cluster()
        handle = Handle(self.cluster, env.random)
        handle.clock, handle.api = env.clock, self  # type: ignore[assignment]
        handle.latest = lambda pod: self.objects.find("Pod", pod.namespace, pod.name)
        self.plugin = VolumeBinding({"bindTimeoutSeconds": case["bindTimeoutSeconds"]}, handle)
        self._feeds = feeds.storage_feeds(self.cluster, _Queue())  # type: ignore[arg-type]
        self.found: list[Json] = [{"pod": one["pod"]["metadata"]["name"]} for one in case["pending"]]
        for obj in storage_worlds.objects(case):
            self._show(None, self.objects.put(obj))

    def happen(self, event: Json) -> None:
        old, new = storage_worlds.changed_by(event, self.objects.find)
        if new is not None:
            self.objects.put(new)
        elif old is not None:
            self.objects.remove(old)
        self._show(old, new)

    async def update(self, obj: KubernetesObject) -> Any:
        """The API as the plugin calls it."""
        row = resources.of(obj)
        old = self.objects.find(row.kind, obj.metadata.namespace, obj.metadata.name)
        if old is None:
            raise errors.NotFound(f'{row.qualified} "{obj.metadata.name}" not found')
        new = meta.copied(obj)
        self._show(old, self.objects.put(new))
        return new

    def _show(self, old: Any, new: Any) -> None:
        """What a watch does."""
        obj = old if new is None else new
        if obj is None:
            return
        if isinstance(obj, core_v1_pb2.Node):
            if new is None:
                self.cluster.remove_node(obj.metadata.name)
            else:
                self.cluster.set_node(new)
            return
        feed = self._feeds.get(resources.of(obj).plural)
        if feed is None:
            return
        if new is None:
            feed.on_delete(obj)
        elif old is None:
            feed.on_add(new)
        else:
            feed.on_update(old, new)

    async def place(self, one: Json, place: int) -> None:
        """A scheduling cycle and a binding cycle, as far as the plugin takes part in them."""
        found, plugin, cluster = self.found[place], self.plugin, self.cluster
        cycle = Cycle(cluster.pending(convert.from_json(core_v1_pb2.Pod, one["pod"])), cluster)
        state = plugin.prepare(cycle) if plugin.concerns(cycle.template) else SKIP
        if state is SKIP:
            found["preFilter"] = {"code": "Skip"}
            return
        if isinstance(state, Status):
            found["preFilter"] = _said(state)
            return
        cluster.settle()
        found["nodes"] = {}
        feasible: dict[str, None] = {}
        for node in cluster.rows:
            verdict = plugin.verdict(state, node)
            if verdict:
                found["nodes"][node.name] = _said(plugin.explain(state, verdict))
                continue
            feasible[node.name] = None
            volumes = state.by_node[node.name]
            static = {binding.claim.metadata.name: binding.volume.metadata.name for binding in volumes.static}
            provision = sorted(one.claim.metadata.name for one in volumes.provisions)
            found["nodes"][node.name] = _filled({"static": static, "provision": provision})
        chosen = next((name for name in one["nodes"] if name in feasible), "")
        if not chosen:
            return
        found["node"] = chosen
        status = plugin.reserve(cycle, chosen)
        if status is not None:
            found["reserve"] = _said(status)
            plugin.unreserve(cycle, chosen)
            return
        if state.all_bound:
            found["allBound"] = True
        if plugin.pre_bind_pre_flight(cycle, chosen) is SKIP:
            return
        status = await plugin.pre_bind(cycle, chosen)
        found["endedAtS"] = round(self.clock.now_ns() / SECOND_NS, 3)
        if status is not None:
            found["preBind"] = _said(status)
            plugin.unreserve(cycle, chosen)

    def outcome(self) -> Json:
        volumes, claims = self.objects.of_kind("PersistentVolume"), self.objects.of_kind("PersistentVolumeClaim")
        return {
            "pods": self.found,
            "volumes": {one.metadata.name: storage_worlds.volume_state(one) for one in volumes},
            "claims": {meta.namespaced_name(one): storage_worlds.claim_state(one) for one in claims},
        }


def _said(status: Status) -> Json:
    return _filled({"code": status.code, "reasons": list(status.reasons)})


def _filled(data: Json) -> Json:
    return {key: value for key, value in data.items() if value}
