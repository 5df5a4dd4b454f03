"""The addresses and ports of Services (``pkg/registry/core/service/storage``: ``Allocators``).

A step of the registry in Kubernetes, it stands in the chain of admission as it needs all other Services. Addresses and
node ports are drawn from the name of the Service, not at random, and go on to the next free one; with several API
servers, two Services that are created at the same moment can get the same.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterable, Set
from typing import Any

from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes, networks
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_SERVICES = resources.BY_PLURAL["services"]

HEADLESS = "None"
EXTERNAL, LOAD_BALANCER = "ExternalName", "LoadBalancer"
WITH_NODE_PORTS = ("NodePort", LOAD_BALANCER)

_RANGE = ipaddress.ip_network("10.96.0.0/16")
_FIRST_ADDRESS = int(_RANGE.network_address)
_ADDRESSES = range(257, (1 << 16) - 1)
"""Addresses of the range /16; the first 256 are for those that ask for one (``ServiceIPStaticSubrange``)."""
_NODE_PORTS = range(30000, 32768)


class ServiceAddresses(Plugin[core_v1_pb2.Service]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._used: Derived[tuple[frozenset[str], frozenset[int]]] = Derived(cache, "services", _used)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource is _SERVICES

    async def create(self, resource: Resource, obj: core_v1_pb2.Service) -> None:
        self._complete(obj, None)

    def update(self, resource: Resource, new: core_v1_pb2.Service, old: core_v1_pb2.Service) -> None:
        """What is not said stays as it is (``patchAllocatedValues``)."""
        spec, before = new.spec, old.spec
        if spec.clusterIP != before.clusterIP and list(spec.clusterIPs) == list(before.clusterIPs):
            # Only one of two fields that say the same has changed (``NormalizeClusterIPs``).
            spec.clusterIPs[:] = [spec.clusterIP, *spec.clusterIPs[1:]] if spec.clusterIP else []
        _drop(spec, before)
        if spec.type != EXTERNAL and before.type != EXTERNAL:
            if not spec.clusterIP and before.clusterIP != HEADLESS:
                spec.clusterIP = before.clusterIP
            if not spec.clusterIPs and spec.clusterIP == before.clusterIP:
                spec.clusterIPs.extend(before.clusterIPs)
            if not spec.HasField("ipFamilyPolicy") and before.HasField("ipFamilyPolicy"):
                spec.ipFamilyPolicy = before.ipFamilyPolicy
            if not spec.ipFamilies:
                spec.ipFamilies.extend(before.ipFamilies)
        if spec.type in WITH_NODE_PORTS and before.type in WITH_NODE_PORTS:
            kept = {one.nodePort for one in before.ports} & {one.nodePort for one in spec.ports}
            known = {one.name: one.nodePort for one in before.ports if one.nodePort not in kept}
            for port in spec.ports:
                if not port.nodePort:
                    port.nodePort = known.get(port.name, 0)
        if networks.needs_health_port(spec) and networks.needs_health_port(before) and not spec.healthCheckNodePort:
            spec.healthCheckNodePort = before.healthCheckNodePort
        self._complete(new, before)

    def _complete(self, service: core_v1_pb2.Service, before: core_v1_pb2.ServiceSpec | None) -> None:
        """``before``: None of a new one. Raises :class:`kemu.errors.Invalid`."""
        spec = service.spec
        if spec.clusterIP and not spec.clusterIPs:
            spec.clusterIPs.append(spec.clusterIP)
        if spec.type == EXTERNAL:
            return
        problems: list[Cause] = []
        _name_families(spec)
        networks.check_addresses(spec, problems)
        if not problems:
            _check_families(spec, problems)
        if problems:
            raise causes.error(service, problems)
        addresses, ports = self._used.get()
        start = zlib.crc32(f"{service.metadata.namespace}/{service.metadata.name}".encode())
        if not spec.clusterIP:
            spec.clusterIP = next((one for one in _in_turn(_ADDRESSES, start) if one not in addresses), "")
            spec.clusterIPs[:] = [spec.clusterIP] if spec.clusterIP else []
        elif spec.clusterIP != HEADLESS and (before is None or before.type == EXTERNAL):
            _check_address(spec, addresses, problems)
        own = set() if before is None else _ports_of(before)
        self._give_ports(spec, start, ports - own, own, problems)
        if problems:
            raise causes.error(service, problems)

    def _give_ports(
        self, spec: core_v1_pb2.ServiceSpec, start: int, others: Set[int], own: Set[int], problems: list[Cause]
    ) -> None:
        """``initNodePorts``, ``updateNodePorts``. ``others``: ports of other Services; ``own``: those it had."""
        if spec.type not in WITH_NODE_PORTS:
            return
        gives = spec.type != LOAD_BALANCER or spec.allocateLoadBalancerNodePorts
        stated: dict[int, str] = {}
        for index, port in enumerate(spec.ports):
            number, path = port.nodePort, f"spec.ports[{index}].nodePort"
            if not number or number in own:
                continue
            if number not in _NODE_PORTS:
                text = f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
                why = f"provided port is not in the valid range. The range of valid ports is {text}"
                problems.append(causes.invalid(path, number, why))
            elif number in others or stated.get(number) == port.protocol:
                problems.append(causes.invalid(path, number, "provided port is already allocated"))
            stated[number] = port.protocol
        taken = {*others, *_ports_of(spec)}
        known = {port.port: port.nodePort for port in spec.ports if port.nodePort}
        for port in spec.ports:
            if not port.nodePort and gives:
                # A port of two protocols has one number on nodes.
                shared = known.get(port.port, 0)
                port.nodePort = shared or next((one for one in _ports_in_turn(start) if one not in taken), 0)
                known[port.port] = port.nodePort
                taken.add(port.nodePort)
        if networks.needs_health_port(spec) and not spec.healthCheckNodePort:
            spec.healthCheckNodePort = next((one for one in _ports_in_turn(start) if one not in taken), 0)


def _drop(spec: core_v1_pb2.ServiceSpec, before: core_v1_pb2.ServiceSpec) -> None:
    """``dropTypeDependentFields``: what the new type does not have, and the client did not change."""
    if spec.type == EXTERNAL and before.type != EXTERNAL:
        if (spec.clusterIP, list(spec.clusterIPs)) == (before.clusterIP, list(before.clusterIPs)):
            spec.ClearField("clusterIP")
            del spec.clusterIPs[:]
        if list(spec.ipFamilies) == list(before.ipFamilies):
            del spec.ipFamilies[:]
        if spec.ipFamilyPolicy == before.ipFamilyPolicy:
            spec.ClearField("ipFamilyPolicy")
    had = {port.nodePort for port in before.ports}
    has_none = before.type in WITH_NODE_PORTS and spec.type not in WITH_NODE_PORTS
    if has_none and all(port.nodePort in had for port in spec.ports if port.nodePort):
        for port in spec.ports:
            port.ClearField("nodePort")
    kept = spec.healthCheckNodePort == before.healthCheckNodePort
    if networks.needs_health_port(before) and not networks.needs_health_port(spec) and kept:
        spec.ClearField("healthCheckNodePort")
    if before.type == LOAD_BALANCER and spec.type != LOAD_BALANCER:
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if getattr(spec, field) == getattr(before, field):
                spec.ClearField(field)
    kept = spec.externalTrafficPolicy == before.externalTrafficPolicy
    if networks.is_seen_from_outside(before) and not networks.is_seen_from_outside(spec) and kept:
        spec.ClearField("externalTrafficPolicy")


def _check_families(spec: core_v1_pb2.ServiceSpec, problems: list[Cause]) -> None:
    """``initIPFamilyFields``, of a cluster with IPv4 only."""
    if spec.clusterIP == HEADLESS and not spec.selector:
        return
    if spec.ipFamilyPolicy == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        problems.append(causes.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, text))
    for index, family in enumerate(spec.ipFamilies):
        if family != "IPv4":
            problems.append(causes.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))


def _check_address(spec: core_v1_pb2.ServiceSpec, taken: frozenset[str], problems: list[Cause]) -> None:
    """Of an address that the client names."""
    address, why = spec.clusterIP, ""
    if address in taken:
        why = "provided IP is already allocated"
    elif ipaddress.ip_address(address) not in _RANGE:
        why = "the provided network does not match the current range"
    if why:
        text = f"failed to allocate IP {address}: {why}"
        problems.append(causes.invalid("spec.clusterIPs", list(spec.clusterIPs), text))


def _ports_of(spec: core_v1_pb2.ServiceSpec) -> set[int]:
    found = {port.nodePort for port in spec.ports if port.nodePort}
    return found | {spec.healthCheckNodePort} if spec.healthCheckNodePort else found


def _name_families(spec: core_v1_pb2.ServiceSpec) -> None:
    """``initIPFamilyFields``, of a cluster with IPv4 only."""
    selectorless = spec.clusterIP == HEADLESS and not spec.selector
    if not spec.HasField("ipFamilyPolicy"):
        spec.ipFamilyPolicy = "RequireDualStack" if selectorless else "SingleStack"
    if not spec.ipFamilies:
        spec.ipFamilies.append("IPv6" if ":" in spec.clusterIP else "IPv4")
    if selectorless and len(spec.ipFamilies) < 2 and spec.ipFamilyPolicy != "SingleStack":
        spec.ipFamilies.append("IPv6" if spec.ipFamilies[0] == "IPv4" else "IPv4")


def _used(services: Iterable[Any]) -> tuple[frozenset[str], frozenset[int]]:
    """Addresses and node ports that are taken."""
    addresses: list[str] = []
    ports: list[int] = []
    for service in services:
        addresses += service.spec.clusterIPs
        ports += _ports_of(service.spec)
    return frozenset(addresses), frozenset(ports)


def _in_turn(numbers: range, start: int) -> Iterable[str]:
    for index in range(len(numbers)):
        number = _FIRST_ADDRESS + numbers[(start + index) % len(numbers)]
        yield ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _ports_in_turn(start: int) -> Iterable[int]:
    for index in range(len(_NODE_PORTS)):
        yield _NODE_PORTS[(start + index) % len(_NODE_PORTS)]
