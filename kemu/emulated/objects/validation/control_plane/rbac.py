"""The checks of rbac.authorization.k8s.io (``pkg/apis/rbac/validation``)."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import invalid, required
from kemu.emulated.objects.validation.metadata import check_label_selector
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import rbac_v1_pb2

GROUP = "rbac.authorization.k8s.io"
_FIXED_ROLE = checks.fixed("roleRef", detail="cannot change roleRef")
_SUBJECTS = ("ServiceAccount", "User", "Group")

Binding = rbac_v1_pb2.RoleBinding | rbac_v1_pb2.ClusterRoleBinding


def _check_role(role: rbac_v1_pb2.Role, found: list[Cause]) -> None:
    _check_rules(role.rules, True, found)


def _check_cluster_role(role: rbac_v1_pb2.ClusterRole, found: list[Cause]) -> None:
    _check_rules(role.rules, False, found)
    if not role.HasField("aggregationRule"):
        return
    path = "aggregationRule.clusterRoleSelectors"
    if not role.aggregationRule.clusterRoleSelectors:
        found.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    for index, selector in enumerate(role.aggregationRule.clusterRoleSelectors):
        before = len(found)
        check_label_selector(selector, f"{path}[{index}]", found)
        if len(found) > before:
            found.append(invalid(f"{path}[{index}]", None, "invalid label selector."))


def _check_rules(rules: Iterable[rbac_v1_pb2.PolicyRule], is_namespaced: bool, found: list[Cause]) -> None:
    """``ValidatePolicyRule``, of each."""
    for index, rule in enumerate(rules):
        path, urls = f"rules[{index}]", list(rule.nonResourceURLs)
        if not rule.verbs:
            found.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        if urls:
            here = f"{path}.nonResourceURLs"
            if is_namespaced:
                found.append(invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
            if rule.apiGroups or rule.resources or rule.resourceNames:
                found.append(invalid(here, urls, "rules cannot apply to both regular resources and non-resource URLs"))
            continue
        if not rule.apiGroups:
            found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.resources:
            found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))


def _check_binding(binding: Binding, found: list[Cause]) -> None:
    """``ValidateRoleBinding`` and ``ValidateClusterRoleBinding``."""
    is_namespaced, role = isinstance(binding, rbac_v1_pb2.RoleBinding), binding.roleRef
    checks.listed(role.apiGroup, "roleRef.apiGroup", (GROUP,), found)
    checks.listed(role.kind, "roleRef.kind", ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",), found)
    checks.needed_name(role.name, "roleRef.name", names.path_segment, found)
    for index, subject in enumerate(binding.subjects):
        _check_subject(subject, is_namespaced, f"subjects[{index}]", found)


def _check_subject(subject: rbac_v1_pb2.Subject, is_namespaced: bool, path: str, found: list[Cause]) -> None:
    """``ValidateRoleBindingSubject``."""
    if not subject.name:
        found.append(required(f"{path}.name"))
    if subject.kind == "ServiceAccount":
        checks.name(subject.name, f"{path}.name", names.dns_subdomain, found)
        checks.listed(subject.apiGroup, f"{path}.apiGroup", ("",), found)
        if not is_namespaced and not subject.namespace:
            found.append(required(f"{path}.namespace"))
    elif subject.kind in _SUBJECTS:
        checks.listed(subject.apiGroup, f"{path}.apiGroup", (GROUP,), found)
    else:
        checks.listed(subject.kind, f"{path}.kind", _SUBJECTS, found)


def _check_binding_update(new: Binding, old: Binding, found: list[Cause]) -> None:
    _check_binding(new, found)
    _FIXED_ROLE(new, old, found)


_BINDING = Rules(_check_binding, _check_binding_update, name_rule=names.path_segment)

RULES = {
    rbac_v1_pb2.Role: Rules(_check_role, name_rule=names.path_segment),
    rbac_v1_pb2.RoleBinding: _BINDING,
    rbac_v1_pb2.ClusterRole: Rules(_check_cluster_role, name_rule=names.path_segment),
    rbac_v1_pb2.ClusterRoleBinding: _BINDING,
}
