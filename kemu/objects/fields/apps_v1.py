"""The fields of the workloads that have a controller."""

from __future__ import annotations

from kemu.objects.fields.sorts import Reason, Sort, message

STRATEGY = "with OnDelete, pods that are made anew follow a changed template; with RollingUpdate the change is refused"

ACCEPTED = (
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
)
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {
    **message("ReplicaSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message("ReplicaSetSpec", acts="replicas minReadySeconds selector", parts="template"),
    **message("StatefulSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "StatefulSetSpec",
        acts="replicas selector podManagementPolicy minReadySeconds ordinals",
        parts="template updateStrategy",
        harmless={
            Reason.NETWORK: "serviceName",
            Reason.ROLLOUT: "revisionHistoryLimit",
            Reason.UNUSED: "persistentVolumeClaimRetentionPolicy",
        },
        refused={
            "volumeClaimTemplates": "kemu has no volumes that outlive a pod: no claims are made from templates",
        },
    ),
    **message("StatefulSetUpdateStrategy", notes={"type": STRATEGY}, harmless={Reason.ROLLOUT: "rollingUpdate"}),
    **message("DaemonSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "DaemonSetSpec",
        acts="selector minReadySeconds",
        parts="template updateStrategy",
        harmless={Reason.ROLLOUT: "revisionHistoryLimit"},
    ),
    **message("DaemonSetUpdateStrategy", notes={"type": STRATEGY}, harmless={Reason.ROLLOUT: "rollingUpdate"}),
}
