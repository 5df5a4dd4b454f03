"""Which volume suits a claim, and which node a volume.

Mirrors ``FindMatchingVolume``, ``CheckNodeAffinity`` and their helpers (``k8s.io/component-helpers/storage/volume``)
and ``MatchTopologySelectorTerms`` (``pkg/apis/core/v1/helper``).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from kemu.emulated.objects import selectors
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2


def find(
    claim: core_v1_pb2.PersistentVolumeClaim,
    volumes: Iterable[core_v1_pb2.PersistentVolume],
    node: tuple[Mapping[str, str], str] | None = None,
    excluded: Container[str] = (),
    *,
    delays: bool = False,
) -> core_v1_pb2.PersistentVolume | None:
    """The volume to bind to a claim: one that is bound to it already, else the smallest that is large enough.

    ``node``: labels and name, where the scheduler asks. ``delays``: the claim's class waits for the first consumer, so
    that only a scheduler may choose among free volumes. ``excluded``: names of volumes chosen for other claims.
    """
    request = claims.requested(claim)
    wanted_class = claims.class_of_claim(claim)
    selector = selectors.compile_labels_field(claim.spec, "selector") if claim.spec.HasField("selector") else None
    smallest, smallest_capacity = None, None
    for volume in volumes:
        if volume.metadata.name in excluded:
            continue
        bound = claims.is_bound_to(volume, claim)
        if volume.spec.HasField("claimRef") and not bound:
            continue
        capacity = claims.capacity(volume)
        if capacity < request or modes_differ(claim, volume):
            continue
        if claim.spec.volumeAttributesClassName != volume.spec.volumeAttributesClassName:
            continue
        if volume.metadata.HasField("deletionTimestamp"):
            continue
        reachable = node is None or is_reachable(volume, *node)
        if bound:
            return volume if reachable else None
        if node is None and delays:
            continue
        if volume.status.phase != claims.AVAILABLE:
            continue
        if selector is not None and not selector.matches(volume.metadata.labels):
            continue
        if claims.class_of_volume(volume) != wanted_class or not reachable:
            continue
        if node is not None and not has_access_modes(claim, volume):
            continue
        if smallest_capacity is None or capacity < smallest_capacity:
            smallest, smallest_capacity = volume, capacity
    return smallest


def modes_differ(claim: core_v1_pb2.PersistentVolumeClaim, volume: core_v1_pb2.PersistentVolume) -> bool:
    """``CheckVolumeModeMismatches``."""
    return (claim.spec.volumeMode or claims.FILESYSTEM) != (volume.spec.volumeMode or claims.FILESYSTEM)


def has_access_modes(claim: core_v1_pb2.PersistentVolumeClaim, volume: core_v1_pb2.PersistentVolume) -> bool:
    """Whether the volume has all access modes that the claim asks for (``CheckAccessModes``)."""
    return all(mode in volume.spec.accessModes for mode in claim.spec.accessModes)


def is_reachable(volume: core_v1_pb2.PersistentVolume, labels: Mapping[str, str], name: str = "") -> bool:
    """Whether a node with these labels reaches the volume (``CheckNodeAffinity``, which knows no names)."""
    affinity = volume.spec.nodeAffinity
    if not volume.spec.HasField("nodeAffinity") or not affinity.HasField("required"):
        return True
    return selectors.NodeSelector(affinity.required).matches(labels, "")


def allows_topology(terms: Iterable[Any], labels: Mapping[str, str]) -> bool:
    """Whether volumes may be created for a node with these labels (``MatchTopologySelectorTerms``)."""
    found = False
    for term in terms:
        found = True
        expressions = term.matchLabelExpressions
        if expressions and all(one.key in labels and labels[one.key] in one.values for one in expressions):
            return True
    return not found
