"""The checks of resource.k8s.io: claims, their templates, classes, slices. Mirrors ``pkg/apis/resource/validation``.

kemu evaluates no CEL: any text passes as an expression, and so do parameters of drivers and attributes of devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.validation import checks, placement
from kemu.emulated.objects.validation.causes import IMMUTABLE, forbidden, invalid, required, too_many
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import resource_v1_pb2

_MOST_CONSUMERS = 256
_MOST_RESULTS = 32
_MOST_PARTS = 2
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


def _check_claim_status(
    new: resource_v1_pb2.ResourceClaim, old: resource_v1_pb2.ResourceClaim, found: list[Cause]
) -> None:
    """``validateResourceClaimStatusUpdate``."""
    status, before = new.status, old.status
    _check_reserved(status.reservedFor, found)
    allocated = {claims.device_key(one) for one in status.allocation.devices.results}
    seen: dict[claims.DeviceKey, None] = {}
    for index, device in enumerate(status.devices):
        path, key = f"status.devices[{index}]", claims.device_key(device)
        checks.needed_name(device.driver, f"{path}.driver", names.dns_subdomain, found)
        if not device.pool:
            found.append(required(f"{path}.pool"))
        checks.name(device.device, f"{path}.device", names.dns_label, found)
        if key not in allocated:
            found.append(invalid(path, claims.shown_key(key), "must be an allocated device in the claim"))
        checks.unique(key, seen, path, claims.shown_key(key), found)
    if status.reservedFor and not status.HasField("allocation"):
        found.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif status.reservedFor and new.metadata.HasField("deletionTimestamp"):
        known = [one.SerializeToString(deterministic=True) for one in before.reservedFor]
        if any(one.SerializeToString(deterministic=True) not in known for one in status.reservedFor):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            found.append(forbidden("status.reservedFor", detail))
    if status.HasField("allocation"):
        if before.HasField("allocation"):
            if status.allocation != before.allocation:
                found.append(invalid("status.allocation", status.allocation, IMMUTABLE))
        else:
            _check_allocation(status.allocation, _request_names(new.spec.devices), found)


def _check_reserved(consumers: Sequence[resource_v1_pb2.ResourceClaimConsumerReference], found: list[Cause]) -> None:
    if len(consumers) > _MOST_CONSUMERS:
        found.append(too_many("status.reservedFor", len(consumers), _MOST_CONSUMERS))
        return
    seen: dict[str, None] = {}
    for index, consumer in enumerate(consumers):
        path = f"status.reservedFor[{index}]"
        lacking = (field for field in ("resource", "name", "uid") if not getattr(consumer, field))
        found.extend(required(f"{path}.{field}") for field in lacking)
        checks.unique(consumer.uid, seen, path, consumer, found)


def _request_names(devices: resource_v1_pb2.DeviceClaim) -> frozenset[str]:
    """Those of requests and ``request/subrequest``."""
    subs = (f"{one.name}/{sub.name}" for one in devices.requests for sub in one.firstAvailable)
    return frozenset([*(one.name for one in devices.requests), *subs])


def _check_allocation(
    allocation: resource_v1_pb2.AllocationResult, requests: frozenset[str], found: list[Cause]
) -> None:
    """``validateAllocationResult``."""
    results = list(allocation.devices.results)
    if len(results) > _MOST_RESULTS:
        found.append(too_many("status.allocation.devices.results", len(results), _MOST_RESULTS))
        results = []
    for index, result in enumerate(results):
        path = f"status.allocation.devices.results[{index}]"
        _check_request_name(result.request, f"{path}.request", requests, found)
        checks.needed_name(result.driver, f"{path}.driver", names.dns_subdomain, found)
        if not result.pool:
            found.append(required(f"{path}.pool"))
        found.extend(invalid(f"{path}.device", result.device, text) for text in names.dns_label(result.device))
    for index, config in enumerate(allocation.devices.config):
        path = f"status.allocation.devices.config[{index}]"
        checks.choice(config.source, f"{path}.source", "resource.v1.AllocationConfigSource", found)
        for number, name in enumerate(config.requests):
            _check_request_name(name, f"{path}.requests[{number}]", requests, found)
    if allocation.HasField("nodeSelector"):
        placement.check_node_selector(allocation.nodeSelector, "status.allocation.nodeSelector", found)


def _check_request_name(name: str, path: str, requests: frozenset[str], found: list[Cause]) -> None:
    parts = name.split("/")
    if len(parts) <= _MOST_PARTS:
        found.extend(invalid(path, part, text) for part in parts for text in names.dns_label(part))
    if name not in requests:
        detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        found.append(invalid(path, name, detail))


RULES = {
    resource_v1_pb2.DeviceClass: Rules(),
    resource_v1_pb2.ResourceClaim: Rules(_check_claim, checks.fixed("spec"), _check_claim_status),
    resource_v1_pb2.ResourceClaimTemplate: Rules(_check_template, checks.fixed("spec")),
    resource_v1_pb2.ResourceSlice: Rules(_check_slice, _check_slice_update),
}
