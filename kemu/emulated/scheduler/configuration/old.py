"""What configurations of older kube-schedulers say, and what is written today in its place.

Kubernetes v1.36 refuses all of this as unknown. Documents and files still have it, so each refusal names the equivalent
and where it stands: the document of ``kind: Policy`` with its predicates and priorities (``legacy_registry.go`` of
``pkg/scheduler/framework/plugins``, which translated them until v1.22), ``algorithmSource``, fields that became
arguments of plugins, and plugins that were merged into others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.scheduler.configuration.fields import ConfigurationError

_ARGUMENTS = "profiles[0].pluginConfig: [{{name: {}, args: {{{}}}}}]"
_RATIO = "scoringStrategy: {type: RequestedToCapacityRatio, resources: […], requestedToCapacityRatio: {shape: […]}}"


def _arguments(plugin: str, text: str) -> str:
    return _ARGUMENTS.format(plugin, text)


_PLUGINS = {
    "RequestedToCapacityRatio": _arguments("NodeResourcesFit", _RATIO),
    "NodeResourcesLeastAllocated": _arguments("NodeResourcesFit", "scoringStrategy: {type: LeastAllocated}"),
    "NodeResourcesMostAllocated": _arguments("NodeResourcesFit", "scoringStrategy: {type: MostAllocated}"),
    "NodeLabel": _arguments("NodeAffinity", "addedAffinity: {…}"),
    "SelectorSpread": "PodTopologySpread",
    "DefaultPodTopologySpread": "PodTopologySpread",
    "ServiceAffinity": "a podAffinity in the pods",
    "NodePreferAvoidPods": "a taint of effect PreferNoSchedule on the node",
    **dict.fromkeys(
        ("NodeVolumeLimitsCSI", "EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"), "NodeVolumeLimits"
    ),
}
"""By the name of a plugin that there was: what there is instead."""

_PREDICATES = {
    "PodFitsResources": "NodeResourcesFit",
    "PodFitsHostPorts": "NodePorts",
    "PodFitsPorts": "NodePorts",
    "HostName": "NodeName",
    "MatchNodeSelector": "NodeAffinity",
    "GeneralPredicates": "NodeResourcesFit, NodeName, NodePorts and NodeAffinity",
    "PodToleratesNodeTaints": "TaintToleration",
    "CheckNodeUnschedulable": "NodeUnschedulable",
    "MatchInterPodAffinity": "InterPodAffinity",
    "EvenPodsSpread": "PodTopologySpread",
    "NoDiskConflict": "VolumeRestrictions",
    "NoVolumeZoneConflict": "VolumeZone",
    "CheckVolumeBinding": "VolumeBinding",
    "CheckNodeLabelPresence": _PLUGINS["NodeLabel"],
    "CheckServiceAffinity": _PLUGINS["ServiceAffinity"],
    **dict.fromkeys(
        (
            "MaxCSIVolumeCountPred",
            "MaxEBSVolumeCount",
            "MaxGCEPDVolumeCount",
            "MaxAzureDiskVolumeCount",
            "MaxCinderVolumeCount",
        ),
        "NodeVolumeLimits",
    ),
}
_PRIORITIES = {
    "LeastRequestedPriority": _PLUGINS["NodeResourcesLeastAllocated"],
    "MostRequestedPriority": _PLUGINS["NodeResourcesMostAllocated"],
    "RequestedToCapacityRatio": _PLUGINS["RequestedToCapacityRatio"],
    "RequestedToCapacityRatioPriority": _PLUGINS["RequestedToCapacityRatio"],
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "NodePreferAvoidPodsPriority": _PLUGINS["NodePreferAvoidPods"],
    "EqualPriority": "nothing",
}

_PROVIDERS = {
    "DefaultProvider": "leave it out: the default plugins are always enabled",
    "ClusterAutoscalerProvider": f"write {_PLUGINS['NodeResourcesMostAllocated']}",
}
_FIELDS = {
    "schedulerName": "write profiles[0].schedulerName",
    "hardPodAffinitySymmetricWeight": f"write {_arguments('InterPodAffinity', 'hardPodAffinityWeight: …')}",
    "bindTimeoutSeconds": f"write {_arguments('VolumeBinding', 'bindTimeoutSeconds: …')}",
    "disablePreemption": (
        "write profiles[0].plugins.postFilter.disabled: [{name: DefaultPreemption}], or disablePreemption: on in the "
        "scheduler's policy beside config"
    ),
}


def plugin_hint(name: str, profile: str) -> str:
    """What is written in place of a plugin that there was; "" for any other name. ``profile``: the path of its own."""
    today = _PLUGINS.get(name, "").replace("profiles[0]", profile)
    return f"there was one; write {today}" if today else ""


def refuse(data: Mapping[str, Any]) -> None:
    """Raise :class:`ConfigurationError` for the first thing that only older kube-schedulers know."""
    if not isinstance(data, Mapping):
        return
    if data.get("kind") == "Policy":
        raise ConfigurationError(
            "kind", "Policy is no longer read: write KubeSchedulerConfiguration", _translated(data)
        )
    for key in data:
        if key in ("predicates", "priorities"):
            raise ConfigurationError(key, "unknown field: it was one of kind Policy", _translated(data))
        if key == "algorithmSource":
            raise ConfigurationError(key, "is no longer a field", _source(data[key]))
        if key in _FIELDS:
            raise ConfigurationError(key, "is no longer a field", _FIELDS[key])


def _source(source: Json) -> str:
    provider = source.get("provider") if isinstance(source, Mapping) else None
    if provider is None:
        return "write what its policy says as profiles[0].plugins"
    return _PROVIDERS.get(str(provider), "write profiles[0].plugins")


def _translated(data: Mapping[str, Any]) -> str:
    """Where the parts of a Policy stand today, each predicate and priority by name."""
    parts = []
    for key, point, table in (("predicates", "filter", _PREDICATES), ("priorities", "score", _PRIORITIES)):
        today = [f"{name} is {table.get(name, 'not known')}" for name in _names(data.get(key))]
        listed = f": {'; '.join(today)}" if today else ""
        parts.append(f"{key} are profiles[0].plugins.{point}.enabled{listed}")
    return f"{'; '.join(parts)}; extenders keep their place"


def _names(entries: Json) -> Iterable[str]:
    listed = entries if isinstance(entries, list | tuple) else ()
    return [str(one["name"]) for one in listed if isinstance(one, Mapping) and "name" in one]
