"""The machine of a node: its capacities, and how much of them is used, as the kubelet measures it.

Capacities come from the Node's capacity (memory, ephemeral-storage) and from the scenario (``machine``: file systems of
their own for images, inodes, processes); what is used is the sum of the pods' curves and the node's own
(:mod:`kemu.emulated.kubelet.usage.usages`). Every amount can be asked for a span of time and is then the most that may
be used in it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.kubelet import notes
from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.kubelet.settings.thresholds import Layout
from kemu.emulated.kubelet.usage import stats, usages
from kemu.emulated.kubelet.usage.curves import Curve
from kemu.emulated.kubelet.usage.usages import Gauge
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Disk

BYTES_PER_INODE = 16_384
"""As ext4 is made by default."""
MOST_PROCESSES = 32_768
_BYTES, _COUNT = quantities.Format.BINARY_SI, quantities.Format.DECIMAL_SI

IMAGES, DEAD_CONTAINERS = "images", "deadContainers"
"""What a collection gives back."""

_FREED = "freed"


@dataclass(frozen=True, slots=True)
class FileSystem:
    capacity_bytes: int
    inodes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """Capacities."""

    memory_bytes: int
    pods_memory_bytes: int
    """What the pods together may hold: less than the machine has by what is reserved for daemons."""
    nodefs: FileSystem
    imagefs: FileSystem | None
    """None: images lie on nodefs."""
    split: bool
    """With an imagefs: writable layers lie on nodefs nevertheless."""
    processes: int

    @property
    def layout(self) -> Layout:
        return Layout(self.imagefs is not None, self.imagefs is not None and self.split)

    @property
    def image_disk(self) -> FileSystem:
        """Where images lie."""
        return self.nodefs if self.imagefs is None else self.imagefs

    @property
    def layers_on_imagefs(self) -> bool:
        return self.imagefs is not None and not self.split


def machine_of(node: core_v1_pb2.Node, kubelet: Mapping[str, Any], given: Mapping[str, Any]) -> Machine:
    """``given``: ``{nodefs: {inodes}, imagefs: {capacity, inodes}, splitImages, pids}``, amounts as quantities."""
    capacity = node.status.capacity
    memory = capacity["memory"].string if "memory" in capacity else "0"
    storage = capacity["ephemeral-storage"].string if "ephemeral-storage" in capacity else "0"
    if not kubelet and not given:
        return _plain(memory, storage)
    return _machine_of(_value(memory), _value(storage), kubelet, given)


@functools.lru_cache(256)
def _plain(memory: str, storage: str) -> Machine:
    """One for all nodes of a kind."""
    return _machine_of(_value(memory), _value(storage), {}, {})


def _machine_of(memory: int, storage: int, kubelet: Mapping[str, Any], given: Mapping[str, Any]) -> Machine:
    enforced = kubelet.get("enforceNodeAllocatable")
    reserved = 0
    if enforced is None or thresholds.PODS_ENFORCED in enforced:
        for field in ("kubeReserved", "systemReserved"):
            reserved += _value((kubelet.get(field) or {}).get("memory", "0"))
    image = given.get("imagefs")
    return Machine(
        memory_bytes=memory,
        pods_memory_bytes=max(0, memory - reserved),
        nodefs=_file_system(storage, given.get("nodefs") or {}),
        imagefs=None if image is None else _file_system(_value(image.get("capacity", "0")), image),
        split=bool(given.get("splitImages", False)),
        processes=_value(given.get("pids", MOST_PROCESSES)),
    )


def _file_system(capacity: int, given: Mapping[str, Any]) -> FileSystem:
    return FileSystem(capacity, _value(given["inodes"]) if "inodes" in given else capacity // BYTES_PER_INODE)


def _value(amount: Json) -> int:
    return quantities.value(str(amount))


@dataclass(frozen=True, slots=True)
class Used:
    """What one signal says: at most so much is used, of so much."""

    used: int
    capacity: int

    @property
    def available(self) -> int:
        return max(0, self.capacity - self.used)


class Meter:
    """Measures a machine. ``gauges``: of the pods that have anything running or lying about; ``image_bytes``: of the
    images that are there by name."""

    __slots__ = ("_disk", "_freed_ns", "_gauges", "_image_bytes", "_node", "machine")

    def __init__(
        self,
        machine: Machine,
        node: Mapping[str, Curve],
        gauges: Callable[[], Collection[Gauge]],
        image_bytes: Callable[[], int],
        disk: Disk | None = None,
    ) -> None:
        """``disk``: remembers what has been freed when the kubelet starts again; None where nothing can be."""
        self.machine = machine
        self._node = node
        self._gauges = gauges
        self._image_bytes = image_bytes
        self._disk = disk
        self._freed_ns: dict[str, int] = {}
        """When garbage of a kind was last collected: what had come until then is gone."""

    def start(self) -> None:
        if self._disk is not None:
            self._freed_ns = notes.read_if_sound(self._disk, _FREED) or {}

    @property
    def has_own(self) -> bool:
        """Whether the node uses anything besides its pods."""
        return bool(self._node) or self._image_bytes() > 0

    @property
    def is_unused(self) -> bool:
        """Whether nothing at all is used now."""
        return not self._node and not self._gauges() and not self._image_bytes()

    @property
    def settled_ns(self) -> int | None:
        """From then on nothing changes by itself; None: never."""
        last_ns = 0
        for curve in self._node.values():
            if curve.settled_s is None:
                return None
            last_ns = max(last_ns, (curve.settled_s + 1) * SECOND_NS)
        for gauge in self._gauges():
            settled_ns = gauge.settled_ns
            if settled_ns is None:
                return None
            last_ns = max(last_ns, settled_ns)
        return last_ns

    def memory(self, first_ns: int, last_ns: int) -> Used:
        """What processes hold of the whole machine: what the kernel cannot take back without a kill."""
        used = self._of_node("memory", first_ns, last_ns) + self.pods_memory(first_ns, last_ns).used
        return Used(used, self.machine.memory_bytes)

    def pods_memory(self, first_ns: int, last_ns: int) -> Used:
        used = sum(gauge.memories(first_ns, last_ns) for gauge in self._gauges())
        return Used(used, self.machine.pods_memory_bytes)

    def working_set(self, first_ns: int, last_ns: int) -> Used:
        """Working set of the whole machine, as the kubelet counts it: with active files, without inactive ones."""
        return self._with_own(self.pods_working_set(first_ns, last_ns).used, first_ns, last_ns)

    def _with_own(self, used: int, first_ns: int, last_ns: int) -> Used:
        """The working set of the machine. ``used``: of its pods."""
        own = self._of_node("memory", first_ns, last_ns) + self._of_node(usages.ACTIVE_FILE, first_ns, last_ns)
        return Used(own + used, self.machine.memory_bytes)

    def pods_working_set(self, first_ns: int, last_ns: int) -> Used:
        used = sum(gauge.working_sets(first_ns, last_ns) for gauge in self._gauges())
        return Used(used, self.machine.pods_memory_bytes)

    def charged(self, first_ns: int, last_ns: int) -> Used:
        """What the whole machine uses, with all cached files; the kernel keeps no more of them than it has room for."""
        own = sum(self._of_node(key, first_ns, last_ns) for key in ("memory", *usages.CACHE))
        used = own + sum(gauge.charged(first_ns, last_ns) for gauge in self._gauges())
        return Used(min(used, self.machine.memory_bytes), self.machine.memory_bytes)

    def pods_charged(self, first_ns: int, last_ns: int) -> Used:
        used = sum(gauge.charged(first_ns, last_ns) for gauge in self._gauges())
        return Used(min(used, self.machine.pods_memory_bytes), self.machine.pods_memory_bytes)

    def signals(self, first_ns: int, last_ns: int) -> dict[str, Used]:
        """By eviction signal."""
        machine = self.machine
        pods = self.pods_working_set(first_ns, last_ns)
        found = {
            thresholds.MEMORY: self._with_own(pods.used, first_ns, last_ns),
            thresholds.ALLOCATABLE_MEMORY: pods,
        }
        layers = logs = volumes = layer_inodes = processes = 0
        for gauge in self._gauges():
            some = gauge.local_bytes(first_ns, last_ns)
            layers, logs, volumes = layers + some[0], logs + some[1], volumes + some[2]
            layer_inodes += gauge.inodes(first_ns, last_ns)
            processes += gauge.pids(first_ns, last_ns)
        dead = self._of_node(DEAD_CONTAINERS, first_ns, last_ns)
        images = self.unnamed_images(first_ns, last_ns) + self._image_bytes()
        disk = self._of_node("disk", first_ns, last_ns)
        inodes = self._of_node("inodes", first_ns, last_ns)
        on_nodefs = logs + volumes + disk + (0 if machine.layers_on_imagefs else layers + dead)
        on_imagefs = images + (layers + dead if machine.layers_on_imagefs else 0)
        nodefs_inodes = inodes + (0 if machine.layers_on_imagefs else layer_inodes)
        if machine.imagefs is None:
            nodefs = imagefs = Used(on_nodefs + on_imagefs, machine.nodefs.capacity_bytes)
            node_inodes = image_inodes = Used(nodefs_inodes, machine.nodefs.inodes)
        else:
            nodefs = Used(on_nodefs, machine.nodefs.capacity_bytes)
            imagefs = Used(on_imagefs, machine.imagefs.capacity_bytes)
            node_inodes = Used(nodefs_inodes, machine.nodefs.inodes)
            image_inodes = Used(layer_inodes if machine.layers_on_imagefs else 0, machine.imagefs.inodes)
        found[thresholds.NODEFS], found[thresholds.NODEFS_INODES] = nodefs, node_inodes
        found[thresholds.IMAGEFS], found[thresholds.IMAGEFS_INODES] = imagefs, image_inodes
        with_layers = (imagefs, image_inodes) if machine.layers_on_imagefs else (nodefs, node_inodes)
        found[thresholds.CONTAINERFS], found[thresholds.CONTAINERFS_INODES] = with_layers
        found[thresholds.PIDS] = Used(processes + self._of_node("pids", first_ns, last_ns), machine.processes)
        return found

    def summary(self, now_ns: int, active: Iterable[core_v1_pb2.Pod]) -> stats.Summary:
        """As the kubelet sees it. Pods that say nothing of what they use have stats too: zeros."""
        observations = {
            signal: stats.Observation(used.available, used.capacity, now_ns, _COUNT if _is_count(signal) else _BYTES)
            for signal, used in self.signals(now_ns, now_ns).items()
        }
        pods = {gauge.worker.uid: gauge.measure(now_ns) for gauge in self._gauges()}
        for pod in active:
            uid = pod.metadata.uid
            if uid not in pods:
                pods[uid] = stats.PodStats(uid, 0, 0, 0)
        return stats.Summary(observations, pods)

    def unnamed_images(self, first_ns: int, last_ns: int) -> int:
        """Bytes of those of which the scenario only says how much room they take: they are not needed."""
        return self._of_node(IMAGES, first_ns, last_ns)

    def free_unnamed_images(self, now_ns: int) -> int:
        return self._free(IMAGES, now_ns)

    def free_dead_containers(self, now_ns: int) -> int:
        return self._free(DEAD_CONTAINERS, now_ns)

    def _free(self, kind: str, now_ns: int) -> int:
        """How many bytes that gives back."""
        amount = self._of_node(kind, now_ns, now_ns)
        if kind in self._node and self._disk is not None:
            self._freed_ns[kind] = now_ns
            with contextlib.suppress(OSError):
                notes.write(self._disk, _FREED, self._freed_ns)
        return amount

    def _of_node(self, key: str, first_ns: int, last_ns: int) -> int:
        curve = self._node.get(key)
        if curve is None:
            return 0
        first, last = first_ns // SECOND_NS, last_ns // SECOND_NS
        amount = curve.at(first) if first == last else curve.most(first, last)
        freed_ns = self._freed_ns.get(key)
        return amount if freed_ns is None else max(0, amount - curve.at(freed_ns // SECOND_NS))


def _is_count(signal: str) -> bool:
    return signal == thresholds.PIDS or signal.endswith("inodesFree")
