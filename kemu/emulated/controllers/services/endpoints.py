"""How a pod becomes an endpoint of a Service (``staging/src/k8s.io/endpointslice``, ``pkg/controller/endpoint``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from kemu import errors
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.templates import dumps
from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"

MAX_RETRIES = 15
"""So often a Service is tried again, one time after the other (``maxRetries``)."""
RETRY_S = 1.0
"""Before the first of them, for controllers of slices (``defaultSyncBackOff``)."""
WORKERS = 5
"""``--concurrent-service-endpoint-syncs``, ``--concurrent-endpoint-syncs``, ``--mirroring-concurrent-…``."""

_OFFSET, _PRIME, _MASK = 0x6C62272E07BB014262B821756295C58D, 0x0000000001000000000000000000013B, 2**128 - 1


def is_headless(service: core_v1_pb2.Service) -> bool:
    """Whether it has no address of its own (``!IsServiceIPSet``)."""
    return service.spec.clusterIP in ("", "None")


def belongs(pod: core_v1_pb2.Pod, *, terminating: bool) -> bool:
    """``ShouldPodBeInEndpoints``. ``terminating``: so do pods that are being deleted."""
    if pod_phases.is_terminal(pod) or not (pod.status.podIP or pod.status.podIPs):
        return False
    return terminating or not pod.metadata.HasField("deletionTimestamp")


def has_hostname(pod: core_v1_pb2.Pod, service: core_v1_pb2.Service) -> bool:
    """``ShouldSetHostname``."""
    return bool(pod.spec.hostname) and pod.spec.subdomain == service.metadata.name


def address(text: str) -> str:
    """An IP address as Go prints it, "" if it is none."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def addresses(pod: core_v1_pb2.Pod, family: str) -> list[str]:
    """Those of a family, ``IPv4`` or ``IPv6``."""
    found = (address(one.ip) for one in pod.status.podIPs)
    return [one for one in found if one and (":" in one) == (family == "IPv6")]


def port_number(pod: core_v1_pb2.Pod, port: core_v1_pb2.ServicePort) -> int | None:
    """Where the pod serves a port of the Service; None: nowhere (``FindPort``)."""
    target = port.targetPort
    if target.type == 0:
        return int(target.intVal)
    sidecars = (one for one in pod.spec.initContainers if one.restartPolicy == "Always")
    for container in (*pod.spec.containers, *sidecars):
        for one in container.ports:
            if one.name == target.strVal and one.protocol == port.protocol:
                return int(one.containerPort)
    return None


def reference(pod: core_v1_pb2.Pod) -> core_v1_pb2.ObjectReference:
    metadata = pod.metadata
    return core_v1_pb2.ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def ports_of(service: core_v1_pb2.Service, pod: core_v1_pb2.Pod) -> list[discovery_v1_pb2.EndpointPort]:
    """``getEndpointPorts``, in the order of their hashes."""
    found = []
    for port in service.spec.ports:
        number = port_number(pod, port)
        if number is not None:
            one = discovery_v1_pb2.EndpointPort(name=port.name, port=number, protocol=port.protocol)
            if port.HasField("appProtocol"):
                one.appProtocol = port.appProtocol
            found.append(one)
    return in_order(found)


def in_order(ports: Iterable[discovery_v1_pb2.EndpointPort]) -> list[discovery_v1_pb2.EndpointPort]:
    """In the order in which the controllers write ports (``portsInOrder``)."""
    return sorted(ports, key=lambda port: fnv128a(dumps.of("discovery.v1.EndpointPort", port)))


def port_key(ports: Iterable[discovery_v1_pb2.EndpointPort]) -> bytes:
    """Equal for equal ports, whatever their order (``NewPortMapKey``)."""
    return b"\0".join(sorted(port.SerializeToString(deterministic=True) for port in ports))


def fnv128a(text: str) -> int:
    """FNV-1a of 128 bits: by it Kubernetes orders what has no order."""
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return value


def identity(endpoint: discovery_v1_pb2.Endpoint) -> tuple[object, ...]:
    """What makes two endpoints the same one, in different states (``hashEndpoint``)."""
    target = endpoint.targetRef
    return tuple(sorted(endpoint.addresses)), endpoint.hostname, target.namespace, target.name


def is_in_same_state(one: discovery_v1_pb2.Endpoint, other: discovery_v1_pb2.Endpoint) -> bool:
    """``EndpointsEqualBeyondHash``: hints do not count."""
    for field in ("nodeName", "zone"):
        if one.HasField(field) != other.HasField(field) or getattr(one, field) != getattr(other, field):  # type: ignore[arg-type]
            return False
    return one.conditions == other.conditions and _target(one) == _target(other)


def _target(endpoint: discovery_v1_pb2.Endpoint) -> core_v1_pb2.ObjectReference | None:
    if not endpoint.HasField("targetRef"):
        return None
    found = meta.copied(endpoint.targetRef)
    found.ClearField("resourceVersion")
    return found


def is_namespace_going(error: errors.ApiError) -> bool:
    """Whether nothing can be created as the namespace is being deleted (``NamespaceTerminatingCause``)."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)
