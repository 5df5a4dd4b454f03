"""The checks of resource.k8s.io: claims, their templates, classes. Mirrors ``pkg/apis/resource/validation``.

Selectors are compiled by who evaluates them (:data:`selector_problem`): this package stands below the language.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import requests as resource_names
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.validation import checks, metadata, placement
from kemu.emulated.objects.validation.causes import (
    Struct,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import resource_v1_pb2

_MOST = 32
"""Requests, constraints, selectors, configurations, results, and names of requests in each of them."""
_MOST_OF_DEVICE, _MOST_ADDRESSES = 8, 16
"""Of what is told of an allocated device: conditions, and addresses in networks."""
_MOST_ALTERNATIVES, _MOST_CONSUMERS, _MOST_CONDITIONS = 8, 256, 4
_MOST_PARTS = 2
_LONGEST_EXPRESSION = _LONGEST_PARAMETERS = 10 * 1024
_LONGEST_DRIVER, _LONGEST_IDENTIFIER = 63, 32
_OPERATORS = ("Equal", "Exists")
EFFECTS = ("NoExecute", "NoSchedule", "None")
TOO_COMPLEX = "too complex, exceeds cost limit"
_FIXED_SPEC, _FIXED_ALLOCATION = checks.fixed("spec"), checks.fixed("status.allocation")

Request = resource_v1_pb2.ExactDeviceRequest | resource_v1_pb2.DeviceSubRequest
Configuration = (
    resource_v1_pb2.DeviceClaimConfiguration
    | resource_v1_pb2.DeviceClassConfiguration
    | resource_v1_pb2.DeviceAllocationConfiguration
)
T = TypeVar("T")

selector_problem: Callable[[str], str] = lambda text: ""  # noqa: E731 - replaced by who compiles
"""What is wrong with the expression of a selector; "": nothing. Set by the API server."""


def use_compiler(problem: Callable[[str], str]) -> None:
    global selector_problem
    selector_problem = problem


# Parts ----------------------------------------------------------------------------------------------------------------


def check_each(
    items: Sequence[T],
    most: int | None,
    path: str,
    check: Callable[[T, str, list[Cause]], None],
    found: list[Cause],
    *,
    key: Callable[[T], Hashable] | None = None,
    shown: Callable[[Any], Any] = lambda key: key,
) -> None:
    """``validateSlice``; with a key that no two may have in common, ``validateSet``."""
    if most is not None and len(items) > most:
        found.append(too_many(path, len(items), most))
        return
    for index, item in enumerate(items):
        check(item, f"{path}[{index}]", found)
    seen: dict[Hashable, None] = {}
    for index, item in enumerate(items if key is not None else ()):
        assert key is not None
        checks.unique(key(item), seen, f"{path}[{index}]", shown(key(item)), found)


def check_label(text: str, path: str, found: list[Cause]) -> None:
    """A DNS label, which must be there."""
    found.extend(invalid(path, text, problem) for problem in names.dns_label(text))


def check_driver(driver: str, path: str, found: list[Cause]) -> None:
    """``ValidateCSIDriverName``"""
    if not driver:
        found.append(required(path))
        return
    if len(driver) > _LONGEST_DRIVER:
        found.append(too_long(path, _LONGEST_DRIVER))
    found.extend(invalid(path, driver, problem) for problem in names.dns_subdomain(driver.lower()))


def check_pool(name: str, path: str, found: list[Cause]) -> None:
    """``validatePoolName``"""
    if not name:
        found.append(required(path))
        return
    if len(name) > names.SUBDOMAIN_LENGTH:
        found.append(too_long(path, names.SUBDOMAIN_LENGTH))
    found.extend(invalid(path, part, problem) for part in name.split("/") for problem in names.dns_subdomain(part))


def check_qualified_name(name: str, path: str, found: list[Cause]) -> None:
    """``validateQualifiedName``: one with more than one slash is fine, too."""
    parts = name.split("/")
    if len(parts) > _MOST_PARTS:
        return
    if len(parts) == _MOST_PARTS and not parts[0]:
        found.append(invalid(path, "", "the domain must not be empty"))
    elif len(parts) == _MOST_PARTS:
        check_driver(parts[0], path, found)
    if len(parts) == _MOST_PARTS and not parts[1]:
        found.append(invalid(path, "", "the name must not be empty"))
        return
    if len(parts[-1]) > _LONGEST_IDENTIFIER:
        found.append(too_long(path, _LONGEST_IDENTIFIER))
    found.extend(invalid(path, parts[-1], problem) for problem in names.identifier(parts[-1]))


def check_binding_conditions(conditions: Sequence[str], failures: Sequence[str], path: str, found: list[Cause]) -> None:
    """``validateDeviceBindingParameters``"""
    here, there = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    check_each(conditions, _MOST_CONDITIONS, here, metadata.check_label_key, found)
    check_each(failures, _MOST_CONDITIONS, there, metadata.check_label_key, found)
    seen: dict[str, None] = {}
    for index, condition in enumerate(conditions):
        checks.unique(condition, seen, f"{here}[{index}]", condition, found)
    seen = {}
    for index, condition in enumerate(failures):
        checks.unique(condition, seen, f"{there}[{index}]", condition, found)
        if condition in conditions:
            text = "bindingFailureConditions must not overlap with bindingConditions"
            found.append(invalid(f"{there}[{index}]", condition, text))
    if failures and not conditions:
        found.append(invalid(here, None, "bindingConditions are required to use bindingFailureConditions"))
    if conditions and not failures:
        found.append(invalid(there, None, "bindingFailureConditions are required to use bindingConditions"))


def _check_selector(selector: resource_v1_pb2.DeviceSelector, path: str, found: list[Cause]) -> None:
    if not selector.HasField("cel"):
        found.append(required(f"{path}.cel"))
        return
    text, here = selector.cel.expression, f"{path}.cel.expression"
    if len(text.encode()) > _LONGEST_EXPRESSION:
        found.append(too_long(here, _LONGEST_EXPRESSION))
    elif problem := selector_problem(text):
        found.append(forbidden(here, problem) if problem == TOO_COMPLEX else invalid(here, text, problem))


def _check_configuration(config: Configuration, path: str, found: list[Cause], *, is_stored: bool = False) -> None:
    """``validateDeviceConfiguration``. ``is_stored``: it was there before, when parameters had no limit."""
    if not config.deviceConfiguration.HasField("opaque"):
        found.append(required(f"{path}.opaque"))
        return
    opaque, here = config.deviceConfiguration.opaque, f"{path}.opaque.parameters"
    check_driver(opaque.driver, f"{path}.opaque.driver", found)
    _check_raw(opaque.parameters.raw, here, found, is_stored=is_stored)


def _check_raw(raw: bytes, path: str, found: list[Cause], *, is_stored: bool = False) -> None:
    """``validateRawExtension``"""
    if not is_stored and len(raw) > _LONGEST_PARAMETERS:
        found.append(too_long(path, _LONGEST_PARAMETERS))
        return
    try:
        value = json.loads(raw) if raw else None
    except ValueError as error:
        found.append(invalid(path, "<value omitted>", f"error parsing data as JSON: {error}"))
        return
    if value is None:
        found.append(required(path))
    elif not isinstance(value, dict):
        found.append(invalid(path, "<value omitted>", "must be a valid JSON object"))


# Claims ---------------------------------------------------------------------------------------------------------------


def _check_claim_spec(spec: resource_v1_pb2.ResourceClaimSpec, path: str, found: list[Cause]) -> None:
    """``validateDeviceClaim``"""
    path, devices = f"{path}.devices", spec.devices
    known = _request_names(devices)

    def check_constraint(constraint: resource_v1_pb2.DeviceConstraint, here: str, found: list[Cause]) -> None:
        _check_references(constraint.requests, here, known, found)
        for field in ("matchAttribute", "distinctAttribute"):
            if constraint.HasField(field):
                _check_attribute_name(getattr(constraint, field), f"{here}.{field}", found)
                return
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        found.append(required(here, text))

    def check_configuration(config: resource_v1_pb2.DeviceClaimConfiguration, here: str, found: list[Cause]) -> None:
        _check_references(config.requests, here, known, found)
        _check_configuration(config, here, found)

    check_each(devices.requests, _MOST, f"{path}.requests", _check_request, found, key=lambda one: one.name)
    check_each(devices.constraints, _MOST, f"{path}.constraints", check_constraint, found)
    check_each(devices.config, _MOST, f"{path}.config", check_configuration, found)


def _check_attribute_name(name: str, path: str, found: list[Cause]) -> None:
    """``validateFullyQualifiedName``"""
    check_qualified_name(name, path, found)
    if "/" not in name:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        found.append(invalid(path, name, text))


def _check_request(request: resource_v1_pb2.DeviceRequest, path: str, found: list[Cause]) -> None:
    check_label(request.name, f"{path}.name", found)
    one_of = "exactly one of `exactly` or `firstAvailable` is required"
    if request.HasField("exactly") and request.firstAvailable:
        found.append(invalid(path, None, f"{one_of}, but multiple fields are set"))
    elif request.HasField("exactly"):
        _check_wanted(request.exactly, f"{path}.exactly", found)
    elif request.firstAvailable:
        here = f"{path}.firstAvailable"
        check_each(
            request.firstAvailable, _MOST_ALTERNATIVES, here, _check_alternative, found, key=lambda one: one.name
        )
    else:
        found.append(required(path, one_of))


def _check_alternative(request: resource_v1_pb2.DeviceSubRequest, path: str, found: list[Cause]) -> None:
    check_label(request.name, f"{path}.name", found)
    _check_wanted(request, path, found)


def _check_wanted(request: Request, path: str, found: list[Cause]) -> None:
    """``validateExactDeviceRequest``"""
    checks.needed_name(request.deviceClassName, f"{path}.deviceClassName", names.dns_subdomain, found)
    check_each(request.selectors, _MOST, f"{path}.selectors", _check_selector, found)
    if request.allocationMode == "All":
        if request.count:
            detail = "must not be specified when allocationMode is 'All'"
            found.append(invalid(f"{path}.count", request.count, detail))
    elif request.allocationMode != "ExactCount":
        checks.listed(request.allocationMode, f"{path}.allocationMode", "resource.v1.DeviceAllocationMode", found)
    else:
        checks.positive(request.count, f"{path}.count", found)
    check_each(request.tolerations, None, f"{path}.tolerations", _check_toleration, found)


def _check_toleration(toleration: resource_v1_pb2.DeviceToleration, path: str, found: list[Cause]) -> None:
    """``validateDeviceToleration``"""
    checks.name(toleration.key, f"{path}.key", names.label_key, found)
    if toleration.operator == "Exists":
        if toleration.value:
            found.append(invalid(f"{path}.value", toleration.value, "must be empty for operator `Exists`"))
    elif toleration.operator == "Equal":
        metadata.check_label_value(toleration.value, f"{path}.value", found)
    else:
        found.append(not_supported(f"{path}.operator", toleration.operator, _OPERATORS))
    checks.supported(toleration.effect, f"{path}.effect", EFFECTS, found)


def _check_claim(claim: resource_v1_pb2.ResourceClaim, found: list[Cause]) -> None:
    _check_claim_spec(claim.spec, "spec", found)


def _check_template(template: resource_v1_pb2.ResourceClaimTemplate, found: list[Cause]) -> None:
    if template.spec.HasField("metadata"):
        metadata.check_template(template.spec.metadata, "spec.metadata", found)
    _check_claim_spec(template.spec.spec, "spec.spec", found)


def _check_template_update(
    new: resource_v1_pb2.ResourceClaimTemplate, old: resource_v1_pb2.ResourceClaimTemplate, found: list[Cause]
) -> None:
    _check_template(new, found)
    _FIXED_SPEC(new, old, found)


# Classes --------------------------------------------------------------------------------------------------------------


def _check_class(device_class: resource_v1_pb2.DeviceClass, found: list[Cause]) -> None:
    _check_class_spec(device_class.spec, (), found)


def _check_class_update(new: resource_v1_pb2.DeviceClass, old: resource_v1_pb2.DeviceClass, found: list[Cause]) -> None:
    _check_class_spec(new.spec, old.spec.config, found)


def _check_class_spec(
    spec: resource_v1_pb2.DeviceClassSpec,
    before: Iterable[resource_v1_pb2.DeviceClassConfiguration],
    found: list[Cause],
) -> None:
    is_stored = list(spec.config) == list(before)

    def check_configuration(config: resource_v1_pb2.DeviceClassConfiguration, path: str, found: list[Cause]) -> None:
        _check_configuration(config, path, found, is_stored=is_stored)

    check_each(spec.selectors, _MOST, "spec.selectors", _check_selector, found)
    check_each(spec.config, _MOST, "spec.config", check_configuration, found)
    name = spec.extendedResourceName
    if spec.HasField("extendedResourceName") and not resource_names.is_extended(name):
        found.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))


# Status ---------------------------------------------------------------------------------------------------------------


def _check_claim_status(
    new: resource_v1_pb2.ResourceClaim, old: resource_v1_pb2.ResourceClaim, found: list[Cause]
) -> None:
    """``validateResourceClaimStatusUpdate``."""
    status, before = new.status, old.status
    check_each(
        status.reservedFor, _MOST_CONSUMERS, "status.reservedFor", _check_consumer, found, key=lambda one: one.uid
    )
    allocated = {claims.device_key(one) for one in status.allocation.devices.results}

    def check_device(device: resource_v1_pb2.AllocatedDeviceStatus, path: str, found: list[Cause]) -> None:
        key = claims.device_key(device)
        check_driver(device.driver, f"{path}.driver", found)
        check_pool(device.pool, f"{path}.pool", found)
        check_label(device.device, f"{path}.device", found)
        if device.HasField("shareID"):
            found.extend(invalid(f"{path}.shareID", device.shareID, one) for one in names.lower_uuid(device.shareID))
        if key not in allocated:
            found.append(invalid(path, _struct(key), "must be an allocated device in the claim"))
        if len(device.conditions) > _MOST_OF_DEVICE:
            found.append(too_many(f"{path}.conditions", len(device.conditions), _MOST_OF_DEVICE))
        checks.conditions(device.conditions, f"{path}.conditions", found)
        if device.data.raw:
            _check_raw(device.data.raw, f"{path}.data", found)
        _check_network(device.networkData, f"{path}.networkData", found)

    check_each(status.devices, None, "status.devices", check_device, found, key=claims.device_key, shown=_struct)
    if status.reservedFor and not status.HasField("allocation"):
        found.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif status.reservedFor and new.metadata.HasField("deletionTimestamp"):
        known = [one.SerializeToString(deterministic=True) for one in before.reservedFor]
        if any(one.SerializeToString(deterministic=True) not in known for one in status.reservedFor):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            found.append(forbidden("status.reservedFor", detail))
    if status.HasField("allocation"):
        if before.HasField("allocation"):
            _FIXED_ALLOCATION(new, old, found)
        else:
            _check_allocation(status.allocation, _request_names(new.spec.devices), found)


def _struct(key: claims.DeviceKey) -> Struct:
    """``SharedDeviceID``"""
    return Struct(zip(("Driver", "Pool", "Device", "ShareID"), key, strict=True))


def _check_network(data: resource_v1_pb2.NetworkDeviceData, path: str, found: list[Cause]) -> None:
    for field, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len(getattr(data, field).encode()) > limit:
            found.append(too_long(f"{path}.{field}", limit))

    def check(address: str, here: str, found: list[Cause]) -> None:
        found.extend(invalid(here, address, problem) for problem in names.interface_address(address))

    check_each(data.ips, _MOST_ADDRESSES, f"{path}.ips", check, found, key=lambda one: one)


def _check_consumer(consumer: resource_v1_pb2.ResourceClaimConsumerReference, path: str, found: list[Cause]) -> None:
    lacking = (field for field in ("resource", "name", "uid") if not getattr(consumer, field))
    found.extend(required(f"{path}.{field}") for field in lacking)


def _request_names(devices: resource_v1_pb2.DeviceClaim) -> frozenset[str]:
    """Those of requests and ``request/subrequest``."""
    subs = (f"{one.name}/{sub.name}" for one in devices.requests for sub in one.firstAvailable)
    return frozenset([*(one.name for one in devices.requests), *subs])


def _check_allocation(allocation: resource_v1_pb2.AllocationResult, known: frozenset[str], found: list[Cause]) -> None:
    """``validateAllocationResult``."""

    def check_result(result: resource_v1_pb2.DeviceRequestAllocationResult, path: str, found: list[Cause]) -> None:
        _check_request_name(result.request, f"{path}.request", known, found)
        check_driver(result.driver, f"{path}.driver", found)
        check_pool(result.pool, f"{path}.pool", found)
        check_label(result.device, f"{path}.device", found)
        check_binding_conditions(result.bindingConditions, result.bindingFailureConditions, path, found)
        if result.HasField("shareID"):
            found.extend(invalid(f"{path}.shareID", result.shareID, one) for one in names.lower_uuid(result.shareID))

    def check_configuration(
        config: resource_v1_pb2.DeviceAllocationConfiguration, path: str, found: list[Cause]
    ) -> None:
        checks.choice(config.source, f"{path}.source", "resource.v1.AllocationConfigSource", found)
        _check_references(config.requests, path, known, found)
        _check_configuration(config, path, found)

    path = "status.allocation.devices"
    check_each(allocation.devices.results, _MOST, f"{path}.results", check_result, found)
    check_each(allocation.devices.config, 2 * _MOST, f"{path}.config", check_configuration, found)
    if allocation.HasField("nodeSelector"):
        placement.check_node_selector(allocation.nodeSelector, "status.allocation.nodeSelector", found)


def _check_references(requests: Sequence[str], path: str, known: frozenset[str], found: list[Cause]) -> None:
    def check(name: str, here: str, found: list[Cause]) -> None:
        _check_request_name(name, here, known, found)

    check_each(requests, _MOST, f"{path}.requests", check, found, key=lambda one: one)


def _check_request_name(name: str, path: str, known: frozenset[str], found: list[Cause]) -> None:
    parts = name.split("/")
    for part in parts if len(parts) <= _MOST_PARTS else ():
        check_label(part, path, found)
    if name not in known:
        detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        found.append(invalid(path, name, detail))


RULES = {
    resource_v1_pb2.DeviceClass: Rules(_check_class, _check_class_update),
    resource_v1_pb2.ResourceClaim: Rules(_check_claim, _FIXED_SPEC, _check_claim_status),
    resource_v1_pb2.ResourceClaimTemplate: Rules(_check_template, _check_template_update),
}
