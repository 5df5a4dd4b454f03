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
    _default_amounts(spec.strategy, "25%", "25%")
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
    if strategy.HasField("rollingUpdate"):
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
    _default_amounts(spec.updateStrategy, 1, 0)
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10


def _default_amounts(
    strategy: apps_v1_pb2.DeploymentStrategy | apps_v1_pb2.DaemonSetUpdateStrategy,
    unavailable: int | str,
    surge: int | str,
) -> None:
    """A strategy of another type gets none; but where it has a place for them, they are 0, as in the API server's own
    types."""
    if strategy.type != "RollingUpdate":
        if not strategy.HasField("rollingUpdate"):
            return
        unavailable = surge = 0
    rolling = strategy.rollingUpdate
    if not rolling.HasField("maxUnavailable"):
        shared.set_int_or_string(rolling.maxUnavailable, unavailable)
    if not rolling.HasField("maxSurge"):
        shared.set_int_or_string(rolling.maxSurge, surge)


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
