"""The checks of small API groups (policy, scheduling.k8s.io, coordination.k8s.io, node.k8s.io), and of kinds that are
only kept."""

from __future__ import annotations

import ipaddress

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks, placement
from kemu.emulated.objects.validation.amounts import check_overhead
from kemu.emulated.objects.validation.causes import forbidden, invalid, required
from kemu.emulated.objects.validation.metadata import check_label_selector, check_labels
from kemu.emulated.objects.validation.pod_specs import pods
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import (
    admissionregistration_v1_pb2,
    certificates_v1_pb2,
    coordination_v1_pb2,
    discovery_v1_pb2,
    meta_v1_pb2,
    networking_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
    rbac_v1_pb2,
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
            _check_int_or_percent(getattr(spec, field), f"spec.{field}", found)
    if spec.HasField("unhealthyPodEvictionPolicy"):
        path, policies = "spec.unhealthyPodEvictionPolicy", "policy.v1.UnhealthyPodEvictionPolicyType"
        checks.listed(spec.unhealthyPodEvictionPolicy, path, policies, found)
    if spec.HasField("selector"):
        check_label_selector(spec.selector, "spec.selector", found)


def _check_int_or_percent(value: meta_v1_pb2.IntOrString, path: str, found: list[Cause]) -> None:
    if value.type == 0:
        checks.not_negative(value.intVal, path, found)
        return
    text = value.strVal
    if not (text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit()):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        found.append(invalid(path, text, detail))
    elif len(text[:-1].lstrip("0")) > 3 or int(text[:-1]) > 100:
        found.append(invalid(path, text, "must not be greater than 100%"))


def _check_disruption_budget_status(
    new: policy_v1_pb2.PodDisruptionBudget, old: policy_v1_pb2.PodDisruptionBudget, found: list[Cause]
) -> None:
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
    parent = address.spec.parentRef
    if not address.spec.HasField("parentRef"):
        found.append(required("spec.parentRef"))
        return
    found += [required(f"spec.parentRef.{field}") for field in ("resource", "name") if not getattr(parent, field)]


def _check_service_range(service_range: networking_v1_pb2.ServiceCIDR, found: list[Cause]) -> None:
    """``ValidateServiceCIDR``."""
    cidrs = service_range.spec.cidrs
    if not 1 <= len(cidrs) <= 2:
        found.append(invalid("spec.cidrs", list(cidrs), "must specify one IPv4 CIDR or one IPv6 CIDR, or one of each"))
    for index, cidr in enumerate(cidrs):
        try:
            ipaddress.ip_network(cidr)
        except ValueError:
            found.append(invalid(f"spec.cidrs[{index}]", cidr, "must be a valid CIDR value"))


def _check_signing_request(request: certificates_v1_pb2.CertificateSigningRequest, found: list[Cause]) -> None:
    """The part of ``validateCertificateSigningRequest`` that does not look into the request."""
    spec = request.spec
    if not spec.usages:
        found.append(required("spec.usages"))
    if "/" not in spec.signerName:
        found.append(invalid("spec.signerName", spec.signerName, "must be a fully qualified domain and path"))
    if not spec.request:
        found.append(invalid("spec.request", "", "PEM block type must be CERTIFICATE REQUEST"))


def _refuse_policy(policy: admissionregistration_v1_pb2.ValidatingAdmissionPolicy, found: list[Cause]) -> None:
    """A policy that is not enforced would be a lie; the kind is there for those that list it."""
    found.append(forbidden("spec", "kemu has no such admission, so nothing would enforce it"))


_FIXED_ROLE = checks.fixed("roleRef", detail="cannot change roleRef")

RULES = {
    admissionregistration_v1_pb2.ValidatingAdmissionPolicy: Rules(_refuse_policy),
    certificates_v1_pb2.CertificateSigningRequest: Rules(_check_signing_request, name_rule=names.path_segment),
    networking_v1_pb2.IPAddress: Rules(_check_address, checks.fixed("spec"), name_rule=names.path_segment),
    networking_v1_pb2.ServiceCIDR: Rules(_check_service_range),
    policy_v1_pb2.PodDisruptionBudget: Rules(_check_disruption_budget, status_update=_check_disruption_budget_status),
    scheduling_v1_pb2.PriorityClass: Rules(_check_priority_class, _check_priority_class_update),
    coordination_v1_pb2.Lease: Rules(_check_lease),
    node_v1_pb2.RuntimeClass: Rules(_check_runtime_class, checks.fixed("handler")),
    networking_v1_pb2.Ingress: Rules(),
    networking_v1_pb2.IngressClass: Rules(update=checks.fixed("spec.controller")),
    networking_v1_pb2.NetworkPolicy: Rules(),
    rbac_v1_pb2.Role: Rules(name_rule=names.path_segment),
    rbac_v1_pb2.RoleBinding: Rules(update=_FIXED_ROLE, name_rule=names.path_segment),
    rbac_v1_pb2.ClusterRole: Rules(name_rule=names.path_segment),
    rbac_v1_pb2.ClusterRoleBinding: Rules(update=_FIXED_ROLE, name_rule=names.path_segment),
    discovery_v1_pb2.EndpointSlice: Rules(update=checks.fixed("addressType")),
}
