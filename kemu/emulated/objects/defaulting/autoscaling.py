"""The defaults of HorizontalPodAutoscalers (``pkg/apis/autoscaling/v2/defaults.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.messages.k8s import autoscaling_v2_pb2

CPU_UTILIZATION = 80
"""Percent of its request that a pod should use."""

_PERIOD_S = 15
_UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"}
_UP_POLICIES = (("Pods", 4), ("Percent", 100))
_DOWN = {"selectPolicy": "Max"}
_DOWN_POLICIES = (("Percent", 100),)


def _default_autoscaler(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> None:
    spec = autoscaler.spec
    if not spec.HasField("minReplicas"):
        spec.minReplicas = 1
    if not spec.metrics:
        metric = spec.metrics.add(type="Resource")
        metric.resource.name = "cpu"
        metric.resource.target.type = "Utilization"
        metric.resource.target.averageUtilization = CPU_UTILIZATION
    if spec.HasField("behavior"):
        _complete(spec.behavior.scaleUp, _UP, _UP_POLICIES)
        _complete(spec.behavior.scaleDown, _DOWN, _DOWN_POLICIES)


def _complete(
    rules: autoscaling_v2_pb2.HPAScalingRules, fields: dict[str, Any], policies: tuple[tuple[str, int], ...]
) -> None:
    """``copyHPAScalingRules``."""
    for field, value in fields.items():
        if not rules.HasField(field):
            setattr(rules, field, value)
    if not rules.policies:
        for type_, value in policies:
            rules.policies.add(type=type_, value=value, periodSeconds=_PERIOD_S)


def _prepare_autoscaler(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> None:
    autoscaler.ClearField("status")


FILL: dict[type[Message], Callable[[Any], None]] = {autoscaling_v2_pb2.HorizontalPodAutoscaler: _default_autoscaler}
PREPARE: dict[type[Message], Callable[[Any], None]] = {autoscaling_v2_pb2.HorizontalPodAutoscaler: _prepare_autoscaler}
