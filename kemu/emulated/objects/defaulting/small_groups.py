"""The defaults of networking.k8s.io, discovery.k8s.io, rbac.authorization.k8s.io, flowcontrol.apiserver.k8s.io,
apiregistration.k8s.io, and of Endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.messages.k8s import (
    apiregistration_v1_pb2,
    certificates_v1_pb2,
    coordination_v1_pb2,
    core_v1_pb2,
    discovery_v1_pb2,
    flowcontrol_v1_pb2,
    networking_v1_pb2,
    rbac_v1_pb2,
)
from kemu.messages.k8s.objects import KubernetesObject

RBAC_GROUP = "rbac.authorization.k8s.io"


def _default_endpoints(endpoints: core_v1_pb2.Endpoints) -> None:
    for subset in endpoints.subsets:
        for port in subset.ports:
            port.protocol = port.protocol or "TCP"


def _default_slice(endpoint_slice: discovery_v1_pb2.EndpointSlice) -> None:
    for port in endpoint_slice.ports:
        if not port.HasField("name"):
            port.name = ""
        if not port.HasField("protocol"):
            port.protocol = "TCP"


def _default_policy(policy: networking_v1_pb2.NetworkPolicy) -> None:
    spec = policy.spec
    for ports in (*(rule.ports for rule in spec.ingress), *(rule.ports for rule in spec.egress)):
        for port in ports:
            if not port.HasField("protocol"):
                port.protocol = "TCP"
    if not spec.policyTypes:
        spec.policyTypes.append("Ingress")
        if spec.egress:
            spec.policyTypes.append("Egress")


def _default_ingress_class(ingress_class: networking_v1_pb2.IngressClass) -> None:
    spec = ingress_class.spec
    if spec.HasField("parameters") and not spec.parameters.HasField("scope"):
        spec.parameters.scope = "Cluster"


def _default_binding(binding: rbac_v1_pb2.ClusterRoleBinding | rbac_v1_pb2.RoleBinding) -> None:
    if not binding.roleRef.apiGroup:
        binding.roleRef.apiGroup = RBAC_GROUP
    for subject in binding.subjects:
        if not subject.apiGroup and subject.kind in ("User", "Group"):
            subject.apiGroup = RBAC_GROUP


def _default_schema(schema: flowcontrol_v1_pb2.FlowSchema) -> None:
    if not schema.spec.matchingPrecedence:
        schema.spec.matchingPrecedence = 1000


def _default_level(level: flowcontrol_v1_pb2.PriorityLevelConfiguration) -> None:
    spec = level.spec
    if spec.HasField("exempt"):
        _default_shares(spec.exempt, 0)
    if spec.HasField("limited"):
        _default_shares(spec.limited, 30)
        if spec.limited.limitResponse.HasField("queuing"):
            queuing = spec.limited.limitResponse.queuing
            queuing.handSize = queuing.handSize or 8
            queuing.queues = queuing.queues or 64
            queuing.queueLengthLimit = queuing.queueLengthLimit or 50


def _default_shares(
    level: flowcontrol_v1_pb2.ExemptPriorityLevelConfiguration | flowcontrol_v1_pb2.LimitedPriorityLevelConfiguration,
    shares: int,
) -> None:
    if not level.HasField("nominalConcurrencyShares"):
        level.nominalConcurrencyShares = shares
    if not level.HasField("lendablePercent"):
        level.lendablePercent = 0


def _default_api_service(service: apiregistration_v1_pb2.APIService) -> None:
    if service.spec.HasField("service") and not service.spec.service.HasField("port"):
        service.spec.service.port = 443


FILL: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.Endpoints: _default_endpoints,
    discovery_v1_pb2.EndpointSlice: _default_slice,
    networking_v1_pb2.NetworkPolicy: _default_policy,
    networking_v1_pb2.IngressClass: _default_ingress_class,
    rbac_v1_pb2.RoleBinding: _default_binding,
    rbac_v1_pb2.ClusterRoleBinding: _default_binding,
    flowcontrol_v1_pb2.FlowSchema: _default_schema,
    flowcontrol_v1_pb2.PriorityLevelConfiguration: _default_level,
    apiregistration_v1_pb2.APIService: _default_api_service,
}


def _prepare_slice(endpoint_slice: discovery_v1_pb2.EndpointSlice) -> None:
    endpoint_slice.metadata.generation = 1
    drop_topology(endpoint_slice)


def drop_topology(new: discovery_v1_pb2.EndpointSlice, old: discovery_v1_pb2.EndpointSlice | None = None) -> None:
    """Who speaks v1 cannot write it (``dropTopologyOnV1``)."""
    if old is None or list(new.endpoints) != list(old.endpoints):
        for endpoint in new.endpoints:
            endpoint.deprecatedTopology.clear()


def drop_coordination(new: coordination_v1_pb2.Lease, old: coordination_v1_pb2.Lease | None = None) -> None:
    """What only coordinated leader election uses, which is off (``leaseStrategy``)."""
    for field in ("strategy", "preferredHolder"):
        if new.spec.HasField(field) and (old is None or not old.spec.HasField(field)):
            new.spec.ClearField(field)


def _prepare_status(obj: KubernetesObject) -> None:
    obj.ClearField("status")


def _prepare_flow_object(
    obj: flowcontrol_v1_pb2.FlowSchema | flowcontrol_v1_pb2.PriorityLevelConfiguration,
) -> None:
    obj.ClearField("status")
    obj.metadata.generation = 1


PREPARE: dict[type[Message], Callable[[Any], None]] = {
    discovery_v1_pb2.EndpointSlice: _prepare_slice,
    coordination_v1_pb2.Lease: drop_coordination,
    certificates_v1_pb2.CertificateSigningRequest: _prepare_status,
    networking_v1_pb2.ServiceCIDR: _prepare_status,
    flowcontrol_v1_pb2.FlowSchema: _prepare_flow_object,
    flowcontrol_v1_pb2.PriorityLevelConfiguration: _prepare_flow_object,
    apiregistration_v1_pb2.APIService: _prepare_status,
}
