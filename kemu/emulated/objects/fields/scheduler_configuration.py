"""The fields of a KubeSchedulerConfiguration, by path; ``[]`` stands for every item of a list.

What they may hold is checked in :mod:`kemu.emulated.scheduler.configuration`.
"""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Acts, Harmless, Reason, Refused, Sort

_ALWAYS = Acts("always on; false is refused")

SORTS: dict[str, Sort] = {
    "apiVersion": Acts(),
    "kind": Acts(),
    "parallelism": Acts("how many victims are deleted at the same time; nothing gets faster"),
    "percentageOfNodesToScore": Acts(),
    "podInitialBackoffSeconds": Acts(),
    "podMaxBackoffSeconds": Acts(),
    "profiles[].schedulerName": Acts(),
    "profiles[].percentageOfNodesToScore": Acts(),
    "profiles[].plugins": Acts(),
    "profiles[].pluginConfig": Acts(
        "but for VolumeBinding and DynamicResources: there is nothing that they could bind"
    ),
    "extenders[].urlPrefix": Acts("kemu:// and grpc:// instead of http://"),
    "extenders[].filterVerb": Acts("any text switches the call on"),
    "extenders[].preemptVerb": Acts("any text switches the call on"),
    "extenders[].prioritizeVerb": Acts("any text switches the call on"),
    "extenders[].bindVerb": Acts("any text switches the call on"),
    "extenders[].weight": Acts(),
    "extenders[].enableHTTPS": Acts("of addresses outside"),
    "extenders[].tlsConfig": Refused("a server is verified against the roots that gRPC is told of", ({},)),
    "extenders[].httpTimeout": Acts(),
    "extenders[].nodeCacheCapable": Acts(),
    "extenders[].managedResources": Acts(),
    "extenders[].ignorable": Acts(),
    "leaderElection": Acts("absent: every replica works, as if it led"),
    "clientConnection.kubeconfig": Harmless(Reason.PROCESS),
    "clientConnection.acceptContentTypes": Harmless(Reason.PROCESS),
    "clientConnection.contentType": Harmless(Reason.PROCESS),
    "clientConnection.qps": Acts("stated; the default acts with timing.clientLimits"),
    "clientConnection.burst": Acts("as qps"),
    "enableProfiling": Harmless(Reason.PROCESS),
    "enableContentionProfiling": Harmless(Reason.PROCESS),
    "healthzBindAddress": Harmless(Reason.PROCESS),
    "metricsBindAddress": Harmless(Reason.PROCESS),
    "delayCacheUntilActive": Acts("with a leader election"),
    "featureGates.OpportunisticBatching": Acts(),
    "featureGates.SchedulerPopFromBackoffQ": Acts(),
    "featureGates.StorageCapacityScoring": Harmless(Reason.UNUSED),
    "featureGates.GenericWorkload": Acts(),
    "featureGates.GangScheduling": Acts(),
    "featureGates.TopologyAwareWorkloadScheduling": Acts(),
    "featureGates.WorkloadAwarePreemption": Acts(),
    "featureGates.DRAWorkloadResourceClaims": Acts(),
    "featureGates.SchedulerAsyncPreemption": _ALWAYS,
    "featureGates.SchedulerQueueingHints": _ALWAYS,
    "featureGates.NodeInclusionPolicyInPodTopologySpread": _ALWAYS,
    "featureGates.MatchLabelKeysInPodAffinity": _ALWAYS,
    "featureGates.MatchLabelKeysInPodTopologySpread": _ALWAYS,
    "featureGates.MinDomainsInPodTopologySpread": _ALWAYS,
    "featureGates.PodSchedulingReadiness": _ALWAYS,
    "featureGates.PodDisruptionConditions": _ALWAYS,
    "featureGates.InPlacePodVerticalScaling": _ALWAYS,
}
"""A field that is a mapping or a list is sorted as a whole where its parts do not appear."""
