"""The checks of small API groups (policy, scheduling.k8s.io, coordination.k8s.io, node.k8s.io), and of kinds that are
only kept."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation import checks, placement
from kemu.emulated.objects.validation.amounts import check_overhead, container_resource_name
from kemu.emulated.objects.validation.causes import IMMUTABLE, INVALID, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.metadata import check_label_selector, check_labels
from kemu.emulated.objects.validation.networks import services
from kemu.emulated.objects.validation.pod_specs import pods
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import (
    autoscaling_v2_pb2,
    coordination_v1_pb2,
    meta_v1_pb2,
    networking_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    scheduling_v1_pb2,
)

HIGHEST_USER_PRIORITY = 1_000_000_000
"""The largest value that users may give a priority class."""
SYSTEM_PREFIX = "system-"
SYSTEM_PRIORITY_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""The only classes whose names may begin with ``system-``, and their values."""


def _check_priority_class(priority_class: scheduling_v1_pb2.PriorityClass, found: list[Cause]) -> None:
    name = priority_class.metadata.name
    value = priority_class.value
    if name.startswith(SYSTEM_PREFIX):
        problem = _system_class_problem(name, value, priority_class.globalDefault)
        if problem:
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
            )
            found.append(forbidden("metadata.name", detail))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        found.append(forbidden("value", detail))
    if priority_class.HasField("preemptionPolicy"):
        checks.choice(priority_class.preemptionPolicy, "preemptionPolicy", pods.PREEMPTION_POLICIES, found)


def _system_class_problem(name: str, value: int, global_default: bool) -> str:
    wanted = SYSTEM_PRIORITY_CLASSES.get(name)
    if wanted is None:
        return f"{name} is not a known system priority class"
    if value != wanted:
        return f"value of {name} PriorityClass must be {wanted}"
    if global_default:
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


def _check_priority_class_update(
    new: scheduling_v1_pb2.PriorityClass, old: scheduling_v1_pb2.PriorityClass, found: list[Cause]
) -> None:
    if new.value != old.value:
        found.append(forbidden("value", "may not be changed in an update."))
    checks.fixed("preemptionPolicy")(new, old, found)


def _check_disruption_budget(budget: policy_v1_pb2.PodDisruptionBudget, found: list[Cause]) -> None:
    spec = budget.spec
    if spec.HasField("minAvailable") and spec.HasField("maxUnavailable"):
        found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.HasField(field):
            checks.int_or_percent(getattr(spec, field), f"spec.{field}", found)
            checks.at_most_all(getattr(spec, field), f"spec.{field}", found)
    if spec.HasField("selector"):
        check_label_selector(spec.selector, "spec.selector", found)
    if spec.HasField("unhealthyPodEvictionPolicy"):
        path, policies = "spec.unhealthyPodEvictionPolicy", "policy.v1.UnhealthyPodEvictionPolicyType"
        checks.listed(spec.unhealthyPodEvictionPolicy, path, policies, found)


def _check_disruption_budget_status(
    new: policy_v1_pb2.PodDisruptionBudget, old: policy_v1_pb2.PodDisruptionBudget, found: list[Cause]
) -> None:
    checks.conditions(new.status.conditions, "status.conditions", found)
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        checks.not_negative(getattr(new.status, field), f"status.{field}", found)


def _check_lease(lease: coordination_v1_pb2.Lease, found: list[Cause]) -> None:
    spec = lease.spec
    if spec.HasField("leaseDurationSeconds") and spec.leaseDurationSeconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds, "must be greater than 0"))
    checks.not_negative(spec.leaseTransitions, "spec.leaseTransitions", found)


def _check_runtime_class(runtime_class: node_v1_pb2.RuntimeClass, found: list[Cause]) -> None:
    """``ValidateRuntimeClass`` of ``pkg/apis/node/validation``."""
    checks.needed_name(runtime_class.handler, "handler", names.dns_label, found)
    check_overhead(runtime_class.overhead.podFixed, "overhead", found)
    scheduling = runtime_class.scheduling
    check_labels(scheduling.nodeSelector, "scheduling.nodeSelector", found)
    placement.check_tolerations(scheduling.tolerations, "scheduling.tolerations", found)
    seen: dict[tuple[str, str, str, str], None] = {}
    for index, toleration in enumerate(scheduling.tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        checks.unique(key, seen, f"scheduling.tolerations[{index}]", toleration, found)


def _check_address(address: networking_v1_pb2.IPAddress, found: list[Cause]) -> None:
    """``ValidateIPAddress``."""
    parent, path = address.spec.parentRef, "spec.parentRef"
    if not address.spec.HasField("parentRef"):
        found.append(required(path))
        return
    if parent.group:
        found += [invalid(f"{path}.group", parent.group, text) for text in names.dns_subdomain(parent.group)]
    for field in ("resource", "name", "namespace"):
        value = getattr(parent, field)
        if not value and field != "namespace":
            found.append(required(f"{path}.{field}"))
        found += [invalid(f"{path}.{field}", value, text) for text in names.path_segment(value)]


def _check_address_update(
    new: networking_v1_pb2.IPAddress, old: networking_v1_pb2.IPAddress, found: list[Cause]
) -> None:
    _check_address(new, found)
    if new.spec != old.spec:
        # As Go shows its struct.
        fields = ("group", "resource", "namespace", "name")
        shown = {field.title(): getattr(new.spec.parentRef, field) for field in fields}
        value = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        text = "null" if not new.spec.HasField("parentRef") else value
        found.append(Cause("spec.parentRef", INVALID, f"Invalid value: {text}: {IMMUTABLE}"))


def _check_service_range(service_range: networking_v1_pb2.ServiceCIDR, found: list[Cause]) -> None:
    """``ValidateServiceCIDR``."""
    cidrs, path = list(service_range.spec.cidrs), "spec.cidrs"
    if not cidrs:
        found.append(required(path, "at least one CIDR required"))
        return
    if len(cidrs) > 2:
        found.append(invalid(path, {"CIDRs": cidrs}, "may only hold up to 2 values"))
        return
    before = len(found)
    for index, cidr in enumerate(cidrs):
        found += [invalid(f"{path}[{index}]", cidr, text) for text in names.network(cidr)]
    if len(found) == before and len({":" in cidr for cidr in cidrs}) < len(cidrs):
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        found.append(invalid(path, cidrs, text))


def _check_service_range_update(
    new: networking_v1_pb2.ServiceCIDR, old: networking_v1_pb2.ServiceCIDR, found: list[Cause]
) -> None:
    """``ValidateServiceCIDRUpdate``: a range of the other family may come."""
    cidrs, known = list(new.spec.cidrs), list(old.spec.cidrs)
    if len(cidrs) == len(known) or (len(known), len(cidrs)) == (1, 2):
        found += [
            invalid(f"spec.cidrs[{index}]", one, IMMUTABLE)
            for index, (one, other) in enumerate(zip(cidrs, known, strict=False))
            if one != other
        ]
        if len(cidrs) > len(known):
            _check_service_range(new, found)
    else:
        found.append(invalid("spec.cidrs", cidrs, IMMUTABLE))


# HorizontalPodAutoscalers (``pkg/apis/autoscaling/validation``) ---------------------------------------------------

LONGEST_PERIOD_S, LONGEST_WINDOW_S = 1800, 3600

_METRIC_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""Fields by types of metrics, in the order in which they are looked at."""
_METRIC_TYPES = sorted(_METRIC_SOURCES)
_SELECTED_POLICIES, _SCALING_POLICIES = ("Disabled", "Max", "Min"), ("Percent", "Pods")
_METRIC_TARGETS = ("Utilization", "Value", "AverageValue")


def _check_autoscaler(autoscaler: autoscaling_v2_pb2.HorizontalPodAutoscaler, found: list[Cause]) -> None:
    _check_autoscaler_spec(autoscaler.spec, None, found)


def _check_autoscaler_update(
    new: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    old: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    found: list[Cause],
) -> None:
    _check_autoscaler_spec(new.spec, old.spec, found)


def _check_autoscaler_status(
    new: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    old: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    found: list[Cause],
) -> None:
    checks.not_negative(new.status.currentReplicas, "status.currentReplicas", found)
    checks.not_negative(new.status.desiredReplicas, "status.desiredReplicas", found)


def _check_autoscaler_spec(
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
                _check_scaling_rules(getattr(spec.behavior, side), f"spec.behavior.{side}", found)


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
    if metric.type not in _METRIC_SOURCES:
        found.append(not_supported(f"{path}.type", metric.type, _METRIC_TYPES))
    present = [field for field in _METRIC_SOURCES.values() if metric.HasField(field)]  # type: ignore[arg-type]
    if present:
        _check_source(present[0], getattr(metric, present[0]), f"{path}.{present[0]}", checks_version, found)
    expected = _METRIC_SOURCES.get(metric.type, "")
    if not expected:
        found.append(not_supported(f"{path}.type", metric.type, _METRIC_TYPES))
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
        _check_metric_name(source.metric, f"{path}.metric", found)
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
        checks.name(source.name, f"{path}.name", container_resource_name, found)
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


def _check_metric_name(metric: autoscaling_v2_pb2.MetricIdentifier, path: str, found: list[Cause]) -> None:
    """``validateMetricIdentifier``."""
    if not metric.name:
        found.append(required(f"{path}.name", "must specify a metric name"))
    else:
        checks.name(metric.name, f"{path}.name", names.path_segment, found)


def _check_target(target: autoscaling_v2_pb2.MetricTarget, path: str, found: list[Cause]) -> None:
    """``validateMetricTarget``."""
    if not target.type:
        found.append(required(f"{path}.type", "must specify a metric target type"))
    if target.type not in _METRIC_TARGETS:
        found.append(invalid(f"{path}.type", target.type, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if target.HasField(field):  # type: ignore[arg-type]
            amount: meta_v1_pb2.Quantity = getattr(target, field)
            if quantities.parse(amount.string).nano <= 0:
                found.append(invalid(f"{path}.{field}", amount.string, "must be positive"))
    if target.HasField("averageUtilization") and target.averageUtilization < 1:
        found.append(invalid(f"{path}.averageUtilization", target.averageUtilization, "must be greater than 0"))


def _check_scaling_rules(rules: autoscaling_v2_pb2.HPAScalingRules, path: str, found: list[Cause]) -> None:
    """``validateScalingRules``."""
    window_s = rules.stabilizationWindowSeconds
    at = f"{path}.stabilizationWindowSeconds"
    if window_s < 0:
        found.append(invalid(at, window_s, "must be greater than or equal to zero"))
    if window_s > LONGEST_WINDOW_S:
        found.append(invalid(at, window_s, f"must be less than or equal to {LONGEST_WINDOW_S}"))
    if rules.HasField("selectPolicy"):
        checks.listed(rules.selectPolicy, f"{path}.selectPolicy", _SELECTED_POLICIES, found)
    if not rules.policies:
        found.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(rules.policies):
        at = f"{path}.policies[{index}]"
        checks.listed(policy.type, f"{at}.type", _SCALING_POLICIES, found)
        checks.positive(policy.value, f"{at}.value", found)
        checks.positive(policy.periodSeconds, f"{at}.periodSeconds", found)
        if policy.periodSeconds > LONGEST_PERIOD_S:
            text = f"must be less than or equal to {LONGEST_PERIOD_S}"
            found.append(invalid(f"{at}.periodSeconds", policy.periodSeconds, text))
    if rules.HasField("tolerance") and quantities.parse(rules.tolerance.string).nano < 0:
        found.append(invalid(f"{path}.tolerance", rules.tolerance.string, checks.NOT_NEGATIVE))


RULES = {
    networking_v1_pb2.IPAddress: Rules(_check_address, _check_address_update, name_rule=names.address),
    networking_v1_pb2.ServiceCIDR: Rules(_check_service_range, _check_service_range_update),
    policy_v1_pb2.PodDisruptionBudget: Rules(_check_disruption_budget, status_update=_check_disruption_budget_status),
    scheduling_v1_pb2.PriorityClass: Rules(_check_priority_class, _check_priority_class_update),
    coordination_v1_pb2.Lease: Rules(_check_lease),
    node_v1_pb2.RuntimeClass: Rules(_check_runtime_class, checks.fixed("handler")),
    networking_v1_pb2.NetworkPolicy: Rules(services.check_policy),
    autoscaling_v2_pb2.HorizontalPodAutoscaler: Rules(
        _check_autoscaler, _check_autoscaler_update, _check_autoscaler_status
    ),
}
