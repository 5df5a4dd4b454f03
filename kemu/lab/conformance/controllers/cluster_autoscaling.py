"""Recorded iterations of the cluster autoscaler, repeated by the class that runs as an actor.

A case is a small cluster, and when it is looked at. Its world (machines that come and go, nodes that register, pods) is
simulated here as by the recorder (``tests/conformance/recorder/clusterautoscaler``). The answer of a look: sizes of
groups, marks on nodes, what is unneeded and why the rest is not, utilization, and the Events up to the next look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.autoscaler import autoscaler, settings, taints
from kemu.emulated.autoscaler.providers import ProviderError
from kemu.emulated.client import informers
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler import feeds
from kemu.emulated.settings.declared import Section, plain
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import Report
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.messages.k8s import apps_v1_pb2, batch_v1_pb2, core_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import cloud_pb2
from kemu.runtime.env import SECOND_NS

Json = dict[str, Any]

FIRST_NS = SECOND_NS
"""When the first look would be if it came at once."""
SETTLES_S = 40
"""How long after the last look the case ends: what has begun comes to its end."""


def answer(case: Json) -> Json:
    plane = ControlPlane()
    return {"looks": plane.run(_World(plane, case).play)}


class _Informer:
    """Knows what the world shows."""

    revision = 0

    def __init__(self, handler: informers.Handler[Any] | None) -> None:
        self.store: dict[str, Any] = {}
        self._handler = handler or informers.Callbacks()

    def put(self, obj: KubernetesObject) -> None:
        key = meta.namespaced_name(obj)
        old = self.store.get(key)
        self.store[key] = obj
        if old is None:
            self._handler.on_add(obj)
        elif old != obj:
            self._handler.on_update(old, obj)

    def drop(self, key: str) -> None:
        self._handler.on_delete(self.store.pop(key))


class _Actor(autoscaler.ClusterAutoscaler):
    """Sees and tells the world."""

    world: _World

    def _watch(self) -> dict[str, Any]:
        handlers: dict[str, Any] = dict(feeds.lookup_feeds(self._cluster))
        handlers["nodes"] = informers.Callbacks(self._node_came, self._node_changed, self._node_went)
        handlers["pods"] = informers.Callbacks(self._pod_came, self._pod_changed, self._pod_went)
        return {plural: _Informer(handlers.get(plural)) for plural in (*handlers, "daemonsets", "jobs")}

    def _record(self, about: KubernetesObject, kind: str, reason: str, message: str) -> None:
        name = meta.namespaced_name(about)
        self.world.note(f"pod {name}" if isinstance(about, core_v1_pb2.Pod) else f"node {name}", kind, reason, message)

    def _tell(self, kind: str, reason: str, message: str) -> None:
        self.world.note("autoscaler", kind, reason, message)

    def see(self) -> None:
        """What the world shows now."""
        for plural, objects in self.world.objects().items():
            informer: Any = self._informers[plural]
            keys = {meta.namespaced_name(obj) for obj in objects}
            for key in [key for key in informer.store if key not in keys]:
                informer.drop(key)
            for obj in objects:
                informer.put(obj)

    async def look(self) -> None:
        """One iteration."""
        try:
            await self._iterate()
        except (errors.ApiError, ProviderError):
            self._tell("", "", "the iteration failed")

    def looked(self) -> Json:
        """What it thinks of nodes."""
        planner = self._planner
        return {
            "unneeded": sorted(planner.unneeded),
            "unremovable": dict(planner.reasons),
            "utilization": {name: _as_go_prints(one.used) for name, one in planner.utilization.items()},
        }


class _Machine:
    def __init__(self, node: str, group: _Group, registers_ns: int, ready_ns: int, kind: str = "") -> None:
        self.node = node
        self.group = group
        self.registers_ns, self.ready_ns = registers_ns, ready_ns
        self.never, self.failed = kind == "never-registers", kind == "out-of-resources"
        self.gone_ns: int | None = None
        """Where it is being deleted."""


class _Group:
    def __init__(self, case: Json) -> None:
        self.case = case
        self.name: str = case["name"]
        self.template = convert.from_json(core_v1_pb2.Node, case["template"])
        self.target = 0
        self.made = 0


class _World:
    """Stands for the API server and the provider of machines, too. Times are Unix ns."""

    def __init__(self, plane: ControlPlane, case: Json) -> None:
        self._case = case
        self._clock = plane.clock
        self._plane = plane
        self._start_ns = self._now_ns() + FIRST_NS
        self._number = self._version = 0
        self._events: list[str] = []
        self._evicted: set[str] = set()
        self._groups = {group["name"]: _Group(group) for group in case["groups"]}
        self._machines: list[_Machine] = []
        self._nodes: dict[str, core_v1_pb2.Node] = {}
        self._pods: dict[str, core_v1_pb2.Pod] = {}
        kinds = {
            "poddisruptionbudgets": (policy_v1_pb2.PodDisruptionBudget, "budgets"),
            "daemonsets": (apps_v1_pb2.DaemonSet, "daemonSets"),
            "replicasets": (apps_v1_pb2.ReplicaSet, "replicaSets"),
            "jobs": (batch_v1_pb2.Job, "jobs"),
        }
        self._others: dict[str, list[Any]] = {
            plural: [convert.from_json(message, one) for one in case.get(key, ())]
            for plural, (message, key) in kinds.items()
        }
        for one in case["nodes"]:
            self._populate(one)
        self._actor = actor = _Actor(plane.env, {"autoscaler": _settings(case), "groups": self._group_configs()})
        actor.world = self
        actor._client = actor._actuator._client = actor._provider._stub = self  # type: ignore[assignment]

    def _group_configs(self) -> list[Json]:
        return [
            {key: group.case[key] for key in ("name", "min", "max", "price")}
            | {"template": group.template.SerializeToString()}
            for group in self._groups.values()
        ]

    def _now_ns(self) -> int:
        return self._clock.unix_ns()

    def _populate(self, one: Json) -> None:
        node = convert.from_json(core_v1_pb2.Node, one["node"])
        since_ns = self._start_ns - one["ageS"] * SECOND_NS
        meta.set_time(node.metadata.creationTimestamp, since_ns)
        self._nodes[node.metadata.name] = self._versioned(_with_ready(node, True, since_ns))
        group = self._groups.get(one["group"])
        if group is not None:
            group.target += 1
            self._machines.append(_Machine(node.metadata.name, group, since_ns, since_ns))

    async def play(self) -> list[Json]:
        await self._plane.runtime.begin()
        await self._clock.sleep_until_ns(FIRST_NS)
        answers: list[Json] = []
        for number, after_s in enumerate(self._case["afterS"]):
            await self._clock.sleep(after_s)
            self._see(number)
            self._actor.see()
            if answers:
                answers[-1]["events"] = self._happened()
            await self._actor.look()
            answers.append(self._answer())
        await self._clock.sleep(SETTLES_S)
        answers[-1]["events"] = self._happened()
        return answers

    # --- what happens ------------------------------------------------------------------------------------------------

    def _see(self, number: int) -> None:
        """A look begins: what has become due happens."""
        self._number, now_ns = number, self._now_ns()
        for machine in list(self._machines):
            if machine.gone_ns is not None and machine.gone_ns <= now_ns:
                self._remove(machine)
        for machine in self._machines:
            if machine.never or machine.failed or machine.registers_ns > now_ns:
                continue
            if machine.node not in self._nodes and machine.gone_ns is None:
                self._register(machine)
            node = self._nodes.get(machine.node)
            is_due = self._start_ns < machine.ready_ns <= now_ns
            if node is not None and is_due and node.status.conditions[0].status == "False":
                self._nodes[machine.node] = self._versioned(_with_ready(node, True, machine.ready_ns))
        for one in self._case["nodes"]:
            name = one["node"]["metadata"]["name"]
            for change in one.get("ready", ()):
                if change["from"] == number and name in self._nodes:
                    changed = _with_ready(self._nodes[name], change["is"], now_ns - SECOND_NS)
                    self._nodes[name] = self._versioned(changed)
        self._pods = {}
        for one in self._case["pods"]:
            pod = convert.from_json(core_v1_pb2.Pod, one["pod"])
            meta.set_time(pod.metadata.creationTimestamp, self._start_ns - one["ageS"] * SECOND_NS)
            if "deletedAgoS" in one:
                meta.set_time(pod.metadata.deletionTimestamp, self._start_ns - one["deletedAgoS"] * SECOND_NS)
            key, on = meta.namespaced_name(pod), pod.spec.nodeName
            is_there = one["from"] <= number < one["until"] and key not in self._evicted
            if is_there and (not on or on in self._nodes):
                self._pods[key] = pod

    def _register(self, machine: _Machine) -> None:
        node = meta.copied(machine.group.template)
        node.metadata.name, node.metadata.uid = machine.node, ""
        node.metadata.labels["kubernetes.io/hostname"] = machine.node
        meta.set_time(node.metadata.creationTimestamp, machine.registers_ns)
        self._nodes[machine.node] = self._versioned(_with_ready(node, False, machine.registers_ns))

    def _versioned(self, node: core_v1_pb2.Node) -> core_v1_pb2.Node:
        self._version += 1
        copy = meta.copied(node)
        copy.metadata.resourceVersion = str(self._version)
        return copy

    def _remove(self, machine: _Machine) -> None:
        self._machines.remove(machine)
        if self._nodes.pop(machine.node, None) is not None:
            self._pods = {key: pod for key, pod in self._pods.items() if pod.spec.nodeName != machine.node}
            self._actor.see()

    def objects(self) -> dict[str, list[Any]]:
        return {"nodes": list(self._nodes.values()), "pods": list(self._pods.values()), **self._others}

    def note(self, name: str, kind: str, reason: str, message: str) -> None:
        # Reasons are counted, and pods of a node are listed, in the order of a map.
        for sign, separator in (("pod didn't trigger scale-up: ", ", "), ("pods to reschedule: ", ",")):
            said, sign, rest = message.partition(sign)
            message = said + sign + separator.join(sorted(rest.split(separator)))
        self._events.append(" | ".join((name, kind, reason, message)))

    def _happened(self) -> list[str]:
        found, self._events = sorted(self._events), []
        return found

    def _answer(self) -> Json:
        marks = {}
        for name, node in self._nodes.items():
            ours = (taints.TO_BE_DELETED, taints.DELETION_CANDIDATE)
            found = [taint.key for taint in node.spec.taints if taint.key in ours]
            marks[name] = sorted(found + ["unschedulable"] * node.spec.unschedulable)
        sizes = {group.name: group.target for group in self._groups.values()}
        return {"sizes": sizes, "marks": marks, **self._actor.looked()}

    # --- the API server ----------------------------------------------------------------------------------------------

    async def update(self, obj: core_v1_pb2.Node) -> core_v1_pb2.Node:
        name = obj.metadata.name
        if name not in self._nodes:
            raise errors.NotFound(f'nodes "{name}" not found')
        if self._nodes[name].metadata.resourceVersion != obj.metadata.resourceVersion:
            raise errors.Conflict(f'nodes "{name}" has changed')
        self._nodes[name] = obj = self._versioned(obj)
        self._actor.see()
        return obj

    async def get(self, plural: str, name: str, namespace: str = "") -> Any:
        found: Mapping[str, Any] = self._nodes if plural == "nodes" else self._pods
        key = f"{namespace}/{name}" if namespace else name
        if key not in found:
            raise errors.NotFound(f'{plural} "{name}" not found')
        return found[key]

    async def evict(self, namespace: str, name: str, grace_s: int) -> None:
        key = f"{namespace}/{name}"
        if key in self._evicted:
            raise errors.NotFound(f'pods "{name}" not found')
        self._evicted.add(key)
        self._pods.pop(key, None)
        self._actor.see()

    # --- the provider ------------------------------------------------------------------------------------------------

    async def Describe(self, request: cloud_pb2.DescribeRequest) -> cloud_pb2.DescribeResponse:
        response = cloud_pb2.DescribeResponse()
        for group in self._groups.values():
            told = response.groups.add(name=group.name, target_size=group.target)
            for machine in self._machines:
                if machine.group is group:
                    there = cloud_pb2.Instance.RUNNING if machine.node in self._nodes else cloud_pb2.Instance.CREATING
                    state = there if machine.gone_ns is None else cloud_pb2.Instance.DELETING
                    instance = told.instances.add(node=machine.node, state=state)
                    if machine.failed:
                        instance.error_class, instance.error_code = "OutOfResource", "STOCKOUT"
                        instance.error_message = "none left"
        return response

    async def Increase(self, request: cloud_pb2.ResizeRequest) -> cloud_pb2.ResizeResponse:
        group = self._groups[request.group]
        kind = ""
        for one in group.case.get("fails", ()):
            if one["from"] <= self._number < one["until"]:
                kind = one["kind"]
        if kind == "error":
            return cloud_pb2.ResizeResponse(refused="no more machines")
        group.target += request.by
        for _ in range(request.by):
            group.made += 1
            registers_ns = self._now_ns() + group.case["registerS"] * SECOND_NS
            ready_ns = registers_ns + group.case["readyS"] * SECOND_NS
            self._machines.append(_Machine(f"{group.name}-n{group.made}", group, registers_ns, ready_ns, kind))
        return cloud_pb2.ResizeResponse()

    async def Decrease(self, request: cloud_pb2.ResizeRequest) -> cloud_pb2.ResizeResponse:
        group = self._groups[request.group]
        waiting = [
            machine
            for machine in self._machines
            if machine.group is group and machine.gone_ns is None and machine.node not in self._nodes
        ]
        if len(waiting) < request.by:
            return cloud_pb2.ResizeResponse(refused=f"{group.name} has no {request.by} machines to come")
        group.target -= request.by
        for machine in waiting[len(waiting) - request.by :]:
            self._remove(machine)
        return cloud_pb2.ResizeResponse()

    async def DeleteNodes(self, request: cloud_pb2.DeleteNodesRequest) -> cloud_pb2.ResizeResponse:
        group = self._groups[request.group]
        for name in request.nodes:
            machine = next((one for one in self._machines if one.node == name and one.gone_ns is None), None)
            if machine is None:
                return cloud_pb2.ResizeResponse(refused=f"{group.name} has no machine {name}")
            group.target -= 1
            machine.gone_ns = self._now_ns() + group.case["removeS"] * SECOND_NS
            if not group.case["removeS"]:
                self._remove(machine)
        return cloud_pb2.ResizeResponse()


def _as_go_prints(share: float) -> str:
    if math.isnan(share):
        return "NaN"
    return "+Inf" if math.isinf(share) else f"{share:.6f}"


def _settings(case: Json) -> Json:
    """As a scenario's reach the actor."""
    written = {**case["settings"], "nodeGroups": [{"name": one["name"], "max": one["max"]} for one in case["groups"]]}
    problems: list[Any] = []
    checked = Section(settings.Settings).check(written, (), Report(Document("", written), problems))
    if problems:
        raise ValueError(f"settings of {case['id']}: {problems[0].message}")
    made: Json = plain(checked)
    return made


def _with_ready(node: core_v1_pb2.Node, ready: bool, since_ns: int) -> core_v1_pb2.Node:
    """A copy that is ready, or not."""
    copy = meta.copied(node)
    del copy.status.conditions[:]
    condition = copy.status.conditions.add(type="Ready", status="True" if ready else "False")
    meta.set_time(condition.lastTransitionTime, since_ns)
    return copy
