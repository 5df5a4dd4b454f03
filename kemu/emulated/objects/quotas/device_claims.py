"""ResourceClaims in quotas (``pkg/quota/v1/evaluator/core/resource_claims.go``)."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.amounts.quantities import NANO, Quantity
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.quotas import evaluators, pods
from kemu.emulated.objects.quotas.evaluators import CREATE, UPDATE, Surroundings
from kemu.messages.k8s.resource_v1_pb2 import DeviceSubRequest, ExactDeviceRequest, ResourceClaim

PER_CLASS = ".deviceclass.resource.k8s.io/devices"
MOST_RESULTS = 32
"""What a request for all devices counts for (``AllocationResultsMaxSize``)."""
_IMPLICIT = pods.REQUESTS + pods.DEVICE_CLASS


class DeviceClaimEvaluator(evaluators.Evaluator[ResourceClaim]):
    """Devices count by class, and as the extended resources that the class stands behind."""

    def __init__(self, resource: resources.Resource, around: Surroundings = evaluators.NOTHING) -> None:
        super().__init__(resource)
        self._around = around

    def within(self, around: Surroundings) -> DeviceClaimEvaluator:
        return DeviceClaimEvaluator(self.resource, around)

    def handles(self, operation: str, subresource: str, new: ResourceClaim, old: ResourceClaim | None) -> bool:
        return not subresource and operation in (CREATE, UPDATE)

    def counts(self, name: str) -> bool:
        if super().counts(name) or name.endswith(PER_CLASS):
            return True
        if not pods.is_extended_request(name):
            return False
        classes = self._around.classes()
        return name.removeprefix(_IMPLICIT) in classes or name.removeprefix(pods.REQUESTS) in classes.values()

    def usage(self, obj: ResourceClaim, now_unix_ns: int) -> Mapping[str, Quantity]:
        numbers: dict[str, int] = {}
        for request in obj.spec.devices.requests:
            worst: dict[str, int] = {}
            for one in request.firstAvailable or ([request.exactly] if request.HasField("exactly") else ()):
                worst[one.deviceClassName] = max(worst.get(one.deviceClassName, 0), _number(one))
            for name, number in worst.items():
                numbers[name] = numbers.get(name, 0) + number
        counted = {name + PER_CLASS: Quantity(number * NANO) for name, number in numbers.items()}
        classes = self._around.classes()
        charged = self._charged_to_pod(obj, now_unix_ns)
        for name, number in numbers.items():
            resource = classes.get(name, "")
            for other in (_IMPLICIT + name, *([pods.REQUESTS + resource] if resource else ())):
                # What the pod itself has been charged already does not count twice.
                left = number * NANO - (charged[other].nano if other in charged else 0)
                if left > 0:
                    counted[other] = Quantity(left)
        return {**super().usage(obj, now_unix_ns), **counted}

    def _charged_to_pod(self, claim: ResourceClaim, now_unix_ns: int) -> Mapping[str, Quantity]:
        """What the pod counts for whose extended resources the claim is for (``getVerifiedPodUsage``)."""
        metadata = claim.metadata
        owner = meta.controller_of(claim)
        if metadata.annotations.get(claims.EXTENDED) != "true" or owner is None:
            return {}
        if (owner.kind, owner.apiVersion) != ("Pod", "v1"):
            return {}
        pod = self._around.pod(metadata.namespace, owner.name)
        if pod is None or pod.metadata.uid != owner.uid:
            return {}
        if pod.status.HasField("extendedResourceClaimStatus"):
            if pod.status.extendedResourceClaimStatus.resourceClaimName != metadata.name:
                return {}
        elif any(_is_earlier(one, claim, owner.uid) for one in self._around.claims(metadata.namespace)):
            return {}
        return pods.usage_of(pod, now_unix_ns)


def _is_earlier(one: ResourceClaim, than: ResourceClaim, uid: str) -> bool:
    """Whether another claim of the same pod came before this one."""
    owner = meta.controller_of(one)
    if one.metadata.annotations.get(claims.EXTENDED) != "true" or owner is None or owner.uid != uid:
        return False
    times = [meta.unix_ns(each.metadata.creationTimestamp) for each in (one, than)]
    return (times[0], one.metadata.name) < (times[1], than.metadata.name)


def _number(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    if request.allocationMode == "All":
        return MOST_RESULTS
    return int(request.count) if request.allocationMode == "ExactCount" else 0
