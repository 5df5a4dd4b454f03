"""The defaults of resource.k8s.io (``pkg/apis/resource/v1/defaults.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from google.protobuf.message import Message

from kemu.emulated.objects import meta
from kemu.messages.k8s import resource_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


def _default_spec(spec: resource_v1_pb2.ResourceClaimSpec) -> None:
    for request in spec.devices.requests:
        for one in (*([request.exactly] if request.HasField("exactly") else ()), *request.firstAvailable):
            if not one.allocationMode:
                one.allocationMode = "ExactCount"
            if one.allocationMode == "ExactCount" and not one.count:
                one.count = 1
            for toleration in one.tolerations:
                toleration.operator = toleration.operator or "Equal"


def _default_claim(claim: resource_v1_pb2.ResourceClaim) -> None:
    _default_spec(claim.spec)
    for result in claim.status.allocation.devices.results:
        for toleration in result.tolerations:
            toleration.operator = toleration.operator or "Equal"


def _default_template(template: resource_v1_pb2.ResourceClaimTemplate) -> None:
    _default_spec(template.spec.spec)


FILL: dict[type[Message], Callable[[Any], None]] = {
    resource_v1_pb2.ResourceClaim: _default_claim,
    resource_v1_pb2.ResourceClaimTemplate: _default_template,
}


def drop_disabled(new: resource_v1_pb2.ResourceSlice, old: resource_v1_pb2.ResourceSlice | None = None) -> None:
    """What only feature gates that are off would read, unless it was there before (``dropDisabledFields``):
    DRAListTypeAttributes, DRANodeAllocatableResources."""
    before = () if old is None else old.spec.devices
    if not any(device.nodeAllocatableResourceMappings for device in before):
        for device in new.spec.devices:
            device.ClearField("nodeAllocatableResourceMappings")
    if not any(_has_lists(attribute) for device in before for attribute in device.attributes.values()):
        for device in new.spec.devices:
            for attribute in device.attributes.values():
                for field in _LISTS:
                    attribute.ClearField(field)


_LISTS: tuple[Literal["ints", "bools", "strings", "versions"], ...] = ("ints", "bools", "strings", "versions")


def _has_lists(attribute: resource_v1_pb2.DeviceAttribute) -> bool:
    return any(getattr(attribute, field) for field in _LISTS)


def stamp_taints(resource_slice: resource_v1_pb2.ResourceSlice, now_ns: int) -> None:
    """``SetDefaults_DeviceTaint``: when a taint was set that does not say so."""
    for device in resource_slice.spec.devices:
        for taint in device.taints:
            if not taint.HasField("timeAdded"):
                meta.set_time(taint.timeAdded, now_ns)


def _prepare_claim(claim: resource_v1_pb2.ResourceClaim) -> None:
    claim.ClearField("status")


def _prepare_slice(resource_slice: resource_v1_pb2.ResourceSlice) -> None:
    resource_slice.metadata.generation = 1
    drop_disabled(resource_slice)


def _prepare_counted(obj: KubernetesObject) -> None:
    obj.metadata.generation = 1


PREPARE: dict[type[Message], Callable[[Any], None]] = {
    resource_v1_pb2.ResourceClaim: _prepare_claim,
    resource_v1_pb2.DeviceClass: _prepare_counted,
    resource_v1_pb2.ResourceSlice: _prepare_slice,
}
