"""The fields of pods, nodes and the other kinds of the core group."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

NO_OLD_VOLUMES = "kemu neither attaches nor mounts volumes of plugins in the tree; use a claim"

PODS: dict[str, Sort] = {
    **message("Pod", parts="metadata spec status"),
    **message("PodTemplateSpec", parts="metadata spec"),
    **message(
        "PodSpec",
        acts="restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds nodeSelector nodeName hostNetwork "
        "affinity schedulerName tolerations priorityClassName priority preemptionPolicy runtimeClassName overhead "
        "topologySpreadConstraints os schedulingGates readinessGates ephemeralContainers resourceClaims",
        notes={"schedulingGroup": "with the feature gate GenericWorkload of the pod's scheduler"},
        parts="volumes initContainers containers securityContext resources",
        harmless={
            Reason.CONTAINERS: "hostPID hostIPC shareProcessNamespace hostUsers",
            Reason.NETWORK: "dnsPolicy hostname subdomain hostAliases dnsConfig setHostnameAsFQDN hostnameOverride "
            "enableServiceLinks",
            Reason.IDENTITY: "serviceAccountName serviceAccount automountServiceAccountToken",
            Reason.CONTENT: "imagePullSecrets",
        },
    ),
    **message(
        "PodSecurityContext",
        acts="supplementalGroupsPolicy",
        harmless={
            Reason.CONTAINERS: "seLinuxOptions windowsOptions runAsUser runAsGroup runAsNonRoot supplementalGroups "
            "fsGroup fsGroupChangePolicy seccompProfile appArmorProfile seLinuxChangePolicy",
        },
        refused={"sysctls": "kemu's kubelet does not tell safe sysctls from those that it must refuse"},
    ),
    **message(
        "Container",
        acts="name image ports restartPolicy restartPolicyRules imagePullPolicy resizePolicy",
        parts="resources volumeMounts readinessProbe startupProbe livenessProbe lifecycle",
        harmless={
            Reason.CONTAINERS: "command args workingDir env envFrom terminationMessagePath "
            "terminationMessagePolicy securityContext stdin stdinOnce tty volumeDevices",
        },
    ),
    **message("ResourceRequirements", acts="limits requests claims"),
    **message(
        "VolumeMount",
        harmless={
            Reason.CONTAINERS: "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr",
        },
    ),
    **message(
        "Probe",
        acts="initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold "
        "terminationGracePeriodSeconds",
        notes={
            "handler": "the annotation kemu.dev/probes says what it answers, and when; without it, it succeeds, "
            "but for a command that containers with programs carry out"
        },
    ),
    **message(
        "Lifecycle",
        parts="preStop postStart",
        harmless={Reason.CONTAINERS: "stopSignal"},
    ),
    **message(
        "LifecycleHandler",
        acts="sleep",
        notes={
            **dict.fromkeys(
                ("httpGet", "tcpSocket"),
                "it takes as long as the annotation kemu.dev/pre-stop-seconds or kemu.dev/post-start-seconds says",
            ),
            "exec": "as httpGet, but for a command that containers with programs carry out",
        },
    ),
    **message("Volume", acts="name", parts="volumeSource"),
    **message(
        "VolumeSource",
        acts="emptyDir persistentVolumeClaim ephemeral image",
        harmless={Reason.CONTENT: "hostPath nfs secret configMap downwardAPI projected csi"},
        notes=dict.fromkeys(
            ("gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "iscsi", "rbd"),
            "the scheduler keeps pods apart that must not share the disk; it is neither attached nor mounted",
        ),
        refused={
            "glusterfs flexVolume cinder cephfs flocker fc azureFile vsphereVolume quobyte photonPersistentDisk "
            "portworxVolume scaleIO storageos": NO_OLD_VOLUMES,
            "gitRepo": "the kubelet of Kubernetes 1.36 no longer mounts it",
        },
    ),
    **message(
        "PodStatus",
        acts="phase conditions message reason nominatedNodeName startTime initContainerStatuses containerStatuses "
        "allocatedResources resources resourceClaimStatuses extendedResourceClaimStatus",
        harmless={
            Reason.SERVER: "qosClass",
            Reason.RECORDED: "observedGeneration hostIP hostIPs podIP podIPs ephemeralContainerStatuses resize "
            "nodeAllocatableResourceClaimStatuses",
        },
    ),
}

NODES: dict[str, Sort] = {
    **message("Node", parts="metadata spec status"),
    **message(
        "NodeSpec",
        acts="unschedulable taints",
        harmless={
            Reason.NETWORK: "podCIDR podCIDRs",
            Reason.RECORDED: "providerID externalID",
            Reason.SERVER: "configSource",
        },
    ),
    **message(
        "NodeStatus",
        acts="capacity allocatable conditions images declaredFeatures",
        harmless={
            Reason.NETWORK: "addresses daemonEndpoints",
            Reason.RECORDED: "phase nodeInfo",
            Reason.SERVER: "config",
            Reason.UNUSED: "volumesInUse volumesAttached runtimeHandlers features",
        },
    ),
}

OTHERS: dict[str, Sort] = {
    **message("Namespace", parts="metadata spec status"),
    **message("NamespaceSpec", acts="finalizers"),
    **message("NamespaceStatus", acts="phase", harmless={Reason.RECORDED: "conditions"}),
    **message(
        "Event",
        parts="metadata",
        harmless={
            Reason.RECORDED: "involvedObject reason message source firstTimestamp lastTimestamp count type eventTime "
            "series action related reportingComponent reportingInstance",
        },
    ),
    **message("Service", parts="metadata spec", harmless={Reason.NETWORK: "status"}),
    **message(
        "ServiceSpec",
        notes={"selector": "the default constraints of PodTopologySpread spread the pods of a Service"},
        harmless={
            Reason.NETWORK: "ports clusterIP clusterIPs type externalIPs sessionAffinity loadBalancerIP "
            "loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses "
            "sessionAffinityConfig ipFamilies ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass "
            "internalTrafficPolicy trafficDistribution",
        },
    ),
}

ACCEPTED = (
    "Pod",
    "Node",
    "Namespace",
    "Service",
    "Event",
    "ReplicationController",
)
"""Kinds that scenarios may hold."""

CONTROLLERS: dict[str, Sort] = {
    **message("ReplicationController", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message("ReplicationControllerSpec", acts="replicas minReadySeconds selector", parts="template"),
}

SORTS: dict[str, Sort] = {**PODS, **NODES, **CONTROLLERS, **OTHERS}
