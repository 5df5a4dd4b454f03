"""CEL in admission: what expressions may name, their budgets, and match conditions (``plugin/cel``).

Expressions are compiled once for each text and set of variables; nothing of the language is imported before the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission.external import reviews
from kemu.emulated.apiserver.admission.external.attributes import Attributes, Matched
from kemu.emulated.apiserver.authorization import attributes as accesses
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.emulated.objects import identities
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.validation.extensions import admission_registration
from kemu.emulated.objects.validation.extensions.admission_registration import (
    ANNOTATION,
    APPLY,
    CONDITION,
    MESSAGE,
    PATCH,
)
from kemu.errors import KemuError
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s import core_v1_pb2

if TYPE_CHECKING:
    from kemu.emulated import cel

BUDGET = 10_000_000
"""What all expressions of a policy may cost together, for one request (``RuntimeCELCostBudget``)."""
CONDITIONS_BUDGET = BUDGET // 4
VARIABLE = "variable"
OBJECT, JSON_PATCH = "Object", "JSONPatch"
"""Types of what mutations make."""
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_REQUEST_RESOURCE = "authorizer.requestResource"

Variables = tuple[tuple[str, str], ...]
"""Names and expressions of the variables of a policy."""


class OutOfBudget(KemuError):
    """No further expression is evaluated."""


class Failed(KemuError):
    """An expression does not compile, or its evaluation fails; the text says so."""


# Compiling -----------------------------------------------------------------------------------------------------------


@lru_cache(1)
def request_types() -> dict[str, Any]:
    """``BuildRequestType`` and ``BuildNamespaceType``."""
    from kemu.emulated.cel import types

    text, texts = types.STRING, types.list_of(types.STRING)
    kind = types.object_of("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), text))
    resource = types.object_of("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), text))
    extra = types.map_of(text, texts)
    user = types.object_of("kubernetes.UserInfo", {"username": text, "uid": text, "groups": texts, "extra": extra})
    request = types.object_of(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "subResource": text,
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": text,
            "name": text,
            "namespace": text,
            "operation": text,
            "userInfo": user,
            "dryRun": types.BOOL,
            "options": types.DYN,
        },
    )
    labels = types.map_of(text, text)
    metadata = types.object_of(
        "kubernetes.NamespaceMetadata",
        {
            "name": text,
            "generateName": text,
            "namespace": text,
            "labels": labels,
            "annotations": labels,
            "UID": text,
            "creationTimestamp": types.TIMESTAMP,
            "deletionGracePeriodSeconds": types.INT,
            "deletionTimestamp": types.TIMESTAMP,
            "generation": types.INT,
            "resourceVersion": text,
            "finalizers": texts,
        },
    )
    condition = types.object_of(
        "kubernetes.NamespaceCondition",
        {"status": text, "type": text, "lastTransitionTime": types.TIMESTAMP, "message": text, "reason": text},
    )
    namespace = types.object_of(
        "kubernetes.Namespace",
        {
            "metadata": metadata,
            "spec": types.object_of("kubernetes.NamespaceSpec", {"finalizers": texts}),
            "status": types.object_of(
                "kubernetes.NamespaceStatus", {"conditions": types.list_of(condition), "phase": text}
            ),
        },
    )
    return {"object": types.DYN, "oldObject": types.DYN, "namespaceObject": namespace, "request": request}


@lru_cache(64)
def environment(has_params: bool, has_authorizer: bool, patches: bool = False) -> cel.Environment:
    """What expressions may name, where nothing is known of the objects."""
    from kemu.emulated import cel

    variables = dict(request_types())
    if has_params:
        variables["params"] = cel.types.DYN
    if has_authorizer:
        variables["authorizer"] = cel.authorizers.AUTHORIZER
        variables[_REQUEST_RESOURCE] = cel.authorizers.RESOURCE_CHECK
    if not patches:
        return cel.Environment(variables)
    return cel.Environment(variables, libraries={"mutation"})


@lru_cache(256)
def _composed(
    has_params: bool, has_authorizer: bool, patches: bool, declared: tuple[tuple[str, Any], ...]
) -> cel.Environment:
    """``declared``: the variables before, with their types."""
    from kemu.emulated.cel import types

    found = environment(has_params, has_authorizer, patches)
    if not declared:
        return found
    return found.extend({"variables": types.object_of("kubernetes.variables", dict(declared))})


def _wanted(use: str) -> Sequence[Any]:
    from kemu.emulated.cel import types

    if use == CONDITION:
        return (types.BOOL,)
    if use == MESSAGE:
        return (types.STRING,)
    if use == ANNOTATION:
        return (types.STRING, types.NULL)
    if use == APPLY:
        return (types.object_of(OBJECT, {}),)
    return (types.list_of(types.object_of(JSON_PATCH, {})),)


@text_cache(4096)
def _compiled(use: str, text: str, has_params: bool, declared: tuple[tuple[str, Any], ...]) -> cel.Program | str:
    """The program, or what is wrong with the text."""
    from kemu.emulated import cel

    environment = _composed(has_params, use != MESSAGE, use in (APPLY, PATCH), declared)
    try:
        program = environment.compile(text)
    except cel.errors.InstantiationError as error:
        return f"program instantiation failed: {error}"
    except cel.CompileError as error:
        return f"compilation failed: {error}"
    wanted = () if use == VARIABLE else _wanted(use)
    if not wanted or program.type in wanted:
        return program
    names = str(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(str, wanted))}]"
    return f"must evaluate to {names} but got {program.type}"


class Compiled:
    """The expressions of one policy: its variables first, then others that may name them."""

    def __init__(self, has_params: bool, variables: Variables = ()) -> None:
        self.has_params = has_params
        self.programs: dict[str, cel.Program | str] = {}
        self._declared: list[tuple[str, Any]] = []
        for name, text in variables:
            self.variable(name, text)

    def variable(self, name: str, text: str) -> str:
        """What is wrong with it; "": nothing."""
        from kemu.emulated.cel import types

        found = _compiled(VARIABLE, text, self.has_params, tuple(self._declared))
        self.programs[name] = found
        is_wrong = isinstance(found, str)
        self._declared.append((name, types.DYN if isinstance(found, str) else found.type))
        return str(found) if is_wrong else ""

    def program(self, use: str, text: str) -> cel.Program | str:
        return _compiled(use, text, self.has_params, tuple(self._declared))

    def problem(self, use: str, text: str) -> str:
        found = self.program(use, text)
        return found if isinstance(found, str) else ""


admission_registration.use_compiler(Compiled)


# Evaluating ----------------------------------------------------------------------------------------------------------


class Activation:
    """What the expressions of one policy see of one request, and what they may still cost."""

    def __init__(self, compiled: Compiled, values: Mapping[str, Any], budget: int) -> None:
        self._compiled = compiled
        self._values = dict(values)
        self.budget = budget
        self._composition_cost = 0
        """Of variables that were evaluated on the way."""

    def with_variables(self) -> None:
        from kemu.emulated import cel

        functions: dict[str, Callable[[], Any]] = {}
        for name, program in self._compiled.programs.items():
            functions[name] = self._function(name, program)
        self._values["variables"] = cel.LazyFields("kubernetes.variables", functions)

    def _function(self, name: str, program: cel.Program | str) -> Callable[[], Any]:
        def compute() -> object:
            from kemu.emulated import cel

            if isinstance(program, str):
                why = f'composited variable "{name}" fails to compile: {program}'
                raise cel.EvaluationError(why)
            try:
                value, cost = program.evaluate(self._values)
            except cel.EvaluationError as error:
                self._composition_cost += error.cost
                raise cel.EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
            self._composition_cost += cost
            return value

        return compute

    def evaluate(self, use: str, text: str) -> object:
        """The value of an expression. Raises Failed and OutOfBudget."""
        from kemu.emulated import cel

        program = self._compiled.program(use, text)
        if isinstance(program, str):
            raise Failed(f"compilation error: {program}")
        self._composition_cost = 0
        failure = ""
        value: Any = None
        try:
            value, cost = program.evaluate(self._values)
        except cel.EvaluationError as error:
            cost, failure = error.cost, f"expression '{text}' resulted in error: {error}"
        self.budget -= self._composition_cost + cost
        if self.budget < 0:
            raise OutOfBudget(_OUT_OF_BUDGET)
        if failure:
            raise Failed(failure)
        return value


class Conditions:
    """Match conditions, and the values of what expressions name."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def hold(
        self, conditions: Sequence[v1.MatchCondition], attributes: Attributes, matched: Matched, *, fails: bool
    ) -> bool:
        """Of a webhook. Raises :class:`kemu.errors.Forbidden`."""
        values = self.values(attributes, matched, None, None)
        try:
            return self.match(conditions, Compiled(False), values, fails=fails)
        except Failed as error:
            raise errors.forbidden(attributes.resource, attributes.name, str(error)) from None

    def match(
        self,
        conditions: Sequence[v1.MatchCondition],
        compiled: Compiled,
        values: Mapping[str, Any],
        *,
        fails: bool,
    ) -> bool:
        """``fails``: what the failure policy says of errors. Raises Failed."""
        activation = Activation(compiled, values, CONDITIONS_BUDGET)
        failures: list[str] = []
        results: list[bool] = []
        try:
            for condition in conditions:
                try:
                    results.append(bool(activation.evaluate(CONDITION, condition.expression)))
                except Failed as error:
                    failures.append(str(error))
        except OutOfBudget as error:
            if fails:
                raise Failed(str(error)) from None
            return False
        if not all(results):
            return False
        if not failures:
            return True
        if fails:
            raise Failed(aggregated(failures))
        return False

    def values(
        self,
        attributes: Attributes,
        matched: Matched,
        params: dict[str, Any] | None,
        namespace: core_v1_pb2.Namespace | None,
        *,
        has_authorizer: bool = True,
    ) -> dict[str, Any]:
        """By name. ``params``: None where there are none."""
        obj, old = attributes.seen(matched)
        found: dict[str, Any] = {
            "object": obj,
            "oldObject": old,
            "params": params,
            "request": reviews.request(attributes, matched),
            "namespaceObject": None if namespace is None else _namespace(namespace),
        }
        if has_authorizer:
            from kemu.emulated import cel

            authorizer = cel.authorizers.Authorizer(self._decide(attributes))
            found["authorizer"] = authorizer
            access = cel.authorizers.Access(
                None,
                "",
                group=attributes.group,
                resource=attributes.plural,
                subresource=attributes.subresource,
                namespace=attributes.namespace,
                name=attributes.name,
            )
            found[_REQUEST_RESOURCE] = cel.authorizers.ResourceCheck(authorizer, access)
        return found

    def _decide(self, attributes: Attributes) -> Callable[[cel.authorizers.Access], cel.authorizers.Decision]:
        def decide(access: cel.authorizers.Access) -> cel.authorizers.Decision:
            from kemu.emulated.cel.authorizers import Decision

            authorizer = self._authorizer
            by = attributes.asking.by
            if access.user is not None:
                user = identities.of_name(access.user)
                by = authorizer.seen_as(user.name, user.groups)
            if access.path:
                allowed, reason = authorizer.allows_path(by, access.verb, access.path), ""
            else:
                asked = accesses.Attributes(
                    access.verb,
                    access.group,
                    access.resource,
                    access.subresource,
                    access.namespace,
                    access.name,
                    access.field_selector,
                )
                allowed, reason = authorizer.allows(by, asked)
            return Decision("allow" if allowed else "no opinion", reason)

        return decide


def aggregated(failures: Sequence[str]) -> str:
    """``utilerrors.NewAggregate``."""
    once = list(dict.fromkeys(failures))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _namespace(namespace: core_v1_pb2.Namespace) -> dict[str, Any]:
    plain = convert.to_json(namespace)
    plain["metadata"].pop("managedFields", None)
    plain["metadata"].pop("ownerReferences", None)
    return plain
