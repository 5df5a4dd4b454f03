"""The admission plugins ValidatingAdmissionPolicy and MutatingAdmissionPolicy (``plugin/policy``).

A policy acts through its bindings; each is evaluated with each of its parameters. Both are read from the watch
cache, in the order of the names of the policies, then of the bindings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kemu import errors as kemu_errors
from kemu.emulated.apiserver.admission.base import Derived
from kemu.emulated.apiserver.admission.external import matching, mutations, versions
from kemu.emulated.apiserver.admission.external.attributes import Attributes, Matched
from kemu.emulated.apiserver.admission.external.conditions import (
    BUDGET,
    Activation,
    Compiled,
    Conditions,
    Failed,
    OutOfBudget,
)
from kemu.emulated.apiserver.admission.external.matching import Selectors
from kemu.emulated.apiserver.admission.external.params import BadParams, Params
from kemu.emulated.apiserver.admission.external.webhooks import IF_NEEDED, IGNORE, Invocations
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects.validation.extensions.admission_registration import ANNOTATION, CONDITION, MESSAGE
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s import core_v1_pb2

Policy = v1.ValidatingAdmissionPolicy | v1.MutatingAdmissionPolicy
Binding = v1.ValidatingAdmissionPolicyBinding | v1.MutatingAdmissionPolicyBinding

_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
"""By reason; others are 422 (``reasonToCode``)."""
_LONGEST_MESSAGE, _LONGEST_ANNOTATION = 5 * 1024, 10 * 1024


class Compilation(NamedTuple):
    """A policy as it was compiled."""

    policy: Any
    compiled: Compiled
    conditions: Compiled
    """For match conditions of validating policies, which know no variables."""


class Use(NamedTuple):
    """A policy with one binding and one object of parameters, for one request."""

    policy: Compilation
    binding: Any
    matched: Matched
    params: dict[str, Any] | None

    @property
    def uid(self) -> tuple[str, str]:
        metadata = (self.params or {}).get("metadata", {})
        names = (self.binding.metadata.name, metadata.get("namespace", ""), metadata.get("name", ""))
        return f"policy {self.policy.policy.metadata.name}", "/".join(names)


class Problem(NamedTuple):
    """Why a request is refused."""

    policy: str
    binding: str
    """Empty: the policy itself is wrong."""
    message: str
    reason: str = ""
    is_ignored: bool = False


class _Policies:
    """What both kinds have in common."""

    def __init__(
        self, cache: WatchCache, kind: str, selectors: Selectors, conditions: Conditions, params: Params
    ) -> None:
        """``kind``: validating or mutating."""
        self._selectors = selectors
        self._conditions = conditions
        self._params = params
        self._policies = Derived(cache, f"{kind}admissionpolicies", _compile)
        self._bindings = Derived(cache, f"{kind}admissionpolicybindings", _by_policy)
        self.source = cache.collections[f"{kind}admissionpolicybindings"].entries

    @property
    def are_there(self) -> bool:
        """Whether a policy is bound."""
        return bool(self.source)

    async def _uses(self, attributes: Attributes, problems: list[Problem]) -> list[Use]:
        """What is to be evaluated; ``problems`` gets what prevents it."""
        found: list[Use] = []
        bindings = self._bindings.get()
        for compiled in self._policies.get():
            policy = compiled.policy
            name, spec = policy.metadata.name, policy.spec
            bound = bindings.get(name, ())
            if not bound:
                continue
            is_ignored = spec.failurePolicy == IGNORE
            try:
                matched = await self._matches(spec.matchConstraints, attributes)
            except kemu_errors.ApiError as error:
                why = f"failed to configure policy: {error.message}"
                problems.append(Problem(name, "", why, is_ignored=is_ignored))
                continue
            if matched is None:
                continue
            await versions.prepare(attributes, matched)
            kind = spec.paramKind if spec.HasField("paramKind") else None
            if kind is not None and self._params.row(kind) is None:
                group, _, version = kind.apiVersion.rpartition("/")
                told = f"{group}/{version}, Kind={kind.kind}"
                why = f"failed to configure policy: failed to find resource referenced by paramKind: '{told}'"
                problems.append(Problem(name, "", why, is_ignored=is_ignored))
                continue
            for binding in bound:
                try:
                    if not await self._binding_matches(binding, attributes):
                        continue
                    ref = binding.spec.paramRef if binding.spec.HasField("paramRef") else None
                    params = await self._params.collect(kind, ref, attributes.namespace)
                except (BadParams, kemu_errors.ApiError) as error:
                    why = f"failed to configure binding: {error}"
                    problems.append(Problem(name, binding.metadata.name, why, is_ignored=is_ignored))
                    continue
                found += [Use(compiled, binding, matched, one) for one in params]
        return found

    async def _matches(self, match: v1.MatchResources, attributes: Attributes) -> Matched | None:
        """``Matcher.Matches``. Raises :class:`kemu.errors.ApiError`."""
        if not self._selectors.admits_object(match, attributes):
            return None
        if _by_named_rules(match.excludeResourceRules, match.matchPolicy, attributes) is not None:
            return None
        matched: Matched | None = Matched(attributes.group, attributes.version)
        if match.resourceRules:
            matched = _by_named_rules(match.resourceRules, match.matchPolicy, attributes)
        if matched is None or not await self._selectors.admits_namespace(match, attributes):
            return None
        return matched

    async def _binding_matches(self, binding: Binding, attributes: Attributes) -> bool:
        spec = binding.spec
        if not spec.HasField("matchResources"):
            return True
        return await self._matches(spec.matchResources, attributes) is not None

    async def _namespace(self, attributes: Attributes) -> core_v1_pb2.Namespace | None:
        if not attributes.namespace or attributes.resource is matching.NAMESPACES:
            return None
        return await self._selectors.namespace(attributes.namespace)


class ValidatingPolicies(_Policies):
    def __init__(self, cache: WatchCache, selectors: Selectors, conditions: Conditions, params: Params) -> None:
        super().__init__(cache, "validating", selectors, conditions, params)

    async def validate(self, attributes: Attributes) -> None:
        """Raises :class:`kemu.errors.ApiError`."""
        problems: list[Problem] = []
        uses = await self._uses(attributes, problems)
        namespace = await self._namespace(attributes) if uses else None
        annotations: dict[str, list[str]] = {}
        for use in uses:
            self._evaluate(use, attributes, namespace, problems, annotations)
        for key, values in annotations.items():
            attributes.annotate(key, ", ".join(dict.fromkeys(values)))
        denied = [problem for problem in problems if not problem.is_ignored]
        if denied:
            raise _denied(denied[0], attributes)

    def _evaluate(
        self,
        use: Use,
        attributes: Attributes,
        namespace: core_v1_pb2.Namespace | None,
        problems: list[Problem],
        annotations: dict[str, list[str]],
    ) -> None:
        """``validator.Validate``, and what follows from its decisions."""
        policy = use.policy.policy
        spec, fails = policy.spec, policy.spec.failurePolicy != IGNORE
        values = self._conditions.values(attributes, use.matched, use.params, namespace)
        try:
            if spec.matchConditions and not self._conditions.match(
                spec.matchConditions, use.policy.conditions, values, fails=fails
            ):
                return
        except Failed as error:
            self._decide(use, 0, Problem("", "", str(error)), attributes, problems)
            return
        activation = Activation(use.policy.compiled, values, BUDGET)
        activation.with_variables()
        try:
            decisions = self._judge(spec.validations, activation, values, use, fails=fails)
        except OutOfBudget as error:
            decisions = [Problem("", "", str(error))] if fails else []
        for index, decision in enumerate(decisions):
            if decision is not None:
                self._decide(use, index, decision, attributes, problems)
        self._annotate(use, values, annotations, problems, fails=fails)

    def _judge(
        self,
        validations: Sequence[v1.Validation],
        activation: Activation,
        values: dict[str, Any],
        use: Use,
        *,
        fails: bool,
    ) -> list[Problem | None]:
        """One for each validation; None: it holds. Raises OutOfBudget."""
        results: list[bool | Failed] = []
        for validation in validations:
            try:
                results.append(activation.evaluate(CONDITION, validation.expression) is True)
            except Failed as error:
                results.append(error)
        without = {key: value for key, value in values.items() if not key.startswith("authorizer")}
        speaking = Activation(use.policy.compiled, without, activation.budget)
        speaking.with_variables()
        decisions: list[Problem | None] = []
        said, failure = _messages(validations, speaking)
        for validation, result, text in zip(validations, results, said, strict=True):
            if isinstance(result, Failed):
                decisions.append(Problem("", "", str(result)) if fails else None)
            elif failure:
                decisions.append(Problem("", "", f"failed messageExpression: {failure}") if fails else None)
            elif result:
                decisions.append(None)
            else:
                message = text or validation.message.strip() or f"failed expression: {validation.expression.strip()}"
                decisions.append(Problem("", "", message, validation.reason or "Invalid"))
        return decisions

    def _decide(self, use: Use, index: int, decision: Problem, attributes: Attributes, problems: list[Problem]) -> None:
        """Deny, warn and audit, as the binding says."""
        policy, binding = use.policy.policy.metadata.name, use.binding
        if not decision.reason and use.policy.policy.spec.failurePolicy == IGNORE:
            return
        actions = list(binding.spec.validationActions)
        for action in actions:
            if action == "Deny":
                problems.append(Problem(policy, binding.metadata.name, decision.message, decision.reason))
            elif action == "Warn":
                attributes.warn(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy}'"
                    f" with binding '{binding.metadata.name}': {decision.message}"
                )
            else:
                told = {
                    "message": decision.message,
                    "policy": policy,
                    "binding": binding.metadata.name,
                    "expressionIndex": index,
                    "validationActions": actions,
                }
                attributes.annotate("validation.policy.admission.k8s.io/validation_failure", json.dumps([told]))

    def _annotate(
        self,
        use: Use,
        values: dict[str, Any],
        annotations: dict[str, list[str]],
        problems: list[Problem],
        *,
        fails: bool,
    ) -> None:
        policy = use.policy.policy
        if not policy.spec.auditAnnotations:
            return
        without = {key: value for key, value in values.items() if not key.startswith("authorizer")}
        activation = Activation(use.policy.compiled, without, BUDGET)
        activation.with_variables()
        for annotation in policy.spec.auditAnnotations:
            try:
                value = activation.evaluate(ANNOTATION, annotation.valueExpression)
            except (Failed, OutOfBudget) as error:
                if fails:
                    problems.append(Problem(policy.metadata.name, use.binding.metadata.name, str(error)))
                continue
            text = value.strip() if isinstance(value, str) else ""
            if text:
                key = f"{policy.metadata.name}/{annotation.key}"
                annotations.setdefault(key, []).append(text[:_LONGEST_ANNOTATION])


class MutatingPolicies(_Policies):
    def __init__(self, cache: WatchCache, selectors: Selectors, conditions: Conditions, params: Params) -> None:
        super().__init__(cache, "mutating", selectors, conditions, params)
        self._last: dict[str, Any] | None = None

    async def mutate(self, attributes: Attributes, invocations: Invocations) -> None:
        """Raises :class:`kemu.errors.ApiError`."""
        problems: list[Problem] = []
        uses = await self._uses(attributes, problems)
        namespace = await self._namespace(attributes) if uses else None
        for use in uses:
            policy = use.policy.policy
            is_ignored = policy.spec.failurePolicy == IGNORE
            try:
                changed = await self._mutate(use, attributes, namespace, invocations)
            except (Failed, OutOfBudget, mutations.BadMutation) as error:
                name = use.binding.metadata.name
                problems.append(Problem(policy.metadata.name, name, str(error), "Invalid", is_ignored))
                continue
            if changed:
                invocations.require()
                invocations.changed = True
            if policy.spec.reinvocationPolicy == IF_NEEDED:
                invocations.note(use.uid)
        failed = [problem for problem in problems if not problem.is_ignored]
        if failed:
            raise _failed(failed, attributes)

    async def _mutate(
        self,
        use: Use,
        attributes: Attributes,
        namespace: core_v1_pb2.Namespace | None,
        invocations: Invocations,
    ) -> bool:
        """Whether the object is another one. Raises Failed, OutOfBudget and BadMutation."""
        spec = use.policy.policy.spec
        await versions.prepare(attributes, use.matched)
        values = self._conditions.values(attributes, use.matched, use.params, namespace)
        if spec.matchConditions and not self._conditions.match(
            spec.matchConditions, use.policy.conditions, values, fails=spec.failurePolicy != IGNORE
        ):
            return False
        if invocations.is_second and use.uid not in invocations.again:
            return False
        if attributes.obj is None:
            return False
        changed = False
        for mutation in spec.mutations:
            await versions.prepare(attributes, use.matched)
            obj, _ = attributes.seen(use.matched)
            activation = Activation(use.policy.compiled, {**values, "object": obj}, BUDGET)
            activation.with_variables()
            changed |= await mutations.mutate(mutation, activation, attributes, use.matched)
        return changed


def _messages(validations: Sequence[v1.Validation], activation: Activation) -> tuple[list[str], str]:
    """What message expressions say, "" where they say nothing; and why no more of them were evaluated."""
    found: list[str] = []
    for validation in validations:
        text = ""
        if validation.messageExpression:
            try:
                value = activation.evaluate(MESSAGE, validation.messageExpression)
                text = value.strip() if isinstance(value, str) else ""
            except Failed:
                text = ""
            except OutOfBudget as error:
                return [""] * len(validations), str(error)
        found.append("" if len(text.encode()) > _LONGEST_MESSAGE or "\n" in text else text)
    return found, ""


def _by_named_rules(
    rules: Iterable[v1.NamedRuleWithOperations], match_policy: str, attributes: Attributes
) -> Matched | None:
    named = [
        rule.ruleWithOperations for rule in rules if not rule.resourceNames or attributes.name in rule.resourceNames
    ]
    return matching.by_rules(named, match_policy, attributes)


def _compile(policies: Iterable[Any]) -> list[Compilation]:
    """By name. Nothing is compiled before it is evaluated."""
    found = []
    for policy in sorted(policies, key=lambda one: str(one.metadata.name)):
        spec = policy.spec
        has_params = spec.HasField("paramKind")
        variables = tuple((one.name, one.expression) for one in spec.variables)
        found.append(Compilation(policy, Compiled(has_params, variables), Compiled(has_params)))
    return found


def _by_policy(bindings: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for binding in sorted(bindings, key=lambda one: str(one.metadata.name)):
        found.setdefault(binding.spec.policyName, []).append(binding)
    return found


def _denied(problem: Problem, attributes: Attributes) -> kemu_errors.Denied:
    with_binding = f" with binding '{problem.binding}'" if problem.binding else ""
    message = f"ValidatingAdmissionPolicy '{problem.policy}'{with_binding} denied request: {problem.message}"
    reason = problem.reason or "Invalid"
    details = {**_details(attributes), "causes": [{"message": message}]}
    text = f'{attributes.resource.qualified} "{details["name"]}" is forbidden: {message}'
    return kemu_errors.Denied(text, _CODES.get(reason, 422), reason, details)


def _failed(problems: Sequence[Problem], attributes: Attributes) -> kemu_errors.Denied:
    messages = []
    for one in problems:
        who = f"policy '{one.policy}' with binding '{one.binding}'" if one.binding else f'policy "{one.policy}"'
        messages.append(f"{who} denied request: {one.message}")
    details = {**_details(attributes), "causes": [{"message": message} for message in messages]}
    return kemu_errors.Denied(messages[0], 403, problems[0].reason or "Forbidden", details)


def _details(attributes: Attributes) -> dict[str, Any]:
    """``NewForbidden`` of ``apiserver/pkg/admission``."""
    name = attributes.name
    if not name:
        metadata = attributes.obj.metadata if attributes.obj is not None else None
        name = (metadata.name or metadata.generateName if metadata is not None else "") or "Unknown"
    found = {"name": name, "kind": attributes.plural}
    if attributes.group:
        found["group"] = attributes.group
    return found
