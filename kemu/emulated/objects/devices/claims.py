"""Which ResourceClaims a pod uses, whose they are, and for whom they are reserved.

Mirrors ``k8s.io/dynamic-resource-allocation/resourceclaim`` with the feature gates of v1.36.
"""

from __future__ import annotations

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The claim is allocated: it must not go before it is deallocated."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: its name in the pod's spec."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that the scheduler made for extended resources."""

DeviceKey = tuple[str, str, str, str]
"""Driver, pool, device, share."""


class NotMade(Exception):
    """The claim is to be generated from a template, and has not been yet. The text is Kubernetes'."""


def name_of(pod: core_v1_pb2.Pod, claim: core_v1_pb2.PodResourceClaim) -> tuple[str | None, bool]:
    """The name of the ResourceClaim behind an entry of the pod's spec, and whether its owner must be checked; None: the
    pod needs none. Raises NotMade."""
    if claim.HasField("resourceClaimName"):
        return claim.resourceClaimName, False
    for status in pod.status.resourceClaimStatuses:
        if status.name == claim.name:
            return (status.resourceClaimName if status.HasField("resourceClaimName") else None), True
    raise NotMade(f'pod "{pod.metadata.namespace}/{pod.metadata.name}": ResourceClaim not created yet')


def not_for_pod(pod: core_v1_pb2.Pod, claim: resource_v1_pb2.ResourceClaim) -> str:
    """Why a generated claim is not that of the pod, in Kubernetes' words; empty: it is."""
    owner = meta.controller_of(claim)
    if owner is not None and owner.uid == pod.metadata.uid:
        return ""
    names = f"ResourceClaim {meta.namespaced_name(claim)} was not created for Pod {meta.namespaced_name(pod)}"
    return f"{names} (Pod is not owner)"


def is_reserved_for(pod: core_v1_pb2.Pod, claim: resource_v1_pb2.ResourceClaim) -> bool:
    return any(one.uid == pod.metadata.uid for one in claim.status.reservedFor)


def owning_pod(claim: resource_v1_pb2.ResourceClaim) -> tuple[str, str]:
    """Name and UID of the pod for which a claim was generated; empty: for none."""
    for owner in claim.metadata.ownerReferences:
        if owner.controller and (owner.apiVersion, owner.kind) == ("v1", "Pod"):
            return owner.name, owner.uid
    return "", ""


def tolerates(toleration: resource_v1_pb2.DeviceToleration, taint: resource_v1_pb2.DeviceTaint) -> bool:
    """``ToleratesTaint``."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def device_key(
    device: resource_v1_pb2.DeviceRequestAllocationResult | resource_v1_pb2.AllocatedDeviceStatus,
) -> DeviceKey:
    """What tells an allocated device, or a share of it, from others (``SharedDeviceID``)."""
    return device.driver, device.pool, device.device, device.shareID


def shown_key(key: DeviceKey) -> str:
    """As Kubernetes writes it."""
    driver, pool, device, share = key
    return f"{driver}/{pool}/{device}" + (f"/{share}" if share else "")
