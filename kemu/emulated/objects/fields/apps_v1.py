"""The fields of the workloads that have a controller."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

ACCEPTED = (
    "ReplicaSet",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ControllerRevision",
)
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {
    **message("ReplicaSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message("ReplicaSetSpec", acts="replicas minReadySeconds selector", parts="template"),
    **message("Deployment", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "DeploymentSpec",
        acts="replicas selector strategy minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds",
        parts="template",
    ),
    **message("StatefulSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "StatefulSetSpec",
        acts="replicas selector podManagementPolicy minReadySeconds ordinals revisionHistoryLimit "
        "persistentVolumeClaimRetentionPolicy",
        parts="template updateStrategy volumeClaimTemplates",
        harmless={Reason.NETWORK: "serviceName"},
    ),
    **message("StatefulSetUpdateStrategy", acts="type", parts="rollingUpdate"),
    **message(
        "RollingUpdateStatefulSetStrategy",
        acts="partition",
        notes={"maxUnavailable": "with the feature gate MaxUnavailableStatefulSet, which is off by default"},
    ),
    **message("DaemonSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message("DaemonSetSpec", acts="selector minReadySeconds updateStrategy revisionHistoryLimit", parts="template"),
    **message("ControllerRevision", acts="data revision", parts="metadata"),
}
