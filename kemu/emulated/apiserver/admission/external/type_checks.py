"""Type checks of the expressions of validating policies against the kinds that they match, of which the status of a
policy tells (``plugin/policy/validating/typechecking.go``). They change nothing of what a policy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kemu.emulated.apiserver.admission.external import conditions
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1

if TYPE_CHECKING:
    from kemu.emulated import cel

MOST_KINDS = 10
"""Of each rule."""


class Named(NamedTuple):
    """A kind of a group and version; they are checked in this order."""

    group: str
    version: str
    kind: str


class Typed(NamedTuple):
    """A kind, and the type of its objects in expressions."""

    name: Named
    type: cel.types.Type


class Warned(NamedTuple):
    """What the status says of one expression."""

    path: str
    warning: str


def named_by(named: v1.NamedRuleWithOperations) -> list[tuple[str, str, str]]:
    """Groups, versions and resources that a rule names, in order; none if it has wildcards for groups or versions."""
    rule = named.ruleWithOperations.rule
    if any("*" in one for one in (*rule.apiGroups, *rule.apiVersions)):
        return []
    plurals = sorted(one for one in rule.resources if "*" not in one and "/" not in one)
    return [
        (group, version, plural)
        for group in sorted(rule.apiGroups)
        for version in sorted(rule.apiVersions)
        for plural in plurals
    ]


def check(policy: v1.ValidatingAdmissionPolicy, kinds: Sequence[Typed], params: cel.types.Type | None) -> list[Warned]:
    """``TypeChecker.Check``. ``params``: the type of the parameters; None: none, or nothing is known."""
    environments = [(one.name, _environment(policy, one.type, params)) for one in kinds]
    found = []
    for index, validation in enumerate(policy.spec.validations):
        for field in ("expression", "messageExpression"):
            text = getattr(validation, field)
            warning = "\n".join(_problems(text, environments)) if text else ""
            if warning:
                found.append(Warned(f"spec.validations[{index}].{field}", warning))
    return found


def _problems(text: str, environments: Sequence[tuple[Named, cel.Environment]]) -> list[str]:
    found = []
    for (group, version, kind), environment in environments:
        problem = _problem(environment, text)
        if isinstance(problem, str):
            found.append(f"{group}/{version}, Kind={kind}: {problem}\n")
    return found


def _problem(environment: cel.Environment, text: str) -> str | cel.types.Type:
    """What is wrong with an expression, or its type."""
    from kemu.emulated import cel

    try:
        return environment.compile(text).type
    except (cel.CompileError, cel.errors.InstantiationError) as error:
        return str(error)


def _environment(
    policy: v1.ValidatingAdmissionPolicy, objects: cel.types.Type, params: cel.types.Type | None
) -> cel.Environment:
    from kemu.emulated import cel

    has_params = policy.spec.HasField("paramKind")
    declared = {"object": objects, "oldObject": objects}
    if has_params:
        declared["params"] = params or cel.types.DYN
    environment = conditions.environment(has_params, True).extend(declared)
    variables: dict[str, cel.types.Type] = {}
    for one in policy.spec.variables:
        type_ = _problem(environment, one.expression)
        variables[one.name] = cel.types.DYN if isinstance(type_, str) else type_
        environment = environment.extend({"variables": cel.types.object_of("kubernetes.variables", dict(variables))})
    return environment
