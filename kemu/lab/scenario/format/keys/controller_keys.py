"""The table of controllers: their names in a scenario, the actors behind them, and the keys of their settings."""

from __future__ import annotations

from dataclasses import dataclass

from kemu.emulated.autoscaler.settings import AUTOSCALER, HORIZONTAL, Horizontal
from kemu.emulated.client import limits
from kemu.emulated.controllers import node_health, pod_gc
from kemu.emulated.controllers.services import load_balancers, members, mirroring, slices
from kemu.emulated.controllers.settings import Controller, Jobs, NoSettings
from kemu.emulated.controllers.workloads.stateful import stateful_sets
from kemu.emulated.descheduler import policies
from kemu.emulated.queues import settings as queue_settings
from kemu.emulated.settings.declared import Section
from kemu.emulated.settings.shapes import Choice, Key, ListOf, Record, ScalarOr


@dataclass(frozen=True)
class Kind:
    """One controller."""

    factory: str
    doc: str
    settings: type = NoSettings
    """The dataclass of its own settings."""
    rate: limits.Rate = limits.CONTROLLER
    """How many requests its client sends, where a scenario states nothing."""
    more: tuple[int, int] = (1, 1)
    """What the rate and the burst of its client are multiplied by (``cmd/kube-controller-manager/app/core.go``)."""


NODE_LIFECYCLE, TAINT_EVICTION, POD_GC = "node-lifecycle", "taint-eviction", "pod-gc"
NODE_AFFINITY_EVICTION = "node-affinity-eviction"
RESCHEDULER, DISRUPTION = "rescheduler", "disruption"
RESOURCE_QUOTA = "resourcequota"
CLUSTER_AUTOSCALER, DESCHEDULER, KUEUE = AUTOSCALER, policies.NAME, queue_settings.NAME
DAEMON_SET, STATEFUL_SET, REPLICA_SET = "daemonset", "statefulset", "replicaset"
JOB, CRON_JOB, TTL_AFTER_FINISHED = "job", "cronjob", "ttl-after-finished"
DEPLOYMENT, REPLICATION_CONTROLLER = "deployment", "replicationcontroller"
GARBAGE_COLLECTOR, NAMESPACE = "garbage-collector", "namespace"
CLUSTER_ROLE_AGGREGATION = "clusterrole-aggregation"
HORIZONTAL_POD_AUTOSCALER, SERVICE_LB, SERVICE_CIDR = HORIZONTAL, "service-lb", "service-cidr"
ENDPOINTS, ENDPOINT_SLICE, ENDPOINT_SLICE_MIRRORING = "endpoints", "endpointslice", "endpointslice-mirroring"

VOLUME_BINDER, CSI_DRIVERS, ATTACH_DETACH = "persistentvolume-binder", "csi-drivers", "attach-detach"
EPHEMERAL_VOLUMES, VOLUME_PROTECTION = "ephemeral-volume", "volume-protection"
OF_VOLUMES = (VOLUME_BINDER, CSI_DRIVERS, ATTACH_DETACH, EPHEMERAL_VOLUMES, VOLUME_PROTECTION)
"""What a scenario with volumes needs."""

RESOURCE_CLAIM, DEVICE_TAINT_EVICTION = "resourceclaim", "device-taint-eviction"
OF_DEVICES = (RESOURCE_CLAIM, DEVICE_TAINT_EVICTION)
"""What a scenario with devices needs."""

KINDS: dict[str, Kind] = {
    NODE_LIFECYCLE: Kind(
        "kemu.emulated.controllers.node_lifecycle:NodeLifecycleController",
        "Marks silent nodes; taints nodes by their conditions.",
        node_health.Settings,
    ),
    TAINT_EVICTION: Kind(
        "kemu.emulated.controllers.taint_eviction:TaintEvictionController",
        "Deletes pods that do not tolerate a NoExecute taint.",
    ),
    NODE_AFFINITY_EVICTION: Kind(
        "kemu.emulated.controllers.node_affinity_eviction:NodeAffinityEviction",
        "Deletes pods whose node has ceased to match their node affinity, if they ask for it; runs if there are such.",
    ),
    POD_GC: Kind(
        "kemu.emulated.controllers.pod_gc:PodGarbageCollector",
        "Removes the pods of nodes that are gone, and the oldest of very many that have ended.",
        pod_gc.Settings,
    ),
    DAEMON_SET: Kind(
        "kemu.emulated.controllers.workloads.daemon.daemon_sets:DaemonSetController",
        "Sees that every node has its pod of a DaemonSet, and updates them a few at a time.",
    ),
    STATEFUL_SET: Kind(
        "kemu.emulated.controllers.workloads.stateful.stateful_sets:StatefulSetController",
        "Sees that the pods of a StatefulSet are there, each under its name, and updates them in order.",
        stateful_sets.Settings,
    ),
    REPLICA_SET: Kind(
        "kemu.emulated.controllers.workloads.replica_sets:ReplicaSetController",
        "Sees that a ReplicaSet has its number of pods.",
    ),
    REPLICATION_CONTROLLER: Kind(
        "kemu.emulated.controllers.workloads.replication_controllers:ReplicationController",
        "Sees that a ReplicationController has its number of pods.",
    ),
    DEPLOYMENT: Kind(
        "kemu.emulated.controllers.workloads.deployments.deployments:DeploymentController",
        "Rolls Deployments out, from one ReplicaSet to the next.",
    ),
    JOB: Kind(
        "kemu.emulated.controllers.jobs.jobs:JobController",
        "Runs the pods of Jobs until they have completed.",
        Jobs,
    ),
    CRON_JOB: Kind("kemu.emulated.controllers.jobs.cron_jobs:CronJobController", "Creates Jobs when they are due."),
    TTL_AFTER_FINISHED: Kind(
        "kemu.emulated.controllers.jobs.ttl:TtlAfterFinishedController",
        "Deletes Jobs that have a time to live after their end.",
    ),
    GARBAGE_COLLECTOR: Kind(
        "kemu.emulated.controllers.garbage.collector:GarbageCollector",
        "Deletes objects whose owners are gone; sees to foreground and orphaning deletions.",
        more=(2, 1),
    ),
    NAMESPACE: Kind(
        "kemu.emulated.controllers.namespaces:NamespaceController",
        "Empties namespaces that are being deleted, and lets them go.",
        more=(20, 100),
    ),
    CLUSTER_ROLE_AGGREGATION: Kind(
        "kemu.emulated.controllers.roles.aggregation:RoleAggregation",
        "Gives ClusterRoles with an aggregationRule the rules of those that it selects.",
    ),
    RESOURCE_QUOTA: Kind(
        "kemu.emulated.controllers.quotas:ResourceQuotaController",
        "Counts what namespaces use of their ResourceQuotas.",
    ),
    DISRUPTION: Kind(
        "kemu.emulated.controllers.disruption:DisruptionController", "Keeps the status of PodDisruptionBudgets."
    ),
    CLUSTER_AUTOSCALER: Kind(
        "kemu.emulated.autoscaler.autoscaler:ClusterAutoscaler",
        "Adds and removes nodes; runs if there is an autoscaler.",
        rate=limits.CLIENT_GO,
    ),
    DESCHEDULER: Kind(
        "kemu.emulated.descheduler.descheduler:Descheduler",
        "Evicts pods that schedulers may place better; runs if there is a descheduler.",
        rate=limits.CLIENT_GO,
    ),
    KUEUE: Kind(
        "kemu.emulated.queues.controller:Kueue",
        "Admits Jobs to the quota of their queues, and preempts them; runs if there are queues.",
        rate=limits.CLIENT_GO,
    ),
    VOLUME_BINDER: Kind(
        "kemu.emulated.controllers.volumes.persistent_volumes:PersistentVolumeController", "Binds claims and volumes."
    ),
    CSI_DRIVERS: Kind(
        "kemu.emulated.controllers.volumes.csi_drivers:CsiDrivers",
        "Stands for the CSI drivers: creates, deletes, attaches and detaches volumes; see storage.",
        rate=limits.CLIENT_GO,
    ),
    ATTACH_DETACH: Kind(
        "kemu.emulated.controllers.volumes.attachments:AttachDetachController",
        "Says which volumes are to be attached to which nodes.",
    ),
    EPHEMERAL_VOLUMES: Kind(
        "kemu.emulated.controllers.volumes.ephemeral_claims:EphemeralVolumeController",
        "Makes the claims of ephemeral volumes.",
    ),
    VOLUME_PROTECTION: Kind(
        "kemu.emulated.controllers.volumes.protections:VolumeProtection",
        "Keeps claims and volumes that are deleted as long as they are used.",
    ),
    RESOURCE_CLAIM: Kind(
        "kemu.emulated.controllers.devices.resource_claims:ResourceClaimController",
        "Makes the ResourceClaims of pods, deallocates and deletes those that are needed no more.",
    ),
    DEVICE_TAINT_EVICTION: Kind(
        "kemu.emulated.controllers.devices.taint_evictions:DeviceTaintEvictionController",
        "Deletes pods whose devices have a NoExecute taint that they do not tolerate.",
    ),
    ENDPOINTS: Kind(
        "kemu.emulated.controllers.services.legacy:EndpointsController",
        "Writes the Endpoints of Services with a selector.",
        members.Settings,
    ),
    ENDPOINT_SLICE: Kind(
        "kemu.emulated.controllers.services.slices:EndpointSliceController",
        "Writes the EndpointSlices of Services with a selector.",
        slices.Settings,
    ),
    ENDPOINT_SLICE_MIRRORING: Kind(
        "kemu.emulated.controllers.services.mirroring:EndpointSliceMirroring",
        "Writes Endpoints of Services without a selector as EndpointSlices.",
        mirroring.Settings,
    ),
    SERVICE_LB: Kind(
        "kemu.emulated.controllers.services.load_balancers:ServiceLoadBalancers",
        "Stands for a cloud's controller: gives Services of the type LoadBalancer addresses.",
        load_balancers.Settings,
    ),
    SERVICE_CIDR: Kind(
        "kemu.emulated.controllers.services.ranges:ServiceRanges",
        "Readies ServiceCIDRs, keeps those whose addresses are in use; API servers then have apiServers.serviceRanges.",
    ),
    HORIZONTAL_POD_AUTOSCALER: Kind(
        "kemu.emulated.autoscaler.horizontal.autoscaler:HorizontalPodAutoscaler",
        "Gives workloads as many replicas as their HorizontalPodAutoscalers ask for; runs if it is named.",
        Horizontal,
    ),
    RESCHEDULER: Kind(
        "kemu.emulated.scheduler.experiments.rescheduler:Rescheduler",
        "Preempts for schedulers with preemptor: rescheduler; runs if there are such. Its lag is 1s by default.",
        rate=limits.SCHEDULER,
    ),
}
"""By the names that a scenario uses, in the order in which they are launched."""

SHAPE = ScalarOr(
    ListOf(Choice(tuple(KINDS))),
    Record({name: Key(Section(Controller, {"own": Section(kind.settings)}), kind.doc) for name, kind in KINDS.items()}),
)


def default(name: str) -> Controller:
    """The controller of that name as it runs where a scenario says nothing about it."""
    return Controller(own=KINDS[name].settings())
