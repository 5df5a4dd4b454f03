"""The defaults of resource.k8s.io (``pkg/apis/resource/v1/defaults.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


def _default_spec(spec: resource_v1_pb2.ResourceClaimSpec) -> None:
    for request in spec.devices.requests:
        for one in (*([request.exactly] if request.HasField("exactly") else ()), *request.firstAvailable):
            if not one.allocationMode:
                one.allocationMode = "ExactCount"
            if one.allocationMode == "ExactCount" and not one.count:
                one.count = 1


def _default_claim(claim: resource_v1_pb2.ResourceClaim) -> None:
    _default_spec(claim.spec)


def _default_template(template: resource_v1_pb2.ResourceClaimTemplate) -> None:
    _default_spec(template.spec.spec)


FILL: dict[type[Message], Callable[[Any], None]] = {
    resource_v1_pb2.ResourceClaim: _default_claim,
    resource_v1_pb2.ResourceClaimTemplate: _default_template,
}


def _prepare_claim(claim: core_v1_pb2.PersistentVolumeClaim) -> None:
    claim.ClearField("status")


def _prepare_counted(obj: KubernetesObject) -> None:
    obj.metadata.generation = 1


PREPARE: dict[type[Message], Callable[[Any], None]] = {
    resource_v1_pb2.ResourceClaim: _prepare_claim,
    resource_v1_pb2.DeviceClass: _prepare_counted,
    resource_v1_pb2.ResourceSlice: _prepare_counted,
}
