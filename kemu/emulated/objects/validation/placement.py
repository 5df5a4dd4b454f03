"""Checks of where a pod may run: tolerations, affinity, topology spread, scheduling gates.

Parts of :mod:`kemu.emulated.objects.validation.pod_specs.pods`; the texts are those of ``pkg/apis/core/validation`` of
Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.metadata import (
    check_label_key,
    check_label_selector,
    check_label_value,
    check_set_operator,
)
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_tolerations(tolerations: Iterable[core_v1_pb2.Toleration], path: str, found: list[Cause]) -> None:
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        operator = toleration.operator
        if toleration.key:
            check_label_key(toleration.key, f"{here}.key", found)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{here}.operator", operator, detail))
        if toleration.HasField("tolerationSeconds") and toleration.effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(invalid(f"{here}.effect", toleration.effect, detail))
        if operator in ("Equal", ""):
            problems = names.label_value(toleration.value)
            if problems:
                found.append(invalid(f"{here}.operator", toleration.value, ";".join(problems)))
        elif operator == "Exists":
            if toleration.value:
                detail = "value must be empty when `operator` is 'Exists'"
                found.append(invalid(f"{here}.operator", toleration.value, detail))
        else:
            # The gate for comparisons, which is off, also decides which text there is.
            known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            found.append(not_supported(f"{here}.operator", operator, known))
        checks.supported(toleration.effect, f"{here}.effect", TAINT_EFFECTS, found)


def check_affinity(affinity: core_v1_pb2.Affinity, path: str, found: list[Cause]) -> None:
    if affinity.HasField("nodeAffinity"):
        node_affinity, here = affinity.nodeAffinity, f"{path}.nodeAffinity"
        field = "requiredDuringSchedulingIgnoredDuringExecution"
        if node_affinity.HasField(field):
            check_node_selector(getattr(node_affinity, field), f"{here}.{field}", found)
        field = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(getattr(node_affinity, field)):
            _check_weight(term.weight, f"{here}.{field}[{index}].weight", found)
            _check_node_term(term.preference, f"{here}.{field}[{index}].preference", False, found)
    for kind in ("podAffinity", "podAntiAffinity"):
        if affinity.HasField(kind):
            _check_pod_affinity(getattr(affinity, kind), f"{path}.{kind}", found)


def _check_weight(weight: int, path: str, found: list[Cause]) -> None:
    if not 1 <= weight <= 100:
        found.append(invalid(path, weight, "must be in the range 1-100"))


def check_node_selector(selector: core_v1_pb2.NodeSelector, path: str, found: list[Cause]) -> None:
    if not selector.nodeSelectorTerms:
        found.append(required(f"{path}.nodeSelectorTerms", "must have at least one node selector term"))
    for index, term in enumerate(selector.nodeSelectorTerms):
        _check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", True, found)


def _check_node_term(term: core_v1_pb2.NodeSelectorTerm, path: str, values_too: bool, found: list[Cause]) -> None:
    """``values_too``: whether values must be valid label values; those of preferred terms may be any text."""
    for index, requirement in enumerate(term.matchExpressions):
        here = f"{path}.matchExpressions[{index}]"
        if requirement.operator not in ("Gt", "Lt"):
            check_set_operator(requirement, here, found)
        elif len(requirement.values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(f"{here}.values", detail))
        check_label_key(requirement.key, f"{here}.key", found)
        if values_too:
            for position, value in enumerate(requirement.values):
                check_label_value(value, f"{here}.values[{position}]", found)
    for index, requirement in enumerate(term.matchFields):
        here = f"{path}.matchFields[{index}]"
        if requirement.operator not in ("In", "NotIn"):
            found.append(invalid(f"{here}.operator", requirement.operator, "not a valid selector operator"))
        elif len(requirement.values) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            found.append(required(f"{here}.values", detail))
        if requirement.key != "metadata.name":
            found.append(invalid(f"{here}.key", requirement.key, "not a valid field selector key"))
            continue
        for position, value in enumerate(requirement.values):
            problems = names.dns_subdomain(value)
            found.extend(invalid(f"{here}.values[{position}]", value, problem) for problem in problems)


def _check_pod_affinity(
    affinity: core_v1_pb2.PodAffinity | core_v1_pb2.PodAntiAffinity, path: str, found: list[Cause]
) -> None:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(getattr(affinity, field)):
        _check_pod_term(term, f"{path}.{field}[{index}]", found)
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, weighted in enumerate(getattr(affinity, field)):
        here = f"{path}.{field}[{index}]"
        _check_weight(weighted.weight, f"{here}.weight", found)
        _check_pod_term(weighted.podAffinityTerm, f"{here}.podAffinityTerm", found)


def _check_pod_term(term: core_v1_pb2.PodAffinityTerm, path: str, found: list[Cause]) -> None:
    for field in ("labelSelector", "namespaceSelector"):
        if term.HasField(field):
            check_label_selector(getattr(term, field), f"{path}.{field}", found)
    for namespace in term.namespaces:
        problems = names.dns_label(namespace)
        found.extend(invalid(f"{path}.namespace", namespace, problem) for problem in problems)
    if term.matchLabelKeys or term.mismatchLabelKeys:
        _check_label_keys(term, path, term.mismatchLabelKeys, found)
    if not term.topologyKey:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    check_label_key(term.topologyKey, f"{path}.topologyKey", found)


def _check_label_keys(
    holder: core_v1_pb2.PodAffinityTerm | core_v1_pb2.TopologySpreadConstraint,
    path: str,
    mismatched: Sequence[str],
    found: list[Cause],
) -> None:
    """``ValidateMatchLabelKeysAndMismatchLabelKeys``"""
    matched = holder.matchLabelKeys
    has_selector = holder.HasField("labelSelector")
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and not has_selector:
            found.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for index, key in enumerate(keys):
            check_label_key(key, f"{path}.{field}[{index}]", found)
    if has_selector and matched:
        places = {key: index for index, key in enumerate(matched)}
        seen = dict.fromkeys(holder.labelSelector.matchLabels)
        for requirement in holder.labelSelector.matchExpressions:
            key = requirement.key
            # The server has added one requirement for each of the keys.
            if key in places and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                found.append(invalid(f"{path}[{places[key]}]", key, detail))
            seen[key] = None
    for index, key in enumerate(matched):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(invalid(f"{path}.matchLabelKeys[{index}]", key, detail))


def check_spread(constraints: Sequence[core_v1_pb2.TopologySpreadConstraint], path: str, found: list[Cause]) -> None:
    pairs = [(one.topologyKey, one.whenUnsatisfiable) for one in constraints]
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        checks.positive(constraint.maxSkew, f"{here}.maxSkew", found)
        if not constraint.topologyKey:
            found.append(required(f"{here}.topologyKey", "can not be empty"))
        when = constraint.whenUnsatisfiable
        checks.listed(when, f"{here}.whenUnsatisfiable", "core.v1.UnsatisfiableConstraintAction", found)
        if pairs[index] in pairs[index + 1 :]:
            shown = f"{{{constraint.topologyKey}, {when}}}"
            found.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", shown))
        if constraint.HasField("minDomains"):
            checks.positive(constraint.minDomains, f"{here}.minDomains", found)
            if when != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
                found.append(invalid(f"{here}.minDomains", constraint.minDomains, detail))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.HasField(field):
                checks.listed(getattr(constraint, field), f"{here}.{field}", "core.v1.NodeInclusionPolicy", found)
        if constraint.matchLabelKeys:
            _check_label_keys(constraint, here, (), found)
        if constraint.HasField("labelSelector"):
            check_label_selector(constraint.labelSelector, f"{here}.labelSelector", found)


def check_gates(gates: Iterable[core_v1_pb2.PodSchedulingGate], path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, gate in enumerate(gates):
        check_label_key(gate.name, f"{path}[{index}]", found)
        checks.unique(gate.name, seen, f"{path}[{index}]", gate.name, found)
