"""What the API server fills in when an object is created.

:func:`apply` mirrors the defaulting of the API types (``pkg/apis/*/v1/defaults.go`` of Kubernetes): absent fields get
their documented defaults. :func:`prepare_create` mirrors the create strategies (``pkg/registry``), which set what users
may not set. Priority, default tolerations and overhead come from admission plugins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from google.protobuf.message import Message

from kemu.k8s import apps_v1_pb2, batch_v1_pb2, core_v1_pb2, meta_v1_pb2, policy_v1_pb2, scheduling_v1_pb2
from kemu.objects.amounts import qos, quantities, requests

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_GRACE_PERIOD_S = 30
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

_MILLI_NANO = 1_000_000


def apply(obj: Message) -> None:
    """Fill in the defaults, in place. Objects of kinds without defaults stay as they are.

    Quantities that cannot be parsed stay as they are; validation refuses them later.
    """
    fill = _FILL.get(type(obj))
    if fill is not None:
        fill(obj)


def prepare_create(obj: Message) -> None:
    """Set the fields that belong to the server, in place: generation and initial status.

    A pod becomes Pending and gets its QoS class; its ``matchLabelKeys`` are merged into its selectors. Call it after
    :func:`apply` and before validation.
    """
    prepare = _PREPARE.get(type(obj))
    if prepare is not None:
        prepare(obj)


# Pods ---------------------------------------------------------------------------------------------------------------


def _default_pod(pod: Any) -> None:
    spec = pod.spec
    spec.ParseFromString(_filled_in(spec.SerializeToString(deterministic=True)))


@lru_cache(1024)
def _filled_in(spec_bytes: bytes) -> bytes:
    """The spec of a pod with its defaults. Cached, because most pods are copies of one spec."""
    pod: Any = core_v1_pb2.Pod()
    spec = pod.spec
    spec.ParseFromString(spec_bytes)
    _default_pod_spec(spec)
    for container in spec.containers:
        if container.HasField("resources"):
            _default_requests(container.resources)
    for container in spec.initContainers:
        if container.HasField("resources"):
            _default_requests(container.resources)
    if spec.HasField("resources"):
        _default_pod_resources(pod)
    if not spec.HasField("enableServiceLinks"):
        spec.enableServiceLinks = True
    if spec.hostNetwork:
        for containers in (spec.containers, spec.initContainers):
            for container in containers:
                for port in container.ports:
                    if not port.hostPort:
                        port.hostPort = port.containerPort
    filled_in: bytes = spec.SerializeToString(deterministic=True)
    return filled_in


def _default_pod_spec(spec: Any) -> None:
    """The defaults that pods and pod templates share."""
    for container in spec.containers:
        _default_container(container)
    for container in spec.initContainers:
        _default_container(container)
    for container in spec.ephemeralContainers:
        _default_container(container.ephemeralContainerCommon)
    for volume in spec.volumes:
        _default_volume(volume)
    if spec.overhead:
        _round_up(spec.overhead)
    if not spec.dnsPolicy:
        spec.dnsPolicy = "ClusterFirst"
    if not spec.restartPolicy:
        spec.restartPolicy = "Always"
    if not spec.HasField("securityContext"):
        spec.securityContext.SetInParent()
    if not spec.HasField("terminationGracePeriodSeconds"):
        spec.terminationGracePeriodSeconds = DEFAULT_GRACE_PERIOD_S
    if not spec.schedulerName:
        spec.schedulerName = DEFAULT_SCHEDULER
    # The old and the new name of the field always hold the same value.
    if spec.serviceAccountName:
        spec.serviceAccount = spec.serviceAccountName
    elif spec.serviceAccount:
        spec.serviceAccountName = spec.serviceAccount


def _default_container(container: Any) -> None:
    if not container.imagePullPolicy:
        container.imagePullPolicy = _pull_policy(container.image)
    if not container.terminationMessagePath:
        container.terminationMessagePath = "/dev/termination-log"
    if not container.terminationMessagePolicy:
        container.terminationMessagePolicy = "File"
    if container.HasField("resources"):
        _round_up(container.resources.requests)
        _round_up(container.resources.limits)
    for port in container.ports:
        if not port.protocol:
            port.protocol = "TCP"
    for variable in container.env:
        if variable.valueFrom.HasField("fieldRef") and not variable.valueFrom.fieldRef.apiVersion:
            variable.valueFrom.fieldRef.apiVersion = "v1"
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.HasField(name):
            _default_probe(getattr(container, name))
    if container.HasField("lifecycle"):
        for name in ("postStart", "preStop"):
            if container.lifecycle.HasField(name):
                _default_http_get(getattr(container.lifecycle, name))


@lru_cache(4096)
def _pull_policy(image: str) -> str:
    """``Always`` for an image of tag ``latest`` or without tag and digest, else ``IfNotPresent``."""
    if not image:
        return "IfNotPresent"
    last = image.rpartition("/")[2]
    if "@" in last:
        return "IfNotPresent"
    _, colon, tag = last.partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _default_probe(probe: Any) -> None:
    _default_http_get(probe.handler)
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not getattr(probe, name):
            setattr(probe, name, value)


def _default_http_get(handler: Any) -> None:
    if handler.HasField("httpGet"):
        if not handler.httpGet.path:
            handler.httpGet.path = "/"
        if not handler.httpGet.scheme:
            handler.httpGet.scheme = "HTTP"


def _default_volume(volume: Any) -> None:
    source = volume.volumeSource
    if not source.ListFields():
        source.emptyDir.SetInParent()
        return
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if source.HasField(name) and not getattr(source, name).HasField("defaultMode"):
            getattr(source, name).defaultMode = 0o644
    if source.HasField("hostPath") and not source.hostPath.HasField("type"):
        source.hostPath.type = ""
    if source.HasField("image") and not source.image.pullPolicy:
        source.image.pullPolicy = _pull_policy(source.image.reference)


def _default_requests(resources: Any) -> None:
    """A limit without a request becomes the request."""
    limits, wanted = resources.limits, resources.requests
    for name in limits:
        if name not in wanted:
            wanted[name].string = limits[name].string


def _default_pod_resources(pod: Any) -> None:
    """Pod-level limits without requests: the sum of the containers' requests becomes the request, else the limit."""
    resources = pod.spec.resources
    _round_up(resources.requests)
    _round_up(resources.limits)
    if not resources.limits:
        return
    wanted = resources.requests
    try:
        together = requests.container_requests(pod.spec)
    except ValueError:
        return
    for name, amount in together.items():
        if name in (requests.CPU, requests.MEMORY) and name not in wanted:
            wanted[name].string = str(amount)
    for name in resources.limits:
        if name not in wanted and requests.is_pod_level_resource(name):
            wanted[name].string = resources.limits[name].string


def _round_up(amounts: Any) -> None:
    """Kubernetes stores amounts in thousandths at the finest."""
    for name in amounts:
        text = amounts[name].string
        rounded = _milli_text(text)
        if rounded is not text:
            amounts[name].string = rounded


@lru_cache(65_536)
def _milli_text(text: str) -> str:
    """The text itself where it has no part below a thousandth."""
    try:
        quantity = quantities.parse(text)
    except ValueError:
        return text
    if quantity.nano % _MILLI_NANO == 0:
        return text
    return str(quantities.Quantity(quantity.milli * _MILLI_NANO, quantity.format))


def _prepare_pod(pod: Any) -> None:
    pod.metadata.generation = 1
    pod.ClearField("status")
    status = pod.status
    status.phase = "Pending"
    try:
        status.qosClass = qos.computed_qos_class(pod)
    except ValueError:
        status.ClearField("qosClass")  # A bad quantity: validation refuses the pod.
    spec = pod.spec
    if spec.schedulingGates:
        status.conditions.add(
            type="PodScheduled",
            status="False",
            reason="SchedulingGated",
            message="Scheduling is blocked due to non-empty scheduling gates",
        )
    if spec.HasField("affinity"):
        for affinity in (spec.affinity.podAffinity, spec.affinity.podAntiAffinity):
            for term in affinity.requiredDuringSchedulingIgnoredDuringExecution:
                _merge_label_keys(pod, term, term.mismatchLabelKeys)
            for weighted in affinity.preferredDuringSchedulingIgnoredDuringExecution:
                _merge_label_keys(pod, weighted.podAffinityTerm, weighted.podAffinityTerm.mismatchLabelKeys)
    for constraint in spec.topologySpreadConstraints:
        _merge_label_keys(pod, constraint, ())


def _merge_label_keys(pod: Any, term: Any, mismatch_keys: Any) -> None:
    """Turn the pod's own values of ``matchLabelKeys`` and ``mismatchLabelKeys`` into requirements of the selector."""
    if not term.HasField("labelSelector"):
        return
    labels = pod.metadata.labels
    for keys, operator in ((term.matchLabelKeys, "In"), (mismatch_keys, "NotIn")):
        for key in keys:
            if key in labels:
                term.labelSelector.matchExpressions.add(key=key, operator=operator, values=[labels[key]])


# Other kinds ----------------------------------------------------------------------------------------------------------


def _default_node(node: Any) -> None:
    status = node.status
    if status.capacity and not status.allocatable:
        for name in status.capacity:
            status.allocatable[name].string = status.capacity[name].string


def _default_namespace(namespace: Any) -> None:
    if namespace.metadata.name:
        namespace.metadata.labels[NAMESPACE_NAME_LABEL] = namespace.metadata.name
    if not namespace.status.phase:
        namespace.status.phase = "Active"


def _default_priority_class(priority_class: Any) -> None:
    if not priority_class.preemptionPolicy:
        priority_class.preemptionPolicy = "PreemptLowerPriority"


def _default_service(service: Any) -> None:
    spec = service.spec
    if not spec.sessionAffinity:
        spec.sessionAffinity = "None"
    if not spec.type:
        spec.type = "ClusterIP"
    if not spec.HasField("internalTrafficPolicy") and spec.type != "ExternalName":
        spec.internalTrafficPolicy = "Cluster"
    for port in spec.ports:
        if not port.protocol:
            port.protocol = "TCP"
        target = port.targetPort
        if not target.strVal and not target.intVal:
            target.type = 0
            target.intVal = port.port


def _default_replication_controller(controller: Any) -> None:
    spec = controller.spec
    _default_pod_spec(spec.template.spec)
    labels = spec.template.metadata.labels
    if not spec.selector:
        spec.selector.update(labels)
    if not controller.metadata.labels:
        controller.metadata.labels.update(labels)
    _default_replicas(spec)


def _default_replica_set(replica_set: Any) -> None:
    _default_pod_spec(replica_set.spec.template.spec)
    if not replica_set.metadata.labels:
        replica_set.metadata.labels.update(replica_set.spec.template.metadata.labels)
    _default_replicas(replica_set.spec)


def _default_deployment(deployment: Any) -> None:
    spec = deployment.spec
    _default_pod_spec(spec.template.spec)
    _default_replicas(spec)
    if not spec.strategy.type:
        spec.strategy.type = "RollingUpdate"
    if spec.strategy.type == "RollingUpdate":
        rolling = spec.strategy.rollingUpdate
        for name in ("maxUnavailable", "maxSurge"):
            if not rolling.HasField(name):
                _set_int_or_string(getattr(rolling, name), "25%")
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10
    if not spec.HasField("progressDeadlineSeconds"):
        spec.progressDeadlineSeconds = 600


def _default_stateful_set(stateful_set: Any) -> None:
    spec = stateful_set.spec
    _default_pod_spec(spec.template.spec)
    _default_replicas(spec)
    if not spec.podManagementPolicy:
        spec.podManagementPolicy = "OrderedReady"
    if not spec.updateStrategy.type:
        spec.updateStrategy.type = "RollingUpdate"
    if spec.updateStrategy.type == "RollingUpdate" and not spec.updateStrategy.rollingUpdate.HasField("partition"):
        spec.updateStrategy.rollingUpdate.partition = 0
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10
    retention = spec.persistentVolumeClaimRetentionPolicy
    for name in ("whenDeleted", "whenScaled"):
        if not getattr(retention, name):
            setattr(retention, name, "Retain")


def _default_daemon_set(daemon_set: Any) -> None:
    spec = daemon_set.spec
    _default_pod_spec(spec.template.spec)
    if not spec.updateStrategy.type:
        spec.updateStrategy.type = "RollingUpdate"
    if spec.updateStrategy.type == "RollingUpdate":
        rolling = spec.updateStrategy.rollingUpdate
        for name, number in (("maxUnavailable", 1), ("maxSurge", 0)):
            if not rolling.HasField(name):
                _set_int_or_string(getattr(rolling, name), number)
    if not spec.HasField("revisionHistoryLimit"):
        spec.revisionHistoryLimit = 10


def _default_job(job: Any) -> None:
    spec = job.spec
    _default_pod_spec(spec.template.spec)
    if not spec.HasField("completions") and not spec.HasField("parallelism"):
        spec.completions = 1
    if not spec.HasField("parallelism"):
        spec.parallelism = 1
    if not spec.HasField("backoffLimit"):
        # With a limit for each index, the job as a whole has practically none.
        spec.backoffLimit = 2**31 - 1 if spec.HasField("backoffLimitPerIndex") else 6
    if not spec.completionMode:
        spec.completionMode = "NonIndexed"
    if not spec.HasField("suspend"):
        spec.suspend = False
    if not spec.HasField("manualSelector"):
        spec.manualSelector = False
    if not spec.podReplacementPolicy:
        spec.podReplacementPolicy = "Failed" if spec.HasField("podFailurePolicy") else "TerminatingOrFailed"
    if not job.metadata.labels:
        job.metadata.labels.update(spec.template.metadata.labels)


def _default_replicas(spec: Any) -> None:
    if not spec.HasField("replicas"):
        spec.replicas = 1


def _set_int_or_string(target: meta_v1_pb2.IntOrString, value: int | str) -> None:
    if isinstance(value, int):
        target.type, target.intVal = 0, value
    else:
        target.type, target.strVal = 1, value


def _prepare_status(obj: Any) -> None:
    """A kind with a spec that users write and a status that controllers write."""
    obj.metadata.generation = 1
    obj.ClearField("status")


def _prepare_generation(obj: Any) -> None:
    obj.metadata.generation = 1


_FILL: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.Pod: _default_pod,
    core_v1_pb2.Node: _default_node,
    core_v1_pb2.Namespace: _default_namespace,
    core_v1_pb2.Service: _default_service,
    core_v1_pb2.ReplicationController: _default_replication_controller,
    scheduling_v1_pb2.PriorityClass: _default_priority_class,
    apps_v1_pb2.ReplicaSet: _default_replica_set,
    apps_v1_pb2.Deployment: _default_deployment,
    apps_v1_pb2.StatefulSet: _default_stateful_set,
    apps_v1_pb2.DaemonSet: _default_daemon_set,
    batch_v1_pb2.Job: _default_job,
}

_PREPARE: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.Pod: _prepare_pod,
    core_v1_pb2.ReplicationController: _prepare_status,
    policy_v1_pb2.PodDisruptionBudget: _prepare_status,
    scheduling_v1_pb2.PriorityClass: _prepare_generation,
    apps_v1_pb2.ReplicaSet: _prepare_status,
    apps_v1_pb2.Deployment: _prepare_status,
    apps_v1_pb2.StatefulSet: _prepare_status,
    apps_v1_pb2.DaemonSet: _prepare_status,
    batch_v1_pb2.Job: _prepare_status,
}
