"""The defaults of the group apps."""

from __future__ import annotations

from kemu.emulated.objects.defaulting import pods, shared, storage
from kemu.messages.k8s import apps_v1_pb2


def _default_replica_set(replica_set: apps_v1_pb2.ReplicaSet) -> None:
    pods.default_pod_spec(replica_set.spec.template.spec)
    shared.default_replicas(replica_set.spec)


def _default_deployment(deployment: apps_v1_pb2.Deployment) -> None:
    spec = deployment.spec
    pods.default_pod_spec(spec.template.spec)
    shared.default_replicas(spec)
    if not spec.strategy.type:
        spec.strategy.type = "RollingUpdate"
    if spec.strategy.type == "RollingUpdate":
        rolling = spec.strategy.rollingUpdate
        for name in ("maxUnavailable", "maxSurge"):
            if not rolling.HasField(name):
                shared.set_int_or_string(getattr(rolling, name), "25%")
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10
    if not spec.HasField("progressDeadlineSeconds"):
        spec.progressDeadlineSeconds = 600


def _default_stateful_set(stateful_set: apps_v1_pb2.StatefulSet) -> None:
    spec = stateful_set.spec
    pods.default_pod_spec(spec.template.spec)
    shared.default_replicas(spec)
    if not spec.podManagementPolicy:
        spec.podManagementPolicy = "OrderedReady"
    strategy = spec.updateStrategy
    if not strategy.type:
        strategy.type = "RollingUpdate"
        strategy.rollingUpdate.SetInParent()
    if strategy.type == "RollingUpdate" and strategy.HasField("rollingUpdate"):
        strategy.rollingUpdate.partition = strategy.rollingUpdate.partition  # also 0 is written
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10
    retention = spec.persistentVolumeClaimRetentionPolicy
    for name in ("whenDeleted", "whenScaled"):
        if not getattr(retention, name):
            setattr(retention, name, "Retain")
    for claim in spec.volumeClaimTemplates:
        storage.default_claim(claim)


def _default_daemon_set(daemon_set: apps_v1_pb2.DaemonSet) -> None:
    spec = daemon_set.spec
    pods.default_pod_spec(spec.template.spec)
    if not spec.updateStrategy.type:
        spec.updateStrategy.type = "RollingUpdate"
    if spec.updateStrategy.type == "RollingUpdate":
        rolling = spec.updateStrategy.rollingUpdate
        for name, number in (("maxUnavailable", 1), ("maxSurge", 0)):
            if not rolling.HasField(name):
                shared.set_int_or_string(getattr(rolling, name), number)
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10


FILL = {
    apps_v1_pb2.ReplicaSet: _default_replica_set,
    apps_v1_pb2.Deployment: _default_deployment,
    apps_v1_pb2.StatefulSet: _default_stateful_set,
    apps_v1_pb2.DaemonSet: _default_daemon_set,
}

PREPARE = {
    apps_v1_pb2.ReplicaSet: shared.prepare_status,
    apps_v1_pb2.Deployment: shared.prepare_status,
    apps_v1_pb2.StatefulSet: shared.prepare_status,
    apps_v1_pb2.DaemonSet: shared.prepare_status,
}
