"""Addresses and ports, grouped as Endpoints state them (``pkg/api/v1/endpoints``: ``RepackSubsets``)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kemu.emulated.controllers.services import endpoints
from kemu.emulated.objects import meta
from kemu.emulated.objects.templates import dumps
from kemu.messages.k8s import core_v1_pb2

MOST = 1000
"""Addresses of one Endpoints object (``maxCapacity``)."""

_NO_PORT = core_v1_pb2.EndpointPort(port=-1)
"""Stands for the ports of a subset that has none."""
Key = tuple[str, str]
"""IP address and UID of the target."""


@dataclass(slots=True)
class _Group:
    ports: list[core_v1_pb2.EndpointPort]
    ready: dict[Key, bool]


def repack(subsets: Iterable[core_v1_pb2.EndpointSubset]) -> list[core_v1_pb2.EndpointSubset]:
    """The same addresses and ports in as few subsets as possible, in Kubernetes' order. An address that is ready and
    not ready is not."""
    addresses: dict[Key, core_v1_pb2.EndpointAddress] = {}
    ports: dict[bytes, core_v1_pb2.EndpointPort] = {}
    by_port: dict[bytes, dict[Key, bool]] = {}
    for subset in subsets:
        for port in list(subset.ports) or [_NO_PORT]:
            wire = port.SerializeToString(deterministic=True)
            ports[wire] = port
            ready = by_port.setdefault(wire, {})
            for found, is_ready in ((subset.addresses, True), (subset.notReadyAddresses, False)):
                for address in found:
                    key = address.ip, address.targetRef.uid
                    addresses.setdefault(key, address)
                    ready[key] = ready.get(key, True) and is_ready
    groups: dict[tuple[tuple[Key, bool], ...], _Group] = {}
    for wire, ready in by_port.items():
        group = groups.setdefault(tuple(sorted(ready.items())), _Group([], ready))
        if ports[wire].port > 0:
            group.ports.append(ports[wire])
    made = []
    for group in groups.values():
        subset = core_v1_pb2.EndpointSubset()
        for key in sorted(group.ready):
            (subset.addresses if group.ready[key] else subset.notReadyAddresses).append(addresses[key])
        subset.ports.extend(sorted(group.ports, key=_port_hash))
        made.append(subset)
    return sorted(made, key=lambda one: endpoints.fnv128a(dumps.of("core.v1.EndpointSubset", one)))


def _port_hash(port: core_v1_pb2.EndpointPort) -> int:
    return endpoints.fnv128a(dumps.of("core.v1.EndpointPort", port))


def are_equal(one: Sequence[core_v1_pb2.EndpointSubset], other: Sequence[core_v1_pb2.EndpointSubset]) -> bool:
    """Versions of the pods do not count (``endpointSubsetsEqualIgnoreResourceVersion``)."""
    return [_without_versions(subset) for subset in one] == [_without_versions(subset) for subset in other]


def _without_versions(subset: core_v1_pb2.EndpointSubset) -> core_v1_pb2.EndpointSubset:
    copy = meta.copied(subset)
    for address in (*copy.addresses, *copy.notReadyAddresses):
        if address.HasField("targetRef"):
            address.targetRef.ClearField("resourceVersion")
    return copy


def count(subsets: Iterable[core_v1_pb2.EndpointSubset]) -> int:
    return sum(len(subset.addresses) + len(subset.notReadyAddresses) for subset in subsets)


def truncate(subsets: Sequence[core_v1_pb2.EndpointSubset]) -> bool:
    """Leave at most a thousand addresses, those that are ready before the others, in place
    (``truncateEndpoints``)."""
    ready = sum(len(subset.addresses) for subset in subsets)
    unready = count(subsets) - ready
    if ready + unready <= MOST:
        return False
    by_ready = ready > MOST
    room, total = (MOST, ready) if by_ready else (MOST - ready, unready)
    left = room
    for subset in subsets:
        kept = subset.addresses if by_ready else subset.notReadyAddresses
        share = min(left, math.ceil(len(kept) / total * room))
        del kept[share:]
        left -= len(kept)
        if by_ready:
            del subset.notReadyAddresses[:]
    return True
