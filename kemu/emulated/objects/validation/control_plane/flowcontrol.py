"""The checks of flowcontrol.apiserver.k8s.io (``pkg/apis/flowcontrol/validation``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.kinds import flow_defaults
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import flowcontrol_v1_pb2

HIGHEST_PRECEDENCE = 10_000
MOST_QUEUES = 10_000_000
HASH_BITS = 60
"""Bits of a hash from which a hand of queues is dealt (``shufflesharding.MaxHashBits``)."""
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
"""By the kind, the field."""
_NAMESPACE = "each member of this list must be '*' or a DNS-1123 label; "


def _check_schema(schema: flowcontrol_v1_pb2.FlowSchema, found: list[Cause]) -> None:
    spec, name = schema.spec, schema.metadata.name
    precedence, path = spec.matchingPrecedence, "spec.matchingPrecedence"
    if precedence <= 0:
        found.append(invalid(path, precedence, "must be a positive value"))
    if precedence > HIGHEST_PRECEDENCE:
        found.append(invalid(path, precedence, f"must not be greater than {HIGHEST_PRECEDENCE}"))
    if precedence == 1 and name != flow_defaults.EXEMPT:
        found.append(invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    if spec.HasField("distinguisherMethod") and spec.distinguisherMethod.type not in ("ByNamespace", "ByUser"):
        found.append(
            not_supported(
                "spec.distinguisherMethod.type", _of_message(spec.distinguisherMethod), ("ByNamespace", "ByUser")
            )
        )
    path, level = "spec.priorityLevelConfiguration.name", spec.priorityLevelConfiguration.name
    if level:
        checks.name(level, path, names.dns_subdomain, found)
    else:
        found.append(required(path, "must reference a priority level"))
    for index, rule in enumerate(spec.rules):
        _check_rule(rule, f"spec.rules[{index}]", found)
    fixed = flow_defaults.MANDATORY_SCHEMAS.get(name)
    if fixed is not None and fixed.spec != spec:
        found.append(invalid("spec", spec, f"spec of '{name}' must equal the fixed value"))


def _of_message(method: flowcontrol_v1_pb2.FlowDistinguisherMethod) -> dict[str, str]:
    """As Go prints the struct, with the names of its fields."""
    return {"Type": method.type}


def _check_rule(rule: flowcontrol_v1_pb2.PolicyRulesWithSubjects, path: str, found: list[Cause]) -> None:
    if not rule.subjects:
        found.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(rule.subjects):
        _check_subject(subject, f"{path}.subjects[{index}]", found)
    if not rule.resourceRules and not rule.nonResourceRules:
        found.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, resource in enumerate(rule.resourceRules):
        _check_resources(resource, f"{path}.resourceRules[{index}]", found)
    for index, urls in enumerate(rule.nonResourceRules):
        _check_urls(urls, f"{path}.nonResourceRules[{index}]", found)


def _check_subject(subject: flowcontrol_v1_pb2.Subject, path: str, found: list[Cause]) -> None:
    field = _SUBJECTS.get(subject.kind)
    if field is None:
        found.append(not_supported(f"{path}.kind", subject.kind, sorted(_SUBJECTS)))
        return
    if not subject.HasField(field):
        found.append(required(f"{path}.{field}", f"{field} is required when subject kind is '{subject.kind}'"))
    elif field == "serviceAccount":
        _check_account(subject.serviceAccount, f"{path}.{field}", found)
    elif not getattr(subject, field).name:
        found.append(required(f"{path}.{field}.name"))
    # Of the other two, in the order in which Kubernetes looks.
    for kind, other in (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")):
        if other != field and subject.HasField(other):
            found.append(forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{kind}'"))


def _check_account(account: flowcontrol_v1_pb2.ServiceAccountSubject, path: str, found: list[Cause]) -> None:
    if not account.name:
        found.append(required(f"{path}.name"))
    elif account.name != "*":
        checks.name(account.name, f"{path}.name", names.dns_subdomain, found)
    if account.namespace:
        checks.name(account.namespace, f"{path}.namespace", names.dns_label, found)
    else:
        found.append(required(f"{path}.namespace", "must specify namespace for service account"))


def _check_verbs(verbs: Sequence[str], path: str, found: list[Cause]) -> None:
    if not verbs:
        found.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    elif "*" in verbs:
        if len(verbs) > 1:
            found.append(invalid(f"{path}.verbs", list(verbs), "if '*' is present, must not specify other verbs"))
    elif not set(verbs) <= set(VERBS):
        found.append(not_supported(f"{path}.verbs", list(verbs), VERBS))


def _check_resources(rule: flowcontrol_v1_pb2.ResourcePolicyRule, path: str, found: list[Cause]) -> None:
    _check_verbs(rule.verbs, path, found)
    for field, values, what in (
        ("apiGroups", rule.apiGroups, "api group"),
        ("resources", rule.resources, "resource"),
    ):
        if not values:
            found.append(required(f"{path}.{field}", f"resource rules must supply at least one {what}"))
        elif len(values) > 1 and "*" in values:
            text = f"if '*' is present, must not specify other {what}s"
            found.append(invalid(f"{path}.{field}", list(values), text))
    path = f"{path}.namespaces"
    if not rule.namespaces and not rule.clusterScope:
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        found.append(required(path, text))
    elif "*" in rule.namespaces:
        if len(rule.namespaces) > 1:
            text = "if '*' is present, must not specify other namespaces"
            found.append(invalid(path, list(rule.namespaces), text))
    else:
        for index, namespace in enumerate(rule.namespaces):
            problems = names.dns_label(namespace)
            found += [invalid(f"{path}[{index}]", namespace, f"{_NAMESPACE}{problem}") for problem in problems]


def _check_urls(rule: flowcontrol_v1_pb2.NonResourcePolicyRule, path: str, found: list[Cause]) -> None:
    _check_verbs(rule.verbs, path, found)
    path, urls = f"{path}.nonResourceURLs", rule.nonResourceURLs
    if not urls:
        found.append(required(path, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        if len(urls) > 1:
            text = "if '*' is present, must not specify other non-resource URLs"
            found.append(invalid(path, list(urls), text))
    else:
        for index, url in enumerate(urls):
            problem = _url_problem(url)
            if problem:
                found.append(invalid(f"{path}[{index}]", url, problem))


def _url_problem(url: str) -> str:
    """``ValidateNonResourceURLPath``."""
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _check_level(level: flowcontrol_v1_pb2.PriorityLevelConfiguration, found: list[Cause]) -> None:
    spec, name = level.spec, level.metadata.name
    if (name == flow_defaults.EXEMPT) != (spec.type == "Exempt"):
        text = "must be 'Exempt' if and only if `name` is 'exempt'"
        found.append(invalid("spec.type", spec.type, text))
    if spec.type == "Exempt":
        if spec.HasField("limited"):
            found.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        if spec.HasField("exempt"):
            _check_shares(spec.exempt, "spec.exempt", found)
    elif spec.type == "Limited":
        if spec.HasField("exempt"):
            found.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if spec.HasField("limited"):
            _check_limited(spec.limited, "spec.limited", found)
        else:
            found.append(required("spec.limited", "must not be empty when type is Limited"))
    else:
        checks.choice(spec.type, "spec.type", ("Exempt", "Limited"), found)
    fixed = flow_defaults.MANDATORY_LEVELS.get(name)
    if fixed is None:
        return
    wanted = type(spec)()
    wanted.CopyFrom(fixed.spec)
    but = ""
    if name == flow_defaults.EXEMPT:
        but = " except the 'spec.exempt' field"
        wanted.ClearField("exempt")
        if spec.HasField("exempt"):
            wanted.exempt.CopyFrom(spec.exempt)
    if wanted != spec:
        found.append(invalid("spec", spec, f"spec of '{name}'{but} must equal the fixed value"))


def _check_shares(
    level: flowcontrol_v1_pb2.ExemptPriorityLevelConfiguration | flowcontrol_v1_pb2.LimitedPriorityLevelConfiguration,
    path: str,
    found: list[Cause],
) -> None:
    if level.nominalConcurrencyShares < 0:
        text = "must be a non-negative integer"
        found.append(invalid(f"{path}.nominalConcurrencyShares", level.nominalConcurrencyShares, text))
    if isinstance(level, flowcontrol_v1_pb2.LimitedPriorityLevelConfiguration):
        _check_response(level.limitResponse, f"{path}.limitResponse", found)
    if not 0 <= level.lendablePercent <= 100:
        found.append(invalid(f"{path}.lendablePercent", level.lendablePercent, "must be between 0 and 100, inclusive"))


def _check_limited(level: flowcontrol_v1_pb2.LimitedPriorityLevelConfiguration, path: str, found: list[Cause]) -> None:
    _check_shares(level, path, found)
    if level.borrowingLimitPercent < 0:
        text = "if specified, must be a non-negative integer"
        found.append(invalid(f"{path}.borrowingLimitPercent", level.borrowingLimitPercent, text))


def _check_response(response: flowcontrol_v1_pb2.LimitResponse, path: str, found: list[Cause]) -> None:
    queues, has_queues = f"{path}.queuing", response.HasField("queuing")
    if response.type == "Reject":
        if has_queues:
            found.append(forbidden(queues, "must be nil if limited.limitResponse.type is not Limited"))
    elif response.type == "Queue":
        if has_queues:
            _check_queues(response.queuing, queues, found)
        else:
            found.append(required(queues, "must not be empty if limited.limitResponse.type is Limited"))
    else:
        checks.choice(response.type, f"{path}.type", ("Queue", "Reject"), found)


def _check_queues(queuing: flowcontrol_v1_pb2.QueuingConfiguration, path: str, found: list[Cause]) -> None:
    if queuing.queueLengthLimit <= 0:
        found.append(invalid(f"{path}.queueLengthLimit", queuing.queueLengthLimit, "must be positive"))
    queues, hand = queuing.queues, queuing.handSize
    if queues <= 0:
        found.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > MOST_QUEUES:
        found.append(invalid(f"{path}.queues", queues, f"must not be greater than {MOST_QUEUES}"))
    path = f"{path}.handSize"
    if hand <= 0:
        found.append(invalid(path, hand, "must be positive"))
    elif hand > queues:
        found.append(invalid(path, hand, f"should not be greater than queues ({queues})"))
    elif _bits(queues, hand) > HASH_BITS:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
        found.append(invalid(path, hand, text))


def _bits(deck: int, hand: int) -> int:
    """``RequiredEntropyBits``."""
    return math.ceil(math.log2(deck) * hand)


Configuration = flowcontrol_v1_pb2.FlowSchema | flowcontrol_v1_pb2.PriorityLevelConfiguration


def _check_status(new: Configuration, old: Configuration, found: list[Cause]) -> None:
    seen: set[str] = set()
    conditions: Any = new.status.conditions
    for index, condition in enumerate(conditions):
        path = f"status.conditions[{index}].type"
        if condition.type in seen:
            found.append(duplicate(path, condition.type))
        seen.add(condition.type)
        if not condition.type:
            found.append(required(path))


RULES = {
    flowcontrol_v1_pb2.FlowSchema: Rules(_check_schema, status_update=_check_status),
    flowcontrol_v1_pb2.PriorityLevelConfiguration: Rules(_check_level, status_update=_check_status),
}
