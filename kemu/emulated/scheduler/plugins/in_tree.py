"""Which plugins there are, in their default order, with their default weights."""

from __future__ import annotations

from kemu.emulated.scheduler.framework.interfaces import Plugin
from kemu.emulated.scheduler.framework.registries import Registry
from kemu.emulated.scheduler.plugins.default_binder import DefaultBinder
from kemu.emulated.scheduler.plugins.default_preemption import DefaultPreemption
from kemu.emulated.scheduler.plugins.dynamic_resources import DynamicResources
from kemu.emulated.scheduler.plugins.image_locality import ImageLocality
from kemu.emulated.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kemu.emulated.scheduler.plugins.node_affinity import NodeAffinity
from kemu.emulated.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from kemu.emulated.scheduler.plugins.node_name import NodeName
from kemu.emulated.scheduler.plugins.node_ports import NodePorts
from kemu.emulated.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kemu.emulated.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kemu.emulated.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kemu.emulated.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kemu.emulated.scheduler.plugins.priority_sort import PrioritySort
from kemu.emulated.scheduler.plugins.scheduling_gates import SchedulingGates
from kemu.emulated.scheduler.plugins.taint_toleration import TaintToleration
from kemu.emulated.scheduler.plugins.volumes.node_volume_limits import NodeVolumeLimits
from kemu.emulated.scheduler.plugins.volumes.volume_binding import VolumeBinding
from kemu.emulated.scheduler.plugins.volumes.volume_restrictions import VolumeRestrictions
from kemu.emulated.scheduler.plugins.volumes.volume_zones import VolumeZone

IN_TREE: dict[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        SchedulingGates,
        PrioritySort,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        DynamicResources,
        DefaultPreemption,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        DefaultBinder,
        NodeDeclaredFeatures,
    )
}
"""In the order of the default ``multiPoint`` set."""

DEFAULT_WEIGHTS: dict[str, int] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
}
"""Default weights of the others: 1."""

INERT: dict[str, tuple[str, ...]] = {
    "VolumeBinding": ("preScore", "score"),
}
"""Extension points at which plugins of kube-scheduler may be named although they do nothing there: storage is not
scored (StorageCapacityScoring is off)."""

REGISTRY = Registry(IN_TREE, DEFAULT_WEIGHTS, INERT)
