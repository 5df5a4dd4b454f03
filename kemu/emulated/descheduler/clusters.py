"""What the descheduler knows of the cluster, and on which nodes a pod would fit for it (``pkg/descheduler/node``).

It looks at the objects as they are at the moment: a pod that one strategy has evicted is being deleted for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2, scheduling_v1_pb2

Pod = core_v1_pb2.Pod
Node = core_v1_pb2.Node
HARD = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods away."""


class Cluster:
    """``nodes``, ``pods`` and the others: objects by key, as informers keep them. ``unix_ns`` is the clock."""

    def __init__(self, unix_ns: Callable[[], int]) -> None:
        self.unix_ns = unix_ns
        self.nodes: Mapping[str, Node] = {}
        self.pods: Mapping[str, Pod] = {}
        self.budgets: Mapping[str, policy_v1_pb2.PodDisruptionBudget] = {}
        self.namespaces: Mapping[str, core_v1_pb2.Namespace] = {}
        self.claims: Mapping[str, core_v1_pb2.PersistentVolumeClaim] = {}
        self.classes: Mapping[str, scheduling_v1_pb2.PriorityClass] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._by_owner: dict[str, dict[str, None]] = {}

    # --- pods --------------------------------------------------------------------------------------------------------

    def put(self, pod: Pod) -> None:
        """A pod came or changed."""
        key = meta.namespaced_name(pod)
        if pod.spec.nodeName:
            self._by_node.setdefault(pod.spec.nodeName, {})[key] = None
        for owner in pod.metadata.ownerReferences:
            self._by_owner.setdefault(owner.uid, {})[key] = None

    def remove(self, pod: Pod) -> None:
        """A pod is gone."""
        key = meta.namespaced_name(pod)
        self._by_node.get(pod.spec.nodeName, {}).pop(key, None)
        for owner in pod.metadata.ownerReferences:
            self._by_owner.get(owner.uid, {}).pop(key, None)

    def all_pods_on(self, node: str) -> list[Pod]:
        """Whatever their phase, by namespace and name."""
        return [self.pods[key] for key in sorted(self._by_node.get(node, ()))]

    def pods_on(self, node: str) -> list[Pod]:
        """Those that have not ended, which alone take resources."""
        return [pod for pod in self.all_pods_on(node) if not pod_phases.is_terminal(pod)]

    def replicas(self, owner: str) -> int:
        """How many pods an owner has, by its UID."""
        return len(self._by_owner.get(owner, ()))

    def age_s(self, unix_ns: int) -> float:
        return (self.unix_ns() - unix_ns) / 1e9

    # --- nodes -------------------------------------------------------------------------------------------------------

    def ready_nodes(self, selector: str) -> list[Node]:
        """Nodes whose labels match and that do not say that they are not ready."""
        wanted = selectors.parse_labels(selector)
        return [node for node in self.nodes.values() if wanted.matches(node.metadata.labels) and _is_ready(node)]

    def free(self, node: Node, names: Iterable[str]) -> dict[str, int]:
        """What pods may still request there."""
        allocatable = requests.machine(node.status.allocatable)
        used = usage(self.pods_on(node.metadata.name), names)
        return {name: allocatable.get(name, 0) - used[name] for name in used}

    # --- where a pod fits --------------------------------------------------------------------------------------------

    def fits(self, pod: Pod, node: Node) -> bool:
        """A part of what schedulers ask (``NodeFit``); the pod's own node is not asked for room."""
        if node.spec.unschedulable or not matches_node(pod, node) or not tolerates(pod, node.spec.taints):
            return False
        if self._meets_enemies(pod, node):
            return False
        return pod.spec.nodeName == node.metadata.name or self._has_room(pod, node)

    def fits_elsewhere(self, pod: Pod, nodes: Sequence[Node]) -> bool:
        return any(node.metadata.name != pod.spec.nodeName and self.fits(pod, node) for node in nodes)

    def fits_somewhere(self, pod: Pod, nodes: Sequence[Node]) -> bool:
        return any(self.fits(pod, node) for node in nodes)

    def _has_room(self, pod: Pod, node: Node) -> bool:
        wanted = requests.pod_requests(pod)
        free = self.free(node, ("pods", *wanted))
        return free["pods"] > 0 and all(amount <= free[name] for name, amount in wanted.items())

    def _meets_enemies(self, pod: Pod, node: Node) -> bool:
        """Whether a pod there is one that the pod's required anti-affinity names."""
        there = self.pods_on(node.metadata.name) if pod.spec.affinity.HasField("podAntiAffinity") else []
        for term in enemies(pod):
            if term.topologyKey in node.metadata.labels and any(is_enemy(pod, term, one) for one in there):
                return True
        return False


def _is_ready(node: Node) -> bool:
    return all(one.status == "True" for one in node.status.conditions if one.type == "Ready")


def usage(pods: Iterable[Pod], names: Iterable[str]) -> dict[str, int]:
    """What pods request of the named resources: millicores and whole units; ``pods`` counts them."""
    pods = list(pods)
    found = dict.fromkeys(names, 0)
    for pod in pods:
        for name, amount in requests.pod_requests(pod).items():
            if name in found:
                found[name] += amount
    if "pods" in found:
        found["pods"] = len(pods)
    return found


def matches_node(pod: Pod, node: Node) -> bool:
    """By its node selector and its required node affinity."""
    return selectors.RequiredNodeAffinity(pod.spec).matches(node.metadata.labels, node.metadata.name)


def tolerates(pod: Pod, taints: Iterable[core_v1_pb2.Taint], effects: Sequence[str] = HARD) -> bool:
    return selectors.untolerated_taint(taints, pod.spec.tolerations, effects) is None


def enemies(pod: Pod) -> Sequence[core_v1_pb2.PodAffinityTerm]:
    """The terms of its required anti-affinity."""
    if not pod.spec.HasField("affinity"):
        return ()
    return pod.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution


def is_enemy(pod: Pod, term: core_v1_pb2.PodAffinityTerm, other: Pod) -> bool:
    """Whether a term of the first pod names the second. A pod of its own name is never meant, whatever its namespace;
    a namespaceSelector is not read: as upstream."""
    if other.metadata.name == pod.metadata.name:
        return False
    if other.metadata.namespace not in (term.namespaces or (pod.metadata.namespace,)):
        return False
    return selectors.compile_labels_field(term, "labelSelector").matches(other.metadata.labels)


def grouped(pods: Iterable[Pod], key: Callable[[Pod], Any]) -> dict[Any, list[Pod]]:
    found: dict[Any, list[Pod]] = {}
    for pod in pods:
        found.setdefault(key(pod), []).append(pod)
    return found


def statuses(pod: Pod, *, init: bool, ephemeral: bool = False) -> Iterator[core_v1_pb2.ContainerStatus]:
    """Of its containers, and of the others if wanted."""
    yield from pod.status.containerStatuses
    if init:
        yield from pod.status.initContainerStatuses
    if ephemeral:
        yield from pod.status.ephemeralContainerStatuses
