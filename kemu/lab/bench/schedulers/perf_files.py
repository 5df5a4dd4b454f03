"""scheduler_perf's own configurations, run as they are: ``kemu bench scheduler-perf --workload FILE``.

A file (``performance-config.yaml``) has test cases, each a list of operations and several workloads, which give the
operations their numbers. Store, API server, scheduler and the controller of claims run in one process in sim, with all
virtual times 0, as in :mod:`kemu.lab.bench.schedulers.scheduling`: what is measured is computing alone, from the first
measured pod's creation until the last one is bound. What an operation asks for and cannot be had here is an error.

What goes on at intervals beside the measured pods (churn, deletions) does so once for as many of them as the threshold
expects to be bound in that time; while the scheduler has nothing to do, after that time.
"""

from __future__ import annotations

import asyncio
import copy
import fnmatch
import gc
import re
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.apiserver import admission
from kemu.emulated.cel import devices as selectors
from kemu.emulated.cel.environments import Program
from kemu.emulated.cel.values import Value
from kemu.emulated.client import clients
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.devices import results
from kemu.emulated.scheduler.devices.allocators import Allocator
from kemu.emulated.scheduler.devices.trackers import Devices
from kemu.errors import KemuError
from kemu.lab.bench import shapes
from kemu.lab.bench.schedulers.scheduling import SCHEDULER, TIMING, create_all
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.playing import plans
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.runlog.events import PodAttempted, PodBound
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]

FILE_NAME = "performance-config.yaml"
_LIMIT_S = 3_600
"""Virtual time for an operation: controllers keep their rates."""
_EXPECTED_PER_S = 100
"""Where a test case has no threshold."""
_ENDLESS = 1 << 62
_BETAS = ("resource.k8s.io/v1beta2",)
"""Versions whose objects are those of v1."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CALL = re.compile(r"\{\{\s*(.+?)\s*\}\}")
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "AddInt": lambda one, other: one + other,
    "SubtractInt": lambda one, other: one - other,
    "MultiplyInt": lambda one, other: one * other,
    "DivideInt": lambda one, other: one // other,
    "Mod": lambda one, other: one % other,
}
"""Functions of templates."""


def workloads(place: str, labels: Collection[str] = ()) -> list[dict[str, str]]:
    """Settings of workloads of a file, or of all files in a folder.

    ``FILE#TEXT``: of those whose ``test/workload`` is or contains the text. ``labels``: of those that have one of them
    (``all``: of all). With neither, of those with the label ``performance``, or of all if none has it. Of workloads
    that are the same here, as they differ in gates that kemu does not switch, the first one stands for all. Raises
    KemuError.
    """
    name, _, wanted = place.partition("#")
    path = Path(name)
    files = sorted(path.rglob(FILE_NAME)) if path.is_dir() else [path]
    found: list[tuple[dict[str, str], set[str]]] = []
    for file in files:
        for case in _read(file):
            known: list[Json] = []
            for workload in case.get("workloads") or ():
                if wanted or not any(_is_same(workload, other) for other in known):
                    known.append(workload)
                    own = {*(case.get("labels") or ()), *(workload.get("labels") or ()), "all"}
                    found.append(({"file": str(file), "workload": f"{case['name']}/{workload['name']}"}, own))
    there = [one for one in found if one[0]["workload"] == wanted] or [
        one for one in found if wanted in one[0]["workload"]
    ]
    asked = {*labels} or ({"performance"} if not wanted and any("performance" in own for _, own in there) else {"all"})
    chosen = [one for one, own in there if own & asked]
    if not chosen:
        names = ", ".join(one["workload"] for one, _ in found)
        raise KemuError(f"{name}: no workload {wanted or ' or '.join(asked)!r}; there are {names}")
    return chosen


def measure(file: str, workload: str) -> Json:
    """Pods bound per second, beside the threshold of the file. Raises KemuError."""
    path = Path(file)
    test, _, name = workload.partition("/")
    case = next((one for one in _read(path) if one["name"] == test), None)
    all_of_case = (case or {}).get("workloads") or []
    chosen = next((one for one in all_of_case if one["name"] == name), None)
    if case is None or chosen is None:
        raise KemuError(f"{path}: no workload {workload!r}")
    same = [one for one in all_of_case if _is_same(one, chosen)]
    threshold = max(_threshold(case, one) for one in same)
    tally = _Tally()
    runtime = SimRuntime(1, tally, TIMING)
    expected = threshold or max(_threshold(case, one) for one in all_of_case) or _EXPECTED_PER_S
    play = _Play(path.parent, case, chosen, runtime, tally, expected)
    runtime.run(play.run())
    figures: Json = {"same_here": len(same), "cel_evaluations": play.evaluations}
    if play.pods:
        figures |= {
            "pods": play.pods,
            "pods_per_s": round(play.pods / play.seconds, 1),
            "pods_per_cpu_s": round(play.pods / play.cpu_s, 1),
            "cel_per_pod": round(play.measured_evaluations / play.pods, 2),
            "wall_s": round(play.seconds, 2),
        }
    else:
        figures |= {"slices": play.slices, "slices_per_cpu_s": round(play.slices / max(play.cpu_s, 1e-9), 1)}
    if threshold:
        figures |= {"threshold": threshold, "ratio": round(figures["pods_per_s"] / threshold, 1)}
        figures["cpu_ratio"] = round(figures["pods_per_cpu_s"] / threshold, 1)
    return figures


def _threshold(case: Json, workload: Json) -> float:
    stated = workload.get("threshold") or case.get("threshold") or 0
    found: float = next(iter(stated.values()), 0) if isinstance(stated, Mapping) else stated
    return found


def _is_same(one: Json, other: Json) -> bool:
    """Whether two workloads of a case differ at most in gates that kemu does not switch."""

    def told(workload: Json) -> tuple[object, ...]:
        gates = {name: on for name, on in (workload.get("featureGates") or {}).items() if name in _OF_SCHEDULERS}
        return workload.get("params"), workload.get("defaultPodTemplatePath"), gates

    return told(one) == told(other)


def _read(path: Path) -> list[Json]:
    try:
        cases = yaml.safe_load(path.read_text())
    except OSError as error:
        raise KemuError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise KemuError(f"{path}: {error}") from None
    if not isinstance(cases, list) or not all(isinstance(one, dict) and "name" in one for one in cases):
        raise KemuError(f"{path}: not a list of test cases, as scheduler_perf has them")
    return cases


@dataclass(eq=False)
class _Goal:
    """Pods that are waited for, or measured."""

    namespaces: Collection[str]
    labels: Mapping[str, str]
    wanted: int
    or_tried: bool = False
    """A pod counts, too, when it was tried in vain."""
    is_measured: bool = False
    count: int = 0
    on_pod: Callable[[], object] = lambda: None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    begun_s: float = 0.0
    begun_cpu_s: float = 0.0
    last_s: float = 0.0
    last_cpu_s: float = 0.0

    def hear(self) -> None:
        """Of one more pod."""
        self.count += 1
        self.on_pod()
        if self.count >= self.wanted:
            self.stamp()
            self.done.set()

    def stamp(self) -> None:
        """What is measured ends here, or later."""
        self.last_s, self.last_cpu_s = time.perf_counter(), time.process_time()


class _Tally:
    """The sink of the run's log: which pods were bound, or tried in vain."""

    def __init__(self) -> None:
        self.labels: dict[str, Mapping[str, str]] = {}
        """Of the pods that a workload has created, by ``namespace/name``."""
        self._bound: dict[str, None] = {}
        self._tried: dict[str, None] = {}
        self._goals: list[_Goal] = []
        self._paces: dict[asyncio.Event, int] = {}
        self._measured = 0

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if isinstance(data, PodBound):
            if data.ok and data.pod not in self._bound:
                self._bound[data.pod] = None
                self._tell(data.pod, is_bound=True, is_new=data.pod not in self._tried)
        elif isinstance(data, PodAttempted) and data.result == "unschedulable":
            self.tried(data.pod)

    def tried(self, pod: str) -> None:
        if pod not in self._tried and pod not in self._bound:
            self._tried[pod] = None
            self._tell(pod, is_bound=False, is_new=True)

    def _tell(self, pod: str, *, is_bound: bool, is_new: bool) -> None:
        for goal in list(self._goals):
            if (is_new if goal.or_tried else is_bound) and self._concerns(goal, pod):
                goal.hear()
                if goal.is_measured:
                    self._measured += 1
                    for event, every in self._paces.items():
                        if self._measured % every == 0:
                            event.set()

    def _concerns(self, goal: _Goal, pod: str) -> bool:
        labels = self.labels.get(pod, {})
        return pod.partition("/")[0] in goal.namespaces and goal.labels.items() <= labels.items()

    def watch(self, goal: _Goal, *, from_now: bool) -> _Goal:
        """``from_now``: what has happened before does not count."""
        if not from_now:
            known = {**self._bound, **self._tried} if goal.or_tried else self._bound
            goal.count = sum(self._concerns(goal, pod) for pod in known)
        if goal.count >= goal.wanted:
            goal.done.set()
        goal.stamp()
        goal.begun_s, goal.begun_cpu_s = goal.last_s, goal.last_cpu_s
        self._goals.append(goal)
        return goal

    def drop(self, goal: _Goal) -> None:
        self._goals.remove(goal)

    def pace(self, every: int) -> asyncio.Event:
        """Set each time so many measured pods have been bound."""
        event = asyncio.Event()
        self._paces[event] = every
        return event

    def forget(self, event: asyncio.Event) -> None:
        del self._paces[event]


class _Play:
    """One workload."""

    def __init__(
        self, folder: Path, case: Json, workload: Json, runtime: SimRuntime, tally: _Tally, expected_per_s: float
    ) -> None:
        self._folder = folder
        self._operations: list[Json] = case["workloadTemplate"]
        self._params: Json = workload.get("params") or {}
        self._gates = {**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})}
        self._default_pod = workload.get("defaultPodTemplatePath") or case.get("defaultPodTemplatePath")
        self._configuration = case.get("schedulerConfigPath")
        self._runtime = runtime
        self._tally = tally
        self._expected_per_s = expected_per_s
        self._operation = 0
        """The place of the one that is under way."""
        self._named = 0
        self._beside: list[asyncio.Task[None]] = []
        """What goes on beside the operations."""
        self._waited_for: dict[str, int] = {"default": 0}
        """By namespace: how many pods of operations that did not wait are to be waited for."""
        self._window: _Goal | None = None
        self.pods = 0
        """Measured ones."""
        self.slices = 0
        """That createResourceDriver made."""
        self.evaluations = self.measured_evaluations = 0
        """Of CEL expressions about devices: in all, and for the measured pods."""
        self._evaluations_before = 0
        self.seconds = self.cpu_s = 0.0

    async def run(self) -> None:
        runtime = self._runtime
        self._count_evaluations()
        await runtime.launch([ActorSpec(plans.STORE, plans.STORE_FACTORY, {"fsync": "none"})])
        # Templates state priorities, and no classes.
        plugins = [name for name in admission.DEFAULT_ON if name != "Priority"]
        server = {"store": plans.STORE, "admission": plugins}
        await runtime.launch([ActorSpec("apiserver/0", plans.APISERVER_FACTORY, server)])
        self._client = clients.Client(runtime.env("user"))
        claims = controller_keys.RESOURCE_CLAIM
        told = yaml.safe_load(self._text(self._configuration)) if self._configuration else {}
        config = {
            "timing": TIMING,
            "devices": True,
            "storage": any("Volume" in key or "csi" in str(one) for op in self._operations for key, one in op.items()),
            "config": {
                **told,
                "featureGates": {name: on for name, on in self._gates.items() if name in _OF_SCHEDULERS},
            },
        }
        await runtime.launch(
            [
                ActorSpec(SCHEDULER, plans.SCHEDULER_FACTORY, config),
                ActorSpec(f"controller/{claims}", controller_keys.KINDS[claims].factory, {}),
            ]
        )
        await runtime.begin()
        for place, operation in enumerate(self._operations):
            self._operation = place
            opcode = operation.get("opcode")
            act = _OPERATIONS.get(str(opcode))
            if act is None:
                raise KemuError(f"workloadTemplate[{self._operation}]: the operation {opcode!r} is not known here")
            await act(self, operation)
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        await runtime.shutdown()

    def _count_evaluations(self) -> None:
        """In this process, which measures one workload."""
        matches = selectors.matches

        def counted(program: Program, device: Mapping[str, Value]) -> bool:
            self.evaluations += 1
            return matches(program, device)

        selectors.matches = counted

    # Operations -------------------------------------------------------------------------------------------------------

    async def _create_nodes(self, operation: Json) -> None:
        template = self._text(operation.get("nodeTemplatePath") or "../templates/node-default.yaml")
        count = self._number(operation, "count")
        labels = (operation.get("labelNodePrepareStrategy") or {}, operation.get("uniqueNodeLabelStrategy") or {})
        volumes = operation.get("nodeAllocatableStrategy") or {}
        made, of_drivers = [], []
        for index, node in enumerate(_rendered(template, count)):
            name = self._name(node)
            own = node["metadata"].setdefault("labels", {})
            own["kubernetes.io/hostname"] = name
            if volumes:
                node["status"]["allocatable"] = volumes.get("nodeAllocatable")
            if features := self._params.get("numNodeDeclaredFeatures"):
                node["status"]["declaredFeatures"] = sorted(f"Feature{number + 1}" for number in range(features))
            if values := labels[0].get("labelValues"):
                own[labels[0]["labelKey"]] = values[index % len(values)]
            if key := labels[1].get("labelKey"):
                own[key] = str(index)
            made.append(self._object(node))
            if volumes:
                of_drivers.append(self._object(_csi_node(name, volumes)))
        await create_all(self._client, of_drivers)
        await create_all(self._client, made)
        await self._settle()

    async def _create_namespaces(self, operation: Json) -> None:
        path = operation.get("namespaceTemplatePath")
        labels = yaml.safe_load(self._text(path))["metadata"].get("labels") if path else None
        for index in range(self._number(operation, "count")):
            await self._namespace(f"{operation['prefix']}-{index}", labels)

    async def _create_any(self, operation: Json) -> None:
        template, namespace = self._text(operation["templatePath"]), operation.get("namespace", "")
        if namespace:
            await self._namespace(namespace)
        made = []
        for manifest in _rendered(template, self._number(operation, "count", 1)):
            if manifest["kind"] == "DeviceTaintRule" and not self._gates.get("DRADeviceTaintRules"):
                continue  # nobody reads it without that gate
            if manifest["apiVersion"] in _BETAS:
                manifest["apiVersion"] = "resource.k8s.io/v1"
            if namespace:
                manifest["metadata"]["namespace"] = namespace
            if manifest["kind"].endswith("Template") and "resource.k8s.io" in manifest["apiVersion"]:
                manifest["spec"]["spec"].pop("controller", None)  # of an older version; a real server drops it
            made.append(self._object(manifest))
        await create_all(self._client, made)
        await self._settle()

    async def _update_any(self, operation: Json) -> None:
        """The object, or a subresource of it, and its status."""
        subresource = next(iter(operation.get("subresources") or ()), "")
        interval_s = 1 / operation["updatePerSecond"] if operation.get("updatePerSecond") else 0

        async def update() -> None:
            for manifest in _rendered(self._text(operation["templatePath"]), self._number(operation, "count", 1)):
                if interval_s:
                    await self._share_of(interval_s)
                if operation.get("namespace"):
                    manifest["metadata"]["namespace"] = operation["namespace"]
                wanted = self._object(manifest)
                await self._client.update(wanted, subresource)
                await self._client.update_status(wanted)

        await self._carry_out(update())

    async def _create_driver(self, operation: Json) -> None:
        """A slice for each node whose name fits."""
        nodes = await self._all("nodes")
        count = self._number(operation, "maxClaimsPerNode")
        made = []
        for node in nodes:
            name = node.metadata.name
            if fnmatch.fnmatchcase(name, operation["nodes"]):
                made.append(self._object(_slice(operation["driverName"], name, count)))
        self.slices += len(made)
        await create_all(self._client, made)
        await self._settle()

    async def _allocate(self, operation: Json) -> None:
        """Give each claim its devices, without a pod: the first node in turn that has them."""
        client, env = self._client, self._runtime.env("user")
        cluster, devices = Cluster(), Devices(env.clock)
        for node in await self._all("nodes"):
            cluster.set_node(node)
        for one in await self._all("deviceclasses"):
            devices.set_class(one)
        for one in await self._all("resourceslices"):
            devices.set_slice(one, is_there=True)
        wanted = operation.get("namespace", "")
        nodes = deque(cluster.rows)
        for claim in await self._all("resourceclaims"):
            if wanted not in ("", claim.metadata.namespace) or claim.status.HasField("allocation"):
                continue
            allocator = Allocator(devices.allocated(), devices.classes, devices.pools_of)
            for _ in range(len(nodes)):
                nodes.rotate(-1)
                plans = allocator.allocate(nodes[0], [claim])
                if plans:
                    break
            else:
                raise KemuError(f"allocResourceClaims: no node has devices for {claim.metadata.name}")
            made = meta.copied(claim)
            made.status.allocation.CopyFrom(results.allocation(plans[0], nodes[0].name, lambda: str(uuid.uuid4())))
            devices.set_claim(await client.update_status(made))
        await self._settle()

    async def _create_pods(self, operation: Json, namespace: str = "") -> None:
        path = operation.get("podTemplatePath") or self._default_pod or "../templates/pod-default.yaml"
        namespace = namespace or operation.get("namespace") or f"namespace-{self._operation}"
        await self._namespace(namespace)
        count = self._number(operation, "count")
        pods = []
        for index, manifest in enumerate(_rendered(self._text(path), count)):
            if operation.get("persistentVolumeClaimTemplatePath"):
                volume = {"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{index}"}}
                manifest["spec"]["volumes"] = [volume]
            pods.append(self._pod(manifest, namespace))
        if operation.get("persistentVolumeClaimTemplatePath"):
            await self._create_volumes(operation, namespace, count)
        is_measured = bool(operation.get("collectMetrics"))
        if self._param(operation, "steadyState"):
            await self._keep_steady(namespace, pods, _seconds(self._param(operation, "duration")), is_measured)
            return
        gc.collect()
        gc.freeze()
        if operation.get("skipWaitToCompletion") or not count:
            self._waited_for[namespace] += count
            await create_all(self._client, pods)
            return
        if is_measured:
            self._evaluations_before = self.evaluations
        goal = self._tally.watch(_Goal((namespace,), {}, count, is_measured=is_measured), from_now=True)
        creating = self._runtime.env("user").spawn(create_all(self._client, pods), "creation")
        await self._reach(goal)
        await creating
        if is_measured:
            self._note(goal)

    async def _create_pod_sets(self, operation: Json) -> None:
        for index in range(self._number(operation, "count")):
            await self._create_pods(operation["createPodsOp"], f"{operation['namespacePrefix']}-{index}")

    async def _create_volumes(self, operation: Json, namespace: str, count: int) -> None:
        """Volumes and claims that are bound to each other."""
        templates = [self._text(operation[f"persistentVolume{kind}TemplatePath"]) for kind in ("", "Claim")]
        made: list[list[KubernetesObject]] = [[], []]
        for index in range(count):
            volume, claim = (yaml.safe_load(one) for one in templates)
            name, claim_name = f"{namespace}-vol-{index}", f"pvc-{index}"
            volume.setdefault("metadata", {})["name"] = name
            volume["spec"]["claimRef"] = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace,
                "name": claim_name,
            }
            if csi := volume["spec"].get("csi"):
                csi["volumeHandle"] = name
            volume["status"] = claim["status"] = {"phase": "Bound"}
            claim["metadata"] |= {"name": claim_name, "namespace": namespace}
            claim["spec"]["volumeName"] = name
            made[0].append(self._object(claim))
            made[1].append(self._object(volume))
        for objects in made:
            await create_all(self._client, objects)
            for at in range(0, len(objects), 500):
                await asyncio.gather(*(self._client.update_status(one) for one in objects[at : at + 500]))
        await self._settle()

    async def _keep_steady(self, namespace: str, pods: list[Any], lasts_s: float, is_measured: bool) -> None:
        """When all pods are bound they are deleted, and as many are created, for so long in CPU time: on an idle
        machine that is real time, on a busy one the same is measured."""
        client, count = self._client, len(pods)
        goal = _Goal((namespace,), {}, _ENDLESS, is_measured=is_measured)
        full, over = asyncio.Event(), asyncio.Event()

        def bound() -> None:
            if goal.count % count == 0:
                goal.stamp()
                if goal.last_cpu_s - goal.begun_cpu_s >= lasts_s:
                    over.set()
                full.set()

        async def replace() -> None:
            await create_all(client, pods)
            for turn in range(_ENDLESS):
                await full.wait()
                full.clear()
                if over.is_set():
                    goal.done.set()
                    return
                await client.delete_collection("pods", namespace, grace_period_seconds=0)
                following = [copy.copy(pod) for pod in pods]
                for place, pod in enumerate(following):
                    pod.metadata.name = f"steady-{turn}-{place}"
                await create_all(client, following)

        if is_measured:
            self._evaluations_before = self.evaluations
        goal.on_pod = bound
        self._tally.watch(goal, from_now=True)
        self._runtime.env("user").spawn(replace(), "replacements")
        await self._reach(goal)
        if is_measured:
            self._note(goal)

    async def _delete_pods(self, operation: Json) -> None:
        namespace, wanted = operation["namespace"], operation.get("labelSelector") or {}
        rate = operation.get("deletePodsPerSecond")

        async def delete() -> None:
            if not rate:
                text = ",".join(f"{key}={value}" for key, value in wanted.items())
                await self._client.delete_collection("pods", namespace, label_selector=text)
                return
            for pod, labels in list(self._tally.labels.items()):
                if pod.startswith(f"{namespace}/") and wanted.items() <= labels.items():
                    await self._share_of(1 / rate)
                    await self._client.delete("pods", pod.partition("/")[2], namespace)

        if operation.get("skipWaitToCompletion"):
            self._beside.append(self._runtime.env("user").spawn(delete(), "deletion"))
        else:
            await self._carry_out(delete())

    async def _churn(self, operation: Json) -> None:
        """Beside the operations that follow."""
        namespace = operation.get("namespace") or f"namespace-{self._operation}"
        await self._namespace(namespace)
        interval_s = (operation.get("intervalMilliseconds") or 500) / 1000
        templates = [yaml.safe_load(self._text(path)) for path in operation["templatePaths"]]
        recreates, number = operation["mode"] == "recreate", operation.get("number") or _ENDLESS

        async def churn() -> None:
            there: dict[int, list[Any]] = {}
            for turn in range(_ENDLESS if recreates else number):
                await self._share_of(interval_s)
                place = turn % number
                if place in there:
                    for one in there.pop(place):
                        resource = resources.BY_MESSAGE[type(one)].plural
                        await self._client.delete(resource, one.metadata.name, one.metadata.namespace)
                    continue
                made = []
                for template in templates:
                    manifest = copy.deepcopy(template)
                    if manifest["kind"] != "Node":
                        manifest["metadata"]["namespace"] = namespace
                    made.append(await self._client.create(self._object(manifest)))
                if recreates:
                    there[place] = made

        self._beside.append(self._runtime.env("user").spawn(churn(), "churn"))

    async def _barrier(self, operation: Json) -> None:
        """Until the pods of operations that did not wait are bound, or tried."""
        or_tried = operation.get("stageRequirement") == "Attempted"
        for namespace in operation.get("namespaces") or list(self._waited_for):
            wanted = self._waited_for[namespace]
            labels = operation.get("labelSelector") or {}
            goal = _Goal((namespace,), labels, wanted, or_tried=or_tried)
            await self._reach(self._tally.watch(goal, from_now=False))
            if not or_tried:
                self._waited_for[namespace] = 0

    async def _start(self, operation: Json) -> None:
        gc.collect()
        gc.freeze()
        goal = _Goal(operation["namespaces"], operation.get("labelSelector") or {}, _ENDLESS, is_measured=True)
        self._evaluations_before = self.evaluations
        self._window = self._tally.watch(goal, from_now=True)

    async def _stop(self, operation: Json) -> None:
        if self._window is not None:
            self._window.stamp()
            self._tally.drop(self._window)
            self._note(self._window)
            self._window = None

    async def _sleep(self, operation: Json) -> None:
        until_ns = round((self._now_s() + _seconds(self._param(operation, "duration"))) * SECOND_NS)
        await self._runtime.run_until(until_ns)

    # Parts ------------------------------------------------------------------------------------------------------------

    def _now_s(self) -> float:
        return self._runtime.env("user").clock.now_ns() / SECOND_NS

    def _note(self, goal: _Goal) -> None:
        """A measurement is over."""
        self.pods += goal.count
        self.seconds += goal.last_s - goal.begun_s
        self.cpu_s += goal.last_cpu_s - goal.begun_cpu_s
        self.measured_evaluations += self.evaluations - self._evaluations_before

    async def _reach(self, goal: _Goal) -> None:
        await self._runtime.run_until(round((self._now_s() + _LIMIT_S) * SECOND_NS), stop=goal.done)
        self._tally.drop(goal)
        if not goal.done.is_set():
            where, opcode = ", ".join(goal.namespaces), self._operations[self._operation]["opcode"]
            how = "tried or bound" if goal.or_tried else "bound"
            raise KemuError(f"{opcode}: only {goal.count} of {goal.wanted} pods of {where} were {how}")

    async def _carry_out(self, work: Coroutine[Any, Any, None]) -> None:
        """While time passes."""
        done = asyncio.Event()
        wrong: list[KemuError] = []

        async def carry_out() -> None:
            try:
                await work
            except KemuError as error:
                wrong.append(error)
            done.set()

        self._runtime.env("user").spawn(carry_out(), "operation")
        await self._runtime.run_until(round((self._now_s() + _LIMIT_S) * SECOND_NS), stop=done)
        for error in wrong:
            raise KemuError(f"{self._operations[self._operation]['opcode']}: {error}")

    async def _share_of(self, interval_s: float) -> None:
        """Until as many measured pods were bound as are expected in this time, or until it is over."""
        clock = self._runtime.env("user").clock
        event = self._tally.pace(max(1, round(self._expected_per_s * interval_s)))
        timer = clock.call_at_ns(clock.now_ns() + round(interval_s * SECOND_NS), lambda _: event.set(), None)
        await event.wait()
        timer.cancel()
        self._tally.forget(event)

    async def _settle(self) -> None:
        """Until everybody has seen what was written."""
        await self._runtime.run_until(round((self._now_s() + 1) * SECOND_NS))

    async def _namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        if name not in self._waited_for:
            self._waited_for[name] = 0
            made = shapes.namespace(name)
            made.metadata.labels.update(labels or {})
            await self._client.create(made)

    async def _all(self, resource: str) -> list[Any]:
        return list((await self._client.list(resource)).items)

    def _name(self, manifest: Json) -> str:
        """Of an object, which gets one if it has none."""
        metadata = manifest["metadata"]
        if "name" not in metadata:
            self._named += 1
            metadata["name"] = f"{metadata.pop('generateName')}{self._named}"
        name: str = metadata["name"]
        return name

    def _pod(self, manifest: Json, namespace: str) -> KubernetesObject:
        manifest["metadata"]["namespace"] = namespace
        for constraint in manifest["spec"].get("topologySpreadConstraints") or ():
            for name in list(constraint):  # Go reads fields of any case
                constraint[f"{name[0].lower()}{name[1:]}"] = constraint.pop(name)
        key = f"{namespace}/{self._name(manifest)}"
        self._tally.labels[key] = manifest["metadata"].get("labels") or {}
        if manifest["spec"].get("schedulingGates"):
            self._tally.tried(key)  # its condition says so from the beginning
        return self._object(manifest)

    def _object(self, manifest: Json) -> KubernetesObject:
        if manifest["kind"] == "Node":
            status = manifest["status"]
            status.pop("phase", None)
            status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}  # as by default
        found = convert.from_manifest(manifest)
        if isinstance(found, CustomObject):
            raise KemuError(f"kemu has no {manifest['kind']} of {manifest['apiVersion']}")
        return found

    def _param(self, operation: Json, key: str) -> object:
        reference = operation.get(f"{key}Param")
        if reference is None:
            return operation.get(key)
        if reference.removeprefix("$") not in self._params:
            raise KemuError(f"{operation['opcode']}: the workload has no parameter {reference}")
        return self._params[reference.removeprefix("$")]

    def _number(self, operation: Json, key: str, default: int | None = None) -> int:
        value = self._param(operation, key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or value < 0:
            raise KemuError(f"{operation['opcode']}: {key} is {value!r}, not a whole number")
        return value

    def _text(self, path: str) -> str:
        """Of a template. Paths are relative to the folder of the file; the usual ones to a folder above it."""
        for folder in (self._folder, *self._folder.absolute().parents[:3]):
            if (folder / path).is_file():
                return (folder / path).read_text()
        raise KemuError(f"{path}: no such template in {self._folder}")


_OPERATIONS: Mapping[str, Callable[[_Play, Json], Awaitable[None]]] = {
    "createNodes": _Play._create_nodes,
    "createNamespaces": _Play._create_namespaces,
    "createAny": _Play._create_any,
    "updateAny": _Play._update_any,
    "createPods": _Play._create_pods,
    "createPodSets": _Play._create_pod_sets,
    "deletePods": _Play._delete_pods,
    "churn": _Play._churn,
    "createResourceDriver": _Play._create_driver,
    "allocResourceClaims": _Play._allocate,
    "startCollectingMetrics": _Play._start,
    "stopCollectingMetrics": _Play._stop,
    "barrier": _Play._barrier,
    "sleep": _Play._sleep,
}


_OF_SCHEDULERS = configurations.FEATURE_GATES
"""Gates that a scheduler can be given; others are as kemu has them."""


def _rendered(template: str, count: int) -> Iterator[Json]:
    """The objects of a template in Go's language, as far as it asks for its index and sums of it."""
    if not _CALL.search(template):
        parsed = yaml.load(template, _LOADER)
        yield from (copy.deepcopy(parsed) for _ in range(count))
        return
    for index in range(count):

        def value(match: re.Match[str], index: int = index) -> str:
            words = [{".Index": str(index), ".Count": str(count)}.get(word, word) for word in match[1].split()]
            if len(words) == 1 and words[0].isdigit():
                return words[0]
            if len(words) == 3 and words[0] in _ARITHMETIC and words[1].isdigit() and words[2].isdigit():
                return str(_ARITHMETIC[words[0]](int(words[1]), int(words[2])))
            raise KemuError(f"a template says {match[0]}, which is not known here")

        yield yaml.load(_CALL.sub(value, template), _LOADER)


def _slice(driver: str, node: str, count: int) -> Json:
    """As createResourceDriver makes it."""
    devices = [
        {
            "name": f"instance-{number}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": number},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for number in range(count)
    ]
    pool = {"name": node, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def _csi_node(node: str, stated: Json) -> Json:
    """As nodeAllocatableStrategy makes it."""
    metadata = {
        "name": node,
        "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(stated.get("migratedPlugins") or ())},
    }
    drivers = [
        {"name": name, "nodeID": node, "allocatable": limit}
        for name, limit in (stated.get("csiNodeAllocatable") or {}).items()
    ]
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def _seconds(value: object) -> float:
    """``10s``, ``1m30s``"""
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", str(value))
    if not parts:
        raise KemuError(f"{value!r} is no duration")
    return sum(float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)
