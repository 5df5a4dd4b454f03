"""The checks of Endpoints (``ValidateEndpoints``) and EndpointSlices (``pkg/apis/discovery/validation``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import IMMUTABLE, duplicate, invalid, required, too_many
from kemu.emulated.objects.validation.metadata import NameRule, check_label_key
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2

PROTOCOLS = ("SCTP", "TCP", "UDP")
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS = 1000, 100, 20_000, 8
_VERSIONS = {"IPv4": 4, "IPv6": 6}
_RESERVED = {
    "is_loopback": "may not be in the loopback range (127.0.0.0/8, ::1/128)",
    "is_link_local": "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
}


def check_reachable(address: str, path: str, found: list[Cause]) -> None:
    """``ValidateEndpointIP``: whether an address can be one of an endpoint."""
    parsed = names.parsed_address(address)
    if parsed is None:
        found.append(invalid(path, address, "must be a valid IP address"))
        return
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_unspecified:
        found.append(invalid(path, address, f"may not be unspecified ({address})"))
    found.extend(invalid(path, address, text) for kind, text in _RESERVED.items() if getattr(parsed, kind))
    head = parsed.packed
    if head[:3] == b"\xe0\0\0" if parsed.version == 4 else head[0] == 0xFF and head[1] & 0xF == 2:
        found.append(invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))


# Endpoints ----------------------------------------------------------------------------------------------------------


def _check_endpoints(endpoints: core_v1_pb2.Endpoints, found: list[Cause]) -> None:
    for index, subset in enumerate(endpoints.subsets):
        path = f"subsets[{index}]"
        if not subset.addresses and not subset.notReadyAddresses:
            found.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(getattr(subset, field)):
                _check_address(address, f"{path}.{field}[{place}]", found)
        for place, port in enumerate(subset.ports):
            _check_port(port, f"{path}.ports[{place}]", len(subset.ports) > 1, found)


def _check_endpoints_update(new: core_v1_pb2.Endpoints, old: core_v1_pb2.Endpoints, found: list[Cause]) -> None:
    # What an earlier version accepted may stay.
    if list(new.subsets) != list(old.subsets):
        _check_endpoints(new, found)


def _check_address(address: core_v1_pb2.EndpointAddress, path: str, found: list[Cause]) -> None:
    found += [invalid(f"{path}.ip", address.ip, text) for text in names.old_address(address.ip)]
    checks.name(address.hostname, f"{path}.hostname", names.dns_label, found)
    _check_node(address, path, found)
    check_reachable(address.ip, f"{path}.ip", found)


def _check_node(
    endpoint: core_v1_pb2.EndpointAddress | discovery_v1_pb2.Endpoint, path: str, found: list[Cause]
) -> None:
    if endpoint.HasField("nodeName"):
        node_name = endpoint.nodeName
        found += [invalid(f"{path}.nodeName", node_name, text) for text in names.dns_subdomain(node_name)]


def _check_port(port: core_v1_pb2.EndpointPort, path: str, needs_name: bool, found: list[Cause]) -> None:
    if needs_name and not port.name:
        found.append(required(f"{path}.name"))
    checks.name(port.name, f"{path}.name", names.dns_label, found)
    checks.port(port.port, f"{path}.port", found)
    checks.choice(port.protocol, f"{path}.protocol", PROTOCOLS, found)
    if port.HasField("appProtocol"):
        check_label_key(port.appProtocol, f"{path}.appProtocol", found)


# EndpointSlices -----------------------------------------------------------------------------------------------------


def _check_slice(endpoint_slice: discovery_v1_pb2.EndpointSlice, found: list[Cause]) -> None:
    _check_slice_ports(endpoint_slice, found)
    _check_slice_endpoints(endpoint_slice, found)


def _check_slice_update(
    new: discovery_v1_pb2.EndpointSlice, old: discovery_v1_pb2.EndpointSlice, found: list[Cause]
) -> None:
    _check_slice_ports(new, found)
    if list(new.endpoints) != list(old.endpoints):
        _check_slice_endpoints(new, found)
    if new.addressType != old.addressType:
        found.append(invalid("addressType", new.addressType, IMMUTABLE))


def _check_slice_ports(endpoint_slice: discovery_v1_pb2.EndpointSlice, found: list[Cause]) -> None:
    checks.choice(endpoint_slice.addressType, "addressType", "discovery.v1.AddressType", found)
    ports = endpoint_slice.ports
    if len(ports) > _MOST_PORTS:
        found.append(too_many("ports", len(ports), _MOST_PORTS))
        return
    seen: dict[str, None] = {}
    for index, port in enumerate(ports):
        path = f"ports[{index}]"
        checks.name(port.name, f"{path}.name", names.dns_label, found)
        checks.unique(port.name, seen, f"{path}.name", port.name, found)
        checks.listed(port.protocol, f"{path}.protocol", PROTOCOLS, found)
        if port.HasField("appProtocol"):
            check_label_key(port.appProtocol, f"{path}.appProtocol", found)


def _check_slice_endpoints(endpoint_slice: discovery_v1_pb2.EndpointSlice, found: list[Cause]) -> None:
    endpoints = endpoint_slice.endpoints
    if len(endpoints) > _MOST_ENDPOINTS:
        found.append(too_many("endpoints", len(endpoints), _MOST_ENDPOINTS))
        return
    for index, endpoint in enumerate(endpoints):
        path, addresses = f"endpoints[{index}]", endpoint.addresses
        if not addresses:
            found.append(required(f"{path}.addresses", "must contain at least 1 address"))
        elif len(addresses) > _MOST_ADDRESSES:
            found.append(too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES))
        for place, address in enumerate(addresses):
            _check_typed_address(endpoint_slice.addressType, address, f"{path}.addresses", place, found)
        _check_node(endpoint, path, found)
        if endpoint.HasField("hostname"):
            text = endpoint.hostname
            found += [invalid(f"{path}.hostname", text, problem) for problem in names.dns_label(text)]
        if endpoint.HasField("hints"):
            _check_hints(endpoint.hints, f"{path}.hints", found)


def _check_typed_address(kind: str, address: str, path: str, place: int, found: list[Cause]) -> None:
    """Of a type that is not known, addresses may be anything."""
    here = f"{path}[{place}]"
    if kind in _VERSIONS:
        problems = names.old_address(address) if kind == "IPv4" else names.address(address)
        found += [invalid(here, address, text) for text in problems]
        if not problems:
            if (6 if ":" in address else 4) != _VERSIONS[kind]:
                found.append(invalid(path, address, f"must be an {kind} address"))
            check_reachable(address, here, found)
    elif kind == "FQDN":
        part, problem = names.domain_name(address)
        if not address:
            found.append(required(here))
        elif problem:
            found.append(invalid(here, part, problem))


def _check_hints(hints: discovery_v1_pb2.EndpointHints, path: str, found: list[Cause]) -> None:
    zones, nodes = [one.name for one in hints.forZones], [one.name for one in hints.forNodes]
    for field, hinted, rule in (("forZones", zones, names.label_value), ("forNodes", nodes, names.dns_subdomain)):
        if len(hinted) > _MOST_HINTS:
            found.append(too_many(f"{path}.{field}", len(hinted), _MOST_HINTS))
            return
        _check_hinted(hinted, f"{path}.{field}", rule, found)


def _check_hinted(hinted: Iterable[str], path: str, rule: NameRule, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, name in enumerate(hinted):
        here = f"{path}[{index}].name"
        if name in seen:
            found.append(duplicate(here, name))
        seen[name] = None
        found += [invalid(here, name, text) for text in rule(name)]


RULES = {
    core_v1_pb2.Endpoints: Rules(_check_endpoints, _check_endpoints_update),
    discovery_v1_pb2.EndpointSlice: Rules(_check_slice, _check_slice_update),
}
