"""The fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that do not act, and why.

Those that act are declared in :mod:`kemu.emulated.kubelet.settings.kubelet_configurations`.
"""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Harmless, Reason, Refused

WITHOUT_EFFECT: dict[str, Harmless | Refused] = {
    **dict.fromkeys(
        (
            "cgroupDriver", "cgroupRoot", "cgroupsPerQOS", "containerLogMaxFiles", "containerLogMaxSize",
            "containerLogMaxWorkers", "containerLogMonitorInterval", "cpuCFSQuota", "cpuCFSQuotaPeriod",
            "kubeReservedCgroup", "kubeletCgroups", "runtimeRequestTimeout", "seccompDefault", "singleProcessOOMKill",
            "systemCgroups", "systemReservedCgroup", "userNamespaces",
        ),
        Harmless(Reason.CONTAINERS),
    ),
    **dict.fromkeys(
        (
            "clusterDNS", "clusterDomain", "hairpinMode", "iptablesDropBit", "iptablesMasqueradeBit",
            "makeIPTablesUtilChains", "podCIDR", "resolvConf",
        ),
        Harmless(Reason.NETWORK),
    ),
    **dict.fromkeys(
        (
            "authentication", "authorization", "imagePullCredentialsVerificationPolicy",
            "preloadedImagesVerificationAllowlist", "rotateCertificates", "serverTLSBootstrap", "tlsCertFile",
            "tlsCipherSuites", "tlsCurvePreferences", "tlsMinVersion", "tlsPrivateKeyFile",
        ),
        Harmless(Reason.IDENTITY),
    ),
    "configMapAndSecretChangeDetectionStrategy": Harmless(Reason.CONTENT),
    "providerID": Harmless(Reason.RECORDED),
    **dict.fromkeys(
        (
            "address", "containerRuntimeEndpoint", "contentType", "enableContentionProfiling",
            "enableDebugFlagsHandler", "enableDebuggingHandlers", "enableProfilingHandler", "enableServer",
            "enableSystemLogHandler", "enableSystemLogQuery", "failCgroupV1", "failSwapOn", "healthzBindAddress",
            "healthzPort", "imageServiceEndpoint", "logging", "maxOpenFiles", "oomScoreAdj", "podLogsDir", "port",
            "protectKernelDefaults", "readOnlyPort", "showHiddenMetricsForVersion", "streamingConnectionIdleTimeout",
            "tracing",
        ),
        Harmless(Reason.PROCESS),
    ),
    **dict.fromkeys(
        ("fileCheckFrequency", "httpCheckFrequency", "syncFrequency", "volumeStatsAggPeriod"), Harmless(Reason.PROMPT)
    ),
    **dict.fromkeys(
        (
            "allowedUnsafeSysctls", "cpuManagerPolicyOptions", "cpuManagerReconcilePeriod",
            "enableControllerAttachDetach", "memoryReservationPolicy",
            "memoryThrottlingFactor", "registryBurst", "staticPodURLHeader", "topologyManagerPolicyOptions",
            "topologyManagerScope", "volumePluginDir",
        ),
        Harmless(Reason.UNUSED),
    ),
    "cpuManagerPolicy": Refused("no container gets CPUs of its own", ("", "none")),
    "memoryManagerPolicy": Refused("no container gets memory of one NUMA node", ("", "None")),
    "memorySwap": Refused("machines have no swap", ({}, {"swapBehavior": ""}, {"swapBehavior": "NoSwap"})),
    "podPidsLimit": Refused("no pod is kept from starting processes", (-1,)),
    "podsPerCore": Refused("maxPods alone limits the pods of a node", (0,)),
    "qosReserved": Refused("no memory is kept for pods of a higher QoS class", ({},)),
    "registerNode": Refused("a kubelet always registers its node", (True,)),
    "registerWithTaints": Refused("taints stand in the node of the scenario", ([],)),
    "registryPullQPS": Refused("the rate of image pulls is not limited, only how many run at once", (0,)),
    "reservedMemory": Refused("there are no NUMA nodes; kubeReserved and systemReserved are built", ([],)),
    "reservedSystemCPUs": Refused("no CPUs are set apart; kubeReserved and systemReserved are built", ("",)),
    "runOnce": Refused("a kubelet never exits by itself", (False,)),
    "staticPodPath": Refused("manifests of static pods stand in staticPods", ("",)),
    "staticPodURL": Refused("manifests of static pods stand in staticPods", ("",)),
    "topologyManagerPolicy": Refused("there are no NUMA nodes to align resources with", ("", "none")),
}  # fmt: skip
