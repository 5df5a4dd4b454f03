"""One node as the scheduler counts it: the object, and the sums over the pods on it.

The cache (:mod:`kemu.emulated.scheduler.cache.cluster`) keeps one :class:`NodeInfo` for each node and mirrors it in
columns. Simulations (nominated pods, victims) work on a :meth:`NodeInfo.copy` of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple, TypeVar

from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.wire import shared_objects
from kemu.emulated.scheduler.cache.pods import PodInfo, ResourceNames
from kemu.messages.k8s import core_v1_pb2

T = TypeVar("T")

_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")


class Taint(NamedTuple):
    """A taint without its time."""

    key: str
    value: str
    effect: str


_NO_IMAGES: dict[str, int] = {}
_SAME: dict[tuple[Any, ...], Any] = {}
"""What nodes of the same kind say, by its content."""
_MOST_KINDS = 4096


def _same(content: tuple[Any, ...], made: T) -> T:
    """One for all nodes that say it: nobody changes it."""
    if len(_SAME) >= _MOST_KINDS:
        _SAME.clear()
    same: T = _SAME.setdefault((type(made), content), made)
    return same


class _Facts:
    """What a Node object says, read once for all schedulers of this process that are shown the same object. Nobody
    changes any of it."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "amounts",
        "declared_features",
        "image_sizes",
        "labels",
        "taints",
    )

    def __init__(self, node: core_v1_pb2.Node) -> None:
        self.labels = {intern(key): intern(value) for key, value in node.metadata.labels.items()}
        self.taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        amounts = requests.resource_list(node.status.allocatable)
        self.allowed_pods = amounts.pop(requests.PODS, 0)
        self.amounts: dict[str, int] = _same(tuple(amounts.items()), amounts)
        declared = tuple(node.status.declaredFeatures)
        self.declared_features: tuple[str, ...] = _same(declared, declared)
        self.allocatable: list[int] = []
        """The amounts by the numbers that the first scheduler gave to their names."""
        self.image_sizes: dict[str, int] = {
            name: image.sizeBytes for image in node.status.images for name in image.names
        } or _NO_IMAGES

    def by_number(self, names: ResourceNames) -> list[int]:
        """The amounts by number."""
        numbers = [names.of(name) for name in self.amounts]
        allocatable = [0] * len(names.names)
        for number, amount in zip(numbers, self.amounts.values(), strict=True):
            allocatable[number] = amount
        if not self.allocatable:
            self.allocatable = allocatable = _same(tuple(allocatable), allocatable)
        return self.allocatable if self.allocatable == allocatable else allocatable


_NO_PORTS: Mapping[tuple[str, int], tuple[str, ...]] = {}


class NodeInfo:
    """A node and what its pods take. ``requested`` and ``allocatable`` are indexed by resource number."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "generation",
        "held",
        "image_sizes",
        "labels",
        "name",
        "nominated",
        "non_zero_cpu",
        "non_zero_memory",
        "pods",
        "ports",
        "requested",
        "row",
        "taints",
        "unschedulable",
    )

    def __init__(self, name: str, resources: int) -> None:
        self.name = name
        self.held: shared_objects.Held | None = None
        """The object, and what several schedulers share; None while only its pods are known."""
        self.row = -1
        """Place in the columns; -1 without a node object."""
        self.generation = 0
        """Grows with every change to the node, its pods or the pods nominated to it."""
        self.labels: dict[str, str] = {}
        self.taints: tuple[Taint, ...] = ()
        self.unschedulable = False
        self.allocatable: list[int] = [0] * resources
        self.allowed_pods = 0
        self.image_sizes: dict[str, int] = {}
        """Names of the images on the node."""
        self.requested: list[int] = [0] * resources
        self.non_zero_cpu = 0
        self.non_zero_memory = 0
        self.pods: dict[str, PodInfo] = {}
        """By UID, in order of their arrival in the cache."""
        self.ports: Mapping[tuple[str, int], tuple[str, ...]] = _NO_PORTS
        """(protocol, port) → IPs in use, each once: see :meth:`remove`."""
        self.nominated: Sequence[PodInfo] = ()
        """Pods nominated to this node, as the nominator has them."""

    @property
    def node(self) -> Any:  # noqa: ANN401  (most know that there is one)
        """The ``core.v1.Node``; None while only its pods are known."""
        held = self.held
        return None if held is None else held.get()

    @property
    def declared_features(self) -> tuple[str, ...]:
        """What the kubelet declares."""
        held = self.held
        return () if held is None else held.facts.declared_features

    def set_node(self, node: core_v1_pb2.Node, names: ResourceNames) -> None:
        """Take over what the object says."""
        held = shared_objects.OBJECTS.hold(node)
        if held.facts is None:
            held.facts = _Facts(node)
        facts: _Facts = held.facts
        self.held = held
        self.labels = facts.labels
        self.taints = facts.taints
        self.unschedulable = node.spec.unschedulable
        self.allowed_pods = facts.allowed_pods
        self.allocatable = facts.by_number(names)
        self.image_sizes = facts.image_sizes

    def bare(self) -> NodeInfo:
        """The node alone, without pods and images (``SetNode`` of a new ``NodeInfo``)."""
        bare = NodeInfo(self.name, len(self.requested))
        bare.held, bare.row = self.held, self.row
        bare.labels, bare.taints, bare.unschedulable = self.labels, self.taints, self.unschedulable
        bare.allocatable, bare.allowed_pods = self.allocatable, self.allowed_pods
        return bare

    def forget_node(self) -> None:
        """The object was deleted; pods may remain."""
        self.held = None
        self.row = -1
        self.labels = {}
        self.taints = ()
        self.unschedulable = False
        self.allocatable = [0] * len(self.allocatable)
        self.allowed_pods = 0
        self.image_sizes = {}

    def widen(self, resources: int) -> None:
        """Make room for resources that appeared since."""
        missing = resources - len(self.requested)
        if missing > 0:
            self.requested += [0] * missing
            self.allocatable = [*self.allocatable, *[0] * missing]

    def add(self, pod: PodInfo) -> None:
        requested = self.requested
        for number, amount in pod.requests:
            requested[number] += amount
        self.non_zero_cpu += pod.non_zero[0]
        self.non_zero_memory += pod.non_zero[1]
        self.pods[pod.uid] = pod
        if pod.template.host_ports:
            self.take_ports(pod)

    def take_ports(self, pod: PodInfo) -> bool:
        """Note the pod's host ports as in use; False when they were."""
        is_new = False
        for address, protocol, port in pod.template.host_ports:
            taken = self.ports.get((protocol, port), ())
            if address not in taken:
                self.ports = {**self.ports, (protocol, port): (*taken, address)}
                is_new = True
        return is_new

    def remove(self, pod: PodInfo) -> None:
        """Stop counting a pod.

        Its host ports become free even if another pod of the node has one of them too (two schedulers may have placed
        both), because kube-scheduler's ``HostPortInfo`` is a set as well. An update of the other pod takes it again.
        """
        requested = self.requested
        for number, amount in pod.requests:
            requested[number] -= amount
        self.non_zero_cpu -= pod.non_zero[0]
        self.non_zero_memory -= pod.non_zero[1]
        del self.pods[pod.uid]
        if pod.template.host_ports:
            for address, protocol, port in pod.template.host_ports:
                ports = dict(self.ports)
                left = tuple([other for other in ports.pop((protocol, port), ()) if other != address])
                self.ports = {**ports, (protocol, port): left} if left else ports or _NO_PORTS

    def put_last(self, pod: PodInfo) -> bool:
        """Swap a pod with the last one; False when it is the last.

        The order decides between victims of the same priority that started in the same second: kube-scheduler keeps a
        node's pods in a list, moves the last one to the place of a removed pod, and handles an update as a removal and
        an addition.
        """
        pods = self.pods
        last = next(reversed(pods))
        if last == pod.uid:
            return False
        order = list(pods)
        place = order.index(pod.uid)
        order[place], order[-1] = last, pod.uid
        self.pods = dict(zip(order, map(pods.__getitem__, order), strict=True))
        return True

    def copy(self) -> NodeInfo:
        """A copy for simulations. What the object alone determines is shared, and so is ``nominated``."""
        twin = NodeInfo.__new__(NodeInfo)
        twin.name = self.name
        twin.held = self.held
        twin.row = self.row
        twin.generation = self.generation
        twin.labels = self.labels
        twin.taints = self.taints
        twin.unschedulable = self.unschedulable
        twin.allocatable = self.allocatable
        twin.allowed_pods = self.allowed_pods
        twin.image_sizes = self.image_sizes
        twin.requested = self.requested.copy()
        twin.non_zero_cpu = self.non_zero_cpu
        twin.non_zero_memory = self.non_zero_memory
        twin.pods = self.pods.copy()
        twin.ports = self.ports
        twin.nominated = self.nominated
        return twin

    @property
    def zone(self) -> tuple[str, str]:
        """Region and zone, which decide the order in which nodes are tried."""
        return _first(self.labels, _REGION_LABELS), _first(self.labels, _ZONE_LABELS)

    def __repr__(self) -> str:
        return f"NodeInfo({self.name})"


def _first(labels: dict[str, str], keys: tuple[str, ...]) -> str:
    for key in keys:
        if key in labels:
            return labels[key]
    return ""
