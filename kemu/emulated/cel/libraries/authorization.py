"""Checks of the variable ``authorizer``, and ``jsonpatch.escapeKey``."""

from __future__ import annotations

from dataclasses import replace

from kemu.emulated.cel import types
from kemu.emulated.cel.authorizers import AUTHORIZER, Access, Authorizer, Decision, Incomparable, ResourceCheck
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.types import BOOL, STRING, Type
from kemu.emulated.cel.values import Error, Value
from kemu.emulated.objects import names

_PATH_CHECK = types.abstract("kubernetes.authorization.PathCheck")
_GROUP_CHECK = types.abstract("kubernetes.authorization.GroupCheck")
_RESOURCE_CHECK = types.abstract("kubernetes.authorization.ResourceCheck")
_DECISION = types.abstract("kubernetes.authorization.Decision")


class _PathCheck(Incomparable):
    __slots__ = ("authorizer", "path")
    type_name = _PATH_CHECK.name

    def __init__(self, authorizer: Authorizer, path: str) -> None:
        self.authorizer = authorizer
        self.path = path


class _GroupCheck(Incomparable):
    __slots__ = ("authorizer", "group")
    type_name = _GROUP_CHECK.name

    def __init__(self, authorizer: Authorizer, group: str) -> None:
        self.authorizer = authorizer
        self.group = group


class _Decided(Incomparable):
    __slots__ = ("decision",)
    type_name = _DECISION.name

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


def _path(authorizer: Value, path: Value) -> Value:
    return _PathCheck(authorizer, path) if path.strip() else Error("path must not be empty")


def _resource(check: Value, resource: Value) -> Value:
    if not resource.strip():
        return Error("resource must not be empty")
    access = Access(check.authorizer.user, "", group=check.group, resource=resource)
    return ResourceCheck(check.authorizer, access)


def _service_account(authorizer: Value, namespace: Value, name: Value) -> Value:
    if names.dns_subdomain(name):
        return Error("Invalid service account name")
    if names.dns_label(namespace):
        return Error("Invalid service account namespace")
    return Authorizer(authorizer.decide, f"system:serviceaccount:{namespace}:{name}")


def _check_path(check: Value, verb: Value) -> Value:
    return _Decided(check.authorizer.decide(Access(check.authorizer.user, verb, path=check.path)))


def _check_resource(check: Value, verb: Value) -> Value:
    return _Decided(check.authorizer.decide(replace(check.access, verb=verb)))


def _narrowing(functions: Functions, name: str, overload: str, field: str) -> None:
    def narrowed(check: Value, value: Value) -> Value:
        return ResourceCheck(check.authorizer, replace(check.access, **{field: value}))

    functions.member(name, overload, (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK, narrowed)


def declare(functions: Functions) -> None:
    member = functions.member
    member("path", "authorizer_path", (AUTHORIZER, STRING), _PATH_CHECK, _path)
    member("group", "authorizer_group", (AUTHORIZER, STRING), _GROUP_CHECK, _GroupCheck)
    three: tuple[Type, ...] = (AUTHORIZER, STRING, STRING)
    member("serviceAccount", "authorizer_serviceaccount", three, AUTHORIZER, _service_account)
    member("resource", "groupcheck_resource", (_GROUP_CHECK, STRING), _RESOURCE_CHECK, _resource)
    for name in ("subresource", "namespace", "name"):
        _narrowing(functions, name, f"resourcecheck_{name}", name)
    _narrowing(functions, "fieldSelector", "authorizer_fieldselector", "field_selector")
    _narrowing(functions, "labelSelector", "authorizer_labelselector", "label_selector")
    member("check", "pathcheck_check", (_PATH_CHECK, STRING), _DECISION, _check_path)
    member("check", "resourcecheck_check", (_RESOURCE_CHECK, STRING), _DECISION, _check_resource)
    member("errored", "decision_errored", (_DECISION,), BOOL, lambda given: given.decision.error is not None)
    member("error", "decision_error", (_DECISION,), STRING, lambda given: given.decision.error or "")
    member("allowed", "decision_allowed", (_DECISION,), BOOL, lambda given: given.decision.verdict == "allow")
    member("reason", "decision_reason", (_DECISION,), STRING, lambda given: given.decision.reason)


def declare_patches(functions: Functions) -> None:
    """The library of mutating admission policies."""
    functions.free("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", (STRING,), STRING, _escape)


def _escape(key: Value) -> Value:
    return key.replace("~", "~0").replace("/", "~1")
