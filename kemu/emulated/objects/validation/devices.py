"""The checks of resource.k8s.io: claims, their templates, classes, slices. Mirrors ``pkg/apis/resource/validation``.

kemu evaluates no CEL: any text passes as an expression, and so do parameters of drivers and attributes of devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.validation.causes import IMMUTABLE, duplicate, invalid, not_supported, required
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import resource_v1_pb2

_MODES = ("All", "ExactCount")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _check_name(name: str, path: str, rule: Callable[[str], Sequence[str]], found: list[Cause]) -> None:
    if name:
        found.extend(invalid(path, name, problem) for problem in rule(name))
    else:
        found.append(required(path))


def _check_claim_spec(spec: resource_v1_pb2.ResourceClaimSpec, path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, request in enumerate(spec.devices.requests):
        here = f"{path}.devices.requests[{index}]"
        _check_name(request.name, f"{here}.name", names.dns_label, found)
        one_of = "exactly one of `exactly` or `firstAvailable` is required"
        if request.HasField("exactly") and request.firstAvailable:
            found.append(invalid(here, None, f"{one_of}, but multiple fields are set"))
        elif request.HasField("exactly"):
            _check_request(request.exactly, f"{here}.exactly", found)
        elif request.firstAvailable:
            for number, sub in enumerate(request.firstAvailable):
                there = f"{here}.firstAvailable[{number}]"
                _check_name(sub.name, f"{there}.name", names.dns_label, found)
                _check_request(sub, there, found)
        else:
            found.append(required(here, one_of))
        if request.name in seen:
            found.append(duplicate(here, request.name))
        seen[request.name] = None


def _check_request(
    request: resource_v1_pb2.ExactDeviceRequest | resource_v1_pb2.DeviceSubRequest, path: str, found: list[Cause]
) -> None:
    _check_name(request.deviceClassName, f"{path}.deviceClassName", names.dns_subdomain, found)
    if request.allocationMode == "All":
        if request.count:
            detail = "must not be specified when allocationMode is 'All'"
            found.append(invalid(f"{path}.count", request.count, detail))
    elif request.allocationMode != "ExactCount":
        found.append(not_supported(f"{path}.allocationMode", request.allocationMode, _MODES))
    elif request.count <= 0:
        found.append(invalid(f"{path}.count", request.count, "must be greater than zero"))


def _check_claim(claim: resource_v1_pb2.ResourceClaim, found: list[Cause]) -> None:
    _check_claim_spec(claim.spec, "spec", found)


def _check_template(template: resource_v1_pb2.ResourceClaimTemplate, found: list[Cause]) -> None:
    _check_claim_spec(template.spec.spec, "spec.spec", found)


def _check_spec_unchanged(
    new: resource_v1_pb2.ResourceClaim, old: resource_v1_pb2.ResourceClaim, found: list[Cause]
) -> None:
    if new.spec != old.spec:
        found.append(invalid("spec", new.spec, IMMUTABLE))


def _check_slice(resource_slice: resource_v1_pb2.ResourceSlice, found: list[Cause]) -> None:
    spec = resource_slice.spec
    _check_name(spec.driver, "spec.driver", names.dns_subdomain, found)
    if not spec.pool.name:
        found.append(required("spec.pool.name"))
    if spec.pool.resourceSliceCount <= 0:
        found.append(invalid("spec.pool.resourceSliceCount", spec.pool.resourceSliceCount, "must be greater than zero"))
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
        _check_name(device.name, f"spec.devices[{index}].name", names.dns_label, found)
        if device.name in seen:
            found.append(duplicate(f"spec.devices[{index}]", device.name))
        seen[device.name] = None


def _check_slice_update(
    new: resource_v1_pb2.ResourceSlice, old: resource_v1_pb2.ResourceSlice, found: list[Cause]
) -> None:
    for path, value, before in (
        ("spec.pool.name", new.spec.pool.name, old.spec.pool.name),
        ("spec.driver", new.spec.driver, old.spec.driver),
        ("spec.nodeName", new.spec.nodeName, old.spec.nodeName),
    ):
        if value != before:
            found.append(invalid(path, value, IMMUTABLE))
    _check_slice(new, found)


RULES = {
    resource_v1_pb2.DeviceClass: Rules(),
    resource_v1_pb2.ResourceClaim: Rules(_check_claim, _check_spec_unchanged),
    resource_v1_pb2.ResourceClaimTemplate: Rules(_check_template, _check_spec_unchanged),
    resource_v1_pb2.ResourceSlice: Rules(_check_slice, _check_slice_update),
}
