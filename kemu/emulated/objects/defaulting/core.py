"""The defaults of the core group without pods, and of small API groups."""

from __future__ import annotations

from kemu.emulated.objects.defaulting import pods, shared
from kemu.messages.k8s import (
    autoscaling_v2_pb2,
    core_v1_pb2,
    networking_v1_pb2,
    policy_v1_pb2,
    scheduling_v1_pb2,
    scheduling_v1alpha2_pb2,
)

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


def _default_node(node: core_v1_pb2.Node) -> None:
    status = node.status
    if status.capacity and not status.allocatable:
        for name in status.capacity:
            status.allocatable[name].string = status.capacity[name].string
    shared.round_up(status.capacity)
    shared.round_up(status.allocatable)


def _default_namespace(namespace: core_v1_pb2.Namespace) -> None:
    if namespace.metadata.name:
        namespace.metadata.labels[NAMESPACE_NAME_LABEL] = namespace.metadata.name
    if not namespace.status.phase:
        namespace.status.phase = "Active"


def _default_priority_class(priority_class: scheduling_v1_pb2.PriorityClass) -> None:
    if not priority_class.HasField("preemptionPolicy"):
        priority_class.preemptionPolicy = "PreemptLowerPriority"


CLIENT_IP_S = 10800
"""How long a Service with ``sessionAffinity: ClientIP`` remembers a client."""


def _default_service(service: core_v1_pb2.Service) -> None:
    spec = service.spec
    if not spec.sessionAffinity:
        spec.sessionAffinity = "None"
    if spec.sessionAffinity == "None":
        spec.ClearField("sessionAffinityConfig")
    elif spec.sessionAffinity == "ClientIP" and not spec.sessionAffinityConfig.clientIP.HasField("timeoutSeconds"):
        spec.sessionAffinityConfig.clientIP.timeoutSeconds = CLIENT_IP_S
    if not spec.type:
        spec.type = "ClusterIP"
    if not spec.HasField("internalTrafficPolicy") and spec.type != "ExternalName":
        spec.internalTrafficPolicy = "Cluster"
    is_seen_from_outside = spec.type in ("NodePort", "LoadBalancer") or (spec.type == "ClusterIP" and spec.externalIPs)
    if is_seen_from_outside and not spec.externalTrafficPolicy:
        spec.externalTrafficPolicy = "Cluster"
    if spec.type == "LoadBalancer" and not spec.HasField("allocateLoadBalancerNodePorts"):
        spec.allocateLoadBalancerNodePorts = True
    for one in service.status.loadBalancer.ingress if spec.type == "LoadBalancer" else ():
        if one.ip and not one.HasField("ipMode"):
            one.ipMode = "VIP"
    for port in spec.ports:
        if not port.protocol:
            port.protocol = "TCP"
        target = port.targetPort
        if not target.strVal and not target.intVal:
            target.type = 0
            target.intVal = port.port


def _default_replication_controller(controller: core_v1_pb2.ReplicationController) -> None:
    spec = controller.spec
    if spec.HasField("template"):
        pods.default_pod_spec(spec.template.spec)
    labels = spec.template.metadata.labels
    if not spec.selector:
        spec.selector.update(labels)
    if not controller.metadata.labels:
        controller.metadata.labels.update(labels)
    shared.default_replicas(spec)


def _default_pod_template(template: core_v1_pb2.PodTemplate) -> None:
    pods.default_pod_spec(template.template.spec)


def _default_secret(secret: core_v1_pb2.Secret) -> None:
    if not secret.type:
        secret.type = "Opaque"
    # Not a default, but what the conversion of every request does: stringData is for writing only.
    for key in sorted(secret.stringData):
        secret.data[key] = secret.stringData[key].encode()
    secret.ClearField("stringData")


def drop_node_configuration(node: core_v1_pb2.Node) -> None:
    """The kubelet no longer reads its configuration there (``node.dropDisabledFields``)."""
    # To clear a field of what is not there would put it there, and an empty spec is none.
    if node.spec.HasField("configSource"):
        node.spec.ClearField("configSource")
        if not node.spec.ListFields():
            node.ClearField("spec")
    if node.status.HasField("config"):
        node.status.ClearField("config")


def drop_secret_fields(account: core_v1_pb2.ServiceAccount) -> None:
    """Of its secrets an account keeps the names (``cleanSecretReferences``)."""
    for secret in account.secrets:
        name = secret.name
        secret.Clear()
        if name:
            secret.name = name


def _prepare_status_only(obj: core_v1_pb2.Service) -> None:
    """A kind without a generation."""
    obj.ClearField("status")


def _default_pod_group(group: scheduling_v1alpha2_pb2.PodGroup) -> None:
    if not group.spec.HasField("disruptionMode"):
        group.spec.disruptionMode = "Pod"


FILL = {
    core_v1_pb2.Node: _default_node,
    core_v1_pb2.Namespace: _default_namespace,
    core_v1_pb2.Service: _default_service,
    core_v1_pb2.ReplicationController: _default_replication_controller,
    core_v1_pb2.PodTemplate: _default_pod_template,
    core_v1_pb2.Secret: _default_secret,
    scheduling_v1_pb2.PriorityClass: _default_priority_class,
    scheduling_v1alpha2_pb2.PodGroup: _default_pod_group,
}

PREPARE = {
    core_v1_pb2.Node: drop_node_configuration,
    core_v1_pb2.ServiceAccount: drop_secret_fields,
    core_v1_pb2.Service: _prepare_status_only,
    core_v1_pb2.PodTemplate: shared.prepare_generation,
    networking_v1_pb2.Ingress: shared.prepare_status,
    networking_v1_pb2.IngressClass: shared.prepare_generation,
    networking_v1_pb2.NetworkPolicy: shared.prepare_generation,
    autoscaling_v2_pb2.HorizontalPodAutoscaler: _prepare_status_only,
    core_v1_pb2.ReplicationController: shared.prepare_status,
    policy_v1_pb2.PodDisruptionBudget: shared.prepare_status,
    scheduling_v1_pb2.PriorityClass: shared.prepare_generation,
    scheduling_v1alpha2_pb2.PodGroup: _prepare_status_only,
}
