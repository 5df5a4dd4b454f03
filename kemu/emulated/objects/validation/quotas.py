"""The checks of ResourceQuotas and LimitRanges.

Mirrors ``ValidateResourceQuota`` and ``ValidateLimitRange`` of ``pkg/apis/core/validation``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.amounts.quantities import MAX_VALUE, NANO, Quantity
from kemu.emulated.objects.quotas import scopes
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.amounts import (
    check_amounts,
    container_resource_name,
    is_quota_resource,
    may_overcommit,
    quota_resource_name,
    standard_resource_name,
)
from kemu.emulated.objects.validation.causes import IMMUTABLE, forbidden, invalid, required
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

# ResourceQuota ------------------------------------------------------------------------------------------------------

_CONFLICTING = (
    (scopes.BEST_EFFORT, scopes.NOT_BEST_EFFORT),
    (scopes.TERMINATING, scopes.NOT_TERMINATING),
)
_OF_PODS = (
    "pods",
    *(f"{which}{name}" for which in ("", "limits.", "requests.") for name in ("cpu", "memory")),
)
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_EXISTS_DETAIL = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _check_quota(quota: core_v1_pb2.ResourceQuota, found: list[Cause]) -> None:
    _check_quota_spec(quota.spec, found)
    _check_quota_status(quota, quota, found)


def _check_quota_update(new: core_v1_pb2.ResourceQuota, old: core_v1_pb2.ResourceQuota, found: list[Cause]) -> None:
    _check_quota_spec(new.spec, found)
    if sorted(dict.fromkeys(new.spec.scopes)) != sorted(dict.fromkeys(old.spec.scopes)):
        found.append(invalid("spec.scopes", list(new.spec.scopes), IMMUTABLE))


def _check_quota_status(new: core_v1_pb2.ResourceQuota, old: core_v1_pb2.ResourceQuota, found: list[Cause]) -> None:
    check_amounts(new.status.hard, "status.hard", quota_resource_name, found)
    check_amounts(new.status.used, "status.used", quota_resource_name, found)


def _check_quota_spec(spec: core_v1_pb2.ResourceQuotaSpec, found: list[Cause]) -> None:
    check_amounts(spec.hard, "spec.hard", quota_resource_name, found)
    counted = [name for name in sorted(spec.hard) if is_quota_resource(name)]
    listed = list(spec.scopes)
    path = "spec.scopes"
    for scope in listed:
        if scope not in scopes.SCOPES:
            found.append(invalid(path, listed, "unsupported scope"))
        _check_scope_of(scope, counted, path, listed, found)
    _check_conflicts(listed, path, listed, found)
    if not spec.HasField("scopeSelector"):
        return
    path = "spec.scopeSelector.matchExpressions"
    for one in spec.scopeSelector.matchExpressions:
        if one.scopeName not in scopes.SCOPES:
            found.append(invalid(f"{path}.scopeName", one.scopeName, "unsupported scope"))
        _check_scope_of(one.scopeName, counted, path, spec.scopeSelector, found)
        if one.scopeName in scopes.EXISTENCE_ONLY and one.operator != scopes.EXISTS:
            found.append(invalid(f"{path}.operator", one.operator, _EXISTS_DETAIL))
        _check_operator(one, path, found)
    _check_conflicts([one.scopeName for one in spec.scopeSelector.matchExpressions], path, listed, found)


def _check_scope_of(
    scope: str, counted: list[str], path: str, shown: core_v1_pb2.ScopeSelector | list[str], found: list[Cause]
) -> None:
    """``IsResourceQuotaScopeValidForResource``."""
    fitting = {scopes.BEST_EFFORT: ("pods",), scopes.VOLUME_ATTRIBUTES_CLASS: _OF_CLAIMS}.get(scope, _OF_PODS)
    if scope in scopes.SCOPES:
        found.extend(
            invalid(path, shown, "unsupported scope applied to resource") for name in counted if name not in fitting
        )


def _check_conflicts(given: list[str], path: str, listed: list[str], found: list[Cause]) -> None:
    found.extend(
        invalid(path, listed or None, "conflicting scopes")
        for one, other in _CONFLICTING
        if one in given and other in given
    )


def _check_operator(requirement: core_v1_pb2.ScopedResourceSelectorRequirement, path: str, found: list[Cause]) -> None:
    operator, values = requirement.operator, list(requirement.values)
    if operator in (scopes.IN, scopes.NOT_IN):
        if not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            found.append(required(f"{path}.values", detail))
    elif operator in (scopes.EXISTS, scopes.DOES_NOT_EXIST):
        if values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            found.append(invalid(f"{path}.values", values, detail))
    else:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))


# LimitRange ---------------------------------------------------------------------------------------------------------

_CONTAINER, _POD, _CLAIM = "Container", "Pod", "PersistentVolumeClaim"
_MAX_MILLI_VALUE = MAX_VALUE // 1000


def _check_limit_range(limit_range: core_v1_pb2.LimitRange, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, item in enumerate(limit_range.spec.limits):
        path = f"spec.limits[{index}]"
        _check_type(item.type, f"{path}.type", found)
        checks.unique(item.type, seen, f"{path}.type", item.type, found)
        _check_item(item, path, found)


def _check_type(kind: str, path: str, found: list[Cause]) -> None:
    problems = names.label_key(kind)
    found.extend(invalid(path, kind, problem) for problem in problems)
    if not problems and "/" not in kind and kind not in (_CONTAINER, _POD, _CLAIM):
        found.append(invalid(path, kind, "must be a standard limit type or fully qualified"))


def _check_item(item: core_v1_pb2.LimitRangeItem, path: str, found: list[Cause]) -> None:
    rule = container_resource_name if item.type in (_CONTAINER, _POD) else standard_resource_name
    fields = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
    if item.type == _POD:
        for field in ("default", "defaultRequest"):
            fields.remove(field)
            if getattr(item, field):
                found.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
    amounts: dict[str, dict[str, Quantity]] = {"default": {}, "defaultRequest": {}}
    for field in fields:
        given = getattr(item, field)
        for name in sorted(given):
            found.extend(invalid(f"{path}.{field}[{name}]", name, problem) for problem in rule(name))
        try:
            amounts[field] = resource_lists.read(given)
        except ValueError as error:
            found.append(invalid(f"{path}.{field}", "", str(error)))
            return
    if item.type == _CLAIM and "storage" not in amounts["min"] and "storage" not in amounts["max"]:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        found.append(required(f"{path}.limits", detail))
    bounded = {name: None for field in fields for name in amounts[field]}
    for name in sorted(bounded):
        _check_order(name, {field: amounts[field].get(name) for field in amounts}, path, found)


def _check_order(name: str, given: Mapping[str, Quantity | None], path: str, found: list[Cause]) -> None:
    """The amounts of one resource against each other."""
    least, most, ratio = given["min"], given["max"], given["maxLimitRequestRatio"]
    default, request = given["default"], given["defaultRequest"]

    def refuse(field: str, shown: Quantity, detail: str) -> None:
        found.append(invalid(f"{path}.{field}[{name}]", str(shown), detail))

    if least is not None and most is not None and least > most:
        refuse("min", least, f"min value {least} is greater than max value {most}")
    if request is not None:
        if least is not None and least > request:
            refuse("defaultRequest", request, f"min value {least} is greater than default request value {request}")
        if most is not None and request > most:
            refuse("defaultRequest", request, f"default request value {request} is greater than max value {most}")
        if default is not None and request > default:
            detail = f"default request value {request} is greater than default limit value {default}"
            refuse("defaultRequest", request, detail)
    if default is not None:
        if least is not None and least > default:
            refuse("default", least, f"min value {least} is greater than default value {default}")
        if most is not None and default > most:
            refuse("default", most, f"default value {default} is greater than max value {most}")
    if ratio is not None:
        if ratio < resource_lists.ONE:
            refuse("maxLimitRequestRatio", ratio, f"ratio {ratio} is less than 1")
        if least is not None and most is not None and least.nano:
            _check_ratio(ratio, least, most, refuse)
    if not may_overcommit(name) and default is not None and request is not None and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        refuse("defaultRequest", request, detail)


def _check_ratio(ratio: Quantity, least: Quantity, most: Quantity, refuse: Callable[..., None]) -> None:
    allowed, low, high = float(ratio.value), least.value, most.value
    if all(one.nano < _MAX_MILLI_VALUE * NANO for one in (ratio, least, most)):
        allowed, low, high = ratio.milli / 1000, least.milli, most.milli
    if allowed > high / low:
        refuse("maxLimitRequestRatio", ratio, f"ratio {ratio} is greater than max/min = {high / low:.6f}")


RULES = {
    core_v1_pb2.ResourceQuota: Rules(_check_quota, _check_quota_update, _check_quota_status),
    core_v1_pb2.LimitRange: Rules(_check_limit_range),
}
