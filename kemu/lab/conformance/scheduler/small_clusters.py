"""A minimal cluster around kemu's scheduler, with the rules that the recorded timelines state.

The engine (queue, cache, plugins, preemption, binding) is the production code on the virtual clock of ``sim``; the API
and everything else are the few rules below: calls take 3 ms and are applied shortly before their end, watch events come
at once (or ``watch_s`` later), attempts are 1 ms apart, and an idle scheduler looks at its queue 0.4 ms after each
whole millisecond; pods run when bound and vanish when their grace period or shutdown time is over.

So an attempt knows all that happened before it, and nothing happens in the instant in which one begins, as in the
recorded environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.loop import Engine
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.emulated.scheduler.queue.queues import QueuedPod
from kemu.lab.conformance.scheduler import scripts
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2, scheduling_v1alpha2_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS, ActorSpec, Random
from kemu.runtime.runlog import events
from kemu.runtime.sim.simulation import SimEnv, SimRuntime

ORPHANS_LIVE_S = 40
REJECTED_ON_ITS_NODE = "0/1 nodes are available"
EXTENDER = "kemu.lab.conformance.scheduler.scripts:ScriptedExtenderActor"
EXTENDER_CALL_S = 0
"""Calls of extenders leave the recorded process, and its virtual clock does not count them."""
SHUTDOWN, RUN = "kemu.dev/shutdown-seconds", "kemu.dev/run-seconds"


STATUS_ERRORS: Mapping[str, type[errors.ApiError]] = {
    **{name: errors.API_ERRORS[name] for name in ("Conflict", "InternalError", "ServiceUnavailable", "Timeout")},
    "TooManyRequests": errors.TooManyRequests,
    "outcome unknown": errors.OutcomeUnknown,
    "connection refused": errors.ConnectionRefused,
    "connection reset": errors.ConnectionLost,
}
"""What patches of a status get in place of an answer, in the words of the cases."""


class _Least(Random):
    """In cases with such errors: waits without jitter, and the first of equal nodes."""

    def random(self) -> float:
        return 0.0


class Latencies(NamedTuple):
    """Latencies of the recorded scheduler. No outcome may depend on them."""

    call_s: float = 0.003
    """An API call of the scheduler."""
    step_s: float = 0.001
    """Between the end of an attempt and the next."""
    answer_s: float = 0.0006
    """From the moment at which a call is applied to its end."""


PERIOD_NS, PHASE_NS = MILLISECOND_NS, 400_000
"""An idle scheduler looks at its queue once in a period, so long after its beginning: users and timers act there."""


class PacedEngine(Engine):
    """Looks at its queue when users and timers do not act, and pauses after each attempt."""

    step_s = 0.0

    async def run(self) -> None:
        self.queue.start()
        await self._look()
        await self.schedule_all()

    async def wait_for_pods(self) -> None:
        await super().wait_for_pods()
        await self._look()

    async def _look(self) -> None:
        now_ns = self._env.clock.now_ns()
        await self._env.clock.sleep_until_ns(now_ns + PERIOD_NS - (now_ns - PHASE_NS) % PERIOD_NS)

    async def schedule_one(self, pod: QueuedPod) -> None:
        await super().schedule_one(pod)
        await self._env.clock.sleep(self.step_s)


def extenders_of(case: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The actors of the extenders, and how each is configured."""
    return [(f"extender/{number}", one["configuration"]) for number, one in enumerate(case.get("extenders", ()))]


class World:
    """The API server, the kubelets and the users of a timeline. It also writes down what happens."""

    def __init__(
        self,
        env: SimEnv,
        case: Mapping[str, Any],
        policy: switches.Policy,
        latencies: Latencies,
        deviations: Iterable[str],
    ) -> None:
        self.latencies = latencies
        self.env = env
        self.clock = env.clock
        self.case = case
        self.start_s = times.parse_time(case["start"]) // SECOND_NS
        self.pods: dict[str, core_v1_pb2.Pod] = {}
        self.nodes: dict[str, core_v1_pb2.Node] = {}
        self.groups: dict[str, scheduling_v1alpha2_pb2.PodGroup] = {}
        self.timeline: list[dict[str, Any]] = []
        self.final: dict[str, dict[str, Any]] = {}
        self.bind_errors = dict(case.get("bindErrors", {}))
        self.status_errors = {name: list(rest) for name, rest in case.get("statusErrors", {}).items()}
        self.versions = itertools.count(1)
        self.uids = itertools.count(1)
        self.ends: dict[str, int] = {}
        """When each terminating pod is removed, in ns, by its name."""
        self.deleted_by_scheduler: set[str] = set()
        self.watch_ns = 0
        """How late the watch shows what happens from the beginning on."""
        self.late_ns: dict[str, int] = {}
        """The same of kinds whose watches are later than others."""
        configuration = configurations.configuration_of(
            {
                "percentageOfNodesToScore": 100,
                "parallelism": 1,
                "featureGates": case.get("featureGates", {}),
                "extenders": [{"urlPrefix": f"kemu://{name}", **one} for name, one in extenders_of(case)],
                **case.get("configuration", {}),
            }
        )
        self.engine = PacedEngine(
            Recording(env, self),
            self,
            configuration,
            policy,
            Timing({"schedulingCycle": case.get("attempt_s", 0)}),
            in_tree.REGISTRY.extended({"ScriptedPermit": scripts.ScriptedPermit}),
            deviations=tuple(deviations),
        )
        self.engine.step_s = latencies.step_s
        # The record holds what every choice between equal nodes leads to; for groups, only that of one search.
        self.engine.handle.draws_lots = not case.get("podGroups") and not self.status_errors
        # In the recorded environment the clock stands during a decision: pods that have not started start at one time.
        for profile in self.engine.profiles.values():
            for plugin in profile.post_filters:
                if isinstance(plugin, DefaultPreemption):
                    plugin.preemptor.is_eager = None
        self.lookup = feeds.lookup_feeds(self.engine.cluster)

    # The API as the scheduler calls it ------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """What is inside is applied before the answer comes, an error, too."""
        answer_s = min(self.latencies.answer_s, self.latencies.call_s)
        await self.clock.sleep(self.latencies.call_s - answer_s)
        try:
            yield
        finally:
            await self.clock.sleep(answer_s)

    async def bind(
        self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        async with self.call():
            pod = self.changed(name)
            if self.bind_errors.get(name, 0) > 0:
                self.bind_errors[name] -= 1
                raise errors.InternalError("the binding was refused")
            pod.spec.nodeName = node
            pod.status.ClearField("nominatedNodeName")
            now_ns = self.unix_ns()
            meta.set_condition(pod.status.conditions, "PodScheduled", "True", "", "", now_ns)
            self.run_pod(pod, now_ns)
            self.note("bound", name, node=node)
            self.put(pod)

    async def patch(
        self,
        resource: str,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        subresource: str = "",
        type: str = "merge",  # noqa: A002
        uid: str = "",
    ) -> None:
        if resource == "podgroups":
            await self.patch_group(name, patch)
            return
        assert (resource, subresource, type) == ("pods", "status", "strategic")
        async with self.call():
            pod = self.changed(name)
            if refusals := self.status_errors.get(name):
                what = refusals.pop(0)
                self.note("refused", name, message=what)
                raise STATUS_ERRORS[what]("no")
            status = dict(patch["status"])
            for condition in status.pop("conditions", ()):
                known = meta.get_condition(pod.status.conditions, condition["type"])
                now, reason, message = (
                    condition.get(key, getattr(known, key, "")) for key in ("status", "reason", "message")
                )
                meta.set_condition(pod.status.conditions, condition["type"], now, reason, message, self.unix_ns())
            if "nominatedNodeName" in status:
                node = status.pop("nominatedNodeName") or ""
                if node != pod.status.nominatedNodeName:
                    if node:
                        self.note("nominated", name, node=node)
                        pod.status.nominatedNodeName = node
                    else:
                        self.note("nominationCleared", name)
                        pod.status.ClearField("nominatedNodeName")
            status.pop("$setElementOrder/conditions", None)  # which they have as they come
            assert not status
            self.put(pod)

    async def patch_group(self, name: str, patch: Mapping[str, Any]) -> None:
        """The condition of a PodGroup."""
        async with self.call():
            old = self.groups.get(name)
            if old is None:
                raise errors.NotFound(f'podgroups "{name}" not found')
            group = meta.copied(old)
            (condition,) = patch["status"]["conditions"]
            status, reason, message = (condition[key] for key in ("status", "reason", "message"))
            meta.set_condition(group.status.conditions, condition["type"], status, reason, message, self.unix_ns())
            self.note(reason, f"group/{name}", **({"message": message} if message else {}))
            self.groups[name] = group
            self.show("podgroups", self.engine.group_feed.on_update, old, group)

    async def delete(self, resource: str, name: str, namespace: str = "", *, uid: str = "") -> None:
        async with self.call():
            self.changed(name)
            self.deleted_by_scheduler.add(name)
            self.terminate(name, None)

    async def update(self, obj: KubernetesObject) -> Any:
        raise AssertionError("no plugin of these cases replaces objects")

    # What happens to pods -------------------------------------------------------------------------------------------

    def terminate(self, name: str, grace_s: int | None, *, by_user: bool = False) -> None:
        pod = self.changed(name)
        if not pod.spec.nodeName:
            self.remove(name)
            return
        own = pod.spec.terminationGracePeriodSeconds if pod.spec.HasField("terminationGracePeriodSeconds") else 30
        grace = own if grace_s is None else grace_s
        if pod.metadata.HasField("deletionTimestamp") and grace_s is None:
            return
        if grace == 0:
            self.remove(name)
            return
        was_terminating = pod.metadata.HasField("deletionTimestamp")
        wait_s = min(float(grace), float(pod.metadata.annotations.get(SHUTDOWN, grace)))
        end_ns = self.clock.now_ns() + round(wait_s * SECOND_NS)
        if was_terminating:
            if end_ns >= self.ends.get(name, end_ns + 1):
                return
        else:
            meta.set_time(pod.metadata.deletionTimestamp, self.unix_ns() + grace * SECOND_NS)
            pod.metadata.deletionGracePeriodSeconds = grace
            if by_user:
                self.note("deleted", name)
            self.put(pod)
        self.ends[name] = end_ns
        self.clock.call_at_ns(end_ns, self.end, name, pod.metadata.uid)

    def end(self, name: str, uid: str) -> None:
        pod = self.pods.get(name)
        if pod is None or pod.metadata.uid != uid or pod.spec.nodeName not in self.nodes:
            return
        if self.clock.now_ns() >= self.ends[name]:
            self.remove(name)

    def run_pod(self, pod: core_v1_pb2.Pod, unix_ns: int) -> None:
        pod.status.phase = "Running"
        if not pod.status.HasField("startTime"):
            meta.set_time(pod.status.startTime, unix_ns)
        self.arm_run(pod)

    def arm_run(self, pod: core_v1_pb2.Pod) -> None:
        if RUN in pod.metadata.annotations:
            when_ns = self.clock.now_ns() + round(float(pod.metadata.annotations[RUN]) * SECOND_NS)
            self.clock.call_at_ns(when_ns, self.finish, pod.metadata.name, pod.metadata.uid)

    def finish(self, name: str, uid: str = "") -> None:
        pod = self.pods.get(name)
        if pod is None or (uid and pod.metadata.uid != uid) or pod.spec.nodeName not in self.nodes:
            return
        if pod.status.phase != "Running":
            return
        if pod.metadata.HasField("deletionTimestamp"):
            self.remove(name)
            return
        done = self.changed(name)
        done.status.phase = "Succeeded"
        self.note("finished", name)
        self.final[name] = {"state": "finished", **self.where(done)}
        del self.pods[name]
        self.show("pods", self.engine.pod_feed.on_delete, done)

    def remove(self, name: str) -> None:
        pod = self.pods.pop(name)
        self.note("gone", name)
        self.final[name] = {"state": "gone", **({"node": pod.spec.nodeName} if pod.spec.nodeName else {})}
        self.show("pods", self.engine.pod_feed.on_delete, pod)

    def where(self, pod: core_v1_pb2.Pod) -> dict[str, str]:
        found = {"node": pod.spec.nodeName, "nominated": pod.status.nominatedNodeName}
        return {key: value for key, value in found.items() if value}

    def put(self, pod: core_v1_pb2.Pod) -> None:
        name = pod.metadata.name
        old = self.pods.get(name)
        pod.metadata.resourceVersion = str(next(self.versions))
        self.pods[name] = pod
        if old is None:
            self.show("pods", self.engine.pod_feed.on_add, pod)
        else:
            self.show("pods", self.engine.pod_feed.on_update, old, pod)

    def show(self, kind: str, handle: Callable[..., object], *objects: Message) -> None:
        """What a watch does."""
        if late_ns := self.late_ns.get(kind, self.watch_ns):
            self.clock.call_at_ns(self.clock.now_ns() + late_ns, handle, *objects)
        else:
            handle(*objects)

    def changed(self, name: str) -> core_v1_pb2.Pod:
        """A copy, to be changed and put. Raises NotFound."""
        if name not in self.pods:
            raise errors.NotFound(f'pods "{name}" not found')
        return meta.copied(self.pods[name])

    # Events ---------------------------------------------------------------------------------------------------------

    def set_up(self) -> None:
        for data in self.case.get("nodes", ()):
            self.put_node(data)
        self.lookup["namespaces"].on_add(convert.from_json(core_v1_pb2.Namespace, {"metadata": {"name": "default"}}))
        for data in self.case.get("pdbs", ()):
            self.put_budget(data)
        for data in self.case.get("podGroups", ()):
            self.create_group(data)
        for wants_node in (True, False):
            for data in self.case.get("pods", ()):
                if bool(data["spec"].get("nodeName")) is wants_node:
                    self.create(data)
        for event in self.case.get("events", ()):
            self.clock.call_at_ns(round(event["at_s"] * SECOND_NS), self.happen, event)
        self.watch_ns = round(self.case.get("watch_s", 0) * SECOND_NS)
        for kind, late_s in self.case.get("lateKinds", {}).items():
            self.late_ns[kind] = self.watch_ns + round(late_s * SECOND_NS)

    def create(self, data: Mapping[str, Any]) -> None:
        pod = convert.from_json(core_v1_pb2.Pod, data)
        if not pod.metadata.uid:
            pod.metadata.uid = f"uid-{next(self.uids)}"
        if not pod.spec.schedulerName:
            pod.spec.schedulerName = "default-scheduler"
        if pod.spec.nodeName:
            self.run_pod(pod, self.unix_ns())
        else:
            pod.status.phase = "Pending"
        self.put(pod)

    def create_group(self, data: Mapping[str, Any]) -> None:
        group = convert.from_json(scheduling_v1alpha2_pb2.PodGroup, data)
        group.metadata.namespace = "default"
        group.metadata.uid = group.metadata.uid or f"uid-group-{group.metadata.name}"
        self.groups[group.metadata.name] = group
        self.show("podgroups", self.engine.group_feed.on_add, group)

    def happen(self, event: Mapping[str, Any]) -> None:
        what, name = event["do"], event.get("name", "")
        if what == "createPod":
            self.create(event["pod"])
        elif what == "deletePod" and name in self.pods:
            self.terminate(name, event.get("graceSeconds"), by_user=True)
        elif what == "finishPod":
            self.finish(name)
        elif what == "updatePod" and name in self.pods:
            self.update_pod(event)
        elif what in ("addNode", "updateNode"):
            self.put_node(event["node"], only_known=what == "updateNode")
        elif what == "createPodGroup":
            self.create_group(event["podGroup"])
        elif what == "deletePodGroup" and name in self.groups:
            self.show("podgroups", self.engine.group_feed.on_delete, self.groups.pop(name))
        elif what == "updateBudget":
            self.put_budget(event["pdb"])
        elif what == "deleteNode" and name in self.nodes:
            self.show("nodes", self.engine.node_feed.on_delete, self.nodes.pop(name))
            self.clock.call_at_ns(self.clock.now_ns() + ORPHANS_LIVE_S * SECOND_NS, self.collect, name)

    def update_pod(self, event: Mapping[str, Any]) -> None:
        pod = self.changed(event["name"])
        if "labels" in event:
            pod.metadata.labels.clear()
            pod.metadata.labels.update(event["labels"])
        if "removeGates" in event:
            gates = event["removeGates"]
            kept = [gate for gate in pod.spec.schedulingGates if gates is not True and gate.name not in gates]
            del pod.spec.schedulingGates[:]
            pod.spec.schedulingGates.extend(kept)
        for toleration in event.get("addTolerations", ()):
            pod.spec.tolerations.append(convert.from_json(core_v1_pb2.Toleration, toleration))
        for resource, amount in event.get("requests", {}).items():
            pod.spec.containers[0].resources.requests[resource].string = amount
        self.put(pod)

    def put_node(self, data: Mapping[str, Any], *, only_known: bool = False) -> None:
        node = convert.from_json(core_v1_pb2.Node, data)
        name = node.metadata.name
        old = self.nodes.get(name)
        if old is None:
            if not only_known:
                self.nodes[name] = node
                self.show("nodes", self.engine.node_feed.on_add, node)
        else:
            self.nodes[name] = node
            self.show("nodes", self.engine.node_feed.on_update, old, node)

    def put_budget(self, data: Mapping[str, Any]) -> None:
        self.lookup["poddisruptionbudgets"].on_add(convert.from_json(policy_v1_pb2.PodDisruptionBudget, data))

    def collect(self, node: str) -> None:
        for name in [name for name, pod in self.pods.items() if pod.spec.nodeName == node]:
            self.remove(name)

    # The record -----------------------------------------------------------------------------------------------------

    def unix_ns(self) -> int:
        return self.start_s * SECOND_NS + self.clock.now_ns()

    def note(self, what: str, name: str, **more: str) -> None:
        self.timeline.append({"t_s": round(self.clock.now_ns() / SECOND_NS, 3), "pod": name, "what": what, **more})

    def heard(self, kind: str, data: Mapping[str, Any]) -> None:
        name = data.pod.partition("/")[2] if isinstance(data, events.OfPod) else ""
        if isinstance(data, events.PodAttempted) and data.result == "unschedulable":
            self.note("unschedulable", name, message=data.message)
        elif isinstance(data, events.PodAttempted) and data.result == "error" and self.groups:
            self.note("error", name, message=data.message)
        elif isinstance(data, events.PodBound) and not data.ok:
            # A pod that Permit turned away while it waited was rejected; all else that hinders a binding is an error.
            rejected = data.message.startswith(REJECTED_ON_ITS_NODE)
            self.note("unschedulable" if rejected else "error", name, message=data.message)
        elif isinstance(data, events.VictimDeleted) and name in self.deleted_by_scheduler:
            self.deleted_by_scheduler.discard(name)
            self.note("preempted", name, by=data.by.partition("/")[2])

    def outcome(self) -> dict[str, Any]:
        final = dict(self.final)
        for name, pod in self.pods.items():
            if pod.metadata.HasField("deletionTimestamp"):
                state = "terminating"
            else:
                state = "running" if pod.spec.nodeName else "pending"
            final[name] = {"state": state, **self.where(pod)}
        return {"timeline": self.timeline, "final": final}


class Recording:
    """The scheduler's Env, whose log the world reads."""

    def __init__(self, env: SimEnv, world: World) -> None:
        self._env = env
        self._world = world
        self.random = _Least(0) if world.status_errors else env.random

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def log(self, event: events.Event | str, data: Mapping[str, Any] | None = None) -> None:
        event = events.typed(event, data or {}) if isinstance(event, str) else event
        self._env.log(event)
        self._world.heard(event.KIND, event)


def play(
    case: Mapping[str, Any],
    seed: int = 0,
    policy: Mapping[str, Any] | None = None,
    latencies: Latencies = Latencies(),  # noqa: B008
    watch: Callable[[World], object] = lambda world: None,
    deviations: Iterable[str] = (),
) -> dict[str, Any]:
    """The outcome of a case at its horizon, in the recorded form.

    ``watch`` is called first, with the world; ``deviations`` are names of :mod:`kemu.emulated.variants`.
    """
    runtime = SimRuntime(seed, lambda now_ns, actor, kind, data: None, {"otherLatency": EXTENDER_CALL_S})
    env = runtime.env("scheduler/default-scheduler/0")
    worlds: list[World] = []

    async def main() -> None:
        world = World(env, copy.deepcopy(dict(case)), switches.policy_of(policy or {}), latencies, deviations)
        worlds.append(world)
        watch(world)
        world.set_up()
        await runtime.launch(
            [
                ActorSpec(f"extender/{number}", EXTENDER, {"script": one["script"]})
                for number, one in enumerate(case.get("extenders", ()))
            ]
        )
        await runtime.begin()
        env.spawn(world.engine.run(), "engine")
        await env.clock.sleep(case["horizon_s"])

    asyncio.set_event_loop(None)
    runtime.run(main())
    return worlds[0].outcome()
