"""Whether the expressions of a ValidatingAdmissionPolicy fit the kinds that it is about (``validating.TypeChecker``).

Admission compiles expressions against objects of any type. With their declared types more mistakes show, and the
policy's status tells them; it acts all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kemu.emulated.apiserver.admission.external.conditions import environment
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1

if TYPE_CHECKING:
    from kemu.emulated import cel
    from kemu.emulated.cel.types import Type

MOST_KINDS = 10
"""Of one rule."""


class Kind(NamedTuple):
    """What a policy is about."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        """``GroupVersionKind.String``."""
        return f"{self.group}/{self.version}, Kind={self.kind}"


def resources_of(policy: v1.ValidatingAdmissionPolicy) -> Iterator[list[tuple[str, str, str]]]:
    """Group, version and plural of what each rule names, in order; rules with wildcards name nothing."""
    for named in policy.spec.matchConstraints.resourceRules:
        rule = named.ruleWithOperations.rule
        plurals = sorted(one for one in rule.resources if not set("*/") & set(one))
        if any("*" in one for one in (*rule.apiGroups, *rule.apiVersions)):
            continue
        yield [
            (group, version, plural)
            for group in sorted(rule.apiGroups)
            for version in sorted(rule.apiVersions)
            for plural in plurals
        ]


def check(
    policy: v1.ValidatingAdmissionPolicy, kinds: Sequence[tuple[Kind, Type]], params: Type | None
) -> list[v1.ExpressionWarning]:
    """``kinds``: in order, with the types of their objects. ``params``: None: nothing is known of them."""
    environments = [(kind, _environment(policy, declared, params)) for kind, declared in kinds]
    found: list[v1.ExpressionWarning] = []
    for index, validation in enumerate(policy.spec.validations):
        for field, text in (("expression", validation.expression), ("messageExpression", validation.messageExpression)):
            told = [f"{kind}: {why}\n" for kind, where in environments if text and (why := _problem(where, text))]
            if told:
                place = f"spec.validations[{index}].{field}"
                found.append(v1.ExpressionWarning(fieldRef=place, warning="\n".join(told)))
    return found


def _environment(policy: v1.ValidatingAdmissionPolicy, declared: Type, params: Type | None) -> cel.Environment:
    from kemu.emulated import cel
    from kemu.emulated.cel import types

    known = {"object": declared, "oldObject": declared}
    if policy.spec.HasField("paramKind"):
        known["params"] = params or types.DYN
    plain = environment(policy.spec.HasField("paramKind"), True).extend(known)
    variables: dict[str, Type] = {}
    found = plain
    for variable in policy.spec.variables:
        try:
            variables[variable.name] = found.compile(variable.expression).type
        except cel.CompileError:
            variables[variable.name] = types.DYN
        found = plain.extend({"variables": types.object_of("kubernetes.variables", dict(variables))})
    return found


def _problem(where: cel.Environment, text: str) -> str:
    from kemu.emulated import cel

    try:
        where.compile(text)
    except cel.errors.InstantiationError as error:
        return f"type checking error: program instantiation failed: {error}"
    except cel.CompileError as error:
        return str(error)
    return ""
