"""The checks of admissionregistration.k8s.io: configurations of webhooks, policies and their bindings.

``pkg/apis/admissionregistration/validation``. Expressions are compiled by who evaluates them
(:data:`compiler_of`): this package stands below the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks
from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported, required, shown
from kemu.emulated.objects.validation.metadata import check_label_selector
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1

Webhook = v1.ValidatingWebhook | v1.MutatingWebhook
Configuration = v1.ValidatingWebhookConfiguration | v1.MutatingWebhookConfiguration
Policy = v1.ValidatingAdmissionPolicy | v1.MutatingAdmissionPolicy
Binding = v1.ValidatingAdmissionPolicyBinding | v1.MutatingAdmissionPolicyBinding

REVIEW_VERSIONS = ("v1", "v1beta1")
"""Those of AdmissionReview that webhooks are asked with."""
_FAILURE_POLICIES, _MATCH_POLICIES = ("Fail", "Ignore"), ("Equivalent", "Exact")
_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATIONS = ("IfNeeded", "Never")
_SCOPES = ("*", "Cluster", "Namespaced")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_PATCH_TYPES = ("ApplyConfiguration", "JSONPatch")
_MOST_CONDITIONS, _MOST_ANNOTATIONS, _LONGEST_ANNOTATION = 64, 20, 5 * 1024
_URL_FORM = "; desired format: https://host[/path]"
_WRONG_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}")
_DELETE = 0x7F
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip

CONDITION, MESSAGE, ANNOTATION, APPLY, PATCH = "condition", "message", "annotation", "apply", "patch"
"""What an expression is for."""


class Compiler(Protocol):
    """Compiles the expressions of one object, as far as to say what is wrong with them; "": nothing."""

    def problem(self, use: str, text: str) -> str: ...

    def variable(self, name: str, text: str) -> str:
        """Those after it may use it."""
        ...


class _Anything:
    def problem(self, use: str, text: str) -> str:
        return ""

    def variable(self, name: str, text: str) -> str:
        return ""


compiler_of: Callable[[bool], Compiler] = lambda has_params: _Anything()  # noqa: E731 - replaced by who compiles
"""Given whether there are params. Set by the API server."""


def use_compiler(made: Callable[[bool], Compiler]) -> None:
    global compiler_of
    compiler_of = made


# Rules ---------------------------------------------------------------------------------------------------------------


def _check_rule(rule: v1.RuleWithOperations, path: str, found: list[Cause]) -> None:
    operations = list(rule.operations)
    if not operations:
        found.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        found.append(invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations"))
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            found.append(not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS))
    where = rule.rule
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = list(getattr(where, field))
        if not values:
            found.append(required(f"{path}.{field}"))
        if len(values) > 1 and "*" in values:
            found.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {what}"))
    found += [required(f"{path}.apiVersions[{index}]") for index, one in enumerate(where.apiVersions) if not one]
    _check_resources(list(where.resources), f"{path}.resources", found)
    if where.HasField("scope") and where.scope not in _SCOPES:
        found.append(not_supported(f"{path}.scope", where.scope, _SCOPES))


def _check_resources(resources: list[str], path: str, found: list[Cause]) -> None:
    if not resources:
        found.append(required(path))
    whole, everywhere = set[str](), set[str]()
    for index, text in enumerate(resources):
        here = f"{path}[{index}]"
        if not text:
            found.append(required(here))
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            continue
        if resource in whole:
            found.append(invalid(here, text, f"if '{resource}/*' is present, must not specify {text}"))
        if subresource in everywhere:
            found.append(invalid(here, text, f"if '*/{subresource}' is present, must not specify {text}"))
        if subresource == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        found.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(text and text != "*" and "/" not in text for text in resources):
        why = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, resources, why))


def _check_match(match: v1.MatchResources, path: str, found: list[Cause]) -> None:
    if not match.HasField("matchPolicy"):
        found.append(required(f"{path}.matchPolicy"))
    else:
        checks.listed(match.matchPolicy, f"{path}.matchPolicy", _MATCH_POLICIES, found)
    for field in ("namespaceSelector", "objectSelector"):
        if match.HasField(field):
            check_label_selector(getattr(match, field), f"{path}.{field}", found)
        else:
            found.append(required(f"{path}.{field}"))
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(getattr(match, field)):
            here = f"{path}.{field}[{index}]"
            seen: dict[str, None] = {}
            for position, name in enumerate(rule.resourceNames):
                place = f"{here}.resourceNames[{position}]"
                found += [invalid(place, name, problem) for problem in names.path_segment(name)]
                checks.unique(name, seen, place, name, found)
            _check_rule(rule.ruleWithOperations, here, found)


def _check_conditions(
    conditions: Sequence[v1.MatchCondition], compiler: Compiler, path: str, found: list[Cause]
) -> None:
    if len(conditions) > _MOST_CONDITIONS:
        why = f"Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
        found.append(Cause(path, "FieldValueTooMany", why))
    seen: dict[str, None] = {}
    for index, condition in enumerate(conditions):
        here = f"{path}[{index}]"
        text = condition.expression.strip()
        if not text:
            found.append(required(f"{here}.expression"))
        else:
            _check_expression(compiler, CONDITION, text, f"{here}.expression", found)
        if not condition.name:
            found.append(required(f"{here}.name"))
        else:
            found += [invalid(f"{here}.name", condition.name, problem) for problem in names.label_key(condition.name)]
            checks.unique(condition.name, seen, f"{here}.name", condition.name, found)


def _check_expression(compiler: Compiler, use: str, text: str, path: str, found: list[Cause]) -> None:
    problem = compiler.problem(use, text)
    if problem:
        found.append(invalid(path, text, problem))


# Webhooks ------------------------------------------------------------------------------------------------------------


def _check_configuration(configuration: Configuration, found: list[Cause]) -> None:
    _check_webhooks(configuration, None, found)


def _check_configuration_update(new: Configuration, old: Configuration, found: list[Cause]) -> None:
    _check_webhooks(new, old, found)


def _check_webhooks(configuration: Configuration, old: Configuration | None, found: list[Cause]) -> None:
    """``old``: what it had wrong already, by rules of later versions, it may keep."""
    before: list[Webhook] = list(old.webhooks) if old is not None else []
    strict = all(one.HasField("sideEffects") and one.sideEffects in _NO_SIDE_EFFECTS for one in before)
    known = all(any(version in REVIEW_VERSIONS for version in one.admissionReviewVersions) for one in before)
    is_unique = len({one.name for one in before}) == len(before)
    same = old is not None and [list(one.matchConditions) for one in before] == [
        list(one.matchConditions) for one in configuration.webhooks
    ]
    seen: dict[str, None] = {}
    webhooks: list[Webhook] = list(configuration.webhooks)
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        _check_webhook(webhook, f"{path}.", _NO_SIDE_EFFECTS if strict else _SIDE_EFFECTS, found)
        check_client(webhook.clientConfig, f"{path}.clientConfig", found)
        if not same:
            _check_conditions(webhook.matchConditions, compiler_of(False), f"{path}.matchConditions", found)
        _check_versions(list(webhook.admissionReviewVersions), f"{path}.admissionReviewVersions", known, found)
        if is_unique and webhook.name:
            checks.unique(webhook.name, seen, f"{path}.name", webhook.name, found)


def check_hook(webhook: Webhook, found: list[Cause]) -> None:
    """A webhook without a client."""
    _check_webhook(webhook, "", _NO_SIDE_EFFECTS, found)
    _check_conditions(webhook.matchConditions, compiler_of(False), "matchConditions", found)


def _check_webhook(webhook: Webhook, path: str, side_effects: Sequence[str], found: list[Cause]) -> None:
    _check_qualified(webhook.name, f"{path}name", found)
    for index, rule in enumerate(webhook.rules):
        _check_rule(rule, f"{path}rules[{index}]", found)
    _check_set(webhook, "failurePolicy", _FAILURE_POLICIES, path, found)
    _check_set(webhook, "matchPolicy", _MATCH_POLICIES, path, found)
    if not webhook.HasField("sideEffects"):
        found.append(required(f"{path}sideEffects", f"must specify one of {', '.join(side_effects)}"))
    else:
        checks.listed(webhook.sideEffects, f"{path}sideEffects", side_effects, found)
    if webhook.HasField("timeoutSeconds") and not 1 <= webhook.timeoutSeconds <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        found.append(invalid(f"{path}timeoutSeconds", webhook.timeoutSeconds, why))
    for field in ("namespaceSelector", "objectSelector"):
        if webhook.HasField(field):
            check_label_selector(getattr(webhook, field), f"{path}{field}", found)
    if isinstance(webhook, v1.MutatingWebhook):
        _check_set(webhook, "reinvocationPolicy", _REINVOCATIONS, path, found)


def check_client(client: v1.WebhookClientConfig, path: str, found: list[Cause]) -> None:
    """A ``WebhookClientConfig``."""
    if client.HasField("url") == client.HasField("service"):
        found.append(required(path, "exactly one of url or service is required"))
    elif client.HasField("url"):
        check_url(client.url, f"{path}.url", found)
    else:
        check_service(client.service, f"{path}.service", found)


def check_url(url: str, path: str, found: list[Cause]) -> None:
    """``ValidateWebhookURL``."""
    problem = _url_problem(url)
    if problem:
        found.append(required(path, f"url must be a valid URL: parse {shown(url)}: {problem}{_URL_FORM}"))
        return
    parts = urlsplit(url)
    host, user = parts.netloc.rpartition("@")[2], parts.netloc.rpartition("@")[0]
    if parts.scheme != "https":
        found.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not host:
        found.append(invalid(path, host, f"host must be specified{_URL_FORM}"))
    if user:
        found.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))


def _url_problem(url: str) -> str:
    """What Go's ``url.Parse`` says; "": nothing."""
    if any(ord(one) < ord(" ") or ord(one) == _DELETE for one in url):
        return "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "missing protocol scheme"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "missing ']' in host"
    try:
        _ = parts.port
    except ValueError:
        port = parts.netloc.rpartition(":")[2]
        return f"invalid port {shown(f':{port}')} after host"
    escape = _WRONG_ESCAPE.search(parts.path)
    return f"invalid URL escape {shown(escape.group())}" if escape else ""


def check_service(service: v1.ServiceReference, path: str, found: list[Cause]) -> None:
    """``ValidateWebhookService``, which is given the name as the namespace, and the namespace as the name."""
    found += [required(f"{path}.name")] if not service.namespace else []
    found += [required(f"{path}.namespace")] if not service.name else []
    if not 1 <= service.port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid(f"{path}.port", service.port, why))
    text = service.path
    if text in ("", "/"):
        return
    here = f"{path}.path"
    if text == "//":
        found.append(invalid(here, text, "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        found.append(invalid(here, text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            found.append(invalid(here, text, f"segment[{index}] may not be empty"))
        else:
            found += [invalid(here, text, f"segment[{index}]: {one}") for one in names.dns_subdomain(step)]


def _check_qualified(name: str, path: str, found: list[Cause]) -> None:
    """``IsFullyQualifiedName``."""
    if not name:
        found.append(required(path))
    elif problems := names.dns_subdomain(name):
        found.append(invalid(path, name, ",".join(problems)))
    elif name.count(".") < 2:
        found.append(invalid(path, name, "should be a domain with at least three segments separated by dots"))


def _check_versions(versions: list[str], path: str, must_be_known: bool, found: list[Cause]) -> None:
    if not versions:
        found.append(required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}"))
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        found += [invalid(f"{path}[{index}]", version, one) for one in names.dns_1035_label(version)]
    if must_be_known and not any(version in REVIEW_VERSIONS for version in versions):
        found.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))


def _check_set(message: Message, field: str, choices: Sequence[str], path: str, found: list[Cause]) -> None:
    """A value that may be absent, but not empty. ``path``: what precedes the field."""
    if message.HasField(field):
        checks.listed(getattr(message, field), f"{path}{field}", choices, found)


# Policies ------------------------------------------------------------------------------------------------------------


def _check_policy(policy: Policy, found: list[Cause]) -> None:
    _check_policy_spec(policy, same_conditions=False, found=found)


def _check_policy_update(new: Policy, old: Policy, found: list[Cause]) -> None:
    same = new.spec.paramKind == old.spec.paramKind and list(new.spec.matchConditions) == list(old.spec.matchConditions)
    _check_policy_spec(new, same_conditions=same, found=found)


def _check_policy_spec(policy: Policy, *, same_conditions: bool, found: list[Cause]) -> None:
    spec = policy.spec
    has_params = spec.HasField("paramKind")
    compiler = compiler_of(has_params)
    if not spec.HasField("failurePolicy"):
        found.append(required("spec.failurePolicy"))
    else:
        checks.listed(spec.failurePolicy, "spec.failurePolicy", _FAILURE_POLICIES, found)
    if has_params:
        _check_param_kind(spec.paramKind, "spec.paramKind", found)
    rules_path = "spec.matchConstraints.resourceRules"
    if not spec.HasField("matchConstraints"):
        found.append(required("spec.matchConstraints"))
    else:
        _check_match(spec.matchConstraints, "spec.matchConstraints", found)
        if not spec.matchConstraints.resourceRules:
            found.append(required(rules_path))
        if isinstance(policy, v1.MutatingAdmissionPolicy):
            for rule in spec.matchConstraints.resourceRules:
                wrong = [one for one in rule.ruleWithOperations.operations if one not in _MUTATING_OPERATIONS]
                found += [not_supported(f"{rules_path}.operations", one, _MUTATING_OPERATIONS) for one in wrong]
    if not same_conditions:
        _check_conditions(spec.matchConditions, compiler_of(has_params), "spec.matchConditions", found)
    for index, variable in enumerate(spec.variables):
        _check_variable(variable, compiler, f"spec.variables[{index}]", found)
    if isinstance(policy, v1.MutatingAdmissionPolicy):
        _check_mutations(policy.spec, compiler, found)
    else:
        _check_validations(policy, compiler, found)


def _check_param_kind(kind: v1.ParamKind, path: str, found: list[Cause]) -> None:
    text = kind.apiVersion
    if not text:
        found.append(required(f"{path}.apiVersion"))
    elif text.count("/") > 1:
        found.append(invalid(f"{path}.apiVersion", text, f"unexpected GroupVersion string: {text}"))
    else:
        group, _, version = text.rpartition("/")
        if group and (problems := names.dns_subdomain(group)):
            found.append(invalid(f"{path}.apiVersion", group, ",".join(problems)))
        if not version:
            found.append(invalid(f"{path}.apiVersion", text, "version must be specified"))
        elif problems := names.dns_1035_label(version):
            found.append(invalid(f"{path}.apiVersion", version, ",".join(problems)))
    if not kind.kind:
        found.append(required(f"{path}.kind"))
    elif problems := names.dns_1035_label(kind.kind.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        found.append(invalid(f"{path}.kind", kind.kind, why))


def _check_variable(variable: v1.Variable, compiler: Compiler, path: str, found: list[Cause]) -> None:
    if not variable.name.strip():
        found.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(variable.name) or variable.name in _RESERVED:
        found.append(invalid(f"{path}.name", variable.name, "must be a valid CEL identifier"))
    if not variable.expression.strip():
        found.append(required(f"{path}.expression", "expression is not specified"))
    elif problem := compiler.variable(variable.name, variable.expression):
        found.append(invalid(f"{path}.expression", variable.expression, problem))


def _check_validations(policy: v1.ValidatingAdmissionPolicy, compiler: Compiler, found: list[Cause]) -> None:
    spec = policy.spec
    if not spec.validations and not spec.auditAnnotations:
        why = "validations or auditAnnotations must contain at least one item"
        found += [required(f"spec.{field}", why) for field in ("validations", "auditAnnotations")]
        return
    for index, validation in enumerate(spec.validations):
        _check_validation(validation, compiler, f"spec.validations[{index}]", found)
    annotations = spec.auditAnnotations
    if len(annotations) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        found.append(invalid("spec.auditAnnotations", list(annotations), why))
    seen: dict[str, None] = {}
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        _check_annotation(policy.metadata.name, annotation, compiler, path, found)
        checks.unique(annotation.key, seen, f"{path}.key", annotation.key, found)


def _check_validation(validation: v1.Validation, compiler: Compiler, path: str, found: list[Cause]) -> None:
    if not validation.expression.strip():
        found.append(required(f"{path}.expression", "expression is not specified"))
    else:
        _check_expression(compiler, CONDITION, validation.expression, f"{path}.expression", found)
    said = validation.messageExpression
    if said and not said.strip():
        found.append(invalid(f"{path}.messageExpression", said, "must be non-empty if specified"))
    elif said:
        _check_expression(compiler, MESSAGE, said, f"{path}.messageExpression", found)
    message = validation.message
    if message and not message.strip():
        found.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif any(one in message.strip() for one in "\n\r"):
        found.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    _check_set(validation, "reason", _REASONS, f"{path}.", found)


def _check_annotation(
    name: str, annotation: v1.AuditAnnotation, compiler: Compiler, path: str, found: list[Cause]
) -> None:
    if name:
        key = f"{name}/{annotation.key}"
        found += [invalid(f"{path}.key", key, problem) for problem in names.label_key(key)]
    else:
        found.append(invalid(f"{path}.key", annotation.key, "requires metadata.name be non-empty"))
    text = annotation.valueExpression.strip()
    here = f"{path}.valueExpression"
    if not text:
        found.append(required(here, "valueExpression is not specified"))
    elif len(text.encode()) > _LONGEST_ANNOTATION:
        found.append(required(here, f"must not exceed {_LONGEST_ANNOTATION} bytes in length"))
    else:
        _check_expression(compiler, ANNOTATION, text, here, found)


def _check_mutations(spec: v1.MutatingAdmissionPolicySpec, compiler: Compiler, found: list[Cause]) -> None:
    if not spec.mutations:
        found.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(spec.mutations):
        _check_mutation(mutation, compiler, f"spec.mutations[{index}]", found)
    checks.choice(spec.reinvocationPolicy, "spec.reinvocationPolicy", _REINVOCATIONS, found)


def _check_mutation(mutation: v1.Mutation, compiler: Compiler, path: str, found: list[Cause]) -> None:
    kind = mutation.patchType
    if kind not in _PATCH_TYPES:
        checks.choice(kind, f"{path}.patchType", _PATCH_TYPES, found)
        return
    wanted, other = ("jsonPatch", "applyConfiguration")[:: 1 if kind == "JSONPatch" else -1]
    if not mutation.HasField(wanted):
        found.append(required(f"{path}.{wanted}", f"must be specified when patchType is {kind}"))
    else:
        text = getattr(mutation, wanted).expression.strip()
        if not text:
            found.append(required(f"{path}.{wanted}.expression"))
        else:
            use = PATCH if kind == "JSONPatch" else APPLY
            _check_expression(compiler, use, text, f"{path}.{wanted}.expression", found)
    if mutation.HasField(other):
        why = f"must not be specified when patchType is {kind}"
        found.append(invalid(f"{path}.{other}", f"{{{other}}}", why))


def _check_binding(binding: Binding, found: list[Cause]) -> None:
    spec = binding.spec
    if not spec.policyName:
        found.append(required("spec.policyName"))
    else:
        found += [invalid("spec.policyName", spec.policyName, one) for one in names.dns_subdomain(spec.policyName)]
    if spec.HasField("paramRef"):
        _check_param_ref(spec.paramRef, "spec.paramRef", found)
    if spec.HasField("matchResources"):
        _check_match(spec.matchResources, "spec.matchResources", found)
    if isinstance(binding, v1.ValidatingAdmissionPolicyBinding):
        _check_actions(list(binding.spec.validationActions), "spec.validationActions", found)


def _check_param_ref(ref: v1.ParamRef, path: str, found: list[Cause]) -> None:
    both = "name and selector are mutually exclusive"
    if ref.name:
        found += [invalid(f"{path}.name", ref.name, one) for one in names.path_segment(ref.name)]
        if ref.HasField("selector"):
            found.append(forbidden(f"{path}.name", both))
    if ref.HasField("selector"):
        check_label_selector(ref.selector, f"{path}.selector", found)
        if ref.name:
            found.append(forbidden(f"{path}.selector", both))
    if not ref.name and not ref.HasField("selector"):
        found.append(required(path, "one of name or selector must be specified"))
    checks.choice(ref.parameterNotFoundAction, f"{path}.parameterNotFoundAction", ("Deny", "Allow"), found)


def _check_actions(actions: list[str], path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, action in enumerate(actions):
        checks.listed(action, f"{path}[{index}]", _ACTIONS, found)
        checks.unique(action, seen, f"{path}[{index}]", action, found)
    if "Deny" in seen and "Warn" in seen:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response"
            " and headers serves no purpose)"
        )
        found.append(invalid(path, actions, why))
    if not actions:
        found.append(required(path, "at least one validation action is required"))


def _check_policy_status(
    new: v1.ValidatingAdmissionPolicy, old: v1.ValidatingAdmissionPolicy, found: list[Cause]
) -> None:
    for index, warning in enumerate(new.status.typeChecking.expressionWarnings):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        found += [
            required(f"{path}.{field}") for field in ("warning", "fieldRef") if not getattr(warning, field).strip()
        ]
    checks.conditions(new.status.conditions, "status.conditions", found)


_CONFIGURATION = Rules(_check_configuration, _check_configuration_update)

RULES = {
    v1.ValidatingWebhookConfiguration: _CONFIGURATION,
    v1.MutatingWebhookConfiguration: _CONFIGURATION,
    v1.ValidatingAdmissionPolicy: Rules(_check_policy, _check_policy_update, _check_policy_status),
    v1.MutatingAdmissionPolicy: Rules(_check_policy, _check_policy_update),
    v1.ValidatingAdmissionPolicyBinding: Rules(_check_binding),
    v1.MutatingAdmissionPolicyBinding: Rules(_check_binding),
}
