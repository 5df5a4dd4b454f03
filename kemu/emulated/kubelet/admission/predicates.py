"""Whether a node takes a pod: the checks of the kubelet of v1.36, in their order, with its reasons and texts.

Mirrors ``pkg/kubelet/lifecycle`` (``predicateAdmitHandler.Admit``, ``generalFilter``). Pure functions over what
:mod:`kemu.emulated.kubelet.sync.pod_workers` knows; ``kemu conformance kubelet`` compares them with recorded answers of
the real kubelet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from sys import intern
from typing import Any

from kemu.emulated.kubelet.pods import critical
from kemu.emulated.kubelet.pods.claims import Claim
from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.pods import declared_features, host_ports
from kemu.messages.k8s import core_v1_pb2

OS = "linux"
OS_LABEL = "kubernetes.io/os"

_FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""Checked in this order, before all others."""
_NATIVE_PREFIX = "kubernetes.io/"
_VOLUMES_PREFIX = "attachable-volumes-"


@dataclass(frozen=True, slots=True)
class Insufficient:
    """The node has too little of a resource left. Amounts: cpu in millicores, everything else in whole units."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def reason(self) -> str:
        return f"OutOf{self.resource}"

    @property
    def message(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, used: {self.used}, "
            f"capacity: {self.capacity}"
        )


@dataclass(frozen=True, slots=True)
class Unfit:
    """The node is not one on which the pod may run."""

    predicate: str
    description: str

    @property
    def reason(self) -> str:
        return self.predicate

    @property
    def message(self) -> str:
        return f"Predicate {self.predicate} failed: {self.description}"


Failure = Insufficient | Unfit

NODE_AFFINITY = Unfit("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
NODE_NAME = Unfit("NodeName", "node(s) didn't match the requested node name")
NODE_PORTS = Unfit("NodePorts", "node(s) didn't have free ports for the requested pod ports")
TAINT_TOLERATION = Unfit("TaintToleration", "node(s) had taints that the pod didn't tolerate")


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of admission. If the pod is not admitted, its status gets ``reason`` and ``message``."""

    admitted: bool
    reason: str = ""
    message: str = ""
    failures: tuple[Failure, ...] = ()
    """Every failure, in order; empty if an earlier check refused the pod."""


ADMITTED = Decision(True)
NO_NODE = Decision(False, "InvalidNodeInfo", "Kubelet cannot get node info.")
NO_DEVICES = Decision(
    False,
    "UnexpectedAdmissionError",
    "Update plugin resources failed due to requested number of devices unavailable, which is unexpected.",
)
WRONG_OS_LABEL = Decision(
    False,
    "PodOSSelectorNodeLabelDoesNotMatch",
    "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
)
WRONG_OS = Decision(False, "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
NO_SUPPLEMENTAL_GROUPS_POLICY = Decision(
    False, "SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node"
)


class NodeView:
    """What admission looks at in a Node."""

    __slots__ = ("allocatable", "known", "labels", "name", "supplemental_groups_policy", "taints")

    def __init__(self, node: core_v1_pb2.Node, *, patched: bool = True, known: Collection[str] | None = None) -> None:
        """``patched``: a node with labels counts as labelled with this kubelet's operating system, whatever it says.

        ``known``: see there; without it, what the node has."""
        self.name: str = intern(node.metadata.name)
        labels = node.metadata.labels
        self.labels: dict[str, str] = {intern(key): intern(labels[key]) for key in sorted(labels)}
        if patched and self.labels:
            self.labels[OS_LABEL] = OS
        self.allocatable = requests.machine(node.status.allocatable)
        self.known: Collection[str] = self.allocatable if known is None else known
        """Resources; requests for extended ones that are not among them are overlooked (they are taken out of the pod
        once, by the first look at the node: ``removeMissingExtendedResources``)."""
        self.taints: tuple[Any, ...] = tuple([taint for taint in node.spec.taints[:] if taint.effect == "NoExecute"])
        self.supplemental_groups_policy: bool = node.status.features.supplementalGroupsPolicy


class NodeClaims:
    """The sum of the claims on a node."""

    __slots__ = ("pods", "ports", "requested")

    def __init__(self) -> None:
        self.requested: dict[str, int] = {}
        self.ports: dict[host_ports.HostPort, int] = {}
        """How many pods hold it."""
        self.pods = 0

    def add(self, claim: Claim) -> None:
        requested = self.requested
        for resource, amount in claim.requests.items():
            requested[resource] = requested.get(resource, 0) + amount
        for port in claim.ports:
            self.ports[port] = self.ports.get(port, 0) + 1
        self.pods += 1

    def remove(self, claim: Claim) -> None:
        """Take out a claim that was added."""
        requested = self.requested
        for resource, amount in claim.requests.items():
            left = requested.get(resource, 0) - amount
            if left:
                requested[resource] = left
            else:
                requested.pop(resource, None)
        for port in claim.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        self.pods -= 1
        assert self.pods >= 0, "a claim was given back that the node did not hold"

    def holds(self, port: host_ports.HostPort) -> bool:
        """Whether a pod on the node has a port that conflicts with this one."""
        address, protocol, number = port
        return any(
            protocol == held[1] and number == held[2] and host_ports.conflict(address, held[0]) for held in self.ports
        )


def precheck(node: NodeView | None, pod: core_v1_pb2.Pod) -> Decision | None:
    """The checks before the node's room is looked at: None when they pass. ``node`` None: it cannot be read."""
    if node is None:
        return NO_NODE
    labels = pod.metadata.labels
    if OS_LABEL in labels and labels[OS_LABEL] != OS:
        return WRONG_OS_LABEL
    spec = pod.spec
    if spec.HasField("os") and spec.os.name and spec.os.name != OS:
        return WRONG_OS
    strict = spec.HasField("securityContext") and spec.securityContext.supplementalGroupsPolicy == "Strict"
    return NO_SUPPLEMENTAL_GROUPS_POLICY if strict and not node.supplemental_groups_policy else None


def undeclared(pod: core_v1_pb2.Pod, declared: Collection[str]) -> Decision | None:
    """The refusal of a pod that needs features which the kubelet has not (``declaredFeaturesAdmitHandler``)."""
    lacking = declared_features.missing(declared_features.for_scheduling(pod.spec), declared)
    if not lacking:
        return None
    return Decision(
        False, "PodFeatureUnsupported", f"Pod requires node features that are not available: {', '.join(lacking)}"
    )


def failures(node: NodeView, usage: NodeClaims, pod: core_v1_pb2.Pod, claim: Claim) -> tuple[Failure, ...]:
    """Everything that keeps the node from taking the pod, in the kubelet's order (``generalFilter``)."""
    found: list[Failure] = []
    _check_resources(node, usage, pod, claim, found)
    spec = pod.spec
    if spec.nodeSelector or spec.HasField("affinity"):
        affinity = selectors.RequiredNodeAffinity(spec)
        if not affinity.matches(node.labels, node.name):
            found.append(NODE_AFFINITY)
    if spec.nodeName and spec.nodeName != node.name:
        found.append(NODE_NAME)
    if claim.ports and any(usage.holds(port) for port in claim.ports):
        found.append(NODE_PORTS)
    if node.taints:
        untolerated = any(not selectors.tolerates_any(spec.tolerations, taint) for taint in node.taints)
        if untolerated and not critical.is_static(pod):
            found.append(TAINT_TOLERATION)
    return tuple(found)


def decide(found: tuple[Failure, ...]) -> Decision:
    """Admitted when nothing stands in the way; else the first reason is the one that is reported."""
    if not found:
        return ADMITTED
    return Decision(False, found[0].reason, found[0].message, found)


def needs_fresh_node(found: Iterable[Failure]) -> bool:
    """Whether only node affinity stands in the way, so that the kubelet reads the Node again before it refuses."""
    kinds = [failure is NODE_AFFINITY for failure in found]
    return bool(kinds) and all(kinds)


def _check_resources(
    node: NodeView, usage: NodeClaims, pod: core_v1_pb2.Pod, claim: Claim, found: list[Failure]
) -> None:
    allocatable = node.allocatable
    room = allocatable.get("pods", 0)
    if usage.pods + 1 > room:
        found.append(Insufficient("pods", 1, usage.pods, room))
    wanted = claim.requests
    for resource in _FIRST_RESOURCES:
        amount = wanted.get(resource, 0)
        if amount > 0:
            _check_amount(resource, amount, usage, allocatable, found)
    others = [resource for resource in wanted if resource not in _FIRST_RESOURCES and _is_counted(resource)]
    if others:
        unknown = _unknown_extended(pod, node.known)
        for resource in others:
            # Only what the containers request is overlooked, not what the pod costs on top of them.
            amount = _overhead(pod, resource) if resource in unknown else wanted[resource]
            if amount:
                _check_amount(resource, amount, usage, allocatable, found)


def _check_amount(
    resource: str, amount: int, usage: NodeClaims, allocatable: dict[str, int], found: list[Failure]
) -> None:
    capacity = allocatable.get(resource, 0)
    used = usage.requested.get(resource, 0)
    if amount > capacity - used:
        found.append(Insufficient(resource, amount, used, capacity))


def _unknown_extended(pod: core_v1_pb2.Pod, known: Collection[str]) -> list[str]:
    """Extended resources that the containers request and the node does not have: they are not looked at."""
    return [
        name
        for containers in (pod.spec.containers, pod.spec.initContainers)
        for container in containers
        for name in sorted(container.resources.requests)
        if name not in known and requests.is_extended(name)
    ]


def _overhead(pod: core_v1_pb2.Pod, resource: str) -> int:
    overhead = pod.spec.overhead
    return quantities.value(overhead[resource].string) if resource in overhead else 0


def _is_counted(name: str) -> bool:
    """Whether a node keeps account of a resource: one of a domain, huge pages, volumes that can be attached."""
    return (
        requests.is_extended(name)
        or _NATIVE_PREFIX in name
        or name.startswith((requests.HUGE_PAGES_PREFIX, _VOLUMES_PREFIX))
    )
