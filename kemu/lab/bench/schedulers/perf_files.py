"""scheduler_perf's own configurations, run as they are: ``kemu bench scheduler-perf --workload FILE``.

A file (``performance-config.yaml``) has test cases, each a list of operations and several workloads, which give the
operations their numbers. Store, API server, scheduler and the controller of claims run in one process in sim, with all
virtual times 0, as in :mod:`kemu.lab.bench.schedulers.scheduling`: what is measured is computing alone, from the first
measured pod's creation until the last one is bound. What an operation asks for and cannot be had here is an error.
"""

from __future__ import annotations

import copy
import fnmatch
import gc
import re
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.client import clients
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.devices import results
from kemu.emulated.scheduler.devices.allocators import Allocator
from kemu.emulated.scheduler.devices.trackers import Devices
from kemu.errors import KemuError, NotFound
from kemu.lab.bench import shapes
from kemu.lab.bench.schedulers.scheduling import SCHEDULER, TIMING, Progress, create_all
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.playing import plans
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]

_LIMIT_S = 36_000
"""Virtual time for an operation: controllers keep their rates."""
_BETAS = ("resource.k8s.io/v1beta2",)
"""Versions whose objects are those of v1."""
_CALL = re.compile(r"\{\{\s*(.+?)\s*\}\}")
_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "AddInt": lambda one, other: one + other,
    "SubtractInt": lambda one, other: one - other,
    "MultiplyInt": lambda one, other: one * other,
    "DivideInt": lambda one, other: one // other,
    "Mod": lambda one, other: one % other,
}
"""Functions of templates."""


def workloads(file: str) -> list[dict[str, str]]:
    """Settings of all workloads of a file. ``FILE#TEXT``: of those whose ``test/workload`` contains the text; without
    it, of those with the label ``performance``, or of all if none has it. Raises KemuError."""
    name, _, wanted = file.partition("#")
    found = []
    for case in _read(Path(name)):
        for workload in case.get("workloads") or ():
            labels = [*(case.get("labels") or ()), *(workload.get("labels") or ())]
            found.append((f"{case['name']}/{workload['name']}", "performance" in labels))
    if wanted:
        names = [one for one, _ in found if wanted in one]
    else:
        names = [one for one, is_performance in found if is_performance] or [one for one, _ in found]
    if not names:
        raise KemuError(f"{name}: no workload {wanted!r}; there are {', '.join(one for one, _ in found)}")
    return [{"file": name, "workload": one} for one in names]


def measure(file: str, workload: str) -> Json:
    """Pods bound per second, beside the threshold of the file. Raises KemuError."""
    path = Path(file)
    test, _, name = workload.partition("/")
    case = next((one for one in _read(path) if one["name"] == test), None)
    chosen = next((one for one in (case or {}).get("workloads") or () if one["name"] == name), None)
    if case is None or chosen is None:
        raise KemuError(f"{path}: no workload {workload!r}")
    progress = Progress()
    runtime = SimRuntime(1, progress, TIMING)
    play = _Play(path.parent, case, chosen, runtime, progress)
    runtime.run(play.run())
    if not play.seconds:
        return {"wall_s": round(play.wall_s, 2), "measured": "no pods"}
    figures: Json = {
        "pods": play.pods,
        "pods_per_s": round(play.pods / play.seconds, 1),
        "pods_per_cpu_s": round(play.pods / play.cpu_s, 1),
        "wall_s": round(play.seconds, 2),
    }
    thresholds = chosen.get("threshold") or case.get("threshold")
    threshold = next(iter(thresholds.values()), 0) if isinstance(thresholds, Mapping) else thresholds
    if threshold:
        figures |= {"threshold": threshold, "ratio": round(figures["pods_per_s"] / threshold, 1)}
        figures["cpu_ratio"] = round(figures["pods_per_cpu_s"] / threshold, 1)
    return figures


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


class _Play:
    """One workload."""

    def __init__(self, folder: Path, case: Json, workload: Json, runtime: SimRuntime, progress: Progress) -> None:
        self._folder = folder
        self._operations: list[Json] = case["workloadTemplate"]
        self._params: Json = workload.get("params") or {}
        self._gates = {**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})}
        self._default_pod = workload.get("defaultPodTemplatePath") or case.get("defaultPodTemplatePath")
        self._runtime = runtime
        self._progress = progress
        self._namespaces: set[str] = {"default"}
        self.pods = 0
        """Measured ones."""
        self.seconds = self.cpu_s = self.wall_s = 0.0

    async def run(self) -> None:
        begun = time.perf_counter()
        runtime = self._runtime
        await runtime.launch([ActorSpec(plans.STORE, plans.STORE_FACTORY, {"fsync": "none"})])
        await runtime.launch([ActorSpec("apiserver/0", plans.APISERVER_FACTORY, {"store": plans.STORE})])
        self._client = clients.Client(runtime.env("user"))
        await self._client.create(shapes.high_priority())
        claims = controller_keys.RESOURCE_CLAIM
        config = {
            "timing": TIMING,
            "devices": True,
            "config": {"featureGates": {name: on for name, on in self._gates.items() if name in _OF_SCHEDULERS}},
        }
        await runtime.launch(
            [
                ActorSpec(SCHEDULER, plans.SCHEDULER_FACTORY, config),
                ActorSpec(f"controller/{claims}", controller_keys.KINDS[claims].factory, {}),
            ]
        )
        await runtime.begin()
        for number, operation in enumerate(self._operations):
            opcode = operation.get("opcode")
            act = _OPERATIONS.get(str(opcode))
            if act is None:
                raise KemuError(f"workloadTemplate[{number}]: the operation {opcode!r} is not known here")
            await act(self, operation)
        await runtime.shutdown()
        self.wall_s = time.perf_counter() - begun

    # Operations -------------------------------------------------------------------------------------------------------

    async def _create_nodes(self, operation: Json) -> None:
        template = self._text(operation.get("nodeTemplatePath") or "../templates/node-default.yaml")
        count = self._number(operation, "count")
        labels = (operation.get("labelNodePrepareStrategy") or {}, operation.get("uniqueNodeLabelStrategy") or {})
        made = []
        for index, node in enumerate(_rendered(template, count)):
            status = node["status"]
            status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}
            status.pop("phase", None)
            if values := labels[0].get("labelValues"):
                node["metadata"].setdefault("labels", {})[labels[0]["labelKey"]] = values[index % len(values)]
            if key := labels[1].get("labelKey"):
                node["metadata"].setdefault("labels", {})[key] = str(index)
            made.append(convert.from_manifest(node))
        await create_all(self._client, made)
        await self._settle()

    async def _create_namespaces(self, operation: Json) -> None:
        for index in range(self._number(operation, "count")):
            await self._namespace(f"{operation['prefix']}-{index}")

    async def _create_any(self, operation: Json) -> None:
        template, namespace = self._text(operation["templatePath"]), operation.get("namespace", "")
        if namespace:
            await self._namespace(namespace)
        made = []
        for manifest in _rendered(template, self._number(operation, "count", 1)):
            if manifest["apiVersion"] in _BETAS:
                manifest["apiVersion"] = "resource.k8s.io/v1"
            if namespace:
                manifest["metadata"]["namespace"] = namespace
            if manifest["kind"].endswith("Template") and "resource.k8s.io" in manifest["apiVersion"]:
                manifest["spec"]["spec"].pop("controller", None)  # of an older version; a real server drops it
            made.append(self._object(manifest))
        await create_all(self._client, made)
        await self._settle()

    async def _create_driver(self, operation: Json) -> None:
        """A slice for each node whose name fits."""
        nodes = await self._all("nodes")
        count = self._number(operation, "maxClaimsPerNode")
        made = []
        for node in nodes:
            name = node.metadata.name
            if fnmatch.fnmatchcase(name, operation["nodes"]):
                manifest = _slice(operation["driverName"], name, count)
                made.append(convert.from_manifest(manifest))
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

    async def _create_pods(self, operation: Json) -> None:
        path = operation.get("podTemplatePath") or self._default_pod or "../templates/pod-default.yaml"
        namespace = operation.get("namespace") or f"namespace-{len(self._namespaces)}"
        for key in ("persistentVolumeTemplatePath", "persistentVolumeClaimTemplatePath"):
            if operation.get(key):
                raise KemuError(f"createPods: {key} is not known here")
        await self._namespace(namespace)
        count = self._number(operation, "count")
        is_measured = bool(operation.get("collectMetrics"))
        pods = []
        for manifest in _rendered(self._text(path), count):
            manifest["metadata"]["namespace"] = namespace
            pods.append(convert.from_manifest(manifest))
        if operation.get("steadyState"):
            await self._keep_steady(namespace, pods, _seconds(self._param(operation, "duration")), is_measured)
            return
        progress = self._progress
        progress.expect(f"{namespace}/", count)
        gc.collect()
        gc.freeze()
        begun, begun_cpu = time.perf_counter(), time.process_time()
        creating = self._runtime.env("user").spawn(create_all(self._client, pods), "creation")
        if operation.get("skipWaitToCompletion") or not count:
            await creating
            return
        await self._runtime.run_until(round((self._now_s() + _LIMIT_S) * SECOND_NS), stop=progress.done)
        if not progress.done.is_set():
            raise KemuError(f"createPods: only {progress.bound} of {count} pods of {namespace} were bound")
        await creating
        if is_measured:
            self.pods += count
            self.seconds += progress.last_s - begun
            self.cpu_s += progress.last_cpu_s - begun_cpu

    async def _keep_steady(self, namespace: str, pods: list[Any], lasts_s: float, is_measured: bool) -> None:
        """A pod that is bound is deleted, and another one takes its place, for so long in CPU time: on an idle machine
        that is real time, on a busy one the same is measured."""
        env, progress, client = self._runtime.env("user"), self._progress, self._client
        progress.expect(f"{namespace}/", 1 << 62)
        begun, begun_cpu = time.perf_counter(), time.process_time()
        places = iter(range(1 << 62))

        def bound() -> None:
            if time.process_time() - begun_cpu >= lasts_s:
                progress.last_s, progress.last_cpu_s = time.perf_counter(), time.process_time()
                progress.done.set()
                return
            env.spawn(replace(progress.latest, next(places)), "replacement")

        async def replace(name: str, place: int) -> None:
            try:
                await client.delete("pods", name.partition("/")[2], namespace, grace_period_seconds=0)
            except NotFound:
                return
            made = copy.copy(pods[place % len(pods)])
            made.metadata.name = f"steady-{place}"
            await client.create(made)

        progress.every, progress.turn = 1, bound
        await create_all(client, pods)
        await self._runtime.run_until(round((self._now_s() + _LIMIT_S) * SECOND_NS), stop=progress.done)
        progress.turn = None
        if not progress.done.is_set():
            raise KemuError(f"createPods: the cluster of {namespace} did not stay steady after {progress.bound} pods")
        if is_measured:
            self.pods += progress.bound
            self.seconds += progress.last_s - begun
            self.cpu_s += progress.last_cpu_s - begun_cpu

    async def _pass(self, operation: Json) -> None:
        """Only pods are measured; each operation waits for its end."""

    async def _sleep(self, operation: Json) -> None:
        until_ns = round((self._now_s() + _seconds(self._param(operation, "duration"))) * SECOND_NS)
        await self._runtime.run_until(until_ns)

    # Parts ------------------------------------------------------------------------------------------------------------

    def _now_s(self) -> float:
        return self._runtime.env("user").clock.now_ns() / SECOND_NS

    async def _settle(self) -> None:
        """Until everybody has seen what was written."""
        await self._runtime.run_until(round((self._now_s() + 1) * SECOND_NS))

    async def _namespace(self, name: str) -> None:
        if name not in self._namespaces:
            self._namespaces.add(name)
            await self._client.create(shapes.namespace(name))

    async def _all(self, resource: str) -> list[Any]:
        return list((await self._client.list(resource)).items)

    def _object(self, manifest: Json) -> KubernetesObject:
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
        """Of a template. Paths are relative to the folder of the file, or to the one above."""
        for folder in (self._folder, self._folder.parent):
            if (folder / path).is_file():
                return (folder / path).read_text()
        raise KemuError(f"{path}: no such template in {self._folder}")


_OPERATIONS: Mapping[str, Callable[[_Play, Json], Awaitable[None]]] = {
    "createNodes": _Play._create_nodes,
    "createNamespaces": _Play._create_namespaces,
    "createAny": _Play._create_any,
    "createPods": _Play._create_pods,
    "createResourceDriver": _Play._create_driver,
    "allocResourceClaims": _Play._allocate,
    "startCollectingMetrics": _Play._pass,
    "stopCollectingMetrics": _Play._pass,
    "barrier": _Play._pass,
    "sleep": _Play._sleep,
}

_OF_SCHEDULERS = configurations.FEATURE_GATES
"""Gates that a scheduler can be given; others are as kemu has them."""


def _rendered(template: str, count: int) -> Iterator[Json]:
    """The objects of a template in Go's language, as far as it asks for its index and sums of it."""
    for index in range(count):

        def value(match: re.Match[str], index: int = index) -> str:
            words = [{".Index": str(index), ".Count": str(count)}.get(word, word) for word in match[1].split()]
            if len(words) == 1 and words[0].isdigit():
                return words[0]
            if len(words) == 3 and words[0] in _ARITHMETIC and words[1].isdigit() and words[2].isdigit():
                return str(_ARITHMETIC[words[0]](int(words[1]), int(words[2])))
            raise KemuError(f"a template says {match[0]}, which is not known here")

        yield yaml.safe_load(_CALL.sub(value, template))


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


def _seconds(value: object) -> float:
    """``10s``, ``1m30s``"""
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", str(value))
    if not parts:
        raise KemuError(f"{value!r} is no duration")
    return sum(float(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for number, unit in parts)
