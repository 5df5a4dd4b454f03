"""The checks of HorizontalPodAutoscalers (``pkg/apis/autoscaling/validation``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import autoscaling_v2_pb2, meta_v1_pb2

LONGEST_PERIOD_S, LONGEST_WINDOW_S = 1800, 3600

_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""Fields by types of metrics, in the order in which they are looked at."""
_TYPES = sorted(_SOURCES)
_SELECTED, _POLICIES = ("Disabled", "Max", "Min"), ("Percent", "Pods")
_TARGETS = ("Utilization", "Value", "AverageValue")


def _check(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler, found: list[Cause]) -> None:
    _check_spec(autoscaler.spec, None, found)


def _check_update(
    new: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    old: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    found: list[Cause],
) -> None:
    _check_spec(new.spec, old.spec, found)


def _check_status(
    new: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    old: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    found: list[Cause],
) -> None:
    checks.not_negative(new.status.currentReplicas, "status.currentReplicas", found)
    checks.not_negative(new.status.desiredReplicas, "status.desiredReplicas", found)


def _check_spec(
    spec: autoscaling_v2_pb2.HorizontalPodAutoscalerSpec,
    old: autoscaling_v2_pb2.HorizontalPodAutoscalerSpec | None,
    found: list[Cause],
) -> None:
    """``validateHorizontalPodAutoscalerSpec``. ``old``: what it was before; what was wrong may stay so."""
    has_least, least = spec.HasField("minReplicas"), spec.minReplicas
    lowest = 0 if old is not None and old.HasField("minReplicas") and not old.minReplicas else 1
    if has_least and least < lowest:
        found.append(invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}"))
    if not spec.maxReplicas:
        found.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif spec.maxReplicas < 0:
        found.append(invalid("spec.maxReplicas", spec.maxReplicas, "must be greater than or equal to 1"))
    if has_least and spec.maxReplicas < least:
        text = "must be greater than or equal to `minReplicas`"
        found.append(invalid("spec.maxReplicas", spec.maxReplicas, text))
    target = spec.scaleTargetRef
    before = None if old is None else (old.scaleTargetRef.apiVersion, old.scaleTargetRef.kind)
    needs_group = target.kind != "ReplicationController"
    checks_version = before != (target.apiVersion, target.kind)
    _check_reference(target, "spec.scaleTargetRef", needs_group, checks_version, found)
    was_wrong = old is not None and any(
        one.type == "Object" and _version_problem(one.object.describedObject.apiVersion, needs_group=False)
        for one in old.metrics
    )
    for index, metric in enumerate(spec.metrics):
        _check_metric(metric, f"spec.metrics[{index}]", not was_wrong, found)
    if has_least and not least and not any(one.type in ("Object", "External") for one in spec.metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(forbidden("spec.metrics", text))
    if spec.HasField("behavior"):
        for side in ("scaleUp", "scaleDown"):
            if spec.behavior.HasField(side):  # type: ignore[arg-type]
                _check_rules(getattr(spec.behavior, side), f"spec.behavior.{side}", found)


def _check_reference(
    reference: autoscaling_v2_pb2.CrossVersionObjectReference,
    path: str,
    needs_group: bool,
    checks_version: bool,
    found: list[Cause],
) -> None:
    """``ValidateCrossVersionObjectReference``."""
    for field in ("kind", "name"):
        checks.needed_name(getattr(reference, field), f"{path}.{field}", names.path_segment, found)
    problem = _version_problem(reference.apiVersion, needs_group=needs_group) if checks_version else ""
    if problem:
        found.append(invalid(f"{path}.apiVersion", reference.apiVersion, problem))


def _version_problem(text: str, *, needs_group: bool) -> str:
    if text.count("/") > 1:
        return f"unexpected GroupVersion string: {text}"
    return "apiVersion must specify API group" if needs_group and not text.rpartition("/")[0] else ""


def _check_metric(metric: autoscaling_v2_pb2.MetricSpec, path: str, checks_version: bool, found: list[Cause]) -> None:
    """``validateMetricSpec``."""
    if not metric.type:
        found.append(required(f"{path}.type", "must specify a metric source type"))
    if metric.type not in _SOURCES:
        found.append(not_supported(f"{path}.type", metric.type, _TYPES))
    present = [field for field in _SOURCES.values() if metric.HasField(field)]  # type: ignore[arg-type]
    if present:
        _check_source(present[0], getattr(metric, present[0]), f"{path}.{present[0]}", checks_version, found)
    expected = _SOURCES.get(metric.type, "")
    if not expected:
        found.append(not_supported(f"{path}.type", metric.type, _TYPES))
    elif expected not in present:
        found.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        found += [
            forbidden(f"{path}.{field}", "must populate the given metric source only")
            for field in present
            if field != expected
        ]


def _check_source(field: str, source: Any, path: str, checks_version: bool, found: list[Cause]) -> None:
    target, at = source.target, f"{path}.target"
    has_value, has_average = target.HasField("value"), target.HasField("averageValue")
    if field in ("object", "external", "pods"):
        if field == "object":
            _check_reference(source.describedObject, f"{path}.describedObject", False, checks_version, found)
        _check_name(source.metric, f"{path}.metric", found)
        _check_target(target, at, found)
        if field == "pods":
            if not has_average:
                found.append(required(f"{at}.averageValue", "must specify a positive target averageValue"))
            return
        if not has_value and not has_average:
            other = "averageValue" if field == "object" else "a per-pod target"
            of = "" if field == "object" else " for metric"
            text = f"must set either a target value{of} or {other}"
            found.append(required(f"{at}.averageValue", text))
        if field == "external" and has_value and has_average:
            text = "may not set both a target value for metric and a per-pod target"
            found.append(forbidden(f"{at}.value", text))
        return
    if not source.name:
        found.append(required(f"{path}.name", "must specify a resource name"))
    if field == "containerResource":
        if not source.container:
            found.append(required(f"{path}.container", "must specify a container"))
        else:
            checks.name(source.container, f"{path}.container", names.dns_label, found)
    _check_target(target, at, found)
    has_percent = target.HasField("averageUtilization")
    if not has_percent and not has_average:
        found.append(required(f"{at}.averageUtilization", "must set either a target raw value or a target utilization"))
    if has_percent and has_average:
        found.append(forbidden(f"{at}.averageValue", "may not set both a target raw value and a target utilization"))


def _check_name(metric: autoscaling_v2_pb2.MetricIdentifier, path: str, found: list[Cause]) -> None:
    """``validateMetricIdentifier``."""
    if not metric.name:
        found.append(required(f"{path}.name", "must specify a metric name"))
    else:
        checks.name(metric.name, f"{path}.name", names.path_segment, found)


def _check_target(target: autoscaling_v2_pb2.MetricTarget, path: str, found: list[Cause]) -> None:
    """``validateMetricTarget``."""
    if not target.type:
        found.append(required(f"{path}.type", "must specify a metric target type"))
    if target.type not in _TARGETS:
        found.append(invalid(f"{path}.type", target.type, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if target.HasField(field):  # type: ignore[arg-type]
            amount: meta_v1_pb2.Quantity = getattr(target, field)
            if quantities.parse(amount.string).nano <= 0:
                found.append(invalid(f"{path}.{field}", amount.string, "must be positive"))
    if target.HasField("averageUtilization") and target.averageUtilization < 1:
        found.append(invalid(f"{path}.averageUtilization", target.averageUtilization, "must be greater than 0"))


def _check_rules(rules: autoscaling_v2_pb2.HPAScalingRules, path: str, found: list[Cause]) -> None:
    """``validateScalingRules``."""
    window_s = rules.stabilizationWindowSeconds
    at = f"{path}.stabilizationWindowSeconds"
    if window_s < 0:
        found.append(invalid(at, window_s, "must be greater than or equal to zero"))
    if window_s > LONGEST_WINDOW_S:
        found.append(invalid(at, window_s, f"must be less than or equal to {LONGEST_WINDOW_S}"))
    if rules.HasField("selectPolicy"):
        checks.listed(rules.selectPolicy, f"{path}.selectPolicy", _SELECTED, found)
    if not rules.policies:
        found.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(rules.policies):
        at = f"{path}.policies[{index}]"
        checks.listed(policy.type, f"{at}.type", _POLICIES, found)
        checks.positive(policy.value, f"{at}.value", found)
        checks.positive(policy.periodSeconds, f"{at}.periodSeconds", found)
        if policy.periodSeconds > LONGEST_PERIOD_S:
            text = f"must be less than or equal to {LONGEST_PERIOD_S}"
            found.append(invalid(f"{at}.periodSeconds", policy.periodSeconds, text))
    if rules.HasField("tolerance") and quantities.parse(rules.tolerance.string).nano < 0:
        found.append(invalid(f"{path}.tolerance", rules.tolerance.string, checks.NOT_NEGATIVE))


RULES = {autoscaling_v2_pb2.HorizontalPodAutoscaler: Rules(_check, _check_update, _check_status)}
