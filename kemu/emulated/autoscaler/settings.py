# ruff: noqa: N815  (settings have the names that a scenario writes)
"""The settings of the cluster autoscaler: its flags with their defaults (``config/flags`` of the cluster autoscaler).

A scenario writes them under ``autoscaler``, beside the node groups. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kemu.emulated.settings.declared import section, setting
from kemu.emulated.settings.shapes import POSITIVE_SECONDS, SECONDS, ListOf, MapOf, Number, Switch, Text, Whole

EXPANDERS = ("least-waste", "random", "most-pods", "least-nodes", "price", "priority")
"""The default first."""
CUT_OFF = -10
"""The design of pod preemption said 0; the default came with the flag (``expendable-pods-priority-cutoff``)."""


@dataclass(frozen=True)
class ScaleDown:
    """The flags ``scale-down-…`` and what else decides which nodes go."""

    enabled: bool = setting(Switch(), "Whether nodes are removed at all.", True)
    delayAfterAdd: float = setting(SECONDS, "After a scale-up, until nodes are removed; {default}.", "10m")
    delayAfterDelete: float = setting(SECONDS, "After a removal; {default}.", "0s")
    delayAfterFailure: float = setting(SECONDS, "After a removal that failed; {default}.", "3m")
    unneededTime: float = setting(SECONDS, "How long a node must be unneeded; {default}.", "10m")
    unreadyTime: float = setting(SECONDS, "The same of a node that is not ready; {default}.", "20m")
    utilizationThreshold: float = setting(
        Number(0), "Requests of CPU or memory, as a share, up to which a node may go; {default}.", 0.5
    )
    gpuUtilizationThreshold: float = setting(Number(0), "The same of GPUs, on nodes that have some; {default}.", 0.5)
    unreadyEnabled: bool = setting(Switch(), "Whether nodes that are not ready go, too.", True)
    unremovableRecheckTime: float = setting(
        SECONDS, "Until a node whose pods cannot move is looked at again; {default}.", "5m"
    )
    ignoreDaemonSetsUtilization: bool = setting(
        Switch(), "Whether daemon pods count in the utilization; they do by default.", False
    )
    skipNodesWithSystemPods: bool = setting(
        Switch(), "Whether pods in kube-system without a budget keep their node.", True
    )
    skipNodesWithLocalStorage: bool = setting(
        Switch(), "Whether pods with emptyDir or hostPath volumes keep their node.", True
    )
    skipNodesWithCustomControllerPods: bool = setting(
        Switch(), "Whether pods of controllers that it does not know do.", True
    )
    systemPodDisruptionTime: float = setting(SECONDS, "A pod in kube-system keeps its node no longer; {default}.", "1h")
    minReplicaCount: int = setting(Whole(0), "Pods of smaller ReplicaSets keep their node; {default}.", 0)
    maxParallelism: int = setting(Whole(1), "Nodes that go at a time; {default}.", 10)
    maxDrainParallelism: int = setting(Whole(1), "Nodes that are drained at a time; {default}.", 1)
    maxGracefulTermination: float = setting(SECONDS, "The longest grace period of an eviction; {default}.", "10m")
    maxPodEvictionTime: float = setting(SECONDS, "How long an eviction is tried again; {default}.", "2m")
    deleteDelayAfterTaint: float = setting(SECONDS, "After the taint, until pods are evicted; {default}.", "5s")
    cordon: bool = setting(Switch(), "Whether nodes are cordoned before they go; they are by default.", True)
    daemonSetEvictionForEmptyNodes: bool = setting(Switch(), "Whether daemon pods of empty nodes are evicted.", False)
    daemonSetEvictionForOccupiedNodes: bool = setting(
        Switch(), "Whether those of drained nodes are; they are by default.", True
    )
    maxBulkSoftTaints: int = setting(
        Whole(0), "How many nodes are marked as candidates in an iteration; {default}.", 10
    )


@dataclass(frozen=True)
class Settings:
    """All of them."""

    cutOff: int = setting(
        Whole(),
        "Pods of lower priority neither add nor keep nodes (expendable-pods-priority-cutoff); {default}.",
        CUT_OFF,
    )
    expander: str = setting(
        Text(),
        f"Which group grows, of several that could: {', '.join(EXPANDERS)}; with commas, one after the other.",
        EXPANDERS[0],
    )
    priorities: Mapping[str, list[str]] = setting(
        MapOf(ListOf(Text(".*"))), "For the expander priority: regular expressions of group names, by priority.", {}
    )
    scanInterval: float = setting(
        POSITIVE_SECONDS, "How often it looks; {default}. It looks at once when a pod is found unschedulable.", "10s"
    )
    newPodScaleUpDelay: float = setting(SECONDS, "Younger pods add no nodes; {default}.", "0s")
    balanceSimilarNodeGroups: bool = setting(Switch(), "Whether groups of equal nodes grow evenly.", False)
    maxNodesTotal: int = setting(Whole(0), "The cluster does not grow beyond it; 0: no limit.", 0)
    maxNodesPerScaleUp: int = setting(Whole(1), "Of one group, in one iteration; {default}.", 1000)
    enforceNodeGroupMinSize: bool = setting(
        Switch(), "Whether groups that are smaller than their min grow without need.", False
    )
    forceDaemonSets: bool = setting(Switch(), "Whether daemon pods that no node has yet count on new nodes.", False)
    maxNodeProvisionTime: float = setting(
        SECONDS, "How long a node may take to register until it is given up; {default}.", "15m"
    )
    maxNodeStartupTime: float = setting(
        SECONDS, "How long one that has registered may take to be ready; {default}.", "15m"
    )
    okTotalUnreadyCount: int = setting(Whole(0), "So many broken nodes do not matter; {default}.", 3)
    maxTotalUnreadyPercentage: float = setting(
        Number(0), "With a larger share of broken nodes it does nothing at all; {default}.", 45
    )
    initialNodeGroupBackoff: float = setting(
        SECONDS, "After a failed scale-up the group is left alone; {default}, doubled each time.", "5m"
    )
    maxNodeGroupBackoff: float = setting(SECONDS, "But no longer than this; {default}.", "30m")
    nodeGroupBackoffReset: float = setting(SECONDS, "After so long without a failure it starts over; {default}.", "3h")
    scaleDown: ScaleDown = section(ScaleDown, "When nodes are removed.")
