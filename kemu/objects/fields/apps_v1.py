"""The fields of the workloads that have a controller."""

from __future__ import annotations

from kemu.objects.fields.sorts import Reason, Refused, Sort, message

MIN_READY = Refused("a pod is available as soon as it is ready", (0,))
STRATEGY = "with OnDelete, pods that are made anew follow a changed template; with RollingUpdate the change is refused"

SORTS: dict[str, Sort] = {
    **message("ReplicaSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message("ReplicaSetSpec", acts="replicas selector", parts="template", refused={"minReadySeconds": MIN_READY}),
    **message("StatefulSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "StatefulSetSpec",
        acts="replicas selector podManagementPolicy ordinals",
        parts="template updateStrategy",
        harmless={
            Reason.NETWORK: "serviceName",
            Reason.ROLLOUT: "revisionHistoryLimit",
            Reason.UNUSED: "persistentVolumeClaimRetentionPolicy",
        },
        refused={
            "volumeClaimTemplates": "kemu has no volumes that outlive a pod: no claims are made from templates",
            "minReadySeconds": MIN_READY,
        },
    ),
    **message("StatefulSetUpdateStrategy", notes={"type": STRATEGY}, harmless={Reason.ROLLOUT: "rollingUpdate"}),
    **message("DaemonSet", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message(
        "DaemonSetSpec",
        acts="selector",
        parts="template updateStrategy",
        harmless={Reason.ROLLOUT: "revisionHistoryLimit"},
        refused={"minReadySeconds": MIN_READY},
    ),
    **message("DaemonSetUpdateStrategy", notes={"type": STRATEGY}, harmless={Reason.ROLLOUT: "rollingUpdate"}),
}
