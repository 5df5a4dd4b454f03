"""Where there is room for which waiting pod: nodes, what is on them, and since when a pod that waits would fit.

Computed from the store's transactions and the schedulers' own words (which pods they have placed and not bound yet), so
that room counts only where every scheduler must count it, too. Role: below ``progress``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import requests
from kemu.lab.checks.history import parsed
from kemu.messages.k8s import core_v1_pb2

_NO_SCHEDULE = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


@dataclass(eq=False, slots=True)
class Class:
    """Waiting pods that fit where the others fit."""

    scheduler_name: str
    spec: core_v1_pb2.PodSpec
    wanted: tuple[tuple[str, int], ...]
    nominated: str
    pods: dict[str, None] = field(default_factory=dict)
    """UIDs of those that wait, and that a scheduler has tried in vain."""
    rooms: dict[str, Room] = field(default_factory=dict)
    """By node: where they fit now."""


@dataclass(slots=True)
class Room:
    """A node has room for the pods of a class, from some change on."""

    node: str
    since_ns: int
    pods_revision: int
    nodes_revision: int
    """What a scheduler must have seen to know of it."""
    only: str = ""
    """The scheduler whose failed binding made the room; no other scheduler need notice that."""


@dataclass(slots=True)
class Node:
    """A node as the store has it, and what is on it."""

    name: str
    key: tuple[Any, ...] = ()
    value: Any = None
    allocatable: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    holds: dict[str, dict[str, int]] = field(default_factory=dict)
    """By UID, of pods that are bound, placed or nominated here: what they take."""
    pods_revision: int = 0
    nodes_revision: int = 0
    suits: dict[int, bool] = field(default_factory=dict)
    """By class: whether labels and taints do."""


def judged(pod: core_v1_pb2.Pod) -> bool:
    """Whether resources, labels and taints alone decide where the pod fits."""
    spec = pod.spec
    affinity = spec.affinity
    return not (
        (spec.volumes and any(_may_bind(volume) for volume in spec.volumes))
        or spec.topologySpreadConstraints
        or spec.resourceClaims
        or affinity.HasField("podAffinity")
        or affinity.HasField("podAntiAffinity")
        or any(port.hostPort for container in spec.containers for port in container.ports)
    )


def _may_bind(volume: core_v1_pb2.Volume) -> bool:
    source = volume.volumeSource
    return not any(source.HasField(kind) for kind in ("emptyDir", "configMap", "secret", "projected", "downwardAPI"))


class Rooms:
    """``closing`` is told of a room that is about to be gone."""

    def __init__(self, closing: Callable[[Class, Room], None]) -> None:
        self.nodes: dict[str, Node] = {}
        self._classes: dict[tuple[Any, ...], Class] = {}
        """All that there have been."""
        self._waiting: dict[Class, None] = {}
        """Those of which a pod waits: nominations to a thousand nodes make as many classes."""
        self.class_of: dict[str, Class] = {}
        """By UID, of pods that wait."""
        self._closing = closing
        self._freed: list[tuple[int, int, str]] = []
        """The latest changes that made room: the revisions of pods and nodes, and the node."""
        self.where: dict[str, str] = {}
        """By UID, the node on which the pod counts."""

    # --- nodes and what is on them ------------------------------------------------------------------------------------

    def node_changed(self, time_ns: int, revision: int, name: str, value: bytes | None) -> None:
        node = self.nodes.get(name)
        if value is None:
            if node is not None and node.value is not None:
                node.value, node.key = None, ()
                self._recheck(time_ns, node, frees=False)
            return
        found = parsed.node(value)
        key = (
            found.spec.SerializeToString(deterministic=True),
            tuple(sorted((resource, amount.string) for resource, amount in found.status.allocatable.items())),
            tuple(sorted(found.metadata.labels.items())),
        )
        if node is None:
            node = self.nodes[name] = Node(name)
        elif node.key == key:
            return
        node.key, node.value, node.nodes_revision = key, found, revision
        node.allocatable = requests.resource_list(found.status.allocatable)
        node.suits.clear()
        self._recheck(time_ns, node, frees=True)

    def put(
        self, time_ns: int, revision: int, uid: str, name: str, wanted: dict[str, int], most: int | None = None
    ) -> None:
        """The pod counts on that node, and no longer elsewhere. An empty name: nowhere.

        ``most``: only pods up to this priority notice that. No scheduler notices that a pod is bound to another node
        than the one on which a scheduler had placed it (``addPodToCache`` tells of the new one alone).
        """
        before = self.where.get(uid, "")
        if before == name:
            return
        if before:
            self._take(time_ns, revision, uid, before, most=-1 << 40 if name else most)
        if name:
            node = self.nodes.get(name)
            if node is None:
                node = self.nodes[name] = Node(name)
            node.holds[uid] = wanted
            self.where[uid] = name
            for resource, amount in wanted.items():
                node.used[resource] = node.used.get(resource, 0) + amount
            node.pods_revision = revision
            self._recheck(time_ns, node, frees=False)

    def _take(self, time_ns: int, revision: int, uid: str, name: str, only: str = "", most: int | None = None) -> None:
        node = self.nodes[name]
        del self.where[uid]
        for resource, amount in node.holds.pop(uid).items():
            node.used[resource] -= amount
        if not only:
            node.pods_revision = revision
        self._recheck(time_ns, node, frees=True, only=only, most=most)

    def give_back(self, time_ns: int, uid: str, name: str, actor: str) -> None:
        """A scheduler could not bind the pod that it had placed there."""
        if self.where.get(uid) == name:
            self._take(time_ns, 0, uid, name, actor)

    # --- who waits ----------------------------------------------------------------------------------------------------

    def wait(self, time_ns: int, uid: str, pod: core_v1_pb2.Pod, wanted: dict[str, int], seen: tuple[int, int]) -> None:
        """The pod was tried in vain by a scheduler that had ``seen`` these revisions of pods and nodes."""
        if uid in self.class_of:
            return
        spec = pod.spec
        amounts = tuple(sorted(wanted.items()))
        key = (
            spec.schedulerName, amounts, pod.status.nominatedNodeName,
            tuple(sorted(spec.nodeSelector.items())),
            spec.affinity.SerializeToString(deterministic=True),
            tuple(toleration.SerializeToString(deterministic=True) for toleration in spec.tolerations),
        )  # fmt: skip
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = Class(spec.schedulerName, spec, amounts, pod.status.nominatedNodeName)
        is_first = not found.pods
        found.pods[uid] = None
        self.class_of[uid] = found
        if is_first:
            self._waiting[found] = None
            done: dict[str, None] = {}
            for pods_revision, nodes_revision, name in reversed(self._freed):
                if pods_revision <= seen[0] and nodes_revision <= seen[1]:
                    break
                if name not in done:
                    done[name] = None
                    node = self.nodes[name]
                    if self._fits(node, found):
                        found.rooms[name] = Room(name, time_ns, node.pods_revision, node.nodes_revision)

    def no_longer(self, uid: str) -> Class | None:
        """The pod does not wait any more; what it belonged to."""
        found = self.class_of.pop(uid, None)
        if found is not None:
            del found.pods[uid]
            if not found.pods:
                found.rooms.clear()
                del self._waiting[found]
        return found

    def of(self, uid: str) -> Class | None:
        return self.class_of.get(uid)

    # --- where they fit -----------------------------------------------------------------------------------------------

    def _recheck(self, time_ns: int, node: Node, *, frees: bool, only: str = "", most: int | None = None) -> None:
        if frees and not only and most is None:
            self._freed.append((node.pods_revision, node.nodes_revision, node.name))
            if len(self._freed) > 2_000:
                del self._freed[:1_000]
        for one in self._waiting:
            room = one.rooms.get(node.name)
            fits = self._fits(node, one)
            if room is not None and not fits:
                self._closing(one, room)
                del one.rooms[node.name]
            elif room is None and fits and frees and (most is None or one.spec.priority <= most):
                one.rooms[node.name] = Room(node.name, time_ns, node.pods_revision, node.nodes_revision, only)

    def _fits(self, node: Node, one: Class) -> bool:
        if node.value is None:
            return False
        allocatable, used = node.allocatable, node.used
        more = one.nominated == node.name
        for resource, amount in one.wanted:
            taken = used.get(resource, 0)
            if more:
                # One of them is the pod itself: it counts there already.
                taken -= amount
            if amount and taken + amount > allocatable.get(resource, 0):
                return False
        key = id(one)
        suits = node.suits.get(key)
        if suits is None:
            suits = node.suits[key] = suits_node(node.value, one.spec)
        return suits


def suits_node(node: core_v1_pb2.Node, spec: core_v1_pb2.PodSpec) -> bool:
    """Whether its labels, taints and ``unschedulable`` let a pod with that spec go there."""
    if selectors.untolerated_taint(node.spec.taints, spec.tolerations, _NO_SCHEDULE) is not None:
        return False
    if node.spec.unschedulable and not any(
        toleration.operator == selectors.EXISTS and toleration.key in ("", _UNSCHEDULABLE)
        for toleration in spec.tolerations
    ):
        return False
    return selectors.RequiredNodeAffinity(spec).matches(node.metadata.labels, node.metadata.name)
