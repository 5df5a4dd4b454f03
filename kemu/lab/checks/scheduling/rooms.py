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
class Family:
    """Classes that differ by their nominations alone: nominations to a thousand nodes make as many."""

    spec: core_v1_pb2.PodSpec
    wanted: tuple[tuple[str, int], ...]
    waiting: dict[str, Class] = field(default_factory=dict)
    """By the node of the nomination, those of which a pod waits."""
    having: dict[str, dict[str, None]] = field(default_factory=dict)
    """By node with room, the keys in ``waiting`` of those that have it."""


@dataclass(eq=False, slots=True)
class Class:
    """Waiting pods that fit where the others fit."""

    family: Family
    scheduler_name: str
    spec: core_v1_pb2.PodSpec
    nominated: str
    turn: int = 0
    """How many classes had begun to wait when the first of its pods did."""
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
    """By family: whether labels and taints do."""


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
        self._classes: dict[tuple[Family, str], Class] = {}
        """All that there have been."""
        self._families: dict[tuple[Any, ...], Family] = {}
        self._turns = 0
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
        nominated = pod.status.nominatedNodeName
        key = (
            spec.schedulerName, amounts,
            tuple(sorted(spec.nodeSelector.items())),
            spec.affinity.SerializeToString(deterministic=True),
            tuple(toleration.SerializeToString(deterministic=True) for toleration in spec.tolerations),
        )  # fmt: skip
        family = self._families.get(key)
        if family is None:
            family = self._families[key] = Family(spec, amounts)
        found = self._classes.get((family, nominated))
        if found is None:
            found = self._classes[family, nominated] = Class(family, spec.schedulerName, spec, nominated)
        is_first = not found.pods
        found.pods[uid] = None
        self.class_of[uid] = found
        if is_first:
            self._turns += 1
            found.turn = self._turns
            family.waiting[nominated] = found
            done: dict[str, None] = {}
            for pods_revision, nodes_revision, name in reversed(self._freed):
                if pods_revision <= seen[0] and nodes_revision <= seen[1]:
                    break
                if name not in done:
                    done[name] = None
                    node = self.nodes[name]
                    if self._fits(node, family, own=nominated == name):
                        self._open(found, Room(name, time_ns, node.pods_revision, node.nodes_revision))

    def no_longer(self, uid: str) -> Class | None:
        """The pod does not wait any more; what it belonged to."""
        found = self.class_of.pop(uid, None)
        if found is not None:
            del found.pods[uid]
            if not found.pods:
                for name in list(found.rooms):
                    self._close(found, name)
                del found.family.waiting[found.nominated]
        return found

    def of(self, uid: str) -> Class | None:
        return self.class_of.get(uid)

    # --- where they fit -----------------------------------------------------------------------------------------------

    def _recheck(self, time_ns: int, node: Node, *, frees: bool, only: str = "", most: int | None = None) -> None:
        if frees and not only and most is None:
            self._freed.append((node.pods_revision, node.nodes_revision, node.name))
            if len(self._freed) > 2_000:
                del self._freed[:1_000]
        name, closing = node.name, []
        for family in self._families.values():
            waiting, having = family.waiting, family.having.get(name)
            if not waiting:
                continue
            fits = self._fits(node, family)
            own = waiting.get(name)
            own_fits = own is not None and (fits or self._fits(node, family, own=True))
            if having and not fits:
                closing += [waiting[each] for each in having if each != name or not own_fits]
            if frees and (fits or own_fits):
                for one in waiting.values() if fits else (own,):
                    if one is not None and name not in one.rooms and (most is None or one.spec.priority <= most):
                        self._open(one, Room(name, time_ns, node.pods_revision, node.nodes_revision, only))
        for one in sorted(closing, key=lambda one: one.turn):
            self._closing(one, one.rooms[name])
            self._close(one, name)

    def _open(self, one: Class, room: Room) -> None:
        one.rooms[room.node] = room
        one.family.having.setdefault(room.node, {})[one.nominated] = None

    def _close(self, one: Class, name: str) -> None:
        del one.rooms[name]
        having = one.family.having[name]
        del having[one.nominated]
        if not having:
            del one.family.having[name]

    def _fits(self, node: Node, family: Family, *, own: bool = False) -> bool:
        """``own``: the pod counts on the node already, as it is nominated to it."""
        if node.value is None:
            return False
        allocatable, used = node.allocatable, node.used
        for resource, amount in family.wanted:
            taken = used.get(resource, 0)
            if own:
                taken -= amount
            if amount and taken + amount > allocatable.get(resource, 0):
                return False
        key = id(family)
        suits = node.suits.get(key)
        if suits is None:
            suits = node.suits[key] = suits_node(node.value, family.spec)
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
