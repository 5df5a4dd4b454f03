"""The addresses and ports of Services (``pkg/registry/core/service/storage``: ``Allocators``).

A step of the registry in Kubernetes, it stands in the chain of admission as it needs all other Services. Addresses and
node ports are drawn from the name of the Service, not at random, and go on to the next free one; with several API
servers, two Services that are created at the same moment can get the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from kemu.emulated.apiserver.admission.base import Derived, Plugin
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

_SERVICES = resources.BY_PLURAL["services"]

HEADLESS = "None"
EXTERNAL, LOAD_BALANCER = "ExternalName", "LoadBalancer"
WITH_NODE_PORTS = ("NodePort", LOAD_BALANCER)

_FIRST_ADDRESS = 10 << 24 | 96 << 16
"""10.96.0.0"""
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
        self._complete(obj)

    def update(self, resource: Resource, new: core_v1_pb2.Service, old: core_v1_pb2.Service) -> None:
        """What is not said stays as it is (``patchAllocatedValues``)."""
        spec, before = new.spec, old.spec
        if spec.type != EXTERNAL and before.type != EXTERNAL:
            if not spec.clusterIP and before.clusterIP != HEADLESS:
                spec.clusterIP = before.clusterIP
            if not spec.clusterIPs and spec.clusterIP == before.clusterIP:
                spec.clusterIPs.extend(before.clusterIPs)
            if not spec.HasField("ipFamilyPolicy") and before.HasField("ipFamilyPolicy"):
                spec.ipFamilyPolicy = before.ipFamilyPolicy
            if not spec.ipFamilies:
                spec.ipFamilies.extend(before.ipFamilies)
        if spec.type in WITH_NODE_PORTS:
            known = {(one.protocol, one.port): one.nodePort for one in before.ports}
            for port in spec.ports:
                if not port.nodePort:
                    port.nodePort = known.get((port.protocol, port.port), 0)
        self._complete(new)

    def _complete(self, service: core_v1_pb2.Service) -> None:
        spec = service.spec
        if spec.type == EXTERNAL:
            return
        if spec.clusterIP and not spec.clusterIPs:
            spec.clusterIPs.append(spec.clusterIP)
        elif spec.clusterIPs and not spec.clusterIP:
            spec.clusterIP = spec.clusterIPs[0]
        _name_families(spec)
        addresses, ports = self._used.get()
        start = zlib.crc32(f"{service.metadata.namespace}/{service.metadata.name}".encode())
        if not spec.clusterIP:
            spec.clusterIP = next((one for one in _in_turn(_ADDRESSES, start) if one not in addresses), "")
            spec.clusterIPs[:] = [spec.clusterIP] if spec.clusterIP else []
        if spec.type in WITH_NODE_PORTS and (spec.type != LOAD_BALANCER or spec.allocateLoadBalancerNodePorts):
            taken = {*ports, *(port.nodePort for port in spec.ports)}
            for port in spec.ports:
                if not port.nodePort:
                    port.nodePort = next((one for one in _ports_in_turn(start) if one not in taken), 0)
                    taken.add(port.nodePort)


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
        ports += [port.nodePort for port in service.spec.ports]
    return frozenset(addresses), frozenset(ports)


def _in_turn(numbers: range, start: int) -> Iterable[str]:
    for index in range(len(numbers)):
        number = _FIRST_ADDRESS + numbers[(start + index) % len(numbers)]
        yield ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _ports_in_turn(start: int) -> Iterable[int]:
    for index in range(len(_NODE_PORTS)):
        yield _NODE_PORTS[(start + index) % len(_NODE_PORTS)]
