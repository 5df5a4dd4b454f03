"""Which flow schema a request belongs to (``util/flowcontrol/rule.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kemu.emulated.objects import identities
from kemu.emulated.objects.kinds import flow_defaults
from kemu.messages.k8s import flowcontrol_v1_pb2 as flow


class Digest(NamedTuple):
    """What of a request schemas look at."""

    user: identities.User
    verb: str
    group: str
    resource: str
    """With the subresource; empty: the request is for ``path``."""
    namespace: str
    path: str = ""


class Schemas:
    """The flow schemas of a cluster and their levels, with the mandatory ones even where these are no objects."""

    def __init__(self, levels: Iterable[flow.PriorityLevelConfiguration], schemas: Iterable[flow.FlowSchema]) -> None:
        self.levels = {one.metadata.name: one for one in (*flow_defaults.MANDATORY_LEVELS.values(), *levels)}
        found = {one.metadata.name: one for one in (*flow_defaults.MANDATORY_SCHEMAS.values(), *schemas)}
        self._ordered = sorted(
            # One that leads nowhere counts for nothing (``digestFlowSchemasLocked``).
            (one for one in found.values() if one.spec.priorityLevelConfiguration.name in self.levels),
            key=lambda one: (one.spec.matchingPrecedence, one.metadata.name),
        )

    def find(self, digest: Digest) -> flow.FlowSchema:
        for schema in self._ordered:
            if any(_matches(digest, rule) for rule in schema.spec.rules):
                return schema
        return next(one for one in self._ordered if one.metadata.name == flow_defaults.CATCH_ALL)

    def level_of(self, schema: flow.FlowSchema) -> flow.PriorityLevelConfiguration:
        return self.levels[schema.spec.priorityLevelConfiguration.name]


def distinguisher(digest: Digest, schema: flow.FlowSchema) -> str:
    """What tells the flows of a schema apart."""
    kind = schema.spec.distinguisherMethod.type
    return digest.user.name if kind == "ByUser" else digest.namespace if kind == "ByNamespace" else ""


def _matches(digest: Digest, rule: flow.PolicyRulesWithSubjects) -> bool:
    if not any(_is_subject(digest.user, one) for one in rule.subjects):
        return False
    if digest.resource:
        return any(_has_resource(digest, one) for one in rule.resourceRules)
    return any(_holds(digest.verb, one.verbs) and _has_path(digest.path, one) for one in rule.nonResourceRules)


def _is_subject(user: identities.User, subject: flow.Subject) -> bool:
    if subject.kind == "User":
        return subject.user.name in ("*", user.name)
    if subject.kind == "Group":
        return subject.group.name == "*" or subject.group.name in user.groups
    account = subject.serviceAccount
    prefix = f"{identities.SERVICE_ACCOUNT_PREFIX}{account.namespace}:"
    return user.name.startswith(prefix) if account.name == "*" else user.name == f"{prefix}{account.name}"


def _holds(value: str, listed: Sequence[str]) -> bool:
    return value in listed or "*" in listed


def _has_resource(digest: Digest, rule: flow.ResourcePolicyRule) -> bool:
    return (
        _holds(digest.verb, rule.verbs)
        and _holds(digest.resource, rule.resources)
        and _holds(digest.group, rule.apiGroups)
        and (_holds(digest.namespace, rule.namespaces) if digest.namespace else rule.clusterScope)
    )


def _has_path(path: str, rule: flow.NonResourcePolicyRule) -> bool:
    """``/healthz`` is meant with all that is below it."""
    for url in rule.nonResourceURLs:
        prefix = url.removesuffix("*")
        if url in ("*", path) or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            return True
    return False
