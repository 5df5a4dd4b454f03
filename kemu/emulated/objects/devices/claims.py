"""Which ResourceClaims a pod uses, whose they are, and for whom they are reserved.

Mirrors ``k8s.io/dynamic-resource-allocation/resourceclaim`` with the feature gates of v1.36. ``of_groups``: the gate
DRAWorkloadResourceClaims is on, with which a claim may be that of a pod's PodGroup.
"""

from __future__ import annotations

from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2, scheduling_v1alpha2_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaimConsumerReference
from kemu.messages.k8s.scheduling_v1alpha2_pb2 import PodGroup

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The claim is allocated: it must not go before it is deallocated."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: its name in the pod's spec."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that the scheduler made for extended resources."""

GATE = "DRAWorkloadResourceClaims"
_GROUP, _GROUPS = "scheduling.k8s.io", "podgroups"

Entry = core_v1_pb2.PodResourceClaim | scheduling_v1alpha2_pb2.PodGroupResourceClaim
DeviceKey = tuple[str, str, str, str]
"""Driver, pool, device, share."""


class NotMade(Exception):
    """The claim is to be generated from a template, and has not been yet. The text is Kubernetes'."""


def name_of(user: core_v1_pb2.Pod | PodGroup, claim: Entry) -> tuple[str | None, bool]:
    """The name of the ResourceClaim behind an entry of the spec, and whether its owner must be checked; None: the user
    needs none. Raises NotMade."""
    if claim.HasField("resourceClaimName"):
        return claim.resourceClaimName, False
    for status in user.status.resourceClaimStatuses:
        if status.name == claim.name:
            return (status.resourceClaimName if status.HasField("resourceClaimName") else None), True
    key = meta.namespaced_name(user)
    who = f"PodGroup {key}" if isinstance(user, PodGroup) else f'pod "{key}"'
    raise NotMade(f"{who}: ResourceClaim not created yet")


def not_for_pod(pod: core_v1_pb2.Pod, claim: resource_v1_pb2.ResourceClaim, *, of_groups: bool = False) -> str:
    """Why a generated claim is not that of the pod, in Kubernetes' words; empty: it is."""
    owner = meta.controller_of(claim)
    if owner is not None and owner.uid == pod.metadata.uid:
        return ""
    names = f"ResourceClaim {meta.namespaced_name(claim)} was not created for Pod {meta.namespaced_name(pod)}"
    if not of_groups or not pod.spec.HasField("schedulingGroup"):
        return f"{names} (Pod is not owner)"
    # A pod does not know the UID of its group.
    group = pod.spec.schedulingGroup.podGroupName
    if owner is not None and owner.name == group and _is_of_group(owner.apiVersion, owner.kind):
        return ""
    return f"{names} (neither Pod nor PodGroup {group} is the owner)"


def not_for_group(group: PodGroup, claim: resource_v1_pb2.ResourceClaim) -> str:
    """As :func:`not_for_pod`, of a PodGroup."""
    owner = meta.controller_of(claim)
    if owner is not None and owner.uid == group.metadata.uid:
        return ""
    names = f"ResourceClaim {meta.namespaced_name(claim)} was not created for PodGroup {meta.namespaced_name(group)}"
    return f"{names} (PodGroup is not owner)"


def _is_of_group(version: str, kind: str) -> bool:
    return kind == "PodGroup" and version.startswith(f"{_GROUP}/")


def is_reserved_for(pod: core_v1_pb2.Pod, claim: resource_v1_pb2.ResourceClaim, *, of_groups: bool = False) -> bool:
    group = pod.spec.schedulingGroup.podGroupName if of_groups else ""
    for one in claim.status.reservedFor:
        if one.uid == pod.metadata.uid or (group and one.name == group and is_group(one)):
            return True
    return False


def is_group(consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a claim is reserved for a PodGroup, in place of its pods."""
    return (consumer.apiGroup, consumer.resource) == (_GROUP, _GROUPS)


def consumer_of(pod: core_v1_pb2.Pod, group: PodGroup | None, entry: Entry) -> ResourceClaimConsumerReference:
    """For whom the claim behind an entry of a pod is reserved: for its PodGroup, if that has the very same entry, or
    else for the pod (``BindTo``)."""
    if group is not None:
        wanted = _of_entry(entry)
        if any(_of_entry(one) == wanted for one in group.spec.resourceClaims):
            name, uid = group.metadata.name, group.metadata.uid
            return ResourceClaimConsumerReference(apiGroup=_GROUP, resource=_GROUPS, name=name, uid=uid)
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def _of_entry(entry: Entry) -> tuple[str, str, str]:
    return entry.name, entry.resourceClaimName, entry.resourceClaimTemplateName


def owning_pod(claim: resource_v1_pb2.ResourceClaim) -> tuple[str, str]:
    """Name and UID of the pod for which a claim was generated; empty: for none."""
    for owner in claim.metadata.ownerReferences:
        if owner.controller and (owner.apiVersion, owner.kind) == ("v1", "Pod"):
            return owner.name, owner.uid
    return "", ""


def owner_uid(claim: resource_v1_pb2.ResourceClaim) -> str:
    """The UID of the pod or PodGroup for which a claim was generated; empty: for none."""
    for owner in claim.metadata.ownerReferences:
        is_pod = (owner.apiVersion, owner.kind) == ("v1", "Pod")
        if owner.controller and (is_pod or _is_of_group(owner.apiVersion, owner.kind)):
            return owner.uid
    return ""


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
