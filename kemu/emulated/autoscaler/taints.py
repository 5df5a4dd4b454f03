"""The taints that the autoscaler sets and reads, and whether a node is ready (``utils/taints utils/kubernetes``)."""

from __future__ import annotations

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
STARTUP_PREFIXES = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
)
STATUS_PREFIXES = ("status-taint.cluster-autoscaler.kubernetes.io/",)
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

_CONDITIONS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
)
_NOT_READY = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
)
MAX_DELETION_S = 5 * 60
"""How long a node with the taint counts as being deleted (``MaxCloudProviderNodeDeletionTime``)."""


def has(node: core_v1_pb2.Node, key: str) -> bool:
    return any(taint.key == key for taint in node.spec.taints)


def is_starting(node: core_v1_pb2.Node) -> bool:
    """It has a startup taint: its agents are not done, whatever its conditions say."""
    return any(taint.key.startswith(STARTUP_PREFIXES) for taint in node.spec.taints)


def is_expected_on_new_nodes(key: str) -> bool:
    """Whether a taint of a node says something of the nodes to come of its group (``SanitizeTaints``)."""
    passing = (TO_BE_DELETED, DELETION_CANDIDATE, *_CONDITIONS)
    return key not in passing and not key.startswith((*STARTUP_PREFIXES, *STATUS_PREFIXES))


def is_being_deleted(node: core_v1_pb2.Node, unix_ns: int) -> bool:
    """``IsNodeBeingDeleted``."""
    for taint in node.spec.taints:
        if taint.key == TO_BE_DELETED and taint.value.isdigit():
            return unix_ns // SECOND_NS - int(taint.value) < MAX_DELETION_S
    return False


def unready(node: core_v1_pb2.Node) -> core_v1_pb2.Node:
    """The same node, not ready since its condition changed last (``GetUnreadyNodeCopy``)."""
    copy = meta.copied(node)
    for condition in copy.status.conditions:
        if condition.type == "Ready":
            condition.status = "False"
    return copy


def readiness(node: core_v1_pb2.Node) -> tuple[bool, int]:
    """Whether a node is ready, and since when it is so or not, in Unix ns (``GetNodeReadiness``).

    One with a startup taint is not, unless it is cordoned: startup taints are looked for on nodes that are ready and
    schedulable (``FilterOutNodesWithStartupTaints``).
    """
    ready, since_ns = True, 0
    for condition in node.status.conditions:
        kind, status = condition.type, condition.status
        if kind not in ("Ready", "DiskPressure", "NetworkUnavailable"):
            continue
        if (kind == "Ready" and status in ("False", "Unknown")) or (kind != "Ready" and status == "True"):
            ready = False
        since_ns = max(since_ns, meta.unix_ns(condition.lastTransitionTime))
    for taint in node.spec.taints:
        if taint.key in _NOT_READY:
            ready = False
            if taint.HasField("timeAdded"):
                since_ns = max(since_ns, meta.unix_ns(taint.timeAdded))
    if meta.get_condition(node.status.conditions, "Ready") is None:
        return False, 0
    return ready and (node.spec.unschedulable or not is_starting(node)), since_ns
