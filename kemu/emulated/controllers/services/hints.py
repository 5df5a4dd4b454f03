"""Which zones and nodes an endpoint is for: hints by the traffic distribution of a Service
(``endpointslice/trafficdist``). The annotation ``service.kubernetes.io/topology-mode`` sets none."""

from __future__ import annotations

from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2

DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
TOPOLOGY_MODES = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
"""Annotations that take precedence over a traffic distribution where they say ``Auto``."""


def are_wanted(service: core_v1_pb2.Service) -> bool:
    found = next(
        (service.metadata.annotations[key] for key in TOPOLOGY_MODES if key in service.metadata.annotations), ""
    )
    return service.spec.trafficDistribution in DISTRIBUTIONS and found not in ("Auto", "auto")


def put(service: core_v1_pb2.Service, found: discovery_v1_pb2.EndpointSlice) -> bool:
    """Set the hints of a slice, or take them off, in place. Returns whether anything changed."""
    wanted, by_node = are_wanted(service), service.spec.trafficDistribution == "PreferSameNode"
    changed = False
    for endpoint in found.endpoints:
        if wanted and not endpoint.conditions.ready:
            continue
        hints = discovery_v1_pb2.EndpointHints()
        if wanted and endpoint.HasField("zone"):
            hints.forZones.add(name=endpoint.zone)
        if wanted and by_node and endpoint.HasField("nodeName"):
            hints.forNodes.add(name=endpoint.nodeName)
        if hints.forZones or hints.forNodes:
            if endpoint.hints != hints:
                endpoint.hints.CopyFrom(hints)
                changed = True
        elif endpoint.HasField("hints"):
            endpoint.ClearField("hints")
            changed = True
    return changed
