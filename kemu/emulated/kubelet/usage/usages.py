"""The usage of a pod over time, from its annotation ``kemu.dev/usage``, and that of the node itself.

As data (:mod:`kemu.emulated.kubelet.usage.curves` has the forms of a curve):

    {cpu: 500m, memory: {ramp: {from: 100Mi, to: 1Gi, over: 5m}}, rootfs: 1Gi, logs: 10Mi, inodes: "1000", pids: "12",
     volumes: {scratch: {ramp: {from: "0", to: 5Gi, over: 10m}}}, containers: {sidecar: {memory: 20Mi}}}

The main containers share the usage of the pod evenly; ``containers`` adds the usage of single ones. Curves of memory,
cpu and processes begin at each start of a container, those of disks at the first start of the pod. ``volumes`` are
local volumes by name. A pod without the annotation uses nothing.

``memory`` is what processes hold for themselves: the kernel can only take it back with a kill. What it caches of files
for them comes on top, by the kernel's own names: ``active_file``, which counts in the working set, and
``inactive_file``, which does not. The kernel gives up both before it kills anybody, and keeps no more of them than a
container's limit leaves room for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import yaml

from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.usage import curves, stats, storage_limits
from kemu.emulated.kubelet.usage.curves import Curve, CurveError
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.conversion import yaml_texts
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

USAGE = "kemu.dev/usage"

ACTIVE_FILE, INACTIVE_FILE = "active_file", "inactive_file"
"""Cached pages of files on the active and the inactive list of the kernel (``memory.stat``)."""
CACHE = (ACTIVE_FILE, INACTIVE_FILE)
_OF_CONTAINERS = ("cpu", "memory", *CACHE, "rootfs", "logs", "inodes")
_PROCESS = ("cpu", "memory", *CACHE, "pids")
"""Begin anew with their container."""
KEYS = (*_OF_CONTAINERS, "pids", "volumes", "containers")
NODE_KEYS = ("cpu", "memory", *CACHE, "disk", "images", "deadContainers", "inodes", "pids")
"""What a node uses besides its pods: the system's daemons, files on its disk (``disk``, ``inodes``), images that nobody
needs and containers that have ended, which it can give back."""


class Usage:
    """The curves of one pod."""

    __slots__ = ("has_cache", "of_containers", "pids", "resources", "shared", "volumes")

    def __init__(
        self,
        shared: Mapping[str, Curve],
        of_containers: Mapping[str, Mapping[str, Curve]],
        volumes: Mapping[str, Curve],
        pids: Curve | None,
    ) -> None:
        self.shared = shared
        """By resource: what the main containers use together."""
        self.of_containers = of_containers
        self.volumes = volumes
        self.pids = pids
        self.resources = frozenset(key for curves in (shared, *of_containers.values()) for key in curves)
        """What any container uses: most pods use memory and nothing else."""
        self.has_cache = not self.resources.isdisjoint(CACHE)
        """Whether the kernel caches files for it."""

    def every(self) -> Iterable[Curve]:
        yield from self.shared.values()
        for own in self.of_containers.values():
            yield from own.values()
        yield from self.volumes.values()
        if self.pids is not None:
            yield self.pids


def parse(data: Json, seed: str = "", path: str = "") -> Usage:
    """Raises CurveError with the path of the mistake."""
    fields = _mapping(data, path, KEYS)
    shared = _curves(fields, path, seed, _OF_CONTAINERS)
    own = {
        str(name): _curves(
            _mapping(of, _join(path, f"containers.{name}"), _OF_CONTAINERS),
            _join(path, f"containers.{name}"),
            f"{seed}/{name}",
            _OF_CONTAINERS,
        )
        for name, of in _mapping(fields.get("containers", {}), _join(path, "containers"), None).items()
    }
    volumes = {
        str(name): curves.parse(of, _join(path, f"volumes.{name}"), f"{seed}/volumes/{name}")
        for name, of in _mapping(fields.get("volumes", {}), _join(path, "volumes"), None).items()
    }
    pids = curves.parse(fields["pids"], _join(path, "pids"), f"{seed}/pids") if "pids" in fields else None
    return Usage(shared, own, volumes, pids)


def parse_node(data: Json, seed: str = "", path: str = "") -> dict[str, Curve]:
    """What a node uses besides its pods, from the start of the run. Raises CurveError."""
    return _curves(_mapping(data, path, NODE_KEYS), path, seed, NODE_KEYS)


def of(pod: core_v1_pb2.Pod) -> Usage | None:
    """None: it uses nothing. An annotation that cannot be read counts as absent, as the API server takes any."""
    annotations = pod.metadata.annotations
    if not annotations or USAGE not in annotations:
        return None
    text = annotations[USAGE]
    try:
        if "randomWalk" not in text:
            return _parse_text(text)
        return parse(_load(text), pod.metadata.uid)
    except (CurveError, yaml.YAMLError):
        return None


@lru_cache(1024)
def _parse_text(text: str) -> Usage:
    """Pods of one template share their curves, unless chance has a part in them."""
    return parse(_load(text))


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return yaml_texts.safe_load(text)


def _mapping(data: Json, path: str, known: Iterable[str] | None) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise CurveError(path, "must be a mapping")
    for key in data if known is not None else ():
        if key not in known:  # type: ignore[operator]
            raise CurveError(_join(path, str(key)), f"unknown field; there are: {', '.join(known or ())}")
    return data


def _curves(fields: Mapping[str, Any], path: str, seed: str, known: Iterable[str]) -> dict[str, Curve]:
    return {
        key: curves.parse(fields[key], _join(path, key), f"{seed}/{key}", milli=key == "cpu")
        for key in known
        if key in fields
    }


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# What a pod uses at a time ------------------------------------------------------------------------------------------


class Gauge:
    """Measures one pod: its curves, and since when they count."""

    __slots__ = ("_disk_ns", "_memory_limits", "_usage", "_worker", "storage_limit")

    def __init__(self, worker: Worker, usage: Usage) -> None:
        self._worker = worker
        self._usage = usage
        self._disk_ns: int | None = None
        self.storage_limit = storage_limits.least_limit(worker.pod)
        """The smallest limit of local storage, in bytes; None: there is none."""
        self._memory_limits = memory_limits(worker.pod)

    def limit_memory(self, limits: dict[str, int]) -> None:
        """The containers have been resized: their limits in bytes."""
        self._memory_limits = limits

    @property
    def worker(self) -> Worker:
        return self._worker

    @property
    def settled_ns(self) -> int | None:
        """From then on nothing changes unless its containers do; None: never."""
        last = 0
        for curve in self._usage.every():
            if curve.settled_s is None:
                return None
            last = max(last, curve.settled_s)
        newest_ns = max((one.started_ns for one in self._worker.containers if one.is_up), default=0)
        return newest_ns + (last + 1) * SECOND_NS

    def memory_limits(self) -> list[tuple[containers.Container, int]]:
        """The containers that may not hold more than so many bytes."""
        limits = self._memory_limits
        return [(one, limits[one.name]) for one in self._worker.containers if one.name in limits] if limits else []

    def memory(self, container: containers.Container, first_ns: int, last_ns: int) -> int:
        """Bytes that the processes of a container hold, the most between two times; exact where they are equal."""
        return self.amount("memory", container, first_ns, last_ns)

    def memories(self, first_ns: int, last_ns: int) -> int:
        """The same of the pod."""
        all_containers, shared = self._worker.containers, self._usage.shared.get("memory")
        if len(all_containers) == 1 and shared is not None and not self._usage.of_containers:
            # As in most pods: the one container has all of it.
            only = all_containers[0]
            if only.kind == containers.MAIN:
                return _most(shared, only.started_ns, first_ns, last_ns) if only.is_up else 0
        return self._of_all("memory", first_ns, last_ns)

    def _of_all(self, key: str, first_ns: int, last_ns: int) -> int:
        """What the containers use together."""
        if key not in self._usage.resources:
            return 0
        return sum([self.amount(key, container, first_ns, last_ns) for container in self._worker.containers])

    def working_set(self, container: containers.Container, first_ns: int, last_ns: int) -> int:
        """What the kubelet counts of a container: all that is charged to it but ``inactive_file``."""
        return self._with_cache(container, (ACTIVE_FILE,), first_ns, last_ns)

    def working_sets(self, first_ns: int, last_ns: int) -> int:
        """The same of the pod."""
        if not self._usage.has_cache:
            return self.memories(first_ns, last_ns)
        return sum(self.working_set(container, first_ns, last_ns) for container in self._worker.containers)

    def charged(self, first_ns: int, last_ns: int) -> int:
        """All that is charged to the containers of the pod, with all cached files (``memory.usage_in_bytes``)."""
        return sum(self._with_cache(container, CACHE, first_ns, last_ns) for container in self._worker.containers)

    def _with_cache(self, container: containers.Container, lists: tuple[str, ...], first_ns: int, last_ns: int) -> int:
        held = self.memory(container, first_ns, last_ns)
        if not self._usage.has_cache:
            return held
        cached = sum(self.amount(key, container, first_ns, last_ns) for key in lists)
        return within(held, cached, self._memory_limits.get(container.name))

    def local_bytes(self, first_ns: int, last_ns: int) -> tuple[int, int, int]:
        """The most in its writable layers, its logs and its volumes."""
        volumes = sum([self._disk(curve, first_ns, last_ns) for curve in self._usage.volumes.values()])
        return self._of_all("rootfs", first_ns, last_ns), self._of_all("logs", first_ns, last_ns), volumes

    def inodes(self, first_ns: int, last_ns: int) -> int:
        return self._of_all("inodes", first_ns, last_ns)

    def pids(self, first_ns: int, last_ns: int) -> int:
        curve = self._usage.pids
        if curve is None:
            return 0
        up = [one for one in self._worker.containers if one.is_up]
        if not up:
            return 0
        since_ns = max(one.started_ns for one in up)
        return _most(curve, since_ns, first_ns, last_ns)

    def measure(self, now_ns: int) -> stats.PodStats:
        """As the summary API shows it."""
        found = []
        for container in self._worker.containers:
            if container.is_up:
                memory = self.working_set(container, now_ns, now_ns)
                rootfs, logs, inodes = (
                    self.amount(key, container, now_ns, now_ns) for key in ("rootfs", "logs", "inodes")
                )
                found.append(
                    stats.ContainerStats(container.name, memory, stats.Disk(rootfs, inodes), stats.Disk(logs, 0))
                )
        volumes = tuple(
            (name, stats.Disk(self._disk(curve, now_ns, now_ns), 0)) for name, curve in self._usage.volumes.items()
        )
        return stats.PodStats(
            uid=self._worker.uid,
            working_set_bytes=sum(one.working_set_bytes or 0 for one in found),
            processes=self.pids(now_ns, now_ns),
            ephemeral_storage_bytes=sum(self.local_bytes(now_ns, now_ns)),
            containers=tuple(found),
            volumes=volumes,
        )

    def amount(self, key: str, container: containers.Container, first_ns: int, last_ns: int) -> int:
        """The most of a resource that a container uses between two times; exact where they are equal."""
        own = self._usage.of_containers.get(container.name, {}).get(key)
        shared = self._usage.shared.get(key) if container.kind == containers.MAIN else None
        if own is None and shared is None:
            return 0
        if key in _PROCESS:
            if not container.is_up:
                return 0
            since_ns = container.started_ns
        elif (since := self._since()) is None:
            return 0
        else:
            since_ns = since
        amount = _most(own, since_ns, first_ns, last_ns) if own is not None else 0
        if shared is not None:
            mains = [one for one in self._worker.containers if one.kind == containers.MAIN]
            amount += share(_most(shared, since_ns, first_ns, last_ns), mains.index(container), len(mains))
        return amount

    def _disk(self, curve: Curve, first_ns: int, last_ns: int) -> int:
        since_ns = self._since()
        return 0 if since_ns is None else _most(curve, since_ns, first_ns, last_ns)

    def _since(self) -> int | None:
        """When the first of its containers started; None: none has."""
        if self._disk_ns is None:
            # A container that has started anew tells only when it did so the last time: then the pod's start serves.
            started = [
                self._worker.start_ns if one.restarts else one.started_ns
                for one in self._worker.containers
                if one.has_started
            ]
            self._disk_ns = min(started, default=None)
        return self._disk_ns


def share(together: int, place: int, mains: int) -> int:
    """The part that the main container in this place has of what all use together: the first one has the rest."""
    part, rest = divmod(together, mains)
    return part + rest if place == 0 else part


def memory_limits(pod: core_v1_pb2.Pod) -> dict[str, int]:
    """Memory limits of its containers, in bytes; those without one are missing."""
    spec = pod.spec
    return {
        one.name: quantities.value(one.resources.limits[requests.MEMORY].string)
        for one in (*spec.initContainers, *spec.containers)
        if requests.MEMORY in one.resources.limits
    }


def within(held: int, cached: int, limit: int | None) -> int:
    """What is charged to a container that holds so much: files are cached only as far as its limit leaves room."""
    return held + cached if limit is None else max(held, min(held + cached, limit))


def _most(curve: Curve, since_ns: int, first_ns: int, last_ns: int) -> int:
    first, last = max(0, (first_ns - since_ns) // SECOND_NS), max(0, (last_ns - since_ns) // SECOND_NS)
    return curve.at(first) if first == last else curve.most(first, last)
