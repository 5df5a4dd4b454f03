"""The table of controllers: their names in a scenario, the actors behind them, and the keys of their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kemu.emulated.autoscaler import autoscaler
from kemu.emulated.controllers import node_lifecycle, pod_gc
from kemu.emulated.controllers.workloads.stateful import stateful_sets
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import (  # fmt: skip
    DURATION,
    NAME,
    PERIOD,
    POSITIVE_DURATION,
    Choice,
    Key,
    ListOf,
    Number,
    Record,
    ScalarOr,
    Shape,
    Switch,
    Whole,
)


@dataclass(frozen=True)
class Kind:
    """One controller."""

    factory: str
    doc: str
    fields: Mapping[str, Key]
    """Settings besides the lag."""


_LAG = Key(TIME, "From what it hears until it acts.")

ELECTION = Record(
    {
        "leaderElect": Key(Switch(), "Whether one leads; true by default. Otherwise all of them work."),
        "leaseDuration": Key(POSITIVE_DURATION, "So long the others must see no renewal; 15s by default."),
        "renewDeadline": Key(POSITIVE_DURATION, "So long the leader tries to renew; 10s by default."),
        "retryPeriod": Key(POSITIVE_DURATION, "Between two tries; 2s by default."),
        "resourceName": Key(NAME, "Of the Lease; the controller's name by default."),
        "resourceNamespace": Key(NAME, "Of the Lease; kube-system by default."),
        "releaseOnCancel": Key(
            Switch(),
            "Whether a leader that is told to end gives the lease up: the feature gate "
            "ControllerManagerReleaseLeaderElectionLockOnExit, false by default.",
        ),
    }
)
"""A LeaderElectionConfiguration."""
_REPLICAS = {
    "replicas": Key(Whole(1), "How many processes; of several, one leads. 1 by default."),
    "leaderElection": Key(ELECTION, "How a leader is elected; a single process leads without an election by default."),
}

NODE_LIFECYCLE, TAINT_EVICTION, POD_GC = "node-lifecycle", "taint-eviction", "pod-gc"
NODE_AFFINITY_EVICTION = "node-affinity-eviction"
RESCHEDULER, DISRUPTION = "rescheduler", "disruption"
RESOURCE_QUOTA = "resourcequota"
CLUSTER_AUTOSCALER = autoscaler.NAME
DAEMON_SET, STATEFUL_SET, REPLICA_SET = "daemonset", "statefulset", "replicaset"
JOB, CRON_JOB, TTL_AFTER_FINISHED = "job", "cronjob", "ttl-after-finished"
DEPLOYMENT, REPLICATION_CONTROLLER = "deployment", "replicationcontroller"
GARBAGE_COLLECTOR, NAMESPACE = "garbage-collector", "namespace"

VOLUME_BINDER, CSI_DRIVERS, ATTACH_DETACH = "persistentvolume-binder", "csi-drivers", "attach-detach"
EPHEMERAL_VOLUMES, VOLUME_PROTECTION = "ephemeral-volume", "volume-protection"
OF_VOLUMES = (VOLUME_BINDER, CSI_DRIVERS, ATTACH_DETACH, EPHEMERAL_VOLUMES, VOLUME_PROTECTION)
"""What a scenario with volumes needs."""

_DOCS = {
    "nodeMonitorPeriod": "How often it looks at all nodes; 5s by default.",
    "nodeMonitorGracePeriod": "How long nothing may be heard of a node; 40s by default.",
    "nodeStartupGracePeriod": "The same of a node that has just come; 60s by default.",
    "nodeEvictionRate": "Lost nodes that are tainted NoExecute, per second and zone; 0.1 by default.",
    "secondaryNodeEvictionRate": "The same where much of a large zone is lost; 0.01 by default.",
    "largeClusterSizeThreshold": "From more nodes on a zone counts as large; 50 by default.",
    "unhealthyZoneThreshold": "The share of lost nodes from which much of a zone is lost; 0.55 by default.",
}
_SHAPES: dict[str, Shape] = {
    name: DURATION if name.endswith("Period") else Whole(0) if name.startswith("large") else Number(0)
    for name in node_lifecycle.FIELDS
}
_SHAPES["nodeMonitorPeriod"] = PERIOD

KINDS: dict[str, Kind] = {
    NODE_LIFECYCLE: Kind(
        "kemu.emulated.controllers.node_lifecycle:NodeLifecycleController",
        "Marks silent nodes; taints nodes by their conditions.",
        {name: Key(_SHAPES[name], doc) for name, doc in _DOCS.items()},
    ),
    TAINT_EVICTION: Kind(
        "kemu.emulated.controllers.taint_eviction:TaintEvictionController",
        "Deletes pods that do not tolerate a NoExecute taint.",
        {},
    ),
    NODE_AFFINITY_EVICTION: Kind(
        "kemu.emulated.controllers.node_affinity_eviction:NodeAffinityEviction",
        "Deletes pods whose node has ceased to match their node affinity, if they ask for it; runs if there are such.",
        {},
    ),
    POD_GC: Kind(
        "kemu.emulated.controllers.pod_gc:PodGarbageCollector",
        "Removes the pods of nodes that are gone, and the oldest of very many that have ended.",
        {
            "terminatedPodThreshold": Key(
                Whole(0), f"So many ended pods may stay; {pod_gc.TERMINATED_PODS} by default, 0: all."
            )
        },
    ),
    DAEMON_SET: Kind(
        "kemu.emulated.controllers.workloads.daemon.daemon_sets:DaemonSetController",
        "Sees that every node has its pod of a DaemonSet, and updates them a few at a time.",
        {},
    ),
    STATEFUL_SET: Kind(
        "kemu.emulated.controllers.workloads.stateful.stateful_sets:StatefulSetController",
        "Sees that the pods of a StatefulSet are there, each under its name, and updates them in order.",
        {
            "featureGates": Key(
                Record({stateful_sets.MAX_UNAVAILABLE: Key(Switch(), "Whether rollingUpdate.maxUnavailable counts.")}),
                "Feature gates of this controller.",
            )
        },
    ),
    REPLICA_SET: Kind(
        "kemu.emulated.controllers.workloads.replica_sets:ReplicaSetController",
        "Sees that a ReplicaSet has its number of pods.",
        {},
    ),
    REPLICATION_CONTROLLER: Kind(
        "kemu.emulated.controllers.workloads.replication_controllers:ReplicationController",
        "Sees that a ReplicationController has its number of pods.",
        {},
    ),
    DEPLOYMENT: Kind(
        "kemu.emulated.controllers.workloads.deployments.deployments:DeploymentController",
        "Rolls Deployments out, from one ReplicaSet to the next.",
        {},
    ),
    JOB: Kind(
        "kemu.emulated.controllers.jobs.jobs:JobController", "Runs the pods of Jobs until they have completed.", {}
    ),
    CRON_JOB: Kind("kemu.emulated.controllers.jobs.cron_jobs:CronJobController", "Creates Jobs when they are due.", {}),
    TTL_AFTER_FINISHED: Kind(
        "kemu.emulated.controllers.jobs.ttl:TtlAfterFinishedController",
        "Deletes Jobs that have a time to live after their end.",
        {},
    ),
    GARBAGE_COLLECTOR: Kind(
        "kemu.emulated.controllers.garbage.collector:GarbageCollector",
        "Deletes objects whose owners are gone; sees to foreground and orphaning deletions.",
        {},
    ),
    NAMESPACE: Kind(
        "kemu.emulated.controllers.namespaces:NamespaceController",
        "Empties namespaces that are being deleted, and lets them go.",
        {},
    ),
    RESOURCE_QUOTA: Kind(
        "kemu.emulated.controllers.quotas:ResourceQuotaController",
        "Counts what namespaces use of their ResourceQuotas.",
        {},
    ),
    DISRUPTION: Kind(
        "kemu.emulated.controllers.disruption:DisruptionController", "Keeps the status of PodDisruptionBudgets.", {}
    ),
    CLUSTER_AUTOSCALER: Kind(
        "kemu.emulated.autoscaler.autoscaler:ClusterAutoscaler",
        "Adds and removes nodes; runs if there is an autoscaler.",
        {},
    ),
    VOLUME_BINDER: Kind(
        "kemu.emulated.controllers.volumes.persistent_volumes:PersistentVolumeController",
        "Binds claims and volumes.",
        {},
    ),
    CSI_DRIVERS: Kind(
        "kemu.emulated.controllers.volumes.csi_drivers:CsiDrivers",
        "Stands for the CSI drivers: creates, deletes, attaches and detaches volumes; see storage.",
        {},
    ),
    ATTACH_DETACH: Kind(
        "kemu.emulated.controllers.volumes.attachments:AttachDetachController",
        "Says which volumes are to be attached to which nodes.",
        {},
    ),
    EPHEMERAL_VOLUMES: Kind(
        "kemu.emulated.controllers.volumes.ephemeral_claims:EphemeralVolumeController",
        "Makes the claims of ephemeral volumes.",
        {},
    ),
    VOLUME_PROTECTION: Kind(
        "kemu.emulated.controllers.volumes.protections:VolumeProtection",
        "Keeps claims and volumes that are deleted as long as they are used.",
        {},
    ),
    RESCHEDULER: Kind(
        "kemu.emulated.scheduler.experiments.rescheduler:Rescheduler",
        "Preempts for schedulers with preemptor: rescheduler; runs if there are such. Its lag is 1s by default.",
        {},
    ),
}
"""By the names that a scenario uses, in the order in which they are launched."""

SHAPE = ScalarOr(
    ListOf(Choice(tuple(KINDS))),
    Record(
        {
            **{name: Key(Record({"lag": _LAG, **kind.fields, **_REPLICAS}), kind.doc) for name, kind in KINDS.items()},
        }
    ),
)
