"""The defaults of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.defaulting import shared
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2


def _fill_limit_range(limit_range: core_v1_pb2.LimitRange) -> None:
    """``SetDefaults_LimitRangeItem``: what containers get by default follows from the bounds."""
    for item in limit_range.spec.limits:
        if item.type == "Container":
            _complete(item.default, item.max)
            _complete(item.defaultRequest, item.default)
            _complete(item.defaultRequest, item.min)
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            shared.round_up(getattr(item, field))


def _complete(amounts: Mapping[str, meta_v1_pb2.Quantity], others: Mapping[str, meta_v1_pb2.Quantity]) -> None:
    for name in sorted(others):
        if name not in amounts:
            amounts[name].CopyFrom(others[name])


def _fill_quota(quota: core_v1_pb2.ResourceQuota) -> None:
    for amounts in (quota.spec.hard, quota.status.hard, quota.status.used):
        shared.round_up(amounts)


def _prepare_quota(quota: core_v1_pb2.ResourceQuota) -> None:
    quota.ClearField("status")


FILL: dict[type[Message], Callable[[Any], None]] = {
    core_v1_pb2.LimitRange: _fill_limit_range,
    core_v1_pb2.ResourceQuota: _fill_quota,
}

PREPARE: dict[type[Message], Callable[[Any], None]] = {core_v1_pb2.ResourceQuota: _prepare_quota}
