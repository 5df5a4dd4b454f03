"""The checks of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from typing import Any

from kemu.errors import Cause
from kemu.k8s import (
    core_v1_pb2,
)
from kemu.objects.validation.amounts import any_resource_name, check_amounts
from kemu.objects.validation.rules import Rules


def _check_quota(quota: Any, found: list[Cause]) -> None:
    check_amounts(quota.spec.hard, "spec.hard", any_resource_name, found)


RULES = {
    core_v1_pb2.ResourceQuota: Rules(_check_quota),
    core_v1_pb2.LimitRange: Rules(),
}
