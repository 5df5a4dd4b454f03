"""``bindCheck``: experiments in which the API server itself refuses to bind to a node that has changed.

Kubernetes' API server does not look (``none``): schedulers that race can overcommit a node, and the kubelet rejects the
surplus. ``capacity`` refuses what the node has no room for. ``generation`` counts the bindings to each node, and shows
the count in an annotation of the Node; a binding may state the count that it expects, and is refused if there were
others. These are the two ways in which Omega detects conflicts (Schwarzkopf et al., EuroSys 2013, §5.2): fine- and
coarse-grained.

Both are safe against other API servers, too: a server that binds to a node also writes a key of that node, its *guard*,
and only if it was not written by another server since it was read. The guard holds the count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from kemu.emulated.apiserver import errors, selections
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import bind_generations, pod_phases
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

NONE, CAPACITY, GENERATION = "none", "capacity", "generation"
KINDS = (NONE, CAPACITY, GENERATION)

GUARDS = b"/kemu/bind-guards/"
"""Prefix of the guard keys, by node. They are not objects."""

PODS = resources.BY_PLURAL["pods"]
NODES = resources.BY_PLURAL["nodes"]


def guard_key(node: str) -> bytes:
    return GUARDS + node.encode()


class Look(Protocol):
    """What is known of one node. The watch cache is at least as new as its guard."""

    node: str
    count: int
    """Bindings that it has had, those accepted here included."""

    def accept(self, pod: core_v1_pb2.Pod, binding: api_pb2.BindRequest) -> str:
        """Why the pod may not be bound, or nothing; then it counts for the bindings that are judged next."""

    def is_shown(self) -> bool:
        """Whether clients see what they need to know for the next binding."""


class BindCheck(Protocol):
    keeps_count_of_refused: bool
    """What a commit had accepted before it was refused as a whole still counts, as in Omega's simulator: a count
    that is too high costs a retry."""

    def look(self, node: str, guard: Entry | None) -> Look:
        """``guard``: as it was read, if it exists."""


def make(kind: str, cache: WatchCache) -> BindCheck | None:
    if kind == CAPACITY:
        return Capacity(cache)
    return Generation(cache) if kind == GENERATION else None


def _count(guard: Entry | None) -> int:
    return int(guard.value) if guard is not None else 0


def _node(cache: WatchCache, name: str) -> core_v1_pb2.Node | None:
    """The Node, or None."""
    entry = cache.collections["nodes"].entries.get(resources.key(NODES, "", name))
    return None if entry is None else shared_objects.OBJECTS.parse(core_v1_pb2.Node, entry.revision, entry.wire)


class Capacity:
    """``capacity``: the requests of the pods on a node must not exceed what is allocatable there."""

    keeps_count_of_refused = False

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    def look(self, node: str, guard: Entry | None) -> Look:
        return _Room(self._cache, node, _count(guard))


class _Room:
    def __init__(self, cache: WatchCache, node: str, count: int) -> None:
        self.node = node
        self.count = count
        found = _node(cache, node)
        self._free = None if found is None else dict(requests.resource_list(found.status.allocatable))
        if self._free is not None:
            parse = shared_objects.OBJECTS.parse
            for entry in cache.collections["pods"].in_index(selections.NODE_OF_POD, node):
                pod: Any = parse(PODS.message, entry.revision, entry.wire)
                if not pod_phases.is_terminal(pod):
                    _take(self._free, (*requests.pod_requests_on_node(pod).items(), ("pods", 1)))

    def accept(self, pod: core_v1_pb2.Pod, binding: api_pb2.BindRequest) -> str:
        if binding.HasField("node_generation"):
            raise errors.no_generations(pod.metadata.name)
        free = self._free
        if free is None:
            return f'node "{self.node}" not found'
        wanted = {**requests.pod_requests_on_node(pod), "pods": 1}
        short = [name for name, amount in wanted.items() if amount and amount > free.get(name, 0)]
        if short:
            return f'node "{self.node}" has insufficient {", ".join(short)}'
        _take(free, wanted.items())
        self.count += 1
        return ""

    def is_shown(self) -> bool:
        return True


def _take(free: dict[str, int], amounts: Iterable[tuple[str, int]]) -> None:
    for name, amount in amounts:
        free[name] = free.get(name, 0) - amount


class Generation:
    """``generation``: a binding may state how many bindings the node has counted before it. Room is not checked."""

    keeps_count_of_refused = True

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    def look(self, node: str, guard: Entry | None) -> Look:
        return _Count(self._cache, node, _count(guard))


class _Count:
    def __init__(self, cache: WatchCache, node: str, count: int) -> None:
        self.node = node
        self.count = count
        found = _node(cache, node)
        self._shown = None if found is None else bind_generations.of(found)
        """None: there is no such node."""

    def accept(self, pod: core_v1_pb2.Pod, binding: api_pb2.BindRequest) -> str:
        if self._shown is None:
            return f'node "{self.node}" not found'
        if binding.HasField("node_generation") and binding.node_generation != self.count:
            expected = binding.node_generation
            return f'node "{self.node}" has the bind generation {self.count}, the precondition is {expected}'
        self.count += 1
        return ""

    def is_shown(self) -> bool:
        return self._shown is None or self._shown == self.count
