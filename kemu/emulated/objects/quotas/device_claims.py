"""ResourceClaims in quotas (``pkg/quota/v1/evaluator/core/resource_claims.go``), but for the names of extended
resources that classes of devices stand for."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.amounts.quantities import NANO, Quantity
from kemu.emulated.objects.quotas import evaluators
from kemu.emulated.objects.quotas.evaluators import CREATE, UPDATE
from kemu.messages.k8s.resource_v1_pb2 import DeviceSubRequest, ExactDeviceRequest, ResourceClaim

PER_CLASS = ".deviceclass.resource.k8s.io/devices"
MOST_RESULTS = 32
"""What a request for all devices counts for (``AllocationResultsMaxSize``)."""


class DeviceClaimEvaluator(evaluators.Evaluator[ResourceClaim]):
    def handles(self, operation: str, subresource: str, new: ResourceClaim, old: ResourceClaim | None) -> bool:
        return not subresource and operation in (CREATE, UPDATE)

    def counts(self, name: str) -> bool:
        return super().counts(name) or name.endswith(PER_CLASS)

    def usage(self, obj: ResourceClaim, now_unix_ns: int) -> Mapping[str, Quantity]:
        numbers: dict[str, int] = {}
        for request in obj.spec.devices.requests:
            worst: dict[str, int] = {}
            for one in request.firstAvailable or ([request.exactly] if request.HasField("exactly") else ()):
                name = one.deviceClassName + PER_CLASS
                worst[name] = max(worst.get(name, 0), _number(one))
            for name, number in worst.items():
                numbers[name] = numbers.get(name, 0) + number
        counted = {name: Quantity(number * NANO) for name, number in numbers.items()}
        return {**super().usage(obj, now_unix_ns), **counted}


def _number(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    if request.allocationMode == "All":
        return MOST_RESULTS
    return int(request.count) if request.allocationMode == "ExactCount" else 0
