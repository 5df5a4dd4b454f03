"""Answers what a user may do, without doing it (``pkg/registry/authorization``)."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.messages.v1 import api_pb2

NODE_MODE_CANNOT_LIST = "node authorizer does not support user rule resolution"


def review(authorizer: Authorizer, by: str, request: api_pb2.ReviewRequest) -> api_pb2.ReviewResponse:
    """Raises :class:`kemu.errors.Forbidden` where the caller may not ask about others."""
    asks_about_itself = not request.user and not request.groups
    kind = "selfsubjectaccessreviews" if asks_about_itself else "subjectaccessreviews"
    authorizer.require(by, Attributes("create", "authorization.k8s.io", kind, "", "", "", ""))
    who = by if asks_about_itself else authorizer.seen_as(request.user, list(request.groups))
    if request.WhichOneof("attributes") == "non_resource":
        path = request.non_resource
        return api_pb2.ReviewResponse(allowed=authorizer.allows_path(who, path.verb, path.path))
    one = request.resource
    asked = Attributes(one.verb, one.group, one.resource, one.subresource, one.namespace, one.name, "")
    allowed, reason = authorizer.allows(who, asked)
    return api_pb2.ReviewResponse(allowed=allowed, reason=reason)


def rules(authorizer: Authorizer, by: str, namespace: str) -> api_pb2.RulesResponse:
    """What the roles of the caller allow in a namespace."""
    response = api_pb2.RulesResponse()
    for grant in authorizer.grants_of(by):
        if grant.namespace not in ("", namespace):
            continue
        for one in grant.rules:
            if one.resources:
                response.rules.add(
                    verbs=_in_order(one.verbs), groups=_in_order(one.groups), resources=_in_order(one.resources),
                    names=_in_order(one.names),
                )  # fmt: skip
            if one.paths:
                response.rules.add(verbs=_in_order(one.verbs), paths=_in_order(one.paths))
    if authorizer.cannot_list(by):
        response.incomplete, response.error = True, NODE_MODE_CANNOT_LIST
    return response


def _in_order(words: Iterable[str]) -> list[str]:
    return sorted(words)
