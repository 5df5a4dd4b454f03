"""What the next node of a group will be like, with the pods that every node gets.

A ready node of the group is the best example; then what one was like before; then the template of the group; then any
node of it. Mirrors ``MixedTemplateNodeInfoProvider`` and ``simulator/node_info_utils.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kemu.emulated.autoscaler import pod_rules, taints
from kemu.emulated.autoscaler.providers import NodeGroup, Provider
from kemu.emulated.autoscaler.simulator.snapshots import Snapshot
from kemu.emulated.controllers.workloads.daemon import daemon_pods
from kemu.emulated.objects import meta
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, resource_v1_pb2
from kemu.runtime.env import SECOND_NS

HOSTNAME = "kubernetes.io/hostname"
TEMPLATE_LABEL = "cluster-autoscaler.kubernetes.io/template-node"
STABLE_NS = 60 * SECOND_NS
"""A node is no example before it has been ready for so long (``stabilizationDelay``)."""


@dataclass(frozen=True)
class Template:
    """A node that does not exist, and the pods that would run on it: a snapshot takes copies of them."""

    node: core_v1_pb2.Node
    pods: tuple[core_v1_pb2.Pod, ...]
    slices: tuple[resource_v1_pb2.ResourceSlice, ...] = ()
    """Of its devices, as of the example."""

    def named(self, suffix: str) -> Template:
        """Another one like it."""
        node = meta.copied(self.node)
        node.metadata.name = name = f"{self.node.metadata.name}-{suffix}"
        node.metadata.uid = name
        node.metadata.labels[HOSTNAME] = name
        return replace(self, node=node)


class Templates:
    """Templates of all groups; what was found of a group is kept for when it has no good node."""

    def __init__(self, provider: Provider, *, force_daemon_sets: bool) -> None:
        self._provider = provider
        self._force = force_daemon_sets
        self._kept: dict[str, Template] = {}
        self._made = 0

    def find(
        self,
        snapshot: Snapshot,
        nodes: Sequence[core_v1_pb2.Node],
        daemon_sets: Iterable[Any],
        slices: Iterable[resource_v1_pb2.ResourceSlice],
        unix_ns: int,
    ) -> dict[str, Template]:
        """By group."""
        sets = list(daemon_sets)
        by_node: dict[str, list[resource_v1_pb2.ResourceSlice]] = {}
        for one in slices:
            by_node.setdefault(one.spec.nodeName, []).append(one)
        found: dict[str, Template] = {}
        good = [node for node in nodes if _is_good(node, unix_ns)]
        for node in good:
            group = self._provider.group_of(node.metadata.name)
            if group is not None and group.name not in found:
                template = self._of_node(snapshot, node, group, sets)
                its_slices = tuple(by_node.get(node.metadata.name, ()))
                found[group.name] = self._kept[group.name] = replace(template, slices=its_slices)
        for group in self._provider.groups.values():
            if group.name not in found:
                found[group.name] = self._kept.get(group.name) or self._of_group(group, sets)
        return found

    def _of_node(
        self, snapshot: Snapshot, example: core_v1_pb2.Node, group: NodeGroup, sets: Sequence[apps_v1_pb2.DaemonSet]
    ) -> Template:
        node = self._sanitized(example, group)
        pods, running = [], set()
        for pod in snapshot.pods_on(example.metadata.name):
            if pod.metadata.HasField("deletionTimestamp"):
                continue
            owner = meta.controller_of(pod)
            if pod_rules.is_mirror(pod) or pod_rules.of_daemon_set(pod):
                pods.append(pod)
            if owner is not None and owner.kind == "DaemonSet":
                running.add(owner.uid)
        missing = [each for each in sets if each.metadata.uid not in running]
        pods += [pod for pod in _daemons(node, missing) if self._force or _preempts_for_system(pod)]
        return Template(node, tuple(pods))

    def _of_group(self, group: NodeGroup, sets: Sequence[apps_v1_pb2.DaemonSet]) -> Template:
        node = self._sanitized(group.template, group)
        return Template(node, tuple(_daemons(node, sets)), group.slices)

    def _sanitized(self, example: core_v1_pb2.Node, group: NodeGroup) -> core_v1_pb2.Node:
        node = core_v1_pb2.Node()
        # No node of the cluster can have that name: a colon may not stand in one. Names are not used again, so that no
        # pod has a hint to the next iteration's nodes to come.
        self._made += 1
        node.metadata.name = node.metadata.uid = f"template-node-for:{group.name}-{self._made}"
        for key, value in example.metadata.labels.items():
            node.metadata.labels[key] = value
        node.metadata.labels[HOSTNAME] = node.metadata.name
        node.metadata.labels[TEMPLATE_LABEL] = "true"
        node.spec.unschedulable = example.spec.unschedulable
        node.spec.taints.extend(taint for taint in example.spec.taints if taints.is_expected_on_new_nodes(taint.key))
        for name in example.status.allocatable:
            node.status.allocatable[name].CopyFrom(example.status.allocatable[name])
        for name in example.status.capacity:
            node.status.capacity[name].CopyFrom(example.status.capacity[name])
        return node


def _is_good(node: core_v1_pb2.Node, unix_ns: int) -> bool:
    """``isNodeGoodTemplateCandidate``."""
    ready, since_ns = taints.readiness(node)
    stable = since_ns + STABLE_NS < unix_ns
    return ready and stable and not node.spec.unschedulable and not taints.has(node, taints.TO_BE_DELETED)


def _daemons(node: core_v1_pb2.Node, sets: Sequence[apps_v1_pb2.DaemonSet]) -> list[core_v1_pb2.Pod]:
    """``GetDaemonSetPodsForNode``."""
    found = []
    for daemon_set in sets:
        template = daemon_set.spec.template
        if not daemon_pods.Wish(template).fits(node)[0]:
            continue
        pod = core_v1_pb2.Pod()
        metadata = pod.metadata
        metadata.namespace = daemon_set.metadata.namespace
        metadata.name = f"{daemon_set.metadata.name}-pod"
        for key, value in template.metadata.labels.items():
            metadata.labels[key] = value
        metadata.ownerReferences.append(meta.owner_reference(daemon_set, "apps/v1", "DaemonSet"))
        pod.spec.CopyFrom(template.spec)
        daemon_pods.tolerate(pod.spec)
        pod.spec.nodeName = node.metadata.name
        found.append(pod)
    return found


def _preempts_for_system(pod: core_v1_pb2.Pod) -> bool:
    """``isPreemptingSystemNodeCritical``."""
    return pod.spec.priorityClassName == "system-node-critical" and pod.spec.preemptionPolicy in (
        "", "PreemptLowerPriority",
    )  # fmt: skip
