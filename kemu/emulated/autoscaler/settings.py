# ruff: noqa: N815  (settings have the names that a scenario writes)
"""The settings of the cluster autoscaler: its flags with their defaults (``config/flags`` of the cluster autoscaler).

Times are seconds. A scenario writes them under ``autoscaler``; :mod:`kemu.lab.scenario.format.keys.autoscaler_keys` has
the same names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXPANDERS = ("least-waste", "random", "most-pods", "least-nodes", "price", "priority")
"""The default first."""
CUT_OFF = -10
"""The design of pod preemption said 0; the default came with the flag (``expendable-pods-priority-cutoff``)."""


@dataclass(frozen=True)
class ScaleDown:
    """The flags ``scale-down-…`` and what else decides which nodes go."""

    enabled: bool = True
    delayAfterAdd: float = 600.0
    delayAfterDelete: float = 0.0
    delayAfterFailure: float = 180.0
    unneededTime: float = 600.0
    unreadyTime: float = 1200.0
    utilizationThreshold: float = 0.5
    gpuUtilizationThreshold: float = 0.5
    unreadyEnabled: bool = True
    unremovableRecheckTime: float = 300.0
    ignoreDaemonSetsUtilization: bool = False
    skipNodesWithSystemPods: bool = True
    skipNodesWithLocalStorage: bool = True
    skipNodesWithCustomControllerPods: bool = True
    systemPodDisruptionTime: float = 3600.0
    minReplicaCount: int = 0
    maxParallelism: int = 10
    maxDrainParallelism: int = 1
    maxGracefulTermination: float = 600.0
    maxPodEvictionTime: float = 120.0
    deleteDelayAfterTaint: float = 5.0
    cordon: bool = True
    daemonSetEvictionForEmptyNodes: bool = False
    daemonSetEvictionForOccupiedNodes: bool = True
    maxBulkSoftTaints: int = 10


@dataclass(frozen=True)
class Settings:
    """All of them."""

    cutOff: int = CUT_OFF
    expander: str = EXPANDERS[0]
    priorities: Mapping[str, list[str]] = field(default_factory=dict)
    """Of the expander ``priority``: regular expressions of group names by priority, as its ConfigMap has them."""
    scanInterval: float = 10.0
    newPodScaleUpDelay: float = 0.0
    balanceSimilarNodeGroups: bool = False
    maxNodesTotal: int = 0
    maxNodesPerScaleUp: int = 1000
    enforceNodeGroupMinSize: bool = False
    forceDaemonSets: bool = False
    maxNodeProvisionTime: float = 900.0
    maxNodeStartupTime: float = 900.0
    okTotalUnreadyCount: int = 3
    maxTotalUnreadyPercentage: float = 45.0
    initialNodeGroupBackoff: float = 300.0
    maxNodeGroupBackoff: float = 1800.0
    nodeGroupBackoffReset: float = 10800.0
    scaleDown: ScaleDown = ScaleDown()


def read(data: Mapping[str, Any]) -> Settings:
    """From what a scenario says, whose names have been checked."""
    names = {one.name for one in dataclasses.fields(Settings)}
    given = {name: value for name, value in data.items() if name in names and name != "scaleDown"}
    return Settings(**given, scaleDown=ScaleDown(**data.get("scaleDown", {})))
