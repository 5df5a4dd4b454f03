"""The checks of ResourceSlices. Mirrors ``pkg/apis/resource/validation``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Literal, TypeVar

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.amounts.quantities import Quantity
from kemu.emulated.objects.validation import checks, metadata, placement
from kemu.emulated.objects.validation.causes import IMMUTABLE, forbidden, invalid, required, too_long, too_many
from kemu.emulated.objects.validation.devices.claims import (
    EFFECTS,
    check_binding_conditions,
    check_driver,
    check_each,
    check_label,
    check_pool,
    check_qualified_name,
)
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import meta_v1_pb2, resource_v1_pb2

Spec = resource_v1_pb2.ResourceSliceSpec
Device = resource_v1_pb2.Device
T = TypeVar("T")

_MOST_DEVICES, _MOST_SPECIAL_DEVICES = 128, 64
"""Devices with taints or shared counters take more room."""
_MOST_SETS, _MOST_COUNTERS, _MOST_SHARES, _MOST_TAINTS = 8, 32, 2, 16
_MOST_ENTRIES, _MOST_VALUES, _MOST_OPTIONS = 32, 48, 10
_LONGEST_VALUE = 64
_LONGEST_KEY = 96
"""Of a domain, a slash and an identifier; longer ones are cut where they are shown."""
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_SET_OR_TRUE = "must be either unset or set to true"
_VALUES: tuple[Literal["int", "bool", "string", "version"], ...] = ("int", "bool", "string", "version")
_NUMBER, _PRERELEASE = r"(0|[1-9]\d*)", r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMANTIC_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def _check_new(resource_slice: resource_v1_pb2.ResourceSlice, found: list[Cause]) -> None:
    _check_spec(resource_slice.spec, None, found)


def _check_update(new: resource_v1_pb2.ResourceSlice, old: resource_v1_pb2.ResourceSlice, found: list[Cause]) -> None:
    _check_spec(new.spec, old.spec, found)


def _check_spec(spec: Spec, old: Spec | None, found: list[Cause]) -> None:
    """``validateResourceSliceSpec``"""
    check_driver(spec.driver, "spec.driver", found)
    check_pool(spec.pool.name, "spec.pool.name", found)
    checks.positive(spec.pool.resourceSliceCount, "spec.pool.resourceSliceCount", found)
    if spec.pool.generation < 0:
        found.append(invalid("spec.pool.generation", spec.pool.generation, "must be greater than or equal to zero"))
    if old is not None:
        if spec.pool.name != old.pool.name:
            found.append(invalid("spec.pool.name", spec.pool.name, IMMUTABLE))
        if spec.driver != old.driver:
            found.append(invalid("spec.driver", spec.driver, IMMUTABLE))
        if _node_name(spec) != _node_name(old):
            found.append(invalid("spec.nodeName", _node_name(spec), IMMUTABLE))
    _check_places(spec, found)
    if spec.sharedCounters and spec.devices:
        found.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    known = {} if old is None else {one.name: one for one in old.devices}

    def check_device(device: Device, path: str, found: list[Cause]) -> None:
        _check_device(device, known.get(device.name), spec.perDeviceNodeSelection, path, found)

    is_special = any(one.taints or one.consumesCounters for one in spec.devices)
    most = _MOST_SPECIAL_DEVICES if is_special else _MOST_DEVICES
    check_each(spec.devices, most, "spec.devices", check_device, found, key=lambda one: one.name)
    path = "spec.sharedCounters"
    check_each(spec.sharedCounters, _MOST_SETS, path, _check_counters, found, key=lambda one: one.name)


def _node_name(holder: Spec | Device) -> str | None:
    return holder.nodeName if holder.HasField("nodeName") else None


def _check_places(spec: Spec, found: list[Cause]) -> None:
    """On which nodes the devices are: the spec says so once, or each device does."""
    if spec.HasField("nodeName"):
        if spec.nodeName:
            checks.name(spec.nodeName, "spec.nodeName", names.dns_subdomain, found)
        else:
            found.append(invalid("spec.nodeName", "", "must be either unset or set to a non-empty string"))
    if spec.HasField("nodeSelector"):
        terms = spec.nodeSelector.nodeSelectorTerms
        placement.check_node_selector(spec.nodeSelector, "spec.nodeSelector", found)
        if len(terms) != 1:
            text = "must have exactly one node selector term"
            found.append(invalid("spec.nodeSelector.nodeSelectorTerms", list(terms) or None, text))
    found += [
        invalid(f"spec.{field}", False, _SET_OR_TRUE)
        for field in _PLACES[2:]
        if spec.HasField(field) and not getattr(spec, field)
    ]
    stated = [f"`{field}`" for field in _PLACES if spec.HasField(field) and getattr(spec, field)]
    one_of = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not stated:
        found.append(required("spec", one_of))
    elif len(stated) > 1:
        found.append(invalid("spec", f"{{{', '.join(stated)}}}", f"{one_of}, but multiple fields are set"))


def _check_counters(counters: resource_v1_pb2.CounterSet, path: str, found: list[Cause]) -> None:
    """``validateCounterSet``"""
    _check_counted(counters.name, "name", counters.counters, path, found)


def _check_share(share: resource_v1_pb2.DeviceCounterConsumption, path: str, found: list[Cause]) -> None:
    """``validateDeviceCounterConsumption``"""
    _check_counted(share.counterSet, "counterSet", share.counters, path, found)


def _check_counted(
    name: str, field: str, counters: Mapping[str, resource_v1_pb2.Counter], path: str, found: list[Cause]
) -> None:
    checks.needed_name(name, f"{path}.{field}", names.dns_label, found)
    if not counters:
        found.append(required(f"{path}.counters"))
    elif len(counters) > _MOST_COUNTERS:
        found.append(too_many(f"{path}.counters", len(counters), _MOST_COUNTERS))
    else:
        for key in sorted(counters):
            check_label(key, f"{path}.counters", found)


# Devices --------------------------------------------------------------------------------------------------------------


def _check_device(device: Device, old: Device | None, by_device: bool, path: str, found: list[Cause]) -> None:
    """``validateDevice``. ``by_device``: each says on which nodes it is."""
    check_label(device.name, f"{path}.name", found)
    entries = len(device.attributes) + len(device.capacity)
    if entries > _MOST_ENTRIES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_ENTRIES}"
        found.append(invalid(path, entries, text))
    if len(device.attributes) > _MOST_VALUES:
        text = f"the total number of attribute values must not exceed {_MOST_VALUES}"
        found.append(invalid(path, len(device.attributes), text))
    _check_entries(device.attributes, f"{path}.attributes", _check_attribute, found)
    check_capacity = _check_shared_capacity if device.allowMultipleAllocations else _check_capacity
    _check_entries(device.capacity, f"{path}.capacity", check_capacity, found)
    if old is None or list(old.taints) != list(device.taints):
        check_each(device.taints, _MOST_TAINTS, f"{path}.taints", _check_taint, found)
    here = f"{path}.consumesCounters"
    check_each(device.consumesCounters, _MOST_SHARES, here, _check_share, found, key=lambda one: one.counterSet)
    _check_places_of(device, by_device, path, found)
    check_binding_conditions(device.bindingConditions, device.bindingFailureConditions, path, found)


def _check_places_of(device: Device, by_device: bool, path: str, found: list[Cause]) -> None:
    places = _PLACES[:3]
    if not by_device:
        if any(device.HasField(field) for field in places):  # type: ignore[arg-type]
            text = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
                "in the ResourceSlice spec"
            )
            found.append(invalid(path, None, text))
        return
    if device.HasField("nodeName") and not device.nodeName:
        found.append(invalid(f"{path}.nodeName", "", "must not be empty"))
    checks.name(device.nodeName, f"{path}.nodeName", names.dns_subdomain, found)
    if device.HasField("nodeSelector"):
        placement.check_node_selector(device.nodeSelector, f"{path}.nodeSelector", found)
    if device.HasField("allNodes") and not device.allNodes:
        found.append(invalid(f"{path}.allNodes", False, _SET_OR_TRUE))
    stated = [f"`{field}`" for field in places if device.HasField(field) and getattr(device, field)]  # type: ignore[arg-type]
    one_of = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
        "true in the ResourceSlice spec"
    )
    if not stated:
        found.append(required(path, one_of))
    elif len(stated) > 1:
        found.append(invalid(path, f"{{{', '.join(stated)}}}", one_of))


def _check_entries(
    entries: Mapping[str, T], path: str, check: Callable[[T, str, list[Cause]], None], found: list[Cause]
) -> None:
    """``validateMap``"""
    for key in sorted(entries):
        check_qualified_name(key, path, found)
        half = (_LONGEST_KEY - 3) // 2
        shown = key if len(key) <= _LONGEST_KEY else f"{key[: half + 1]}...{key[-half:]}"
        check(entries[key], f"{path}[{shown}]", found)


def _check_attribute(attribute: resource_v1_pb2.DeviceAttribute, path: str, found: list[Cause]) -> None:
    """``validateDeviceAttribute``; those with lists are dropped before."""
    stated = [field for field in _VALUES if attribute.HasField(field)]
    if "version" in stated and not _SEMANTIC_VERSION.fullmatch(attribute.version):
        text = "must be a string compatible with semver.org spec 2.0.0"
        found.append(invalid(f"{path}.version", attribute.version, text))
    long = [field for field in ("string", "version") if len(getattr(attribute, field).encode()) > _LONGEST_VALUE]
    found += [too_long(f"{path}.{field}", _LONGEST_VALUE) for field in long]
    if len(stated) != 1:
        found.append(invalid(path, attribute if stated else "", "exactly one value must be specified"))


def _check_capacity(capacity: resource_v1_pb2.DeviceCapacity, path: str, found: list[Cause]) -> None:
    if capacity.HasField("requestPolicy"):
        found.append(forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true"))


def _check_shared_capacity(capacity: resource_v1_pb2.DeviceCapacity, path: str, found: list[Cause]) -> None:
    """``validateRequestPolicy``"""
    if not capacity.HasField("requestPolicy"):
        return
    policy, path, whole = capacity.requestPolicy, f"{path}.requestPolicy", _amount(capacity.value)
    field = "validValues" if policy.validValues else "validRange"
    if policy.validValues and policy.HasField("validRange"):
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        found.append(forbidden(path, text))
    elif not policy.validValues and not policy.HasField("validRange"):
        return
    elif not policy.HasField("default"):
        found.append(required(f"{path}.default", f"required when {field} is defined"))
    elif policy.validValues:
        options = [_amount(one) for one in policy.validValues]
        _check_options(_amount(policy.default), whole, options, f"{path}.validValues", found)
    else:
        _check_range(_amount(policy.default), whole, policy.validRange, f"{path}.validRange", found)


def _amount(quantity: meta_v1_pb2.Quantity) -> Quantity:
    """One that is absent is zero."""
    return quantities.parse(quantity.string or "0")


def _check_options(default: Quantity, whole: Quantity, options: list[Quantity], path: str, found: list[Cause]) -> None:
    """``validateRequestPolicyValidValues``"""
    for index, (one, other) in enumerate(pairwise(options)):
        if other < one:
            found.append(invalid(f"{path}[{index + 1}]", str(other), "values must be sorted in ascending order"))

    def check(option: Quantity, here: str, found: list[Cause]) -> None:
        if whole < option:
            found.append(invalid(here, str(option), f"option is larger than capacity value: {whole}"))

    check_each(options, _MOST_OPTIONS, path, check, found, key=lambda one: str(one.value))
    if len(options) > _MOST_OPTIONS or default not in options:
        found.append(invalid(path, str(default), "default value is not valid according to the requestPolicy"))


def _check_range(
    default: Quantity,
    whole: Quantity,
    limits: resource_v1_pb2.CapacityRequestPolicyRange,
    path: str,
    found: list[Cause],
) -> None:
    """``validateRequestPolicyRange``"""
    if not limits.HasField("min"):
        found.append(required(f"{path}.min", "required when validRange is defined"))
        return
    least = _amount(limits.min)
    most = _amount(limits.max) if limits.HasField("max") else None
    wrong: list[tuple[str, int, Quantity, str]] = [
        ("min", whole < least, least, f"min is larger than capacity value: {whole}"),
        ("min", default < least, default, f"default is less than min: {least}"),
    ]
    if most is not None:
        wrong += [
            ("max", most < least, least, f"min is larger than max: {most}"),
            ("max", whole < most, most, f"max is larger than capacity value: {whole}"),
            ("max", most < default, default, f"default is more than max: {most}"),
        ]
    if limits.HasField("step"):
        step = _amount(limits.step)
        wrong.append(
            ("step", whole < least + step, step, f"one step {least + step} is larger than capacity value: {whole}")
        )
        text = f"value is not a multiple of a given step ({step}) from ({least})"
        reached = [default] if most is None else [default, most]
        # With a step of zero, Kubernetes' division fails.
        wrong += [("step", step.value and (one.value - least.value) % step.value, one, text) for one in reached]
    found += [invalid(f"{path}.{field}", str(shown), text) for field, is_wrong, shown, text in wrong if is_wrong]


def _check_taint(taint: resource_v1_pb2.DeviceTaint, path: str, found: list[Cause]) -> None:
    """``validateDeviceTaint``"""
    metadata.check_label_key(taint.key, f"{path}.key", found)
    checks.name(taint.value, f"{path}.value", names.label_value, found)
    checks.choice(taint.effect, f"{path}.effect", EFFECTS, found)


RULES = {resource_v1_pb2.ResourceSlice: Rules(_check_new, _check_update)}
