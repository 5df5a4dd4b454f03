"""The checks of resource.k8s.io: claims, their templates, classes, slices. Mirrors ``pkg/apis/resource/validation``.

kemu evaluates no CEL: any text passes as an expression, and so do parameters of drivers and attributes of devices.
"""

from __future__ import annotations

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import invalid, required
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import resource_v1_pb2

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _check_claim_spec(spec: resource_v1_pb2.ResourceClaimSpec, path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, request in enumerate(spec.devices.requests):
        here = f"{path}.devices.requests[{index}]"
        checks.needed_name(request.name, f"{here}.name", names.dns_label, found)
        one_of = "exactly one of `exactly` or `firstAvailable` is required"
        if request.HasField("exactly") and request.firstAvailable:
            found.append(invalid(here, None, f"{one_of}, but multiple fields are set"))
        elif request.HasField("exactly"):
            _check_request(request.exactly, f"{here}.exactly", found)
        elif request.firstAvailable:
            for number, sub in enumerate(request.firstAvailable):
                there = f"{here}.firstAvailable[{number}]"
                checks.needed_name(sub.name, f"{there}.name", names.dns_label, found)
                _check_request(sub, there, found)
        else:
            found.append(required(here, one_of))
        checks.unique(request.name, seen, here, request.name, found)


def _check_request(
    request: resource_v1_pb2.ExactDeviceRequest | resource_v1_pb2.DeviceSubRequest, path: str, found: list[Cause]
) -> None:
    checks.needed_name(request.deviceClassName, f"{path}.deviceClassName", names.dns_subdomain, found)
    if request.allocationMode == "All":
        if request.count:
            detail = "must not be specified when allocationMode is 'All'"
            found.append(invalid(f"{path}.count", request.count, detail))
    elif request.allocationMode != "ExactCount":
        checks.listed(request.allocationMode, f"{path}.allocationMode", "resource.v1.DeviceAllocationMode", found)
    else:
        checks.positive(request.count, f"{path}.count", found)


def _check_claim(claim: resource_v1_pb2.ResourceClaim, found: list[Cause]) -> None:
    _check_claim_spec(claim.spec, "spec", found)


def _check_template(template: resource_v1_pb2.ResourceClaimTemplate, found: list[Cause]) -> None:
    _check_claim_spec(template.spec.spec, "spec.spec", found)


def _check_slice(resource_slice: resource_v1_pb2.ResourceSlice, found: list[Cause]) -> None:
    spec = resource_slice.spec
    checks.needed_name(spec.driver, "spec.driver", names.dns_subdomain, found)
    if not spec.pool.name:
        found.append(required("spec.pool.name"))
    checks.positive(spec.pool.resourceSliceCount, "spec.pool.resourceSliceCount", found)
    if spec.pool.generation < 0:
        detail = "must be greater than or equal to zero"
        found.append(invalid("spec.pool.generation", spec.pool.generation, detail))
    places = [place for place in _PLACES if spec.HasField(place)]
    one_of = "exactly one of " + ", ".join(f"`{place}`" for place in _PLACES) + " is required"
    if not places:
        found.append(required("spec", one_of))
    elif len(places) > 1:
        shown = ", ".join(f"`{place}`" for place in places)
        found.append(invalid("spec", f"{{{shown}}}", f"{one_of}, but multiple fields are set"))
    if spec.sharedCounters and spec.devices:
        found.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    seen: dict[str, None] = {}
    for index, device in enumerate(spec.devices):
        checks.needed_name(device.name, f"spec.devices[{index}].name", names.dns_label, found)
        checks.unique(device.name, seen, f"spec.devices[{index}]", device.name, found)


def _check_slice_update(
    new: resource_v1_pb2.ResourceSlice, old: resource_v1_pb2.ResourceSlice, found: list[Cause]
) -> None:
    checks.fixed("spec.pool.name", "spec.driver", "spec.nodeName")(new, old, found)
    _check_slice(new, found)


RULES = {
    resource_v1_pb2.DeviceClass: Rules(),
    resource_v1_pb2.ResourceClaim: Rules(_check_claim, checks.fixed("spec")),
    resource_v1_pb2.ResourceClaimTemplate: Rules(_check_template, checks.fixed("spec")),
    resource_v1_pb2.ResourceSlice: Rules(_check_slice, _check_slice_update),
}
