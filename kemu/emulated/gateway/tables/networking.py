"""The groups networking.k8s.io and discovery.k8s.io."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.gateway.tables import core, texts
from kemu.emulated.gateway.tables.printers import AGE, NAME, Cell, Column, Printer
from kemu.messages.k8s import discovery_v1_pb2, networking_v1_pb2

_SHOWN = 3
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _ingress(ingress: networking_v1_pb2.Ingress, now_ns: int) -> list[Cell]:
    spec = ingress.spec
    return [
        ingress.metadata.name,
        texts.optional(spec, "ingressClassName", texts.NONE),
        _hosts(spec.rules),
        core.load_balancer(ingress.status.loadBalancer),
        "80, 443" if spec.tls else "80",
        texts.age(ingress, now_ns),
    ]


def _hosts(rules: Sequence[networking_v1_pb2.IngressRule]) -> str:
    """``formatHosts``: a rule without a host takes no room, but counts among those that are left out."""
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == _SHOWN
        if not more and rule.host:
            hosts.append(rule.host)
    if not hosts:
        return "*"
    shown = ",".join(hosts)
    return f"{shown} + {len(rules) - _SHOWN} more..." if more else shown


def _ingress_class(ingress_class: networking_v1_pb2.IngressClass, now_ns: int) -> list[Cell]:
    metadata, spec = ingress_class.metadata, ingress_class.spec
    name = metadata.name
    if metadata.annotations.get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    parameters = texts.NONE
    if spec.HasField("parameters"):
        group = f".{spec.parameters.apiGroup}" if spec.parameters.HasField("apiGroup") else ""
        parameters = f"{spec.parameters.kind}{group}/{spec.parameters.name}"
    return [name, spec.controller, parameters, texts.age(ingress_class, now_ns)]


def _network_policy(policy: networking_v1_pb2.NetworkPolicy, now_ns: int) -> list[Cell]:
    spec = policy.spec
    pods = texts.selector(spec, "podSelector") if spec.HasField("podSelector") else texts.NONE
    return [policy.metadata.name, pods, texts.age(policy, now_ns)]


def _endpoint_slice(endpoint_slice: discovery_v1_pb2.EndpointSlice, now_ns: int) -> list[Cell]:
    ports = [
        str(port.port) if port.HasField("port") else port.name if port.HasField("name") else "*"
        for port in endpoint_slice.ports
    ]
    return [
        endpoint_slice.metadata.name,
        endpoint_slice.addressType,
        texts.some(ports),
        texts.some(address for endpoint in endpoint_slice.endpoints for address in endpoint.addresses),
        texts.age(endpoint_slice, now_ns),
    ]


def _address(address: networking_v1_pb2.IPAddress, now_ns: int) -> list[Cell]:
    """``printIPAddress``, which prints an age without a column."""
    parent = address.spec.parentRef
    reference = texts.NONE
    if address.spec.HasField("parentRef"):
        kind = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
        namespace = f"/{parent.namespace}" if parent.namespace else ""
        reference = f"{kind.lower()}{namespace}/{parent.name}"
    return [address.metadata.name, reference, texts.age(address, now_ns)]


def _service_range(service_range: networking_v1_pb2.ServiceCIDR, now_ns: int) -> list[Cell]:
    return [service_range.metadata.name, ",".join(service_range.spec.cidrs), texts.age(service_range, now_ns)]


PRINTERS = {
    networking_v1_pb2.IPAddress: Printer((NAME, Column("ParentRef", "Object that has the address.")), _address),
    networking_v1_pb2.ServiceCIDR: Printer(
        (NAME, Column("CIDRs", "Ranges of addresses."), AGE),
        _service_range,
    ),
    networking_v1_pb2.Ingress: Printer(
        (
            NAME,
            Column("Class", "Class of the ingress."),
            Column("Hosts", "Hosts of its rules."),
            Column("Address", "Addresses of the load balancer."),
            Column("Ports", "Ports that are open."),
            AGE,
        ),
        _ingress,
    ),
    networking_v1_pb2.IngressClass: Printer(
        (
            NAME,
            Column("Controller", "Controller of ingresses of this class."),
            Column("Parameters", "Object that holds its parameters."),
            AGE,
        ),
        _ingress_class,
    ),
    networking_v1_pb2.NetworkPolicy: Printer(
        (NAME, Column("Pod-Selector", "Pods to which the policy applies."), AGE), _network_policy
    ),
    discovery_v1_pb2.EndpointSlice: Printer(
        (
            NAME,
            Column("AddressType", "IPv4, IPv6 or FQDN."),
            Column("Ports", "Ports of the endpoints."),
            Column("Endpoints", "Addresses of the endpoints."),
            AGE,
        ),
        _endpoint_slice,
    ),
}
