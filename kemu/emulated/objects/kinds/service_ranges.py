"""ServiceCIDRs, the ranges of the addresses of Services, and IPAddresses, one for each address that is taken
(``pkg/api/servicecidr``, ``pkg/registry/core/service/ipallocator``)."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable
from typing import Any

from kemu.emulated.objects import times
from kemu.messages.k8s import core_v1_pb2, networking_v1_pb2
from kemu.messages.k8s.networking_v1_pb2 import ServiceCIDR

DEFAULT = "kubernetes"
"""The range that the API server makes."""
USUAL = ("10.96.0.0/16",)
"""What it is where nothing else is said."""
READY, TERMINATING = "Ready", "Terminating"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
FAMILY, MANAGED_BY = "ipaddress.kubernetes.io/ip-family", "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

address = functools.lru_cache(10_000)(ipaddress.ip_address)
network = functools.lru_cache(1_000)(ipaddress.ip_network)


def family(text: str) -> str:
    """Of an address or a range."""
    return "IPv6" if ":" in text else "IPv4"


def first(cidr: str) -> str:
    """The address of the Service ``kubernetes``, where that is the first range."""
    return str(network(cidr).network_address + 1)


def mistake(cidr: str) -> str:
    """Why it is no range of addresses; empty: it is one."""
    try:
        network(cidr)
    except ValueError as error:
        return str(error)
    return ""


def holds(cidr: str, one: Address) -> bool:
    """Whether the range gives that address: not its first, nor the last of IPv4 (``PrefixContainsIP``)."""
    whole = network(cidr)
    if one not in whole or one == whole.network_address:
        return False
    return whole.version == 6 or one != whole.broadcast_address


def containing(ranges: Iterable[ServiceCIDR], one: Address) -> list[str]:
    """The names of the ranges that hold it (``ContainsAddress``)."""
    return [each.metadata.name for each in ranges if any(holds(cidr, one) for cidr in each.spec.cidrs)]


def is_managed(one: networking_v1_pb2.IPAddress) -> bool:
    """Whether the API server has made it for a Service."""
    return one.metadata.labels.get(MANAGED_BY) == ALLOCATOR


def has_right_labels(one: networking_v1_pb2.IPAddress) -> bool:
    return is_managed(one) and one.metadata.labels.get(FAMILY) == family(one.metadata.name)


def of_service(name: str, service: core_v1_pb2.Service) -> networking_v1_pb2.IPAddress:
    """The address of that name, of a Service."""
    made = networking_v1_pb2.IPAddress()
    made.metadata.name = name
    made.metadata.labels.update({FAMILY: family(name), MANAGED_BY: ALLOCATOR})
    parent = made.spec.parentRef
    parent.resource, parent.namespace, parent.name = "services", service.metadata.namespace, service.metadata.name
    return made


def stating(name: str, status: str, message: str, unix_ns: int, **reason: str) -> dict[str, Any]:
    """What applies the condition Ready of the range of that name."""
    seconds = unix_ns // 1_000_000_000
    condition = {
        "type": READY,
        "status": status,
        **reason,
        "message": message,
        "lastTransitionTime": times.format_time(seconds),
    }
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}}
    return {**head, "status": {"conditions": [condition]}}
