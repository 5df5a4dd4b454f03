"""The eviction settings of a KubeletConfiguration: defaults, then the thresholds that follow from them.

Mirrors ``SetDefaults_KubeletConfiguration`` of ``pkg/kubelet/apis/config/v1beta1`` for the fields of
:class:`EvictionSettings`. The other fields are read by :mod:`kemu.emulated.kubelet.settings.kubelet_configurations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.kubelet.settings import thresholds
from kemu.emulated.objects import times

DEFAULT_HARD = {
    thresholds.MEMORY: "100Mi",
    thresholds.NODEFS: "10%",
    thresholds.NODEFS_INODES: "5%",
    thresholds.IMAGEFS: "15%",
    thresholds.IMAGEFS_INODES: "5%",
}
DEFAULT_TRANSITION_NS = 300 * 1_000_000_000
DEFAULT_MAX_PODS = 110
DEFAULT_INTERVAL_NS = 10 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class EvictionSettings:
    """The eviction fields with their defaults, before the thresholds are parsed."""

    hard: dict[str, str]
    soft: dict[str, str]
    soft_grace_period: dict[str, str]
    minimum_reclaim: dict[str, str]
    transition_ns: int
    """How long a condition of the node is reported after its cause was last seen."""
    max_pod_grace_period_s: int
    """The longest grace period of a pod that a soft threshold evicts."""
    enforce_node_allocatable: tuple[str, ...]
    local_storage_isolation: bool
    """Whether the limits of emptyDir volumes and ephemeral storage are enforced."""
    max_pods: int
    memcg_notification: bool
    """Whether the kernel wakes the eviction manager when memory crosses a threshold."""
    interval_ns: int
    """From one pass of the manager to the next."""

    def thresholds(self) -> tuple[thresholds.Threshold, ...]:
        """Raises ThresholdError."""
        return thresholds.parse(
            self.hard, self.soft, self.soft_grace_period, self.minimum_reclaim, self.enforce_node_allocatable
        )


def read(configuration: Mapping[str, Any]) -> EvictionSettings:
    """``configuration``: fields of a KubeletConfiguration. Raises ValueError for a bad duration."""
    hard = configuration.get("evictionHard")
    if hard is None:
        hard = DEFAULT_HARD
    elif configuration.get("mergeDefaultEvictionSettings"):
        hard = {**DEFAULT_HARD, **hard}
    enforce = configuration.get("enforceNodeAllocatable")
    isolation = configuration.get("localStorageCapacityIsolation")
    period = times.parse_duration(configuration.get("evictionPressureTransitionPeriod") or "0")
    return EvictionSettings(
        hard=dict(hard),
        soft=dict(configuration.get("evictionSoft") or {}),
        soft_grace_period=dict(configuration.get("evictionSoftGracePeriod") or {}),
        minimum_reclaim=dict(configuration.get("evictionMinimumReclaim") or {}),
        transition_ns=period or DEFAULT_TRANSITION_NS,
        max_pod_grace_period_s=int(configuration.get("evictionMaxPodGracePeriod") or 0),
        enforce_node_allocatable=tuple(enforce if enforce is not None else (thresholds.PODS_ENFORCED,)),
        local_storage_isolation=True if isolation is None else bool(isolation),
        max_pods=int(configuration.get("maxPods") or DEFAULT_MAX_PODS),
        memcg_notification=bool(configuration.get("kernelMemcgNotification", False)),
        interval_ns=times.duration_field(configuration, "housekeepingInterval") or DEFAULT_INTERVAL_NS,
    )
